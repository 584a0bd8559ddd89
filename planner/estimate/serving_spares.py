"""Spare replicas that an availability asks for."""

from __future__ import annotations

from planner.equations.replicas import replica_availability, share_of_time_within_spares
from planner.estimate.resolve_run import DEFAULT_MTBF_PER_DEVICE_S
from planner.scenario.schema import ServingFleet

DEFAULT_REPAIR_S = 3600.0  # another machine found, weights loaded, warm: assumed
MOST_SPARES = 1000
MOST_REPLICAS = 1 << 17


def repair_s(fleet: ServingFleet) -> float:
    """From the loss of a replica until another stands in its place.  [s]"""
    return fleet.autoscaling.start_up_s if fleet.autoscaling else DEFAULT_REPAIR_S


def availability_of(fleet: ServingFleet, devices: int) -> float:
    """Share of the time in which one replica of so many devices is up."""
    return float(replica_availability(DEFAULT_MTBF_PER_DEVICE_S, repair_s(fleet), devices))


def time_within_spares(fleet: ServingFleet, replicas: int, spares: int, devices: int) -> float:
    """Share of the time in which no more replicas are down than there are spares; all as large as the largest.

    Parameters
    ----------
    fleet
        Its start-up time, where it is autoscaled, is that of a repair.
    replicas
        Spares among them.
    spares
        Replicas that may be down.
    devices
        Of the largest replica.
    """
    return float(share_of_time_within_spares(replicas, spares, availability_of(fleet, devices)))


def spares_for(fleet: ServingFleet, replicas: int, devices: int) -> int:
    """The fewest spares among so many replicas that hold the availability asked for.

    Parameters
    ----------
    fleet
        The availability that it asks for; its start-up time, where it is autoscaled, is that of a repair.
    replicas
        Spares among them.
    devices
        Of the largest replica.
    """
    target = fleet.availability or 0.0
    most = min(replicas, MOST_SPARES)
    low, high = -1, 0  # of which fewer are too few: the share of the time rises with the spares
    while high < most and time_within_spares(fleet, replicas, high, devices) < target:
        low, high = high, 2 * high + 1
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if time_within_spares(fleet, replicas, middle, devices) < target:
            low = middle
        else:
            high = middle
    return high


def replicas_within(fleet: ServingFleet, spares: int, devices: int) -> int:
    """The most replicas of so many devices each for which so many spares hold the availability asked for.

    Parameters
    ----------
    fleet
        The availability that it asks for; its start-up time, where it is autoscaled, is that of a repair.
    spares
        Replicas that may be down.
    devices
        Of each replica.
    """
    target, low, high = fleet.availability or 0.0, spares, spares + 1
    while high < MOST_REPLICAS and time_within_spares(fleet, high, spares, devices) >= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if time_within_spares(fleet, middle, spares, devices) >= target:
            low = middle
        else:
            high = middle
    return low
