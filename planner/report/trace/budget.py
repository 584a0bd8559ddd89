"""The figures of a budget, and of what was solved beside the plan."""

from __future__ import annotations

from collections.abc import Iterator

from planner.report import accounting as rules
from planner.report.trace.row import Document, Piece, Places, ruled, spaced, traced, where

_MONEY = "micro-USD"


def budget_rows(budget: Piece | None, plan: Piece, places: Places | None) -> Iterator[Document]:
    """Totals, months, years, and every line with the charge of the plan that it is of."""
    if budget is None:
        return
    for name, value in budget["totals"].items():
        rule = rules.RESERVE if name == "contingency_microusd" else rules.SUM
        yield ruled(f"budget: {spaced(name)}", f"budget.totals.{name}", rule, value, _MONEY)
    for part, noun, rule in (("months", "month", rules.BY_MONTH), ("fiscal_years", "fiscal year", rules.SUM)):
        for number, row in enumerate(budget[part]):
            path, total = f"budget.{part}[{number}]", row["total_microusd"]
            yield ruled(f"budget: {noun} {row['label']}", path, rule, total, _MONEY)
    for part in ("by_workload", "by_provider", "by_category", "lines", "beside"):
        yield from _parts(budget, part)
    if budget["cases"]:
        yield ruled("budget: cases", "budget.cases", rules.EXPECTED)
    yield from _options(budget, plan, places)


def _parts(budget: Piece, part: str) -> Iterator[Document]:
    """Rows of one way to split the money."""
    rule = {"lines": rules.BY_MONTH, "beside": rules.COST}.get(part, rules.SUM)
    for number, row in enumerate(budget[part]):
        found = ruled(f"budget: {_named(row)}", f"budget.{part}[{number}]", rule, row["total_microusd"], _MONEY)
        yield found | {"place": f"plan.{row['source']}" if "source" in row else ""}


def _named(row: Piece) -> str:
    return " · ".join(str(row[key]) for key in ("workload", "provider", "item", "category", "what") if row.get(key))


def _options(budget: Piece, plan: Piece, places: Places | None) -> Iterator[Document]:
    """How the budget was asked for, and what it takes for granted."""
    written = plan["scenario"].get("report") or {}
    for name in ("contingency", "fiscal_year_start"):
        place = where(places, f"report.{name}") if name in written else ""
        kind = "scenario" if place else "assumption"
        yield traced(f"budget: {spaced(name)}", f"budget.{name}", kind, value=budget[name], place=place)
    for name in ("horizon_hours", "month_hours"):
        yield traced(f"budget: {spaced(name)}", f"budget.{name}", "assumption", value=budget[name], unit="h")


def solved_rows(report: Piece) -> Iterator[Document]:
    """Margins, frontier and trade-offs: other plans, each solved."""
    for name, figure in (("margins", "margins"), ("frontier", "frontier"), ("tradeoffs", "trade-offs")):
        if report.get(name):
            yield ruled(figure, name, rules.SOLVED)
