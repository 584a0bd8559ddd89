"""Lengths of requests by their first two moments."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.carriers import dataclass
from planner.equations.lengths import NORMAL_P95, lognormal_second_moment, lognormal_sigma

HIGHEST_P95_OVER_MEAN = math.exp(NORMAL_P95**2 / 2)  # 3.868: no log-normal has more
SHARE_TOLERANCE = 0.01  # published histograms are rounded: shares may miss 1 by this much


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthMoments:
    """Mean and second moment about zero of a length.  [tokens], [tokens^2]"""

    mean: float
    second_moment: float

    @classmethod
    def constant(cls, tokens: float) -> LengthMoments:
        """Every request has this length.  [tokens]"""
        return cls(mean=float(tokens), second_moment=float(tokens) ** 2)

    @classmethod
    def lognormal(cls, mean: float, p95: float) -> LengthMoments:
        """Log-normal with this mean and 95th percentile (EQ-TRF-1, EQ-TRF-2).  [tokens]

        Raises
        ------
        ValueError
            p95 is below the mean or above 3.868 times the mean: no such distribution.
        """
        sigma = float(lognormal_sigma(mean, p95))
        if math.isnan(sigma):
            raise ValueError(f"no log-normal has the mean {mean:g} and the 95th percentile {p95:g}")
        return cls(mean=float(mean), second_moment=float(lognormal_second_moment(mean, sigma)))

    @classmethod
    def histogram(cls, classes: Sequence[tuple[float, float]]) -> LengthMoments:
        """Classes of (tokens, share); shares are taken relative to their sum."""
        whole = math.fsum(share for _, share in classes)
        return cls(
            mean=math.fsum(tokens * share for tokens, share in classes) / whole,
            second_moment=math.fsum(tokens**2 * share for tokens, share in classes) / whole,
        )
