"""How full each pool is over the calendar: nodes in use against those that are contracted or owned."""

from __future__ import annotations

from collections.abc import Sequence

from planner.plan.model.bought import PoolUseRow
from planner.plan.model.plan import PlanDocument
from planner.report.chart.model import Box, Chart, Panel, Series, chart, cut
from planner.report.chart.scale import Axis, linear
from planner.report.html.calendar import Calendar

TITLE = "Nodes of each pool"
_MOST = 4  # pools that are drawn, those with the most nodes; the table has all
_PANEL = 80  # height of one pool [px]


def pool_figure(document: PlanDocument) -> Chart | None:
    """A panel a pool, one below the other on one axis; None without a calendar."""
    plan = document.get("schedule")
    used = sorted(plan["use"], key=lambda use: -max(use["used"], default=0))[:_MOST] if plan else []
    if not plan or not used:
        return None
    calendar = Calendar(plan["begin"], document["summary"]["horizon_hours"])
    horizon = calendar.horizon_hours
    edges = [calendar.at(min(n * plan["period_hours"], horizon)) for n in range(plan["periods"] + 1)]
    axis = calendar.axis()
    return chart(
        id="pools-figure",
        title=TITLE,
        summary=f"Nodes in use over {calendar.length} in {len(used)} pools, against the nodes under contract or owned; "
        "the table below gives the most of each",
        panels=[_panel(use, edges, axis._replace(title="") if use is not used[-1] else axis) for use in used],
    )


def _panel(use: PoolUseRow, edges: Sequence[float], axis: Axis) -> Panel:
    """Steps of what runs, filled, and of what is held."""
    running = [
        Box(begin, end, 0.0, count, f"{count:,} nodes in use") for begin, end, count in _runs(use["used"], edges)
    ]
    held = [((begin, count), (end, count)) for begin, end, count in _runs(use["reserved"], edges)]
    most = max([*use["used"], *use["reserved"], 1])
    return Panel(
        x=axis,
        y=linear(0.0, most, "nodes", most=2 if most > 1 else 1),
        height=_PANEL,
        series=[
            Series(name="nodes in use", look="area", boxes=running),
            Series(name="contracted or owned", look="dashes", paths=held),
        ],
        title=cut(use["pool"]),
    )


def _runs(counts: Sequence[int], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    """Periods in a row with the same count, as one: begin, end, count; those of none are left out."""
    found: list[tuple[float, float, int]] = []
    for number, count in enumerate(counts):
        if found and found[-1][2] == count:
            found[-1] = (found[-1][0], edges[number + 1], count)
        else:
            found.append((edges[number], edges[number + 1], count))
    return [run for run in found if run[2]]
