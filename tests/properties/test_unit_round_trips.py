"""parse(format(x)) == x, exactly, for every kind of quantity that is written back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner import units
from planner.units import UnitError
from tests.tiers import settings

POSITIVE = st.floats(min_value=1e-12, max_value=1e24, allow_nan=False, allow_infinity=False)
ROUNDS = settings(max_examples=2000, few=300)


@ROUNDS
@given(POSITIVE)
def test_bytes(value: float) -> None:
    assert units.parse_bytes(units.format_bytes(value, exact=True)) == value


@ROUNDS
@given(POSITIVE)
def test_durations(value: float) -> None:
    assert units.parse_duration(units.format_duration(value, exact=True)) == value


@ROUNDS
@given(POSITIVE)
def test_tokens(value: float) -> None:
    assert units.parse_tokens(units.format_count(value, exact=True)) == value


@ROUNDS
@given(st.integers(min_value=0, max_value=10**18))
def test_money_and_prices(value: int) -> None:
    assert units.parse_money(units.format_money(value, exact=True)) == value
    assert units.parse_price(units.format_money_rate(value, exact=True)) == value


@ROUNDS
@given(st.floats(min_value=1e-9, max_value=1))
def test_shares(value: float) -> None:
    assert units.parse_fraction(units.format_percent(value, exact=True)) == value


@settings(max_examples=500, few=150)
@given(POSITIVE)
def test_for_people_to_three_digits(value: float) -> None:
    assert abs(units.parse_bytes(units.format_bytes(value).replace(",", "")) - value) <= 0.0051 * value


@settings(max_examples=1000, few=200)
@given(
    st.text(max_size=30) | st.from_regex(r"\$?[0-9]{1,5}\.?[0-9]{0,3}(e[0-9]{1,9})? ?[A-Za-z/%]{0,8}", fullmatch=True)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (units.parse_bytes, units.parse_duration, units.parse_tokens, units.parse_money, units.parse_price):
        refusal = None
        try:
            assert parse(text) >= 0
        except UnitError as error:
            refusal = error
        assert refusal is None or (refusal.reference and refusal.hint)
