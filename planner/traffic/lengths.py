"""Lengths of requests by their first two moments, whole and cut at quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import NormalDist

from planner.carriers import dataclass
from planner.equations.lengths import (
    NORMAL_P95,
    lognormal_partial_moment,
    lognormal_second_moment,
    lognormal_sigma,
)

HIGHEST_P95_OVER_MEAN = math.exp(NORMAL_P95**2 / 2)  # 3.868: no log-normal has more
ROUNDING = 1e-9  # of shares
ALIKE = 1e-6  # spread below which lengths are one
SHARE_TOLERANCE = 0.01  # published histograms are rounded: shares may miss 1 by this much


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPart:
    """Lengths between two quantiles: their share, and mean and second moment of them alone."""

    name: str  # the upper edge, or of the longest the lower one
    share: float
    mean: float
    second_moment: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthMoments:
    """Mean and second moment about zero of a length.  [tokens], [tokens^2]"""

    mean: float
    second_moment: float
    sigma: float = 0.0  # of the logarithm, of lengths that are log-normal
    classes: tuple[tuple[float, float], ...] = ()  # of (tokens, share), shortest first; shares add up to 1

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
        return cls(mean=float(mean), second_moment=float(lognormal_second_moment(mean, sigma)), sigma=sigma)

    @classmethod
    def histogram(cls, classes: Sequence[tuple[float, float]]) -> LengthMoments:
        """Classes of (tokens, share); shares are taken relative to their sum."""
        whole = math.fsum(share for _, share in classes)
        return cls(
            mean=math.fsum(tokens * share for tokens, share in classes) / whole,
            second_moment=math.fsum(tokens**2 * share for tokens, share in classes) / whole,
            classes=tuple((float(tokens), share / whole) for tokens, share in sorted(classes)),
        )

    def cut(self, quantiles: Sequence[float]) -> tuple[LengthPart, ...]:
        """Parts between quantiles, the last of which is 1, with exact moments (EQ-TRF-5); one where all are alike.

        A class of a histogram is in one part, that in which its share ends.
        """
        if self.sigma > ALIKE and len(quantiles) > 1:
            return tuple(self._between(low, high) for low, high in zip((0.0, *quantiles), quantiles))
        found, start = list[LengthPart](), 0
        ends = list(accumulate(share for _, share in self.classes))
        for quantile in quantiles if self.classes else ():
            stop = next((i + 1 for i, end in enumerate(ends) if end >= quantile - ROUNDING), len(ends))
            if stop > start:
                part = LengthMoments.histogram(self.classes[start:stop])
                name, share = f"{self.classes[stop - 1][0]:.0f}", math.fsum(one for _, one in self.classes[start:stop])
                found.append(LengthPart(name=name, share=share, mean=part.mean, second_moment=part.second_moment))
            start = max(start, stop)
        whole = LengthPart(name=f"{self.mean:.0f}", share=1.0, mean=self.mean, second_moment=self.second_moment)
        return tuple(found) if len(found) > 1 else (whole,)

    def _between(self, low: float, high: float) -> LengthPart:
        share, mean, second = (float(lognormal_partial_moment(self.mean, self.sigma, k, low, high)) for k in range(3))
        score = NormalDist().inv_cdf(high if high < 1 else low)
        edge = self.mean * math.exp(score * self.sigma - self.sigma**2 / 2)
        name = f"{edge:.0f}" + ("" if high < 1 else "+")
        return LengthPart(name=name, share=share, mean=mean / share, second_moment=second / share)
