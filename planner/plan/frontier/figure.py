"""The frontier as a plotly figure: a step line, since between two points the tighter plan's limit rules."""

from __future__ import annotations

import html
from typing import Any

from planner.plan.frontier.model import FrontierDocument, FrontierPoint

SHOWN = {
    "deadline": ("deadline", "days", 24.0),
    "time": ("finish", "days", 24.0),
    "budget": ("budget", "USD", 1.0),
    "cost": ("cost", "USD", 1.0),
    "carbon": ("carbon", "kg CO2", 1.0),
}


def figure_of(document: FrontierDocument) -> Any:
    """A figure of all points; texts from the scenario are escaped."""
    import plotly.graph_objects as go

    sweep, points = document["sweep"], document["points"]
    over, unit, size = SHOWN[sweep["over"]]
    against, other, scale = SHOWN[sweep["against"]]
    figure = go.Figure(
        go.Scatter(
            x=[point["from"] / size for point in points],
            y=[point["against"] / scale for point in points],
            text=[hover(point) for point in points],
            mode="lines+markers",
            line={"shape": "hv", "color": "#1f5fa8"},
            marker={"size": 9, "symbol": ["star" if point["here"] else "circle" for point in points]},
            hovertemplate=f"%{{text}}<br>{over} %{{x:,.4g}} {unit}<br>{against} %{{y:,.5g}} {other}<extra></extra>",
            name="plans",
        )
    )
    figure.update_layout(template="plotly_white", height=480, showlegend=False, margin={"t": 30})
    figure.update_xaxes(title_text=f"{over} at least [{unit}]")
    figure.update_yaxes(title_text=f"{against} [{other}]")
    return figure


def hover(point: FrontierPoint) -> str:
    """What each workload rents, a line each."""
    return "<br>".join(
        html.escape(f"{workload['name']}: {row['count']} × {row['offer']}")
        for workload in point["workloads"]
        for row in workload["allocations"]
    )
