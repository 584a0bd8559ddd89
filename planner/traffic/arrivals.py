"""From arrival times to rate, profile, peak and burstiness."""

from __future__ import annotations

from collections.abc import Iterator

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


def observed_s(arrival_s: Array) -> float:
    """Time that n sorted arrivals stand for: n mean gaps.  [s]"""
    n = arrival_s.size
    return float(arrival_s[-1] - arrival_s[0]) * n / (n - 1) if n > 1 else 0.0


def mean_rate(arrival_s: Array, profile_rates: Array) -> float:
    """Mean rate: over the slots of the profile, each as long as the other, else over the trace.  [1/s]"""
    if profile_rates.size:
        return float(profile_rates.mean())
    seconds = observed_s(arrival_s)
    return arrival_s.size / seconds if seconds > 0 else 0.0


def slot_rates(arrival_s: Array) -> Array:
    """Rate in each hour of the week, or of the day, or none: the first that sorted arrivals cover.

    To cover is to span all hours with 50 requests an hour slot on average. Slot 0 begins at time 0.
    Hours seen only in part count for the part that was seen.  [1/s]
    """
    span_s = observed_s(arrival_s) + _MISSING_S
    for slots in (WEEK_HOURS, DAY_HOURS):
        if span_s >= slots * HOUR_S and arrival_s.size >= slots * _SLOT_REQUESTS:
            return _rates_of(arrival_s, slots)
    return np.zeros(0)


def _rates_of(arrival_s: Array, slots: int) -> Array:
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


def peak_factor(arrival_s: Array, profile_rates: Array) -> float:
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


def burstiness(arrival_s: Array) -> float:
    """Squared variation of the gaps between sorted arrivals, the daily profile removed (EQ-TRF-3).

    Time is stretched so that every window has the same rate: an hour, or as long as 100 requests
    take on average. What is left varies within windows, which is what makes requests queue.
    Arrivals that share a coarse time stamp are spread over its length at random, with a fixed seed.
    """
    if arrival_s.size <= _FEWEST_GAPS or arrival_s[-1] <= arrival_s[0]:
        return 1.0
    times = _spread(arrival_s)
    span = float(times[-1] - times[0])
    windows = int(np.ceil(span / max(HOUR_S, _WINDOW_REQUESTS * span / times.size)))
    edges = np.minimum(times[0] + np.arange(windows + 1) * (span / windows), times[-1])
    count = np.histogram(times, edges)[0]
    passed = np.concatenate([[0.0], np.cumsum(count)])
    mean = square = 0.0
    for begin in range(0, times.size - 1, _AT_ONCE):  # long traces in parts: the columns of all would fill the memory
        gaps = np.diff(np.interp(times[begin : begin + _AT_ONCE + 1], edges, passed))
        share = gaps.size / (times.size - 1)
        mean, square = mean + gaps.mean() * share, square + (gaps**2).mean() * share
    return float(squared_variation(mean, square))


def _parts(arrival_s: Array) -> Iterator[Array]:
    """A long trace a part at a time."""
    for begin in range(0, arrival_s.size, _AT_ONCE):
        yield arrival_s[begin : begin + _AT_ONCE]


def _spread(arrival_s: Array) -> Array:
    """Arrivals with equal time stamps apart: each somewhere within the resolution of the stamps."""
    if np.all(arrival_s[1:] > arrival_s[:-1]):
        return arrival_s
    since_s = arrival_s - np.floor(arrival_s[0])
    for resolution_s in _RESOLUTIONS_S:
        steps = since_s / resolution_s
        if np.all(np.abs(steps - np.round(steps)) < 1e-3):
            noise = np.random.default_rng(0).random(arrival_s.size)
            return np.sort(arrival_s + resolution_s * noise)
    return arrival_s
