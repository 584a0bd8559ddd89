"""Quantities as people write them -> exact numbers in base units; every slip has its own words.

Other currencies first: which are known, what one unit of them costs in dollars, and how amounts name them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from fractions import Fraction

from planner.carriers import dataclass
from planner.units.dimensions import (
    CARBON_INTENSITY,
    COUNT,
    DATA_RATE,
    DIMENSIONS,
    ENERGY_PRICE,
    FLOP_RATE,
    FRACTION,
    LATENCY,
    MASS,
    MEMORY,
    MONEY,
    PARAMETERS,
    POWER,
    PRICE,
    REQUEST_RATE,
    SEQUENCES,
    TIME,
    TOKEN_RATE,
    TOKENS,
    Dimension,
)  # fmt: skip

KNOWN = ("EUR", "GBP", "CHF", "JPY", "CNY", "INR", "KRW", "CAD", "AUD", "SGD", "BRL", "SEK", "NOK", "DKK", "PLN")
_SIGNS = {"€": "EUR", "£": "GBP", "₹": "INR", "US$": "USD"}
_NAMED = re.compile(
    rf"{'|'.join(map(re.escape, _SIGNS))}|(?<![A-Za-z])(?:{'|'.join((*KNOWN, 'USD'))})(?=\d|(?![A-Za-z]))"
)
_AMOUNT = re.compile(r"[\d.]")
_IN_DOLLARS = re.compile(r"\$(\d[\d.]*[kM]?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Dollars for one unit of other currencies, on a day."""

    dollars: Mapping[str, float] = field(default_factory=dict)  # by ISO 4217 code
    as_of: str = ""  # ISO date

    def exact(self, code: str) -> Fraction:
        """Dollars for one unit, as the decimal number that was written."""
        return Fraction(Decimal(repr(self.dollars[code])))


NO_RATES = Rates()


def currency_named(text: str) -> str | None:
    """Code of another currency than the dollar that an amount names.

    >>> currency_named("€2.50/h"), currency_named("2.50 EUR/h"), currency_named("$2.50/h")
    ('EUR', 'EUR', None)
    """
    found = _NAMED.search(text)
    code = None if found is None else _SIGNS.get(found[0], found[0])
    return None if code == "USD" else code


def as_if_dollars(text: str) -> str:
    """The same amount in dollars, whose sign stands before it, wherever its currency was named.

    >>> as_if_dollars("€2.50/h"), as_if_dollars("2.50 EUR/h"), as_if_dollars("EUR 400k"), as_if_dollars("400k EUR")
    ('$2.50/h', '$2.50/h', '$400k', '$400k')
    """
    bare, named = _NAMED.subn("", text, count=1)
    bare = " ".join(bare.split()).replace(" /", "/")
    return _AMOUNT.sub(lambda digit: f"${digit[0]}", bare, count=1) if named else text


def in_currency(words: str, code: str) -> str:
    """What is said of amounts in dollars, of the same amounts in the currency that they were written in.

    >>> in_currency('write "$9.50/h"', "EUR")
    'write "9.50 EUR/h"'
    """
    return _IN_DOLLARS.sub(rf"\1 {code}", words)


class UnitError(ValueError):
    """A quantity that cannot be read, or only by guessing."""

    def __init__(self, reference: str, message: str, hint: str = "") -> None:
        self.reference = reference
        self.message = message
        self.hint = hint
        super().__init__(f"{message} ({hint})" if hint else message)


_QUANTITY = re.compile(r"([-+]?)(\$?)\s*(\d+\.?\d*|\.\d+)(?:[eE]([-+]?\d+))?(?![\d.,_])\s*(.*)", re.DOTALL)
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(,\d{3})+(?![\d,])")  # as money is written: $20,000
_NO_COMMAS = "write a dot before decimals, and nothing between thousands"
_SPACED = re.compile(r"(\d)[\s'’](?=\d{3}(?!\d))")  # 10 000 and 10'000
_GROUP = re.compile(r"(?<![\d.,])([1-9]\d{0,2})([.,])(\d{3})(?![\d.,])")
_COMMA_OF_DECIMALS = ("EUR", "CHF", "BRL", "SEK", "NOK", "DKK", "PLN")
_MAX_DIGITS = 60
_MAX_EXPONENT = 300


def parse_exact(value: object, dimension: Dimension, *, field: str = "value") -> Fraction:
    """Read a quantity exactly, in the base unit of `dimension`.

    Parameters
    ----------
    value
        Text or number as read from a file; anything else is a mistake with words of its own.
    dimension
        Says which units there are; a number without one is read where it has the unit "".
    field
        Name of the quantity in messages.

    Raises
    ------
    UnitError
        It is no quantity of this dimension, or its unit is missing, unknown or ambiguous; it is below 0, or too long.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _not_a_quantity(_kind(value), dimension, field)
    text = value.strip() if isinstance(value, str) else repr(value)
    if dimension in (MONEY, PRICE, ENERGY_PRICE):
        text = _THOUSANDS.sub(lambda written: written[0].replace(",", ""), text)
    match = _QUANTITY.fullmatch(text)
    if match is None or _SPACED.search(text):
        raise _unreadable(text, dimension, field)
    sign, dollar, digits, exponent, rest = match.groups()
    number = _exact_number(text, digits, exponent)
    if sign == "-" and number:
        raise UnitError("out-of-range", f"{field} is {text}; it must not be negative", "drop the minus sign")
    size = _size(text, number, dollar + _tidy(rest), dimension, field)
    return number * size


def _exact_number(text: str, digits: str, exponent: str | None) -> Fraction:
    # An exponent is bounded before it is used: 1e999999999 would fill the memory.
    power = int(exponent) if exponent and len(exponent) < 6 else (_MAX_EXPONENT + 1 if exponent else 0)
    if len(digits) > _MAX_DIGITS or abs(power) > _MAX_EXPONENT:
        raise UnitError("out-of-range", f"'{text[:40]}' has too many digits", "write a shorter number")
    return Fraction(Decimal(digits)) * Fraction(10) ** power


def _tidy(unit: str) -> str:
    return re.sub(r"\s*/\s*", "/", " ".join(unit.split()))


def _size(text: str, number: Fraction, unit: str, dimension: Dimension, field: str) -> Fraction:
    """Size of the unit in the base unit; every way to get it wrong has its own words."""
    size = dimension.units.get(unit)
    if size is not None:
        return size
    if not unit or (unit == "$" and dimension is PRICE):
        raise _missing_unit(number, dimension, field)
    meant = (
        dimension.slips.get(unit)
        or dimension.slips.get(unit.lower())
        or tuple(known for known in dimension.units if known.lower() == unit.lower() and known != unit)
    )
    if meant:
        raise _slip(text, number, meant, dimension)
    if dimension is REQUEST_RATE and unit.partition(" ")[0] in (*"kMBT", "requests"):
        message = f"'{text}' of '{field}' says not in what time"
        raise UnitError("missing-unit", message, "write them over their time, such as 16 /s")
    for other in DIMENSIONS:
        if unit in other.units:
            message = f"'{text}' is {other.noun}; '{field}' wants {dimension.wants}"
            raise UnitError("wrong-dimension", message, _write(Fraction(dimension.sample), dimension))
    raise UnitError("unknown-unit", f"'{text}' has an unknown unit; '{field}' wants {dimension.wants}",
                    dimension.slip_rule or _write(number, dimension))  # fmt: skip


def _slip(text: str, number: Fraction, meant: tuple[str, ...], dimension: Dimension) -> UnitError:
    written = [_fill(unit, number) if "{" in unit else f"{_plain(number)}{_gap(unit)}{unit}" for unit in meant]
    if len(written) == 1 and dimension in (TOKENS, COUNT, PARAMETERS) and "{" not in meant[0]:
        exact = f" ({int(number * dimension.units.get(meant[0], Fraction(1))):,})" if number.denominator == 1 else ""
        hint = f'did you mean "{written[0]}"{exact}?'
    else:
        hint = "did you mean " + " or ".join(f'"{option}"' for option in written) + "?"
    return UnitError("ambiguous-suffix", f"'{text}': {dimension.slip_rule}", hint)


def _gap(unit: str) -> str:
    return "" if unit[:1] in "kMBT" and (len(unit) == 1 or unit[1] == " ") else " "


def _missing_unit(number: Fraction, dimension: Dimension, field: str) -> UnitError:
    return UnitError("missing-unit", f"{field} needs {dimension.unit_of}", _write(number, dimension))


def _unreadable(text: str, dimension: Dimension, field: str) -> UnitError:
    joined = _SPACED.sub(r"\1", text)
    found = re.fullmatch(r"([-+]?\$?\s*)(\d[\d.,_]*)(.*)", joined, re.DOTALL)
    if found and (joined != text or re.search(r"\d[,_]\d|\.\d+\.", found[2])):
        bare = _without_commas(found[2].replace("_", ""))
        what = "spaces" if joined != text else "commas and underscores" if re.search("[,_]", found[2]) else "two dots"
        return UnitError("ambiguous-number", f"'{text}': {what} do not belong in numbers",
                         f'write "{found[1]}{bare}{found[3]}"' if bare else _NO_COMMAS)  # fmt: skip
    return UnitError("wrong-type", f"'{text[:60]}' is not {dimension.noun}; '{field}' wants {dimension.wants}",
                     _write(Fraction(dimension.sample), dimension))  # fmt: skip


def _without_commas(number: str) -> str:
    """A number as we write it: 1,000 is a thousand, 1,5 and 0,125 have a decimal comma; "" where it is neither."""
    whole, comma, last = number.rpartition(",")
    if not comma and number.count(".") > 1:
        return number.replace(".", "")
    if not comma or "." in last or (len(last) == 3 and whole != "0"):
        return number.replace(",", "")
    return "" if "," in whole else f"{whole.replace('.', '')}.{last}"


def _not_a_quantity(kind: str, dimension: Dimension, field: str) -> UnitError:
    return UnitError(
        "wrong-type", f"{field} is {kind}; it wants {dimension.wants}", _write(Fraction(dimension.sample), dimension)
    )


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    kinds = {bool: "true or false", list: "a list", tuple: "a list", dict: "a mapping"}
    return kinds.get(type(value), "not text")


def _write(number: Fraction, dimension: Dimension) -> str:
    return "write " + " or ".join(f'"{_fill(example, number)}"' for example in dimension.examples)


def _fill(example: str, number: Fraction) -> str:
    return re.sub(r"\{n\*?(\d*)\}", lambda m: _plain(number * int(m.group(1) or 1)), example)


def _plain(number: Fraction) -> str:
    """Shortest everyday form of a number: no exponent below 10^16, no trailing zeros."""
    if number.denominator == 1 and abs(number) < 10**16:
        return str(number.numerator)
    return f"{float(number):.10g}"


def _float(value: object, dimension: Dimension, field: str) -> float:
    exact = parse_exact(value, dimension, field=field)
    try:
        return float(exact)
    except OverflowError:
        raise UnitError("out-of-range", f"'{value}' is too large for {field}", "write a smaller number") from None


def parse_bytes(value: object, *, field: str = "value") -> float:
    """Memory or data, "80 GB", in bytes."""
    return _float(value, MEMORY, field)


def parse_duration(value: object, *, field: str = "value") -> float:
    """A time, "30 days", in seconds; a month is 730 h."""
    return _float(value, TIME, field)


def parse_latency(value: object, *, field: str = "value") -> float:
    """A time of moments, "500 ms", in seconds."""
    return _float(value, LATENCY, field)


def parse_tokens(value: object, *, field: str = "value") -> float:
    """Tokens: 4096, "200B", "2T tokens"."""
    return _float(value, TOKENS, field)


def parse_count(value: object, *, field: str = "value") -> int:
    """A whole number of things: 8, "64k", 1e3."""
    return _whole(value, COUNT, field)


def parse_number(value: object, *, field: str = "value") -> float:
    """A number without a unit, not always whole: 0.5, "1.5k", 1e3."""
    return _float(value, COUNT, field)


def parse_parameters(value: object, *, field: str = "value") -> int:
    """A whole number of parameters: "8B", "70B parameters"."""
    return _whole(value, PARAMETERS, field)


def _whole(value: object, dimension: Dimension, field: str) -> int:
    exact = parse_exact(value, dimension, field=field)
    if exact.denominator != 1:
        raise UnitError("out-of-range", f"{field} is {value}; it must be a whole number",
                        f"write {round(exact)}")  # fmt: skip
    return exact.numerator


def parse_sequences(value: object, *, field: str = "value") -> float:
    """Sequences: "512 sequences"; a bare number is refused, it could be tokens."""
    return _float(value, SEQUENCES, field)


def parse_rate_bytes(value: object, *, field: str = "value") -> float:
    """A data rate, "100 Gbit/s" or "3350 GB/s", in bytes per second."""
    return _float(value, DATA_RATE, field)


def parse_flop_rate(value: object, *, field: str = "value") -> float:
    """A compute rate, "989 TFLOP/s" or "1979 TOP/s", in operations per second."""
    return _float(value, FLOP_RATE, field)


def parse_money(value: object, *, field: str = "value", rates: Rates | None = NO_RATES) -> int:
    """Money, "$60000" or "€50000", in micro-dollars, rounded half to even once.

    Parameters
    ----------
    value
        Text or number as read from a file.
    field
        Name of the quantity in messages.
    rates
        Dollars for other currencies; None: as if all were dollars.

    Raises
    ------
    UnitError
        It is not an amount of money, or in a currency that has no rate.
    """
    return _dollars(value, MONEY, field, rates)


def parse_price(value: object, *, field: str = "value", rates: Rates | None = NO_RATES) -> int:
    """Money per time, "$2.49/h" or "2.30 EUR/h", in micro-dollars per hour, rounded half to even once.

    Parameters
    ----------
    value
        Text or number as read from a file.
    field
        Name of the quantity in messages.
    rates
        Dollars for other currencies; None: as if all were dollars.

    Raises
    ------
    UnitError
        It is not a price per time, or in a currency that has no rate.
    """
    return _dollars(value, PRICE, field, rates)


def parse_energy_price(value: object, *, field: str = "value", rates: Rates | None = NO_RATES) -> int:
    """Money per energy, "$0.12/kWh" or "€110/MWh", in micro-dollars per kWh, rounded half to even once.

    Parameters
    ----------
    value
        Text or number as read from a file.
    field
        Name of the quantity in messages.
    rates
        Dollars for other currencies; None: as if all were dollars.

    Raises
    ------
    UnitError
        It is not a price of energy, or in a currency that has no rate.

    Examples
    --------
    >>> parse_energy_price("$120/MWh"), parse_energy_price("0.12 USD/kWh")
    (120000, 120000)
    """
    return _dollars(value, ENERGY_PRICE, field, rates)


def _dollars(value: object, dimension: Dimension, field: str, rates: Rates | None) -> int:
    if not isinstance(value, str):
        return round(parse_exact(value, dimension, field=field))
    code = currency_named(value)
    if "¥" in value:
        raise UnitError("mixed-currency", f"'{value}': ¥ is the sign of the yen and of the yuan",
                        "write JPY or CNY in its place, after the amount")  # fmt: skip
    if code is not None and rates is not None and code not in rates.dollars:
        raise UnitError("mixed-currency", f"'{value}' is in {code}, and no rate to dollars is known",
                        f"write currency: {{{code}: …, as_of: 2026-11-01}} in the scenario, the dollars that one "
                        f"{code} was worth that day; or the amount in dollars")  # fmt: skip
    written = as_if_dollars(value)
    if meant := _two_amounts(value, dimension, code):
        raise UnitError("ambiguous-number", f"'{value}': a thousand times as much may be meant",
                        f'write "{meant[0]}" or "{meant[1]}"')  # fmt: skip
    try:
        amount = parse_exact(written, dimension, field=field)
    except UnitError as error:  # whoever follows a hint that turned euros into dollars pays the wrong amount
        message = error.message.replace(written[:40], value.strip()[:40])
        raise UnitError(error.reference, message, in_currency(error.hint, code) if code else error.hint) from None
    return round(amount * (rates.exact(code) if code and rates is not None else 1))


def _two_amounts(value: str, dimension: Dimension, code: str | None) -> list[str]:
    """What one group of three digits may mean: 9.500 of a budget, which has cents, and 9,500 EUR/h of a price."""
    found = _GROUP.search(value)
    if found is None:
        return []
    whole, sign, last = found.groups()
    dotted = dimension is MONEY and sign == "." and (code or last.endswith("0"))
    if not (dotted or (dimension is not MONEY and sign == "," and code in _COMMA_OF_DECIMALS)):
        return []
    decimals = f"{whole}.{last.rstrip('0')}{'0' * (dotted and last[-1] != '0')}"  # which is not asked about again
    return [value.replace(found[0], meant.removesuffix(".")) for meant in (whole + last, decimals)]


def parse_power(value: object, *, field: str = "value") -> float:
    """Power, "120 kW", in watts."""
    return _float(value, POWER, field)


def parse_fraction(value: object, *, field: str = "value") -> float:
    """A share, "30 %" or 0.3, as a number; the range is the caller's to check."""
    return _float(value, FRACTION, field)


def parse_change(value: object, *, field: str = "value") -> float:
    """A share that may be negative, "-20 %", as a number; the range is the caller's to check.

    >>> parse_change("-20 %"), parse_change(0.5)
    (-0.2, 0.5)
    """
    text = value.lstrip() if isinstance(value, str) else ""
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        text = repr(value)
    if text[:1] not in ("-", "+"):
        return _float(value, FRACTION, field)
    change = _float(text[1:], FRACTION, field) * (-1 if text[0] == "-" else 1)
    if abs(change) >= 1 and "%" not in text:  # -5 was six times the price
        raise UnitError("ambiguous-number", f"{field} is {value}: a share, or a percentage?",
                        f'write "{text} %", or "{text[0]}{_plain(Fraction(abs(change)) * 100)} %"')  # fmt: skip
    return change


def parse_mass(value: object, *, field: str = "value") -> float:
    """Mass (of CO2), "5 t", in grams."""
    return _float(value, MASS, field)


def parse_carbon_intensity(value: object, *, field: str = "value") -> float:
    """Mass (of CO2) for each unit of energy, "380 g/kWh", in grams per kilowatt-hour."""
    return _float(value, CARBON_INTENSITY, field)


def parse_token_rate(value: object, *, field: str = "value") -> float:
    """Tokens per time, "2100 tokens/s", in tokens per second."""
    return _float(value, TOKEN_RATE, field)


def parse_request_rate(value: object, *, field: str = "value") -> float:
    """Events per time, "16 /s" or "0.05 /h", per second."""
    return _float(value, REQUEST_RATE, field)
