"""The sheets that money starts from: prices, which may be changed, and what is paid for at them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.plan.model.plan import PlanDocument
from planner.report.plan_words import spaced
from planner.report.workbook.book import Book, Sheet
from planner.report.workbook.rows import PER_HOUR, BookRows, ChargeRow, PriceRow, origin_of

PRICES, ALLOCATIONS = "Prices", "Allocations"
FIRST = 3  # row of the first price and of the first charge, from zero
_PRICE_HEADS = {
    "What": "Id of the offer in the catalog or in the scenario, or what is paid for",
    "Price": "Change a price here: allocations, months, totals and the contingency follow. Counts and hours stay: "
    "whether another plan would then be cheaper, only plan solve knows",
    "Unit": "Of one node (a whole shape) for an hour; or a sum that tiers or tables give",
    "Provider": "",
    "Place": "",
    "Price model": "",
    "As of": "Date of the price",
    "Status": "seen at the source, recalled, without a date of its own (date-unknown), or the user's own",
    "Source": "Where the price was read",
}
_CHARGE_HEADS = {
    "Workload": "Of the scenario; several share nodes under contract, by node-hours",
    "Kind": "Training is paid once; serving recurs for as long as the horizon says",
    "What": "Id of the offer",
    "Provider": "",
    "Place": "",
    "Price model": "",
    "Committed or variable": "Committed: due whether it is used or not",
    "Payment": "Up front: due in the month in which it starts; instalments: evenly over the term",
    "Nodes": "Chosen by the integer program",
    "Hours of each": "Predicted for training; the horizon for serving; the term that counts for contracts",
    "Price": "From the sheet Prices",
    "Part": "Of nodes × hours × price that this line is: what is due up front, or the rest",
    "Cost": "Nodes × hours × price × part, rounded to micro-dollars",
    "Comes from": "Path in the plan document",
}


def price_sheet(book: Book, rows: BookRows, plan: PlanDocument, worked_out: Mapping[str, str]) -> None:
    """One line a price, with where it is from; prices are the cells to change.

    Parameters
    ----------
    book
        That gets the sheet.
    rows
        For their prices.
    plan
        For source, date and status of each price.
    worked_out
        Cells of other sheets that a price comes from, by offer.
    """
    sheet = book.sheet(PRICES, (46, 13, 13, 14, 22, 14, 12, 14, 70), heads=FIRST, fixed=1)
    book.text(sheet, (0, 0), "Prices", "title")
    book.text(sheet, (1, 0), "Shaded cells may be changed; every other sheet follows.", "note")
    book.heads(sheet, FIRST - 1, _PRICE_HEADS, right="Price")
    for number, price in enumerate(rows.prices):
        _price(book, sheet, FIRST + number, price, plan, worked_out.get(price.item, ""))
    last = FIRST + max(len(rows.prices), 1)
    book.name("Prices", f"={PRICES}!$B${FIRST + 1}:$B${last}")


def _price(book: Book, sheet: Sheet, row: int, price: PriceRow, plan: PlanDocument, cell: str) -> None:
    origin = origin_of(plan, price.line)
    book.text(sheet, (row, 0), price.item)
    if cell and price.unit == PER_HOUR:
        book.formula(sheet, (row, 1), f"={cell}", price.usd, "priced")
    else:
        book.number(sheet, (row, 1), price.usd, "price")
    cells = (price.unit, price.line["provider"], price.line["place"], spaced(price.line["category"]))
    for column, text in enumerate((*cells, origin["as_of"], origin["status"], origin["source"]), start=2):
        book.text(sheet, (row, column), text)


def allocation_sheet(book: Book, rows: BookRows, plan: PlanDocument) -> None:
    """One line a charge; its cost is a formula over the sheet of prices.

    Parameters
    ----------
    book
        That gets the sheet.
    rows
        For their charges and prices.
    plan
        For workloads on nodes under contract, which are told below the charges.
    """
    widths = (22, 10, 46, 14, 20, 14, 12, 11, 8, 12, 12, 8, 15, 32)
    sheet = book.sheet(ALLOCATIONS, widths, heads=FIRST, fixed=1)
    book.text(sheet, (0, 0), "Allocations", "title")
    book.text(sheet, (1, 0), "What is paid for: nodes × hours × price.", "note")
    book.heads(sheet, FIRST - 1, _CHARGE_HEADS, right="Nodes, Hours of each, Price, Part, Cost")
    for number, charge in enumerate(rows.charges):
        _charge(book, sheet, FIRST + number, charge, rows.prices[charge.price].usd)
    last = FIRST + max(len(rows.charges), 1)  # a plan that costs nothing leaves one line empty
    book.text(sheet, (last, 0), "Total", "strong")
    total = sum(charge.usd for charge in rows.charges)
    book.formula(sheet, (last, 12), f"=SUM(M{FIRST + 1}:M{last})", total, "sum")
    book.name("Cost", f"={ALLOCATIONS}!$M${FIRST + 1}:$M${last}")
    _under_contract(book, sheet, last + 2, plan)


def _charge(book: Book, sheet: Sheet, row: int, charge: ChargeRow, price_usd: float) -> None:
    line = charge.line
    kind = line["kind"] if len(charge.workloads) < 2 else "shared"
    texts = (", ".join(charge.workloads) or "nobody", kind, line["item"], line["provider"], line["place"],
             spaced(line["category"]), line["commitment"], line["payment"])  # fmt: skip
    for column, text in enumerate(texts):
        book.text(sheet, (row, column), text)
    book.number(sheet, (row, 8), charge.nodes, "count")
    book.number(sheet, (row, 9), charge.hours, "hours")
    book.formula(sheet, (row, 10), f"={PRICES}!$B${FIRST + charge.price + 1}", price_usd, "priced")
    book.number(sheet, (row, 11), charge.part, "share")
    here = row + 1
    book.formula(sheet, (row, 12), f"=ROUND(I{here}*J{here}*K{here}*L{here},6)", charge.usd)
    book.text(sheet, (row, 13), f"plan.{line['source']}")


def cost_cell(charge: int) -> str:
    """The cell with the cost of a charge, from any sheet."""
    return f"{ALLOCATIONS}!$M${FIRST + charge + 1}"


def _under_contract(book: Book, sheet: Sheet, row: int, plan: PlanDocument) -> None:
    """Workloads on nodes that the contracts above pay for."""
    found = [
        (workload, allocation, f"plan.workloads[{w}].allocations[{a}]")
        for w, workload in enumerate(plan["workloads"])
        for a, allocation in enumerate(workload["allocations"])
        if allocation["price_model"] == "reserved"
    ]
    if not found:
        return
    book.text(sheet, (row, 0), "On nodes that the contracts above pay for", "strong")
    for number, (workload, allocation, path) in enumerate(found, start=row + 1):
        cells = (workload["name"], workload["kind"], allocation["reserved_pool"] or allocation["offer"],
                 allocation["provider"], allocation["zone"] or allocation["region"])  # fmt: skip
        for column, text in enumerate(cells):
            book.text(sheet, (number, column), text)
        book.number(sheet, (number, 8), allocation["count"], "count")
        book.number(sheet, (number, 9), allocation["hours"], "hours")
        book.text(sheet, (number, 13), path)
