"""Spare replicas that an availability asks for."""

from __future__ import annotations

from planner.equations.replicas import replica_availability, share_of_time_within_spares
from planner.estimate.resolve_run import DEFAULT_MTBF_PER_DEVICE_S
from planner.scenario.schema import ServingFleet

DEFAULT_REPAIR_S = 3600.0  # another machine found, weights loaded, warm: assumed
MOST_SPARES = 1000


def repair_s(fleet: ServingFleet) -> float:
    """From the loss of a replica until another stands in its place.  [s]"""
    return fleet.autoscaling.start_up_s if fleet.autoscaling else DEFAULT_REPAIR_S


def availability_of(fleet: ServingFleet, devices: int) -> float:
    """Share of the time in which one replica of so many devices is up."""
    return float(replica_availability(DEFAULT_MTBF_PER_DEVICE_S, repair_s(fleet), devices))


def time_within_spares(fleet: ServingFleet, replicas: int, spares: int, devices: int) -> float:
    """Share of the time in which no more replicas are down than there are spares; all as large as the largest."""
    return float(share_of_time_within_spares(replicas, spares, availability_of(fleet, devices)))


def spares_for(fleet: ServingFleet, replicas: int, devices: int) -> int:
    """The fewest spares among so many replicas that hold the availability asked for."""
    target = fleet.availability or 0.0
    most = min(replicas, MOST_SPARES)
    return next((k for k in range(most) if time_within_spares(fleet, replicas, k, devices) >= target), most)
