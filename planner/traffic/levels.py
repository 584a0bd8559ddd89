"""Autoscaled fleets: what replicas must be there, hour by hour, and as a few nested levels of load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.carriers import dataclass
from planner.traffic.model import Array, Traffic

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
