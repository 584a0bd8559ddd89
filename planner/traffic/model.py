"""`Traffic`: what a fleet is asked for, however the scenario says it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.traffic.lengths import LengthMoments

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
