"""What a chart is made of, in the units of its axes; nothing here knows how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from planner.carriers import dataclass
from planner.report.chart.scale import Axis, rows_axis

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
