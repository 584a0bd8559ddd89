"""Other decisions, ranges and staying for whole scenarios, against all plans of all columns that were listed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from planner import api
from planner.analysis.others.other_plans import Previous, choice_key, held_nodes, parts_of
from planner.candidates.search import Candidates
from planner.catalog.model import Catalog
from planner.errors import UsageError
from planner.scenario.schema import Scenario
from tests.frontier.random_worlds import random_world
from tests.frontier.test_frontier import all_plans
from tests.optimize.brute import value
from tests.tiers import cases
from tests.worlds import scenario as scenario_of

Units = list[int]
SEEDS = range(70, 70 + cases(4, 6))


def listed(seed: int) -> tuple[Scenario, Catalog, Candidates, list[Units]]:
    """A scenario of jobs, its columns, and all its plans, cheapest first."""
    scenario, catalog = random_world(seed)
    candidates = api.enumerate_candidates(scenario, catalog)
    plans = sorted(all_plans(candidates.whole), key=lambda units: value(candidates.whole, units, "cost"))
    return scenario, catalog, candidates, plans


def rented(candidates: Candidates, units: Units) -> list[tuple[str, int]]:
    """Workload and row of each column in use."""
    return [
        (task.name, int(candidates.whole_rows[column]))
        for task in candidates.whole.tasks
        for column in range(task.first, task.stop)
        if units[column]
    ]


def test_best_decisions() -> None:
    several = 0
    for seed in SEEDS:
        scenario, catalog, candidates, plans = listed(seed)
        taken: list[set[Any]] = []
        costs = []
        for units in plans:
            decision = {(name, choice_key(candidates, name, row)) for name, row in rented(candidates, units)}
            if len(costs) < 4 and not any(before <= decision for before in taken):
                taken.append(decision)
                costs.append(value(candidates.whole, units, "cost"))
        if costs:
            found = api.best_decisions(scenario, catalog, count=4)
            assert [plan["cost_microusd"] for plan in found] == costs, seed
            assert all(plan["proven"] for plan in found)
            several += len(costs) > 2
    assert several >= 3


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_ranges_of_devices(share: float) -> None:
    wide = 0
    for seed in SEEDS:
        scenario, catalog, candidates, plans = listed(seed)
        if not plans:
            continue
        cheapest = value(candidates.whole, plans[0], "cost")
        near = [units for units in plans if value(candidates.whole, units, "cost") <= cheapest * (1 + share)]
        counts: dict[str, list[int]] = {name: [0] * len(near) for name in ("slow", "middle", "fast")}
        for number, units in enumerate(near):
            for name, row in rented(candidates, units):
                site = candidates.tables[name].sites[row]
                counts[site.device.id][number] += int(candidates.tables[name].nodes[row]) * site.shape.devices
        expected = {name: (min(each), max(each)) for name, each in counts.items() if max(each)}
        found = api.near_optimal(scenario, catalog, within=share)
        assert {row["device"]: (row["fewest"], row["most"]) for row in found} == expected, seed
        wide += any(low < high for low, high in expected.values())
    assert wide >= 3


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_staying_with_a_plan_of_another_day(share: float) -> None:
    """The plan of the same jobs at other prices is stayed with as far as the share allows, and no further."""
    moved = 0
    for seed in SEEDS:
        scenario, catalog, candidates, plans = listed(seed)
        if len(plans) < 2:
            continue
        before = held_of(candidates, plans[len(plans) // 2])
        cheapest = value(candidates.whole, plans[0], "cost")
        near = [units for units in plans if value(candidates.whole, units, "cost") <= cheapest * (1 + share)]
        least = min(changes(before, held_of(candidates, units)) for units in near)
        cost = min(
            value(candidates.whole, units, "cost")
            for units in near
            if changes(before, held_of(candidates, units)) == least
        )
        plan = api.solve(scenario, catalog, previous=Previous(document=as_plan(before), share=share))
        facts = plan.document["others"]["previous"]
        assert (facts["changed_nodes"], facts["proven"]) == (least, True), seed
        assert plan.document["summary"]["cost_microusd"] == cost, seed
        assert facts["cheapest_microusd"] == cheapest, seed
        assert changes(before, held_nodes(plan.document)) == least
        moved += cost != cheapest
    assert moved >= (2 if share else 0)


def test_a_move_has_its_price() -> None:
    for seed in SEEDS:
        scenario, catalog, candidates, plans = listed(seed)
        if len(plans) < 2:
            continue
        before = held_of(candidates, plans[len(plans) // 2])
        price = value(candidates.whole, plans[0], "cost") // 20
        best = min(
            value(candidates.whole, units, "cost") + price * changes(before, held_of(candidates, units))
            for units in plans
        )
        plan = api.solve(scenario, catalog, previous=Previous(document=as_plan(before), move_microusd=price))
        paid = plan.document["summary"]["cost_microusd"]
        assert paid + price * plan.document["others"]["previous"]["changed_nodes"] == best, seed


def held_of(candidates: Candidates, units: Units) -> dict[tuple[str, ...], int]:
    """Nodes by workload and offer."""
    held: dict[tuple[str, ...], int] = {}
    for name, row in rented(candidates, units):
        for site, nodes in parts_of(candidates, name, row):
            held[name, site.offer.id] = held.get((name, site.offer.id), 0) + nodes
    return held


def changes(before: dict[tuple[str, ...], int], after: dict[tuple[str, ...], int]) -> int:
    return sum(abs(before.get(key, 0) - after.get(key, 0)) for key in {*before, *after})


def as_plan(held: dict[tuple[str, ...], int]) -> dict[str, Any]:
    """A plan that held this: of another question, but for offers and counts."""
    other = solved_once()
    names, workload = sorted({key[0] for key in held}), other["workloads"][0]
    row = workload["allocations"][0]
    rows = {name: [{**row, "offer": key[1], "count": n} for key, n in held.items() if key[0] == name] for name in names}
    return {**other, "workloads": [{**workload, "name": name, "allocations": rows[name]} for name in names]}


@cache
def solved_once() -> dict[str, Any]:
    scenario, catalog, _, _ = listed(70)
    return dict(api.solve(scenario, catalog).document)


def test_what_is_no_longer_sold_is_given_back() -> None:
    scenario, catalog, _, _ = listed(70)
    before = as_plan({("one", "gone:offer"): 3})
    plan = api.solve(scenario, catalog, previous=Previous(document=before))
    nodes = sum(row["count"] for workload in plan.document["workloads"] for row in workload["allocations"])
    facts = plan.document["others"]["previous"]
    assert facts["changed_nodes"] == nodes + 3
    assert {"workload": "one", "offer": "gone:offer", "before": 3, "after": 0} in facts["changes"]


@pytest.mark.parametrize("objective", [["cost", "time"], ["time", "cost"], ["carbon", "cost"]])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_stands_beside_a_plan_verifies(seed: int, objective: list[str]) -> None:
    """Where time came first, plans that cost less than the fastest were called below what is proven."""
    scenario, catalog = random_world(seed, objective=objective)
    plan = api.solve(scenario, catalog, best=2, within=0.05)
    if plan.document["status"] == "optimal":
        assert api.verify(plan, catalog) == []


def test_a_plan_itself_is_one_to_stay_with() -> None:
    """Given as a plan, it ended in an AttributeError."""
    scenario, catalog, _, _ = listed(70)
    plan = api.solve(scenario, catalog)
    for before in (plan, plan.document):
        stayed = api.solve(scenario, catalog, previous=before).document
        assert stayed["others"]["previous"]["changed_nodes"] == 0
        assert stayed["summary"]["cost_microusd"] == plan.document["summary"]["cost_microusd"]
    with pytest.raises(TypeError, match="a plan, its document or the path of its file is wanted, not int"):
        api.solve(scenario, catalog, previous=7)  # type: ignore[arg-type]


def test_staying_wants_cost_first() -> None:
    scenario, catalog = random_world(70, objective=["time", "cost"])
    with pytest.raises(UsageError):
        api.solve(scenario, catalog, previous=Previous(document=as_plan({})))


def test_a_question_that_did_not_change_keeps_its_plan() -> None:
    """Also one that is dearer than the cheapest for being plainer."""
    job = {"name": "job", "model": "qwen2.5-7b", "sequence_length": 4096, "tokens": "2B", "deadline": "30 days"}
    hardware = {"allow": ["h100-sxm-80gb"], "pricing": ["on_demand"]}
    asked = scenario_of([job], hardware=hardware, limits={"max_devices": 8})
    before = api.solve(asked).document
    assert before["plain"]["above"] > 0
    plan = api.solve(asked, previous=Previous(document=before)).document
    facts = plan["others"]["previous"]
    assert (plan["workloads"], facts["changes"], facts["proven"]) == (before["workloads"], [], True)
    assert facts["cheapest_microusd"] == before["plain"]["cheapest_microusd"] < plan["summary"]["cost_microusd"]


@pytest.mark.parametrize("how", [{"share": 0.1}, {"move_microusd": 10_000_000}])
def test_staying_is_held_against_the_cheapest_fleet_that_holds_its_availability(how: dict[str, Any]) -> None:
    """Not against the cheapest of the last number of spares that was tried."""
    lengths = {"input_tokens": 1000, "output_tokens": 200}
    fleet = {"name": "chat", "model": "llama-3.1-70b", "weights": "fp8", "availability": "99.9 %", **lengths}
    hardware = {"allow": ["rtx-6000-ada", "h200-*"], "pricing": ["on_demand"]}
    earlier, asked = (
        scenario_of((), [{**fleet, "qpm": qpm}], hardware=hardware, prefer="cheapest") for qpm in (2400, 3600)
    )
    before, cheapest = api.solve(earlier).document, api.solve(asked).document
    plan = api.solve(asked, previous=Previous(document=before, **how)).document
    facts, least, paid = plan["others"]["previous"], *(one["summary"]["cost_microusd"] for one in (cheapest, plan))
    assert facts["cheapest_microusd"] == least
    move, most = how.get("move_microusd", 0), changes(held_nodes(before), held_nodes(cheapest))
    assert paid <= least * 1.1
    assert facts["changed_nodes"] <= most
    assert not move or paid + move * facts["changed_nodes"] <= least + move * most
