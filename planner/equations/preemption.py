"""Preemptions as chance: how long a run takes at a quantile, where machines are taken away at random."""

from __future__ import annotations

import numpy as np

from planner.equations.bands import normal_quantile
from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-REL-13")
def preempted_quantile(
    wall_s: FloatOrArray,
    stops_per_s: FloatOrArray,
    loss_s: FloatOrArray,
    width_s: FloatOrArray,
    lost_share: FloatOrArray,
    confidence: FloatOrArray,
) -> FloatOrArray:
    """Wall time at a quantile over its mean, where stops come at random.

    Parameters
    ----------
    wall_s
        Mean wall time W of the run, what stops cost included.  [s]
    stops_per_s
        Rate lambda of the stops.  [1/s]
    loss_s
        Mean time m that a stop costs: work undone and restart.  [s]
    width_s
        Width w of the interval in which that time is uniformly distributed: the time between checkpoints, since a
        stop comes at any moment of it; 0 where every stop costs the same.  [s]
    lost_share
        Share r of the wall time that stops of any kind cost, below 1.  [fraction]
    confidence
        Quantile, 0.5 or more and below 1.  [fraction]

    Returns
    -------
    At least 1.  [ratio]

    Notes
    -----
    Eq. (1):  1 + z(confidence) sqrt(lambda W (m^2 + w^2 / 12)) / ((1 - r) W),  z the normal quantile

    A run is a busy period with initial work: stops arrive while it lasts, each adds work. Its mean is U / (1 - r) for
    useful time U, its variance lambda E[L^2] U / (1 - r)^3 [1]; the sum of many stops is close to normal.
    With few stops the quantile is on the safe side: most such runs see none.

    References
    ----------
    [1] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 5.8 to 5.10: the busy period with an initial delay.

    Examples
    --------
    A hundred hours with a stop an hour that costs six minutes: at p90 an hour and a half more.

    >>> round(100 * (float(preempted_quantile(100 * 3600, 1 / 3600, 360, 0, 0.1, 0.9)) - 1), 2)
    1.42
    """
    wall, share = as_float(wall_s), as_float(lost_share)
    square = as_float(loss_s) ** 2 + as_float(width_s) ** 2 / 12.0
    spread = np.sqrt(as_float(stops_per_s) * square / np.maximum(wall, 1e-9)) / np.maximum(1.0 - share, 1e-9)
    return np.asarray(1.0 + np.maximum(normal_quantile(as_float(confidence)), 0.0) * spread)[()]


@equation("EQ-REL-14")
def preempted_mean_s(
    within_s: FloatOrArray,
    stops_per_s: FloatOrArray,
    loss_s: FloatOrArray,
    width_s: FloatOrArray,
    lost_share: FloatOrArray,
    confidence: FloatOrArray,
) -> FloatOrArray:
    """Mean wall time of the run that is done within a time with a confidence, where stops come at random.

    Parameters
    ----------
    within_s
        Time T that there is.  [s]
    stops_per_s, loss_s, width_s, lost_share, confidence
        As in `preempted_quantile`.  [1/s], [s], [s], [fraction], [fraction]

    Returns
    -------
    At most the time that there is.  [s]

    Notes
    -----
    Eq. (1):  W = (sqrt(b^2 + 4 T) - b)^2 / 4,  b = z(confidence) sqrt(lambda (m^2 + w^2 / 12)) / (1 - r)

    Solves W q(W) = T for the quantile q of EQ-REL-13: what a run surely gets done before a fixed hour.

    References
    ----------
    [1] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 5.8 to 5.10: the busy period with an initial delay.

    Examples
    --------
    >>> mean_s = float(preempted_mean_s(100 * 3600, 1 / 3600, 360, 0, 0.1, 0.9))
    >>> round(mean_s * float(preempted_quantile(mean_s, 1 / 3600, 360, 0, 0.1, 0.9)) / 3600, 6)
    100.0
    """
    square = as_float(loss_s) ** 2 + as_float(width_s) ** 2 / 12.0
    z = np.maximum(normal_quantile(as_float(confidence)), 0.0)
    spread = z * np.sqrt(as_float(stops_per_s) * square) / np.maximum(1.0 - as_float(lost_share), 1e-9)
    within = np.maximum(as_float(within_s), 0.0)
    # the root of the quadratic without the difference of two large numbers
    root = 2.0 * within / np.maximum(np.sqrt(spread**2 + 4.0 * within) + spread, 1e-300)
    return np.asarray(root**2)[()]


@equation("EQ-REL-15")
def switched_rest_s(share: FloatOrArray, restart_s: FloatOrArray, whole_s: FloatOrArray) -> FloatOrArray:
    """Time that a run holds other machines after a switch to them.

    Parameters
    ----------
    share
        Share s of the work that was done, and saved, before the switch; 1 or more: there is no switch.  [fraction]
    restart_s
        Time R until the job runs again on the other machines.  [s]
    whole_s
        Wall time W of the whole run on them.  [s]

    Returns
    -------
    0 where nothing is left.  [s]

    Notes
    -----
    Eq. (1):  R + (1 - s) W  where s < 1, else 0

    References
    ----------
    [1] Derived: rates of work before and after are constant, and what the checkpoint at the switch holds is not redone.

    Examples
    --------
    >>> float(switched_rest_s(0.75, 600.0, 36_000.0)), float(switched_rest_s(1.0, 600.0, 36_000.0))
    (9600.0, 0.0)
    """
    left = 1.0 - as_float(share)
    return np.where(left > 0, as_float(restart_s) + left * as_float(whole_s), 0.0)[()]
