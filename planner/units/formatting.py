"""Numbers in base units -> quantities for people: three significant digits by default.

`exact=True` writes what parses back to the very same number.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from planner.units.dimensions import MICRO

_BYTE_STEPS = (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1))
_COUNT_STEPS = (("T", 10**12), ("B", 10**9), ("M", 10**6), ("k", 10**3), ("", 1))
_TIME_STEPS = (("days", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", Fraction(1, 1000)))


def format_bytes(size_bytes: float, *, exact: bool = False) -> str:
    """Memory for people: "20.3 GB"."""
    if exact:
        return _exactly(size_bytes, _BYTE_STEPS)
    return _scaled(size_bytes, _BYTE_STEPS)


def format_count(count: float, *, exact: bool = False) -> str:
    """A count for people: "200 B", "8.03 B", "512"."""
    if exact:
        return _exactly(count, _COUNT_STEPS)
    return _scaled(count, _COUNT_STEPS).strip()


def format_duration(duration_s: float, *, exact: bool = False) -> str:
    """A time for people: "17.9 days", "24 h", "350 ms"."""
    if exact:
        return _exactly(duration_s, _TIME_STEPS)
    if 0 < duration_s < 1:
        return f"{_digits(duration_s * 1000)} ms"
    for unit, size, least in (("days", 86400, 2), ("h", 3600, 2), ("min", 60, 2)):
        if duration_s >= least * size:
            return f"{_digits(duration_s / size)} {unit}"
    return f"{_digits(duration_s)} s"


def format_money(microusd: int, *, exact: bool = False, currency: str = "USD") -> str:
    """Money for people: "$46,225", "$9.80"; exact to the micro-dollar on demand.

    Parameters
    ----------
    microusd
        In millionths of the currency, below 0 too.
    exact
        Every digit to the last millionth, two at least; else cents below 100 and none from there on.
    currency
        ISO code; any but USD stands behind the amount. Nothing is converted.
    """
    sign, dollars = ("-" if microusd < 0 else ""), abs(Decimal(int(microusd)) / MICRO)
    if exact:
        text = f"{dollars:.6f}".rstrip("0")
        whole, part = text.split(".")
        text = f"{whole}.{part:0<2}" if part else whole
    else:
        text = f"{dollars:,.2f}" if 0 < dollars < 100 else f"{dollars:,.0f}"
    return f"{sign}${text}" if currency == "USD" else f"{sign}{text} {currency}"


def format_money_rate(microusd: int, per: str = "h", *, exact: bool = False) -> str:
    """Money per something: "$2.49 /h", "$29,083 /month".

    Parameters
    ----------
    microusd
        For one of `per`.  [micro-USD]
    per
        As it is written after the slash.
    exact
        Every digit to the last millionth.
    """
    return f"{format_money(microusd, exact=exact)} /{per}"


def format_rate_bytes(rate_bytes_per_s: float) -> str:
    """A data rate for people: "3.35 TB/s"."""
    return f"{format_bytes(rate_bytes_per_s)}/s"


def format_percent(share: float, *, exact: bool = False) -> str:
    """A share for people: 0.74 -> "74 %"."""
    if exact:
        return f"{_decimal(Fraction(Decimal(repr(float(share)))) * 100)} %"
    return f"{_digits(share * 100)} %"


def format_percentile(share: float) -> str:
    """A share as scenarios write a confidence: p90."""
    return f"p{100 * share:g}"


def format_number(number: float, digits: int = 3, *, apart: bool = False) -> str:
    """A bare number for people, never with an exponent above zero: "0.57", "1234", "38,900".

    Parameters
    ----------
    number
        It has no unit, or one that is written behind it.
    digits
        That are significant.
    apart
        Whether thousands are set apart below ten to the power of `digits`, too.
    """
    rounded = float(f"{number:.{digits}g}")
    if abs(rounded) >= 10**digits:
        return f"{rounded:,.0f}"
    return f"{number:,.{digits}g}" if apart else f"{number:.{digits}g}"


def counted(number: int, noun: str) -> str:
    """A count with what is counted: "1 node", "2,000 nodes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _digits(number: float) -> str:
    """Three significant digits without exponent: 0.57, 8.03, 20.3, 1234."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.3g}")
    if abs(rounded) >= 1000:
        return f"{number:,.0f}"
    return f"{Decimal(repr(rounded)):f}".removesuffix(".0")


def _scaled(number: float, steps: tuple[tuple[str, int | Fraction], ...]) -> str:
    for unit, size in steps:
        # The rounded value picks the unit, so that 999,999 is 1 M and not 1,000 k.
        if abs(float(f"{number:.3g}")) >= size:
            return f"{_digits(number / size)} {unit}".strip()
    return f"{_digits(number)} {steps[-1][0]}".strip()


def _exactly(number: float, steps: tuple[tuple[str, int | Fraction], ...]) -> str:
    """The largest unit in which the shortest decimal form of a number stays short."""
    value = Fraction(Decimal(repr(number)))
    for unit, size in steps:
        text = _decimal(value / size)
        if value >= size and text and len(text) <= 22:
            return f"{text} {unit}".strip()
    unit, size = steps[-1]
    return f"{_decimal(value / size)} {unit}".strip()


def _decimal(value: Fraction) -> str:
    """A fraction as a finite decimal, or nothing when it has none."""
    twos = fives = 0
    rest = value.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return ""
    places = max(twos, fives)
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits
