"""Young's and Daly's intervals between checkpoints, which the planner's own search is held against."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-REL-2")
def young_interval_s(checkpoint_s: FloatOrArray, mtbf_s: FloatOrArray) -> FloatOrArray:
    """Checkpoint interval that loses least, first order.

    Parameters
    ----------
    checkpoint_s
        Time delta that a checkpoint blocks the job.  [s]
    mtbf_s
        Mean time between failures M of the job.  [s]

    Returns
    -------
    Computing time between checkpoints.  [s]

    Notes
    -----
    Eq. (1):  sqrt(2 delta M)

    References
    ----------
    [1] J. Young, "A first order approximation to the optimum checkpoint interval," CACM 17(9), 1974.

    Examples
    --------
    >>> float(young_interval_s(50, 10_000))
    1000.0
    """
    return np.sqrt(2.0 * as_float(checkpoint_s) * mtbf_s)


@equation("EQ-REL-3")
def daly_interval_s(checkpoint_s: FloatOrArray, mtbf_s: FloatOrArray, restart_s: FloatOrArray = 0) -> FloatOrArray:
    """Checkpoint interval that loses least, with the restart time.

    Parameters
    ----------
    checkpoint_s
        Time delta that a checkpoint blocks the job.  [s]
    mtbf_s
        Mean time between failures M of the job.  [s]
    restart_s
        Time R to restart.  [s]

    Returns
    -------
    Computing time between checkpoints.  [s]

    Notes
    -----
    Eq. (1):  sqrt(2 delta (M + R)) - delta

    References
    ----------
    [1] J. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," FGCS 22, 2006.

    Examples
    --------
    >>> float(daly_interval_s(50, 9_400, 600))
    950.0
    """
    return np.sqrt(2.0 * as_float(checkpoint_s) * (as_float(mtbf_s) + restart_s)) - checkpoint_s


@equation("EQ-REL-6")
def daly_high_order_interval_s(checkpoint_s: FloatOrArray, mtbf_s: FloatOrArray) -> FloatOrArray:
    """Checkpoint interval that loses least when failures also strike checkpoints and restarts.

    Parameters
    ----------
    checkpoint_s
        Time delta that a checkpoint blocks the job.  [s]
    mtbf_s
        Mean time between failures M of the job.  [s]

    Returns
    -------
    Computing time between checkpoints; M where delta >= 2 M.  [s]

    Notes
    -----
    Eq. (1):  sqrt(2 delta M) [1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9] - delta

    References
    ----------
    [1] J. Daly, FGCS 22, 2006, eq. 37.

    Examples
    --------
    >>> round(float(daly_high_order_interval_s(5, 24 * 60)))
    117
    """
    delta, mtbf = as_float(checkpoint_s), as_float(mtbf_s)
    ratio = delta / (2.0 * mtbf)
    series = np.sqrt(2.0 * delta * mtbf) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - delta
    return np.where(delta < 2.0 * mtbf, series, mtbf)[()]
