"""`Traffic`: what a fleet is asked for, however the scenario says it; lengths of requests by their first two moments.

Lengths are whole, and cut at quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

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


Array = NDArray[np.float64]
# The long requests are few and dear: the quantiles are closer at the upper end. 20 buckets, the least
# of which holds 0.08 * 0.1 = 0.8 % of the requests.
INPUT_QUANTILES = (0.3, 0.6, 0.8, 0.92, 1.0)
OUTPUT_QUANTILES = (0.4, 0.7, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """Requests by bucket of lengths, their mean rate or the users who send them, burstiness and profile.

    Lengths are nan where the buckets are names without lengths (a histogram that is joined with
    measured rates).
    """

    buckets: tuple[str, ...]
    input_tokens: Array  # (b,) mean prompt  [tokens]
    output_tokens: Array  # (b,) mean answer  [tokens]
    input_second_moment: Array  # (b,)  [tokens^2]
    output_second_moment: Array  # (b,)  [tokens^2]
    share: Array  # (b,) of the requests, sums to 1
    requests_per_s: float  # mean over the profile; nan where users send them: it follows from what serves them  [1/s]
    peak_factor: float = 1.0  # planned peak over the mean
    arrival_variability: float = 1.0  # c_a^2, squared variation of the gaps between arrivals; 1 = Poisson
    profile: tuple[float, ...] = ()  # weights of equal slots that fill a day or a week, mean 1; () = flat
    slot_s: float = 3600.0  # length of a slot of the profile  [s]
    files: tuple[tuple[str, str], ...] = ()  # what was read: name, sha256
    users: float = 0.0  # mean number of users who each wait for an answer, think, and send the next request; 0 = none
    think_s: float = math.inf  # mean time from an answer to the next request of the same user  [s]
    classes: bool = False  # buckets are kinds of requests that somebody told apart, not samples of one kind

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traffic) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)

    @classmethod
    def of_lengths(
        cls,
        input_length: LengthMoments | float,
        output_length: LengthMoments | float,
        *,
        requests_per_s: float,
        peak_factor: float = 1.0,
        arrival_variability: float = 1.0,
        profile: Sequence[float] = (),
        files: tuple[tuple[str, str], ...] = (),
        together: bool = True,
    ) -> Traffic:
        """Buckets between quantiles, as those of a trace, or one; prompt and answer are independent.

        Parameters
        ----------
        input_length, output_length
            Mean and second moment; a number is a length that all requests have.  [tokens]
        requests_per_s
            Mean rate.  [1/s]
        together
            Whether replicas take all requests together. Else there is one bucket: a router that takes buckets apart
            cannot know how long an answer will be.
        """
        parts = [
            (given, made)
            for given in _moments(input_length).cut(INPUT_QUANTILES if together else (1.0,))
            for made in _moments(output_length).cut(OUTPUT_QUANTILES if together else (1.0,))
        ]
        return cls(
            buckets=tuple(f"{given.name}/{made.name}" for given, made in parts) if len(parts) > 1 else ("all",),
            input_tokens=np.array([given.mean for given, _ in parts]),
            output_tokens=np.array([made.mean for _, made in parts]),
            input_second_moment=np.array([given.second_moment for given, _ in parts]),
            output_second_moment=np.array([made.second_moment for _, made in parts]),
            share=np.array([given.share * made.share for given, made in parts]),
            requests_per_s=float(requests_per_s),
            peak_factor=float(peak_factor),
            arrival_variability=float(arrival_variability),
            profile=tuple(float(weight) for weight in profile),
            files=files,
        )

    @property
    def mean_input_tokens(self) -> float:
        """Mean prompt over all requests; nan where lengths are unknown.  [tokens]"""
        return float(self.share @ self.input_tokens)

    @property
    def mean_output_tokens(self) -> float:
        """Mean answer over all requests; nan where lengths are unknown.  [tokens]"""
        return float(self.share @ self.output_tokens)

    @property
    def peak_requests_per_s(self) -> float:
        """Rate that replicas are planned for.  [1/s]"""
        return self.requests_per_s * self.peak_factor

    @property
    def peak_load(self) -> float:
        """What replicas are planned for: users, or where requests come by themselves their rate.  [count] or [1/s]"""
        return self.users * self.peak_factor if self.users else self.peak_requests_per_s

    @property
    def bucket_requests_per_s(self) -> Array:
        """Mean rate of each bucket.  [1/s]"""
        return self.requests_per_s * self.share


def _moments(length: LengthMoments | float) -> LengthMoments:
    return length if isinstance(length, LengthMoments) else LengthMoments.constant(length)
