"""What a fleet is asked for, from what the scenario says: numbers, files, and which of them win.

A trace says everything. Else there is a rate, qpm or requests, or there are users who think, and lengths are numbers,
distributions or a histogram. The peak is peak_factor where the user gives it; else the busiest hour of the load profile
or what the trace shows; else twice the mean rate, or all the users there are. Arrivals are as bursty as
arrival_variability says; else as the trace shows; else Poisson.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeVar

from planner.carriers import dataclass
from planner.errors import InputError, Problem
from planner.traffic import LengthMoments, Traffic
from planner.traffic.rates import Rates, read_rates
from planner.traffic.tables import Histogram, read_histogram, read_load_profile
from planner.traffic.trace import read_trace

if TYPE_CHECKING:
    from planner.scenario.serving_fleet import ServingFleet

DEFAULT_PEAK_FACTOR = 2.0
POISSON = 1.0
_UNKNOWN = LengthMoments.constant(0.0)
Result = TypeVar("Result")


@dataclass(slots=True)
class Demand:
    """Traffic and measured rates of a fleet, and what is wrong with its files, by the key that names them."""

    traffic: Traffic | None = None
    rates: Rates | None = None
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def read(self, key: str, path: str | None, reader: Callable[[str], Result]) -> Result | None:
        """What a file holds; None, and its problems noted, when it cannot be read."""
        try:
            return reader(path) if path is not None else None
        except InputError as error:
            self.problems += [(key, problem) for problem in error.problems]
            return None


def read_demand(fleet: ServingFleet) -> Demand:
    """Read the files that a fleet names; every problem of all of them is kept."""
    demand = Demand()
    traffic = _traced(fleet, demand) if fleet.trace is not None else _described(fleet, demand)
    if traffic is None or demand.problems:
        return demand
    demand.rates = demand.read("profile", fleet.profile, lambda path: read_rates(path, traffic.buckets))
    demand.traffic = traffic
    return demand


def traffic_of(fleet: ServingFleet) -> Traffic:
    """The traffic of a fleet; `InputError` when a file of it cannot be read."""
    demand = _demanded(fleet)
    assert demand.traffic is not None
    return demand.traffic


def rates_of(fleet: ServingFleet) -> Rates | None:
    """The measured rates of a fleet, None when it names none; `InputError` when a file cannot be read."""
    return _demanded(fleet).rates if fleet.profile is not None else None


def _demanded(fleet: ServingFleet) -> Demand:
    demand = read_demand(fleet)
    if demand.problems:
        raise InputError(*(problem for _, problem in demand.problems))
    return demand


def _traced(fleet: ServingFleet, demand: Demand) -> Traffic | None:
    trace = demand.read("trace", fleet.trace, read_trace)
    return _as_given(fleet, trace.traffic()) if trace else None


def _as_given(fleet: ServingFleet, traffic: Traffic) -> Traffic:
    """What the user says of peak and burstiness wins."""
    peak, variability = fleet.peak_factor_given, fleet.variability_given
    return replace(
        traffic,
        peak_factor=traffic.peak_factor if peak is None else peak,
        arrival_variability=traffic.arrival_variability if variability is None else variability,
    )


def _described(fleet: ServingFleet, demand: Demand) -> Traffic | None:
    profile = demand.read("load_profile", fleet.load_profile, read_load_profile)
    histogram = demand.read("histogram", fleet.histogram, read_histogram)
    unnamed = histogram.unnamed() if histogram and fleet.profile is None else None
    demand.problems += [("histogram", unnamed)] if unnamed else []
    if demand.problems:
        return None
    lengths = _of_histogram(histogram) if histogram else _of_numbers(fleet)
    traffic = replace(
        lengths,
        requests_per_s=math.nan if fleet.users else fleet.requests_per_s or (fleet.requests_per_minute or 0.0) / 60,
        users=float(fleet.users or 0),
        think_s=math.inf if fleet.think_time_s is None else fleet.think_time_s,
        peak_factor=max(profile.weights) if profile else 1.0 if fleet.users else DEFAULT_PEAK_FACTOR,
        arrival_variability=POISSON,
        profile=profile.weights if profile else (),
        files=lengths.files + (((profile.file, profile.sha256),) if profile else ()),
    )
    return _as_given(fleet, traffic)


def _of_numbers(fleet: ServingFleet) -> Traffic:
    given, made = fleet.input_length, fleet.output_length
    apart = fleet.integer_slices or fleet.disaggregated != "false" or fleet.tier != "analytic"
    together = bool(fleet.targets_s) and not apart  # as `planner.estimate.serving_tiers.blended` has it
    lengths = (given.moments if given else _UNKNOWN, made.moments if made else _UNKNOWN)
    return Traffic.of_lengths(*lengths, requests_per_s=0.0, together=together)


def _of_histogram(histogram: Histogram) -> Traffic:
    return Traffic(
        buckets=histogram.buckets,
        input_tokens=histogram.input_tokens,
        output_tokens=histogram.output_tokens,
        input_second_moment=histogram.input_tokens**2,
        output_second_moment=histogram.output_tokens**2,
        share=histogram.share,
        requests_per_s=0.0,
        files=((histogram.file, histogram.sha256),),
        classes=True,
    )
