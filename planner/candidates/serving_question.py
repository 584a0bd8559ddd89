"""One fleet with everything that the search needs, resolved."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.load import stored_format
from planner.architecture.model import Architecture
from planner.candidates.offers import Site
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device
from planner.estimate.machine import Machine
from planner.estimate.recall import Recall
from planner.estimate.resolve import serving_machine
from planner.estimate.resolve_serving import (
    Requests,
    bucket_demands,
    fleet_levels,
    level_demands,
    mixes_of,
    requests_of,
)
from planner.estimate.serving_fleet import FleetAsk
from planner.estimate.serving_tiers import ServingTier, blended, fleet_ask, fleet_demand, fleet_tier, tier_on
from planner.estimate.sources import serving_equations
from planner.scenario.schema import Scenario, ServingFleet
from planner.traffic.model import LoadLevels

Mixes = tuple[tuple[float, ...], ...]  # of each the part of the traffic's own requests of each bucket, the largest 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingQuestion:
    """One fleet, its model, and where it may run."""

    fleet: ServingFleet
    arch: Architecture
    requests: Requests  # by bucket
    scenario: Scenario
    catalog: Catalog
    recall: Recall = field(default_factory=Recall)  # what was answered of replicas
    involved: int | None = None  # of a replica at most, and then the best of each degree; None: the best of all
    more_mixes: Mixes = ()  # that replicas may serve besides those that every such fleet has (`optimize.class_mixes`)
    tiers: dict[tuple[str, str], tuple[Device, ServingTier]] = field(default_factory=dict, compare=False)

    @property
    def stored(self) -> str:
        """The format of the weights in the model's repository; "" 16 bits, or unknown."""
        model = self.fleet.model
        return stored_format(model.preset, model.config) if model is not None else ""

    @property
    def tier(self) -> str:
        """The tier that predicts: rule, analytic or measured."""
        return fleet_tier(self.fleet, self.arch)

    @property
    def estimator(self) -> str:
        """The tier in words."""
        if self.fleet.throughput_tokens_per_s_per_device is not None:
            return f"{self.tier} (given throughput)"
        return "rule (roofline T1)" if self.tier == "rule" else self.tier

    @property
    def ask(self) -> FleetAsk:
        """What is asked of every replica."""
        return fleet_ask(self.fleet)

    @property
    def blended(self) -> bool:
        """Whether columns are replicas at a mix of classes of requests, and targets are those of the mix."""
        return blended(self.fleet, self.arch)

    @property
    def mixes(self) -> NDArray[np.float64]:
        """Requests of each bucket in each mix that replicas may serve, as shares of the fleet's own, (mixes, b)."""
        return mixes_of(self.fleet.traffic, self.more_mixes) * np.asarray(self.fleet.traffic.share)

    @property
    def listed_mixes(self) -> int:
        """How many of them every such fleet has; those after them are `more_mixes`."""
        return len(self.mixes) - len(self.more_mixes)

    @property
    def boxes(self) -> NDArray[np.float64]:
        """Share of each mix that is of each bucket, or, where all are served together, of all of them: (mixes, ...)."""
        mixes = self.mixes if len(self.mixes) > 1 else self.mixes.sum(axis=1, keepdims=True)
        return np.asarray(mixes / mixes.sum(axis=1, keepdims=True))

    @property
    def demands_micro_per_s(self) -> tuple[int, ...]:
        """Peak request rate of each bucket, or of all where they are only served together.  [micro-requests/s]"""
        return self.together(bucket_demands(self.fleet))

    @property
    def level_demands(self) -> tuple[tuple[int, ...], ...]:
        """The same at every level of load; nothing where all replicas always run."""
        return tuple(self.together(each) for each in level_demands(self.fleet, self.levels))

    def together(self, each: tuple[int, ...]) -> tuple[int, ...]:
        """Rates of the buckets, or the sum where they are only served together."""
        return (sum(each),) if self.blended and len(self.mixes) == 1 else each

    @property
    def levels(self) -> LoadLevels | None:
        """Levels of load between which the fleet scales; None where all replicas always run."""
        return fleet_levels(self.fleet, self.scenario.horizon_s)

    def tier_on(self, site: Site, layout: str = "") -> ServingTier:
        """Constants and bands of the prediction on a site."""
        key = site.device.id, layout
        known = self.tiers.get(key)  # for hundreds of groups of machines, which have some dozens of devices
        if known is None or known[0] is not site.device:
            known = site.device, tier_on(self.fleet, self.arch, site.device, self.catalog, layout)
            self.tiers[key] = known
        return known[1]

    def machine(self, site: Site) -> Machine:
        """The machine that a replica sees on a site."""
        return serving_machine(site.device, site.shape, site.inter_node_bytes_per_s)

    def demand(self) -> dict[str, Any]:
        """What is asked for, in base units."""
        return fleet_demand(self.fleet)

    def equations(self) -> list[str]:
        """Ids of the equations behind the numbers."""
        given = self.fleet.throughput_tokens_per_s_per_device is not None
        return serving_equations(self.tier, given_throughput=given, users=bool(self.fleet.users))


def resolve_serving(
    fleet: ServingFleet, arch: Architecture, scenario: Scenario, catalog: Catalog, recall: Recall | None = None
) -> ServingQuestion:
    """The fleet with its defaults filled in; `recall` holds what was answered of replicas before.

    Parameters
    ----------
    fleet
        As the scenario says it.
    arch
        Its model.
    scenario
        Of which it is a part.
    catalog
        With what the scenario adds to it.
    recall
        Answers are taken from there and kept there; None: a new one.
    """
    requests, recall = requests_of(fleet.traffic, fleet.prefix_cached or 0.0), recall or Recall()
    return ServingQuestion(fleet=fleet, arch=arch, requests=requests, scenario=scenario, catalog=catalog, recall=recall)
