"""Amounts in other currencies: converted once, exactly, at the rate of the scenario; never without one."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import api
from planner.errors import InputError, UsageError
from planner.scenario.schema import Scenario
from planner.units import NO_RATES, Rates, UnitError, parse_money, parse_price
from tests.tiers import settings
from tests.verified import errors
from tests.worlds import catalog, job, scenario

EURO = {"EUR": 1.08, "as_of": "2026-11-01"}
RATES = Rates(dollars={"EUR": 1.08, "GBP": 1.27}, as_of="2026-11-01")


def asked(price: str = "€2.50/h", **top: Any) -> Scenario:
    owned = [{"shape": "north/one", "count": 1, "price": price}]
    return scenario([job()], **{"currency": EURO, "hardware": {"owned": owned}, **top})


@pytest.mark.parametrize(
    ("text", "microusd"),
    [
        ("€2.50/h", 2_700_000),
        ("2.50 EUR/h", 2_700_000),
        ("2.50EUR / h", 2_700_000),
        ("€60/day", 2_700_000),
        ("£2/h", 2_540_000),
        ("€8760/year", 1_080_000),  # of 8760 h, as capital is spread over
        ("$2.50/h", 2_500_000),
        ("2.50 USD/h", 2_500_000),
        ("USD 2.50/h", 2_500_000),
        ("US$2.50/h", 2_500_000),
        ("EUR 2.50 /h", 2_700_000),
        ("EUR2.50/h", 2_700_000),
        ("€0.0000005/h", 1),  # 0.54 micro-dollars: rounded once, after the rate
    ],
)
def test_prices_by_hand(text: str, microusd: int) -> None:
    assert parse_price(text, rates=RATES) == microusd


@pytest.mark.parametrize(
    ("text", "microusd"),
    [
        ("€20,000", 21_600_000_000),
        ("€20k", 21_600_000_000),
        ("5000 EUR", 5_400_000_000),
        ("£1.5M", 1_905_000_000_000),
        ("EUR 20000", 21_600_000_000),
        ("20k EUR", 21_600_000_000),
        ("20k USD", 20_000_000_000),
    ],
)
def test_amounts_by_hand(text: str, microusd: int) -> None:
    assert parse_money(text, rates=RATES) == microusd


@settings(max_examples=200)
@given(st.decimals("0.000001", "99999", places=6), st.decimals("0.0001", "900", places=4))
def test_conversion_is_exact_and_rounded_once(amount: Decimal, rate: Decimal) -> None:
    rates = Rates(dollars={"EUR": float(rate)}, as_of="2026-11-01")
    expected = (amount * rate * 10**6).to_integral_value(ROUND_HALF_EVEN)
    assert parse_price(f"€{amount:f}/h", rates=rates) == parse_price(f"{amount:f} EUR/h", rates=rates) == int(expected)


@pytest.mark.parametrize("text", ["€2/h", "2 EUR/h", "2 GBP/h", "2 JPY/h"])
def test_without_a_rate_nothing_is_converted(text: str) -> None:
    rates = NO_RATES if "GBP" not in text else replace(RATES, dollars={"EUR": 1.08})
    with pytest.raises(UnitError) as refused:
        parse_price(text, rates=rates)
    assert refused.value.reference == "mixed-currency"
    assert "as_of" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("9,50 EUR/h", 'write "9.50 EUR/h"'),
        ("€9", 'write "9 EUR/h"'),
        ("1,00,00,000 INR", 'write "10000000 INR"'),
        ("1.200,50 €/h", 'write "1200.50 EUR/h"'),
        ("€20k", 'write "2 EUR/h"'),
    ],
)
def test_hints_keep_the_currency(text: str, hint: str) -> None:
    """They told `9.50 USD/h` and `10000000 USD`: whoever followed them paid another amount."""
    rates = Rates(dollars={"EUR": 1.08, "INR": 0.0119}, as_of="2026-11-01")
    with pytest.raises(UnitError) as refused:
        parse_price(text, rates=rates)
    assert refused.value.hint == hint
    assert "USD" not in refused.value.message
    assert "$" not in refused.value.message


def test_signs_of_one_currency_are_read_and_of_two_refused() -> None:
    assert parse_money("₹10000000", rates=Rates(dollars={"INR": 0.0119}, as_of="2026-11-01")) == 119_000_000_000
    with pytest.raises(UnitError, match="yen and of the yuan"):
        parse_money("¥900", rates=Rates(dollars={"JPY": 0.0066}, as_of="2026-11-01"))


def test_a_scenario_in_euros_is_that_in_dollars() -> None:
    euros, dollars = asked("€2.50/h"), asked("$2.70/h", currency="USD")
    assert euros.hardware.owned == dollars.hardware.owned
    known = catalog()
    first, second = (api.solve(one, known).document for one in (euros, dollars))
    assert first["summary"]["cost_microusd"] == second["summary"]["cost_microusd"]
    assert errors(first, known) == []  # type: ignore[arg-type]
    assert "one EUR is $1.08, as of 2026-11-01 (currency)" in first["assumed"]
    assert not any("rate of EUR" in line for line in first["warnings"])


def test_limits_and_settings_are_converted_too() -> None:
    limited = asked(limits={"budget": "1000 EUR", "spend": "€5/h"})
    assert (limited.limits.budget_microusd, limited.limits.spend_microusd_per_hour) == (1_080_000_000, 5_400_000)
    assert limited.with_({"limits.budget": "€2k"}).limits.budget_microusd == 2_160_000_000


@pytest.mark.parametrize(("day", "old"), [("2026-08-23", False), ("2026-08-22", True)])  # the catalog's is 2026-11-21
def test_an_old_rate_is_a_warning_of_the_plan(day: str, old: bool) -> None:
    found = api.solve(asked(currency={"EUR": 1.08, "as_of": day}), catalog()).document["warnings"]
    assert any(line.startswith("the rate of EUR to the dollar is of") for line in found) == old


@pytest.mark.parametrize(
    ("currency", "reference"),
    [
        ({"EUR": 0, "as_of": "2026-11-01"}, "out-of-range"),
        ({"EUR": "1.08", "as_of": "2026-11-01"}, "out-of-range"),
        ({"EUR": True, "as_of": "2026-11-01"}, "out-of-range"),
        ({"EUR": 1.08}, "missing-field"),
        ({"as_of": "2026-11-01"}, "missing-field"),
        ({"EUR": 1.08, "as_of": "2026-13-01"}, "out-of-range"),
        ({"XYZ": 1.08, "as_of": "2026-11-01"}, "unknown-value"),
        ("GBP", "unknown-value"),
        ("EUR", "not-yet"),
        (["EUR"], "unknown-value"),
    ],
)
def test_rates_that_are_none_are_the_one_mistake(currency: Any, reference: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(currency=currency)
    assert [one.reference for one in refused.value.problems] == [reference]
    assert refused.value.problems[0].places[0].line
    assert refused.value.problems[0].hint


def test_a_price_of_the_command_line_counts_at_the_rate_of_the_scenario() -> None:
    priced = [api.catalog_of(asked(), price=[f"h100-sxm={text}/h"]) for text in ("€2.50", "$2.70")]
    assert [one.price_microusd_per_hour for one in priced[0].offers] == [
        one.price_microusd_per_hour for one in priced[1].offers
    ]
    with pytest.raises(UsageError, match="no rate to dollars"):
        api.catalog_of(asked(), price=["h100-sxm=CHF 2.50/h"])


@pytest.mark.parametrize(
    ("currency", "hint"),
    [({"JPY": 150}, "where one dollar is 150 JPY: JPY: 0.006667"), ({"EUR": 108}, "dollars for one EUR"),
     ({"eur": 1.08}, "write EUR"), ({"XYZ": 1}, "a code such as EUR")],
)  # fmt: skip
def test_rates_the_wrong_way_round_are_asked_about(currency: dict[str, float], hint: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(currency={**currency, "as_of": "2026-11-01"})
    assert hint in caught.value.problems[0].hint


def test_rates_of_long_before_or_after_the_prices_are_told() -> None:
    for day, told in (
        ("2026-11-01", ""),
        ("2020-11-01", "days before the catalog"),
        ("2036-11-01", "after the catalog"),
    ):
        plan = api.solve(asked(currency={"EUR": 1.08, "as_of": day}), catalog())
        found = [note for note in plan.document["warnings"] if "the rate of EUR" in note]
        assert (told in "".join(found), len(found)) == (True, int(bool(told)))
