"""Jobs of a cluster as a history of demand: what they held, by day, and how they came and waited."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import numpy as np

from planner.carriers import dataclass
from planner.reading.kinds import Piece, Reading
from planner.reading.tables import csv_text, printable

MOST_JOBS = 5_000_000
MOST_KEYS = 20_000
_MOST_STATES = 40
FIRST = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: devices [count] for so long [s], from a start and after a wait [s] where they are told."""

    state: str
    gpus: float
    seconds: float
    start: datetime | None = None
    wait_s: float | None = None
    partition: str = ""


def state_of(text: str) -> str:
    """The word of a state, CANCELLED of "CANCELLED by 1000"; "" for what is none."""
    word = text.split(" ")[0].rstrip("+").upper()
    return word if re.fullmatch(r"[A-Z_]{2,30}", word) else ""


class History:
    """Sums over jobs, by day; `counted` when times count from the beginning of a trace: days have numbers then."""

    def __init__(self, *, counted: bool = False) -> None:
        self.counted = counted
        self.jobs: Counter[str] = Counter()  # by day of the start
        self.hours: defaultdict[str, float] = defaultdict(float)  # GPU-hours by day
        self.busy: defaultdict[str, float] = defaultdict(float)  # job-hours by day
        self.states: Counter[str] = Counter()
        self.partitions: defaultdict[str, float] = defaultdict(float)
        self.sizes: Counter[float] = Counter()
        self.waits: list[float] = []
        self.lengths: list[float] = []
        self.gpu_hours = self.hours_all = 0.0
        self.gpu_jobs = self.undated = self.jumped = 0

    def add(self, job: Job) -> None:
        """One job."""
        self.states[job.state if job.state in self.states or len(self.states) < _MOST_STATES else "other"] += 1
        hours = job.gpus * job.seconds / 3600
        self.gpu_hours += hours
        self.hours_all += job.seconds / 3600
        self.lengths.append(job.seconds)
        if job.gpus:
            self.gpu_jobs += 1
            self.sizes[job.gpus] += 1
            known = job.partition in self.partitions or len(self.partitions) < MOST_KEYS
            self.partitions[job.partition if known else "others"] += hours
        if job.wait_s is not None and job.wait_s >= 0:
            self.waits.append(job.wait_s)
        self.jumped += job.wait_s is not None and job.wait_s < 0
        if job.start is None:
            self.undated += 1
            return
        self.jobs[self._day(job.start)] += 1
        for start, seconds in by_day(job.start, job.seconds):
            day = self._day(start)
            self.hours[day] += job.gpus * seconds / 3600
            self.busy[day] += seconds / 3600

    def _day(self, time: datetime) -> str:
        return f"{(time - FIRST).days:06d}" if self.counted else time.date().isoformat()

    def told(self, reading: Reading, *, timed: bool = True) -> None:
        """Figures, and the history as a table; `timed` when the jobs say how long they took."""
        reading.show("jobs", reading.taken)
        reading.show("jobs with GPUs", self.gpu_jobs)
        days = sorted(set(self.jobs) | set(self.hours))
        if timed:
            reading.show("GPU-hours", self.gpu_hours, "h")
            reading.show("hours of all jobs", self.hours_all, "h")
            _shown(reading, "time of a job", self.lengths)
        if days:
            reading.show("first day", self._said(days[0]))
            reading.show("last day", self._said(days[-1]))
            reading.show("jobs started on the busiest day", max(self.jobs.values(), default=0))
        if days and timed:
            most = max(self.hours.values(), default=0.0)
            reading.show("GPU-hours of the busiest day", most, "h")
            reading.show("GPUs in use, mean of the busiest day", most / 24)
        if self.sizes:
            reading.show("GPUs of a job, median", _median(self.sizes))
            reading.show("GPUs of a job, largest", max(self.sizes))
        _shown(reading, "wait before a start", self.waits)
        for state, count in self.states.most_common(8):
            if state:
                reading.show(f"jobs {state}", count)
        if timed and set(self.partitions) != {""}:
            for name, hours in sorted(self.partitions.items(), key=lambda each: -each[1])[:10]:
                reading.show(f"GPU-hours in {printable(name) or 'no partition'}", hours, "h")
        if self.undated:
            reading.note(f"{self.undated:,} jobs have no start: they count in sums, and in no day")
        if self.jumped:
            reading.note(f"{self.jumped:,} jobs start before they were submitted: their waits are left out")
        if days:
            columns = ["day", "jobs_started", "job_hours", "gpu_hours"] if timed else ["day", "jobs_started"]
            rows = ([self._said(day), self.jobs[day], self.busy[day], self.hours[day]][: len(columns)] for day in days)
            says = f"demand by day, {len(days):,} days"
            reading.pieces.append(Piece(what="history", name="demand.csv", text=csv_text(columns, rows), says=says))

    def _said(self, day: str) -> str:
        return str(int(day)) if self.counted else day


def _shown(reading: Reading, label: str, seconds: list[float]) -> None:
    if seconds:
        reading.show(f"{label}, mean", float(np.mean(seconds)), "s")
        reading.show(f"{label}, p95", float(np.percentile(seconds, 95)), "s")


def _median(counts: Mapping[float, int]) -> float:
    """The median of values that stand so many times."""
    values = sorted(counts)
    below = np.cumsum([counts[value] for value in values])
    last = int(below[-1])
    low, high = (values[int(np.searchsorted(below, place, side="right"))] for place in ((last - 1) // 2, last // 2))
    return float((low + high) / 2)


def by_day(start: datetime, seconds: float) -> Iterator[tuple[datetime, float]]:
    """Parts of a time from a start that each lie in one day: when they begin, and their seconds.  [s]"""
    while seconds > 0:
        try:
            midnight = start.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        except OverflowError:
            return
        here = min(seconds, (midnight - start).total_seconds())
        yield start, here
        seconds -= here
        start = midnight
