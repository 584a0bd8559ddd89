"""Percentiles of waits and of the distributions that stand for them, in closed form."""

from __future__ import annotations

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-QUE-4")
def wait_percentile_s(
    share_waiting: FloatOrArray, mean_wait_of_waiting_s: FloatOrArray, percentile: FloatOrArray
) -> FloatOrArray:
    """Percentile of a wait that is nothing for some and exponential for the others.

    Parameters
    ----------
    share_waiting
        Probability P of waiting at all.
    mean_wait_of_waiting_s
        Mean wait of those who wait.  [s]
    percentile
        Share q of requests that wait no longer, below 1.

    Returns
    -------
    The wait that a share q of all requests does not pass.  [s]

    Notes
    -----
    Eq. (1):  W_q = E[W | W > 0] max(0, ln(P / (1 - q)))

    References
    ----------
    [1] L. Kleinrock, "Queueing Systems," vol. 1, 1975, sec. 5.12; exact for M/M/c.

    Examples
    --------
    >>> round(float(wait_percentile_s(0.5, 2.0, 0.95)), 4)
    4.6052
    """
    ratio = as_float(share_waiting) / (1 - as_float(percentile))
    return as_float(mean_wait_of_waiting_s) * np.log(np.maximum(ratio, 1.0))


@equation("EQ-QUE-6")
def normal_share_below(score: FloatOrArray) -> FloatOrArray:
    """Standard normal distribution, by a logistic curve.

    Parameters
    ----------
    score
        Distance from the mean in standard deviations z.

    Returns
    -------
    Share below it, within 0.00015.

    Notes
    -----
    Eq. (1):  Phi(z) = 1 / (1 + exp(-1.5976 z - 0.070566 z^3))

    References
    ----------
    [1] S. R. Bowling et al., "A logistic approximation to the cumulative normal distribution,"
        J. Industrial Engineering and Management 2(1), 2009.

    Examples
    --------
    >>> round(float(normal_share_below(1.6449)), 3)
    0.95
    """
    z = np.clip(as_float(score), -8.0, 8.0)
    return 1 / (1 + np.exp(-z * (1.5976 + 0.070566 * z * z)))


@equation("EQ-QUE-9")
def gamma_percentile(mean: FloatOrArray, squared_variation: FloatOrArray, percentile: FloatOrArray) -> FloatOrArray:
    """Percentile of a gamma distribution, by Wilson and Hilferty.

    Parameters
    ----------
    mean
        Mean m.
    squared_variation
        Variance over squared mean c^2, above 0.
    percentile
        Share q below, between 0 and 1.

    Returns
    -------
    The value, never below 0.

    Notes
    -----
    Eq. (1):  X_q = m (1 - c^2 / 9 + z c / 3)^3
    Eq. (2):  z = t - (2.515517 + 0.802853 t + 0.010328 t^2) / (1 + 1.432788 t + 0.189269 t^2 + 0.001308 t^3),
              t = sqrt(-2 ln(min(q, 1 - q))), with the sign of q - 1/2

    References
    ----------
    [1] E. B. Wilson and M. M. Hilferty, "The distribution of chi-square," PNAS 17, 1931.
    [2] M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions," 1964, 26.2.23.

    Examples
    --------
    >>> round(float(gamma_percentile(1.0, 1.0, 0.95)), 2)  # exponential: 3.00
    2.97
    """
    share, variation = as_float(percentile), as_float(squared_variation)
    t = np.sqrt(-2 * np.log(np.maximum(np.minimum(share, 1 - share), 1e-300)))
    score = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    score = np.where(share < 0.5, -score, score)
    root = 1 - variation / 9 + score * np.sqrt(variation) / 3
    return np.asarray(as_float(mean) * np.maximum(root, 0.0) ** 3)
