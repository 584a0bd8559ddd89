"""Fleets of users: the plan against laws, a fleet with a rate, the simulation, and forged documents."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.plan.document import resealed
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from tests.verified import errors, follow_schema
from tests.worlds import scenario

pytestmark = pytest.mark.usefixtures("listed_once")
Document = dict[str, Any]
SLO = {"ttft_p95": "1 s", "tpot_p95": "60 ms"}


@pytest.fixture(scope="module")
def world() -> Catalog:
    return api.load_catalog()


def fleet(**changes: Any) -> Scenario:
    """Users of an 8B model on a few devices."""
    facts: dict[str, Any] = {
        "name": "chat", "model": "llama-3.1-8b", "weights": "fp8", "users": 2000, "think_time": "30 s",
        "input_tokens": 1000, "output_tokens": 300, "slo": SLO,
    }  # fmt: skip
    facts = {name: value for name, value in {**facts, **changes}.items() if value is not None}
    return scenario([], [facts], hardware={"allow": ["h100-sxm-80gb", "l40s"]})


def solved(asked: Scenario, world: Catalog, **options: Any) -> Document:
    document: Document = json.loads(api.solve(asked, world, **options).to_json())
    return document


def cost(document: Document) -> int:
    found: int = document["summary"]["cost_microusd"]
    return found


@pytest.fixture(scope="module")
def plan(world: Catalog) -> Document:
    return solved(fleet(spare_replicas=1), world, simulate=True)


def test_the_law_of_response_times_holds_of_the_plan(plan: Document) -> None:
    """N = X (Z + R) of the fleet and of each row, with the response time that the row itself predicts."""
    workload = plan["workloads"][0]
    users = workload["fleet"]["users"]
    assert users["users"] == 2000
    assert users["requests_per_s"] * (30 + users["response_s"]) == pytest.approx(2000)
    for row in workload["allocations"]:
        point = row["point"]
        assert row["users"] == pytest.approx(row["replicas_needed"] * point["users"])
        assert point["users"] == pytest.approx(point["requests_per_s"] * (30 + point["e2e_s"]["mean"]))
        assert point["users"] <= row["replica_users"]
    assert sum(row["users"] for row in workload["allocations"]) == pytest.approx(2000)
    assert workload["demand"]["requests_per_minute"] is None
    assert {"EQ-CLO-5", "EQ-CLO-6", "EQ-CLO-7", "EQ-CLO-8", "EQ-CLO-9"} <= set(workload["equations"])


def test_the_simulated_loop_agrees_with_the_plan(plan: Document) -> None:
    """The bar: throughput within 5 %, the 95th percentile of the first token within 10 %."""
    workload = plan["workloads"][0]
    for row, seen in zip(workload["allocations"], plan["simulation"], strict=True):
        assert seen["users"] == round(row["point"]["users"])
        assert row["point"]["requests_per_s"] == pytest.approx(seen["requests_per_s"], rel=0.05)
        assert row["point"]["ttft_s"]["p95"] == pytest.approx(seen["ttft_s"]["p95"], rel=0.10)


def test_the_plan_is_verified_and_follows_the_schema(plan: Document, world: Catalog) -> None:
    assert errors(plan, world) == []
    follow_schema(plan)


FORGERIES: dict[str, Callable[[Document], None]] = {  # by what is said of them
    "users of all are planned": lambda row: row.update(users=row["users"] * 1.1),
    "replica_users is": lambda row: row.update(replica_users=row["replica_users"] * 1.1),
    "routed_requests_per_s": lambda row: row.update(routed_requests_per_s=[2 * row["routed_requests_per_s"][0]]),
    "users is": lambda row: row["point"].update(users=row["point"]["users"] / 2),
    "0 users of all are planned": lambda row: row.pop("users"),
}


@pytest.mark.parametrize("said", FORGERIES)
def test_forged_users_are_found(said: str, plan: Document, world: Catalog) -> None:
    forged = copy.deepcopy(plan)
    FORGERIES[said](forged["workloads"][0]["allocations"][0])
    found = [str(problem) for problem in errors(resealed(forged), world)]
    assert any(said in text for text in found), found


def test_forged_figures_of_the_fleet_are_found(plan: Document, world: Catalog) -> None:
    for change in ({"response_s": 1.0}, {"requests_per_s": 1.0}, {"users": 3000.0}):
        forged = copy.deepcopy(plan)
        forged["workloads"][0]["fleet"]["users"].update(change)
        assert errors(resealed(forged), world)


def test_users_on_a_fleet_with_a_rate_are_found(world: Catalog) -> None:
    document = solved(fleet(users=None, think_time=None, qpm=600), world)
    assert errors(document, world) == []
    for forge in (
        lambda workload: workload["allocations"][0].update(users=5.0),
        lambda workload: workload["fleet"].update(
            users={"users": 1.0, "think_time_s": 1.0, "response_s": 1.0, "requests_per_s": 0.5}
        ),
    ):
        forged = copy.deepcopy(document)
        forge(forged["workloads"][0])
        assert errors(resealed(forged), world)


def test_users_in_step_are_warned_of(world: Catalog) -> None:
    """Answers all alike and hardly any thinking: the simulation shows first tokens far later than predicted."""

    def warned(**changes: Any) -> bool:
        document = solved(fleet(**{"users": 200, "slo": None, **changes}), world)
        return any("in step with each other" in text for text in document["warnings"])

    assert warned(think_time="1 s")
    assert not warned(think_time="5 min")
    assert not warned(think_time="1 s", output_tokens={"mean": 300, "p95": 600})


def test_fewer_users_or_longer_thinking_never_cost_more(world: Catalog) -> None:
    asked = fleet()
    costs = [cost(solved(with_settings(asked, [f"serving.chat.users={n}"]), world)) for n in (50, 500, 1000, 2000)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]
    costs = [
        cost(solved(with_settings(asked, [f"serving.chat.think_time={z}"]), world)) for z in ("2 s", "30 s", "5 min")
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_users_who_hardly_ever_ask_are_a_rate(world: Catalog) -> None:
    """At a fixed N / Z the plan of users who think for days is that of the rate; peaks are one and the same there."""
    days = 10.0
    many = fleet(users=1_000_000, think_time=f"{days:g} days")
    rate = solved(fleet(users=None, think_time=None, requests=f"{1e6 / (days * 86400):.12g} /s", peak_factor=1), world)
    found = solved(many, world)
    assert cost(found) == cost(rate)
    pairs = zip(found["workloads"][0]["allocations"], rate["workloads"][0]["allocations"], strict=True)
    for one, other in pairs:
        assert (one["offer"], one["count"]) == (other["offer"], other["count"])
        assert one["planned_requests_per_s"] == pytest.approx(other["planned_requests_per_s"], rel=1e-3)
        assert one["point"]["ttft_s"]["p95"] == pytest.approx(other["point"]["ttft_s"]["p95"], rel=1e-3)


def test_users_of_every_kind_of_demand(world: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without targets, of several classes, over a day, scaled, with an API beside: planned, and verified."""
    hours = "".join(f"{hour},{2 if 8 <= hour < 20 else 0.5}\n" for hour in range(24))
    (tmp_path / "day.csv").write_text(f"hour,weight\n{hours}")
    (tmp_path / "mix.csv").write_text("input_bucket,output_bucket,fraction\n500,100,0.7\n4000,400,0.3\n")
    monkeypatch.chdir(tmp_path)
    several: dict[str, Any] = {"histogram": "mix.csv", "input_tokens": None, "output_tokens": None}
    for changes in (
        {"slo": None, "min_replicas": 3},
        {**several, "api_price": "$0.20 /1M output tokens"},
        {**several, "slo": None},
        {"load_profile": "day.csv", "autoscaling": {"start_up": "10 min"}, "availability": 0.999},
    ):
        document = solved(fleet(users=600, **changes), world)
        assert document["status"] == "optimal"
        assert errors(document, world) == []
        figures = document["workloads"][0]["fleet"]
        peak = 600 * (1.6 if "load_profile" in changes else 1)
        assert figures["users"]["users"] == pytest.approx(peak)
        assert figures["usd_per_million_output_tokens_mean"] > 0
        assert all(level["users"] <= peak * (1 + 1e-9) for level in figures["levels"])
        json.dumps(document, allow_nan=False)
