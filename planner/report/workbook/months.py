"""The monthly budget: what of every charge each workload bears, month by month, and the sums over them."""

from __future__ import annotations

from planner.budget.model import AMOUNTS, Budget, BudgetLine, What
from planner.carriers import dataclass
from planner.report.plan_words import spaced
from planner.report.workbook.book import Book, Sheet
from planner.report.workbook.money import cost_cell
from planner.report.workbook.rows import MICRO, BookRows

MONTHS = "Monthly budget"
HEAD, SUMS = 2, 4  # row of the months' labels, and of the first sum
FIRST_MONTH = 9  # column
_LINE_HEADS = {
    "Workload": "Who bears it",
    "Kind": "training (one-off), serving (recurring), or unused nodes under contract",
    "What": "Id of the offer",
    "Provider": "",
    "Price model": "",
    "Committed or variable": "",
    "Payment": "",
    "Charge": "Cost on the sheet Allocations",
    "Share": "Of the charge that the workload bears: its node-hours in the pool, else all",
}
KINDS: dict[What, str] = {
    "training": "Training (one-off)",
    "serving": "Serving (recurring)",
    "unused": "Contracts nobody uses",
}
_TERMS: dict[What, str] = {"committed": "of it committed", "variable": "of it variable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where things stand on the sheet."""

    months: int
    lines: int

    @property
    def first(self) -> int:
        """Row of the first line, from zero."""
        return SUMS + len(KINDS) + len(_TERMS) + 5

    @property
    def hours(self) -> int:
        """Row of the hours of the first line."""
        return self.first + self.lines + 4

    @property
    def total(self) -> int:
        """Column of the totals."""
        return FIRST_MONTH + self.months

    def column(self, number: int) -> str:
        """A column's letters."""
        from xlsxwriter.utility import xl_col_to_name

        return str(xl_col_to_name(number))

    def lines_of(self, column: int, *, fixed: bool = False) -> str:
        """All lines of a column, as a range; `fixed`: of that column wherever the formula is copied to."""
        letters, mark = self.column(column), "$" if fixed else ""
        return f"{mark}{letters}${self.first + 1}:{mark}{letters}${self.first + max(self.lines, 1)}"


def month_sheet(book: Book, rows: BookRows, budget: Budget) -> Grid:
    """The sheet of months; where its parts stand.

    Parameters
    ----------
    book
        That gets the sheet.
    rows
        For their lines, each with its charge.
    budget
        For its months, totals and contingency.
    """
    months = budget["months"]
    grid = Grid(months=len(months), lines=len(rows.lines))
    widths = (22, 10, 42, 14, 14, 12, 11, 14, 9, *([13] * len(months)), 15)
    sheet = book.sheet(MONTHS, widths, heads=SUMS, fixed=1)
    book.text(sheet, (0, 0), "Monthly budget", "title")
    book.text(sheet, (1, 0), _about(budget), "note")
    book.heads(
        sheet, HEAD, {"": ""} | {month["label"]: "" for month in months} | {"Total": ""}, FIRST_MONTH - 1, right="*"
    )
    for number, month in enumerate(months):
        book.text(sheet, (HEAD + 1, FIRST_MONTH + number), month["fiscal_year"] or "", "note")
    _sums(book, sheet, grid, budget)
    book.heads(sheet, grid.first - 1, _LINE_HEADS, right="Charge, Share")
    for number, (line, charge) in enumerate(rows.lines):
        _line(book, sheet, grid, number, line, charge)
    _hours(book, sheet, grid, rows)
    return grid


def _about(budget: Budget) -> str:
    calendar = "Calendar months" if budget["begin"] else f"Months of {budget['month_hours']} h from the plan's begin"
    return f"{calendar}. Training is paid once, serving recurs; their sum is that of the horizon."


def _sums(book: Book, sheet: Sheet, grid: Grid, budget: Budget) -> None:
    """Sums over the lines above them: by kind, in all, with the contingency, by commitment."""
    row = SUMS
    for key, words in KINDS.items():
        _sum_row(book, sheet, grid, row, words, budget, key, f'SUMIF({grid.lines_of(1, fixed=True)},"{key}",{{lines}})')
        row += 1
    total = row + 1
    _sum_row(book, sheet, grid, row, "Total for the horizon", budget, "total", "SUM({lines})", "sum")
    _sum_row(book, sheet, grid, row + 1, "Contingency", budget, "contingency", f"{{column}}${total}*Contingency_share")
    _both(book, sheet, grid, row + 2, budget)
    for number, (key, words) in enumerate(_TERMS.items(), start=row + 3):
        formula = f'SUMIF({grid.lines_of(5, fixed=True)},"{key}",{{lines}})'
        _sum_row(book, sheet, grid, number, words, budget, key, formula)


def _both(book: Book, sheet: Sheet, grid: Grid, row: int, budget: Budget) -> None:
    book.text(sheet, (row, 0), "Total with contingency", "strong")
    months = [month["total_microusd"] + month["contingency_microusd"] for month in budget["months"]]
    for number, microusd in enumerate([*months, sum(months)]):
        letters = grid.column(FIRST_MONTH + number)
        book.formula(sheet, (row, FIRST_MONTH + number), f"={letters}{row - 1}+{letters}{row}", microusd / MICRO, "sum")


def _sum_row(
    book: Book,
    sheet: Sheet,
    grid: Grid,
    row: int,
    words: str,
    budget: Budget,
    key: What,
    formula: str,
    style: str = "money",
) -> None:
    """One sum in every month and in all; `{lines}` and `{column}` stand for those of each column."""
    book.text(sheet, (row, 0), words, "strong")
    values = [month[AMOUNTS[key]] for month in budget["months"]]
    for number, microusd in enumerate([*values, budget["totals"][AMOUNTS[key]]]):
        column = FIRST_MONTH + number
        text = formula.format(lines=grid.lines_of(column), column=grid.column(column))
        book.formula(sheet, (row, column), f"={text}", microusd / MICRO, style)


def _line(book: Book, sheet: Sheet, grid: Grid, number: int, line: BudgetLine, charge: int) -> None:
    row = grid.first + number
    texts = (line["workload"] or "nobody", line["kind"], line["item"], line["provider"], spaced(line["category"]),
             line["commitment"], line["payment"])  # fmt: skip
    for column, text in enumerate(texts):
        book.text(sheet, (row, column), text)
    book.formula(sheet, (row, 7), f"={cost_cell(charge)}", line["charge_microusd"] / MICRO)
    book.number(sheet, (row, 8), line["share"], "share")
    hours = grid.hours + number + 1
    whole = f"SUM(${grid.column(FIRST_MONTH)}{hours}:${grid.column(grid.total - 1)}{hours})"
    for month, microusd in enumerate(line["months_microusd"]):
        column = FIRST_MONTH + month
        text = f"=$H{row + 1}*$I{row + 1}*{grid.column(column)}{hours}/{whole}"
        book.formula(sheet, (row, column), text, microusd / MICRO)
    ends = f"{grid.column(FIRST_MONTH)}{row + 1}:{grid.column(grid.total - 1)}{row + 1}"
    book.formula(sheet, (row, grid.total), f"=SUM({ends})", line["total_microusd"] / MICRO, "line sum")


def _hours(book: Book, sheet: Sheet, grid: Grid, rows: BookRows) -> None:
    """Hours of every line that fall due in each month: what its money is spread by."""
    words = "Hours of each line that fall due in a month (what is due at once counts one hour)"
    book.text(sheet, (grid.hours - 2, 0), words, "strong")
    for number, (line, _) in enumerate(rows.lines):
        row = grid.hours + number
        book.text(sheet, (row, 0), line["workload"] or "nobody")
        book.text(sheet, (row, 1), line["kind"])
        book.text(sheet, (row, 2), line["item"])
        for month, hours in enumerate(line["month_hours"]):
            book.number(sheet, (row, FIRST_MONTH + month), hours, "hours")
