"""The budget as one long table: a row for each workload, charge and month, which pivot tables sum.

Where a charge is metered, `count` × `billed_hours` × `price_usd_per_hour` is the amount; `hours_due` is the time of the
month in which it falls due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.budget.model import BudgetLine, MonthRow
from planner.report import csv
from planner.report.metered import metered_hours
from planner.report.model import ReportDocument

COLUMNS = (
    "plan", "case", "month", "month_start", "month_end", "fiscal_year", "after_horizon", "workload", "kind", "provider",
    "place", "item", "category", "commitment", "payment", "count", "billed_hours", "price_usd_per_hour",
    "hours_due", "amount_microusd", "amount_usd",
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
                yield {**head, **_month(month), **cells, **money, **_metered(line, amount)}
    for month in budget["months"]:
        if month["contingency_microusd"]:
            aside = month["contingency_microusd"]
            money = {"contingency_microusd": aside, "contingency_usd": aside / 1e6}
            yield {**head, **_month(month), "kind": "contingency", **money}


def _metered(line: BudgetLine, amount_microusd: int) -> dict[str, object]:
    """What of the hours of each node an amount pays for, and their price; empty where none is metered."""
    hours, price = metered_hours(line), line["price_microusd_per_hour"]
    if hours is None or price is None:
        return {}
    billed = hours * line["part_of_price"] * (amount_microusd / line["charge_microusd"])
    return {"billed_hours": billed, "price_usd_per_hour": price / 1e6}


def _month(month: MonthRow) -> dict[str, object]:
    dates = {"month_start": month["start_date"], "month_end": month["end_date"]}
    return {"month": month["label"], **dates, "fiscal_year": month["fiscal_year"],
            "after_horizon": "yes" if month["after_horizon"] else "no"}  # fmt: skip
