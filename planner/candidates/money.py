"""Exact cost of a candidate: rounded once, half to even, to whole micro-dollars."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DEAREST_MICROUSD = 10**16  # of one unit, ten billion dollars: sums of hundreds still fit 64 bits
_WHOLE = 2.0**62  # products below fit 64 bits
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


def rentals_microusd(
    nodes: NDArray[np.int64],
    price_microusd_per_hour: NDArray[np.int64],
    hours: NDArray[np.float64],
    billed_s: NDArray[np.float64],
) -> list[int]:
    """`rental_microusd` of many runs; `billed_s` is nan where the time of the run is paid for.  [micro-USD]

    Whole seconds, as nearly all are billed, need no decimal numbers: their product is divided in 64 bits.

    Parameters
    ----------
    nodes
        (n,) shapes of each.
    price_microusd_per_hour
        (n,) of one shape.
    hours
        (n,) of the run.  [h]
    billed_s
        (n,) time that is billed for it.  [s]
    """
    largest = nodes.astype(np.float64) * price_microusd_per_hour * billed_s
    whole = (billed_s == np.floor(billed_s)) & (largest < _WHOLE)  # nan is neither
    product = nodes * price_microusd_per_hour * np.where(whole, billed_s, 0.0).astype(np.int64)
    cost, rest = np.divmod(product, 3600)
    cost += (2 * rest > 3600) | ((2 * rest == 3600) & (cost % 2 == 1))
    found: list[int] = cost.tolist()
    for row in np.flatnonzero(~whole).tolist():
        paid = None if np.isnan(billed_s[row]) else float(billed_s[row])
        found[row] = rental_microusd(int(nodes[row]), int(price_microusd_per_hour[row]), float(hours[row]), paid)
    return found
