"""Money: hours to ten digits, one rounding, half to even, never through a float."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.money import cost_microusd, significant_hours
from planner.checks.facts import exact_cost

HOURS = st.floats(min_value=1e-6, max_value=1e7, allow_nan=False)
SHAPES = st.integers(min_value=1, max_value=16384)
PRICES = st.integers(min_value=0, max_value=10**15)  # up to a billion dollars an hour


def half_even(value: Fraction) -> int:
    """The nearest integer, of two the even one, without `round`."""
    below, rest = divmod(value.numerator, value.denominator)
    twice = 2 * rest
    if twice > value.denominator or (twice == value.denominator and below % 2):
        return below + 1
    return below


def ten_digits(hours: float) -> Fraction:
    """The nearest fraction with ten significant decimal digits, of two the even one."""
    exact, unit = Fraction(repr(hours)), Fraction(1)
    while exact / unit >= 10**10:
        unit *= 10
    while exact / unit < 10**9:
        unit /= 10
    return half_even(exact / unit) * unit


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (720.0, "720"),
        (1 / 3, "0.3333333333"),
        (2 / 3, "0.6666666667"),
        (1234.56789012345, "1234.567890"),
        (12345678901.0, "12345678900"),  # the eleventh digit goes
        (1.00000000050001, "1.000000001"),
        (1.0000000005, "1.000000000"),  # a tie: to the even digit below
        (1.0000000015, "1.000000002"),  # a tie: to the even digit above
        (0.1 + 0.2, "0.3"),  # the last bits of a float never reach money
    ],
)
def test_hours_keep_ten_digits(hours: float, expected: str) -> None:
    assert significant_hours(hours) == Decimal(expected)


@pytest.mark.parametrize(
    ("nodes", "price", "hours", "expected"),
    [
        (1, 2_490_000, 1.0, 2_490_000),
        (16, 2_490_000, 720.0, 28_684_800_000),  # 16 x $2.49 x 720 h = $28,684.80
        (1, 1, 0.5, 0),  # half a micro-dollar: to the even side
        (1, 1, 1.5, 2),
        (1, 1, 2.5, 2),
        (3, 1, 0.5, 2),
        (1, 0, 720.0, 0),
    ],
)
def test_cost_by_hand(nodes: int, price: int, hours: float, expected: int) -> None:
    assert cost_microusd(nodes, price, hours) == expected


@given(nodes=SHAPES, price=PRICES, hours=HOURS)
def test_cost_is_the_fraction_rounded_once(nodes: int, price: int, hours: float) -> None:
    assert cost_microusd(nodes, price, hours) == half_even(nodes * price * ten_digits(hours))


@given(nodes=SHAPES, price=PRICES, hours=HOURS)
def test_planner_and_verifier_agree_though_they_share_no_code(nodes: int, price: int, hours: float) -> None:
    assert cost_microusd(nodes, price, hours) == exact_cost(nodes, price, hours)


@given(price=st.integers(min_value=1, max_value=10**9), hours=HOURS)
def test_one_rounding_of_the_whole_not_one_of_each_shape(price: int, hours: float) -> None:
    whole, each = cost_microusd(1000, price, hours), cost_microusd(1, price, hours)
    assert abs(whole - 1000 * each) <= 500
    assert abs(whole - 1000 * price * ten_digits(hours)) <= Fraction(1, 2)


@given(hours=HOURS)
def test_ten_digits_are_within_1e_9_relative(hours: float) -> None:
    assert abs(Fraction(significant_hours(hours)) - Fraction(repr(hours))) <= Fraction(repr(hours)) / 10**9
