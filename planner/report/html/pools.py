"""How full each pool is over the calendar: nodes in use against those that are contracted or owned."""

from __future__ import annotations

from typing import Any

from planner.plan.model.bought import PoolUseRow
from planner.plan.model.plan import PlanDocument
from planner.report.html.calendar import Axis
from planner.report.html.figures import ALERT, COLOURS, key_of, layout, named
from planner.report.html.parts import Figure

TITLE = "Nodes of each pool"
_MOST = 4  # pools that are drawn, those with the most nodes; the table has all
_PANEL = 130  # height of one pool [px]


def pool_figure(document: PlanDocument) -> Figure | None:
    """A panel a pool, one below the other on one axis; None without a calendar."""
    plan = document.get("schedule")
    used = sorted(plan["use"], key=lambda use: -max(use["used"], default=0))[:_MOST] if plan else []
    if not plan or not used:
        return None
    axis = Axis(plan["begin"], document["summary"]["horizon_hours"])
    edges = [axis.at(min(n * plan["period_hours"], axis.horizon_hours)) for n in range(plan["periods"] + 1)]
    traces = [trace for number, use in enumerate(used) for trace in _panel(use, edges, number)]
    height = len(used) * _PANEL + 50
    titles = [_title(use, number) for number, use in enumerate(used)]
    made = layout(axis.title, height=height, xaxis=axis.layout(), annotations=titles)
    made |= {_axis("yaxis", number): _nodes(number, len(used)) for number in range(len(used))}
    made["xaxis"] = {**made["xaxis"], "anchor": _axis("y", len(used) - 1)}
    return Figure(
        id="pools-figure",
        title=TITLE,
        summary=f"Nodes in use over {axis.length} in {len(used)} pools, against the nodes under contract or owned; "
        "the table below gives the most of each",
        traces=traces,
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _panel(use: PoolUseRow, edges: list[Any], number: int) -> list[dict[str, Any]]:
    """Steps of what runs, filled, and of what is held."""
    steps = {"type": "scatter", "mode": "lines", "x": edges, "yaxis": _axis("y", number), "hoverinfo": "skip"}
    filled = {"fill": "tozeroy", "line": {"shape": "hv", "width": 1, "color": COLOURS[0]}}
    held = {"line": {"shape": "hv", "width": 2, "color": ALERT, "dash": "dash"}}
    return [
        {**steps, "name": "nodes in use", "y": _stepped(use["used"]), **filled},
        {**steps, "name": "contracted or owned", "y": _stepped(use["reserved"]), **held},
    ]


def _stepped(counts: list[int]) -> list[int]:
    """A count a period, the last one to the end of its period."""
    return [*counts, *counts[-1:]]


def _axis(name: str, number: int) -> str:
    return name if number == 0 else f"{name}{number + 1}"


def _nodes(number: int, count: int) -> dict[str, Any]:
    """The axis of one panel: from the top down, with room for its title."""
    top = 1 - number / count
    return {
        "domain": [top - 0.9 / count, top - 0.2 / count],
        "rangemode": "tozero",
        "fixedrange": True,
        "zeroline": False,
        "nticks": 4,
        "automargin": True,
        "tickformat": "d",
    }


def _title(use: PoolUseRow, number: int) -> dict[str, Any]:
    return {
        "text": f"<b>{named(use['pool'])}</b>", "xref": "paper", "x": 0, "xanchor": "left", "align": "left",
        "yref": f"{_axis('y', number)} domain", "y": 1, "yanchor": "bottom", "yshift": 3, "showarrow": False,
    }  # fmt: skip
