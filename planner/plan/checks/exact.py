"""Money of the verifier: fractions from end to end, one rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from planner.estimate.bill import Bill


def exact_cost(shapes: int, price_microusd_per_hour: int, hours: float) -> int:
    """Shapes × price × hours in fractions, hours to ten significant digits, half to even once.  [micro-USD]"""
    ten_digits = Fraction(f"{Decimal(repr(hours)):.9e}")
    return round(shapes * price_microusd_per_hour * ten_digits)


def exact_rental(shapes: int, price_microusd_per_hour: int, hours: float, bill: Bill | None) -> int:
    """Shapes × price × billed time in fractions, half to even once; without a bill that of the run.  [micro-USD]"""
    if bill is None:
        return exact_cost(shapes, price_microusd_per_hour, hours)
    return round(Fraction(repr(bill.seconds(hours))) * shapes * price_microusd_per_hour / 3600)
