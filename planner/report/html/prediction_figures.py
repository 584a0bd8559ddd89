"""Figures of what is predicted: finishes and deadlines, the calendar, latencies and targets, memory, error bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from planner import units
from planner.plan.model.bought import ScheduledJob
from planner.plan.model.fleet import ServingAllocation, Target
from planner.plan.model.plan import Allocation, PlanDocument, ServingWorkload, TrainingWorkload, Workload
from planner.plan.model.rows import TrainingAllocation
from planner.plan.parts import rows_of
from planner.report import certainty_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Column, Grid, columns
from planner.report.certainty_words import banded
from planner.report.charts import (
    Axis,
    Chart,
    Dot,
    Series,
    bars,
    chart,
    dates,
    linear,
    marks,
    rows_axis,
    rows_panel,
    stacked,
    ticks,
)
from planner.report.serving_words import pointed, seconds, target_name
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


TITLE = "Latency at peak against target"


def latency_figure(document: PlanDocument) -> Chart | None:
    """Predicted latency of each target at the planned peak; None where no target is set."""
    rows = _targets(document)
    if not rows:
        return None
    predicted, sure, asked = [], [], []
    for number, (_, _, target) in enumerate(rows):
        unit = target["target_s"] / 100
        seconds_ = target["predicted_s"] or 0.0
        predicted.append((number, 0.0, seconds_ / unit, f"predicted {seconds(seconds_)}"))
        if (value := target["at_confidence_s"]) is not None:
            sure.append((number, value / unit, f"at confidence {seconds(value)}"))
        asked.append((number, 100.0, f"target {seconds(target['target_s'])}"))
    most = max(100.0, *(end for _, _, end, _ in predicted), *(end for _, end, _ in sure))
    series = [
        bars("predicted at peak", 0, predicted),
        marks("at the confidence asked for", "diamond", sure),
        ticks("target", asked),
    ]
    return chart(
        id="latency-figure",
        title=TITLE,
        summary=f"Bars of {len(rows)} predicted latencies as a share of their targets, with the figure at the "
        "confidence asked for; the table below gives seconds",
        panels=[rows_panel(linear(0.0, most, "% of the target"), series, [_label(*row) for row in rows])],
    )


def _targets(document: PlanDocument) -> list[tuple[ServingWorkload, ServingAllocation, Target]]:
    """Targets of each kind of replica, once."""
    seen: dict[tuple[str, str, str], tuple[ServingWorkload, ServingAllocation, Target]] = {}
    for workload, row, point in pointed(document):
        for target in point["targets"]:
            if target["predicted_s"] is not None and target["target_s"]:
                seen.setdefault((workload["name"], row["device"], target["name"]), (workload, row, target))
    return list(seen.values())


def _label(workload: ServingWorkload, row: ServingAllocation, target: Target) -> tuple[str, str]:
    figures = f"{target_name(target['name'])} {seconds(target['predicted_s'])} of {seconds(target['target_s'])}"
    return f"{workload['name']} · {row['device']}", figures


_GB = 1e9
_MOST_TERMS = 7  # parts that get a colour of their own; the rest is one part
_MOST_CARDS = 24
REST = "other"
_TITLE = "Memory of the fullest device"
_FEW = 5  # rows that stand side by side


def memory_rows(document: PlanDocument) -> list[tuple[Workload, Allocation]]:
    """Workloads and allocations whose memory is known, those that look alike once."""
    seen: dict[tuple[str, str, float, float], tuple[Workload, Allocation]] = {}
    for workload in document["workloads"]:
        for row in rows_of(workload):
            if row["memory"]["terms_bytes"]:
                key = (workload["name"], row["device"], row["memory"]["needed_bytes"], row["memory"]["usable_bytes"])
                seen.setdefault(key, (workload, row))
    return list(seen.values())


def memory_figure(document: PlanDocument) -> Chart | None:
    """The figure; None where no memory is predicted."""
    rows = memory_rows(document)[:_MOST_CARDS]
    if not rows:
        return None
    terms = _largest_terms(rows)
    names = [*terms, REST]
    sizes = [[_size_of(row, terms, name) for _, row in rows] for name in names]
    series = [
        bars(
            words.spaced(name),
            number,
            [
                (place, low, high, f"{words.spaced(name)} {units.format_bytes(sizes[number][place])}")
                for place, (low, high) in enumerate(spans)
                if high > low
            ],
        )
        for number, (name, spans) in enumerate(
            zip(names, stacked([[size / _GB for size in of_rows] for of_rows in sizes]))
        )
    ]
    usable = [row["memory"]["usable_bytes"] for _, row in rows]
    limits = [(place, size / _GB, f"usable {units.format_bytes(size)}") for place, size in enumerate(usable)]
    most = max([*usable, *(row["memory"]["needed_bytes"] for _, row in rows)]) / _GB
    return chart(
        id="memory-figure",
        title=_TITLE,
        summary=f"Stacked bars of memory per device, {len(rows)} of them, each against the memory that is usable; "
        "the table below gives every part",
        panels=[
            rows_panel(
                linear(0.0, most, "GB per device"),
                [*series, ticks("usable memory", limits)],
                [_card_label(*row) for row in rows],
            )
        ],
    )


def _card_label(workload: Workload, row: Allocation) -> tuple[str, str]:
    needed, usable = (units.format_bytes(row["memory"][name]) for name in ("needed_bytes", "usable_bytes"))
    return f"{workload['name']} · {row['device']}", f"{needed} of {usable}"


def _largest_terms(rows: list[tuple[Workload, Allocation]]) -> list[str]:
    """Parts that take most of some device, largest first."""
    shares: dict[str, float] = {}
    for _, row in rows:
        memory = row["memory"]
        for name, size in memory["terms_bytes"].items():
            shares[name] = max(shares.get(name, 0.0), size / memory["usable_bytes"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    return [name for name in ranked if shares[name] >= 0.01][:_MOST_TERMS]


def _size_of(row: Allocation, terms: list[str], name: str) -> float:
    """Memory of a part, or of all that have no colour of their own.  [B]"""
    known = row["memory"]["terms_bytes"]
    if name == REST:
        return sum(size for term, size in known.items() if term not in terms)
    return known.get(name, 0.0)


def memory_table(document: PlanDocument) -> Grid:
    """Every part of the memory of each device; a column a device where they are few, else a row."""
    rows = memory_rows(document)
    names = list(dict.fromkeys(name for _, row in rows for name, size in row["memory"]["terms_bytes"].items() if size))
    lines = [
        [words.spaced(name), *(_size(row["memory"]["terms_bytes"].get(name, 0.0)) for _, row in rows)] for name in names
    ]
    for total in ("needed_bytes", "usable_bytes", "free_bytes") if rows else ():
        lines.append([total.removesuffix("_bytes"), *(units.format_bytes(row["memory"][total]) for _, row in rows)])
    heads = [f"{workload['name']} · {row['device']}" for workload, row in rows]
    if len(rows) > _FEW:
        lines, heads = (
            [[head, *cells] for head, *cells in zip(heads, *(cells for _, *cells in lines))],
            [name for name, *_ in lines],
        )
    first = "Workload" if len(rows) > _FEW else "Part"
    return Grid(
        title=_TITLE,
        columns=(Column(head=first), *(Column(head=head, right=True) for head in heads)),
        rows=lines,
    )


def _size(value: float) -> str:
    return units.format_bytes(value) if value else "–"


_MOST_BANDS = 40


def band_figure(document: PlanDocument) -> Chart | None:
    """p10, median and p90 of measured over predicted; None where no band is known."""
    rows = list(dict.fromkeys(_banded(document)))[:_MOST_BANDS]
    if not rows:
        return None
    spans = [(100 * (low - 1), 100 * (middle - 1), 100 * (high - 1)) for _, low, middle, high in rows]
    axis = linear(
        min(0.0, *(low for low, _, _ in spans)),
        max(0.0, *(high for _, _, high in spans)),
        "measured against predicted, %",
    )
    ends = rows_axis(len(rows))
    series = [
        Series(name="", look="dots", paths=[((0.0, ends.low), (0.0, ends.high))]),
        bars("p10 to p90", 0, [(row, low, high, _told(low, high)) for row, (low, _, high) in enumerate(spans)], 0.15),
        marks("median", "diamond", [(row, at, f"median {at:+.1f} %") for row, (_, at, _) in enumerate(spans)]),
    ]
    labels = [(name, f"{low:+.0f} % to {high:+.0f} %") for (name, *_), (low, _, high) in zip(rows, spans)]
    return chart(
        id="band-figure",
        title="How far measurements lay from predictions",
        summary=f"Bars from the p10 to the p90 of measured over predicted, {len(rows)} of them; "
        "the table below gives what that means for this plan",
        panels=[rows_panel(axis, series, labels)],
    )


def _told(low: float, high: float) -> str:
    return f"{low:+.1f} % to {high:+.1f} %"


def _banded(document: PlanDocument) -> Iterator[tuple[str, float, float, float]]:
    """Each band of each row: of time and memory, and of the latencies of fleets."""
    for workload, row in banded(document):
        for name in ("time", "memory"):
            if band := row["error_band"][name]:
                yield _named(workload, row, name), band["p10"], band["p50"], band["p90"]
    for fleet in document["workloads"]:
        for replica in fleet["allocations"] if fleet["kind"] == "serving" else ():
            for latency, band in (("TTFT", replica["tier"]["ttft"]), ("TPOT", replica["tier"]["tpot"])):
                if band:
                    yield _named(fleet, replica, latency), band["p10"], band["p50"], band["p90"]


def _named(workload: Workload, row: Allocation, what: str) -> str:
    return f"{what} · {workload['name']} · {row['device']}"
