"""How figures look: one palette that holds on white and on black, a pattern beside each colour, quiet axes.

What page.css sets (ink, rules, paper) is left out here, so that a figure follows the page into the dark and onto
paper. Names come from users: they are escaped, since plotly reads its texts as HTML, and nothing of them is code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

from planner.report.escape import html

Trace = dict[str, Any]
COLOURS = ("#3f7fbf", "#d98c3f", "#4f9d69", "#a377b8", "#c2605b", "#4aa3a8", "#b39b3c", "#8a93a0", "#b5739a", "#6f8f4e")
PATTERNS = ("", "/", ".", "x", "\\", "-", "+", "|", "/", ".")
QUIET = "#8a93a0"
ALERT = "#c2605b"
ROW_HEIGHT = 46  # of a bar with its label above [px]
_LONGEST = 36  # characters
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_CLEAR = "rgba(0,0,0,0)"
_ABOVE, _BELOW = 4, 46  # around what is drawn: nothing, and the axis with its title [px]


def fill(number: int) -> dict[str, Any]:
    """Colour and pattern of the n-th kind of thing."""
    place = number % len(COLOURS)
    return {
        "color": COLOURS[place],
        "pattern": {
            "shape": PATTERNS[place],
            "fillmode": "overlay",
            "size": 7,
            "solidity": 0.2,
            "fgcolor": "#ffffff",
            "fgopacity": 0.65,
        },
        "line": {"width": 0},
    }


def bars(
    name: str, rows: Sequence[int], values: Sequence[float], texts: Sequence[str], number: int, **more: Any
) -> Trace:
    """Horizontal bars at rows; `texts` are what hovering tells, already escaped."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": html(name),
        "y": list(rows),
        "x": list(values),
        "customdata": list(texts),
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": fill(number),
        "width": 0.42,
        **more,
    }


def ticks(name: str, rows: Sequence[int], values: Sequence[float], texts: Sequence[str], **more: Any) -> Trace:
    """Upright strokes at rows: limits that bars are held against."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": html(name),
        "y": list(rows),
        "x": list(values),
        "customdata": list(texts),
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
        "marker": {"symbol": "line-ns-open", "size": 26, "color": ALERT, "line": {"width": 3, "color": ALERT}},
        **more,
    }


def named(text: str) -> str:
    """A name in a figure: escaped, and no longer than a narrow page can show; tables have it whole."""
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return html(shown)


def labels(texts: Sequence[str]) -> list[dict[str, Any]]:
    """A line of text above the bar of each row, from the left edge: it needs no margin, however narrow the page."""
    return [
        {
            "xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": row, "yshift": 20,
            "text": text, "showarrow": False, "align": "left", "borderpad": 0,
        }
        for row, text in enumerate(texts)
    ]  # fmt: skip


def upright(x: float, colour: str, dash: str) -> dict[str, Any]:
    """A line from the top to the bottom of a figure."""
    line = {"color": colour, "width": 2, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def row_layout(count: int, title: str, **more: Any) -> tuple[dict[str, Any], int]:
    """Layout and height of a figure of `count` rows that are read from the top."""
    height = round((count + 0.28) * ROW_HEIGHT) + _ABOVE + _BELOW
    y_axis = {"range": [count - 0.5, -0.78], "visible": False, "fixedrange": True}
    made = layout(title, height=height, yaxis=y_axis, barmode="stack", **more)
    return made, height


def layout(title: str, *, height: int, **more: Any) -> dict[str, Any]:
    """What all figures share; `title` is that of the x axis."""
    x_axis = {
        "title": {"text": title, "standoff": 6, "font": {"size": 12}},
        "fixedrange": True,
        "zeroline": False,
        "nticks": 7,
        **more.pop("xaxis", {}),
    }
    return {
        "height": height,
        "margin": {"l": 8, "r": 26, "t": _ABOVE, "b": _BELOW},
        "paper_bgcolor": _CLEAR,
        "plot_bgcolor": _CLEAR,
        "font": {"family": _FONT, "size": 13},
        "showlegend": False,
        "hoverlabel": {"bgcolor": "#22272e", "bordercolor": "#22272e", "font": {"color": "#ffffff", "family": _FONT}},
        "hovermode": "closest",
        "dragmode": False,
        "separators": ".,",
        "xaxis": x_axis,
        **more,
    }


def key_of(traces: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The key of a figure, drawn by the page: a narrow page breaks its lines, and no figure has to shrink for it."""
    found: dict[str, str] = {}
    for trace in traces:
        name = trace.get("name")
        if name and any(place is not None for place in trace["x"]):
            found.setdefault(name, _mark(trace))
    return [(mark, unescape(name)) for name, mark in found.items()]


def _mark(trace: Mapping[str, Any]) -> str:
    """The class of page.css that draws what a trace draws."""
    marker = trace.get("marker", {})
    if trace["type"] == "bar":
        return f"fill-{COLOURS.index(marker['color'])}" + (" pale" if "opacity" in marker else "")
    if trace.get("mode") == "lines":
        return "area" if "fill" in trace else "dashes" if trace["line"].get("dash") == "dash" else "dots"
    return str(marker.get("symbol", "circle")).removesuffix("-open")
