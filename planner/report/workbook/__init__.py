"""A report as a spreadsheet that finance can trace and change: prices lead, by live formulas, to months and totals."""

from __future__ import annotations

from planner.report.model import ReportDocument
from planner.report.workbook.book import Book, assumption_sheet, trace_sheet
from planner.report.workbook.charge_sheets import allocation_sheet, owned_sheet, price_sheet, rows_of
from planner.report.workbook.month_sheets import FIRST, month_sheet, summary_facts, summary_money, summary_sheet


def workbook(report: ReportDocument) -> bytes:
    """A report document as the bytes of an .xlsx file.

    A changed price on the sheet Prices is followed by allocations, months, totals and contingency; text is text and
    never a formula. A report without a plan has no sheets of money.
    """
    plan, budget = report["plan"], report["budget"]
    book = Book()
    summary, row = summary_sheet(book, report), FIRST
    if budget is not None:
        rows = rows_of(budget)
        allocation_sheet(book, rows, plan)
        grid = month_sheet(book, rows, budget)
        price_sheet(book, rows, plan, owned_sheet(book, rows, plan))
        row = summary_money(book, summary, report, budget, rows, grid)
    summary_facts(book, summary, report, row)
    assumption_sheet(book, report)
    trace_sheet(book, report)
    book.stamped(plan["name"], plan["provenance"]["catalog"]["as_of"])
    return book.bytes()
