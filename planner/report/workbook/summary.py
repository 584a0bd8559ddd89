"""The first sheet: what it costs, for how long, what is set aside; each figure a formula over the other sheets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from planner.budget.model import AMOUNTS, Budget, FiscalYear, MarginsCost, Totals, What
from planner.plan.model.plan import PlanDocument
from planner.report.model import ReportDocument
from planner.report.plan_words import horizon, price_days, proof
from planner.report.screen_words import decided
from planner.report.workbook.book import Book, Range, Sheet
from planner.report.workbook.months import FIRST_MONTH, HEAD, KINDS, MONTHS, SUMS, Grid
from planner.report.workbook.rows import MICRO, BookRows

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
    """What each month costs, beside the totals; nothing of a single month."""
    if len(budget["months"]) < 2:
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
