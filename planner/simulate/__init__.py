"""Tier T3: seeded discrete-event simulation of a serving replica, to check a plan and the formulas."""

from planner.simulate.replica import SimulatedLoad, simulate_replica
from planner.simulate.workload import Workload

__all__ = ["SimulatedLoad", "Workload", "simulate_replica"]
