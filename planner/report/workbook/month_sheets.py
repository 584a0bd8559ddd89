"""The sheets of sums: what each workload bears of every charge, month by month, and the summary that comes first.

The summary says what it costs, for how long, and what is set aside; each figure is a formula over the other sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from planner.budget.model import AMOUNTS, Budget, BudgetLine, FiscalYear, MarginsCost, Totals, What
from planner.carriers import dataclass
from planner.plan.model.plan import PlanDocument
from planner.report.model import ReportDocument
from planner.report.plan_words import horizon, price_days, proof, spaced
from planner.report.screen_words import decided
from planner.report.workbook.book import Book, Range, Sheet
from planner.report.workbook.charge_sheets import MICRO, BookRows, cost_cell

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


SUMMARY = "Summary"
FIRST = 3  # row of the first figure
Figure = What | Literal["both"]
_FIGURES: tuple[Figure, ...] = (
    "training", "serving", "unused", "total", "contingency", "both", "committed", "variable",
)  # fmt: skip
_OF_YEARS: tuple[Figure, ...] = ("training", "serving", "total", "contingency", "both")
_WORDS = {
    "training": "Training, one-off",
    "serving": "Serving, recurring, for {horizon}",
    "unused": "Contracts that nobody uses",
    "total": "Total for {horizon} horizon",
    "contingency": "Contingency, beside the total",
    "both": "Total with contingency",
    "committed": "of the total committed",
    "variable": "of the total variable",
}
_NAMES = {"training": "Training", "serving": "Serving", "total": "Total", "contingency": "Contingency",
          "both": "Total_with_contingency", "committed": "Committed", "variable": "Variable"}  # fmt: skip


def summary_sheet(book: Book, report: ReportDocument) -> Sheet:
    """The sheet with its head: what is decided; `summary_money` adds what it costs, `summary_facts` the rest."""
    plan = report["plan"]
    sheet = book.sheet(SUMMARY, (38, 18, 18, 18, 18, 18), heads=1)
    book.text(sheet, (0, 0), " · ".join(filter(None, (plan["name"], plan["title"]))), "title")
    book.text(sheet, (1, 0), decided(plan), "strong")
    return sheet


def summary_facts(book: Book, sheet: Sheet, report: ReportDocument, row: int) -> None:
    """What the plan was made from, below all else.

    Parameters
    ----------
    book
        That the sheet is of.
    sheet
        Of `summary_sheet`.
    report
        For its plan.
    row
        Where to begin, from zero.
    """
    for number, (name, text) in enumerate(_facts(report["plan"]), start=row):
        book.text(sheet, (number, 0), name, "strong")
        book.text(sheet, (number, 1), text)


def _facts(plan: PlanDocument) -> Iterator[tuple[str, str]]:
    catalog = plan["provenance"]["catalog"]
    yield "Plan", proof(plan, None)
    yield "Case", plan["case"] or "as written"
    yield "Scenario", plan["scenario_file"] or ""
    yield "Catalog", f"{catalog['name']} {catalog['as_of']} (sha256 {catalog['sha256'][:16]})"
    yield "Prices of", price_days(plan)
    yield "Plan's SHA-256", plan["sha256"] or ""


def summary_money(book: Book, sheet: Sheet, report: ReportDocument, budget: Budget, rows: BookRows, grid: Grid) -> int:
    """Totals, fiscal years, workloads, what margins cost and what else may happen; the row after them.

    Parameters
    ----------
    book
        That the sheet is of; its sheet of months is there already.
    sheet
        Of `summary_sheet`.
    report
        For its plan and what its margins cost.
    budget
        The report's budget.
    rows
        For their lines, each with its charge.
    grid
        Where things stand on the sheet of months, of `month_sheet`.
    """
    plan, row = report["plan"], FIRST
    book.text(sheet, (row, 0), "Contingency, share of the total", "strong")
    book.number(sheet, (row, 1), budget["contingency"], "input share")
    book.name("Contingency_share", f"={SUMMARY}!$B${row + 1}")
    book.number(sheet, (row + 1, 1), budget["horizon_hours"], "hours")
    book.text(sheet, (row + 1, 0), "Horizon [h]", "strong")
    book.name("Horizon_hours", f"={SUMMARY}!$B${row + 2}")
    row = _totals(book, sheet, budget, grid, row + 3, horizon(plan))
    row = _solved(book, sheet, plan, budget, row)
    row = _years(book, sheet, budget, grid, row + 1)
    row = _workloads(book, sheet, rows, grid, row + 1)
    row = _cases(book, sheet, budget, row + 1)
    row = _margins(book, sheet, report["margins"], row)
    for number, beside in enumerate(budget["beside"]):
        book.text(sheet, (row + number, 0), f"Beside the total: {beside['what']}")
        book.number(sheet, (row + number, 1), beside["total_microusd"] / MICRO, "money")
    _month_chart(book, sheet, budget, grid)
    return row + len(budget["beside"]) + 1


def _month_chart(book: Book, sheet: Sheet, budget: Budget, grid: Grid) -> None:
    """What each month costs, beside the totals; nothing of a single month, or where nothing is paid."""
    if len(budget["months"]) < 2 or not budget["totals"]["total_microusd"]:
        return
    first, last = FIRST_MONTH, grid.total - 1
    lines: list[tuple[str, Range]] = [
        (words, [MONTHS, SUMS + number, first, SUMS + number, last])
        for number, (key, words) in enumerate(KINDS.items())
        if budget["totals"][AMOUNTS[key]]
    ]
    chart = book.stacked_columns("Cost by month", [MONTHS, HEAD, first, HEAD, last], lines)
    sheet.insert_chart(FIRST - 1, 2, chart, {"x_offset": 12, "y_offset": 4})


def _totals(book: Book, sheet: Sheet, budget: Budget, grid: Grid, row: int, length: str) -> int:
    """A line for each figure of the monthly sheet; the row after them."""
    for number, key in enumerate(_FIGURES):
        strong = key in ("total", "both")
        book.text(sheet, (row + number, 0), _WORDS[key].format(horizon=length), "strong" if strong else "text")
        text = f"='{MONTHS}'!${grid.column(grid.total)}${SUMS + number + 1}"
        book.formula(
            sheet, (row + number, 1), text, _amount(budget["totals"], key) / MICRO, "sum" if strong else "money"
        )
        if key in _NAMES:
            book.name(_NAMES[key], f"={SUMMARY}!$B${row + number + 1}")
    return row + len(_FIGURES)


def _amount(row: Totals, key: Figure) -> int:
    return row["total_microusd"] + row["contingency_microusd"] if key == "both" else row[AMOUNTS[key]]


def _solved(book: Book, sheet: Sheet, plan: PlanDocument, budget: Budget, row: int) -> int:
    """The range of the plan's total, that total beside the one of the formulas, and whether all lines are in it."""
    total = budget["totals"]["total_microusd"] / MICRO
    band = plan["summary"].get("cost_band")
    for name, usd in (("p10", band["p10"]), ("p90", band["p90"])) if band else ():
        book.text(sheet, (row, 0), f"{name} of the total, as solved")
        book.number(sheet, (row, 1), usd, "money")
        row += 1
    book.text(sheet, (row, 0), "As solved")
    book.number(sheet, (row, 1), total, "money")
    book.text(sheet, (row + 1, 0), "Changed here since")
    book.formula(sheet, (row + 1, 1), f"=ROUND(Total-B{row + 1},2)", 0.0)
    book.text(sheet, (row + 2, 0), "Check: allocations less months, must be 0")
    book.formula(sheet, (row + 2, 1), "=ROUND(SUM(Cost)-Total,2)", 0.0)
    return row + 3


def _years(book: Book, sheet: Sheet, budget: Budget, grid: Grid, row: int) -> int:
    """Sums by fiscal year; nothing where the plan has no date."""
    if not budget["fiscal_years"]:
        return row
    first = f"Fiscal year from {budget['fiscal_year_start'].capitalize()}"
    heads = (first, "Training", "Serving", "Total", "Contingency", "Total with contingency")
    book.heads(sheet, row, dict.fromkeys(heads, ""), right=", ".join(heads[1:]))
    for number, year in enumerate(budget["fiscal_years"], start=row + 1):
        _year(book, sheet, grid, number, year)
    return row + len(budget["fiscal_years"]) + 1


def _year(book: Book, sheet: Sheet, grid: Grid, row: int, year: FiscalYear) -> None:
    book.text(sheet, (row, 0), year["label"])
    first, last = grid.column(FIRST_MONTH), grid.column(grid.total - 1)
    labels = f"'{MONTHS}'!${first}${HEAD + 2}:${last}${HEAD + 2}"
    for column, key in enumerate(_OF_YEARS, start=1):
        line = SUMS + _FIGURES.index(key) + 1
        text = f"=SUMIF({labels},$A{row + 1},'{MONTHS}'!${first}${line}:${last}${line})"
        book.formula(sheet, (row, column), text, _amount(year, key) / MICRO)


def _workloads(book: Book, sheet: Sheet, rows: BookRows, grid: Grid, row: int) -> int:
    """What each workload bears: the sum of its lines, which stand together."""
    book.heads(sheet, row, {"Workload": "", "Cost": "With its share of contracts", "Kind": ""}, right="Cost")
    ends: dict[tuple[str, str], list[int]] = {}
    for number, (line, _) in enumerate(rows.lines):
        ends.setdefault((line["workload"], line["kind"]), []).append(number)
    column = grid.column(grid.total)
    for place, ((workload, kind), mine) in enumerate(ends.items(), start=row + 1):
        first, last = grid.first + mine[0] + 1, grid.first + mine[-1] + 1
        cost = sum(rows.lines[number][0]["total_microusd"] for number in mine) / MICRO
        book.text(sheet, (place, 0), workload or "nobody")
        book.formula(sheet, (place, 1), f"=SUM('{MONTHS}'!${column}${first}:${column}${last})", cost)
        book.text(sheet, (place, 2), {"training": "one-off", "serving": "recurring"}.get(kind, kind))
    return row + len(ends) + 1


def _margins(book: Book, sheet: Sheet, margins: MarginsCost | None, row: int) -> int:
    """What all margins cost together, as solved; nothing where it was not worked out."""
    if not margins or margins["together_microusd"] is None:
        return row
    names = ", ".join(one["name"].replace("_", " ") for one in margins["taken"])
    book.text(sheet, (row, 0), "Margins together (as solved)")
    book.number(sheet, (row, 1), margins["together_microusd"] / MICRO, "money")
    book.text(sheet, (row, 2), names)
    return row + 2


def _cases(book: Book, sheet: Sheet, budget: Budget, row: int) -> int:
    """What else may happen, as solved: these do not follow prices."""
    section = budget["cases"]
    if not section:
        return row
    book.heads(sheet, row, {"What may happen (as solved)": "These do not follow the sheet Prices", "Cost": "",
                            "Probability": ""}, right="Cost, Probability")  # fmt: skip
    rows: list[tuple[str, int | None, float | None]] = [
        (case["name"], case["total_microusd"], case["probability"]) for case in section["cases"]
    ]
    expected = section["expected"]
    rows.append(("expected", expected["total_microusd"] if expected else None, None))
    for number, (name, cost, probability) in enumerate(rows, start=row + 1):
        book.text(sheet, (number, 0), name)
        book.number(sheet, (number, 1), None if cost is None else cost / MICRO, "money")
        book.number(sheet, (number, 2), probability, "share")
    return row + len(rows) + 2
