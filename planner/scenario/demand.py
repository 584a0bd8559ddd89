"""What a fleet is asked for, from what the scenario says: numbers, files, and which of them win."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.traffic import Traffic

if TYPE_CHECKING:
    from planner.scenario.workloads import ServingFleet
    from planner.traffic.rates import Rates

DEFAULT_PEAK_FACTOR = 2.0
POISSON = 1.0


def traffic_of(fleet: ServingFleet) -> Traffic:
    """The traffic of a fleet."""
    none = 0.0
    return Traffic.of_lengths(
        fleet.input_length.moments if fleet.input_length else none,
        fleet.output_length.moments if fleet.output_length else none,
        requests_per_s=(fleet.requests_per_minute or none) / 60,
        peak_factor=fleet.peak_factor_given or DEFAULT_PEAK_FACTOR,
        arrival_variability=POISSON if fleet.variability_given is None else fleet.variability_given,
    )


def rates_of(fleet: ServingFleet) -> Rates | None:
    """The measured rates of a fleet."""
    return None
