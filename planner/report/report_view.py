"""Everything that a report shows: one document, and that as text in any format but the page and the spreadsheet.

The document has the plan, its budget, what margins cost, and where figures are from; all views read it alone
(`report.html` and `report.workbook` too). In CSV the budget is one long table: a row for each workload, charge and
month, which pivot tables sum. Where a charge is metered, `count` × `billed_hours` × `price_usd_per_hour` is the amount;
`hours_due` is the time of the month in which it falls due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.budget.charges import metered_hours
from planner.budget.document import budget_document
from planner.budget.model import BudgetLine, MarginsCost, MonthRow
from planner.catalog.model import Catalog
from planner.errors import Place
from planner.plan.model.frontier_document import FrontierDocument, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.report import csv, json, markdown, text
from planner.report import plan_words as words
from planner.report.blocks import Block, Items, Lines, Said
from planner.report.budget_view import budget_blocks
from planner.report.model import ReportDocument, Reported, Saving
from planner.report.plan_view import (
    allocation_grid,
    alternative_grid,
    because_items,
    infeasible_blocks,
    limit_grid,
    made_with,
    price_grid,
    rejected_grid,
)
from planner.report.schedule_view import contract_block
from planner.report.screen import answer_blocks
from planner.report.trace import trace_of


def report_document(
    plan: PlanDocument,
    catalog: Catalog,
    *,
    margins: MarginsCost | None = None,
    frontier: FrontierDocument | None = None,
    tradeoffs: Sequence[Tradeoff] = (),
    savings: Sequence[Saving] = (),
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
    places: Mapping[str, Place] | None = None,
) -> ReportDocument:
    """The report of a plan.

    Parameters
    ----------
    plan
        A plan document; one without a plan has no budget.
    catalog
        That it was made with.
    margins
        What its margins cost (`planner.budget.margins`).
    frontier
        A frontier document.
    tradeoffs
        Cost against finish of single jobs.
    savings
        What would make it cheaper.
    fiscal_year_start, contingency
        In place of those of the scenario's `report`.
    places
        Path in the scenario -> where it is written (`Scenario.places`); without, lines are told by their path.

    Raises
    ------
    InputError
        The scenario's `report`, or what is asked for in its place, cannot be used.
    """
    budget = budget_document(plan, catalog, fiscal_year_start=fiscal_year_start, contingency=contingency)
    report: Reported = {
        "schema": "plan/report/v1",
        "plan": plan.copy(),
        "budget": budget,
        "margins": margins,
        "frontier": frontier,
        "tradeoffs": list(tradeoffs),
        "savings": list(savings),
    }
    return {**report, "trace": trace_of(report, places)}


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


FOLDED = "Prices, assumptions, what was not considered, how the budget is laid out"


def render_report(
    report: ReportDocument, form: str, *, width: int = 100, colour: bool = False, full: bool = False
) -> str:
    """A report as table, md, csv or json.

    Parameters
    ----------
    form
        table (for a terminal of `width` columns), md (a comment on a pull request), csv (one long table), json.
    full
        Long lists whole.
    """
    if form == "json":
        return json.render(report)
    if form == "csv":
        return render_budget(report)
    if form == "md":
        return markdown.draw(report_blocks(report, full=full), summary=FOLDED)
    return text.draw(terminal_blocks(report, full=full), width=width, style=text.Style(colour))


def report_blocks(report: ReportDocument, *, full: bool = False) -> list[Block]:
    """What was decided, what it costs and when, what else there was; the rest folded."""
    plan = report["plan"]
    prices = [price_grid(plan)] if report["budget"] is not None else []
    assumed = Items(title="Assumed (not in the scenario)", items=words.merged(plan, plan["assumed"]), folded=True)
    return [*terminal_blocks(report, full=full), *prices, assumed, rejected_grid(plan, full)]


def terminal_blocks(report: ReportDocument, *, full: bool = False) -> list[Block]:
    """The decision and its money; prices, assumptions and what was not considered are those of `plan explain`."""
    plan = report["plan"]
    blocks = answer_blocks(plan)
    if plan["infeasible"]:
        blocks += infeasible_blocks(plan, plan["infeasible"])
    if report["budget"] is not None:
        blocks += [allocation_grid(plan), contract_block(plan), *budget_blocks(report), limit_grid(plan)]
    warnings = Items(title="Warnings", items=words.merged(plan, plan["warnings"]), tone="fair")
    made = Lines(lines=(made_with(plan),))
    savings = Said(mark=">", rows=[(one["text"], one["command"]) for one in report["savings"]], tone="good")
    return [*blocks, savings, because_items(plan), alternative_grid(plan, full), warnings, made]
