"""Quantities: values against pint, wording against the conventions, refusals one by one."""

from __future__ import annotations

import pint
import pytest

from planner import units
from planner.units import UnitError
from planner.units.dimensions import (
    DATA_RATE,
    MASS,
    MEMORY,
    POWER,
    TIME,
    Dimension,
)

REGISTRY: pint.UnitRegistry = pint.UnitRegistry()

# How pint spells our units where it differs; a month is ours alone (730 h).
PINT_NAMES = {
    "us": "microsecond", "min": "minute", "h": "hour", "d": "day", "t": "metric_ton", "kt": "kilometric_ton",
    "B": "byte", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte",
    "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte", "PiB": "pebibyte",
}  # fmt: skip


def pint_value(unit: str, base: str) -> float:
    head, slash, tail = unit.partition("/")
    spelled = PINT_NAMES.get(head, head) + (f"/{tail}" if slash else "")
    return float(REGISTRY.Quantity(1, spelled).to(base).magnitude)


@pytest.mark.parametrize(
    ("dimension", "base"),
    [(MEMORY, "byte"), (TIME, "second"), (DATA_RATE, "byte/s"), (POWER, "watt"), (MASS, "gram")],
    ids=["memory", "time", "data-rate", "power", "mass"],
)
def test_every_unit_equals_pint(dimension: Dimension, base: str) -> None:
    compared = 0
    for unit, size in dimension.units.items():
        if unit.startswith("month"):
            continue
        assert float(size) == pytest.approx(pint_value(unit, base), rel=1e-14), unit
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "80 GB", 80e9),
        (units.parse_bytes, "80GB", 80e9),
        (units.parse_bytes, "16 GiB", 16.0 * 2**30),
        (units.parse_bytes, "0.1 GB", 100_000_000.0),
        (units.parse_duration, "30 days", 2_592_000.0),
        (units.parse_duration, "1 month", 730 * 3600.0),
        (units.parse_duration, "1.5 h", 5400.0),
        (units.parse_duration, "50 ms", 0.05),
        (units.parse_tokens, "2T tokens", 2e12),
        (units.parse_tokens, "200B", 200e9),
        (units.parse_tokens, 15.6e12, 15.6e12),
        (units.parse_tokens, 4096, 4096.0),
        (units.parse_count, "64k", 64_000),
        (units.parse_count, 1e3, 1000),
        (units.parse_parameters, "8.03B", 8_030_000_000),
        (units.parse_sequences, "512 sequences", 512.0),
        (units.parse_rate_bytes, "100 Gbit/s", 12.5e9),
        (units.parse_rate_bytes, "3350 GB/s", 3.35e12),
        (units.parse_flop_rate, "989 TFLOP/s", 989e12),
        (units.parse_flop_rate, "1979 TOP/s", 1979e12),
        (units.parse_money, "$60000", 60_000_000_000),
        (units.parse_money, "0.1 USD", 100_000),
        (units.parse_price, "$2.49/h", 2_490_000),
        (units.parse_price, "$9.80 /h", 9_800_000),
        (units.parse_price, "$730/month", 1_000_000),
        (units.parse_price, "$24 / day", 1_000_000),
        (units.parse_power, "120 kW", 120e3),
        (units.parse_fraction, "30 %", 0.3),
        (units.parse_fraction, "99.9%", 0.999),
        (units.parse_fraction, 0.3, 0.3),
        (units.parse_mass, "5 t", 5e6),
        (units.parse_carbon_intensity, "380 g/kWh", 380.0),
        (units.parse_carbon_intensity, "0.38 t/MWh", 380.0),
        (units.parse_token_rate, "2100 tokens/s", 2100.0),
        (units.parse_token_rate, "6 k tokens/min", 100.0),
        (units.parse_request_rate, "16 /s", 16.0),
        (units.parse_request_rate, "0.05 /h", 0.05 / 3600),
    ],
)
def test_parse(parse, text, value) -> None:  # type: ignore[no-untyped-def]
    assert parse(text) == value
    assert type(parse(text)) is type(value)


@pytest.mark.parametrize(
    ("parse", "text", "reference", "hint"),
    [
        (units.parse_duration, 30, "missing-unit", 'write "30 days" or "720 h"'),
        (units.parse_latency, 30, "missing-unit", 'write "30 ms" or "30 s"'),
        (units.parse_duration, "30", "missing-unit", '"30 days"'),
        (units.parse_duration, "80 GB", "wrong-dimension", "30 days"),
        (units.parse_duration, "10 m", "ambiguous-suffix", '"10 min" or "10 months"'),
        (units.parse_duration, "2 years", "ambiguous-suffix", '"24 months"'),
        (units.parse_duration, "5 H", "ambiguous-suffix", '"5 h"'),
        (units.parse_duration, True, "wrong-type", "30 days"),
        (units.parse_duration, None, "wrong-type", "30 days"),
        (units.parse_duration, ["1 h"], "wrong-type", "30 days"),
        (units.parse_duration, "-3 h", "out-of-range", "minus"),
        (units.parse_duration, "1e999999999 s", "out-of-range", "shorter"),
        (units.parse_duration, "9" * 100 + " s", "out-of-range", "shorter"),
        (units.parse_duration, "1e300 weeks weeks", "unknown-unit", "units of time"),
        (units.parse_duration, float("nan"), "wrong-type", "30 days"),
        (units.parse_duration, float("inf"), "wrong-type", "30 days"),
        (units.parse_tokens, "2t tokens", "ambiguous-suffix", '"2T tokens" (2,000,000,000,000)'),
        (units.parse_tokens, "64K", "ambiguous-suffix", '"64k"'),
        (units.parse_tokens, "4m tokens", "ambiguous-suffix", '"4M tokens"'),
        (units.parse_tokens, "8b", "ambiguous-suffix", '"8B"'),
        (units.parse_tokens, "200 billion", "ambiguous-suffix", '"200B"'),
        (units.parse_tokens, "1,000", "ambiguous-number", '"1000"'),
        (units.parse_tokens, "1_000", "ambiguous-number", '"1000"'),
        (units.parse_tokens, "1,234,567", "ambiguous-number", '"1234567"'),
        (units.parse_duration, "1,5 days", "ambiguous-number", 'write "1.5 days"'),
        (units.parse_duration, "0,125 h", "ambiguous-number", 'write "0.125 h"'),
        (units.parse_money, "$60,00", "ambiguous-number", 'write "$60.00"'),
        (units.parse_money, "$1.234,50", "ambiguous-number", 'write "$1234.50"'),
        (units.parse_fraction, "12,5 %", "ambiguous-number", 'write "12.5 %"'),
        (units.parse_bytes, "1,234.5 GB", "ambiguous-number", 'write "1234.5 GB"'),
        (units.parse_bytes, "1,234,5 GB", "ambiguous-number", "a dot before decimals"),
        (units.parse_tokens, "1.000.000", "ambiguous-number", 'write "1000000"'),
        (units.parse_tokens, "20 000 000", "ambiguous-number", 'write "20000000"'),
        (units.parse_money, "10 000 $", "ambiguous-number", 'write "10000 $"'),
        (units.parse_money, "$10'000", "ambiguous-number", 'write "$10000"'),
        (units.parse_money, "$9.500", "ambiguous-number", 'write "$9500" or "$9.5"'),
        (units.parse_price, "$0,125/h", "ambiguous-number", 'write "$0.125/h"'),
        (units.parse_price, "10/h", "ambiguous-suffix", '"$10/h"'),
        (units.parse_tokens, "20 Billion tokens", "ambiguous-suffix", '"20B tokens"'),
        (units.parse_count, "4Ki", "ambiguous-suffix", 'did you mean "4096"?'),
        (units.parse_duration, "2 wk", "ambiguous-suffix", '"2 weeks"'),
        (units.parse_duration, "2 quarters", "ambiguous-suffix", '"6 months"'),
        (units.parse_bytes, "80 G", "ambiguous-suffix", '"80 GB" or "80 GiB"'),
        (units.parse_bytes, "80 gb", "ambiguous-suffix", '"80 GB"'),
        (units.parse_rate_bytes, "100 Gbps", "ambiguous-suffix", '"100 Gbit/s" or "100 GB/s"'),
        (units.parse_flop_rate, "989 TFLOPS", "ambiguous-suffix", '"989 TFLOP/s"'),
        (units.parse_money, 60000, "missing-unit", '"$60000"'),
        (units.parse_money, "$60m", "ambiguous-suffix", '"$60000000"'),
        (units.parse_money, "60 EUR", "mixed-currency", "as_of"),
        (units.parse_price, "$2.49", "missing-unit", '"$2.49/h"'),
        (units.parse_money, "$2.49/h", "wrong-dimension", "$60000"),
        (units.parse_count, 2.5, "out-of-range", "write 2"),
        (units.parse_token_rate, 2100, "missing-unit", "2100 tokens/s"),
        (units.parse_power, "1e400 W", "out-of-range", "shorter"),
        (units.parse_bytes, "1e300 TB", "out-of-range", "smaller"),
    ],
)
def test_refuse(parse, text, reference, hint) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnitError) as caught:
        parse(text, field="deadline")
    assert caught.value.reference == reference, str(caught.value)
    assert hint in caught.value.hint


def test_refusal_names_the_field() -> None:
    with pytest.raises(UnitError, match="'80 GB' is an amount of memory; 'deadline' wants a time"):
        units.parse_duration("80 GB", field="deadline")
    with pytest.raises(UnitError, match="deadline needs a unit of time"):
        units.parse_duration(30, field="deadline")


def test_currency_of_the_scenario() -> None:
    rates = units.Rates(dollars={"EUR": 1.25}, as_of="2026-11-01")
    assert units.parse_money("60 EUR", rates=rates) == 75_000_000
    assert units.parse_money("60 EUR", rates=None) == 60_000_000
    with pytest.raises(UnitError, match="is in GBP"):
        units.parse_price("£1/h", rates=rates)


@pytest.mark.parametrize(
    ("parse", "text", "meant"),
    [
        (units.parse_money, "9.500 EUR", ["9500 EUR", "9.5 EUR"]),
        (units.parse_money, "€9.123", ["€9123", "€9.1230"]),
        (units.parse_price, "2,950 EUR/h", ["2950 EUR/h", "2.95 EUR/h"]),
        (units.parse_price, "2,955 EUR/h", ["2955 EUR/h", "2.955 EUR/h"]),
    ],
)
def test_a_thousand_or_a_decimal_is_asked_and_each_answer_read(parse, text, meant) -> None:  # type: ignore[no-untyped-def]
    rates = units.Rates(dollars={"EUR": 1, "GBP": 1}, as_of="2026-11-01")
    with pytest.raises(UnitError) as caught:
        parse(text, rates=rates)
    assert caught.value.hint == "write " + " or ".join(f'"{each}"' for each in meant)
    assert parse(meant[0], rates=rates) == pytest.approx(1000 * parse(meant[1], rates=rates))


def test_separators_that_leave_nothing_open() -> None:
    rates = units.Rates(dollars={"EUR": 1, "GBP": 1}, as_of="2026-11-01")
    assert units.parse_money("9,500 EUR", rates=rates) == 9_500_000_000  # money has two decimals
    assert units.parse_money("$9.123") == 9_123_000  # as a way out may tell it
    assert units.parse_price("9,500 GBP/h", rates=rates) == units.parse_price("$9,500/h") == 9_500_000_000
    assert units.parse_price("$2.950/h") == 2_950_000


def test_money_rounds_half_to_even() -> None:
    assert units.parse_money("$0.0000005") == 0
    assert units.parse_money("$0.0000015") == 2
    assert units.parse_money("$0.0000025") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_bytes(20.3e9), "20.3 GB"),
        (units.format_bytes(84.4e9), "84.4 GB"),
        (units.format_bytes(999_999), "1 MB"),
        (units.format_bytes(0), "0 B"),
        (units.format_money(46_225_000_000), "$46,225"),
        (units.format_money(9_800_000), "$9.80"),
        (units.format_money(-1_500_000_000), "-$1,500"),
        (units.format_money(0), "$0"),
        (units.format_money(1_234_567, exact=True), "$1.234567"),
        (units.format_money(2_500_000, exact=True), "$2.50"),
        (units.format_money(5_000_000_000, currency="EUR"), "5,000 EUR"),
        (units.format_money_rate(2_490_000), "$2.49 /h"),
        (units.format_money_rate(29_083_000_000, "month"), "$29,083 /month"),
        (units.format_duration(17.9 * 86400), "17.9 days"),
        (units.format_duration(24 * 3600), "24 h"),
        (units.format_duration(2 * 86400 - 3600), "47 h"),
        (units.format_duration(2 * 86400), "2 days"),
        (units.format_duration(7199), "120 min"),
        (units.format_duration(2 * 3600), "2 h"),
        (units.format_duration(119), "119 s"),
        (units.format_duration(120), "2 min"),
        (units.format_duration(1), "1 s"),
        (units.format_duration(600), "10 min"),
        (units.format_duration(9.7), "9.7 s"),
        (units.format_duration(0.05), "50 ms"),
        (units.format_count(200e9), "200 B"),
        (units.format_count(8.03e9), "8.03 B"),
        (units.format_count(512), "512"),
        (units.format_number(0.5678), "0.568"),
        (units.format_number(999.4), "999"),
        (units.format_number(38_912), "38,900"),  # never 3.89e+04
        (units.format_number(1234.5, 4), "1234"),
        (units.format_number(1234.5, 4, apart=True), "1,234"),
        (units.format_number(2.5e6, 6), "2,500,000"),
        (units.format_percent(0.74), "74 %"),
        (units.format_percent(0.0123), "1.23 %"),
        (units.format_rate_bytes(3.35e12), "3.35 TB/s"),
    ],
)
def test_format(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize("value", [-5, "-5", "+5", -1.0, "-10"])
def test_a_change_without_a_percent_sign_is_asked(value: object) -> None:
    """`fraction: -5` of a discount was six times the price."""
    with pytest.raises(UnitError, match="a share, or a percentage"):
        units.parse_change(value)
    assert [units.parse_change(one) for one in ("-5 %", "-500 %", "+5 %", -0.05, "-0.05", 0.05)] == [
        -0.05, -5.0, 0.05, -0.05, -0.05, 0.05,
    ]  # fmt: skip
