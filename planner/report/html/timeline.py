"""When jobs are done: finish against deadline, with the error band."""

from __future__ import annotations

from typing import Any

from planner.plan.model.plan import PlanDocument
from planner.plan.model.rows import TrainingAllocation
from planner.plan.model.workloads import TrainingWorkload
from planner.report import band_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.escape import html
from planner.report.html.figures import QUIET, bars, key_of, labels, named, row_layout, ticks
from planner.report.html.parts import Figure

_DAY = 24.0
_MOST_ROWS = 60


def timeline_figure(document: PlanDocument) -> Figure | None:
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


def late_hours(row: TrainingAllocation) -> float:
    """Finish at the confidence asked for; the finish itself where no band is known.  [h] after the begin"""
    band = row["error_band"]
    if band["time"] is None:
        return row["finish_hours"]
    return row["finish_hours"] - row["hours"] + band["hours"]["at_confidence"]


def _deadlines(rows: list[tuple[TrainingWorkload, TrainingAllocation]]) -> Figure:
    places = range(len(rows))
    lengths = [(row["finish_hours"] - row["start_hours"]) / _DAY for _, row in rows]
    starts = [row["start_hours"] / _DAY for _, row in rows]
    texts = [f"predicted finish {words.short(row['finish_hours'] / _DAY)} days" for _, row in rows]
    traces = [bars("predicted run", places, lengths, texts, 0, base=starts), _whiskers(rows)]
    due = [number for number in places if rows[number][1]["deadline_hours"]]
    days = [rows[number][1]["deadline_hours"] / _DAY for number in due]
    traces.append(ticks("deadline", due, days, [f"deadline {words.short(day)} days" for day in days]))
    made, height = row_layout(
        len(rows),
        "days after the beginning",
        xaxis={"rangemode": "tozero"},
        annotations=labels([_label(workload, row) for workload, row in rows]),
    )
    return Figure(
        id="timeline-figure",
        title="Finish against deadline",
        summary=f"Bars of {len(rows)} training jobs from start to predicted finish, with the error band and the "
        "deadline; the table below gives the same figures",
        traces=[trace for trace in traces if trace["x"]],
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _label(workload: TrainingWorkload, row: TrainingAllocation) -> str:
    return f"<b>{named(workload['name'])}</b> · {html(words.finish_of(row))}"


def _whiskers(rows: list[tuple[TrainingWorkload, TrainingAllocation]]) -> dict[str, Any]:
    """From the p10 to the p90 of each finish."""
    known = [(place, row) for place, (_, row) in enumerate(rows) if row["error_band"]["time"] is not None]
    ends = [_spread(row) for _, row in known]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "error band, p10 to p90",
        "y": [place for place, _ in known],
        "x": [row["finish_hours"] / _DAY for _, row in known],
        "customdata": [f"p10 to p90: {words.short(low)} to {words.short(high)} days" for low, high in ends],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"symbol": "diamond", "size": 9, "color": QUIET},
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 2, "width": 7, "color": QUIET,
            "array": [high - row["finish_hours"] / _DAY for (_, row), (_, high) in zip(known, ends)],
            "arrayminus": [row["finish_hours"] / _DAY - low for (_, row), (low, _) in zip(known, ends)],
        },
    }  # fmt: skip


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
    late, due, band = late_hours(row), row["deadline_hours"], row["error_band"]
    at = f" ({bands.percentile(band['confidence'])})" if band["time"] is not None else ""
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
