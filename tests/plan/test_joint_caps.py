"""What an offer is sold up to binds all workloads together: random scenarios against a count of our own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.answers import Plan
from planner.catalog.model import Catalog, Offer
from planner.scenario.schema import Scenario
from tests import worlds
from tests.tiers import cases
from tests.verified import errors

HORIZON_H = 48.0
PRICES = (0.5, 1.0, 1.0, 1.5)


def world(seed: int) -> tuple[Scenario, Catalog]:
    """Jobs and fleets that would all like the same few cheap offers; one beside them is dear and never sold out."""
    rng = random.Random(seed)
    shapes = [worlds.shape(f"north/{name}", devices=size) for name, size in (("one", 1), ("two", 2), ("four", 4))]
    spot = rng.random() < 0.5
    offers = [
        worlds.offer(
            shape.id,
            shape.devices * rng.choice(PRICES) * (0.6 if model == "spot" else 1.0),
            region,
            price_model=model,
            max_shapes=rng.choice([None, 1, 1, 2, 3, 5]),
        )
        for shape in shapes
        for region in ("r1", "r2")
        for model in ("on_demand", "spot")
    ]
    catalog = worlds.catalog(shapes=shapes, offers=[*offers, worlds.offer("north/one", 50.0, "r9")])
    jobs = [
        worlds.job(
            f"job{number}",
            count=rng.choice([1, 1, 2, 3]),
            deadline=f"{rng.choice([1500, 3000, 6000, 12000])} s",
            start=f"{rng.choice([0, 0, 1])} h",
        )
        for number in range(rng.randint(1, 3))
    ]
    fleets = [
        worlds.fleet(
            f"fleet{number}",
            qpm=rng.choice([300, 600, 1500, 2500]),
            spare_replicas=rng.choice([0, 0, 1, 2]),
            **({"max_spot_share": 0.5} if spot and rng.random() < 0.5 else {}),
        )
        for number in range(rng.randint(0, 2))
    ]
    hardware: dict[str, Any] = {"pricing": ["on_demand"]}
    if spot:
        hardware = {"pricing": ["on_demand", "spot"], "spot": {"interruptions": "0.01 /h"}}
    if rng.random() < 0.3:
        hardware["owned"] = [{"shape": "north/one", "count": rng.randint(1, 4), "price": "$0.1/h"}]
    periods = {"periods": "1 h"} if rng.random() < 0.2 else {}
    return worlds.scenario(jobs, fleets, hardware=hardware, horizon=f"{HORIZON_H} h", **periods), catalog


def held(document: dict[str, Any], scenario: Scenario) -> Iterator[tuple[str, float, float, int]]:
    """Offer, begin and end in hours, and shapes of every row: of a job its window, with a calendar its run."""
    windows = {job.name: (job.start_s / 3600, (job.start_s + job.deadline_s) / 3600) for job in scenario.training}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            begin, end = windows.get(workload["name"], (0.0, HORIZON_H))
            if scenario.scheduled and workload["name"] in windows:
                begin, end = row["start_hours"], row["start_hours"] + row["held_hours"]
            if "shared" not in row:
                yield row["offer"], begin, end, row["count"]
    for nodes in document.get("shared_nodes", []):
        yield nodes["offer"], 0.0, HORIZON_H, nodes["count"]


def oversold(document: dict[str, Any], scenario: Scenario, catalog: Catalog) -> set[str]:
    """Offers of which more is held at some moment than there is."""
    most = {offer.id: offer.max_shapes for offer in catalog.offers if offer.max_shapes is not None}
    for index, owned in enumerate(scenario.hardware.owned):
        most[f"owned:{index}:{owned.shape}"] = owned.count
    rows, too_much = list(held(document, scenario)), set()
    for moment in {begin for _, begin, _, _ in rows}:
        sold: Counter[str] = Counter()
        for offer, begin, end, shapes in rows:
            sold[offer] += shapes if begin <= moment < end else 0
        too_much |= {offer for offer, shapes in sold.items() if shapes > most.get(offer, shapes)}
    return too_much


def without_caps(catalog: Catalog) -> Catalog:
    return replace(catalog, offers=tuple(replace(offer, max_shapes=None) for offer in catalog.offers))


def solved(scenario: Scenario, catalog: Catalog) -> Plan:
    return api.solve(scenario, catalog)


def test_no_offer_is_oversold_and_verify_finds_one_that_is() -> None:
    found = Counter[str]()
    for seed in range(cases(12, 500)):
        scenario, catalog = world(seed)
        plan, free = solved(scenario, catalog), solved(scenario, without_caps(catalog))
        assert plan.status == free.status == "optimal", seed
        assert not oversold(plan.document, scenario, catalog), seed
        assert not errors(plan.document, catalog), seed
        cost, least = (one.document["summary"]["cost_microusd"] or 0 for one in (plan, free))
        assert least <= cost * (1 + 1e-6) + 1e4, seed
        too_much = oversold(free.document, scenario, catalog)
        told = [problem for problem in errors(free.document, catalog) if problem.reference == "limit-exceeded"]
        if too_much:  # a forged plan: that of a catalog without the caps
            assert {offer for offer in too_much if any(offer in str(one) for one in told)} == too_much, seed
        elif not told:
            assert cost <= least * (1 + 1e-6) + 1e4, seed
        found["oversold" if too_much else "within"] += 1
    assert min(found["oversold"], found["within"]) >= 2  # both happen


def two_jobs(**changes: Any) -> list[dict[str, Any]]:
    """Each of a device for its whole window."""
    return [worlds.job("a", **changes), worlds.job("b", **changes)]


def few(most: int, dollars: float = 1.0) -> Offer:
    return worlds.offer("north/one", dollars, max_shapes=most)


def offers_used(plan: Plan) -> Counter[str]:
    rows = [row for workload in plan.document["workloads"] for row in workload["allocations"]]
    return sum((Counter({row["offer"]: row["count"]}) for row in rows), Counter())


@pytest.mark.parametrize("calendar", [{}, {"periods": "12 h"}])
def test_what_two_jobs_hold_together(calendar: dict[str, Any]) -> None:
    catalog = worlds.catalog(offers=[few(1), worlds.offer("north/one", 5.0, "r2")])
    plan = api.solve(worlds.scenario(two_jobs(), **({"horizon": "12 h", **calendar} if calendar else {})), catalog)
    assert offers_used(plan)["north/one:r1:on_demand"] == 1
    (limit,) = plan.document["limits"]
    assert (limit["used"], limit["bound"], limit["binding"]) == (1.0, 1.0, True)
    assert limit["label"].startswith("at most 1 shapes of north/one:r1:on_demand")


def test_jobs_one_after_another_share_an_offer() -> None:
    jobs = [worlds.job("a"), worlds.job("b", start="2 h")]
    catalog = worlds.catalog(offers=[few(1), worlds.offer("north/one", 5.0, "r2")])
    assert offers_used(api.solve(worlds.scenario(jobs), catalog)) == {"north/one:r1:on_demand": 2}


def test_the_cap_stands_in_the_conflict_and_is_no_way_out() -> None:
    plan = api.solve(worlds.scenario(two_jobs()), worlds.catalog(offers=[few(1)]))
    assert plan.status == "infeasible"
    told = plan.document["infeasible"]
    assert told is not None
    assert {one["name"] for one in told["conflict"]} >= {"a", "b", "catalog.offers[north/one:r1:on_demand].max_shapes"}
    assert "catalog.offers" not in str([way["limit"] for way in told["ways_out"]])
    assert {way["setting"] for way in told["ways_out"]} == set()


def test_a_table_of_limits_without_the_cap_is_found() -> None:
    catalog = worlds.catalog(offers=[few(2)])
    plan = api.solve(worlds.scenario(two_jobs()), catalog)
    document = plan.document
    document["limits"] = []
    assert "wrong-limit" in {problem.reference for problem in errors(dict(document), catalog)}
