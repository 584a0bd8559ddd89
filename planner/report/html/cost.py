"""What it costs: by workload, by provider and by month, from the budget of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.plan.asked import currency_of
from planner.plan.budget.model import AMOUNTS, Budget, What
from planner.plan.model.plan import PlanDocument
from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.escape import html
from planner.report.html.figures import bars, fill, key_of, labels, layout, named, row_layout
from planner.report.html.parts import Figure

_MICRO = 1e6
_MOST_ROWS = 12  # dearest first; what is left is one bar
_COLOURS = {"training": 0, "serving": 1, "unused": 2, "others": 7}
_STACKED: tuple[What, ...] = ("training", "serving", "unused")
_KINDS = {"training": "training", "serving": "serving", "unused": "contracted, not used"}


def workload_figure(document: PlanDocument, budget: Budget) -> Figure | None:
    """Cost of each workload, its share of contracts with it; dearest first."""
    bars_of = [_Bar(row["workload"], row["kind"], row["total_microusd"]) for row in budget["by_workload"]]
    return _ranked(document, bars_of, "workload", "Cost by workload", "cost-workload-figure")


def provider_figure(document: PlanDocument, budget: Budget) -> Figure | None:
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


def _ranked(document: PlanDocument, known: Sequence[_Bar], key: str, title: str, place: str) -> Figure | None:
    rows = _dearest(known)
    if len(rows) < 2:
        return None
    whole = sum(row.microusd for row in rows)
    kinds = list(dict.fromkeys(row.kind for row in rows))
    traces = []
    for kind in kinds:
        mine = [index for index, row in enumerate(rows) if row.kind == kind]
        values = [rows[index].microusd / _MICRO for index in mine]
        told = [words.money(document, rows[index].microusd) for index in mine]
        traces.append(bars(_KINDS.get(kind, kind or title), mine, values, told, _COLOURS.get(kind, 0)))
    made, height = row_layout(
        len(rows),
        _currency(document),
        xaxis={"rangemode": "tozero"},
        annotations=labels([_label(document, row, whole) for row in rows]),
    )
    return Figure(
        id=place,
        title=title,
        summary=f"Bars of the cost of {len(rows)} {key}s, dearest first; the table below gives the same figures",
        traces=traces,
        layout=made,
        height=height,
        key=key_of(traces) if len(kinds) > 1 else (),
    )


def _label(document: PlanDocument, row: _Bar, whole: int) -> str:
    part = 100 * row.microusd / whole
    share = f" · {part:.0f} %" if part >= 1 else " · below 1 %"
    return f"<b>{named(row.name or 'not at a provider')}</b> · {words.money(document, row.microusd)}{share}"


def _currency(document: PlanDocument) -> str:
    return html(currency_of(document))


def month_figure(document: PlanDocument, budget: Budget) -> Figure | None:
    """Training and serving month by month, one on the other."""
    months = budget["months"]
    if len(months) < 2:
        return None
    places = list(range(len(months)))
    traces = []
    for kind in _STACKED:
        amounts = [month[AMOUNTS[kind]] for month in months]
        values = [amount / _MICRO for amount in amounts]
        if not any(values):
            continue
        told = [
            f"{html(month['label'])}: {_KINDS[kind]} {words.money(document, amount)}"
            for month, amount in zip(months, amounts)
        ]
        traces.append(
            {
                "type": "bar", "name": _KINDS[kind], "x": places, "y": values, "customdata": told, "width": 0.6,
                "hovertemplate": "%{customdata}<extra></extra>", "marker": fill(_COLOURS[kind]),
            }
        )  # fmt: skip
    height = 320
    step = max(1, -(-len(months) // 12))
    made = layout(
        "",
        height=height,
        barmode="stack",
        xaxis={
            "tickmode": "array",
            "tickvals": places[::step],
            "ticktext": [html(month["label"]) for month in months[::step]],
        },
        yaxis={
            "title": {"text": _currency(document), "font": {"size": 12}}, "zeroline": False,
            "fixedrange": True, "automargin": True, "rangemode": "tozero",
            "tickformat": "~s",
        },
    )  # fmt: skip
    return Figure(
        id="cost-month-figure",
        title="Cost by month",
        summary=f"Stacked bars of the cost of {len(months)} months; the table below gives the same figures",
        traces=traces,
        layout=made,
        height=height,
        key=key_of(traces),
    )


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
