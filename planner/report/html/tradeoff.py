"""What sooner costs: the front of each job alone."""

from __future__ import annotations

from collections.abc import Sequence

from planner import units
from planner.plan.asked import currency_of
from planner.plan.model.frontier import JobChosen, JobPoint, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.chart.model import Chart, Dot, Panel, Series, chart, steps
from planner.report.chart.scale import linear

_DAY = 24.0
_MICRO = 1e6
_MOST_FIGURES = 6
_HEIGHT = 210  # [px]


def job_figures(document: PlanDocument, tradeoffs: Sequence[Tradeoff]) -> list[Chart]:
    """One figure a job with a choice, those with the most at stake."""
    open_ = [job for job in tradeoffs if len(job["points"]) > 1]
    at_stake = sorted(open_, key=lambda job: job["points"][-1]["cost_microusd"] - job["points"][0]["cost_microusd"])
    return [_figure(document, job, number) for number, job in enumerate(at_stake[:_MOST_FIGURES])]


def _figure(document: PlanDocument, job: Tradeoff, number: int) -> Chart:
    points, chosen = job["points"], job["chosen"]
    due = job["deadline_hours"] / _DAY if job["deadline_hours"] else None
    shown = [*points, *([chosen] if chosen else [])]
    x_axis = linear(
        0.0,
        1.04 * max([point["finish_hours"] / _DAY for point in shown] + ([due] if due else [])),
        "finish, days after the beginning",
    )
    y_axis = linear(0.0, 1.06 * max(point["cost_microusd"] for point in shown) / _MICRO, currency_of(document), most=4)
    series = [
        Series(name="deadline", look="dashes", paths=[((due, y_axis.low), (due, y_axis.high))] if due else []),
        Series(name="", look="steps", paths=[steps([_place(point) for point in points])]),
        _marks(document, [point for point in points if point["on_time"]], "meets the deadline", "circle"),
        _marks(
            document,
            [point for point in points if not point["on_time"]],
            "over the deadline",
            "cross",
        ),
        _marks(document, [chosen] if chosen else [], "this plan", "star"),
    ]
    return chart(
        id=f"tradeoff-figure-{number + 1}",
        title=f"{job['workload']}: cost against finish, alone",
        summary=f"{len(points)} ways to run {job['workload']}, from the soonest to the cheapest; "
        "the table below gives each",
        panels=[Panel(x=x_axis, y=y_axis, height=_HEIGHT, series=series)],
    )


def _place(point: JobChosen) -> tuple[float, float]:
    return point["finish_hours"] / _DAY, point["cost_microusd"] / _MICRO


def _marks(document: PlanDocument, points: Sequence[JobChosen], name: str, look: str) -> Series:
    return Series(name=name, look=look, dots=[Dot(*_place(point), _told(document, point)) for point in points])


def _told(document: PlanDocument, point: JobChosen) -> str:
    finish = units.format_duration(point["finish_hours"] * 3600)
    return f"{point['count']:,} × {point['device']}: {finish}, {words.money(document, point['cost_microusd'])}"


def job_table(document: PlanDocument, tradeoffs: Sequence[Tradeoff]) -> Grid:
    """Every point of every front, soonest first."""
    rows = []
    for job in tradeoffs:
        before: JobPoint | None = None
        for point in job["points"]:
            rows.append(_row(document, job, point, before))
            before = point
    heads = columns(
        "Workload", "Device", ">Shapes", ">Devices", ">Finish", ">At confidence", ">Cost", ">Saved by waiting", "Note"
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
