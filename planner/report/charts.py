"""Charts as data, in the units of their axes: marks, series, and where a value stands between two ends.

Nothing here knows how a chart is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import NamedTuple

from planner.carriers import dataclass

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


BAR = 0.21  # half of the height of a bar, of a row
_LONGEST, _FIGURES = 46, 24  # characters of a label that a narrow page can show, and of the figures in it
_ROW_HEIGHT = 46  # of a bar with its label above [px]


class Box(NamedTuple):
    """A bar: from `left` to `right`, from `low` to `high`."""

    left: float
    right: float
    low: float
    high: float
    told: str  # what hovering tells


class Dot(NamedTuple):
    """A mark at a point."""

    x: float
    y: float
    told: str


class Label(NamedTuple):
    """A line of text at a height: a name at the left, figures at the right."""

    y: float
    name: str
    figures: str = ""


Path = Sequence[tuple[float, float]]  # points of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Things of one kind: they look alike, and share a line of the key."""

    name: str  # "" stands in no key
    look: str  # a class of chart.css: fill-0 to fill-9, area, steps, dots, dashes, tick, circle, diamond, star, cross
    boxes: Sequence[Box] = ()
    dots: Sequence[Dot] = ()
    paths: Sequence[Path] = ()

    def __bool__(self) -> bool:
        return bool(self.boxes or self.dots or self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing on two axes."""

    x: Axis
    y: Axis
    height: int  # of what lies between the ends of the y axis [px]
    series: Sequence[Series]
    labels: Sequence[Label] = ()
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure: panels below each other, and the words for those who cannot see it."""

    id: str  # of its element
    title: str
    summary: str  # what it shows, and which table gives the same figures
    panels: Sequence[Panel]
    key: Sequence[tuple[str, str]] = field(default=())  # look and what it stands for


def chart(*, id: str, title: str, summary: str, panels: Sequence[Panel], with_key: bool = True) -> Chart:
    """A chart with its key; kinds of things of which there are none are left out.

    Parameters
    ----------
    id
        Of the figure's element on the page.
    title
        Above the figure.
    summary
        What it shows, and which table gives the same figures, for those who cannot see it.
    panels
        From the top.
    with_key
        Whether it has a key; series without a name stand in none.
    """
    shown = [series for panel in panels for series in panel.series if series and series.name]
    key = list(dict.fromkeys((series.look, series.name) for series in shown)) if with_key else []
    return Chart(id=id, title=title, summary=summary, panels=panels, key=key)


def rows_panel(x: Axis, series: Sequence[Series], labels: Sequence[tuple[str, str]]) -> Panel:
    """Rows of bars below each other, a label above each: names at the left, figures at the right.

    Parameters
    ----------
    x
        The axis that bars lie along.
    series
        Bars and marks, whose rows are numbered from 0 at the top.
    labels
        Name and figures of each row, from the top; what is too long for a narrow page is cut.
    """
    count = len(labels)
    placed = [_label(row, name, figures) for row, (name, figures) in enumerate(labels)]
    return Panel(x=x, y=rows_axis(count), height=round((count + 0.28) * _ROW_HEIGHT), series=series, labels=placed)


def _label(row: int, name: str, figures: str) -> Label:
    """A label, no longer than a narrow page can show; tables have names whole."""
    figures = cut(figures, _FIGURES)
    return Label(row, cut(name, _LONGEST - len(figures)), figures)


def cut(text: str, most: int = _LONGEST) -> str:
    """Text that a narrow page can show."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def bars(name: str, number: int, spans: Sequence[tuple[int, float, float, str]], thickness: float = BAR) -> Series:
    """Bars that lie: row, begin, end and what each tells.

    Parameters
    ----------
    name
        For the key; "" = not in it.
    number
        Of the kind, which decides on the look: ten of them differ.
    spans
        Row from zero, begin and end on the x axis, what hovering tells.
    thickness
        Half of a bar's height.  [rows]
    """
    boxes = [Box(begin, end, row - thickness, row + thickness, told) for row, begin, end, told in spans]
    return Series(name=name, look=f"fill-{number % 10}", boxes=boxes)


def ticks(name: str, places: Sequence[tuple[int, float, str]]) -> Series:
    """Upright strokes at rows: limits that bars are held against."""
    return Series(name=name, look="tick", dots=[Dot(x, row, told) for row, x, told in places])


def marks(name: str, look: str, places: Sequence[tuple[int, float, str]]) -> Series:
    """Marks at rows.

    Parameters
    ----------
    name
        For the key; "" = not in it.
    look
        A class of chart.css for dots: diamond, circle, star ...
    places
        Row from zero, place on the x axis, what hovering tells.
    """
    return Series(name=name, look=look, dots=[Dot(x, row, told) for row, x, told in places])


def stacked(rows: Sequence[Sequence[float]]) -> list[list[tuple[float, float]]]:
    """Begin and end of each part where the parts of a row stand behind each other; a list of parts each."""
    found: list[list[tuple[float, float]]] = [[] for _ in rows]
    ends = [0.0] * (len(rows[0]) if rows else 0)
    for part, sizes in enumerate(rows):
        for place, size in enumerate(sizes):
            found[part].append((ends[place], ends[place] + size))
            ends[place] += size
    return found


def steps(points: Sequence[tuple[float, float]]) -> Path:
    """A line that stays until the next point is possible: between two points the tighter one's value rules."""
    path = list(points[:1])
    for x, y in points[1:]:
        path += [(x, path[-1][1]), (x, y)]
    return path
