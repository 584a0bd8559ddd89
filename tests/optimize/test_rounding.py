"""What is rounded on the way to a solver and back is rounded to the safe side."""

from __future__ import annotations

from fractions import Fraction

import pytest

from planner.optimize.answer import Answer
from planner.optimize.lexicographic import Ended, _after
from planner.optimize.model import Model
from planner.optimize.rows import SMALL, all_at_most, at_least, at_most, never, not_above_zero
from planner.optimize.scope import scope_of
from planner.optimize.stage import Found
from planner.optimize.status import Ending
from tests.optimize.instances import ints, program

HUGE = 30 * SMALL + 1  # with 30 * SMALL, numbers that share no divisor and are not left as they are


def model() -> Model:
    made = Model(columns=ints([0, 1]))
    made.add("x", [9, 9], integer=True)
    return made


@pytest.mark.parametrize(("need", "least"), [(5, 2), (6, 2), (7, 3), (Fraction(13, 2), 3), (9, 3)])
def test_a_need_is_rounded_up(need: int | Fraction, least: int) -> None:
    """In units of 3 a need of 7 wants three of them."""
    made = model()
    at_least(made, "carry", [0, 1], [Fraction(3), Fraction(6)], Fraction(need))
    (line,) = made.lines
    assert (line.coefficients.tolist(), line.low) == ([1.0, 2.0], float(least))


@pytest.mark.parametrize(("bound", "most"), [(9, 3), (8, 2), (6, 2), (5, 1), (-1, -1)])
def test_a_bound_is_rounded_down(bound: int, most: int) -> None:
    made = model()
    at_most(made, "limit", ints([0, 1]), ints([3, 6]), bound)
    (line,) = made.lines
    assert (line.coefficients.tolist(), line.high) == ([1.0, 2.0], float(most))


def test_large_needs_and_bounds_fall_between_two_whole_numbers() -> None:
    """What is scaled keeps half a unit of room: rounding in the solver turns no plan away, nor lets one in."""
    whole, exact = [30 * SMALL, HUGE], 30 * SMALL + HUGE
    least, most = model(), model()
    at_least(least, "carry", [0, 1], [Fraction(one) for one in whole], Fraction(exact))
    at_most(most, "limit", ints([0, 1]), ints(whole), exact)
    for made, side in ((least, -0.5), (most, 0.5)):
        (line,) = made.lines
        scale = float(line.coefficients[1]) / HUGE
        assert line.coefficients / scale == pytest.approx(whole, rel=1e-14)
        assert (line.low if side < 0 else line.high) / scale == pytest.approx(exact + side, abs=1e-6)


def test_several_bounds_are_rounded_each_by_its_own_divisor() -> None:
    made = model()
    all_at_most(made, "limit", ints([0, 1, 2]), ints([0, 1]), ints([3, 5]), ints([8, 14]))
    assert [(line.coefficients.tolist(), line.high) for line in made.lines] == [([1.0], 2.0), ([1.0], 2.0)]


def test_a_line_without_a_point() -> None:
    made = model()
    never(made, "limit")
    assert made.lines[0].low > made.upper[0]


def test_what_may_not_be_above_zero_keeps_its_zero() -> None:
    made = model()
    not_above_zero(made, "share", [0, 1], [6, -9])
    assert (made.lines[0].coefficients.tolist(), made.lines[0].high) == ([2.0, -3.0], 0.0)


@pytest.mark.parametrize(("found", "told"), [(100.0, 99), (100.9, 100), (101.0, 100), (0.5, 0), (-3.0, 0)])
def test_a_bound_claims_no_more_than_was_proven(found: float, told: int) -> None:
    """Below a micro-dollar there is no other plan; a billionth is taken off for the solver's own rounding."""
    question = program([], cost=[])
    stage = Found(answer=Answer(ending=Ending.OPTIMAL, units=ints([])), scope=scope_of(question), bound=found)
    assert _after(Ended(), stage, "cost", late=False).bound == told


def test_the_bound_is_that_of_the_cost() -> None:
    stage = Found(answer=Answer(ending=Ending.OPTIMAL, units=ints([])), scope=scope_of(program([], cost=[])), bound=7.5)
    assert _after(Ended(bound=3), stage, "carbon", late=False).bound == 3
