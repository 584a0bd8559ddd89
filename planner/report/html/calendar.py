"""The calendar of a plan: when each job and fleet runs, between its release and its deadline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from planner.plan.model.bought import ScheduledJob
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.chart.model import Chart, Series, bars, chart, rows_panel, ticks
from planner.report.chart.scale import Axis, dates, linear

_DAY = 24.0
_MOST_ROWS = 60


def calendar_figure(document: PlanDocument) -> Chart | None:
    """Windows between release and deadline, and what runs in them; None without a calendar."""
    plan = document.get("schedule")
    jobs = _distinct(plan["jobs"])[:_MOST_ROWS] if plan else []
    if not plan or not jobs:
        return None
    calendar = Calendar(plan["begin"], document["summary"]["horizon_hours"])
    due = {row: hours for row, job in enumerate(jobs) if (hours := job["deadline_hours"]) is not None}
    windows = [
        ((calendar.at(jobs[row]["release_hours"]), row), (calendar.at(hours), row)) for row, hours in due.items()
    ]
    series = [
        Series(name="release to deadline", look="dots", paths=windows),
        *_running(jobs, calendar),
        ticks(
            "deadline",
            [(row, calendar.at(hours), f"deadline {calendar.told(hours)}") for row, hours in due.items()],
        ),
    ]
    return chart(
        id="timeline-figure",
        title="Schedule",
        summary=f"Schedule of {len(jobs)} jobs and fleets over {calendar.length}, each between its release and its "
        "deadline; the table below gives start, finish and slack",
        panels=[rows_panel(calendar.axis(), series, [_job_label(job) for job in jobs])],
    )


def _distinct(jobs: list[ScheduledJob]) -> list[ScheduledJob]:
    """Jobs that run differently; rows of a fleet run alike."""
    kept: list[ScheduledJob] = []
    for job in jobs:
        if job not in kept:
            kept.append(job)
    return kept


def _job_label(job: ScheduledJob) -> tuple[str, str]:
    many = f" ×{job['jobs']}" if job["jobs"] > 1 else ""
    return f"{job['workload']}{many}", job["place"]


def _running(jobs: Sequence[ScheduledJob], calendar: Calendar) -> list[Series]:
    """Runs of jobs and of fleets, a colour and a pattern each."""
    found = []
    for number, (name, lasting) in enumerate((("runs", False), ("serves throughout", True))):
        spans = [
            (row, calendar.at(start), calendar.at(end), f"{calendar.told(start)} to {calendar.told(end)}")
            for row, job in enumerate(jobs)
            if (job["deadline_hours"] is None) == lasting
            for start, end in ((run["start_hours"], run["end_hours"]) for run in job["runs"])
        ]
        found.append(bars(name, number * 7, spans))
    return found


class Calendar:
    """Dates where the plan has a begin, else days from it."""

    def __init__(self, begin: str | None, horizon_hours: float) -> None:
        self.begin, self.horizon_hours = begin, horizon_hours

    @property
    def length(self) -> str:
        """The horizon in words."""
        return f"{words.short(self.horizon_hours / _DAY)} days"

    def at(self, hours: float) -> float:
        """Where a moment stands on the axis."""
        return hours if self.begin else hours / _DAY

    def told(self, hours: float) -> str:
        """A moment for people."""
        if self.begin:
            return f"{datetime.fromisoformat(self.begin) + timedelta(hours=hours):%Y-%m-%d}"
        return f"day {words.short(hours / _DAY)}"

    def axis(self) -> Axis:
        """Dates, or days."""
        if self.begin:
            return dates(self.begin, self.horizon_hours)
        return linear(0.0, self.horizon_hours / _DAY, "days after the beginning")
