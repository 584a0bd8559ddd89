"""What it costs: by workload, by provider and by month, from the budget of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.report import plan_words as words
from planner.report.blocks import Grid, columns
from planner.report.escape import html
from planner.report.html.figures import bars, fill, key_of, labels, layout, named, row_layout
from planner.report.html.parts import Figure

Piece = Mapping[str, Any]
_MICRO = 1e6
_MOST_ROWS = 12  # dearest first; what is left is one bar
_COLOURS = {"training": 0, "serving": 1, "unused": 2, "others": 7}
_KINDS = {"training": "training", "serving": "serving", "unused": "contracted, not used"}


def workload_figure(document: Piece, budget: Piece) -> Figure | None:
    """Cost of each workload, its share of contracts with it; dearest first."""
    rows = _dearest(budget["by_workload"], "workload")
    return _ranked(document, rows, "workload", "Cost by workload", "cost-workload-figure") if len(rows) > 1 else None


def provider_figure(document: Piece, budget: Piece) -> Figure | None:
    """Cost of each provider; dearest first."""
    rows = _dearest(budget["by_provider"], "provider")
    return _ranked(document, rows, "provider", "Cost by provider", "cost-provider-figure") if len(rows) > 1 else None


def dearest_first(report: Piece) -> Piece:
    """A report whose workloads, providers and ways to buy stand in the order of what they cost."""
    names = ("by_workload", "by_provider", "by_category")
    ranked = {name: sorted(report["budget"][name], key=lambda row: -row["total_microusd"]) for name in names}
    return {**report, "budget": {**report["budget"], **ranked}}


def _dearest(rows: Sequence[Piece], key: str) -> list[Piece]:
    ranked = [row for row in rows if row["total_microusd"]]
    if len(ranked) <= _MOST_ROWS + 1:
        return ranked
    rest = ranked[_MOST_ROWS:]
    return [*ranked[:_MOST_ROWS], {key: f"{len(rest)} others", "kind": "others", "total_microusd": _sum(rest)}]


def _sum(rows: Sequence[Piece]) -> int:
    return sum(row["total_microusd"] for row in rows)


def _ranked(document: Piece, rows: Sequence[Piece], key: str, title: str, place: str) -> Figure:
    whole = _sum(rows)
    kinds = list(dict.fromkeys(row.get("kind", "") for row in rows))
    traces = []
    for kind in kinds:
        mine = [index for index, row in enumerate(rows) if row.get("kind", "") == kind]
        values = [rows[index]["total_microusd"] / _MICRO for index in mine]
        told = [words.money(document, rows[index]["total_microusd"]) for index in mine]
        traces.append(bars(_KINDS.get(kind, kind or title), mine, values, told, _COLOURS.get(kind, 0)))
    made, height = row_layout(
        len(rows),
        _currency(document),
        xaxis={"rangemode": "tozero"},
        annotations=labels([_label(document, row, key, whole) for row in rows]),
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


def _label(document: Piece, row: Piece, key: str, whole: int) -> str:
    part = 100 * row["total_microusd"] / whole
    share = f" · {part:.0f} %" if part >= 1 else " · below 1 %"
    return f"<b>{named(row[key] or 'not at a provider')}</b> · {words.money(document, row['total_microusd'])}{share}"


def _currency(document: Piece) -> str:
    return html(str(document["scenario"].get("currency", "USD")))


def month_figure(document: Piece, budget: Piece) -> Figure | None:
    """Training and serving month by month, one on the other."""
    months = budget["months"]
    if len(months) < 2:
        return None
    places = list(range(len(months)))
    traces = []
    for kind in _KINDS:
        values = [month[f"{kind}_microusd"] / _MICRO for month in months]
        if not any(values):
            continue
        told = [f"{html(m['label'])}: {_KINDS[kind]} {words.money(document, m[f'{kind}_microusd'])}" for m in months]
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


def hours_table(document: Piece) -> Grid:
    """Device-hours of each workload, and what one of them costs."""
    rows = []
    for workload in document["workloads"]:
        hours = sum(row["device_hours"] for row in workload["allocations"])
        if not hours:
            continue
        own = [row for row in workload["allocations"] if row.get("funding") != "reserved"]
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
