"""The sheets that money starts from: prices, which may be changed, what is paid for at them, owned machines an hour.

Each charge and each price stands once, and lines stand in the order of their sums.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.budget.charges import metered_hours
from planner.budget.model import Budget, BudgetLine
from planner.carriers import dataclass
from planner.equations.machine_costs import HOURS_PER_YEAR, W_PER_KW
from planner.plan.model.bought import OwnedHour
from planner.plan.model.plan import PlanDocument
from planner.report.plan_words import spaced
from planner.report.workbook.book import Book, Sheet

MICRO = 1_000_000
PER_HOUR = "per node-hour"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_KINDS = ("training", "serving", "unused")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """A price of the workbook, which charges refer to."""

    item: str
    unit: str
    usd: float
    line: BudgetLine  # a budget line that has it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRow:
    """A charge of the workbook: nodes × hours × price × part."""

    line: BudgetLine  # the first budget line of the charge
    nodes: float
    hours: float
    price: int  # row of its price
    part: float
    workloads: tuple[str, ...]

    @property
    def usd(self) -> float:
        """What it costs in the plan."""
        return float(self.line["charge_microusd"]) / MICRO


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRows:
    """Everything that the money sheets show."""

    prices: list[PriceRow]
    charges: list[ChargeRow]
    lines: list[tuple[BudgetLine, int]]  # budget lines by kind and workload, each with its charge


def rows_of(budget: Budget) -> BookRows:
    """Prices, charges and lines of a budget."""
    prices: dict[tuple[str, str, float], PriceRow] = {}
    charges: dict[tuple[str, ...], ChargeRow] = {}
    bearers: dict[tuple[str, ...], list[str]] = {}
    for line in budget["lines"]:
        key = charge_key(line)
        bearers.setdefault(key, []).append(line["workload"])
        if key not in charges:
            charges[key] = _charged(line, prices)
    order = list(charges)
    named = [_with_workloads(charges[key], bearers[key]) for key in order]
    lines = sorted(budget["lines"], key=lambda line: (_KINDS.index(line["kind"]), line["workload"]))
    return BookRows(
        prices=list(prices.values()),
        charges=named,
        lines=[(line, order.index(charge_key(line))) for line in lines],
    )


def charge_key(line: BudgetLine) -> tuple[str, ...]:
    """What tells the charge of a line from others."""
    return line["source"], line["item"], line["payment"]


def _with_workloads(charge: ChargeRow, workloads: list[str]) -> ChargeRow:
    return ChargeRow(line=charge.line, nodes=charge.nodes, hours=charge.hours, price=charge.price, part=charge.part,
                     workloads=tuple(dict.fromkeys(name for name in workloads if name)))  # fmt: skip


def _charged(line: BudgetLine, prices: dict[tuple[str, str, float], PriceRow]) -> ChargeRow:
    metered, price = metered_hours(line), line["price_microusd_per_hour"]
    if metered is None or price is None:
        nodes, hours, part, unit, usd = 1.0, 1.0, 1.0, "in all", line["charge_microusd"] / MICRO
    else:
        nodes, hours, part, unit, usd = float(line["count"]), metered, line["part_of_price"], PER_HOUR, price / MICRO
    found = (line["item"], unit, usd)
    if found not in prices:
        prices[found] = PriceRow(item=line["item"], unit=unit, usd=usd, line=line)
    return ChargeRow(line=line, nodes=nodes, hours=hours, price=list(prices).index(found), part=part, workloads=())


def origin_of(plan: PlanDocument, line: BudgetLine) -> dict[str, str]:
    """Source, date and status of the price behind a line, as the plan tells them."""
    if line["category"] in ("egress", "storage"):
        return _transfer_origin(plan, line)
    if line["category"] == "traffic":
        return {"source": "scenario: hardware.assume_between_zones", "as_of": "", "status": "user"}
    row = at(plan, line["source"])
    return {name: str(row[f"price_{name}"]) for name in ("source", "as_of", "status")}


def _transfer_origin(plan: PlanDocument, line: BudgetLine) -> dict[str, str]:
    wanted = ("egress", "inter-region") if line["category"] == "egress" else ("storage",)
    for fact in plan["provenance"]["facts"]:
        if fact["subject"] == line["provider"] and fact["fact"] in wanted:
            return {"source": f"{fact['source']} ({fact['value']})", "as_of": fact["as_of"], "status": fact["status"]}
    return {"source": "scenario: training.data", "as_of": "", "status": "user"}


def at(document: object, path: str) -> Any:
    """What stands at a path of a document: "workloads[0].allocations[1]"."""
    value: Any = document
    for name, number in _STEP.findall(path):
        value = value[name] if name else value[int(number)]
    return value


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
