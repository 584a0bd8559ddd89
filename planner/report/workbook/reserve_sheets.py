"""Reserve or rent as a spreadsheet: break-evens and decisions by live formulas over prices, use and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.analysis.reserve.model import BreakEven, Reserved, ReserveDocument, Term, Together
from planner.report.reserve_view import NAMES
from planner.report.workbook.book import Book, Sheet

EVEN, DECISIONS = "Break-even", "Decisions"
FIRST = 3  # row of the first line, from zero
MICRO = 1_000_000
_FUTURES = {"demand": "30 % less demand", "price": "prices 30 % lower", "end": "over half-way"}
_EVEN_HEADS = {
    "Commitment": "Id of the offer in the catalog",
    "Device": "",
    "Provider": "",
    "Kind": "",
    "Term [h]": "All of it is paid, used or not",
    "Price": "Of one node for an hour; change it here: the sheet Decisions follows",
    "On demand": "Of the same node at the same provider; change it here",
    "Even at": "Price over that on demand: share of the term above which the commitment is cheaper",
    "Expected use": "Share of the term in which the node is used; change it here",
    "Committed": "Term × price",
    "Rented": "Term × expected use × price on demand",
    "Saves": "Rented less committed",
    "As of": "",
    "Status": "",
}
_DECISION_HEADS = {
    "Commitment": "Id of the offer in the catalog",
    "Kind": "",
    "From [h]": "After the begin",
    "Nodes": "Chosen by the integer program; change them here: what is rented beside stays",
    "Hours paid": "Of each node",
    "Price": "From the sheet Break-even",
    "Fee": "Nodes × hours × price",
    "Used": "Share of the node-hours, as planned",
    "On demand": "From the sheet Break-even",
    "The same rented": "Nodes × hours × used × price on demand",
    "Saves": "The same rented, less the fee",
}


def reserve_workbook(document: ReserveDocument) -> bytes:
    """A reserve document as the bytes of an .xlsx file; text is text and never a formula."""
    book = Book()
    rows = {row["offer"]: number for number, row in enumerate(document["break_evens"], start=FIRST + 1)}
    _break_evens(book, document)
    sheet = book.sheet(DECISIONS, (46, 12, 10, 9, 12, 12, 15, 9, 12, 16, 15), heads=1)
    book.text(sheet, (0, 0), f"What to reserve: {document['name']}", "title")
    lifted = f" Not held: {', '.join(document['not_held'])}." if document["not_held"] else ""
    said = "Shaded cells may be changed; whether another plan is then cheaper, plan reserve knows."
    book.text(sheet, (1, 0), said + lifted, "note")
    row = 3
    for term in document["terms"]:
        row = _term(book, sheet, row, term, rows, document["break_evens"])
    if document["together"]:
        _together(book, sheet, row, document["together"], rows, document["break_evens"])
    if document["warnings"]:
        sheet = book.sheet("Warnings", (130,), heads=1)
        book.text(sheet, (0, 0), "What the plans warn of", "title")
        for row, sentence in enumerate(document["warnings"], start=1):
            book.text(sheet, (row, 0), sentence, "wrapped")
    book.stamped(document["name"], document["catalog"]["as_of"])
    return book.bytes()


def _break_evens(book: Book, document: ReserveDocument) -> None:
    sheet = book.sheet(EVEN, (46, 18, 12, 14, 10, 12, 12, 10, 12, 15, 15, 15, 12, 12), heads=FIRST, fixed=1)
    book.text(sheet, (0, 0), f"Reserve or rent: {document['name']}", "title")
    book.text(sheet, (1, 0), "Shaded cells may be changed; all sheets follow.", "note")
    book.heads(sheet, FIRST - 1, _EVEN_HEADS, right=", ".join(list(_EVEN_HEADS)[4:12]))
    for number, row in enumerate(document["break_evens"], start=FIRST):
        _break_even(book, sheet, number, row)


def _break_even(book: Book, sheet: Sheet, row: int, one: BreakEven) -> None:
    here = row + 1
    for column, text in enumerate((one["offer"], one["device"], one["provider"], one["contract"])):
        book.text(sheet, (row, column), text)
    price, rented = one["price_microusd_per_hour"], one["on_demand_microusd_per_hour"]
    book.number(sheet, (row, 4), one["term_hours"], "hours")
    book.number(sheet, (row, 5), price / MICRO, "price")
    book.number(sheet, (row, 6), None if rented is None else rented / MICRO, "price")
    book.number(sheet, (row, 8), 1.0, "input share")
    committed = one["term_hours"] * price / MICRO
    book.formula(sheet, (row, 9), f"=ROUND(E{here}*F{here},2)", round(committed, 2))
    if rented is not None:  # what nobody rents out by the hour is held against nothing
        whole = one["term_hours"] * rented / MICRO
        book.formula(sheet, (row, 7), f"=F{here}/G{here}", price / rented, "share")
        book.formula(sheet, (row, 10), f"=ROUND(E{here}*I{here}*G{here},2)", round(whole, 2))
        book.formula(sheet, (row, 11), f"=K{here}-J{here}", round(whole, 2) - round(committed, 2))
    book.text(sheet, (row, 12), one["as_of"])
    book.text(sheet, (row, 13), one["status"])


def _term(book: Book, sheet: Sheet, row: int, term: Term, rows: Mapping[str, int], known: Sequence[BreakEven]) -> int:
    """One kind of commitment: its lines, their sum, and other futures; the row after them."""
    name = NAMES.get(term["price_model"], term["price_model"])
    book.text(sheet, (row, 0), f"{name}, over {term['term_hours']:,.0f} h", "strong")
    bought = [(one, term["price_model"], 0.0) for one in term["reserved"]]
    fees = _lines(book, sheet, row + 1, bought, rows, known)
    row = _sums(book, sheet, row + 2 + len(bought), fees, term["cost_microusd"], term["on_demand_microusd"],
                sum(one["fee_microusd"] for one in term["reserved"]))  # fmt: skip
    paid = sum(one["fee_microusd"] for one in term["reserved"])
    for future in term["otherwise"]:
        kept, rented = future["reserved_microusd"], future["on_demand_microusd"]
        if kept is None or rented is None:
            continue
        book.text(sheet, (row, 0), f"{_FUTURES[future['happens']]}: rented beside, fees with it, all rented, saves")
        _compared(book, sheet, row, fees, kept - paid, kept, rented)
        row += 1
    return row + 1


def _together(
    book: Book, sheet: Sheet, row: int, found: Together, rows: Mapping[str, int], known: Sequence[BreakEven]
) -> None:
    book.text(sheet, (row, 0), f"All terms and starts at once, over {found['horizon_hours']:,.0f} h", "strong")
    bought: list[tuple[Reserved, str, float]] = [
        (one, one["price_model"], one["start_hours"]) for one in found["reserved"]
    ]
    fees = _lines(book, sheet, row + 1, bought, rows, known)
    _sums(book, sheet, row + 2 + len(bought), fees, found["cost_microusd"], found["on_demand_microusd"],
          sum(one["fee_microusd"] for one in found["reserved"]))  # fmt: skip


def _lines(
    book: Book,
    sheet: Sheet,
    row: int,
    bought: Sequence[tuple[Reserved, str, float]],
    rows: Mapping[str, int],
    known: Sequence[BreakEven],
) -> str:
    """A line a purchase; a formula for the sum of the fees."""
    book.heads(sheet, row, _DECISION_HEADS, right=", ".join(list(_DECISION_HEADS)[2:]))
    by_offer = {one["offer"]: one for one in known}
    for number, (one, model, start) in enumerate(bought, start=row + 1):
        here, even = number + 1, by_offer[one["offer"]]
        price, rented = even["price_microusd_per_hour"], even["on_demand_microusd_per_hour"]
        hours, used = one["fee_microusd"] / (one["nodes"] * price), one["used"]
        book.text(sheet, (number, 0), one["offer"])
        book.text(sheet, (number, 1), NAMES.get(model, model))
        book.number(sheet, (number, 2), start, "hours")
        book.number(sheet, (number, 3), one["nodes"], "input")
        book.number(sheet, (number, 4), hours, "hours")
        book.formula(sheet, (number, 5), f"='{EVEN}'!$F${rows[one['offer']]}", price / MICRO, "priced")
        book.formula(sheet, (number, 6), f"=D{here}*E{here}*F{here}", one["fee_microusd"] / MICRO)
        book.number(sheet, (number, 7), used, "share")
        if rented is not None and used is not None:
            same = one["nodes"] * hours * used * rented / MICRO
            book.formula(sheet, (number, 8), f"='{EVEN}'!$G${rows[one['offer']]}", rented / MICRO, "priced")
            book.formula(sheet, (number, 9), f"=D{here}*E{here}*H{here}*I{here}", same)
            book.formula(sheet, (number, 10), f"=J{here}-G{here}", same - one["fee_microusd"] / MICRO)
    return f"SUM(G{row + 2}:G{row + 1 + len(bought)})" if bought else "0"


def _sums(book: Book, sheet: Sheet, row: int, fees: str, cost: int | None, rented: int | None, paid: int) -> int:
    """What is rented beside, what it costs with the fees, what all rented costs, and what is saved."""
    if cost is None or rented is None:
        book.text(sheet, (row, 0), "no plan")
        return row + 2
    book.text(sheet, (row, 0), "As planned: rented beside, fees with it, all rented, saves")
    _compared(book, sheet, row, fees, cost - paid, cost, rented)
    return row + 1


def _compared(book: Book, sheet: Sheet, row: int, fees: str, beside: int, cost: int, rented: int) -> None:
    here = row + 1
    book.number(sheet, (row, 6), beside / MICRO, "money")
    book.formula(sheet, (row, 8), f"=G{here}+{fees}", cost / MICRO, "sum")
    book.number(sheet, (row, 9), rented / MICRO, "money")
    book.formula(sheet, (row, 10), f"=J{here}-I{here}", (rented - cost) / MICRO, "sum")
