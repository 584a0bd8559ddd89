"""Columns of a fleet whose rates are given: one a line of its own table, no model, no catalog, no physics.

The table of rates says what one unit of each offer serves of each bucket within the user's targets,
and what it costs an hour. A unit is one replica on one shape, which counts as one device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.ledger import Ledger
from planner.candidates.money import DEAREST_MICROUSD, cost_microusd
from planner.candidates.offers import ShapeCaps, Site, names_on
from planner.candidates.serving import MICRO, ServingQuestion, ServingTable
from planner.candidates.serving_units import NEVER
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.estimate.given import given_offers, known
from planner.estimate.resolve_serving import bucket_demands, requests_of
from planner.scenario.schema import Scenario, ServingFleet


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesQuestion(ServingQuestion):
    """One fleet whose rates are given."""

    @property
    def tier(self) -> str:
        """The rates are the user's own."""
        return "measured"

    @property
    def estimator(self) -> str:
        """The tier in words."""
        return "measured (rates given)"

    def demand(self) -> dict[str, Any]:
        """What is asked for; lengths are unknown where buckets are mere names."""
        found: dict[str, Any] = known(ServingQuestion.demand(self))
        return found

    def equations(self) -> list[str]:
        """None: nothing is predicted."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RatesTable(ServingTable):
    """The columns of such a fleet: row i adds one shape of `sites[i]`, which is one replica."""

    def layout_row(self, row: int) -> dict[str, int]:
        """A replica is not split."""
        return {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1}

    def devices_per_replica(self, row: int) -> int:
        """One, by convention."""
        return 1

    def memory_row(self, row: int) -> tuple[dict[str, float], float]:
        """Nothing is known of memory."""
        return {}, 0.0


def resolve_rates(fleet: ServingFleet, arch: Architecture, scenario: Scenario, catalog: Catalog) -> RatesQuestion:
    """The fleet with its defaults filled in.

    Parameters
    ----------
    fleet
        Its rates are given.
    arch
        Its model; `NO_MODEL` where it names none.
    scenario
        Of which it is a part.
    catalog
        With what the scenario adds to it, the offers of the rates among it.
    """
    requests = requests_of(fleet.traffic, fleet.prefix_cached or 0.0)
    return RatesQuestion(fleet=fleet, arch=arch, requests=requests, scenario=scenario, catalog=catalog)


def rates_table(question: RatesQuestion, ledger: Ledger) -> RatesTable:
    """The columns of one fleet, in the order of its table.

    What may be planned of an offer is its rate times the target load, rounded down.
    """
    fleet, rates = question.fleet, question.fleet.rates
    assert rates is not None
    offers = [one for one in given_offers(question.scenario) if one.fleet == fleet.name]
    ledger.offers_seen += len(offers)
    sites = [Site(offer=one.offer, shape=one.shape, device=one.device) for one in offers]
    each = np.asarray(rates.max_requests_per_s, dtype=np.float64).reshape(len(sites), -1)
    planned = np.floor(each * fleet.target_load * MICRO + 1e-6).astype(np.int64)
    usable = [row for row, site in enumerate(sites) if _usable(question, site, planned[row], ledger)]
    hours = question.scenario.horizon_s / 3600.0
    sites, each, planned = [sites[row] for row in usable], each[usable], planned[usable]
    demands = bucket_demands(fleet)
    needed, most = _units_needed(fleet, demands, planned)
    caps = ShapeCaps(question.scenario, one_job=False)
    allowed = np.array([max(caps.of(site), 1) for site in sites], dtype=np.int64)
    ones = np.ones(len(sites), dtype=np.int64)
    return RatesTable(
        sites=tuple(sites),
        evaluated=None,
        places=np.arange(len(sites)),
        role=np.zeros(len(sites), dtype=np.int64),
        nodes=ones,
        replicas=ones,
        bucket_requests_per_s=each,
        full_requests_per_s=each,
        share_kept=np.ones(len(sites)),
        bucket_capacity_micro_per_s=planned,
        requests_per_s=_on_the_mix(each, demands),
        cost_microusd=tuple(cost_microusd(1, site.offer.price_microusd_per_hour, hours) for site in sites),
        needed_units=needed,
        max_units=np.minimum(most, allowed),
        unit_caps=allowed,
        demands_micro_per_s=demands,
        horizon_hours=hours,
    )


def _usable(question: RatesQuestion, site: Site, planned: NDArray[np.int64], ledger: Ledger) -> bool:
    limits = question.scenario.limits
    metered = limits.power_w is not None or limits.carbon_g is not None or "carbon" in question.scenario.objective
    reason = "power-unknown" if metered else ""
    hours = question.scenario.horizon_s / 3600.0
    if not (planned > 0).any():
        reason = "too-slow"
    elif site.offer.price_microusd_per_hour * hours > DEAREST_MICROUSD:
        reason = "too-dear"
    if reason:
        ledger.drop(reason, "offers", nearest=site.offer.id, on=names_on([site]))
    return not reason


def _on_the_mix(each: NDArray[np.float64], demands: Sequence[int]) -> NDArray[np.float64]:
    """Rate on the fleet's own mix; 0 where a bucket cannot be served."""
    shares = np.asarray(demands, dtype=np.float64) / max(sum(demands), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        load = np.where(shares > 0, shares / each, 0.0).sum(axis=1)
        return np.where(np.isfinite(load) & (load > 0), 1.0 / load, 0.0)


def _units_needed(
    fleet: ServingFleet, demands: Sequence[int], planned: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Units of each row that carry the fleet alone (`NEVER` where they cannot), and the most that can help it."""
    loads = [
        [Fraction(demand, rate) if rate else None for demand, rate in zip(demands, rates) if demand]
        for rates in planned.tolist()
    ]
    least = max(fleet.min_replicas, 1)
    most = np.array(
        [max(math.ceil(sum(filter(None, load))) + fleet.spare_replicas, least) for load in loads], dtype=np.int64
    )
    return np.where([None not in load for load in loads], most, NEVER), most
