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
