"""Every shipped scenario is solved and held against its golden plan, value by value.

`PLAN_UPDATE_GOLDEN=1 python -m pytest tests/scenarios` writes the golden files anew; a change in
them needs a reason in CHANGELOG.md.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planner.api.checking import check
from tests import shipped
from tests.verified import follow_schema

pytestmark = pytest.mark.usefixtures("listed_once")
ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SLOW = tuple(shipped.NEAR)  # proven to be near the cheapest, not to the end
SCENARIOS = [pytest.param(name, marks=pytest.mark.campaign if name in SLOW else ()) for name in shipped.NAMES]
LARGE = (
    "portfolio",
    "company",
)  # equal plans are not told apart by every offer, and CBC takes minutes: its money is held


DEAR = ("fleet", "infeasible", "disaggregated", "chat-fleet")  # for CBC


def lasting(document: dict[str, Any]) -> dict[str, Any]:
    """What must not change from version to version of the tools, or from folder to folder."""
    if document["name"] in LARGE:
        # how far ties were told apart is a question of time, so the cost is known to the tie tolerance
        # a bound short of the cost is as good as the solver's prices, which differ from processor to processor
        held = () if document["name"] in SLOW else ("bound_microusd", "gap")
        money = {name: document["summary"][name] for name in held}
        cost = round(document["summary"]["cost_microusd"] / 1e7)
        return {"name": document["name"], "status": document["status"], "summary": money, "cost_10_usd": cost}
    provenance = {
        key: value for key, value in document["provenance"].items() if key not in ("solver", "modelling", "planner")
    }
    certificate = document["certificate"] and {
        name: document["certificate"][name] for name in ("criterion", "latest_s", "value", "bound", "gap")
    }  # its prices are the solver's, in whole parts that differ from processor to processor
    return {**document, "certificate": certificate, "provenance": provenance, "sha256": None, "scenario_file": None}


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Paths at which two documents differ; floats to 1e-9 relative."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(set(one) | set(other))
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [line for i, pair in enumerate(zip(one, other)) for line in differences(*pair, f"{path}[{i}]")]
    if isinstance(one, float) and isinstance(other, int | float):
        return [] if one == pytest.approx(other, rel=1e-9) else [f"{path}: {one} != {other}"]
    return [] if one == other else [f"{path}: {one!r} != {other!r}"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_gives_its_golden_plan(name: str) -> None:
    found, file = lasting(shipped.plan(name)), GOLDEN / f"{name}.json"
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    golden = json.loads(file.read_text(encoding="utf-8"))
    if name in SLOW:  # another solver finds another plan as near
        assert found["cost_10_usd"] == pytest.approx(golden["cost_10_usd"], rel=shipped.NEAR[name])
        golden["cost_10_usd"] = found["cost_10_usd"]
    assert differences(golden, found) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_plan_is_proven_by_its_certificate_alone(name: str) -> None:
    document = shipped.plan(name)
    found = check(document)
    assert document["status"] == {"infeasible": "infeasible"}.get(name, "feasible" if name in SLOW else "optimal")
    if name in SLOW:
        assert [problem.reference for problem in found.problems] == ["not-proven"]
        assert document["summary"]["gap"] <= shipped.NEAR[name]
    else:
        assert found.problems == []
        assert found.standing.proven


@pytest.mark.parametrize("name", SCENARIOS)
def test_plan_follows_the_published_schema(name: str) -> None:
    follow_schema(shipped.plan(name))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.campaign if name in DEAR else ())
        for name in shipped.NAMES
        if name not in LARGE
    ],
)
def test_both_solvers_agree(name: str) -> None:
    documents = [shipped.plan(name), shipped.plan(name, "cbc")]
    chosen = [
        [(w["name"], [(r["offer"], r["count"], r["layout"]) for r in w["allocations"]]) for w in document["workloads"]]
        for document in documents
    ]
    costs = [document["summary"]["cost_microusd"] for document in documents]
    assert costs[0] == costs[1]
    assert chosen[0] == chosen[1]


def test_the_mix_beats_every_single_kind() -> None:
    document = shipped.plan("fleet")
    assert len(document["workloads"]) == 5
    assert all(quota.get("max_devices") != 0 for quota in document["scenario"]["hardware"]["quotas"])
    assert document["single_kind"]["dearer"] >= 0.03


def test_the_infeasible_scenario_names_its_conflict() -> None:
    document = shipped.plan("infeasible")
    assert document["status"] == "infeasible"
    assert {entry["name"] for entry in document["infeasible"]["conflict"]} == {
        "first-8b",
        "second-8b",
        "training[1].deadline",
        "hardware.quotas[0]",
    }


def test_gpt2_xl_shows_the_founding_figures() -> None:
    checks = {check["rule"]: check["value"] for check in shipped.plan("gpt2-xl")["workloads"][0]["cross_check"]}
    assert checks["16 · parameters"] == pytest.approx(24.92e9, rel=1e-3)  # "24 GB"
    assert checks["12 · h · b · s · L values"] == pytest.approx(29.4912e9)  # 59 GB at 16 bits
    assert 6.7e9 <= checks["checkpointing"] <= 10.7e9  # "8-9 GB"


def test_a100_rules_show_both_formulas_and_both_readings() -> None:
    training, serving = shipped.plan("a100-rules")["workloads"]
    rule = training["cross_check"][0]
    assert rule["value"] == pytest.approx(13.3 * 140 * 1 * 7 / 720)
    devices, sequences = serving["cross_check"]
    assert devices["value"] == pytest.approx(200 / 700 * 1000 / 60)
    assert sequences["value"] == pytest.approx(200 / 50 * 1000 / 60)
    # without splits the rule tier is the rule: device-hours are 13.3 · tokens · size whatever the count
    row = training["allocations"][0]
    assert row["time_terms_s"]["compute"] * row["devices"] / 3600 == pytest.approx(13.3 * 140 * 7, rel=1e-9)
