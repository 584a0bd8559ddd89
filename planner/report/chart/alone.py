"""Charts as one SVG that needs nothing around it: a notebook shows it, and a file of it opens anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.report.chart.draw import panels_of, patterns, sample, style
from planner.report.chart.model import Chart
from planner.report.escape import html

_WIDTH, _MARGIN = 720, 10  # [px]
_TITLE, _KEY, _BETWEEN = 30, 24, 14  # heights of a title, of a line of a key, and what lies between charts [px]
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
    key_top = _TITLE + height + 6
    whole = key_top + _KEY * -(-len(chart.key) // _IN_A_LINE)
    return [
        f'<text class="title" x="0" y="18">{html(chart.title)}</text>',
        f'<svg y="{_TITLE}" width="100%" height="{height}" overflow="visible">',
        *panels,
        "</svg>",
        *_key(chart, key_top),
    ], whole


def _key(chart: Chart, top: int) -> Iterator[str]:
    for number, (look, name) in enumerate(chart.key):
        x, y = 100 / _IN_A_LINE * (number % _IN_A_LINE), top + _KEY * (number // _IN_A_LINE)
        yield f'<svg x="{x:.2f}%" y="{y}" width="32%" height="20">{sample(look)}'
        yield f'<text x="24" y="12">{html(name)}</text></svg>'
