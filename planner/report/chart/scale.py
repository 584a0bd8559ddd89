"""Axes: where a value stands between the two ends, and which round values are marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_DAY = 24.0
_DATE_STEPS = (1, 2, 7, 14)  # days; months beyond
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)


class Mark(NamedTuple):
    """A value of an axis and its text."""

    at: float
    text: str


class Axis(NamedTuple):
    """An axis from `low` to `high`, which may run downwards."""

    low: float
    high: float
    title: str = ""
    marks: Sequence[Mark] = ()
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value stands: 0 at `low`, 1 at `high`."""
        low, high, value = (math.log10(one) for one in (self.low, self.high, value)) if self.log else (*self[:2], value)
        return (value - low) / (high - low) if high != low else 0.5


def rows_axis(count: int) -> Axis:
    """Rows that are read from the top, with room for a label above the first."""
    return Axis(count - 0.5, -0.78)


def linear(
    low: float, high: float, title: str = "", *, most: int = 6, shown: Callable[[float], str] | None = None
) -> Axis:
    """An axis of numbers with round marks, about `most` of them.

    Parameters
    ----------
    low, high
        Ends of the axis; one that would be empty or run downwards gets a length of 1.
    title
        Of the axis; "" = none.
    most
        Steps from mark to mark, at most: there may be one mark more.
    shown
        A mark as text; None = `si`.
    """
    high = high if high > low else low + 1.0
    step = _round_step((high - low) / most)
    first = math.ceil(low / step - 1e-9)
    values = [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]
    return Axis(low, high, title, [Mark(value, (shown or si)(value)) for value in values])


def _round_step(rough: float) -> float:
    """The next round number that is no smaller."""
    scale = 10.0 ** math.floor(math.log10(rough))
    return next((step * scale for step in _STEPS if step * scale >= rough * (1 - 1e-9)), 10 * scale)


def logarithmic(low: float, high: float, title: str = "") -> Axis:
    """An axis of powers of ten, with marks at 1, 2 and 5 of each where there are few.

    Parameters
    ----------
    low, high
        Ends of the axis, both above 0.
    title
        Of the axis; "" = none.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    values = [factor * 10.0**decade for decade in decades for factor in factors]
    marks = [Mark(value, si(value)) for value in values if low <= value <= high]
    return Axis(low, high, title, marks, log=True)


def dates(begin: str, hours: float) -> Axis:
    """An axis of hours after a date, marked with dates; its values are hours.

    Parameters
    ----------
    begin
        As 2027-01-04, with or without a time of the day.
    """
    first = datetime.fromisoformat(begin)
    marks = [Mark(at, text) for day, text in _round_dates(first, hours) if 0 <= (at := _hours(first, day)) <= hours]
    return Axis(0.0, hours, "", marks)


def _hours(first: datetime, day: datetime) -> float:
    return (day - first).total_seconds() / 3600


def _round_dates(first: datetime, hours: float) -> list[tuple[datetime, str]]:
    """Days, or first days of months, six at most."""
    days = hours / _DAY
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    for step in _DATE_STEPS:
        if days / step <= 5:
            found = [midnight + timedelta(days=step * number) for number in range(8)]
            return [(day, f"{day:%m-%d}") for day in found]
    for step in _MONTH_STEPS:
        if days / 30.4 / step <= 5:
            return [(day, f"{day:%Y-%m}") for day in _months(midnight, step)]
    return [(midnight, f"{midnight:%Y-%m}")]


def _months(midnight: datetime, step: int) -> list[datetime]:
    """First days of every `step`-th month, counted from January."""
    start = midnight.year * 12 + midnight.month - 1
    start += -start % step
    months = [start + step * number for number in range(8)]
    return [midnight.replace(year=month // 12, month=month % 12 + 1, day=1) for month in months if month // 12 < 9999]


def si(value: float) -> str:
    """A round number in few characters: 0, 2.5, 20k, 1.5M.

    >>> [si(value) for value in (0, 0.25, 12, 2500, 20_000, 1_500_000, 3e9)]
    ['0', '0.25', '12', '2.5k', '20k', '1.5M', '3G']
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (1 - 1e-9):
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}" if abs(value) > 1e-12 else "0"
