"""Joint limits: who runs at the same time, and the rows by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.ledger import Ledger
from planner.candidates.limits import ColumnFacts, Window, concurrent_sets, joint_rows
from planner.candidates.offers import Site, sites_of
from planner.candidates.program import Row
from planner.catalog.model import Catalog
from tests.worlds import catalog, device, job, offer, priced, scenario, shape

INTERVALS = st.lists(
    st.tuples(st.integers(min_value=0, max_value=12), st.integers(min_value=1, max_value=8)), min_size=0, max_size=8
)


def windows(*pairs: tuple[float, float]) -> list[Window]:
    return [Window(start_s=start, end_s=end) for start, end in pairs]


@given(INTERVALS)
def test_concurrent_sets_are_the_maximal_ones(intervals: list[tuple[int, int]]) -> None:
    """Against all subsets: those in which every two overlap and that nothing can join."""
    found = concurrent_sets(windows(*((start, start + length) for start, length in intervals)))

    def meet(i: int, j: int) -> bool:
        (a, m), (b, n) = intervals[i], intervals[j]
        return max(a, b) < min(a + m, b + n)

    everyone = range(len(intervals))
    cliques = [
        frozenset(some)
        for size in range(1, len(intervals) + 1)
        for some in itertools.combinations(everyone, size)
        if all(meet(i, j) for i, j in itertools.combinations(some, 2))
    ]
    maximal = {one for one in cliques if not any(one < other for other in cliques)}
    assert set(found) == maximal
    assert len(found) == len(set(found))


@given(INTERVALS)
def test_every_task_is_in_a_set_and_sets_come_in_order_of_time(intervals: list[tuple[int, int]]) -> None:
    found = concurrent_sets(windows(*((start, start + length) for start, length in intervals)))
    assert set().union(*found) == set(range(len(intervals)))
    last_starts = [max(intervals[task][0] for task in one) for one in found]
    assert last_starts == sorted(last_starts)


def test_a_job_that_begins_when_another_ends_shares_nothing_with_it() -> None:
    first, second, third = windows((0, 10), (10, 20), (9.5, 10.5))
    assert concurrent_sets([first, second]) == [frozenset({0}), frozenset({1})]
    assert concurrent_sets([first, second, third]) == [frozenset({0, 2}), frozenset({1, 2})]


# ---- rows


def world() -> Catalog:
    """Two devices at two providers: a four-device shape, a single, a slice of half a device."""
    return catalog(
        [device("big", tdp_w=700.0), device("small", tdp_w=70.3)],
        [
            shape("north/four", "big", 4),
            shape("south/four", "big", 4),
            shape("north/one", "small"),
            shape("mig/half", "big", kind="mig", compute_share=0.5),
        ],
        [
            offer("north/four", 10.0, "us-1"),
            offer("north/four", 4.0, "us-1", price_model="spot"),
            offer("south/four", 8.0, "eu-1", country="DE"),
            offer("north/one", 0.5, "us-1"),
        ],
    )


def columns(top: dict[str, object], nodes: int = 2, tasks: int = 1) -> tuple[list[ColumnFacts], tuple[Row, ...]]:
    """One column for each site and task, of `nodes` shapes, and the rows over them."""
    jobs = [job(f"job-{task}") for task in range(tasks)]
    asked = priced(scenario(jobs, **top), "on_demand", "spot")
    sites: list[Site] = sites_of(asked, world(), Ledger(workload="x"))
    facts = [
        ColumnFacts(task=task, site=site, nodes=nodes, cost_microusd=1000 * (task + 1), carbon_mg=7)
        for task in range(tasks)
        for site in sites
    ]
    spans = [Window(start_s=0.0, end_s=10.0) for _ in range(tasks)]
    return facts, joint_rows(asked, spans, facts)


def dense(row: Row, facts: list[ColumnFacts]) -> dict[str, int]:
    """Coefficient of each offer, the zeros left out."""
    return {facts[column].site.offer.id: int(value) for column, value in zip(row.columns, row.coefficients)}


def test_without_limits_there_are_no_rows() -> None:
    assert columns({})[1] == ()


def test_devices_are_counted_not_shapes() -> None:
    facts, (row,) = columns({"limits": {"max_devices": 16}})
    assert (row.name, row.bound) == ("limits.max_devices", 16)
    assert dense(row, facts) == {
        "north/four:us-1:on_demand": 8,
        "north/four:us-1:spot": 8,
        "south/four:eu-1:on_demand": 8,
        "north/one:us-1:on_demand": 2,
    }


def test_budget_and_carbon_count_every_task_whatever_its_window() -> None:
    facts, (budget, carbon) = columns({"limits": {"budget": "$0.01", "carbon": "1 kg"}}, tasks=2)
    assert (budget.name, budget.bound) == ("limits.budget", 10_000)
    assert budget.coefficients.tolist() == [1000] * 4 + [2000] * 4
    assert (carbon.name, carbon.bound) == ("limits.carbon", 1_000_000)  # 1 kg in mg
    assert set(carbon.coefficients.tolist()) == {7}
    assert len(carbon.columns) == len(facts)


@pytest.mark.parametrize(("limit", "bound"), [("0.9999 g", 999), ("1 g", 1000), ("1.0009 g", 1000)])
def test_a_carbon_limit_is_rounded_down_to_milligrams(limit: str, bound: int) -> None:
    for top in ({"carbon": limit}, {"sites": [{"provider": "north", "carbon": limit}]}):
        _, (row,) = columns({"limits": top})
        assert row.bound == bound


def test_power_is_in_milliwatts_rounded_up() -> None:
    facts, (row,) = columns({"limits": {"power": "6 kW"}})
    assert (row.name, row.bound) == ("limits.power", 6_000_000)
    assert dense(row, facts)["north/four:us-1:on_demand"] == 2 * 4 * 700_000
    assert dense(row, facts)["north/one:us-1:on_demand"] == 2 * 70_300


def test_power_of_a_site_counts_there_alone_and_capitals_do_not_matter() -> None:
    for place in ({"provider": "North"}, {"provider": "NORTH", "region": "US-1"}):
        facts, (row,) = columns({"limits": {"sites": [{**place, "power": "6 kW"}]}})
        assert (row.name, row.bound) == ("limits.sites[0].power", 6_000_000)
        assert set(dense(row, facts)) == set(NORTH)


def test_spend_is_the_price_of_the_shapes() -> None:
    facts, (row,) = columns({"limits": {"spend": "$25/h"}})
    assert (row.name, row.bound) == ("limits.spend", 25_000_000)
    assert dense(row, facts)["north/four:us-1:on_demand"] == 20_000_000
    assert dense(row, facts)["north/four:us-1:spot"] == 8_000_000


NORTH = {"north/four:us-1:on_demand": 8, "north/four:us-1:spot": 8, "north/one:us-1:on_demand": 2}
BIG = {"north/four:us-1:on_demand": 8, "north/four:us-1:spot": 8, "south/four:eu-1:on_demand": 8}


@pytest.mark.parametrize(
    ("quota", "counted"),
    [
        ({"device": "big"}, BIG),
        ({"provider": "north"}, NORTH),
        ({"provider": "north", "device": "big", "price_model": "spot"}, {"north/four:us-1:spot": 8}),
        ({"region": "eu-*"}, {"south/four:eu-1:on_demand": 8}),
        ({"region": "de"}, {"south/four:eu-1:on_demand": 8}),
        ({"provider": "nor*"}, NORTH),
        ({"provider": "North"}, NORTH),
    ],
)
def test_quotas_count_what_they_name(quota: dict[str, str], counted: dict[str, int]) -> None:
    facts, (row,) = columns({"hardware": {"quotas": [{**quota, "max_devices": 24}]}})
    assert (row.name, row.bound) == ("hardware.quotas[0]", 24)
    assert dense(row, facts) == counted


def test_a_quota_on_shapes_counts_shapes() -> None:
    facts, rows = columns({"hardware": {"quotas": [{"device": "big", "max_shapes": 5, "max_devices": 9}]}})
    by_devices, by_shapes = rows
    assert (by_devices.bound, set(by_devices.coefficients.tolist())) == (9, {8})
    assert (by_shapes.bound, set(by_shapes.coefficients.tolist())) == (5, {2})
    assert len(facts) == 4


def test_a_quota_that_names_nothing_rented_makes_no_row() -> None:
    assert columns({"hardware": {"quotas": [{"provider": "west", "max_devices": 1}]}})[1] == ()


def test_owned_shapes_have_a_bound_of_their_own_and_no_quota() -> None:
    owned = {"shape": "mig/half", "count": 3, "price": "$0.10/h"}
    facts, rows = columns({"hardware": {"owned": [owned], "quotas": [{"device": "big", "max_devices": 24}]}})
    quota, mine = rows
    assert "owned:0:mig/half" not in dense(quota, facts)
    assert (mine.name, mine.bound) == ("hardware.owned[0]", 3)
    assert dense(mine, facts) == {"owned:0:mig/half": 2}


def test_a_slice_of_a_device_draws_its_share() -> None:
    owned = {"shape": "mig/half", "count": 3, "price": "$0.10/h"}
    facts, (power, _) = columns({"limits": {"power": "6 kW"}, "hardware": {"owned": [owned]}})
    assert dense(power, facts)["owned:0:mig/half"] == 2 * 350_000


def test_peaks_have_one_row_for_each_set_that_runs_together() -> None:
    asked = scenario([job("a"), job("b"), job("c")], limits={"max_devices": 8, "budget": "$1"})
    sites = sites_of(asked, world(), Ledger(workload="x"))
    facts = [ColumnFacts(task=t, site=sites[0], nodes=1, cost_microusd=1, carbon_mg=0) for t in range(3)]
    rows = joint_rows(asked, windows((0, 10), (5, 15), (10, 20)), facts)
    assert [(row.name, row.columns.tolist()) for row in rows] == [
        ("limits.budget", [0, 1, 2]),
        ("limits.max_devices@0", [0, 1]),
        ("limits.max_devices@1", [1, 2]),
    ]
