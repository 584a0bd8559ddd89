"""When jobs are done: finish against deadline, with the error band."""

from __future__ import annotations

from planner.plan.model.plan import PlanDocument
from planner.plan.model.rows import TrainingAllocation
from planner.plan.model.workloads import TrainingWorkload
from planner.report import band_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.chart.model import Chart, Dot, Series, bars, chart, rows_panel, ticks
from planner.report.chart.scale import linear
from planner.units import format_percentile

_DAY = 24.0
_MOST_ROWS = 60


def timeline_figure(document: PlanDocument) -> Chart | None:
    """Each job from its start to its predicted finish, against its deadline; None where nothing trains."""
    rows = trained(document)[:_MOST_ROWS]
    return _deadlines(rows) if rows else None


def trained(document: PlanDocument) -> list[tuple[TrainingWorkload, TrainingAllocation]]:
    """Jobs and their rows; rows of one mix finish together and are one."""
    found: dict[tuple[str, float], tuple[TrainingWorkload, TrainingAllocation]] = {}
    for workload in document["workloads"]:
        if workload["kind"] == "training":
            for row in workload["allocations"]:
                found.setdefault((workload["name"], row["finish_hours"]), (workload, row))
    return list(found.values())


def _deadlines(rows: list[tuple[TrainingWorkload, TrainingAllocation]]) -> Chart:
    runs, limits, ends = [], [], []
    for place, (_, row) in enumerate(rows):
        finish = row["finish_hours"] / _DAY
        runs.append((place, row["start_hours"] / _DAY, finish, f"predicted finish {words.short(finish)} days"))
        ends.append(finish)
        if row["deadline_hours"]:
            due = row["deadline_hours"] / _DAY
            limits.append((place, due, f"deadline {words.short(due)} days"))
            ends.append(due)
    spread = _whiskers(rows)
    ends += [x for path in spread.paths for x, _ in path]
    return chart(
        id="timeline-figure",
        title="Finish against deadline",
        summary=f"Bars of {len(rows)} training jobs from start to predicted finish, with the error band and the "
        "deadline; the table below gives the same figures",
        panels=[
            rows_panel(
                linear(0.0, max(ends), "days after the beginning"),
                [bars("predicted run", 0, runs), spread, ticks("deadline", limits)],
                [(workload["name"], words.finish_of(row)) for workload, row in rows],
            )
        ],
    )


def _whiskers(rows: list[tuple[TrainingWorkload, TrainingAllocation]]) -> Series:
    """From the p10 to the p90 of each finish."""
    known = [(place, row) for place, (_, row) in enumerate(rows) if row["error_band"]["time"] and not row["runs"]]
    spans = [(place, row["finish_hours"] / _DAY, *_spread(row)) for place, row in known]
    return Series(
        name="error band, p10 to p90",
        look="diamond",
        paths=[((low, place), (high, place)) for place, _, low, high in spans],
        dots=[
            Dot(finish, place, f"p10 to p90: {words.short(low)} to {words.short(high)} days")
            for place, finish, low, high in spans
        ],
    )


def _spread(row: TrainingAllocation) -> tuple[float, float]:
    """p10 and p90 of a finish.  [days]"""
    before = row["finish_hours"] - row["hours"]
    hours = row["error_band"]["hours"]
    return (before + hours["p10"]) / _DAY, (before + hours["p90"]) / _DAY


def finish_table(document: PlanDocument) -> Grid:
    """Each job: what is predicted, what holds at the confidence asked for, and what is left of the deadline."""
    rows = [_finish_row(workload, row) for workload, row in trained(document)]
    return Grid(
        title="Finish against deadline",
        columns=columns("Workload", ">Start", ">Predicted finish", ">At confidence", ">Deadline", ">Slack"),
        rows=rows,
    )


def _finish_row(workload: TrainingWorkload, row: TrainingAllocation) -> list[str]:
    late, due, band = bands.late_hours(row), row["deadline_hours"], row["error_band"]
    at = f" ({format_percentile(band['confidence'])})" if band["time"] is not None else ""
    return [
        workload["name"],
        _days(row["start_hours"]),
        _days(row["finish_hours"]),
        f"{_days(late)}{at}" if at else "no band known",
        _days(due) if due else "–",
        _days(due - late) if due else "–",
    ]


def _days(hours: float) -> str:
    return f"{words.short(hours / _DAY)} days" if abs(hours) >= 2 * _DAY else f"{words.short(hours)} h"
