"""A spreadsheet being written: its formats, the few ways in which cells may be filled, and its sheets of words.

Text goes through one door, as text: nothing that a user named ever becomes a formula. Formulas are ours, and each
carries the value that it has now, for viewers that do not calculate. The words are what was taken for granted, and
where every figure is from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeAlias

from planner.report import escape
from planner.report.model import ReportDocument

Cell: TypeAlias = tuple[int, int]  # row and column from zero
Sheet: TypeAlias = Any  # xlsxwriter's worksheet, which has no types
Chart: TypeAlias = Any
Range: TypeAlias = list[str | int]  # sheet, first row and column, last row and column
_OPTIONS = {
    "in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False,
}  # fmt: skip
_FONT = {"font_name": "Calibri", "font_size": 10, "valign": "top"}
_MONEY = '$#,##0.00;[Red]-$#,##0.00;"–"'
_PRICE = "$#,##0.0000##"
_HEAD: dict[str, Any] = {"bold": True, "bottom": 1, "text_wrap": True, "bg_color": "#E8EEF4", "valign": "bottom"}
_CHANGEABLE = {"font_color": "#0000FF", "bg_color": "#FFF8DC"}
_PAPER_A4 = 9
_TITLE_POINTS = 22  # height of a row


class Book:
    """A workbook in memory."""

    def __init__(self) -> None:
        import xlsxwriter

        self._buffer = BytesIO()
        self._book = xlsxwriter.Workbook(self._buffer, _OPTIONS)
        self._formats: dict[str, Any] = {}
        self._styles: dict[str, dict[str, Any]] = {
            "text": {"indent": 1},
            "wrapped": {"text_wrap": True},
            "quoted": {"quote_prefix": True, "indent": 1},
            "title": {"bold": True, "font_size": 14},
            "strong": {"bold": True, "indent": 1},
            "head": {**_HEAD, "indent": 1},
            "head right": {**_HEAD, "align": "right", "indent": 1},
            "note": {"italic": True, "font_color": "#595959"},
            "count": {"num_format": "#,##0"},
            "hours": {"num_format": '#,##0.00;-#,##0.00;"–"'},
            "number": {"num_format": "General"},
            "share": {"num_format": "0.00%"},
            "money": {"num_format": _MONEY},
            "sum": {"num_format": _MONEY, "bold": True, "top": 1},
            "line sum": {"num_format": _MONEY, "bold": True},
            "price": {
                "num_format": _PRICE,
                "font_color": "#0000FF",
                "bg_color": "#FFF8DC",
            },
            "priced": {"num_format": _PRICE},
            "input": {"num_format": "General", **_CHANGEABLE},
            "input share": {"num_format": "0.00%", **_CHANGEABLE},
        }

    def _style(self, name: str) -> Any:
        if name not in self._formats:
            style = self._styles[name]
            room = {"align": "right", "indent": 1} if "num_format" in style else {}  # numbers keep off the next column
            self._formats[name] = self._book.add_format({**_FONT, **room, **style})
        return self._formats[name]

    def sheet(self, name: str, widths: Sequence[float], *, heads: int, fixed: int = 0) -> Sheet:
        """A new sheet, set up for the screen and for paper.

        Parameters
        ----------
        widths
            Of the columns.  [characters]
        heads, fixed
            Rows at the top and columns at the left that stay in sight, and are printed on every page.
        """
        sheet = self._book.add_worksheet(name)
        for column, width in enumerate(widths):
            sheet.set_column(column, column, width)
        sheet.set_row(0, _TITLE_POINTS)
        sheet.freeze_panes(heads, fixed)
        sheet.hide_gridlines(2)
        sheet.set_landscape()
        sheet.set_paper(_PAPER_A4)
        sheet.fit_to_pages(1, 0)
        sheet.set_margins(left=0.4, right=0.4, top=0.6, bottom=0.6)
        sheet.set_footer("&L&A&RPage &P of &N")
        if heads:
            sheet.repeat_rows(0, heads - 1)
        return sheet

    def text(self, sheet: Sheet, at: Cell, text: str, style: str = "text") -> None:
        """A cell of text, whatever it looks like.

        Parameters
        ----------
        sheet
            Of this book.
        at
            The cell.
        text
            As a user may have named it.
        style
            Of the book's styles, by name.
        """
        safe = escape.xlsx_cell(text)
        quoted = style == "text" and escape.runs_in_a_sheet(safe)
        sheet.write_string(*at, safe, self._style("quoted" if quoted else style))

    def number(self, sheet: Sheet, at: Cell, value: float | None, style: str = "number") -> None:
        """A cell with a number; empty where it is unknown.

        Parameters
        ----------
        sheet
            Of this book.
        at
            The cell.
        value
            In the unit of the style.
        style
            Of the book's styles, by name.
        """
        if value is None:
            sheet.write_blank(*at, None, self._style(style))
        else:
            sheet.write_number(*at, value, self._style(style))

    def formula(self, sheet: Sheet, at: Cell, formula: str, value: float, style: str = "money") -> None:
        """A formula of ours, and the value that it has now.

        Parameters
        ----------
        sheet
            Of this book.
        at
            The cell.
        formula
            With "=" before it; no text of a user may stand in it.
        value
            What it gives now, in the unit of the style.
        style
            Of the book's styles, by name.
        """
        sheet.write_formula(*at, formula, self._style(style), value)

    def heads(self, sheet: Sheet, row: int, heads: Mapping[str, str], column: int = 0, *, right: str = "") -> None:
        """A line of heads, each with a comment that says where its column comes from.

        Parameters
        ----------
        heads
            Head -> comment; no comment where it is empty.
        right
            Heads of columns of numbers, which stand at the right, with ", " between them; "*" for all.
        """
        numbers = set(right.split(", "))
        for number, (head, origin) in enumerate(heads.items(), start=column):
            self.text(sheet, (row, number), head, "head right" if head in numbers or "*" in numbers else "head")
            if origin:
                sheet.write_comment(row, number, escape.xlsx_cell(origin), {"x_scale": 2, "author": "plan"})

    def stacked_columns(self, title: str, heads: Range, lines: Sequence[tuple[str, Range]]) -> Chart:
        """A chart that follows its cells: columns of several parts, one on the other.

        Parameters
        ----------
        title
            Of the chart.
        heads
            Cells with the names of the columns.
        lines
            Name of each part, and the cells with its values.
        """
        chart = self._book.add_chart({"type": "column", "subtype": "stacked"})
        for name, values in lines:
            chart.add_series({"name": name, "categories": heads, "values": values, "gap": 60})
        chart.set_title({"name": title, "overlay": False, "name_font": {"size": 12}})
        chart.set_y_axis({"num_format": "#,##0", "major_gridlines": {"visible": True, "line": {"color": "#D9D9D9"}}})
        chart.set_legend({"position": "bottom"})
        chart.set_size({"width": 620, "height": 300})
        return chart

    def name(self, name: str, reference: str) -> None:
        """A name for a cell or a range: "=Summary!$B$4"."""
        self._book.define_name(name, reference)

    def stamped(self, title: str, day: str) -> None:
        """Properties of the file; its date is the catalog's, so that equal reports are equal files."""
        from datetime import datetime

        try:
            created = datetime.fromisoformat(day)
        except ValueError:  # a catalog without a date
            created = datetime(2000, 1, 1)
        self._book.set_properties({"title": escape.xlsx_cell(title), "created": created, "comments": "Made by plan"})

    def bytes(self) -> bytes:
        """The file; nothing can be written afterwards."""
        self._book.close()
        return self._buffer.getvalue()


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
