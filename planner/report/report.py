"""A report document as text, in any format but the page (`report.html`) and the spreadsheet (`report.workbook`)."""

from __future__ import annotations

from planner.report import json, markdown, text
from planner.report import plan_words as words
from planner.report.blocks import Block, Items, Lines, Said
from planner.report.budget_csv import render_budget
from planner.report.budget_view import budget_blocks
from planner.report.model import ReportDocument
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
