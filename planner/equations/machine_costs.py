"""What machines cost: of a rental its time in whole increments, and at least the minimum; of one that is owned an hour.

An hour of what one owns is its price spread over the time that it is kept, and its power.
"""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

ROUNDING = 1e-9  # share of a time that is noise of floating point, and begins no further increment


@equation("EQ-BILL-1")
def billed_s(held_s: FloatOrArray, boot_s: FloatOrArray, step_s: FloatOrArray, minimum_s: FloatOrArray) -> FloatOrArray:
    """Time that a metered rental is billed for.

    Parameters
    ----------
    held_s
        Time t that something runs on the machines.  [s]
    boot_s
        Time b before, in which they boot and are set up, and are paid for.  [s]
    step_s
        Billing increment d: an increment that has begun is billed whole.  [s]
    minimum_s
        Least time m that a rental is billed for.  [s]

    Returns
    -------
    Billed time of one rental.  [s]

    Notes
    -----
    Eq. (1):  T = max(d ⌈(1 - ε) (t + b) / d⌉, m),  ε = 1e-9

    ε keeps the last bits of a float from beginning an increment.

    References
    ----------
    [1] Amazon Web Services, "Amazon EC2 On-Demand Pricing": by the second, 60 seconds at least.

    Examples
    --------
    A run of three minutes after ten of boot, by the second, by the minute, and by the hour; a run of 20 s without boot.

    >>> [float(billed_s(180.0, 600.0, step_s, 60.0)) for step_s in (1.0, 60.0, 3600.0)]
    [780.0, 780.0, 3600.0]
    >>> float(billed_s(20.0, 0.0, 1.0, 60.0))
    60.0
    """
    step = as_float(step_s)
    steps = np.ceil((as_float(held_s) + as_float(boot_s)) / step * (1.0 - ROUNDING))
    return np.maximum(steps * step, as_float(minimum_s))


HOURS_PER_YEAR = 8760.0
W_PER_KW = 1000.0


@equation("EQ-OWN-1")
def capital_per_hour(price: FloatOrArray, residual: FloatOrArray, years: FloatOrArray) -> FloatOrArray:
    """What buying a machine costs for each hour that it is kept.

    Parameters
    ----------
    price
        Price P of the machine.  [currency]
    residual
        What R it is sold for in the end.  [currency]
    years
        Time Y that it is kept.  [years of 8760 h]

    Returns
    -------
    Straight-line depreciation of an hour.  [currency/h]

    Notes
    -----
    Eq. (1):  c = (P - R) / (8760 Y)

    Every hour of the years bears the same, whether the machine runs or not; interest is left out.

    References
    ----------
    [1] IAS 16, "Property, Plant and Equipment", par. 6, 50, 62: depreciable amount is cost less residual value; the
        straight-line method charges the same in every period of the useful life.

    Examples
    --------
    A machine of $300,000 that is sold for $37,200 after three years.

    >>> float(capital_per_hour(300_000.0, 37_200.0, 3.0))
    10.0
    """
    return (as_float(price) - as_float(residual)) / (HOURS_PER_YEAR * as_float(years))


@equation("EQ-OWN-2")
def power_per_hour(power_w: FloatOrArray, price_per_kwh: FloatOrArray, pue: FloatOrArray) -> FloatOrArray:
    """What the power of a machine, and of what cools and feeds it, costs an hour.

    Parameters
    ----------
    power_w
        Power w that the machine draws.  [W]
    price_per_kwh
        Price e of energy.  [currency/kWh]
    pue
        Power usage effectiveness η: energy of the whole site over that of its machines, at least 1.  [1]

    Returns
    -------
    Cost of an hour.  [currency/h]

    Notes
    -----
    Eq. (1):  c = w η e / 1000

    References
    ----------
    [1] ISO/IEC 30134-2, "Data centres - Key performance indicators - Part 2: Power usage effectiveness (PUE)".

    Examples
    --------
    A machine of 10 kW at $0.10/kWh in a site of PUE 1.5.

    >>> float(power_per_hour(10_000.0, 0.10, 1.5))
    1.5
    """
    return as_float(power_w) * as_float(pue) * as_float(price_per_kwh) / W_PER_KW
