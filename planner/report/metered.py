"""Which charges of a budget are nodes × hours × price, as a reader multiplies them."""

from __future__ import annotations

from planner.budget.model import BudgetLine
from planner.candidates.money import significant_hours

_HALF_A_CENT_MICROUSD = 5_000


def metered_hours(line: BudgetLine) -> float | None:
    """Hours that each node of a charge is paid for; None where the charge is no product of them and of a price.  [h]"""
    hours, price = float(significant_hours(line["hours"])), line["price_microusd_per_hour"]
    if price is None:
        return None
    product = line["count"] * hours * line["part_of_price"] * price
    return hours if abs(product - line["charge_microusd"]) <= _HALF_A_CENT_MICROUSD else None
