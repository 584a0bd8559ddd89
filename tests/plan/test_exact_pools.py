"""What the verifier counts again of pools, copies of data, tokens and deadlines: at an edge and beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Transfer
from planner.checks.allocation import AllocationCheck
from planner.checks.bought_ahead import copy_cells, data_findings, kept_hours
from planner.checks.fleet_load import load_cells, price_cells
from planner.checks.pools import Pool, pool_cells, rent_microusd_per_hour, shares_of, use_cells
from tests.worlds import SEEN, catalog, fleet, job, offer, scenario, shape

WEEK_H = Fraction(168)


def pool(
    used: list[int], reserved: list[int], on_demand: list[int] | None = None, rent: int | None = 2_000_000
) -> Pool:
    return Pool(
        name="p", kind="reserved", place={}, hours=[WEEK_H] * len(used), reserved=reserved,
        on_demand=on_demand or [0] * len(used), used=used, rent_microusd_per_hour=rent,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("used", "full", "beyond"), [([3, 3, 3, 3], 1.0, 0.0), ([2, 3, 4, 5], 0.75, 0.5), ([0, 2, 2, 2], 0.0, 0.0)]
)
def test_the_last_node_and_the_next(used: list[int], full: float, beyond: float) -> None:
    cells = use_cells(pool(used, [3] * 4), "block", 3, range(4), 1)
    assert (cells["last_node_share"], cells["next_node_share"]) == (full, beyond)


def test_what_is_used_of_a_contract_is_no_more_than_it_holds() -> None:
    cells = use_cells(pool([3, 1, 5, 0], [3] * 4), "block", 3, range(4), 1_000_000_000)
    node_weeks = 7
    assert cells["used_share"] == node_weeks / 12
    assert cells["on_demand_microusd"] == node_weeks * 168 * 2_000_000
    assert cells["saved_microusd"] == node_weeks * 168 * 2_000_000 - 1_000_000_000
    assert cells["break_even_share"] == pytest.approx(1_000_000_000 / (12 * 168 * 2_000_000))
    unknown = use_cells(pool([3, 1, 5, 0], [3] * 4, rent=None), "block", 3, range(4), 1)
    assert (unknown["on_demand_microusd"], unknown["saved_microusd"], unknown["break_even_share"]) == (None, None, None)


def test_nodes_on_demand_are_used_above_what_is_reserved() -> None:
    cells = use_cells(pool([1, 2, 3, 0], [1] * 4, [0, 2, 2, 0]), "on_demand", 2, range(1, 3), 1)
    assert (cells["used_share"], cells["last_node_share"]) == (0.75, None)


def test_a_pool_is_used_up_to_what_is_reserved() -> None:
    assert pool_cells(pool([1, 2, 9, 0], [2, 2, 2, 2]))["used_share"] == 5 / 8
    assert pool_cells(pool([1], [0]))["used_share"] is None


def test_shares_of_a_pool_add_up_to_its_cost() -> None:
    rows = shares_of(pool([3], [3]), {"a": [1], "b": [1], "c": [1], "d": [0]}, 100)
    assert [row["cost_microusd"] for row in rows] == [33, 33, 34, 0]
    assert [row["node_hours"] for row in rows] == [168.0, 168.0, 168.0, 0.0]
    assert [row["cost_microusd"] for row in shares_of(pool([0], [3]), {"a": [0]}, 100)] == [0]


def test_a_node_on_demand_costs_the_least_of_its_place() -> None:
    offers = [
        offer(dollars=3.0), offer(dollars=2.0, id="b"), offer(dollars=1.0, id="c", quality="suspect"),
        offer(dollars=1.0, price_model="spot"), offer(dollars=1.0, region="r2"), offer(dollars=2.5, id="z", zone="z"),
    ]  # fmt: skip
    world = catalog(offers=offers)
    place = {"provider": "north", "region": "r1", "shape": "north/one", "zone": ""}
    assert rent_microusd_per_hour(world, place) == 2_000_000
    assert rent_microusd_per_hour(world, {**place, "zone": "z"}) == 2_500_000
    assert rent_microusd_per_hour(world, {**place, "region": "r3"}) is None


def test_tokens_cost_at_the_mean_load_and_when_replicas_are_full() -> None:
    """10 requests/s of 100 tokens at a peak of twice the mean, on two replicas that each carry 10."""
    asked = scenario(serving=[fleet(peak_factor=2, qpm=300)]).serving[0]
    loads = load_cells(asked, [10.0], [10.0], 2)
    assert (loads["load_at_peak"], loads["replica_requests_per_s"], loads["mean_output_tokens"]) == (0.5, 10.0, 100.0)
    prices = price_cells(asked, loads, 3_600_000, 2, 0.5, 1.0)
    assert prices["usd_per_million_output_tokens_mean"] == pytest.approx(2.0)
    assert prices["usd_per_million_output_tokens_full"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("rates", "sent", "each"),
    [
        ([10.0, 5.0], [1.0, 1.0], 1 / 0.15),
        ([10.0, 0.0], [1.0, 0.0], 10.0),
        ([10.0, 0.0], [1.0, 1.0], 0.0),
        ([10.0, 5.0], [0.0, 0.0], 1 / 0.15),
    ],
)
def test_a_replica_carries_its_own_mix(rates: list[float], sent: list[float], each: float, tmp_path: Any) -> None:
    (tmp_path / "h.csv").write_text("input_bucket,output_bucket,fraction\n512,128,0.5\n4096,128,0.5\n")
    one = {
        key: value for key, value in fleet(histogram="h.csv").items() if key not in ("input_tokens", "output_tokens")
    }
    (tmp_path / "s.yaml").write_text(json.dumps({"schema": "plan/v1", "name": "t", "serving": [one]}))
    asked = api.load_scenario(tmp_path / "s.yaml").serving[0]
    assert load_cells(asked, rates, sent, 1)["replica_requests_per_s"] == pytest.approx(each)


# ---- copies of data


def reading(**data: Any) -> dict[str, Any]:
    return {"size": "1 TB", "at": "south/r9", "egress": "$0.02/GB", "storage": "$0.01/GB-month", **data}


@pytest.mark.parametrize(("copies", "found"), [([], 1), (["r1"], 0), (["r1", "r1"], 2), (["r1", "r2"], 1)])
def test_data_are_copied_once_to_where_they_are_read(copies: list[str], found: int) -> None:
    asked = scenario([job(deadline="730 h", data=reading())])
    data = asked.training[0].data
    assert data is not None
    cells = copy_cells(data, 730.0, "north", catalog())
    assert cells is not None
    stated = [{"data": "job:data", "provider": "north", "region": region, **cells} for region in copies]
    row = {"offer": "north/one:r1:on_demand", "price_model": "on_demand", "provider": "north", "region": "r1"}
    document = {"workloads": [{"name": "job", "allocations": [row]}], "copies": stated}
    problems = list(data_findings(document, asked, catalog()))
    assert [one.reference for one in problems] == ["wrong-copy"] * found


def test_a_copy_costs_its_move_and_its_months() -> None:
    """A terabyte for a month and a half: $20 to send, $15 to keep."""
    jobs = [job("a", deadline="1000 h", data=reading(name="web"))]
    jobs += [job("b", start="95 h", deadline="1000 h", data=reading(name="web"))]
    asked = scenario(jobs, horizon="1095 h", periods="5 h")
    hours = kept_hours(list(asked.training))
    assert hours == 1095.0
    data = asked.training[0].data
    assert data is not None
    cells = copy_cells(data, hours, "north", catalog())
    assert cells is not None
    parts = tuple(cells[f"{name}_microusd"] for name in ("egress", "storage", "cost"))
    assert parts == (20_000_000, 15_000_000, 35_000_000)


def test_a_copy_of_unknown_price_has_none() -> None:
    asked = scenario([job(data={"size": "1 TB", "at": "south/r9"})]).training[0].data
    assert asked is not None
    both = {
        key: Transfer(provider=key[0], kind=key[1], tiers=((0.0, 0.02),), provenance=SEEN)
        for key in (("south", "egress"), ("north", "storage"))
    }
    for missing in both:
        less = {key: transfer for key, transfer in both.items() if key != missing}
        assert copy_cells(asked, 730.0, "north", replace(catalog(), transfers=less)) is None
    cells = copy_cells(asked, 730.0, "north", replace(catalog(), transfers=both))
    assert cells is not None
    assert cells["cost_microusd"] == 40_000_000


# ---- deadlines


@pytest.mark.parametrize(("deadline", "late"), [("6001 s", 0), ("6000 s", 0), ("5999.999 s", 1)])
def test_a_job_is_done_by_its_deadline(deadline: str, late: int) -> None:
    """A coarse job takes 6000 s on the one device that its plan gives it."""
    world = catalog(shapes=[shape()])
    plan = api.solve(scenario([job(deadline="6000 s")], limits={"max_devices": 1}), world).document
    asked = scenario([job(deadline=deadline)])
    (workload,) = plan["workloads"]
    check = AllocationCheck(scenario=asked, catalog=world, arch=api.load_model(asked.training[0].model))
    found = [one.reference for one in check.workload(asked.training[0], dict(workload))]
    assert found.count("late") == late
