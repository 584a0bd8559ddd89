"""How far a prediction may be off: quantiles of measured over predicted."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from planner.equations.registry import FloatOrArray, as_float, equation


def _inverse_normal(share: float) -> float:
    """Normal quantile; infinite where the share leaves nothing out."""
    return NormalDist().inv_cdf(share) if 0.0 < share < 1.0 else np.copysign(np.inf, share - 0.5)


normal_quantile = np.vectorize(_inverse_normal, otypes=[np.float64])
_Z90 = NormalDist().inv_cdf(0.9)
_MEAN_OF_ABSOLUTE_NORMAL = np.sqrt(2.0 / np.pi)  # mean of |x| over the standard deviation


@equation("EQ-BAND-1")
def band_quantile(p50: FloatOrArray, p90: FloatOrArray, confidence: FloatOrArray) -> FloatOrArray:
    """What a prediction is multiplied with so that it holds with a given confidence.

    Parameters
    ----------
    p50, p90
        Quantiles of measured over predicted, on rows that were not used to fit.  [ratio]
    confidence
        The share of cases in which it is to hold, 0.5 or more and below 1.

    Returns
    -------
    Quantile of measured over predicted.  [ratio]

    Notes
    -----
    Eq. (1):  ln q = ln p50 + (ln p90 - ln p50) z(confidence) / z(0.9),  z the normal quantile: the logarithm is
    interpolated along the normal score between the two that are stored, and goes on in a straight line beyond p90
    (a log-normal upper half). It is p50 at 0.5 and p90 at 0.9.

    References
    ----------
    [1] J. Aitchison and J. A. C. Brown, "The Lognormal Distribution," Cambridge, 1957: quantiles of ratios.

    Examples
    --------
    >>> float(band_quantile(1.0, 1.2, 0.9)), round(float(band_quantile(1.0, 1.2, 0.75)), 4)
    (1.2, 1.1007)
    """
    low, high = np.log(as_float(p50)), np.log(as_float(p90))
    return np.asarray(np.exp(low + (high - low) * normal_quantile(as_float(confidence)) / _Z90))


@equation("EQ-BAND-3")
def widened_quantile(p50: FloatOrArray, quantile: FloatOrArray, power: FloatOrArray) -> FloatOrArray:
    """A quantile of measured over predicted where predictions are known less well than on the rows behind it.

    Parameters
    ----------
    p50
        The median, which stays.  [ratio]
    quantile
        Any other quantile.  [ratio]
    power
        What its distance from the median is multiplied with, in the logarithm; 1 leaves it where it is.

    Returns
    -------
    The quantile.  [ratio]

    Notes
    -----
    Eq. (1):  ln q' = ln p50 + power (ln q - ln p50)

    References
    ----------
    [1] J. Aitchison and J. A. C. Brown, "The Lognormal Distribution," Cambridge, 1957: powers of log-normal ratios.

    Examples
    --------
    >>> round(float(widened_quantile(1.0, 1.1, 1.5)), 4)
    1.1537
    """
    middle = as_float(p50)
    return np.asarray(middle * (as_float(quantile) / middle) ** as_float(power))


@equation("EQ-BAND-2")
def lognormal_p90(mean_error: FloatOrArray) -> FloatOrArray:
    """The p90 of measured over predicted of a rule of which only the mean absolute error is known.

    Parameters
    ----------
    mean_error
        Mean of |ln(measured / predicted)|, or of the absolute relative error where it is small.

    Returns
    -------
    Quantile of measured over predicted at 0.9; that at 0.1 is its inverse.  [ratio]

    Notes
    -----
    Eq. (1):  exp(z(0.9) e sqrt(pi / 2)):  a normal variable of spread s has a mean absolute value of s sqrt(2 / pi).

    References
    ----------
    [1] N. L. Johnson, S. Kotz and N. Balakrishnan, "Continuous Univariate Distributions," vol. 1, chapter 13: the
        half-normal distribution.

    Examples
    --------
    >>> round(float(lognormal_p90(0.2)), 3)
    1.379
    """
    return np.asarray(np.exp(_Z90 * as_float(mean_error) / _MEAN_OF_ABSOLUTE_NORMAL))
