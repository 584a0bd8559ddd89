"""A chart as SVG: shares of the width across, pixels down, so that it fits any page without a script.

Texts keep their size however wide the page is, and everything that is drawn says its figures in a `title`. Colours
are classes of `chart.css`, which a page has in its own style; an SVG that stands alone, in a notebook or as a file, has
them inside itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from planner.files import read_package_text
from planner.report.charts import Box, Chart, Dot, Label, Mark, Panel, Path, Series
from planner.report.escape import html

COLOURS = ("#3f7fbf", "#d98c3f", "#4f9d69", "#a377b8", "#c2605b", "#4aa3a8", "#b39b3c", "#8a93a0", "#b5739a", "#6f8f4e")
_OVER = (  # what is drawn over each colour, so that it is told apart without seeing colours
    "",
    "M0 7L7 0",
    "M2 2h2v2h-2z",
    "M0 7L7 0M0 0L7 7",
    "M0 0L7 7",
    "M0 3.5H7",
    "M0 3.5H7M3.5 0V7",
    "M3.5 0V7",
    "M0 7L7 0M0 3.5H7",
    "M2 2h2v2h-2zM0 7L7 0",
)
_SHAPES = {
    "diamond": "M0 -6L6 0L0 6L-6 0Z",
    "star": "M0 -9L2.1 -2.9L8.6 -2.8L3.4 1.1L5.3 7.3L0 3.6L-5.3 7.3L-3.4 1.1L-8.6 -2.8L-2.1 -2.9Z",
    "cross": "M-4.5 -4.5L4.5 4.5M-4.5 4.5L4.5 -4.5",
    "square": "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "triangle": "M0 -6L6 5H-6Z",
}
_TICK = 11  # half of the height of an upright stroke [px]
_TITLE, _UNIT, _AXIS, _AXIS_TITLE = 26, 24, 22, 18  # above a panel, and below it [px]
_EDGE = 8.0  # at the left of an axis with numbers on it, and at the right of all [% of the width]
_RIGHT = 1.5
_LONG = 6  # characters of a mark that is left out where it would not stand below its rule
_LINE = 15  # the foot of a label above the middle of its row [px]


def _room(panel: Panel) -> int:
    below = _AXIS + (_AXIS_TITLE if panel.x.title else 0) if panel.x.marks else 6
    return _above(panel) + panel.height + below


def _above(panel: Panel) -> int:
    return (_TITLE if panel.title else 8) + (_UNIT if panel.y.title else 0)


def svg(chart: Chart) -> str:
    """The drawing, for a page that has the rules and the fills."""
    parts, height = panels_of(chart)
    named = f'role="img" aria-label="{html(chart.summary)}"'
    return "\n".join(
        [f'<svg class="chart" id="{html(chart.id)}" {named} width="100%" height="{height}">', *parts, "</svg>"]
    )


def panels_of(chart: Chart) -> tuple[list[str], int]:
    """The panels below each other, and their height.  [px]"""
    parts, top = [], 0
    for panel in chart.panels:
        parts += [f'<svg y="{top}" width="100%" height="{_room(panel)}" overflow="visible">', *_panel(panel), "</svg>"]
        top += _room(panel)
    return parts, top


def style() -> str:
    """The rules that a drawing needs."""
    return read_package_text("report/chart/chart.css")


def patterns() -> str:
    """What bars are filled with; once a page."""
    made = []
    for number, (colour, over) in enumerate(zip(COLOURS, _OVER)):
        lines = f'<path d="{over}" fill="none" stroke="#fff" stroke-opacity=".65" stroke-width="1.2"/>' if over else ""
        made.append(
            f'<pattern id="fill-{number}" width="7" height="7" patternUnits="userSpaceOnUse">'
            f'<rect width="7" height="7" fill="{colour}"/>{lines}</pattern>'
        )
    return f"<defs>{''.join(made)}</defs>"


def mark(look: str) -> str:
    """A sample of a look, for a key."""
    return f'<svg class="chart mark" width="18" height="14" aria-hidden="true">{sample(look)}</svg>'


def sample(look: str) -> str:
    """What a look looks like, 18 by 14 pixels."""
    kind = look.split()[0]
    if kind.startswith("fill-"):
        return f'<rect class="{look}" width="18" height="14"{_filled(look)}/>'
    if kind in ("dots", "dashes", "steps"):
        return f'<line class="{look}" x1="0" y1="7" x2="18" y2="7"/>'
    if kind == "area":
        return f'<rect class="{look}" y="3" width="18" height="11"/>'
    if kind == "tick":
        return f'<line class="{look}" x1="9" y1="0" x2="9" y2="14"/>'
    return f'<svg x="9" y="7" overflow="visible">{_shape(look)}</svg>'


def _panel(panel: Panel) -> Iterator[str]:
    place = _Place(panel)
    if panel.title:
        yield f'<text class="name" x="0" y="16">{html(panel.title)}</text>'
    yield from _scales(panel, place)
    for series in panel.series:
        yield from _series(series, place)
    yield from (text for label in panel.labels for text in _label(label, place))


class _Place:
    """Where values of a panel stand."""

    def __init__(self, panel: Panel) -> None:
        self.panel, self.top = panel, _above(panel)
        self.left = _EDGE if panel.y.marks else 0.0

    def x(self, value: float) -> float:
        """[% of the width]"""
        return self.left + self.panel.x.share(value) * (100 - self.left - _RIGHT)

    def y(self, value: float) -> float:
        """[px]"""
        return self.top + (1 - self.panel.y.share(value)) * self.panel.height


def _scales(panel: Panel, place: _Place) -> Iterator[str]:
    """Rules at the marked values, and their texts: those of the y axis stand upon their rules."""
    bottom = place.top + panel.height
    for one in panel.x.marks:
        x = place.x(one.at)
        yield f'<line class="rule" x1="{_n(x)}%" y1="{place.top}" x2="{_n(x)}%" y2="{bottom}"/>'
        half = len(one.text)  # [% of the width of a narrow page]
        anchor = "start" if x < half else "end" if x + half > 100 else "middle"
        if anchor == "middle" or len(one.text) < _LONG:
            yield f'<text class="soft" x="{_n(x)}%" y="{bottom + 16}" text-anchor="{anchor}">{html(one.text)}</text>'
    for mark in panel.y.marks:
        yield from _upon(mark, place)
    if panel.y.title:
        yield f'<text class="soft" x="0" y="{place.top - _UNIT + 6}">{html(panel.y.title)}</text>'
    if panel.x.title and panel.x.marks:
        y = bottom + _AXIS + 13
        yield f'<text class="soft" x="50%" y="{y}" text-anchor="middle">{html(panel.x.title)}</text>'


def _upon(mark: Mark, place: _Place) -> Iterator[str]:
    y = place.y(mark.at)
    yield f'<line class="rule" x1="0" y1="{_n(y)}" x2="100%" y2="{_n(y)}"/>'
    yield f'<text class="soft" x="0" y="{_n(y - 4)}">{html(mark.text)}</text>'


def _series(series: Series, place: _Place) -> Iterator[str]:
    for path in series.paths:
        yield from _lines(series, path, place)
    for box in series.boxes:
        yield _box(series, box, place)
    for dot in series.dots:
        yield _dot(series, dot, place)


def _lines(series: Series, path: Path, place: _Place) -> Iterator[str]:
    for (x1, y1), (x2, y2) in pairwise(path):
        ends = f'x1="{_n(place.x(x1))}%" y1="{_n(place.y(y1))}" x2="{_n(place.x(x2))}%" y2="{_n(place.y(y2))}"'
        yield f'<line class="{series.look}" {ends}/>'


def _box(series: Series, box: Box, place: _Place) -> str:
    left, right = place.x(box.left), place.x(box.right)
    top, bottom = sorted((place.y(box.low), place.y(box.high)))
    where = f'x="{_n(left)}%" y="{_n(top)}" width="{_n(max(right - left, 0.15))}%" height="{_n(bottom - top)}"'
    return f'<rect class="{series.look}" {where}{_filled(series.look)}>{_told(box.told)}</rect>'


def _filled(look: str) -> str:
    return f' fill="url(#{look.split()[0]})"' if look.startswith("fill-") else ""


def _dot(series: Series, dot: Dot, place: _Place) -> str:
    x, y = place.x(dot.x), place.y(dot.y)
    if series.look == "tick":
        ends = f'x1="{_n(x)}%" y1="{_n(y - _TICK)}" x2="{_n(x)}%" y2="{_n(y + _TICK)}"'
        return f'<line class="tick" {ends}>{_told(dot.told)}</line>'
    return f'<svg x="{_n(x)}%" y="{_n(y)}" overflow="visible">{_shape(series.look, dot.told)}</svg>'


def _shape(look: str, told: str = "") -> str:
    kind, title = look.split()[0], _told(told) if told else ""
    if kind == "circle":
        return f'<circle class="{look}" r="4.5">{title}</circle>'
    return f'<path class="{look}" d="{_SHAPES[kind]}">{title}</path>'


def _told(text: str) -> str:
    return f"<title>{html(text)}</title>"


def _label(label: Label, place: _Place) -> Iterable[str]:
    y = _n(place.y(label.y) - _LINE)
    yield f'<text class="name" x="0" y="{y}">{html(label.name)}</text>'
    if label.figures:
        yield f'<text class="figures" x="100%" y="{y}" text-anchor="end">{html(label.figures)}</text>'


def _n(value: float) -> str:
    """A coordinate, to a hundredth."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


_WIDTH, _MARGIN = 720, 10  # [px]
_HEADING, _KEY, _BETWEEN = 30, 24, 14  # heights of a title, of a line of a key, and what lies between charts [px]
_IN_A_LINE = 3  # parts of a key


def svg_alone(charts: Sequence[Chart]) -> str:
    """The charts below each other, with a size, a paper and a style of their own."""
    parts: list[str] = []
    top = _MARGIN
    for chart in charts:
        drawn, height = _one(chart)
        parts += [f'<svg x="{_MARGIN}" y="{top}" width="{_WIDTH - 2 * _MARGIN}" height="{height}">', *drawn, "</svg>"]
        top += height + _BETWEEN
    said = html("; ".join(chart.summary for chart in charts))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart alone" role="img" aria-label="{said}"'
    return "\n".join(
        [
            f'{head} width="{_WIDTH}" height="{top}">',
            f"<style>{style()}</style>{patterns()}",
            '<rect class="paper" width="100%" height="100%"/>',
            *parts,
            "</svg>",
        ]
    )


def _one(chart: Chart) -> tuple[list[str], int]:
    """A chart with its title above and its key below, and the height of all of it.  [px]"""
    panels, height = panels_of(chart)
    key_top = _HEADING + height + 6
    whole = key_top + _KEY * -(-len(chart.key) // _IN_A_LINE)
    return [
        f'<text class="title" x="0" y="18">{html(chart.title)}</text>',
        f'<svg y="{_HEADING}" width="100%" height="{height}" overflow="visible">',
        *panels,
        "</svg>",
        *_key(chart, key_top),
    ], whole


def _key(chart: Chart, top: int) -> Iterator[str]:
    for number, (look, name) in enumerate(chart.key):
        x, y = 100 / _IN_A_LINE * (number % _IN_A_LINE), top + _KEY * (number // _IN_A_LINE)
        yield f'<svg x="{x:.2f}%" y="{y}" width="32%" height="20">{sample(look)}'
        yield f'<text x="24" y="12">{html(name)}</text></svg>'
