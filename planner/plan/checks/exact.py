"""Money of the verifier: fractions from end to end, one rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction


def exact_cost(shapes: int, price_microusd_per_hour: int, hours: float) -> int:
    """Shapes × price × hours in fractions, hours to ten significant digits, half to even once.  [micro-USD]"""
    ten_digits = Fraction(f"{Decimal(repr(hours)):.9e}")
    return round(shapes * price_microusd_per_hour * ten_digits)
