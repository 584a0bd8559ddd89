"""Figures of money: what a plan costs by workload, by provider and by month, and what finishing sooner costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner import units
from planner.budget.model import AMOUNTS, Budget, MonthRow, What
from planner.plan.model.frontier_document import JobChosen, JobPoint, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import currency_of
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.charts import (
    Axis,
    Box,
    Chart,
    Dot,
    Mark,
    Panel,
    Series,
    bars,
    chart,
    linear,
    rows_panel,
    stacked,
    steps,
)

_MICRO = 1e6
_MOST_ROWS = 12  # dearest first; what is left is one bar
_COLOURS = {"training": 0, "serving": 1, "unused": 2, "others": 7}
_STACKED: tuple[What, ...] = ("training", "serving", "unused")
_KINDS = {"training": "training", "serving": "serving", "unused": "contracted, not used"}


def workload_figure(document: PlanDocument, budget: Budget) -> Chart | None:
    """Cost of each workload, its share of contracts with it; dearest first."""
    bars_of = [_Bar(row["workload"], row["kind"], row["total_microusd"]) for row in budget["by_workload"]]
    return _ranked(document, bars_of, "workload", "Cost by workload", "cost-workload-figure")


def provider_figure(document: PlanDocument, budget: Budget) -> Chart | None:
    """Cost of each provider; dearest first."""
    bars_of = [_Bar(row["provider"], "", row["total_microusd"]) for row in budget["by_provider"]]
    return _ranked(document, bars_of, "provider", "Cost by provider", "cost-provider-figure")


def dearest_first(budget: Budget) -> Budget:
    """A budget whose workloads, providers and ways to buy stand in the order of what they cost."""
    return {
        **budget,
        "by_workload": sorted(budget["by_workload"], key=lambda row: -row["total_microusd"]),
        "by_provider": sorted(budget["by_provider"], key=lambda row: -row["total_microusd"]),
        "by_category": sorted(budget["by_category"], key=lambda row: -row["total_microusd"]),
    }


class _Bar(NamedTuple):
    """Who or what costs that much."""

    name: str
    kind: str
    microusd: int


def _dearest(rows: Sequence[_Bar]) -> list[_Bar]:
    ranked = [row for row in rows if row.microusd]
    if len(ranked) <= _MOST_ROWS + 1:
        return ranked
    rest = ranked[_MOST_ROWS:]
    return [*ranked[:_MOST_ROWS], _Bar(f"{len(rest)} others", "others", sum(row.microusd for row in rest))]


def _ranked(document: PlanDocument, known: Sequence[_Bar], key: str, title: str, place: str) -> Chart | None:
    rows = _dearest(known)
    if len(rows) < 2:
        return None
    whole = sum(row.microusd for row in rows)
    kinds = list(dict.fromkeys(row.kind for row in rows))
    series = [
        bars(
            _KINDS.get(kind, kind or title),
            _COLOURS.get(kind, 0),
            [
                (number, 0.0, row.microusd / _MICRO, words.money(document, row.microusd))
                for number, row in enumerate(rows)
                if row.kind == kind
            ],
        )
        for kind in kinds
    ]
    axis = linear(0.0, rows[0].microusd / _MICRO, currency_of(document), most=5)
    return chart(
        id=place,
        title=title,
        summary=f"Bars of the cost of {len(rows)} {key}s, dearest first; the table below gives the same figures",
        panels=[rows_panel(axis, series, [_label(document, row, whole) for row in rows])],
        with_key=len(kinds) > 1,
    )


def _label(document: PlanDocument, row: _Bar, whole: int) -> tuple[str, str]:
    part = 100 * row.microusd / whole
    share = f"{part:.0f} %" if part >= 1 else "below 1 %"
    return row.name or "not at a provider", f"{words.money(document, row.microusd)} · {share}"


def month_figure(document: PlanDocument, budget: Budget) -> Chart | None:
    """Training and serving month by month, one on the other."""
    months = budget["months"]
    if len(months) < 2:
        return None
    spans = stacked([[month[AMOUNTS[kind]] / _MICRO for month in months] for kind in _STACKED])
    series = [
        Series(
            name=_KINDS[kind],
            look=f"fill-{_COLOURS[kind]}",
            boxes=[
                Box(place - 0.3, place + 0.3, low, high, _month(document, months[place], kind))
                for place, (low, high) in enumerate(part)
                if high > low
            ],
        )
        for kind, part in zip(_STACKED, spans)
    ]
    step = max(1, -(-len(months) // 6))
    shown = [Mark(place, months[place]["label"]) for place in range(0, len(months), step)]
    most = max(high for part in spans for _, high in part)
    return chart(
        id="cost-month-figure",
        title="Cost by month",
        summary=f"Stacked bars of the cost of {len(months)} months; the table below gives the same figures",
        panels=[
            Panel(
                x=Axis(-0.5, len(months) - 0.5, "", shown),
                y=linear(0.0, most, currency_of(document), most=4),
                height=240,
                series=series,
            )
        ],
    )


def _month(document: PlanDocument, month: MonthRow, kind: What) -> str:
    return f"{month['label']}: {_KINDS[kind]} {words.money(document, month[AMOUNTS[kind]])}"


def hours_table(document: PlanDocument) -> Grid:
    """Device-hours of each workload, and what one of them costs."""
    rows = []
    for workload in document["workloads"]:
        hours = sum(row["device_hours"] for row in workload["allocations"])
        if not hours:
            continue
        own = [row for row in workload["allocations"] if row["funding"] != "reserved"]
        paid = sum(row["device_hours"] for row in own)
        cost = sum(row["cost_microusd"] for row in own)
        each = words.money(document, cost / paid) if paid and cost else "under contract" if not paid else "–"
        devices = sum(row["devices"] for row in workload["allocations"])
        rows.append([workload["name"], workload["kind"], f"{devices:,}", f"{hours:,.0f}", each])
    return Grid(
        title="Device-hours",
        columns=columns("Workload", "Kind", ">Devices", ">Device-hours", ">Cost of one"),
        rows=sorted(rows, key=lambda row: -float(row[3].replace(",", ""))),
    )


_DAY = 24.0
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
