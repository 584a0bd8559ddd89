"""Periods of a calendar: a moment that rounding takes off the edge of a period is that edge."""

from __future__ import annotations

import math

import pytest

from planner.candidates.grid import Grid

DAY_S = 86_400.0
WEEK = Grid(period_s=DAY_S, periods=7, horizon_s=7 * DAY_S)
SLIP_S = 1e-10 * DAY_S  # a tenth of what counts as rounding
FAR_S = 1e-8 * DAY_S


@pytest.mark.parametrize(("off_s", "last"), [(-FAR_S, 4), (0.0, 4), (SLIP_S, 4), (FAR_S, 3)])
def test_the_last_start_of_what_just_fits(off_s: float, last: int) -> None:
    """Three days and a little, to be done at the end of the week, begin on the fifth day or on the fourth."""
    assert WEEK.last(3 * DAY_S + off_s, 7 * DAY_S) == last


@pytest.mark.parametrize(("end_s", "last"), [(7 * DAY_S, 6), (9 * DAY_S, 6), (DAY_S, 0), (0.5 * DAY_S, -1)])
def test_the_last_start_is_within_the_calendar(end_s: float, last: int) -> None:
    assert WEEK.last(DAY_S, end_s) == last


def test_what_never_ends_has_no_start() -> None:
    assert WEEK.last(math.inf, 7 * DAY_S) == -1


@pytest.mark.parametrize(("off_s", "stop"), [(-FAR_S, 5), (0.0, 5), (SLIP_S, 5), (FAR_S, 6)])
def test_periods_that_are_touched(off_s: float, stop: int) -> None:
    assert WEEK.touched(2, 3 * DAY_S + off_s) == stop


@pytest.mark.parametrize(("off_s", "stop"), [(-FAR_S, 4), (-SLIP_S, 5), (0.0, 5), (FAR_S, 5)])
def test_periods_that_are_covered(off_s: float, stop: int) -> None:
    assert WEEK.covered(2, 3 * DAY_S + off_s) == stop


def test_what_reaches_the_end_covers_the_last_period() -> None:
    """A horizon of six days and a half: the last period is half a day."""
    short = Grid(period_s=DAY_S, periods=7, horizon_s=6.5 * DAY_S)
    assert short.covered(5, 1.5 * DAY_S - FAR_S) == 6
    assert short.covered(5, 1.5 * DAY_S - SLIP_S) == 7


@pytest.mark.parametrize(("off_s", "count"), [(-FAR_S, 3), (0.0, 3), (SLIP_S, 3), (FAR_S, 4)])
def test_running_periods_pay_their_restart(off_s: float, count: int) -> None:
    assert WEEK.running_periods(3 * (DAY_S - 600.0) + off_s, 600.0) == count


@pytest.mark.parametrize(
    ("end_s", "stop"),
    [(5 * DAY_S, 5), (4.5 * DAY_S, 5), (4.5 * DAY_S - SLIP_S, 5), (4.5 * DAY_S - FAR_S, 4), (9 * DAY_S, 7)],
)
def test_a_period_that_the_deadline_cuts_may_be_the_last_of_what_pauses(end_s: float, stop: int) -> None:
    """Two whole days and half of a third, restarts included."""
    assert WEEK.stop_running(2 * (DAY_S - 600.0) + 0.5 * DAY_S - 600.0, 600.0, end_s) == stop


def test_what_never_ends_runs_in_whole_periods_at_most() -> None:
    assert WEEK.stop_running(math.inf, 600.0, 4.5 * DAY_S) == 4
    assert WEEK.stop_running(DAY_S, 2 * DAY_S, 4.5 * DAY_S) == 4
