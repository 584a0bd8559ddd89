"""Joint limits of a plan document, by sweeping over the moments at which a workload starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from planner.catalog.load import device_matches
from planner.catalog.model import Catalog, Offer
from planner.catalog.regions import region_matches
from planner.plan.checks.calendar import grid_of, held_by
from planner.plan.checks.cells import energy_cells
from planner.plan.checks.dates import owned_window_s
from planner.plan.checks.facts import OfferFacts, facts_of_row
from planner.plan.checks.findings import Finding
from planner.scenario.schema import Quota, Scenario, ServingFleet, SiteLimit, TrainingJob

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one chosen row holds, and when."""

    start_s: float
    end_s: float
    row: Document
    facts: OfferFacts
    shapes: int
    bought: bool = False  # under a contract or for whole periods: counts against quotas and spend alone

    def active(self, moment_s: float) -> bool:
        """Whether it holds its shapes at a moment."""
        return self.start_s <= moment_s < self.end_s


def limit_findings(document: Document, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Every joint limit that the chosen rows exceed."""
    yield from _whole_plan(document, list(_holdings(document, scenario, catalog, once=True)), scenario, catalog)
    holdings = [*_holdings(document, scenario, catalog), *_bought(document, scenario, catalog)]
    for moment in sorted({holding.start_s for holding in holdings}):
        active = [holding for holding in holdings if holding.active(moment)]
        yield from _peak(active, scenario)


def _holdings(document: Document, scenario: Scenario, catalog: Catalog, *, once: bool = False) -> Iterator[Holding]:
    """What every row holds and when; `once`: rows of jobs that pause as one, for what is summed over the plan."""
    asked = {workload.name: workload for workload in scenario.workloads}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            facts = facts_of_row(row, scenario, catalog)
            if facts is None or workload["name"] not in asked:
                continue
            if once:
                end_s, shapes = scenario.horizon_s, int(row["count"])
                yield Holding(start_s=0.0, end_s=end_s, row=row, facts=facts, shapes=shapes)
            else:
                yield from _held(asked[workload["name"]], row, facts, scenario)


def _held(asked: TrainingJob | ServingFleet, row: Document, facts: OfferFacts, scenario: Scenario) -> Iterator[Holding]:
    """The whole window of a workload; with a calendar the periods that the row touches."""
    grid, shapes = grid_of(scenario), int(row["count"])
    if grid is not None:
        edges, per_job = grid.edges_s(), shapes // max(row.get("jobs", 1), 1)
        for held in held_by(asked, row, facts, scenario):
            count = per_job * held.jobs if isinstance(asked, TrainingJob) else shapes
            yield Holding(start_s=edges[held.first], end_s=edges[held.stop], row=row, facts=facts, shapes=count)
    elif isinstance(asked, TrainingJob):
        yield Holding(
            start_s=asked.start_s, end_s=asked.start_s + asked.deadline_s, row=row, facts=facts, shapes=shapes
        )
    else:
        yield Holding(start_s=0.0, end_s=scenario.horizon_s, row=row, facts=facts, shapes=shapes)


def _bought(document: Document, scenario: Scenario, catalog: Catalog) -> Iterator[Holding]:
    """What is bought, in the periods that it supplies."""
    grid, offers = grid_of(scenario), {offer.id: offer for offer in catalog.offers}
    for contract in document["contracts"] if grid else ():
        offer = offers.get(contract["offer"])
        if offer is not None and grid is not None:
            shape, edges = catalog.shapes[offer.shape], grid.edges_s()
            facts = OfferFacts(offer, shape, catalog.devices[shape.device], None, None)
            begin, end = (edges[max(0, min(contract[key], grid.periods))] for key in ("first_period", "end_period"))
            yield Holding(start_s=begin, end_s=end, row=contract, facts=facts, shapes=contract["count"], bought=True)


def _whole_plan(document: Document, holdings: list[Holding], scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    limits = scenario.limits
    if limits.budget_microusd is not None:
        bought = (*document["contracts"], *document["copies"])
        spent = sum(row["cost_microusd"] for row in (*(holding.row for holding in holdings), *bought))
        yield from _over("limits.budget", spent, limits.budget_microusd, "micro-dollars")
    if limits.max_providers is not None:
        providers = {holding.facts.offer.provider for holding in holdings}
        yield from _over("limits.max_providers", len(providers), limits.max_providers, "providers")
    sites = [(f"limits.sites[{i}].carbon", site.carbon_g, _at(site, holdings)) for i, site in enumerate(limits.sites)]
    for name, bound, here in (("limits.carbon", limits.carbon_g, holdings), *sites):
        if bound is not None:
            carbon_g = math.fsum(_carbon_g(holding, catalog) for holding in here)
            # a unit is rounded to a whole milligram once, and a row has at most as many units as shapes
            slack_g = sum(_shapes(holding) for holding in here) * 0.5e-3
            yield from _over(name, carbon_g - slack_g, bound, "g")


def _at(site: SiteLimit, holdings: list[Holding]) -> list[Holding]:
    """What stands where a limit of a site holds."""
    return [
        holding
        for holding in holdings
        if (site.provider is None or fnmatchcase(holding.facts.offer.provider, site.provider))
        and (site.region is None or region_matches(holding.facts.offer, site.region))
    ]


def _carbon_g(holding: Holding, catalog: Catalog) -> float:
    carbon_kg = energy_cells(catalog, holding.facts, _shapes(holding), holding.row["hours"])["carbon_kg"]
    return math.inf if carbon_kg is None else float(carbon_kg) * 1000.0  # unknown may not be used under a limit


def _peak(active: list[Holding], scenario: Scenario) -> Iterator[Finding]:
    limits, hardware = scenario.limits, scenario.hardware
    running = [holding for holding in active if not holding.bought]
    if limits.max_devices is not None:
        yield from _over("limits.max_devices", _sum(running, _devices), limits.max_devices, "devices")
    if limits.power_w is not None:
        yield from _over("limits.power", _sum(running, _power), Fraction(limits.power_w), "W")
    for index, site in enumerate(limits.sites):
        if site.power_w is not None:
            drawn = _sum(_at(site, running), _power)
            yield from _over(f"limits.sites[{index}].power", drawn, Fraction(site.power_w), "W")
    if limits.spend_microusd_per_hour is not None:
        yield from _over("limits.spend", _sum(active, _spend), limits.spend_microusd_per_hour, "micro-dollars/h")
    for index, quota in enumerate(hardware.quotas):
        mine = [holding for holding in active if _counts(quota, holding.facts)]
        if quota.max_devices is not None:
            yield from _over(f"hardware.quotas[{index}]", _sum(mine, _devices), quota.max_devices, "devices")
        if quota.max_shapes is not None:
            yield from _over(f"hardware.quotas[{index}]", _sum(mine, _shapes), quota.max_shapes, "shapes")
    for index, owned in enumerate(hardware.owned):
        mine = [holding for holding in active if holding.facts.owned == index]
        yield from _over(f"hardware.owned[{index}]", _sum(mine, _shapes), owned.count, "shapes")
        begin, end = owned_window_s(scenario, owned)
        dated = owned.from_date or owned.until_date
        if dated and any(holding.start_s < begin - 1e-6 or holding.end_s > end + 1e-6 for holding in mine):
            yield Finding("limit-exceeded", f"hardware.owned[{index}]: used outside the time that it is there")


def _sum(holdings: list[Holding], amount: Callable[[Holding], int | Fraction]) -> int | Fraction:
    return sum((amount(holding) for holding in holdings), start=Fraction(0))


def _shapes(holding: Holding) -> int:
    return holding.shapes


def _devices(holding: Holding) -> int:
    return holding.shapes * holding.facts.shape.devices


def _spend(holding: Holding) -> int:
    return holding.shapes * holding.facts.offer.price_microusd_per_hour


def _power(holding: Holding) -> Fraction:
    device = holding.facts.device
    if device.tdp_w is None:
        return Fraction(10**18)  # unknown power may not be used under a power limit
    return Fraction(device.tdp_w) * Fraction(holding.facts.shape.compute_share) * _devices(holding)


def _counts(quota: Quota, facts: OfferFacts) -> bool:
    """Quotas count what is rented by the hour, contracts where their kind is named, never what is owned."""
    offer: Offer = facts.offer
    asked = (
        facts.owned is None,
        quota.provider is None or fnmatchcase(offer.provider, quota.provider),
        quota.device is None or device_matches(facts.device, quota.device),
        quota.price_model is None or offer.price_model == quota.price_model,
        quota.region is None or region_matches(offer, quota.region),
    )
    return all(asked) and (offer.price_model in ("on_demand", "spot") or offer.price_model == quota.price_model)


def _over(name: str, used: float | Fraction, bound: float | Fraction, unit: str) -> Iterator[Finding]:
    if used > bound:
        yield Finding("limit-exceeded", f"{name}: {float(used):g} {unit} used, {float(bound):g} allowed")
