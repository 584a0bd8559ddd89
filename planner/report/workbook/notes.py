"""The sheets of words: what was taken for granted, and where every figure is from."""

from __future__ import annotations

from collections.abc import Iterator

from planner.report.model import ReportDocument
from planner.report.workbook.book import Book

ASSUMPTIONS, TRACE = "Assumptions", "Trace"
_TRACE_HEADS = {
    "Figure": "What the figure says",
    "Value": "As solved",
    "Unit": "",
    "Kind": "An equation or rule, a fact with source and date, a line of the scenario, or an assumption",
    "Id": "Equations are explained by plan explain and in docs/",
    "Source": "",
    "As of": "",
    "Status": "",
    "Place": "File and line of the scenario, or the path in the plan document",
    "In the report": "Path of the figure in the report document",
}


def assumption_sheet(book: Book, report: ReportDocument) -> None:
    """Sentences: assumptions, warnings, how the budget was laid out."""
    sheet = book.sheet(ASSUMPTIONS, (22, 130), heads=2)
    book.text(sheet, (0, 0), "Assumptions", "title")
    book.heads(sheet, 1, {"Kind": "", "What": ""})
    for row, (kind, sentence) in enumerate(_sentences(report), start=2):
        book.text(sheet, (row, 0), kind)
        book.text(sheet, (row, 1), sentence, "wrapped")


def _sentences(report: ReportDocument) -> Iterator[tuple[str, str]]:
    plan, budget, margins = report["plan"], report["budget"], report["margins"]
    yield from (("warning", sentence) for sentence in plan["warnings"])
    yield from (("budget", sentence) for sentence in (budget["notes"] if budget else ()))
    yield from (("margins", sentence) for sentence in (margins["notes"] if margins else ()))
    yield from (("assumed", sentence) for sentence in plan["assumed"])
    yield from (("note", sentence) for sentence in plan["notes"])


def trace_sheet(book: Book, report: ReportDocument) -> None:
    """One line a figure."""
    sheet = book.sheet(TRACE, (56, 18, 12, 12, 26, 60, 12, 14, 36, 44), heads=2, fixed=1)
    book.text(sheet, (0, 0), "Where every figure is from", "title")
    book.heads(sheet, 1, _TRACE_HEADS)
    for row, trace in enumerate(report["trace"], start=2):
        value = trace["value"]
        book.text(sheet, (row, 0), trace["figure"])
        if isinstance(value, int | float) and not isinstance(value, bool):
            book.number(sheet, (row, 1), value)
        else:
            book.text(sheet, (row, 1), "" if value is None else str(value))
        cells = (trace["unit"], trace["kind"], trace["id"], trace["source"], trace["as_of"], trace["status"],
                 trace["place"], trace["path"])  # fmt: skip
        for column, text in enumerate(cells, start=2):
            book.text(sheet, (row, column), text)
