"""The figures of a budget, and of what was solved beside the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from planner.budget.model import Budget
from planner.plan.asked import report_asked
from planner.plan.model.plan import PlanDocument
from planner.report import accounting as rules
from planner.report.model import Reported, TraceKind, TraceRow
from planner.report.trace.row import Places, ruled, spaced, traced, where

Part = Literal["by_workload", "by_provider", "by_category", "lines", "beside"]
_PARTS: tuple[Part, ...] = ("by_workload", "by_provider", "by_category", "lines", "beside")
_MONEY = "micro-USD"


def budget_rows(budget: Budget | None, plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Totals, months, years, and every line with the charge of the plan that it is of.

    Parameters
    ----------
    budget
        Of the report; None = no rows.
    plan
        That the budget is of.
    places
        Path in the scenario -> where it is written; None = a line is told by its path in the plan.
    """
    if budget is None:
        return
    for name, value in budget["totals"].items():
        rule = rules.RESERVE if name == "contingency_microusd" else rules.SUM
        yield ruled(f"budget: {spaced(name)}", f"budget.totals.{name}", rule, value, _MONEY)
    for number, month in enumerate(budget["months"]):
        path, total = f"budget.months[{number}]", month["total_microusd"]
        yield ruled(f"budget: month {month['label']}", path, rules.BY_MONTH, total, _MONEY)
    for number, year in enumerate(budget["fiscal_years"]):
        path, total = f"budget.fiscal_years[{number}]", year["total_microusd"]
        yield ruled(f"budget: fiscal year {year['label']}", path, rules.SUM, total, _MONEY)
    for part in _PARTS:
        yield from _parts(budget, part)
    if budget["cases"]:
        yield ruled("budget: cases", "budget.cases", rules.EXPECTED)
    yield from _options(budget, plan, places)


def _parts(budget: Budget, part: Part) -> Iterator[TraceRow]:
    """Rows of one way to split the money."""
    rule = {"lines": rules.BY_MONTH, "beside": rules.COST}.get(part, rules.SUM)
    rows: Sequence[Mapping[str, object]] = budget[part]
    for number, row in enumerate(rows):
        names = (row.get(key) for key in ("workload", "provider", "item", "category", "what"))
        found = ruled("budget: " + " · ".join(str(name) for name in names if name), f"budget.{part}[{number}]", rule,
                      row["total_microusd"], _MONEY)  # fmt: skip
        found["place"] = f"plan.{row['source']}" if "source" in row else ""
        yield found


def _options(budget: Budget, plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """How the budget was asked for, and what it takes for granted."""
    written = report_asked(plan)
    for name in ("contingency", "fiscal_year_start"):
        place = where(places, f"report.{name}") if name in written else ""
        kind: TraceKind = "scenario" if place else "assumption"
        yield traced(f"budget: {spaced(name)}", f"budget.{name}", kind, value=budget[name], place=place)
    for span in ("horizon_hours", "month_hours"):
        yield traced(f"budget: {spaced(span)}", f"budget.{span}", "assumption", value=budget[span], unit="h")


def solved_rows(report: Reported) -> Iterator[TraceRow]:
    """Margins, frontier and trade-offs: other plans, each solved."""
    for name, figure in (("margins", "margins"), ("frontier", "frontier"), ("tradeoffs", "trade-offs")):
        if report.get(name):
            yield ruled(figure, name, rules.SOLVED)
