"""Windows, periods, orders and probabilities of a scenario: what may just be, and what may just not."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import InputError
from planner.scenario.checks import MAX_PERIODS, first_period
from tests.worlds import job, scenario

HOUR_S = 3600.0


def mistakes(*jobs: dict[str, Any], **top: Any) -> list[str]:
    """References of what is wrong, none if nothing is."""
    try:
        scenario(jobs or [job(deadline="1 h")], **top)
    except InputError as error:
        return [problem.reference for problem in error.problems]
    return []


@pytest.mark.parametrize(("periods", "found"), [(1, 0), (MAX_PERIODS - 1, 0), (MAX_PERIODS, 0), (MAX_PERIODS + 1, 1)])
def test_periods_of_a_calendar(periods: int, found: int) -> None:
    assert mistakes(horizon=f"{periods} h", periods="1 h") == ["out-of-range"] * found


@pytest.mark.parametrize(("length", "found"), [("9 h", 0), ("10 h", 0), ("10.001 h", 1)])
def test_a_period_is_no_longer_than_the_horizon(length: str, found: int) -> None:
    assert mistakes(horizon="10 h", periods=length) == ["out-of-range"] * found


@pytest.mark.parametrize(("deadline", "found"), [("9 h", 0), ("10 h", 0), ("10.001 h", 1)])
def test_deadlines_lie_within_the_calendar(deadline: str, found: int) -> None:
    assert mistakes(job(deadline=deadline), horizon="10 h", periods="1 h") == ["out-of-range"] * found


@pytest.mark.parametrize(
    ("start", "deadline", "found"), [("2 h", "1 h", 0), ("90 min", "40 min", 0), ("90 min", "30 min", 1)]
)
def test_a_period_begins_within_a_window(start: str, deadline: str, found: int) -> None:
    one = job(start=start, deadline=deadline)
    assert mistakes(one, horizon="10 h", periods="1 h") == ["no-period"] * found


@pytest.mark.parametrize(("deadline", "found"), [("91 min", 0), ("31 min", 0), ("30 min", 1)])
def test_a_job_that_may_pause_needs_no_whole_period(deadline: str, found: int) -> None:
    one = job(start="30 min", deadline=deadline, schedule="elastic")
    assert mistakes(one, horizon="10 h", periods="1 h") == ["no-period"] * found


@pytest.mark.parametrize(
    ("start_s", "period"), [(0.0, 0), (1.0, 1), (HOUR_S, 1), (HOUR_S + 1e-7, 1), (HOUR_S + 1e-3, 2), (HOUR_S - 1e-3, 1)]
)
def test_the_first_period_after_a_moment(start_s: float, period: int) -> None:
    assert first_period(start_s, HOUR_S) == period


@pytest.mark.parametrize(("first", "second", "found"), [(1, 1, 0), (2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_an_order_stands_between_single_jobs(first: int, second: int, found: int) -> None:
    jobs = [job("a", deadline="1 h", count=first), job("b", deadline="5 h", count=second, after=["a"])]
    assert mistakes(*jobs, horizon="10 h", periods="1 h") == ["conflict"] * found


@pytest.mark.parametrize(
    ("shares", "found"), [(["99.99 %"], 0), (["100 %"], 1), (["50 %", "49.99 %"], 0), (["50 %", "50 %"], 1)]
)
def test_something_is_left_to_the_scenario_as_written(shares: list[str], found: int) -> None:
    cases = [
        {"name": f"c{n}", "probability": share, "set": {"limits.max_devices": 9}} for n, share in enumerate(shares)
    ]
    assert mistakes(uncertainty=cases) == ["out-of-range"] * found


@pytest.mark.parametrize(("share", "found"), [("0.01 %", 0), ("12.34 %", 0), ("12.345 %", 1)])
def test_probabilities_are_hundredths_of_a_percent(share: str, found: int) -> None:
    case = {"name": "c", "probability": share, "set": {"limits.max_devices": 9}}
    assert mistakes(uncertainty=[case]) == ["out-of-range"] * found


def test_dates_of_owned_machines_miss_all_that_they_want_at_once() -> None:
    """`periods` was asked for once `begin` was written."""
    owned = {"shape": "dgx-h100", "count": 1, "price": "$10/h", "until": "2027-01-01"}
    with pytest.raises(InputError) as caught:
        scenario([job()], hardware={"owned": [owned]})
    assert [problem.hint for problem in caught.value.problems] == ["add begin: 2026-12-01", "add periods: 1 week"]


def test_a_job_that_waits_for_itself_is_told_the_others() -> None:
    """It was asked whether it meant itself."""
    for others, told in (([], "other jobs: none"), ([job("tune")], "did you mean 'tune'?")):
        with pytest.raises(InputError) as caught:
            scenario([job("tuna", after="tuna"), *others], periods="1 week")
        assert caught.value.problems[0].hint == told
