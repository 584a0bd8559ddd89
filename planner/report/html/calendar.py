"""The calendar of a plan: when each job and fleet runs, between its release and its deadline."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from planner.plan.model.bought import ScheduledJob
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.html.figures import ALERT, QUIET, bars, key_of, labels, named, row_layout, ticks
from planner.report.html.parts import Figure

_DAY = 24.0
_MOST_ROWS = 60


def calendar_figure(document: PlanDocument) -> Figure | None:
    """Windows between release and deadline, and what runs in them; None without a calendar."""
    plan = document.get("schedule")
    jobs = _distinct(plan["jobs"])[:_MOST_ROWS] if plan else []
    if not plan or not jobs:
        return None
    axis = Axis(plan["begin"], document["summary"]["horizon_hours"])
    due = {place: hours for place, job in enumerate(jobs) if (hours := job["deadline_hours"]) is not None}
    windows = {
        "type": "scatter", "mode": "lines", "name": "release to deadline", "hoverinfo": "skip",
        "line": {"color": QUIET, "width": 1.5, "dash": "dot"},
        "x": [axis.at(x) for place, end in due.items() for x in (jobs[place]["release_hours"], end, None)],
        "y": [y for place in due for y in (place, place, None)],
    }  # fmt: skip
    traces = [windows, *_running(jobs, axis)]
    ends = [axis.at(end) for end in due.values()]
    told = [f"deadline {axis.told(end)}" for end in due.values()]
    traces.append(ticks("deadline", list(due), ends, told, marker=_stroke()))
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


def _distinct(jobs: list[ScheduledJob]) -> list[ScheduledJob]:
    """Jobs that run differently; rows of a fleet run alike."""
    kept: list[ScheduledJob] = []
    for job in jobs:
        if job not in kept:
            kept.append(job)
    return kept


def _stroke() -> dict[str, Any]:
    return {"symbol": "line-ns-open", "size": 20, "color": ALERT, "line": {"width": 3, "color": ALERT}}


def _job_label(job: ScheduledJob) -> str:
    many = f" ×{job['jobs']}" if job["jobs"] > 1 else ""
    return f"<b>{named(job['workload'])}</b>{many} · {named(job['place'])}"


def _running(jobs: list[ScheduledJob], axis: Axis) -> list[dict[str, Any]]:
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
