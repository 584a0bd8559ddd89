"""Random lengths and arrivals in a few numbers: log-normal lengths, variability, peak."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation

NORMAL_P95 = 1.6448536269514722  # 95th percentile of the standard normal distribution


@equation("EQ-TRF-1")
def lognormal_sigma(mean: FloatOrArray, p95: FloatOrArray) -> FloatOrArray:
    """Spread of the log-normal distribution with a given mean and 95th percentile.

    Parameters
    ----------
    mean
        Mean m, above 0.  [tokens]
    p95
        95th percentile q.  [tokens]

    Returns
    -------
    Standard deviation of the logarithm; nan where no log-normal has both, or only one whose mean lies
    above its own 95th percentile.  [1]

    Notes
    -----
    Eq. (1):  ln(q / m) = z sigma - sigma^2 / 2,  z = 1.6449
    Eq. (2):  sigma = z - sqrt(z^2 - 2 ln(q / m))  for  1 <= q / m <= exp(z^2 / 2) = 3.868

    The other root of (1) is above z: a tail so heavy that lengths are not known to have it.

    References
    ----------
    [1] N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions," vol. 1, 2nd ed., 1994,
        ch. 14: m = exp(mu + sigma^2 / 2), q = exp(mu + z sigma).

    Examples
    --------
    >>> round(float(lognormal_sigma(1500, 4000)), 4)
    0.7824
    >>> float(lognormal_sigma(400, 400))
    0.0
    """
    ratio = np.log(as_float(p95) / as_float(mean))
    inside = NORMAL_P95**2 - 2 * ratio
    possible = (ratio >= 0) & (inside >= 0)
    return np.where(possible, NORMAL_P95 - np.sqrt(np.maximum(inside, 0.0)), np.nan)[()]


@equation("EQ-TRF-2")
def lognormal_second_moment(mean: FloatOrArray, sigma: FloatOrArray) -> FloatOrArray:
    """Mean of the square of a log-normal length.

    Parameters
    ----------
    mean
        Mean m.  [tokens]
    sigma
        Standard deviation of the logarithm.  [1]

    Returns
    -------
    Second moment about zero.  [tokens^2]

    Notes
    -----
    Eq. (1):  E[X^2] = m^2 exp(sigma^2)

    References
    ----------
    [1] N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions," vol. 1, 2nd ed., 1994,
        ch. 14: E[X^r] = exp(r mu + r^2 sigma^2 / 2).

    Examples
    --------
    >>> float(lognormal_second_moment(100, 0))
    10000.0
    """
    return as_float(mean) ** 2 * np.exp(as_float(sigma) ** 2)


@equation("EQ-TRF-5")
def lognormal_partial_moment(
    mean: FloatOrArray, sigma: FloatOrArray, order: int, low: FloatOrArray, high: FloatOrArray
) -> FloatOrArray:
    """Mean of a power of a log-normal length over those between two quantiles, counted as 0 elsewhere.

    Parameters
    ----------
    mean
        Mean m.  [tokens]
    sigma
        Standard deviation of the logarithm.  [1]
    order
        The power r: 0 gives the share of the lengths, 1 the part of the mean, 2 that of the second moment.
    low, high
        Shares of the lengths below the two quantiles.  [1]

    Returns
    -------
    E[X^r; low < F(X) <= high].  [tokens^r]

    Notes
    -----
    Eq. (1):  m^r exp((r^2 - r) sigma^2 / 2) (N(z(high) - r sigma) - N(z(low) - r sigma)),  z the quantiles of N

    References
    ----------
    [1] N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions," vol. 1, 2nd ed., 1994,
        ch. 14: moments of the truncated log-normal.

    Examples
    --------
    >>> round(float(lognormal_partial_moment(1500, 0.8, 1, 0.0, 1.0)), 6)
    1500.0
    """
    shift = order * as_float(sigma)
    whole = as_float(mean) ** order * np.exp((order**2 - order) / 2 * as_float(sigma) ** 2)
    return np.asarray(whole * (_share_below(high, shift) - _share_below(low, shift)))[()]


def _share_below(quantile: FloatOrArray, shift: FloatOrArray) -> FloatOrArray:
    """N(z(q) - shift)."""
    normal = NormalDist()
    ends = {0.0: -np.inf, 1.0: np.inf}
    score = np.vectorize(lambda q: ends[q] if q in ends else normal.inv_cdf(q), otypes=[float])(as_float(quantile))
    return np.vectorize(normal.cdf, otypes=[float])(score - shift)[()]  # type: ignore[no-any-return]


@equation("EQ-TRF-6")
def lognormal_length(mean: FloatOrArray, variation: FloatOrArray, score: FloatOrArray) -> FloatOrArray:
    """Length at a quantile of a log-normal distribution.

    Parameters
    ----------
    mean
        Mean m.  [tokens]
    variation
        Coefficient of variation c: standard deviation over mean.
    score
        Quantile z of the standard normal distribution.

    Returns
    -------
    Length.  [tokens]

    Notes
    -----
    Eq. (1):  x = m exp(z sigma - sigma^2 / 2),  sigma^2 = ln(1 + c^2)

    References
    ----------
    [1] N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous Univariate Distributions," vol. 1, 2nd ed., 1994, ch. 14.

    Examples
    --------
    >>> float(lognormal_length(200, 0, 3)), round(float(lognormal_length(200, 1, 0)), 1)
    (200.0, 141.4)
    """
    square = np.log1p(as_float(variation) ** 2)
    return np.asarray(as_float(mean) * np.exp(as_float(score) * np.sqrt(square) - square / 2))


@equation("EQ-TRF-7")
def largest_score(draws: FloatOrArray) -> FloatOrArray:
    """Mean of the largest of many draws from the standard normal distribution.

    Parameters
    ----------
    draws
        Number n of draws.  [count]

    Returns
    -------
    Mean of the largest, at least 0; within 0.1 from 10 draws on.

    Notes
    -----
    Eq. (1):  z = a - (ln ln n + ln 4 pi) / (2 a) + 0.5772 / a,  a = sqrt(2 ln n)

    References
    ----------
    [1] H. Cramer, "Mathematical Methods of Statistics," 1946, sec. 28.6: extreme values.

    Examples
    --------
    >>> [round(float(largest_score(n)), 2) for n in (1, 10, 1000)]
    [0.0, 1.63, 3.27]
    """
    logs = np.log(np.maximum(as_float(draws), np.e))
    root = np.sqrt(2 * logs)
    found = root - (np.log(logs) + np.log(4 * np.pi)) / (2 * root) + 0.5772 / root
    return np.asarray(np.where(as_float(draws) > 1, np.maximum(found, 0.0), 0.0))


@equation("EQ-TRF-3")
def squared_variation(mean: FloatOrArray, second_moment: FloatOrArray) -> FloatOrArray:
    """Squared coefficient of variation: the burstiness c_a^2 when the quantity is the gap between arrivals.

    Parameters
    ----------
    mean
        Mean m, above 0.  [s, tokens]
    second_moment
        Mean of the square.  [s^2, tokens^2]

    Returns
    -------
    Variance over the square of the mean: 0 for equal gaps, 1 for a Poisson process.  [1]

    Notes
    -----
    Eq. (1):  c^2 = (E[X^2] - m^2) / m^2, never below 0

    References
    ----------
    [1] W. Whitt, "The Queueing Network Analyzer," Bell System Technical Journal 62(9), 1983, sec. 2.

    Examples
    --------
    >>> float(squared_variation(2, 8))
    1.0
    """
    square = as_float(mean) ** 2
    return np.maximum(as_float(second_moment) / square - 1.0, 0.0)[()]


@equation("EQ-TRF-4")
def peak_over_mean(busiest_per_s: FloatOrArray, mean_per_s: FloatOrArray) -> FloatOrArray:
    """Peak factor: requests of the busiest time over those of the mean.

    Parameters
    ----------
    busiest_per_s
        Rate of the busiest hour, or of the 99th percentile of minutes.  [1/s]
    mean_per_s
        Mean rate, above 0.  [1/s]

    Returns
    -------
    Factor on the mean, at least 1.  [1]

    Notes
    -----
    Eq. (1):  max(1, busiest / mean)

    References
    ----------
    [1] ITU-T Recommendation E.500, "Traffic intensity measurement principles," 1998: busy-hour traffic.

    Examples
    --------
    >>> float(peak_over_mean(15, 6))
    2.5
    """
    return np.maximum(as_float(busiest_per_s) / as_float(mean_per_s), 1.0)[()]
