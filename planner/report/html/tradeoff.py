"""What sooner costs: the front of each job alone, and the proven frontier of all where one was swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner import units
from planner.plan.asked import currency_of
from planner.plan.frontier.figure import SHOWN, hover
from planner.plan.frontier.model import FrontierDocument, JobChosen, JobPoint, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.escape import html
from planner.report.html.figures import ALERT, COLOURS, QUIET, key_of, layout, upright
from planner.report.html.parts import Figure

_DAY = 24.0
_MICRO = 1e6
_MOST_FIGURES = 6
_HEIGHT = 280
_CROSS = {"size": 9, "color": QUIET, "symbol": "x-thin-open", "line": {"width": 2}}


def job_figures(document: PlanDocument, tradeoffs: Sequence[Tradeoff]) -> list[Figure]:
    """One figure a job with a choice, those with the most at stake."""
    open_ = [job for job in tradeoffs if len(job["points"]) > 1]
    at_stake = sorted(open_, key=lambda job: job["points"][-1]["cost_microusd"] - job["points"][0]["cost_microusd"])
    return [_figure(document, job, number) for number, job in enumerate(at_stake[:_MOST_FIGURES])]


def _figure(document: PlanDocument, job: Tradeoff, number: int) -> Figure:
    points = job["points"]
    timely = [point for point in points if point["on_time"]]
    late = [point for point in points if not point["on_time"]]
    traces = [
        _line(points),
        _marks(document, timely, "meets the deadline", {"size": 9, "color": COLOURS[0]}),
        _marks(document, late, "misses it at the confidence asked for", _CROSS),
    ]
    if job["chosen"]:
        mark = {"size": 17, "color": ALERT, "symbol": "star", "line": {"width": 0}}
        traces.append(_marks(document, [job["chosen"]], "this plan", mark))
    ends = [point["finish_hours"] / _DAY for point in points]
    made = _axes(document, "finish, days after the beginning")
    if job["deadline_hours"]:
        due = job["deadline_hours"] / _DAY
        made["shapes"] = [_deadline(due)]
        ends.append(due)
    made["xaxis"]["range"] = [0, max(ends) * 1.04]
    return Figure(
        id=f"tradeoff-figure-{number + 1}",
        title=f"{job['workload']}: cost against finish, alone",
        summary=f"{len(points)} ways to run {job['workload']}, from the soonest to the cheapest; "
        "the table below gives each",
        traces=[trace for trace in traces if trace["x"]],
        layout=made,
        height=_HEIGHT,
        key=key_of(traces),
    )


def _axes(document: PlanDocument, title: str) -> dict[str, Any]:
    y_axis = {
        "title": {"text": html(currency_of(document)), "font": {"size": 12}},
        "fixedrange": True, "automargin": True, "rangemode": "tozero", "tickformat": "~s", "zeroline": False,
        "nticks": 6,
    }  # fmt: skip
    return layout(title, height=_HEIGHT, yaxis=y_axis)


def _deadline(day: float) -> dict[str, Any]:
    """The deadline as a dashed line with its name."""
    label = {"text": "deadline", "textposition": "end", "textangle": 0, "xanchor": "right", "yanchor": "top"}
    return {**upright(day, ALERT, "dash"), "label": label}


def _line(points: Sequence[JobPoint]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
        "x": [point["finish_hours"] / _DAY for point in points],
        "y": [point["cost_microusd"] / _MICRO for point in points],
        "line": {"shape": "hv", "width": 1.5, "color": QUIET},
    }  # fmt: skip


def _marks(document: PlanDocument, points: Sequence[JobChosen], name: str, marker: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "marker": dict(marker), "cliponaxis": False,
        "x": [point["finish_hours"] / _DAY for point in points],
        "y": [point["cost_microusd"] / _MICRO for point in points],
        "customdata": [_told(document, point) for point in points],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _told(document: PlanDocument, point: JobChosen) -> str:
    finish = units.format_duration(point["finish_hours"] * 3600)
    cost = words.money(document, point["cost_microusd"])
    return f"{point['count']:,} × {html(point['device'])}<br>{finish}, {cost}"


def job_table(document: PlanDocument, tradeoffs: Sequence[Tradeoff]) -> Grid:
    """Every point of every front, soonest first."""
    rows = []
    for job in tradeoffs:
        before: JobPoint | None = None
        for point in job["points"]:
            rows.append(_row(document, job, point, before))
            before = point
    heads = columns(
        "Workload", "Device", ">Shapes", ">Devices", ">Finish", ">At confidence", ">Cost", ">Saved by waiting", ""
    )
    return Grid(title="Ways to run each job alone, soonest first", columns=heads, rows=rows, grouped=True)


def _row(document: PlanDocument, job: Tradeoff, point: JobPoint, before: JobPoint | None) -> list[str]:
    saved = words.money(document, before["cost_microusd"] - point["cost_microusd"]) if before else "–"
    return [
        job["workload"],
        point["device"],
        f"{point['count']:,}",
        f"{point['devices']:,}",
        units.format_duration(point["finish_hours"] * 3600),
        units.format_duration(point["finish_at_confidence_hours"] * 3600),
        words.money(document, point["cost_microusd"]),
        saved,
        "this plan" if point["here"] else "" if point["on_time"] else "over the deadline",
    ]


def frontier_figure(document: PlanDocument, frontier: FrontierDocument) -> Figure | None:
    """The proven frontier: a plan a point, a step where the next becomes possible."""
    points, sweep = frontier["points"], frontier["sweep"]
    if len(points) < 2:
        return None
    over, unit, size = SHOWN[sweep["over"]]
    against, other, scale = SHOWN[sweep["against"]]
    xs, ys = [point["from"] / size for point in points], [point["against"] / scale for point in points]
    steps = {"x": xs, "y": ys, "type": "scatter", "line": {"shape": "hv", "width": 1.5, "color": QUIET}}
    traces: list[dict[str, Any]] = [{**steps, "mode": "lines", "hoverinfo": "skip", "showlegend": False}]
    for here, name, marker in (
        (False, "a plan", {"size": 9, "color": COLOURS[0]}),
        (True, "within the scenario's own limit", {"size": 17, "color": ALERT, "symbol": "star"}),
    ):
        mine = [number for number, point in enumerate(points) if point["here"] == here]
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": name, "marker": marker, "cliponaxis": False,
                "x": [xs[n] for n in mine], "y": [ys[n] for n in mine],
                "customdata": [hover(points[n]) for n in mine],
                "hovertemplate": f"%{{customdata}}<br>{over} %{{x:,.4g}} {unit}<br>"
                f"{against} %{{y:,.5g}} {other}<extra></extra>",
            }
        )  # fmt: skip
    made = _axes(document, f"{over} at least, {unit}")
    made["yaxis"]["title"]["text"] = f"{against}, {other}"
    return Figure(
        id="frontier-figure",
        title=f"Frontier: {against} against {over}, proven",
        summary=f"{len(points)} plans, each the best for some {over}; the table below gives the same figures",
        traces=[trace for trace in traces if trace["x"]],
        layout=made,
        height=_HEIGHT,
        key=key_of(traces),
    )
