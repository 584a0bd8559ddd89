"""The sheet of owned machines: what an hour costs by capital, power and staff, by formulas over its inputs."""

from __future__ import annotations

from planner.equations.ownership import HOURS_PER_YEAR, W_PER_KW
from planner.plan.model.bought import OwnedHour
from planner.plan.model.plan import PlanDocument
from planner.report.workbook.book import Book, Sheet
from planner.report.workbook.money import ALLOCATIONS, FIRST
from planner.report.workbook.rows import MICRO, BookRows

OWNED = "Owned"

_HEADS = {
    "What": "Id of the offer; the place in the scenario beside it",
    "Where": "",
    "Devices": "Of one machine",
    "Bought for": "Price of one machine; change it here",
    "Sold for": "In the end; change it here",
    "Years": "That it is kept, of 8760 h; change them here",
    "Watts": "Drawn by one machine; change them here",
    "Price of a kWh": "Change it here",
    "PUE": "Power of the whole site over that of its machines; change it here",
    "Staff an hour": "People and hosting of one machine; change it here",
    "Capital an hour": "(bought for - sold for) / (years × 8760 h), EQ-OWN-1",
    "Power an hour": "Watts × PUE × price / 1000, EQ-OWN-2",
    "An hour": "Capital, power and staff of one machine; the sheet Prices takes it from here",
    "A device-hour": "An hour over the devices of a machine",
    "Cost in the plan": "From the sheet Allocations",
    "of it capital": "",
    "of it power": "",
    "of it staff": "",
}


def owned_sheet(book: Book, rows: BookRows, plan: PlanDocument) -> dict[str, str]:
    """One line a group of machines whose price has parts; no sheet without one. The cell of each price, by offer.

    Parameters
    ----------
    book
        That gets the sheet.
    rows
        For the number of charges on the sheet of allocations.
    plan
        For its owned machines.
    """
    hours = plan.get("owned_hours") or []
    if not hours:
        return {}
    sheet = book.sheet(OWNED, (34, 20, 9, *([14] * 15)), heads=FIRST, fixed=1)
    book.text(sheet, (0, 0), "Owned machines", "title")
    book.text(
        sheet, (1, 0), "Shaded cells may be changed; the price of an hour follows, and every other sheet.", "note"
    )
    book.heads(sheet, FIRST - 1, _HEADS, right=", ".join(list(_HEADS)[2:]))
    for number, hour in enumerate(hours):
        _hour(book, sheet, FIRST + number, hour, FIRST + max(len(rows.charges), 1))
    return {hour["offer"]: f"{OWNED}!$M${FIRST + number + 1}" for number, hour in enumerate(hours)}


def _hour(book: Book, sheet: Sheet, row: int, hour: OwnedHour, last: int) -> None:
    here = row + 1
    book.text(sheet, (row, 0), hour["offer"])
    book.text(sheet, (row, 1), hour["place"])
    book.number(sheet, (row, 2), hour["devices_per_shape"], "count")
    capital = (_usd(hour["bought_microusd"]), _usd(hour["residual_microusd"]), hour["years"])
    for column, (value, style) in enumerate(zip(capital, ("price", "price", "input")), start=3):
        book.number(sheet, (row, column), value, style)
    power = (hour["power_w"], _usd(hour["energy_microusd_per_kwh"]), hour["pue"])
    for column, (value, style) in enumerate(zip(power, ("input", "price", "input")), start=6):
        book.number(sheet, (row, column), value, style)
    book.number(sheet, (row, 9), hour["staff_microusd_per_hour"] / MICRO, "price")
    bought, drawn = hour["bought_microusd"] is not None, hour["power_w"] is not None
    formulas = (
        (f"=ROUND((D{here}-E{here})/(F{here}*{HOURS_PER_YEAR:g}),6)" if bought else "=0",
         hour["capital_microusd_per_hour"]),
        (f"=ROUND(G{here}*I{here}*H{here}/{W_PER_KW},6)" if drawn else "=0", hour["power_microusd_per_hour"]),
        (f"=J{here}+K{here}+L{here}", hour["price_microusd_per_hour"]),
        (f"=M{here}/C{here}", hour["price_usd_per_device_hour"] * MICRO),
    )  # fmt: skip
    for column, (text, microusd) in enumerate(formulas, start=10):
        book.formula(sheet, (row, column), text, microusd / MICRO, "priced")
    items, costs = (f"{ALLOCATIONS}!${letter}${FIRST + 1}:${letter}${last}" for letter in "CM")
    book.formula(sheet, (row, 14), f"=SUMIF({items},A{here},{costs})", hour["cost_microusd"] / MICRO)
    spent = (("K", hour["capital_microusd"]), ("L", hour["power_microusd"]), ("J", hour["staff_microusd"]))
    for column, (letter, microusd) in enumerate(spent, start=15):
        text = f"=O{here}*{letter}{here}/M{here}" if hour["price_microusd_per_hour"] else "=0"
        book.formula(sheet, (row, column), text, microusd / MICRO)


def _usd(microusd: int | None) -> float | None:
    return None if microusd is None else microusd / MICRO
