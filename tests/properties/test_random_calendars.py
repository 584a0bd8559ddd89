"""Random calendars: what the search plans the verifier accepts, every view draws, and no change of a plan raises."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.errors import Problem
from planner.report.explanation_view import render_explanation
from planner.report.plan_formats import render_plan
from planner.scenario.schema import Scenario
from tests.tiers import sampled
from tests.verified import errors, follow_schema
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]
SEEDS = range(16)
HOURS = {"1 day": 24, "2 days": 48, "36 h": 36}


def market(chance: random.Random) -> Catalog:
    """Three shapes in two places, under every kind of terms, at random prices."""

    def price(low: float, high: float) -> float:
        return round(chance.uniform(low, high), 3)

    days = {"min_term_hours": 24, "max_term_hours": chance.choice([96, 240, None])}
    offers = [
        offer("north/one", 1.0),
        offer("north/two", 1.9),
        offer("north/one", price(0.3, 0.9), price_model="commitment_1y"),
        offer("north/two", price(0.8, 1.8), price_model="commitment_3y"),
        offer("north/one", price(0.4, 1.0), price_model="block", **days, term_step_hours=chance.choice([24, 48]),
              max_shapes=chance.choice([2, 8, None])),
        offer("south/one", price(0.5, 1.2), region="r2", price_model="flex", wait_hours=chance.choice([6, 12, 30]),
              max_term_hours=chance.choice([100, 168, None])),
        offer("south/one", 1.3, region="r2"),
        offer("south/one", 0.6, region="r2", price_model="spot"),
        offer("south/one", price(0.4, 1.0), region="r2", zone="z1", price_model="calendar", min_term_hours=48,
              max_term_hours=672, term_step_hours=24),
        offer("south/one", 1.25, region="r2", zone="z1", id="south/one:r2:z1:on_demand"),
    ]  # fmt: skip
    shapes = [shape("north/one"), shape("north/two", devices=2), shape("south/one")]
    return catalog([device()], shapes, offers, grids={("north", "r1"): (300.0, 1.1), ("south", "r2"): (200.0, 1.2)})


def jobs_of(chance: random.Random, horizon: int, period: int) -> list[dict[str, Any]]:
    """One to four jobs, some of which pause, are many, read data, or wait for another."""
    place = chance.choice(["north/r1", "south/r2"])
    data = {"name": "d", "size": "300 GB", "at": place, "egress": "$0.02/GB", "storage": "$0.02/GB-month"}
    data |= {"residency": ["r1"]} if chance.random() < 0.3 else {}
    jobs = []
    for number in range(chance.choice([1, 2, 3, 4])):
        start = chance.choice([0, 0, period, 7, period * 2])
        deadline = chance.randint((horizon - start) // 2, horizon - start)
        asked = {"tokens": f"{round(chance.uniform(2, 0.25 * period), 2)}B", "deadline": f"{deadline} h"}
        asked |= {"start": f"{start} h"} if start else {}
        extra: dict[str, Any] = {"schedule": "elastic"} if chance.random() < 0.25 else {}
        extra |= {"count": 2} if chance.random() < 0.25 else {}
        extra |= {"data": data} if chance.random() < 0.3 else {}
        jobs.append(job(f"j{number}", **asked, **extra))
    if len(jobs) > 1 and chance.random() < 0.4 and not ("count" in jobs[0] or "count" in jobs[1]):
        jobs[1]["after"] = "j0"
    return jobs


def hardware_of(chance: random.Random) -> dict[str, Any]:
    """What may be used, on which terms."""
    kinds = ["commitment_1y", "block", "flex", "spot", "commitment_3y", "calendar"]
    found: dict[str, Any] = {
        "pricing": [*chance.sample(kinds, chance.choice([1, 2, 3])), "on_demand"],
        "beyond_horizon": chance.choice(["prorate", "full"]),
        "flex": {"wait": "12 h"},
        "spot": {"interruptions": "0.01 /h"},
    }
    if chance.random() < 0.4:
        found["contracts"] = [{"shape": "north/one", "region": "r1", "price_model": "block", "price": "$0.45/h",
                               "term": "4 days", "max_shapes": 3}]  # fmt: skip
    if chance.random() < 0.5:
        owned = {"shape": "north/one", "count": 2, "price": "$0.05/h", "sunk": "$0.4/h"}
        owned |= {"from": "2026-12-03"} if chance.random() < 0.5 else {}
        found["owned"] = [owned | ({"until": "2026-12-08"} if chance.random() < 0.5 else {})]
    if chance.random() < 0.5:
        kind = chance.choice([{}, {"price_model": "on_demand"}])  # contracts too, or on demand alone
        found["quotas"] = [{"provider": "north", **kind, "max_shapes": chance.choice([0, 1, 2])},
                           {"price_model": "block", "max_shapes": chance.choice([1, 3])}]  # fmt: skip
    if chance.random() < 0.3:
        found["discounts"] = [{"provider": "north", "fraction": "12 %"}]
    return found


def limits_of(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"max_devices": chance.choice([3, 5, 8])} if chance.random() < 0.5 else {}
    if chance.random() < 0.3:
        found["sites"] = [{"region": "r1", "power": chance.choice(["0.6 kW", "1.6 kW"])},
                          {"provider": "south", "carbon": "30 kg"}]  # fmt: skip
    found |= {"spend": chance.choice(["$3/h", "$6/h"])} if chance.random() < 0.3 else {}
    return found | ({"power": "3 kW"} if chance.random() < 0.3 else {})


def question(chance: random.Random) -> Scenario:
    """A calendar of six to ten periods."""
    periods = chance.choice(list(HOURS))
    horizon = chance.choice([6, 8, 10]) * HOURS[periods] - chance.choice([0, 0, 5])
    jobs = jobs_of(chance, horizon, HOURS[periods])
    fleets = [fleet("web", qpm=chance.choice([300, 600, 900]))] if chance.random() < 0.6 else []
    return scenario(jobs, fleets, horizon=f"{horizon} h", periods=periods, begin="2026-12-01",
                    hardware=hardware_of(chance), limits=limits_of(chance))  # fmt: skip


@pytest.mark.parametrize("seed", sampled(SEEDS, 4))
def test_random_calendars_are_planned_verified_and_drawn(seed: int) -> None:
    """`api.solve` raises when its own plan is refused; totals, schema and views must hold as well."""
    chance = random.Random(seed)
    there = market(chance)
    document: Document = json.loads(api.solve(question(chance), there).to_json())
    assert document["status"] in ("optimal", "infeasible")
    follow_schema(document)
    assert errors(document, there) == []
    for form in ("table", "md", "csv", "json"):
        assert render_plan(document, form)
    assert render_explanation(document, "table")
    if document["status"] == "optimal":
        spend, total = document["spend"], document["summary"]["cost_microusd"]
        assert spend["committed_microusd"] + spend["variable_microusd"] == total
        assert document["schedule"]["use"] or not document["contracts"]
        _no_change_raises(document, there, chance)


def _places(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, value in pairs for place in _places(value, (*path, key)))]


def _no_change_raises(document: Document, there: Catalog, chance: random.Random) -> None:
    parts = ("contracts", "copies", "schedule", "owned", "spend", "workloads")
    places = [place for part in parts for place in _places(document[part], (part,))]
    for place in chance.sample(places, min(20, len(places))):
        value = chance.choice([0, -1, 10**30, 1e308, float("nan"), float("inf"), "", "x" * 30, None, [], {}, True])
        forged = copy.deepcopy(document)
        node: Any = forged
        for step in place[:-1]:
            node = node[step]
        node[place[-1]] = value
        assert all(isinstance(problem, Problem) for problem in errors(forged, there))
