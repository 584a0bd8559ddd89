"""The budget of a report as blocks: months, fiscal years, who and what it is for, what may happen, margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.report import plan_words as words
from planner.report.blocks import Block, Column, Grid, Items, columns
from planner.report.schedule_view import KINDS
from planner.units import format_percent

Piece = Mapping[str, Any]
_SHOWN = {"training": "Training", "serving": "Serving", "unused": "Unused", "committed": "Committed",
          "variable": "Variable", "total": "Total", "contingency": "Contingency"}  # fmt: skip
_MARGINS = {"confidence": "confidence of predictions", "peak_factor": "peak factor", "target_load": "target load",
            "spares": "spare replicas"}  # fmt: skip


def budget_blocks(report: Piece) -> list[Block]:
    """Everything about money and time; what does not fit a comment is folded in Markdown. Empty without a plan."""
    budget = report["budget"]
    if budget is None:
        return []
    return [
        month_grid(report),
        year_grid(report),
        workload_grid(report),
        category_grid(report),
        provider_grid(report),
        case_grid(report),
        case_month_grid(report),
        *margin_blocks(report),
        Items(title="How the budget is laid out", items=tuple(budget["notes"]), folded=True),
    ]


def month_grid(report: Piece) -> Grid:
    """Money by month; training and serving apart, their sum with the horizon that it is for."""
    plan, budget = report["plan"], report["budget"]
    shown = [key for key in _SHOWN if _is_shown(budget, key)]
    heads = [*(_head(budget, key) for key in shown), *(["With it"] if budget["contingency"] else [])]
    rows = [
        [month["label"] + (" *" if month["after_horizon"] else ""), *_amounts(report, month, shown)]
        for month in budget["months"]
    ]
    if len(rows) > 1:
        served = any(workload["kind"] == "serving" for workload in plan["workloads"])
        label = f"{words.horizon(plan)} horizon" if served else "in all"
        rows.append([label, *_amounts(report, budget["totals"], shown)])
    notes = ["training one-off; serving recurring, paid for the horizon"]
    if "contingency" in shown:
        notes.append(f"{_head(budget, 'contingency')}: contingency, beside the total")
    if any(month["after_horizon"] for month in budget["months"]):
        notes.append("* after the horizon")
    return Grid(columns=(Column(head="Budget"), *(Column(head=head, right=True) for head in heads)), rows=rows,
                notes=tuple(notes))  # fmt: skip


def _is_shown(budget: Piece, key: str) -> bool:
    if key == "contingency":
        return bool(budget["contingency"])
    if key in ("committed", "variable"):
        return bool(budget["totals"]["committed_microusd"])
    return key == "total" or bool(budget["totals"][f"{key}_microusd"])


def _head(budget: Piece, key: str) -> str:
    return f"+ {format_percent(budget['contingency'])}" if key == "contingency" else _SHOWN[key]


def _amounts(report: Piece, row: Piece, shown: list[str]) -> list[str]:
    """Amounts of a month, a year or all; with the contingency at the end, beside the total."""
    cells = [words.money(report["plan"], row[f"{key}_microusd"]) for key in shown]
    both = row["total_microusd"] + row["contingency_microusd"]
    return [*cells, *([words.money(report["plan"], both)] if "contingency" in shown else [])]


def year_grid(report: Piece) -> Grid:
    """Money by fiscal year; no rows where the plan has no date."""
    budget = report["budget"]
    shown = [key for key in _SHOWN if _is_shown(budget, key)]
    heads = [*(_head(budget, key) for key in shown), *(["With it"] if budget["contingency"] else [])]
    rows = [
        [f"{year['label']} ({year['first_month']} to {year['last_month']})", *_amounts(report, year, shown)]
        for year in budget["fiscal_years"]
    ]
    first = Column(head=f"Fiscal year from {budget['fiscal_year_start']}")
    return Grid(columns=(first, *(Column(head=head, right=True) for head in heads)), rows=rows)


def workload_grid(report: Piece) -> Grid:
    """What each workload costs, its share of contracts included."""
    rows = [
        [row["workload"] or "nobody", _kind(row["kind"]), _money(report, row), _share(report, row)]
        for row in report["budget"]["by_workload"]
    ]
    return Grid(columns=columns("Cost of", "Paid", ">Total", ">Share"), rows=rows)


def _kind(kind: str) -> str:
    return {"training": "one-off", "serving": "recurring"}.get(kind, "unused")


def category_grid(report: Piece) -> Grid:
    """What is bought: on demand, under contract, copies of data."""
    rows = [
        [KINDS.get(row["category"], words.spaced(row["category"])), row["commitment"], _money(report, row),
         _share(report, row)]
        for row in report["budget"]["by_category"]
    ]  # fmt: skip
    return Grid(columns=columns("Bought as", "Due", ">Total", ">Share"), rows=rows, folded=True)


def provider_grid(report: Piece) -> Grid:
    """Who is paid."""
    rows = [
        [row["provider"], _money(report, row), _share(report, row)] for row in report["budget"]["by_provider"]
    ]  # fmt: skip
    return Grid(columns=columns("Paid to", ">Total", ">Share"), rows=rows, folded=True)


def _money(report: Piece, row: Piece) -> str:
    return words.money(report["plan"], row["total_microusd"])


def _share(report: Piece, row: Piece) -> str:
    total = report["budget"]["totals"]["total_microusd"]
    return f"{100 * row['total_microusd'] / total:.1f} %" if total else ""


def case_grid(report: Piece) -> Grid:
    """What may happen, what is expected and what is the worst."""
    section, heads = report["budget"]["cases"], columns("Budget of", ">Probability", ">Total")
    if not section:
        return Grid(columns=heads, rows=())
    rows = [[case["name"], f"{100 * case['probability']:.4g} %", _known(report, case)] for case in section["cases"]]
    rows.append(["expected", "", _known(report, section["expected"])])
    worst = section["worst"]
    rows.append([f"worst: {worst['name']}", f"{100 * worst['probability']:.4g} %", _known(report, worst)])
    return Grid(columns=heads, rows=rows)


def case_month_grid(report: Piece) -> Grid:
    """Month by month: as written, what is expected, and the worst; nothing where there is one month, or one future."""
    budget, plan = report["budget"], report["plan"]
    section, months = budget["cases"], [month["label"] for month in budget["months"]]
    heads = columns("By month", ">As written", ">Expected", ">Worst")
    if not section or len(months) < 2:
        return Grid(columns=heads, rows=())
    told = [section["cases"][0], section["expected"], section["worst"]]
    amounts = [(one or {}).get("months_microusd") or [None] * len(months) for one in told]
    rows = [
        [label, *("no plan" if amount is None else words.money(plan, amount) for amount in row)]
        for label, *row in zip(months, *amounts)
    ]
    return Grid(columns=heads, rows=rows)


def _known(report: Piece, row: Piece | None) -> str:
    return "no plan" if row is None or row["total_microusd"] is None else _money(report, row)


def margin_blocks(report: Piece) -> list[Grid]:
    """The margins that are taken, what they cost together, and each alone where that was asked for."""
    margins = report["margins"]
    if not margins or not margins["taken"]:
        return []
    alone = {row["name"]: row for row in margins["each"] or ()}
    rows = [
        [_MARGINS[one["name"]], one["taken"], one["without"], _saves(report, alone.get(one["name"]))]
        for one in margins["taken"]
    ]
    heads = columns("Margin", "Taken", "Without", ">Alone costs")
    notes = [*_together(report, margins), *margins["notes"]]
    return [Grid(columns=heads, rows=rows, notes=tuple(notes))]


def _saves(report: Piece, row: Piece | None) -> str:
    if row is None:
        return ""
    return "no plan" if row["saves_microusd"] is None else words.money(report["plan"], row["saves_microusd"])


def _together(report: Piece, margins: Piece) -> list[str]:
    """What all margins cost, in one sentence; none where it was not worked out."""
    if margins["together_microusd"] is None:
        return []
    cost, whole = margins["together_microusd"], margins["cost_microusd"]
    share = f" ({100 * cost / whole:.1f} % of the total)" if whole else ""
    without = words.money(report["plan"], margins["without_microusd"])
    return [f"together they cost {words.money(report['plan'], cost)}{share}: without any of them {without}"]
