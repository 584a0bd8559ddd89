"""What a rental is billed for: its time in whole increments, and at least the minimum."""

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
