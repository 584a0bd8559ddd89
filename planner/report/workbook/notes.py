"""The sheets of words: what was taken for granted, and where every figure is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.report.workbook.book import Book

Piece = Mapping[str, Any]
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


def assumption_sheet(book: Book, report: Piece) -> None:
    """Sentences: assumptions, warnings, how the budget was laid out."""
    sheet = book.sheet(ASSUMPTIONS, (22, 130), heads=2)
    book.text(sheet, (0, 0), "Assumptions", "title")
    book.heads(sheet, 1, {"Kind": "", "What": ""})
    for row, (kind, sentence) in enumerate(_sentences(report), start=2):
        book.text(sheet, (row, 0), kind)
        book.text(sheet, (row, 1), sentence, "wrapped")


def _sentences(report: Piece) -> Iterator[tuple[str, str]]:
    plan, budget = report["plan"], report["budget"] or {"notes": []}
    yield from (("warning", sentence) for sentence in plan["warnings"])
    yield from (("budget", sentence) for sentence in budget["notes"])
    yield from (("margins", sentence) for sentence in (report["margins"] or {}).get("notes", []))
    yield from (("assumed", sentence) for sentence in plan["assumed"])
    yield from (("note", sentence) for sentence in plan["notes"])


def trace_sheet(book: Book, report: Piece) -> None:
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
        keys = ("unit", "kind", "id", "source", "as_of", "status", "place", "path")
        for column, key in enumerate(keys, start=2):
            book.text(sheet, (row, column), trace[key])
