"""Cost against finish of one job by itself: the front of its candidates, which the optimiser's own plan lies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import api

pytestmark = pytest.mark.usefixtures("listed_once")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["llama", "gpt2-xl"])
def test_the_plan_is_the_cheapest_point_that_is_on_time(name: str) -> None:
    scenario = api.load_scenario(ROOT / "scenarios" / f"{name}.yaml", settings=["prefer=cheapest"])
    plan = api.solve(scenario).document
    (job,) = api.tradeoffs(scenario, plan=plan)
    here = [point for point in job["points"] if point["here"]]
    assert here == [min((p for p in job["points"] if p["on_time"]), key=lambda point: point["cost_microusd"])]
    assert here[0]["cost_microusd"] == job["chosen"]["cost_microusd"]


def test_no_point_beats_another_and_no_candidate_beats_a_point() -> None:
    scenario = api.load_scenario(ROOT / "scenarios/llama.yaml")
    (job,) = api.tradeoffs(scenario)
    points = job["points"]
    assert [p["finish_hours"] for p in points] == sorted({p["finish_hours"] for p in points})
    assert [p["cost_microusd"] for p in points] == sorted({p["cost_microusd"] for p in points}, reverse=True)
    table = api.enumerate_candidates(scenario, api.load_catalog()).tables["pretrain-8b"]
    for row in range(len(table)):
        hours, cost = float(table.finish_s[row]) / 3600, table.cost_microusd[row]
        assert any(p["finish_hours"] <= hours * (1 + 1e-12) and p["cost_microusd"] <= cost for p in points)


def test_ways_past_the_deadline_are_told_apart() -> None:
    scenario = api.load_scenario(ROOT / "scenarios/llama.yaml", settings=["training.pretrain-8b.deadline=10 days"])
    (job,) = api.tradeoffs(scenario)
    assert {point["on_time"] for point in job["points"]} == {True, False}
    for point in job["points"]:
        assert point["on_time"] == (point["finish_at_confidence_hours"] <= job["deadline_hours"])


def test_fleets_have_no_such_front() -> None:
    assert api.tradeoffs(api.load_scenario(ROOT / "scenarios/chat-fleet.yaml")) == []
