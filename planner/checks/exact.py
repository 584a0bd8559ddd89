"""Money of the verifier: fractions from end to end, one rounding."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from planner.equations.ownership import capital_per_hour, power_per_hour
from planner.estimate.bill import Bill
from planner.scenario.owned import Owned


class ExactHour(NamedTuple):
    """What an hour of an owned shape costs, and its parts; no parts where one price was given.  [micro-USD]"""

    price: int
    capital: int = 0
    power: int = 0
    staff: int = 0


def exact_hourly(owned: Owned) -> ExactHour:
    """An hour of an owned shape: the equations to 14 digits, each part half to even once, and their sum."""
    if owned.price_microusd_per_hour is not None:
        return ExactHour(owned.price_microusd_per_hour)
    bought, drawn, staff = owned.capital, owned.power, owned.staff_microusd_per_hour or 0
    parts = [0.0, 0.0]
    if bought is not None:
        parts[0] = float(capital_per_hour(bought.price_microusd, bought.residual_microusd, bought.years))
    if drawn is not None:
        parts[1] = float(power_per_hour(drawn.power_w, drawn.price_microusd_per_kwh, drawn.pue))
    capital, power = (round(Fraction(f"{part:.13e}")) for part in parts)
    return ExactHour(capital + power + staff, capital, power, staff)


def exact_cost(shapes: int, price_microusd_per_hour: int, hours: float) -> int:
    """Shapes × price × hours in fractions, hours to ten significant digits, half to even once.  [micro-USD]

    Parameters
    ----------
    shapes
        How many are paid for.
    price_microusd_per_hour
        Of one shape.  [micro-USD/h]
    hours
        Paid time, not rounded up.  [h]
    """
    ten_digits = Fraction(f"{Decimal(repr(hours)):.9e}")
    return round(shapes * price_microusd_per_hour * ten_digits)


def exact_rental(shapes: int, price_microusd_per_hour: int, hours: float, bill: Bill | None) -> int:
    """Shapes × price × billed time in fractions, half to even once; without a bill that of the run.  [micro-USD]

    Parameters
    ----------
    shapes
        How many are rented and billed alike.
    price_microusd_per_hour
        Of one shape.  [micro-USD/h]
    hours
        Time of the run.  [h]
    bill
        Boot, increment and minimum of the seller; None = the time of the run alone is paid.
    """
    if bill is None:
        return exact_cost(shapes, price_microusd_per_hour, hours)
    return round(Fraction(repr(bill.seconds(hours))) * shapes * price_microusd_per_hour / 3600)
