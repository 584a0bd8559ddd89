"""`Traffic`: what a fleet is asked for, however the scenario says it; lengths of requests by their first two moments.

Lengths are whole, and cut at quantiles. Of autoscaled fleets: what replicas must be there, hour by hour, and as a few
nested levels of load.
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


MOST_LEVELS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLevels:
    """Levels of load, least first; the last is the peak. Replicas of level i run while the load is at i or above."""

    load: Array  # (levels,) that replicas must carry, all buckets together: a rate, or users  [1/s] or [count]
    hours: Array  # (levels,) of the horizon at exactly this level  [h]

    @property
    def hours_at_least(self) -> Array:
        """Hours at this level or above: how long the replicas run that the level adds.  [h]"""
        return np.cumsum(self.hours[::-1])[::-1]


def look_ahead(weights: Sequence[float] | Array, start_up_slots: float) -> tuple[Array, Array]:
    """What must be ready: the most that is asked for from now until a replica that starts now is up.

    Parameters
    ----------
    weights
        Load of equal slots that repeat without end.  [any]
    start_up_slots
        Start-up delay over the length of a slot, at least 0.  [1]

    Returns
    -------
    Load and share of the time of each piece; a slot has two, one from which the start-up reaches one
    slot further.  [any], [1]

    Notes
    -----
    Eq. (1):  r(t) = max { load(s): t <= s <= t + t_up },  load constant within slots
    """
    load = np.asarray(weights, dtype=np.float64)
    whole = int(start_up_slots)
    rest = start_up_slots - whole
    near = _rolling_max(load, whole + 1)
    far = np.maximum(near, np.roll(load, -(whole + 1)))
    pieces = np.concatenate([near, far])
    shares = np.concatenate([np.full(load.size, 1 - rest), np.full(load.size, rest)]) / load.size
    return pieces[shares > 0], shares[shares > 0]


def _rolling_max(load: Array, slots: int) -> Array:
    """The most of each slot and those after it, around the end."""
    if slots >= load.size:
        return np.full(load.size, load.max())
    return np.asarray(np.max([np.roll(load, -shift) for shift in range(slots)], axis=0))


def nested_levels(load: Array, shares: Array, most: int = MOST_LEVELS) -> tuple[Array, Array]:
    """At most `most` levels that cover every load and are above it as little as can be, averaged over time.

    Parameters
    ----------
    load, shares
        Load of each piece of time, and its share of the time.  [any], [1]
    most
        Levels, at least 1.  [count]

    Returns
    -------
    Levels, least first, and the share of the time at each.  [any], [1]

    Notes
    -----
    Each load is rounded up to its level. Levels are loads that occur: lowering any other to the load
    below it costs nothing. With loads sorted, the best k levels for the first j loads are exact:

    Eq. (1):  C_k(j) = min_i  C_{k-1}(i) + sum_{i < l <= j} w_l (d_j - d_l)
    """
    values, place = np.unique(load, return_inverse=True)
    weight = np.bincount(place, weights=shares).astype(np.float64)
    cost = _excess(values, weight)
    best, came = cost[0], []
    for _ in range(1, min(most, values.size)):
        whole = np.concatenate([[np.inf], best[:-1]])[:, None] + cost
        came.append(whole.argmin(axis=0))
        best = whole.min(axis=0)
    edges = [values.size - 1]
    for choice in reversed(came):
        edges.insert(0, int(choice[edges[0]]) - 1)
    return values[edges], np.diff(np.cumsum(weight)[edges], prepend=0.0)


def _excess(values: Array, weight: Array) -> Array:
    """[i, j]: what sorted loads i to j lose when they are rounded up to load j; inf where i is above j."""
    count = values.size
    before = np.concatenate([[0.0], np.cumsum(weight)])
    mass = np.concatenate([[0.0], np.cumsum(weight * values)])
    excess = values * (before[None, 1:] - before[:-1, None]) - (mass[None, 1:] - mass[:-1, None])
    return np.where(np.triu(np.ones((count, count), dtype=bool)), excess, np.inf)


def load_levels(traffic: Traffic, start_up_s: float, horizon_s: float, most: int = MOST_LEVELS) -> LoadLevels:
    """Levels of an autoscaled fleet and their hours over the horizon.

    Parameters
    ----------
    traffic
        Its profile says when requests come; a flat one gives one level, the peak. A peak factor that
        is not the profile's busiest hour stretches all levels alike: the margin is kept at night too.
    start_up_s
        From asking for a replica until it serves: provisioning, loading, warm-up.  [s]
    horizon_s
        How long the fleet runs.  [s]
    most
        Levels at most: each is a set of columns of the program.  [count]
    """
    weights = np.asarray(traffic.profile or (1.0,))
    load, shares = look_ahead(weights, start_up_s / traffic.slot_s)
    levels, portions = nested_levels(load, shares, most)
    return LoadLevels(
        load=levels * (traffic.peak_load / weights.max()),
        hours=portions * (horizon_s / 3600.0),
    )
