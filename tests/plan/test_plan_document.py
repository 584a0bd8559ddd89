"""The plan document: its schema, its sums, what it says of what was not chosen, and that it is always the same."""

from __future__ import annotations

import copy
import csv
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner import api
from planner.answers import Plan
from planner.answers.shown import EXIT_CODES
from planner.catalog.model import Catalog
from planner.errors import InputError, PlanError
from planner.plan.document import digest_of
from planner.report.plan_formats import render_plan
from planner.scenario.schema import Scenario
from tests.tiers import cases
from tests.verified import errors, follow_schema
from tests.worlds import GIB, catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
ROOT = Path(__file__).parents[2]


def solved(plan: Scenario, world: Catalog) -> Document:
    document: Document = json.loads(api.solve(plan, world).to_json())
    follow_schema(document)
    return document


def two_kinds() -> Catalog:
    """`lean` trains cheaply but cannot serve; `sound` does both at three times the price."""
    return catalog(
        [device("lean", uses=("training",)), device("sound")],
        [shape("north/lean", "lean"), shape("south/sound", "sound")],
        [offer("north/lean", 1.0), offer("south/sound", 3.0, region="r2")],
    )


# ---- schema

CASES: dict[str, tuple[Scenario, Catalog]] = {
    "training alone": (scenario([job(deadline="2 h")]), catalog()),
    "serving alone": (scenario([], [fleet()]), catalog()),
    "both": (scenario([job(deadline="2 h")], [fleet(spare_replicas=1)]), two_kinds()),
    "roofline": (
        scenario([], [{k: v for k, v in fleet(model="llama-3.2-1b").items() if k != "throughput"}]),
        catalog(),
    ),
    "every limit": (
        scenario(
            [job(deadline="2 h")],
            [fleet()],
            limits={"budget": "$9000", "max_devices": 9, "power": "9 kW", "max_providers": 2, "spend": "$99/h",
                    "carbon": "9 t"},
            hardware={"quotas": [{"device": "*", "max_devices": 9}, {"provider": "north", "max_shapes": 9}],
                      "owned": [{"shape": "north/one", "count": 2, "price": "$0.01/h"}]},
        ),
        catalog(grids={("north", "r1"): (100.0, 1.1)}),
    ),
    "measured": (scenario([job(deadline="3 h", mfu={"plain": 0.3})]), catalog()),
    "too late": (scenario([job(deadline="1 s")], [fleet()]), catalog()),
    "too dear": (scenario([job(deadline="2 h")], [fleet()], limits={"budget": "$1"}), catalog()),
    "nothing to choose from": (scenario([job()], hardware={"regions": "nowhere-*"}), catalog()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_documents_follow_the_schema(name: str) -> None:
    plan, world = CASES[name]
    if name == "nothing to choose from":
        with pytest.raises(InputError):
            api.solve(plan, world)
        return
    document = solved(plan, world)
    assert document["status"] == ("infeasible" if name.startswith("too") else "optimal")
    assert document["sha256"] == digest_of(document)
    assert errors(document, world) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("status"),
        lambda d: d.update(status="splendid"),
        lambda d: d.update(extra=1),
        lambda d: d["summary"].update(cost_microusd="12"),
        lambda d: d["workloads"][0]["allocations"][0].pop("offer"),
        lambda d: d["workloads"][0]["allocations"][0]["layout"].update(dp=1.5),
        lambda d: d["workloads"][0].update(kind="dancing"),
    ],
)
def test_the_schema_refuses_other_documents(spoil: Any) -> None:
    document = solved(*CASES["training alone"])
    spoilt = copy.deepcopy(document)
    spoil(spoilt)
    with pytest.raises(jsonschema.ValidationError):
        follow_schema(spoilt)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(api.plan_schema())


# ---- what it says


def test_a_plan_by_hand() -> None:
    """6000 device-seconds at $1 an hour, and 730 h of one replica at $3: $1.666667 and $2190."""
    document = solved(*CASES["both"])
    train, serve = document["workloads"]
    row, seat = train["allocations"][0], serve["allocations"][0]
    assert (row["offer"], seat["offer"]) == ("north/lean:r1:on_demand", "south/sound:r2:on_demand")
    assert row["device_hours"] == pytest.approx(6000 / 3600)
    assert row["cost_microusd"] == 1_666_667
    assert (seat["count"], seat["replicas"], seat["replicas_needed"]) == (2, 2, 1)
    assert seat["cost_microusd"] == 2 * 730 * 3_000_000
    assert seat["load_at_peak"] == pytest.approx(0.5)
    assert seat["usd_per_million_output_tokens_mean"] == pytest.approx(4380 / (730 * 3600 * 10 * 100) * 1e6)
    assert seat["usd_per_million_output_tokens_full"] == pytest.approx(4380 / (730 * 3600 * 20 * 100) * 1e6)
    summary = document["summary"]
    assert summary["cost_microusd"] == summary["bound_microusd"] == 4_380_000_000 + 1_666_667
    assert (summary["gap"], summary["training_usd"], summary["serving_usd"]) == (0.0, 1.666667, 4380.0)
    assert summary["devices"] == row["devices"] + 2
    assert document["provenance"]["catalog"]["sha256"] == "d" * 64


def test_terms_add_up() -> None:
    for name in ("both", "roofline"):
        document = solved(*CASES[name])
        for workload in document["workloads"]:
            for row in workload["allocations"]:
                memory = row["memory"]
                assert sum(memory["terms_bytes"].values()) == pytest.approx(memory["needed_bytes"], rel=1e-12)
                assert memory["free_bytes"] == pytest.approx(memory["usable_bytes"] - memory["needed_bytes"])
                if workload["kind"] == "training":
                    assert sum(row["time_terms_s"].values()) / 3600 == pytest.approx(row["hours"], rel=1e-12)


def test_the_best_plan_of_one_kind_is_found_though_its_columns_were_pruned() -> None:
    """Training on `sound` is dominated by `lean`, yet the only plan of one kind trains on it."""
    document = solved(*CASES["both"])
    single = document["single_kind"]
    assert single["device"] == "sound"
    assert single["cost_microusd"] == 4_380_000_000 + 5_000_000
    assert single["dearer"] == pytest.approx((4_385_000_000) / 4_381_666_667 - 1)
    alone = solved(scenario([job(deadline="2 h")], [fleet(spare_replicas=1)], hardware={"allow": "sound"}), two_kinds())
    assert alone["summary"]["cost_microusd"] == single["cost_microusd"]
    assert alone["single_kind"] is None


def test_the_best_plan_of_one_kind_may_be_of_what_is_owned() -> None:
    """Its device was not among those that may be rented, so that the verifier refused a plan of our own."""
    hardware = {"allow": "lean", "owned": [{"shape": "south/sound", "count": 9, "price": "$3/h"}]}
    document = solved(scenario([job(deadline="2 h")], [fleet(spare_replicas=1)], hardware=hardware), two_kinds())
    assert document["single_kind"]["device"] == "sound"
    assert not api.verify(document, two_kinds())


def test_the_best_plan_of_one_kind_keeps_to_the_limits() -> None:
    limited = scenario([job(deadline="2 h")], [fleet(spare_replicas=1)], limits={"budget": "$4382"})
    assert solved(limited, two_kinds())["single_kind"] is None


def test_facts_carry_source_and_date() -> None:
    document = solved(*CASES["both"])
    facts = document["provenance"]["facts"]
    assert {fact["subject"] for fact in facts} >= {"north/lean:r1:on_demand", "south/sound:r2:on_demand"}
    assert all(fact["source"] and fact["as_of"] for fact in facts)


def test_what_was_dropped_is_told() -> None:
    document = solved(*CASES["both"])
    reasons = {name: {row["reason"] for row in entry["reasons"]} for name, entry in document["rejected"].items()}
    assert "not-for-serving" in reasons["fleet"]
    assert "dominated" in reasons["job"]
    assert document["rejected"]["job"]["offers_seen"] == 2


def test_an_infeasible_plan_says_why() -> None:
    late = solved(*CASES["too late"])
    assert late["summary"]["cost_microusd"] is None
    assert all(workload["allocations"] == [] for workload in late["workloads"])
    assert list(late["infeasible"]["workloads"]) == ["job"]
    assert any(line.startswith("deadline: ") for line in late["infeasible"]["workloads"]["job"])
    dear = solved(*CASES["too dear"])
    assert dear["infeasible"]["workloads"] == {}
    assert {"limits.budget"} <= {entry["name"] for entry in dear["infeasible"]["conflict"]}


def test_rules_of_thumb_say_large_numbers_in_full() -> None:
    """40,000 devices were 3.9e+04."""
    large = scenario([job(tokens="50T", deadline="240 months")], [fleet(qpm=6_000_000)])
    texts = [one["text"] for workload in solved(large, catalog())["workloads"] for one in workload["cross_check"]]
    assert any("6,000,000 QPM" in text for text in texts)
    assert not any("e+" in text for text in texts), texts


def test_without_a_plan_no_rule_of_thumb_is_told_of_its_rate() -> None:
    lost = fleet(model="llama-3.2-1b", slo={"ttft_p95": "1 ms"})
    lost.pop("throughput", None)
    document = solved(scenario([], [lost]), catalog())
    assert document["status"] == "infeasible"
    assert document["workloads"][0]["cross_check"] == []
    shown = render_plan(document, "table")
    assert "misses a latency target even when idle" in shown


def test_a_shape_too_large_for_the_limits_is_a_reason() -> None:
    large = catalog(shapes=[shape("north/eight", devices=8)])
    document = solved(scenario([job(deadline="2 h")], limits={"max_devices": 4}), large)
    (line,) = document["infeasible"]["workloads"]["job"]
    assert line.startswith("quota: one north/eight has 8 devices")


def test_limits_show_what_is_used() -> None:
    document = solved(*CASES["every limit"])
    used = {row["name"]: (row["used"], row["bound"], row["unit"]) for row in document["limits"]}
    rows = [row for workload in document["workloads"] for row in workload["allocations"]]
    assert used["limits.max_devices"] == (sum(row["devices"] for row in rows), 9.0, "devices")
    assert used["limits.budget"] == (pytest.approx(document["summary"]["cost_usd"]), 9000.0, "USD")
    assert used["limits.power"] == (pytest.approx(sum(row["power_w"] for row in rows)), 9000.0, "W")
    assert used["limits.carbon"][0] == pytest.approx(sum(row["carbon_kg"] for row in rows), abs=1e-5)


def test_unknown_carbon_is_null_and_no_carbon_is_zero() -> None:
    unknown = solved(scenario([job(deadline="2 h")]), catalog())
    clean = solved(scenario([job(deadline="2 h")]), catalog(grids={("north", "r1"): (0.0, 1.1)}))
    assert unknown["workloads"][0]["allocations"][0]["carbon_kg"] is None
    assert clean["workloads"][0]["allocations"][0]["carbon_kg"] == 0.0


def test_a_frame_has_a_row_for_each_allocation() -> None:
    frame = api.solve(*CASES["both"]).to_frame()
    assert list(frame["workload"]) == ["job", "fleet"]
    assert frame["cost_microusd"].sum() == 4_381_666_667


def test_every_status_has_an_exit_code() -> None:
    assert EXIT_CODES == {"optimal": 0, "feasible": 5, "infeasible": 4, "stopped": 6, "failed": 6}
    assert api.solve(*CASES["too late"]).exit_code == 4
    assert Plan(document={"status": "stopped"}).exit_code == 6


def test_a_plan_that_the_verifier_refuses_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the search had counted on twice the memory that there is."""
    from planner.candidates.offers import Site

    small = catalog([device(memory_bytes=12 * GIB, reserved_memory_bytes=0)])
    monkeypatch.setattr(Site, "usable_bytes", 64.0 * GIB)
    with pytest.raises(PlanError) as caught:
        api.solve(scenario([job(deadline="2 h")]), small)
    assert {"does-not-fit", "wrong-memory"} <= {problem.reference for problem in caught.value.problems}


@pytest.mark.parametrize("schedule", [None, "fixed", "elastic"])
def test_the_earliest_finish_counts_from_the_beginning_of_the_plan(schedule: str | None) -> None:
    """Not from the start of each job: plans with such jobs were refused by their own certificate."""
    grid: dict[str, Any] = {"periods": "1 h", "horizon": "12 h"} if schedule else {}
    jobs = [job("first", deadline="4 h"), job("late", start="2 h", deadline="10 h")]
    if schedule:
        jobs[1]["schedule"] = schedule
    world = catalog()
    asked = scenario(jobs, objective="time", limits={"max_devices": 6}, **grid)
    document = solved(asked, world)
    assert not errors(document, world)
    assert document["status"] == "optimal"
    last = max(row["finish_hours"] for workload in document["workloads"] for row in workload["allocations"])
    assert document["certificate"]["latest_s"] == pytest.approx(3600 * last)


# ---- the same every time

TEXT = """\
schema: plan/v1
name: same
training:
  - {name: train, model: llama-3.1-8b, tokens: 2B, deadline: 10 days, count: 2}
serving:
  - {name: chat, model: qwen2.5-7b, weights: fp8, qpm: 600, input_tokens: 500, output_tokens: 200, spare_replicas: 1}
hardware:
  allow: ["h100-*", "a100-*", l40s, l4]
  owned: [{shape: onprem/rtx-4090-x1, count: 2, price: $0.10/h}]
limits: {max_devices: 64}
objective: [cost, time]
"""
CODE = """
import sys
from planner import api
plan = api.solve(api.load_scenario("same.yaml"), api.load_catalog(sys.argv[1] if len(sys.argv) > 1 else None))
sys.stdout.buffer.write(plan.to_json().encode())
"""


def run(folder: Path, seed: str, *arguments: str) -> bytes:
    """The plan of a fresh process with its own order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], cwd=folder, env=environment, capture_output=True, check=True
    )
    return done.stdout


def permuted_catalog(folder: Path, seed: int) -> Path:
    """The shipped catalog with the rows of its tables in another order, in files of other names."""
    target = folder / f"hardware-{seed}"
    shutil.copytree(ROOT / "hardware", target)
    rng = random.Random(seed)
    rows: list[dict[str, str]] = []
    for path in sorted((target / "offers").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
        path.unlink()
    rng.shuffle(rows)
    fields = list(dict.fromkeys(name for row in rows for name in row))
    for number, part in enumerate((rows[::2], rows[1::2])):
        with (target / "offers" / f"part-{number}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fields, restval="")
            writer.writeheader()
            writer.writerows(part)
    return target


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("same")
    (folder / "same.yaml").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def first(elsewhere: Path) -> bytes:
    return run(elsewhere, "0")


def test_same_inputs_same_bytes(first: bytes, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(TEXT)
    assert len(json.loads(first)["workloads"]) == 2
    assert {run(tmp_path, seed) for seed in ("12345", "1", "random")[: cases(1, 3)]} == {first}


def test_the_order_of_offers_does_not_matter(first: bytes, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(TEXT)
    for seed in range(cases(1, 2)):
        folder = str(permuted_catalog(tmp_path, seed))
        plan = json.loads(run(tmp_path, "0", folder))
        assert plan["provenance"]["catalog"].pop("hardware") == folder  # what was named, which its seal covers, too
        assert {**plan, "sha256": ""} == {**json.loads(first), "sha256": ""}


def test_the_clock_and_the_folder_are_not_in_the_document(first: bytes, elsewhere: Path) -> None:
    assert str(elsewhere) not in first.decode()
    assert str(ROOT) not in first.decode()


def test_ties_are_broken_by_the_offer_id() -> None:
    """Two offers alike in everything but their place: the first in order, whatever the order of the catalog."""
    tied = catalog(offers=[offer(region="r2"), offer(region="r1"), offer(region="r3")])
    row = solved(scenario([job(deadline="2 h")]), tied)["workloads"][0]["allocations"][0]
    assert row["offer"] == "north/one:r1:on_demand"
