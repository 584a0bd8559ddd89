"""Every comparison of starts, ends, terms and pools with the calendar: one within its bound, at it, one beyond it.

A week of days; 1e-9 of a day is rounding, here tried with a tenth and with ten times of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest

from planner.checks import bought_ahead, calendar
from planner.checks import uncertain_cases as uncertain
from planner.checks.calendar import owned_nodes
from planner.checks.facts import OfferFacts
from planner.checks.findings import Finding
from planner.checks.limits import Limit
from planner.scenario.schema import Scenario
from tests.worlds import device, job, offer, scenario, shape

DAY, SLIP, FAR = 24.0, 24e-10, 24e-8
GRID = calendar.Grid(period_hours=DAY, periods=7, horizon_hours=7 * DAY)
FACTS = OfferFacts(offer(), shape(), device(), None, None)


def told(findings: Iterable[Finding]) -> list[str]:
    return [one.reference for one in findings]


def week(*jobs: dict[str, Any], **top: Any) -> Scenario:
    return scenario(jobs or [job(deadline="7 days")], horizon="7 days", periods="1 day", **top)


@pytest.mark.parametrize(("off", "period"), [(0.0, 2), (SLIP, 2), (-SLIP, 2), (1e-6, None), (-1e-6, None)])
def test_a_moment_is_the_edge_of_a_period(off: float, period: int | None) -> None:
    assert GRID.at(2 * DAY + off) == period


@pytest.mark.parametrize(("hours", "period"), [(0.0, 0), (6 * DAY, 6), (7 * DAY, None), (-DAY, None)])
def test_periods_begin_within_the_calendar(hours: float, period: int | None) -> None:
    assert GRID.at(hours) == period


@pytest.mark.parametrize(
    ("end", "stop"), [(2 * DAY, 3), (3 * DAY, 3), (3 * DAY + SLIP, 3), (3 * DAY + FAR, 4), (9 * DAY, 7)]
)
def test_what_begins_on_the_third_day_touches_a_day_or_more(end: float, stop: int) -> None:
    assert GRID.touched(2, end) == stop


def started(start: float, held: float, hours: float = 12.0, **asked: Any) -> list[str]:
    plan = week(job(**{"deadline": "3 days", "start": "1 day", **asked}))
    row = {"start_hours": start, "end_hours": start + hours, "hours": hours, "held_hours": held, "runs": None}
    return told(calendar._started(plan.training[0], row, FACTS, plan, GRID))


@pytest.mark.parametrize(
    ("start", "found"), [(0.0, ["too-early"]), (DAY, []), (2 * DAY, []), (1.5 * DAY, ["wrong-start"])]
)
def test_a_job_starts_with_a_period_and_not_too_early(start: float, found: list[str]) -> None:
    assert started(start, 12.0) == found


@pytest.mark.parametrize(("held", "found"), [(2 * DAY, 0), (3 * DAY, 0), (3 * DAY + SLIP, 0), (3 * DAY + 1e-5, 1)])
def test_a_job_is_done_by_its_deadline_with_its_margin(held: float, found: int) -> None:
    assert started(DAY, held) == ["late"] * found


def running(day: int, hours: float = DAY) -> dict[str, Any]:
    return {"jobs": 1, "start_hours": day * DAY, "end_hours": day * DAY + hours}


@pytest.mark.parametrize(("ran", "found"), [(4, 1), (5, 0), (6, 0)])
@pytest.mark.parametrize("hours", [4.5 * 23, 5 * 23.0, 5 * 23 + 1e-9])
def test_a_job_that_pauses_runs_as_long_as_it_takes(hours: float, ran: int, found: int) -> None:
    """An hour of each running day goes into its restart."""
    plan = week(job(schedule="elastic", deadline="7 days"))
    row = {"runs": [running(day) for day in range(ran)], "jobs": 1}
    assert told(calendar.running_findings(plan.training[0], row, FACTS, plan, hours, 3600.0)) == ["wrong-time"] * found


@pytest.mark.parametrize(("hours", "found"), [(6.0, 0), (5.0, 0), (5.0 - SLIP, 0), (5.0 - FAR, 1)])
def test_the_last_part_of_a_job_that_pauses_is_done_where_its_deadline_cuts_a_period(hours: float, found: int) -> None:
    """Two days of 23 hours, and after a restart of one hour the last four."""
    plan = week(job(schedule="elastic", deadline=f"{4 * DAY + hours:.12f} h"))
    row = {"runs": [running(0), running(2), running(4, hours)], "jobs": 1}
    findings = calendar.running_findings(plan.training[0], row, FACTS, plan, 50.0, 3600.0)
    assert told(findings) == ["late"] * found
    cells = {**row, "start_hours": 0.0, "end_hours": 4 * DAY + hours}
    assert told(calendar._pausing(plan.training[0], cells, GRID)) == []
    whole = {**row, "runs": [running(0), running(2), running(4)], "start_hours": 0.0, "end_hours": 5 * DAY}
    assert told(calendar._pausing(plan.training[0], whole, GRID)) == ["wrong-start", "late"]


def test_restarts_that_take_the_whole_period_leave_nothing() -> None:
    plan = week(job(schedule="elastic", deadline="7 days"))
    row = {"runs": [{"jobs": 1}] * 7, "jobs": 1}
    findings = calendar.running_findings(plan.training[0], row, FACTS, plan, 1.0, 24 * 3600.0)
    assert told(findings) == ["wrong-time"]


@pytest.mark.parametrize(
    ("held", "start", "found"),
    [
        (DAY, DAY, 0),
        (DAY + SLIP, DAY, 0),
        (25.0, DAY, 1),
        (25.0, 47.9, 1),
        (25.0, 2 * DAY - SLIP, 0),
        (25.0, 2 * DAY, 0),
    ],
)
def test_what_comes_after_waits_for_whole_periods(held: float, start: float, found: int) -> None:
    plan = week(job("a", deadline="7 days"), job("b", deadline="7 days", after=["a"]))
    first = {"start_hours": 0.0, "held_hours": held, "runs": None, "end_hours": held}
    then = {"start_hours": start, "held_hours": 1.0, "runs": None, "end_hours": start + 1}
    rows = [{"name": "a", "allocations": [first]}, {"name": "b", "allocations": [then]}]
    assert told(calendar.order_findings({"workloads": rows}, plan)) == ["too-early"] * found


# ---- contracts


@pytest.mark.parametrize(
    ("hours", "sold"),
    [
        (23.0, False),
        (24.0, True),
        (24.0 + 1e-9, True),
        (36.0, False),
        (48.0, True),
        (72.0, True),
        (73.0, False),
        (96.0, False),
    ],
)
def test_blocks_are_sold_in_whole_steps_between_their_ends(hours: float, sold: bool) -> None:
    block = offer(price_model="block", min_term_hours=24.0, max_term_hours=72.0, term_step_hours=24.0)
    assert bought_ahead._sold(block, hours) == sold


@pytest.mark.parametrize(("hours", "sold"), [(8759.0, False), (8760.0, True), (8761.0, False)])
def test_a_commitment_has_one_term(hours: float, sold: bool) -> None:
    assert bought_ahead._sold(offer(price_model="commitment_1y"), hours) == sold


def held(*spans: tuple[int, int, int], model: str = "commitment_1y", most: int | None = 3) -> list[str]:
    """Contracts of (first period, end, nodes) of one offer."""
    sold = offer(price_model=model, max_shapes=most)
    rows = [{"offer": sold.id, "first_period": a, "end_period": b, "count": n} for a, b, n in spans]
    return told(bought_ahead._counts(rows, {sold.id: sold}, GRID))


@pytest.mark.parametrize(("count", "found"), [(2, 0), (3, 0), (4, 1)])
def test_no_contract_is_larger_than_what_is_sold(count: int, found: int) -> None:
    assert held((0, 1, count), model="block") == ["limit-exceeded"] * found
    assert held((0, 1, count), most=None) == []


@pytest.mark.parametrize(("second", "found"), [((2, 4, 2), 0), ((1, 3, 2), 1), ((1, 3, 1), 0)])
def test_no_more_is_held_at_once_than_is_sold(second: tuple[int, int, int], found: int) -> None:
    assert held((0, 2, 2), second) == ["limit-exceeded"] * found
    assert held((0, 2, 2), second, model="block") == []  # each block by itself


@pytest.mark.parametrize(
    ("start", "term", "prorated", "fee"), [(0.0, 168.0, False, 168), (0.0, 336.0, True, 168), (24.0, 336.0, False, 336)]
)
def test_a_fee_counts_whole_but_for_what_begins_with_the_plan(
    start: float, term: float, prorated: bool, fee: int
) -> None:
    sold = offer(price_model="calendar", min_term_hours=24.0, max_term_hours=400.0, term_step_hours=24.0)
    plan = week(hardware={"beyond_horizon": "prorate"})
    within = min(term, 168.0 - start)
    stated = {
        "term_hours": term, "start_hours": start, "count": 2, "first_period": int(start // DAY),
        "end_hours": start + within, "end_period": 7, "fee_microusd": int(term) * 10**6, "prorated": prorated,
        "full_microusd": 2 * int(term) * 10**6, "prorated_microusd": 2 * int(within) * 10**6,
        "cost_microusd": 2 * fee * 10**6,
    }  # fmt: skip
    assert told(bought_ahead._term(stated, sold, plan, GRID, "x")) == []
    wrong = {**stated, "cost_microusd": stated["cost_microusd"] - 1}
    assert told(bought_ahead._term(wrong, sold, plan, GRID, "x")) == ["wrong-fee"]


@pytest.mark.parametrize(
    ("window", "nodes"),
    [
        ({"from": "2026-12-02"}, [0, 2, 2, 2, 2, 2, 2]),
        ({"from": "2026-12-02 00:01"}, [0, 0, 2, 2, 2, 2, 2]),
        ({"until": "2026-12-03"}, [2, 2, 0, 0, 0, 0, 0]),
        ({"until": "2026-12-02 23:59"}, [2, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_owned_machines_are_there_for_whole_periods(window: dict[str, str], nodes: list[int]) -> None:
    owned = [{"shape": "north/one", "count": 2, "price": "$1/h", **window}]
    plan = week(begin="2026-12-01", hardware={"owned": owned})
    assert owned_nodes(plan, plan.hardware.owned[0], GRID.edges_s()) == nodes


# ---- limits that bind, and cases


@pytest.mark.parametrize(
    ("bound", "amounts", "binding"),
    [
        (10, [(8, 4)], False),  # 2 are left, and a shape takes 2
        (10, [(9, 4)], True),
        (11, [(9, 3)], True),  # 2 are left, and a shape takes 3
        (12, [(9, 3)], False),
        (9, [(9, 3)], True),
        (10, [], False),
        (0, [], True),
    ],
)
def test_a_limit_binds_when_one_shape_more_is_too_much(
    bound: int, amounts: list[tuple[float, int]], binding: bool
) -> None:
    assert Limit("x", "x", "devices", 1.0, bound, amounts).binding == binding


@pytest.mark.parametrize(
    ("used", "slack", "found"), [(9, 0.0, 0), (10, 0.0, 0), (11, 0.0, 1), (10.5, 0.5, 0), (10.6, 0.5, 1)]
)
def test_a_limit_is_passed_by_more_than_its_slack(used: float, slack: float, found: int) -> None:
    assert told(Limit("x", "x", "kg", 1.0, 10, [(used, 1)], slack).findings()) == ["limit-exceeded"] * found


@pytest.mark.parametrize(
    ("expected", "bound", "found"),
    [
        (30.0, 30.0, []),
        (30.0, 29.0, []),
        (30.0, 30.0 * (1 + 2e-9), ["wrong-proof"]),
        (30.0 * (1 + 5e-10), 29.0, []),
        (30.0 * (1 + 2e-9), 29.0, ["wrong-total"]),
        (None, None, ["wrong-total"]),
    ],
)
def test_an_expected_cost_is_the_mean_and_no_less_than_its_bound(
    expected: float | None, bound: float | None, found: list[str]
) -> None:
    """$20 with three parts, $60 with one."""
    cases = [
        {
            "name": f"case {usd}",
            "probability": probability,
            "cost_microusd": usd * 10**6,
            **dict.fromkeys(("cost_usd", "known_beforehand_usd", "contracts_of_written_usd"), float(usd)),
        }
        for usd, probability in ((20, 0.75), (60, 0.25))
    ]
    values = dict.fromkeys(("perfect_information_usd", "stochastic_solution_usd"), 0.0)
    section = {
        "cases": cases, "expected_usd": expected, "bound_usd": bound, "risk": None, "at_risk_usd": 60.0, **values,
    }  # fmt: skip
    assert told(uncertain._figures(json.loads(json.dumps(section)), scenario([job()]))) == found
    assert Fraction(3, 4) * 20 + Fraction(1, 4) * 60 == 30
