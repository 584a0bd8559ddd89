"""When things run: finish against deadline with the error band, or the calendar job by job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from planner.report import band_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.escape import html
from planner.report.html.figures import ALERT, QUIET, bars, key_of, labels, named, row_layout, ticks
from planner.report.html.parts import Figure

Piece = Mapping[str, Any]
_DAY = 24.0
_MOST_ROWS = 60


def timeline_figure(document: Piece) -> Figure | None:
    """The calendar where there is one, else each job against its deadline; None where nothing trains."""
    if document.get("schedule"):
        return _calendar(document)
    rows = trained(document)[:_MOST_ROWS]
    return _deadlines(document, rows) if rows else None


def trained(document: Piece) -> list[tuple[Piece, Piece]]:
    """Jobs and their rows; rows of one mix finish together and are one."""
    found: dict[tuple[str, float], tuple[Piece, Piece]] = {}
    for workload in document["workloads"]:
        if workload["kind"] == "training":
            for row in workload["allocations"]:
                found.setdefault((workload["name"], row["finish_hours"]), (workload, row))
    return list(found.values())


def late_hours(row: Piece) -> float:
    """Finish at the confidence asked for; the finish itself where no band is known.  [h] after the begin"""
    band = row.get("error_band")
    if not band or band["time"] is None:
        return float(row["finish_hours"])
    return float(row["finish_hours"] - row["hours"] + band["hours"]["at_confidence"])


def _deadlines(document: Piece, rows: list[tuple[Piece, Piece]]) -> Figure:
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


def _label(workload: Piece, row: Piece) -> str:
    return f"<b>{named(workload['name'])}</b> · {html(words.finish_of(row))}"


def _whiskers(rows: list[tuple[Piece, Piece]]) -> dict[str, Any]:
    """From the p10 to the p90 of each finish."""
    known = [
        (place, row)
        for place, (_, row) in enumerate(rows)
        if row.get("error_band") and row["error_band"]["time"] is not None
    ]
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


def _spread(row: Piece) -> tuple[float, float]:
    """p10 and p90 of a finish.  [days]"""
    before = row["finish_hours"] - row["hours"]
    hours = row["error_band"]["hours"]
    return (before + hours["p10"]) / _DAY, (before + hours["p90"]) / _DAY


def finish_table(document: Piece) -> Grid:
    """Each job: what is predicted, what holds at the confidence asked for, and what is left of the deadline."""
    rows = [_finish_row(workload, row) for workload, row in trained(document)]
    return Grid(
        title="Finish against deadline",
        columns=columns("Workload", ">Start", ">Predicted finish", ">At confidence", ">Deadline", ">Slack"),
        rows=rows,
    )


def _finish_row(workload: Piece, row: Piece) -> list[str]:
    late, due, band = late_hours(row), row["deadline_hours"], row.get("error_band")
    at = f" ({bands.percentile(band['confidence'])})" if band and band["time"] is not None else ""
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


# ---- calendars


def _calendar(document: Piece) -> Figure | None:
    """Windows between release and deadline, and what runs in them."""
    plan = document["schedule"]
    jobs = _distinct(plan["jobs"])[:_MOST_ROWS]
    if not jobs:
        return None
    axis = Axis(plan["begin"], document["summary"]["horizon_hours"])
    dated = [place for place, job in enumerate(jobs) if job["deadline_hours"] is not None]
    windows = {
        "type": "scatter", "mode": "lines", "name": "release to deadline", "hoverinfo": "skip",
        "line": {"color": QUIET, "width": 1.5, "dash": "dot"},
        "x": [axis.at(x) for p in dated for x in (jobs[p]["release_hours"], jobs[p]["deadline_hours"], None)],
        "y": [y for p in dated for y in (p, p, None)],
    }  # fmt: skip
    traces = [windows, *_running(jobs, axis)]
    ends = [axis.at(jobs[place]["deadline_hours"]) for place in dated]
    told = [f"deadline {axis.told(jobs[place]['deadline_hours'])}" for place in dated]
    traces.append(ticks("deadline", dated, ends, told, marker=_stroke()))
    made, height = row_layout(
        len(jobs), axis.title, xaxis=axis.layout(), annotations=labels([_job_label(job) for job in jobs])
    )
    made["barmode"] = "overlay"
    return Figure(
        id="timeline-figure",
        title="Schedule",
        summary=f"Schedule of {len(jobs)} jobs and fleets over {axis.length}, each between its release and its "
        "deadline; the table below gives start, finish and slack",
        traces=[trace for trace in traces if trace["x"]],
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _distinct(jobs: list[Piece]) -> list[Piece]:
    """Jobs that run differently; rows of a fleet run alike."""
    kept: list[Piece] = []
    for job in jobs:
        if job not in kept:
            kept.append(job)
    return kept


def _stroke() -> dict[str, Any]:
    return {"symbol": "line-ns-open", "size": 20, "color": ALERT, "line": {"width": 3, "color": ALERT}}


def _job_label(job: Piece) -> str:
    many = f" ×{job['jobs']}" if job["jobs"] > 1 else ""
    return f"<b>{named(job['workload'])}</b>{many} · {named(job['place'])}"


def _running(jobs: list[Piece], axis: Axis) -> list[dict[str, Any]]:
    """Runs of jobs and of fleets, a colour and a pattern each."""
    traces = []
    for number, (name, lasting) in enumerate((("runs", False), ("serves throughout", True))):
        runs = [
            (place, run)
            for place, job in enumerate(jobs)
            for run in job["runs"]
            if (job["deadline_hours"] is None) == lasting
        ]
        lengths = [axis.span(run["end_hours"] - run["start_hours"]) for _, run in runs]
        texts = [f"{axis.told(run['start_hours'])} to {axis.told(run['end_hours'])}" for _, run in runs]
        starts = [axis.at(run["start_hours"]) for _, run in runs]
        traces.append(bars(name, [place for place, _ in runs], lengths, texts, number * 7, base=starts))
    return traces


class Axis:
    """Dates where the plan has a begin, else days from it."""

    def __init__(self, begin: str | None, horizon_hours: float) -> None:
        self.begin = datetime.fromisoformat(begin) if begin else None
        self.horizon_hours = horizon_hours
        self.title = "" if begin else "days after the beginning"

    @property
    def length(self) -> str:
        """The horizon in words."""
        return f"{words.short(self.horizon_hours / _DAY)} days"

    def at(self, hours: float | None) -> Any:
        """Where a moment stands."""
        if hours is None:
            return None
        return self._date(hours).isoformat(sep=" ", timespec="minutes") if self.begin else hours / _DAY

    def span(self, hours: float) -> float:
        """A length: date axes count in milliseconds."""
        return hours * 3.6e6 if self.begin else hours / _DAY

    def told(self, hours: float) -> str:
        """A moment for people."""
        return f"{self._date(hours):%Y-%m-%d}" if self.begin else f"day {words.short(hours / _DAY)}"

    def layout(self) -> dict[str, Any]:
        """What the axis is."""
        return {"type": "date" if self.begin else "linear", "range": [self.at(0.0), self.at(self.horizon_hours)]}

    def _date(self, hours: float) -> datetime:
        assert self.begin is not None
        return self.begin + timedelta(hours=hours)
