"""Every comparison of a routing with what replicas carry: one within the bound, at it, and one beyond it.

The fleet is asked for 10 requests/s at its peak; rates are of one replica, in micro-requests/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from planner.checks.fleet_load import routing_findings
from tests.worlds import fleet, scenario

TEN = 10_000_000
Row = tuple[dict[str, Any], list[int]]


def carried(rates: Sequence[int], replicas: int, routed: Sequence[float], **cells: Any) -> Row:
    plain = {"offer": "x", "role": "whole", "price_model": "on_demand", "replicas": replicas}
    return {**plain, "routed_requests_per_s": list(routed), **cells}, list(rates)


def said(rows: Sequence[Row], *, demand: Sequence[int] = (TEN,), spares: int = 0, **more: Any) -> list[str]:
    levels = more.pop("levels", ())
    asked = scenario(serving=[fleet(**more)]).serving[0]
    return [f"{one.reference}: {one.message}" for one in routing_findings(asked, demand, rows, spares, levels)]


@pytest.mark.parametrize(("sent", "found"), [(9.99998, 1), (9.99999, 0), (10.0, 0), (10.00001, 0), (10.00002, 1)])
def test_what_is_sent_is_what_is_asked(sent: float, found: int) -> None:
    told = [f"wrong-load: fleet: {sent:.9g} requests/s of all are planned for {side}, not 10"
            for side in ("prefill", "decode")]  # fmt: skip
    assert said([carried([2 * TEN], 1, [sent])]) == told * found


def test_each_side_of_a_request_is_sent_somewhere() -> None:
    rows = [carried([TEN], 1, [10.0], role="prefill"), carried([TEN], 1, [10.0], role="decode")]
    assert said(rows) == []
    assert [one.partition(":")[0] for one in said(rows[:1])] == ["wrong-load", "demand-unmet"]


@pytest.mark.parametrize(("rate", "found"), [(TEN + 10, 0), (TEN, 0), (TEN - 9, 0), (TEN - 20, 1)])
def test_load_of_replicas(rate: int, found: int) -> None:
    """One replica at its rate, or a millionth above it for the rounding of rates."""
    told = f"demand-unmet: fleet: x has {TEN / rate:.6g} replicas of load on 1 at the target load"
    assert said([carried([rate], 1, [10.0])], demand=[1]) == [told] * found


@pytest.mark.parametrize("routed", [[10.0, 0.0], [-1.0], []])
def test_a_routing_is_of_the_buckets_and_not_negative(routed: list[float]) -> None:
    rows = [carried([2 * TEN], 1, routed), carried([2 * TEN], 1, [10.0 - sum(routed[:1])])]
    if not routed:
        rows[0][0]["role"] = "nobody's"  # else there is no bucket to add up
    assert "wrong-load: fleet: the routing of x does not fit the buckets" in said(rows)


def test_nothing_is_sent_to_what_serves_nothing() -> None:
    rows = [carried([0], 1, [1e-9]), carried([TEN], 1, [10.0])]
    assert said(rows) == ["demand-unmet: fleet: x is sent requests that it cannot serve"]
    assert said([carried([0], 1, [0.0]), carried([TEN], 1, [10.0])]) == []


@pytest.mark.parametrize(("demand", "found"), [(2 * TEN - 1, 0), (2 * TEN, 0), (2 * TEN + 1, 1)])
@pytest.mark.parametrize("spares", [0, 1])
def test_capacity_of_one_bucket_less_its_spares(demand: int, found: int, spares: int) -> None:
    spare = " less 1 spares" if spares else ""
    told = f"demand-unmet: fleet: {2 * TEN} micro-requests/s planned{spare}, the peak is {demand}"
    assert said([carried([TEN], 2 + spares, [10.0])], demand=[demand], spares=spares) == [told] * found


def test_the_largest_replica_is_spare() -> None:
    rows = [carried([TEN], 2, [5.0]), carried([2 * TEN], 1, [5.0])]
    assert said(rows, demand=[2 * TEN], spares=1) == []
    assert len(said(rows, demand=[2 * TEN + 1], spares=1)) == 1


@pytest.mark.parametrize(("demand", "found"), [(TEN - 1, 0), (TEN, 0), (TEN + 1, 1)])
def test_what_runs_at_a_level_carries_it(demand: int, found: int) -> None:
    rows = [carried([TEN], 1, [5.0], level=0), carried([TEN], 1, [5.0], level=1)]
    assert len(said(rows, demand=[2 * TEN], levels=[[demand], [2 * TEN]])) == found
    assert len(said(rows, demand=[2 * TEN], levels=[[TEN], [TEN + demand]])) == found


@pytest.mark.parametrize(("spot", "found"), [(1, 0), (2, 0), (3, 1)])
def test_share_on_spot(spot: int, found: int) -> None:
    """6 steady replicas and some on spot: 2 of 8 are a quarter."""
    rows = [carried([TEN], 6, [9.0]), carried([TEN], spot, [1.0], price_model="spot")]
    told = ["limit-exceeded: fleet: 33.3% of its whole rate is on spot, 1/4 allowed"] * found
    assert said(rows, max_spot_share=0.25) == told


@pytest.mark.parametrize(("steady", "found"), [(2, 0), (1, 1)])
def test_the_share_on_spot_holds_at_every_level(steady: int, found: int) -> None:
    rows = [
        carried([TEN], steady, [4.0], level=0), carried([TEN], 2, [4.0], level=0, price_model="spot"),
        carried([TEN], 9, [2.0], level=1),
    ]  # fmt: skip
    assert len(said(rows, levels=[[1], [TEN]], max_spot_share=0.5)) == found


@pytest.mark.parametrize(("rate", "found"), [(TEN + 1, 0), (TEN, 0), (TEN - 1000, 1)])
@pytest.mark.parametrize("spares", [0, 1])
def test_roles_carry_the_peak_without_their_spares(rate: int, found: int, spares: int) -> None:
    """Prefill at twice the rate that is needed, decode at just the rate."""
    rows = [
        carried([2 * TEN], 1 + spares, [10.0], role="prefill"), carried([rate], 1 + spares, [10.0], role="decode")
    ]  # fmt: skip
    told = [one for one in said(rows, spares=spares) if "at the target load" not in one]
    where = " once x lacks 1 replicas" if spares else ""
    assert told[:1] == [f"demand-unmet: fleet: no routing carries the peak of every bucket{where}"] * found


@pytest.mark.parametrize(("replicas", "found"), [(3, 0), (2, 0), (1, 1)])
def test_each_row_has_as_many_replicas_as_are_spare(replicas: int, found: int) -> None:
    rows = [
        carried([9 * TEN], 9, [5.0], role="prefill"), carried([TEN], replicas, [5.0], role="prefill"),
        carried([9 * TEN], 9, [10.0], role="decode"),
    ]  # fmt: skip
    told = ["demand-unmet: fleet: no routing carries the peak of every bucket once x lacks 2 replicas"] * found
    assert said(rows, spares=2) == told
