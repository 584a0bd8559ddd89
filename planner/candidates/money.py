"""Exact cost of a candidate: rounded once, half to even, to whole micro-dollars."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

DEAREST_MICROUSD = 10**16  # of one unit, ten billion dollars: sums of hundreds still fit 64 bits
_TEN_DIGITS = Decimal(1).scaleb(-9)


@lru_cache(maxsize=65536)  # offers of one shape share their hours
def significant_hours(hours: float) -> Decimal:
    """Hours rounded to 1e-9 relative, so that the last bits of a float never reach money."""
    value = Decimal(repr(float(hours)))
    if value == 0:
        return Decimal(0)
    exponent = value.adjusted()
    return value.scaleb(-exponent).quantize(_TEN_DIGITS, rounding=ROUND_HALF_EVEN).scaleb(exponent)


def cost_microusd(nodes: int, price_microusd_per_hour: int, hours: float | Decimal) -> int:
    """Cost of `nodes` shapes for some hours.  [micro-USD]

    Parameters
    ----------
    nodes
        Shapes.
    price_microusd_per_hour
        Of one shape.
    hours
        A float is rounded to ten digits first, a decimal number is taken as it is.  [h]
    """
    exact = hours if isinstance(hours, Decimal) else significant_hours(hours)
    product = int(nodes) * int(price_microusd_per_hour) * exact
    return int(product.to_integral_value(rounding=ROUND_HALF_EVEN))


@lru_cache(maxsize=65536)  # the next question of a session asks most of them again
def rental_microusd(nodes: int, price_microusd_per_hour: int, hours: float, billed_s: float | None) -> int:
    """Cost of a run of some hours on `nodes` shapes: of the time that is billed, where that is another.  [micro-USD]

    Parameters
    ----------
    nodes
        Shapes.
    price_microusd_per_hour
        Of one shape.
    hours
        Of the run.  [h]
    billed_s
        Time that is billed for it; None: that of the run.  [s]
    """
    if billed_s is None:
        return cost_microusd(nodes, price_microusd_per_hour, hours)
    product = int(nodes) * int(price_microusd_per_hour) * Decimal(repr(billed_s)) / 3600
    return int(product.to_integral_value(rounding=ROUND_HALF_EVEN))
