"""`Traffic`: what a fleet is asked for, however the scenario says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.traffic.lengths import LengthMoments

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """Requests by bucket of lengths, their mean rate, burstiness and profile.

    Lengths are nan where the buckets are names without lengths (a histogram that is joined with
    measured rates).
    """

    buckets: tuple[str, ...]
    input_tokens: Array  # (b,) mean prompt  [tokens]
    output_tokens: Array  # (b,) mean answer  [tokens]
    input_second_moment: Array  # (b,)  [tokens^2]
    output_second_moment: Array  # (b,)  [tokens^2]
    share: Array  # (b,) of the requests, sums to 1
    requests_per_s: float  # mean over the profile  [1/s]
    peak_factor: float = 1.0  # planned peak over the mean
    arrival_variability: float = 1.0  # c_a^2, squared variation of the gaps between arrivals; 1 = Poisson
    profile: tuple[float, ...] = ()  # weights of equal slots that fill a day or a week, mean 1; () = flat
    slot_s: float = 3600.0  # length of a slot of the profile  [s]
    files: tuple[tuple[str, str], ...] = ()  # what was read: name, sha256
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
    ) -> Traffic:
        """One bucket: a router cannot know how long an answer will be; prompt and answer are independent.

        Parameters
        ----------
        input_length, output_length
            Mean and second moment; a number is a length that all requests have.  [tokens]
        requests_per_s
            Mean rate.  [1/s]
        """
        given, made = _moments(input_length), _moments(output_length)
        return cls(
            buckets=("all",),
            input_tokens=np.array([given.mean]),
            output_tokens=np.array([made.mean]),
            input_second_moment=np.array([given.second_moment]),
            output_second_moment=np.array([made.second_moment]),
            share=np.ones(1),
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
    def bucket_requests_per_s(self) -> Array:
        """Mean rate of each bucket.  [1/s]"""
        return self.requests_per_s * self.share


def _moments(length: LengthMoments | float) -> LengthMoments:
    return length if isinstance(length, LengthMoments) else LengthMoments.constant(length)
