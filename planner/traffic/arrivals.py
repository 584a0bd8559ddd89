"""From arrival times to rate, profile, peak and burstiness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from planner.equations.lengths import peak_over_mean, squared_variation
from planner.traffic.model import Array

HOUR_S = 3600.0
DAY_HOURS, WEEK_HOURS = 24, 168
_MISSING_S = HOUR_S / 2  # a day or week whose last half hour is missing still counts as one
_SLOT_REQUESTS = 50  # on average, else the weights of a profile would be noise
_WINDOW_REQUESTS = 100.0  # on average, in a window of the operational time and of the peak
_FEWEST_GAPS = 20  # below, burstiness says nothing: Poisson is taken
_AT_ONCE = 4_000_000  # gaps
_RESOLUTIONS_S = (60.0, 1.0, 1e-3)


class Times(Protocol):
    """Sorted times: an array, or what is read from disk a slice at a time."""

    @property
    def size(self) -> int:
        """How many there are."""

    def __getitem__(self, at: Any, /) -> Any:
        """One, or a slice."""


def observed_s(arrival_s: Times) -> float:
    """Time that n sorted arrivals stand for: n mean gaps.  [s]"""
    n = arrival_s.size
    return float(arrival_s[-1] - arrival_s[0]) * n / (n - 1) if n > 1 else 0.0


def mean_rate(arrival_s: Times, profile_rates: Array) -> float:
    """Mean rate: over the slots of the profile, each as long as the other, else over the trace.  [1/s]"""
    if profile_rates.size:
        return float(profile_rates.mean())
    seconds = observed_s(arrival_s)
    return arrival_s.size / seconds if seconds > 0 else 0.0


def slot_rates(arrival_s: Times) -> Array:
    """Rate in each hour of the week, or of the day, or none: the first that sorted arrivals cover.

    To cover is to span all hours with 50 requests an hour slot on average. Slot 0 begins at time 0.
    Hours seen only in part count for the part that was seen.  [1/s]
    """
    span_s = observed_s(arrival_s) + _MISSING_S
    for slots in (WEEK_HOURS, DAY_HOURS):
        if span_s >= slots * HOUR_S and arrival_s.size >= slots * _SLOT_REQUESTS:
            return _rates_of(arrival_s, slots)
    return np.zeros(0)


def _rates_of(arrival_s: Times, slots: int) -> Array:
    # the trace is seen from half a mean gap before its first request to half a one after its last
    half_gap_s = (float(arrival_s[-1]) - float(arrival_s[0])) / (arrival_s.size - 1) / 2
    first, last = float(arrival_s[0]) - half_gap_s, float(arrival_s[-1]) + half_gap_s
    hours = np.arange(np.floor(first / HOUR_S), np.floor(last / HOUR_S) + 1)
    seen_s = np.minimum((hours + 1) * HOUR_S, last) - np.maximum(hours * HOUR_S, first)
    seen_s = np.bincount((hours % slots).astype(int), weights=seen_s, minlength=slots)
    count = np.zeros(slots, dtype=int)
    for part in _parts(arrival_s):
        count += np.bincount((np.floor(part / HOUR_S) % slots).astype(int), minlength=slots)
    rates: Array = count / np.maximum(seen_s, 1.0)
    return rates


def peak_factor(arrival_s: Times, profile_rates: Array) -> float:
    """Busiest hour of the profile over the mean; without a profile, the busiest of all but 1 % of the minutes.

    Where a minute holds fewer than 100 requests on average, the time that 100 take stands for it: the chance
    that arrivals crowd is the queue's matter (`burstiness`), not the peak's (EQ-TRF-4).
    """
    if profile_rates.size:
        return float(peak_over_mean(profile_rates.max(), profile_rates.mean()))
    first, last = float(arrival_s[0]), float(arrival_s[-1])
    window_s = max(60.0, _WINDOW_REQUESTS * (last - first) / arrival_s.size)
    windows = int((last - first) // window_s)
    if windows < 2:
        return 1.0
    count = np.zeros(windows + 2, dtype=int)
    for part in _parts(arrival_s):
        seen = np.bincount(((part - first) // window_s).astype(int), minlength=windows + 2)
        count += seen[: windows + 2]
    count = count[:windows]
    return float(peak_over_mean(np.quantile(count, 0.99), count.mean()))


def burstiness(arrival_s: Times) -> float:
    """Squared variation of the gaps between sorted arrivals, the daily profile removed (EQ-TRF-3).

    Time is stretched so that every window has the same rate: an hour, or as long as 100 requests
    take on average. What is left varies within windows, which is what makes requests queue.
    Arrivals that share a coarse time stamp are spread over its length at random, with a fixed seed.
    """
    if arrival_s.size <= _FEWEST_GAPS or arrival_s[-1] <= arrival_s[0]:
        return 1.0
    parts = _spread(arrival_s)
    first, last = float(next(parts())[0]), 0.0
    for part in parts():
        last = float(part[-1])
    span = last - first
    windows = int(np.ceil(span / max(HOUR_S, _WINDOW_REQUESTS * span / arrival_s.size)))
    edges = np.minimum(first + np.arange(windows + 1) * (span / windows), last)
    count = np.zeros(windows, dtype=np.int64)
    for part in parts():
        count += np.histogram(part, edges)[0]
    passed = np.concatenate([[0.0], np.cumsum(count)])
    mean = square = 0.0
    before = np.zeros(0)
    for part in parts():  # long traces in parts: the columns of all would fill the memory
        gaps = np.diff(np.interp(np.concatenate([before, part]), edges, passed))
        share = gaps.size / (arrival_s.size - 1)
        before = part[-1:]
        if gaps.size:
            mean, square = mean + gaps.mean() * share, square + (gaps**2).mean() * share
    return float(squared_variation(mean, square))


def longest_gap_s(arrival_s: Times) -> float:
    """The longest time between two sorted arrivals.  [s]"""
    longest, before = 0.0, np.zeros(0)
    for part in _parts(arrival_s):
        longest = max(longest, float(np.diff(np.concatenate([before, part])).max(initial=0.0)))
        before = part[-1:]
    return longest


def _parts(arrival_s: Times) -> Iterator[Array]:
    """A long trace a part at a time."""
    for begin in range(0, arrival_s.size, _AT_ONCE):
        yield arrival_s[begin : begin + _AT_ONCE]


def _spread(arrival_s: Times) -> Callable[[], Iterator[Array]]:
    """Arrivals with equal time stamps apart, by parts: each somewhere within the resolution of the stamps."""

    def whole() -> Iterator[Array]:
        return _parts(arrival_s)

    before, apart = -np.inf, True
    for part in whole():
        apart = apart and bool(part[0] > before) and bool(np.all(part[1:] > part[:-1]))
        before = part[-1]
    if apart:
        return whole
    base_s = np.floor(arrival_s[0])
    for resolution_s in _RESOLUTIONS_S:
        if all(_in_steps(part - base_s, resolution_s) for part in whole()):

            def spread(resolution_s: float = resolution_s) -> Iterator[Array]:
                lots = np.random.default_rng(0)
                for part in whole():
                    yield np.sort(part + resolution_s * lots.random(part.size))

            return spread
    return whole


def _in_steps(since_s: Array, resolution_s: float) -> bool:
    steps = since_s / resolution_s
    return bool(np.all(np.abs(steps - np.round(steps)) < 1e-3))
