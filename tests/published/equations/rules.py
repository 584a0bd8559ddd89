"""What a rule of thumb implies."""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation


@equation("EQ-RULE-2")
def implied_sustained_flop_per_s(hours_per_billion_squared: FloatOrArray) -> FloatOrArray:
    """Sustained rate that a rule of H hours per 1e9 tokens x 1e9 parameters stands for.

    Parameters
    ----------
    hours_per_billion_squared
        Hours H of one device.  [h]

    Returns
    -------
    Model FLOP/s of one device.  [FLOP/s]

    Notes
    -----
    Eq. (1):  6e18 / (3600 H)

    References
    ----------
    [1] J. Kaplan et al., "Scaling Laws for Neural Language Models," 2020, sec. 2.1: 6 N FLOP a token.

    Examples
    --------
    >>> round(float(implied_sustained_flop_per_s(13.3)) / 312e12, 3)
    0.402
    """
    return 6e18 / (3600.0 * as_float(hours_per_billion_squared))
