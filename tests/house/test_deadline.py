"""A time limit that runs, by a clock that a test winds."""

from __future__ import annotations

import math

import pytest

from planner.deadline import Deadline, is_up, left_s


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("limit_s", "work_s"), [(100.0, 99.0), (10.0, 9.0), (5.0, 4.5), (0.1, 0.09)])
def test_a_second_or_a_tenth_is_kept_back(limit_s: float, work_s: float) -> None:
    clock = Clock()
    deadline = Deadline.after(limit_s, clock)
    assert deadline.left_s() == pytest.approx(work_s)
    clock.now += 0.5 * work_s
    assert deadline.spent() == pytest.approx(0.5)
    assert not deadline.passed()
    clock.now += 0.5 * work_s + 1e-9
    assert deadline.passed()
    assert is_up(deadline)
    assert deadline.left_s() == 0.0
    assert deadline.spent() >= 1.0


def test_a_portion_is_of_what_is_left() -> None:
    clock = Clock()
    deadline = Deadline.after(101.0, clock)
    clock.now += 40.0
    half = deadline.portion(0.5)
    assert half.left_s() == pytest.approx(30.0)
    assert half.spent() == 0.0
    assert half.limit_s == 101.0  # what the user gave, for messages
    clock.now += 100.0
    late = deadline.portion(0.5)
    assert late.left_s() == 0.0
    assert late.passed()
    assert late.spent() == math.inf


def test_a_clock_that_goes_backwards_gives_no_share_above_what_was_left() -> None:
    clock = Clock()
    deadline = Deadline.after(11.0, clock)
    clock.now -= 1000.0
    assert deadline.spent() < 0.0
    assert not deadline.passed()


def test_seconds_are_a_limit_of_their_own_and_never_up() -> None:
    deadline = Deadline.after(11.0, Clock())
    assert Deadline.of(deadline) is deadline
    assert Deadline.of(None) is None
    begun = Deadline.of(7.0)
    assert begun is not None
    assert begun.limit_s == 7.0
    assert (left_s(None), left_s(7.0), left_s(deadline)) == (None, 7.0, 10.0)
    assert not is_up(None)
    assert not is_up(0.0)
