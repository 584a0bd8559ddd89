"""The frontier as a chart: a step line, since between two points the tighter plan's limit rules."""

from __future__ import annotations

from planner.plan.model.frontier import FrontierDocument, FrontierPoint
from planner.report.chart.model import Chart, Dot, Panel, Series, chart, steps
from planner.report.chart.scale import linear

_SHOWN = {
    "deadline": ("deadline", "days", 24.0),
    "time": ("finish", "days", 24.0),
    "budget": ("budget", "USD", 1.0),
    "cost": ("cost", "USD", 1.0),
    "carbon": ("carbon", "kg CO2", 1.0),
}
_HEIGHT = 260  # [px]


def frontier_chart(document: FrontierDocument) -> Chart | None:
    """A plan a point, a step where the next becomes possible; None where there is one plan or none."""
    points, sweep = document["points"], document["sweep"]
    if len(points) < 2:
        return None
    over, unit, size = _SHOWN[sweep["over"]]
    against, other, scale = _SHOWN[sweep["against"]]
    placed = [(point["from"] / size, point["against"] / scale) for point in points]
    dots = [Dot(x, y, f"{_rented(point)}: {over} {x:,.4g} {unit}, {against} {y:,.5g} {other}")
            for (x, y), point in zip(placed, points)]  # fmt: skip
    low, high = placed[0][0], placed[-1][0]
    room = 0.04 * (high - low)
    series = [
        Series(name="", look="steps", paths=[steps(placed)]),
        *(
            Series(name=name, look=look, dots=[dot for dot, point in zip(dots, points) if point["here"] == here])
            for here, name, look in ((False, "a plan", "circle"), (True, "within the scenario's own limit", "star"))
        ),
    ]
    x_axis = linear(low - room, high + room, f"{over} at least, {unit}")
    y_axis = linear(0.0, 1.06 * max(y for _, y in placed), other, most=4)
    return chart(
        id="frontier-figure",
        title=f"Frontier: {against} against {over}",
        summary=f"{len(points)} plans, each the best for some {over}; the table below gives the same figures",
        panels=[Panel(x=x_axis, y=y_axis, height=_HEIGHT, series=series)],
    )


def _rented(point: FrontierPoint) -> str:
    """What each workload rents."""
    return ", ".join(
        f"{workload['name']}: {row['count']} × {row['offer']}"
        for workload in point["workloads"]
        for row in workload["allocations"]
    )
