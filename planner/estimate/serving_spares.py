"""Spare replicas that an availability asks for."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.equations.replicas import replica_availability, share_of_time_within_spares
from planner.estimate.resolve_run import DEFAULT_MTBF_PER_DEVICE_S
from planner.scenario.schema import ServingFleet, Spot

DEFAULT_REPAIR_S = 3600.0  # another machine found, weights loaded, warm: assumed
MOST_SPARES = 1000
MOST_REPLICAS = 1 << 17


class Frailty(NamedTuple):
    """How much of the time replicas of one kind are up."""

    alone: float  # share of the time in which none of a replica's devices has failed
    there: float = 1.0  # in which none of its spot nodes is taken away; 1 off spot
    together: int = 1  # replicas that are lost with a node

    @property
    def up(self) -> float:
        """Share of the time in which one replica is up."""
        return self.alone * self.there


def repair_s(fleet: ServingFleet) -> float:
    """From the loss of a replica until another stands in its place.  [s]"""
    return fleet.autoscaling.start_up_s if fleet.autoscaling else DEFAULT_REPAIR_S


def away_s(fleet: ServingFleet, spot: Spot) -> float:
    """From the loss of a spot node until its replicas run again; as for jobs, a warning does not shorten it.  [s]"""
    return spot.restart_s or repair_s(fleet)


def frailty(fleet: ServingFleet, devices: int, spot: Spot | None = None, shape_devices: int = 1) -> Frailty:
    """How much of the time replicas of so many devices are up.

    Parameters
    ----------
    fleet
        Its start-up time, where it is autoscaled, is that of a repair.
    devices
        Of one replica.
    spot
        How often nodes are taken away, where the replica stands on spot; else None.
    shape_devices
        Of one such node.
    """
    alone = float(replica_availability(DEFAULT_MTBF_PER_DEVICE_S, repair_s(fleet), devices))
    if spot is None or not spot.interruptions_per_s:
        return Frailty(alone)
    nodes = max(devices // shape_devices, 1)
    there = float(replica_availability(1.0 / spot.interruptions_per_s, away_s(fleet, spot), nodes))
    return Frailty(alone, there, max(shape_devices // devices, 1))


@lru_cache(maxsize=1 << 16)  # each level of load, place and change of it asks the same of the same few kinds
def time_within_spares(replicas: int, spares: int, kind: Frailty) -> float:
    """Share of the time in which no more replicas are down than there are spares, all of them of one kind.

    Parameters
    ----------
    replicas
        Spares among them.
    spares
        Replicas that may be down.
    kind
        How much of the time they are up.
    """
    return float(share_of_time_within_spares(replicas, spares, kind.alone, kind.there, kind.together))


def spares_for(fleet: ServingFleet, replicas: int, kind: Frailty) -> int:
    """The fewest spares among so many replicas that hold the availability asked for.

    Parameters
    ----------
    fleet
        The availability that it asks for.
    replicas
        Spares among them.
    kind
        How much of the time they are up.
    """
    most = min(replicas, MOST_SPARES)
    return bisect_left(range(most), fleet.availability or 0.0, key=lambda k: time_within_spares(replicas, k, kind))


def replicas_within(fleet: ServingFleet, spares: int, kind: Frailty) -> int:
    """The most replicas of a kind for which so many spares hold the availability asked for.

    Parameters
    ----------
    fleet
        The availability that it asks for.
    spares
        Replicas that may be down.
    kind
        How much of the time they are up.
    """
    target, low, high = fleet.availability or 0.0, spares, spares + 1
    while high < MOST_REPLICAS and time_within_spares(high, spares, kind) >= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if time_within_spares(middle, spares, kind) >= target:
            low = middle
        else:
            high = middle
    return low


def fewest_spares(
    fleet: ServingFleet, rates: Mapping[Frailty, NDArray[Any]], demands: Sequence[int], *, together: bool
) -> int:
    """Spares that every fleet has which holds the availability asked for and carries its demand without them.

    So many spares suffice for a number of replicas of each kind; those of the kinds for which that is no less must
    carry the demand with as many lost.

    Parameters
    ----------
    fleet
        The availability that it asks for.
    rates
        The most that one replica of each kind carries of each bucket; the same units as the demands.
    demands
        Of each bucket, at the peak.
    together
        Whether a replica carries its rates of all buckets at the same time, and not a share of each.
    """
    for spares in range(MOST_SPARES):
        within = {kind: replicas_within(fleet, spares, kind) for kind in rates}
        for most in set(within.values()):
            largest = np.max([rates[kind] for kind, count in within.items() if count >= most], axis=0)
            loads = [demand / each if each > 0 else math.inf for demand, each in zip(demands, largest) if demand]
            load = (max if together else sum)([0.0, *loads]) * (1 - 1e-9)
            if math.isfinite(load) and spares + max(math.ceil(load), 1) <= most:
                return spares
    return 0
