"""The budget as one long table: a row for each workload, charge and month, which pivot tables sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.plan.budget.model import MonthRow
from planner.report import csv
from planner.report.model import ReportDocument

COLUMNS = (
    "plan", "case", "month", "month_start", "month_end", "fiscal_year", "after_horizon", "workload", "kind", "provider",
    "place", "item", "category", "commitment", "payment", "count", "hours_due", "amount_microusd", "amount_usd",
    "contingency_microusd", "contingency_usd", "horizon_hours", "source",
)  # fmt: skip


def render_budget(report: ReportDocument) -> str:
    """Amounts add up to the plan's total, contingencies to the contingency: two columns, never one."""
    return csv.render(budget_rows(report), COLUMNS)


def budget_rows(report: ReportDocument) -> Iterator[dict[str, object]]:
    """One row a line and month with money in it, then the contingency of each month; none without a plan."""
    budget, plan = report["budget"], report["plan"]
    if budget is None:
        return
    head = {"plan": plan["name"], "case": plan["case"], "horizon_hours": budget["horizon_hours"]}
    for line in budget["lines"]:
        for month, hours, amount in zip(budget["months"], line["month_hours"], line["months_microusd"]):
            if amount:
                known: Mapping[str, object] = line
                cells = {name: known[name] for name in COLUMNS if name in known}
                money = {"amount_microusd": amount, "amount_usd": amount / 1e6, "hours_due": hours}
                yield {**head, **_month(month), **cells, **money}
    for month in budget["months"]:
        if month["contingency_microusd"]:
            aside = month["contingency_microusd"]
            money = {"contingency_microusd": aside, "contingency_usd": aside / 1e6}
            yield {**head, **_month(month), "kind": "contingency", **money}


def _month(month: MonthRow) -> dict[str, object]:
    dates = {"month_start": month["start_date"], "month_end": month["end_date"]}
    return {"month": month["label"], **dates, "fiscal_year": month["fiscal_year"],
            "after_horizon": "yes" if month["after_horizon"] else "no"}  # fmt: skip
