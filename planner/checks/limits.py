"""Joint limits of a plan document, by sweeping over the moments at which a workload starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from planner.carriers import dataclass
from planner.catalog.load import device_matches
from planner.catalog.model import Catalog, Offer
from planner.catalog.names import provider_matches, region_matches
from planner.checks.calendar import grid_of, held_by, owned_nodes, owned_window_s
from planner.checks.cells import energy_cells
from planner.checks.facts import OfferFacts, facts_of_row, jobs_of
from planner.checks.findings import Finding, cell_findings
from planner.estimate.market import METERED, OWN_CONTRACT, cap_name
from planner.scenario.hardware_keys import RENTED
from planner.scenario.schema import Quota, Scenario, ServingFleet, SiteLimit, TrainingJob
from planner.units import format_duration

if TYPE_CHECKING:
    from planner.plan.model.bought import Contract, SharedNodesRow
    from planner.plan.model.others import Limit as LimitRow
    from planner.plan.model.plan import Allocation, PlanDocument
    from planner.plan.model.rows import TrainingAllocation

UNKNOWN = 10**18  # more than any limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one chosen row holds, and when."""

    start_s: float
    end_s: float
    row: Allocation | Contract | SharedNodesRow
    facts: OfferFacts
    shapes: int
    quotas: frozenset[int]  # of the scenario, that count it
    workload: str = ""
    bought: bool = False  # under a contract or for whole periods: counts against quotas and spend alone

    def active(self, moment_s: float) -> bool:
        """Whether it holds its shapes at a moment."""
        return self.start_s <= moment_s < self.end_s


class Limit(NamedTuple):
    """A limit of the scenario, and what the plan takes of it, in whole units: micro-dollars, milliwatts, milligrams."""

    name: str
    label: str
    unit: str  # as it is told
    divide: float  # units of the limit in one unit that is told
    bound: int
    amounts: Sequence[tuple[float, int]]  # of each chosen way: what it takes, and on how many shapes
    slack: float = 0.0  # that rounding of single ways may amount to

    @property
    def used(self) -> float:
        """All of it."""
        return sum(amount for amount, _ in self.amounts)

    @property
    def binding(self) -> bool:
        """Whether one more shape of those that take from it would be too much."""
        left = self.bound - self.used
        return left <= 0 or any(left * max(shapes, 1) < amount for amount, shapes in self.amounts if amount > 0)

    def cells(self) -> LimitRow:
        """As it stands in the plan."""
        return {
            "name": self.name,
            "label": self.label,
            "unit": self.unit,
            "binding": self.binding,
            "bound": self.bound / self.divide,
            "used": self.used / self.divide,
        }

    def findings(self) -> Iterator[Finding]:
        """That it is exceeded."""
        if self.used - self.slack > self.bound:
            used, bound = (f"{number / self.divide:g}" for number in (self.used, self.bound))
            yield Finding("limit-exceeded", f"{self.name}: {used} {self.unit} used, {bound} allowed")


def limit_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """Every joint limit that the chosen rows exceed.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with the scenario's discounts and contracts.
    """
    whole = list(_holdings(document, scenario, catalog, once=True))
    holdings = [*_holdings(document, scenario, catalog), *_bought(document, scenario, catalog)]
    yield from _providers(whole, scenario)
    yield from _windows(holdings, scenario)
    for limit in _of_plan(document, whole, scenario, catalog):
        yield from limit.findings()
    for moment in sorted({holding.start_s for holding in holdings}):
        active = [holding for holding in holdings if holding.active(moment)]
        for limit in (*_at_moment(active, scenario), *_of_offers(active, _capped(active))):
            yield from limit.findings()


def limit_table_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """The table of limits: each of the scenario once at every moment, with a calendar where it is fullest.

    Parameters
    ----------
    document
        A plan with rows.
    scenario
        The one that the plan carries, read.
    catalog
        The catalog with the scenario's discounts and contracts.
    """
    of_plan = _of_plan(document, list(_holdings(document, scenario, catalog, once=True)), scenario, catalog)
    holdings = [*_holdings(document, scenario, catalog), *_bought(document, scenario, catalog)]
    moments = _moments(scenario)
    every = [
        list(_at_moment([holding for holding in holdings if holding.active(moment)], scenario, moment))
        for moment in moments
    ]
    for limits, moment in zip(every, moments):  # with a calendar period by period, else where they are used
        active = [holding for holding in holdings if holding.active(moment)]
        limits += _of_offers(active, _capped(holdings if scenario.scheduled else active))
    if scenario.scheduled:
        own = _of_contracts(document, scenario, catalog, len(moments))
        every = [[*limits, *more] for limits, more in zip(every, own)]
    wanted = {(limit.name, limit.label): [limit] for limit in of_plan}
    for at, limits in enumerate(every):
        for limit in limits:
            apart = f"@{at}" if len(moments) > 1 and not scenario.scheduled else ""
            wanted.setdefault((limit.name + apart, limit.label), []).append(limit)
    left = dict(wanted)
    for stated in document["limits"]:
        name, label, which = _place(stated, scenario)
        found = left.pop((name, label), None)
        if found is None or (which or 0) >= len(found):
            yield Finding("wrong-limit", f"{stated['name']}: the scenario has no such limit, {stated['label']!r}")
            continue
        # nothing takes from a limit without a time, so that all times of it are alike but for what is not there yet
        limit = found[which] if which is not None else max(found, key=lambda one: (one.used, one.bound))
        cells = limit.cells()
        cells |= {"name": stated["name"], "label": stated["label"]}
        slack = limit.slack / limit.divide
        if slack and abs(stated["used"] - cells["used"]) <= slack:  # each way is rounded by itself
            cells |= {"used": stated["used"], "binding": stated["binding"]}
        yield from cell_findings("wrong-limit", stated["name"], stated, cells)
        if any(other.used * limit.bound > limit.used * other.bound for other in found if limit.bound):
            yield Finding("wrong-limit", f"{stated['name']}: it is fuller at another time")
    for name, label in left:
        yield Finding("wrong-limit", f"{name}: {label} is left out of the limits")


def _place(stated: LimitRow, scenario: Scenario) -> tuple[str, str, int | None]:
    """Name and label without the time, and which of several times is meant; None: whichever is fullest."""
    name, label = str(stated["name"]), str(stated["label"])
    base, at, number = name.partition("@")
    if not at or not scenario.scheduled or not number.isdecimal():
        return name, label, None
    hours = int(number) * scenario.period_s
    when = f", from {format_duration(hours)} on" if int(number) else ", at first"
    return base, label.removesuffix(when) if label.endswith(when) else f"{label}?", int(number)


def _moments(scenario: Scenario) -> list[float]:
    """When the table of limits looks: at every period, else when a set of workloads runs that is part of no other."""
    grid = grid_of(scenario)
    if grid is not None:
        return grid.edges_s()[:-1]
    spans = [(job.start_s, job.start_s + job.deadline_s) for job in scenario.training]
    spans += [(0.0, scenario.horizon_s) for _ in scenario.serving]
    sets: dict[frozenset[int], float] = {}
    for moment in sorted({begin for begin, _ in spans}):
        running = frozenset(place for place, (begin, end) in enumerate(spans) if begin <= moment < end)
        sets.setdefault(running, moment)
    return [moment for running, moment in sets.items() if running and not any(running < other for other in sets)]


def _of_contracts(document: PlanDocument, scenario: Scenario, catalog: Catalog, periods: int) -> list[list[Limit]]:
    """How many nodes of each of the scenario's own contracts are held in each period."""
    every: list[list[Limit]] = [[] for _ in range(periods)]
    for index, contract in enumerate(scenario.hardware.contracts):
        mine = [one.id for one in catalog.offers if one.id.startswith(f"{OWN_CONTRACT}{index}:")]
        for offer in mine if contract.max_shapes is not None else ():
            bought = [one for one in document["contracts"] if one["offer"] == offer]
            name, label = f"hardware.contracts[{index}].max_shapes", f"at most {contract.max_shapes} shapes of {offer}"
            for period, limits in enumerate(every):
                held = [one["count"] for one in bought if one["first_period"] <= period < one["end_period"]]
                pairs = [(count, count) for count in held]
                limits.append(Limit(name, label, "shapes", 1.0, contract.max_shapes or 0, pairs))
    return every


def _holdings(document: PlanDocument, scenario: Scenario, catalog: Catalog, *, once: bool = False) -> Iterator[Holding]:
    """What every row holds and when; `once`: rows of jobs that pause as one, for what is summed over the plan."""
    asked = {workload.name: workload for workload in scenario.workloads}
    for workload in document["workloads"]:
        for row in workload["allocations"]:
            facts = facts_of_row(row, scenario, catalog)
            if facts is None or workload["name"] not in asked or "shared" in row:
                continue
            made = partial(Holding, row=row, facts=facts, quotas=_quotas_of(facts, scenario), workload=workload["name"])
            if once:
                yield made(start_s=0.0, end_s=scenario.horizon_s, shapes=int(row["count"]))
            else:
                yield from _held(asked[workload["name"]], row, facts, scenario, made)
    for shared in document.get("shared_nodes", []):  # what stands there takes nothing, the nodes do
        facts = facts_of_row(shared, scenario, catalog)
        if facts is not None:
            yield Holding(
                start_s=0.0, end_s=scenario.horizon_s, row=shared, facts=facts, shapes=shared["count"],
                quotas=_quotas_of(facts, scenario),
            )  # fmt: skip


def _held(
    asked: TrainingJob | ServingFleet,
    row: Allocation,
    facts: OfferFacts,
    scenario: Scenario,
    made: Callable[..., Holding],
) -> Iterator[Holding]:
    """The whole window of a workload; with a calendar the periods that the row touches."""
    grid, shapes = grid_of(scenario), int(row["count"])
    if grid is not None:
        edges, per_job = grid.edges_s(), shapes // max(jobs_of(row), 1)
        for held in held_by(asked, row, facts, scenario):
            count = per_job * held.jobs if isinstance(asked, TrainingJob) else shapes
            yield made(start_s=edges[held.first], end_s=edges[held.stop], shapes=count)
    elif isinstance(asked, TrainingJob):
        yield made(start_s=asked.start_s, end_s=asked.start_s + asked.deadline_s, shapes=shapes)
    else:
        yield made(start_s=0.0, end_s=scenario.horizon_s, shapes=shapes)


def _bought(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Holding]:
    """What is bought, in the periods that it supplies."""
    grid, offers = grid_of(scenario), {offer.id: offer for offer in catalog.offers}
    for contract in document["contracts"] if grid else ():
        offer = offers.get(contract["offer"])
        if offer is not None and grid is not None:
            shape, edges = catalog.shapes[offer.shape], grid.edges_s()
            facts = OfferFacts(offer, shape, catalog.devices[shape.device], None, None)
            begin, end = (
                edges[max(0, min(period, grid.periods))]
                for period in (contract["first_period"], contract["end_period"])
            )
            yield Holding(
                start_s=begin, end_s=end, row=contract, facts=facts, shapes=contract["count"],
                quotas=_quotas_of(facts, scenario), bought=True,
            )  # fmt: skip


def _providers(holdings: Sequence[Holding], scenario: Scenario) -> Iterator[Finding]:
    most = scenario.limits.max_providers
    providers = {holding.facts.offer.provider for holding in holdings}
    if most is not None and len(providers) > most:
        yield Finding("limit-exceeded", f"limits.max_providers: {len(providers)} providers used, {most} allowed")


def _windows(holdings: Sequence[Holding], scenario: Scenario) -> Iterator[Finding]:
    """What is owned is there from one date to another."""
    for index, owned in enumerate(scenario.hardware.owned):
        begin, end = owned_window_s(scenario, owned)
        mine = [holding for holding in holdings if holding.facts.owned == index]
        dated = owned.from_date or owned.until_date
        if dated and any(holding.start_s < begin - 1e-6 or holding.end_s > end + 1e-6 for holding in mine):
            yield Finding("limit-exceeded", f"hardware.owned[{index}]: used outside the time that it is there")


def _of_plan(
    document: PlanDocument, holdings: Sequence[Holding], scenario: Scenario, catalog: Catalog
) -> Iterator[Limit]:
    """Limits on the plan as a whole: money and carbon."""
    limits = scenario.limits
    if limits.budget_microusd is not None:
        spent = [(holding.row["cost_microusd"], holding.shapes) for holding in _ways(holdings)]
        bought = [(one["cost_microusd"], one.get("count", 1)) for one in document["contracts"]]
        bought += [(copy["cost_microusd"], 1) for copy in document["copies"]]
        yield Limit("limits.budget", "budget", "USD", 1e6, limits.budget_microusd, [*spent, *bought])
    sites = [(f"limits.sites[{i}].carbon", f"carbon at {_named(site)}", site.carbon_g, _at(site, holdings))
             for i, site in enumerate(limits.sites)]  # fmt: skip
    for name, label, bound_g, here in (("limits.carbon", "carbon", limits.carbon_g, holdings), *sites):
        if bound_g is not None:
            # a unit is rounded to a whole milligram once, and a row has at most as many units as shapes
            parts = [
                (sum(_carbon_mg(one, catalog) for one in way), max(one.shapes for one in way)) for way in _of_ways(here)
            ]
            slack = sum(holding.shapes for holding in here) * 0.5
            yield Limit(name, label, "kg", 1e6, math.floor(bound_g * 1000), parts, slack)


def _ways(holdings: Sequence[Holding]) -> Iterator[Holding]:
    """Rows of one mix or of one switch as one: they are chosen together."""
    mixes: dict[str, list[Holding]] = {}
    for holding in holdings:
        name = _mix_of(holding) or _switch_of(holding)
        if name is None:
            yield holding
        else:
            mixes.setdefault(name, []).append(holding)
    for parts in mixes.values():
        cost = sum(part.row["cost_microusd"] for part in parts)
        row: TrainingAllocation = {**cast("TrainingAllocation", parts[0].row), "cost_microusd": cost}
        shapes = [part.shapes for part in parts]
        yield replace(parts[0], row=row, shapes=sum(shapes) if _mix_of(parts[0]) else max(shapes))


def _mix_of(holding: Holding) -> str | None:
    row = cast("TrainingAllocation", holding.row)
    return row["mix"]["name"] if "mix" in row else None


def _of_ways(holdings: Sequence[Holding]) -> list[list[Holding]]:
    """Rows by the way that they are of: parts of a switch together, all others apart."""
    found: dict[object, list[Holding]] = {}
    for number, holding in enumerate(holdings):
        found.setdefault(_switch_of(holding) or number, []).append(holding)
    return list(found.values())


def _switch_of(holding: Holding) -> str | None:
    """The switch that a row is a part of, which no other workload has by that name."""
    row = cast("TrainingAllocation", holding.row)
    return f"{holding.workload}: {row['switch']['name']}" if "switch" in row else None


def _named(site: SiteLimit) -> str:
    return " ".join(filter(None, (site.provider, site.region)))


def _at(site: SiteLimit, holdings: Sequence[Holding]) -> list[Holding]:
    """What stands where a limit of a site holds."""
    return [
        holding
        for holding in holdings
        if (site.provider is None or provider_matches(holding.facts.offer.provider, site.provider))
        and (site.region is None or region_matches(holding.facts.offer, site.region))
    ]


def _carbon_mg(holding: Holding, catalog: Catalog) -> float:
    carbon_kg = energy_cells(catalog, holding.facts, holding.shapes, cast("Allocation", holding.row)["hours"])[
        "carbon_kg"
    ]
    return UNKNOWN if carbon_kg is None else carbon_kg * 1e6  # unknown may not be used under a limit


def _at_moment(active: Sequence[Holding], scenario: Scenario, moment_s: float | None = None) -> Iterator[Limit]:
    """Limits that hold at every moment, with what runs or is bought at one.

    `moment_s` is given where a limit on what is owned is to be nothing while it is not there.
    """
    limits, hardware = scenario.limits, scenario.hardware
    running = [holding for holding in active if not holding.bought]
    if (most := limits.max_devices) is not None:
        yield Limit("limits.max_devices", f"at most {most} devices", "devices", 1.0, most, _sums(running, _devices))
    if limits.power_w is not None:
        bound = math.floor(limits.power_w * 1000)
        yield Limit("limits.power", "power", "W", 1e3, bound, _sums(running, _milliwatts))
    for index, site in enumerate(limits.sites):
        if site.power_w is not None:
            name, bound = f"limits.sites[{index}].power", math.floor(site.power_w * 1000)
            drawn = _sums(_at(site, running), _milliwatts)
            yield Limit(name, f"power at {_named(site)}", "W", 1e3, bound, drawn)
    if limits.spend_microusd_per_hour is not None:
        bound = limits.spend_microusd_per_hour
        yield Limit("limits.spend", "spend per hour", "USD/h", 1e6, bound, _sums(active, _spend))
    for index, quota in enumerate(hardware.quotas):
        mine = [holding for holding in active if index in holding.quotas]
        scope = " ".join(filter(None, (quota.provider, quota.device, quota.region, quota.price_model))) or "all"
        both = (("devices", quota.max_devices, _devices), ("shapes", quota.max_shapes, _shapes))
        for noun, bound_or_none, amount in both:
            if bound_or_none is not None:
                label = f"at most {bound_or_none} {noun} of {scope}"
                unit = "shapes" if "shapes" in label else "devices"
                yield Limit(f"hardware.quotas[{index}]", label, unit, 1.0, bound_or_none, _sums(mine, amount))
    for index, owned in enumerate(hardware.owned):
        mine = [holding for holding in active if holding.facts.owned == index]
        label, bound = f"{owned.count} owned {owned.shape}", owned.count
        if moment_s is not None and scenario.scheduled:
            until = min(moment_s + scenario.period_s, scenario.horizon_s)
            (bound,) = owned_nodes(scenario, owned, (moment_s, until))
        yield Limit(f"hardware.owned[{index}]", label, "shapes", 1.0, bound, _sums(mine, _shapes))


def _capped(holdings: Sequence[Holding]) -> list[Offer]:
    """Metered offers in use that are sold up to so many shapes."""
    offers = {holding.facts.offer.id: holding.facts.offer for holding in holdings}
    return [one for _, one in sorted(offers.items()) if one.max_shapes is not None and one.price_model in METERED]


def _of_offers(active: Sequence[Holding], offers: Sequence[Offer]) -> Iterator[Limit]:
    """What is held of each of some offers at a moment, by all workloads together."""
    for offer in offers:
        mine = [holding for holding in active if holding.facts.offer.id == offer.id]
        label = f"at most {offer.max_shapes} shapes of {offer.id}"
        yield Limit(cap_name(offer), label, "shapes", 1.0, offer.max_shapes or 0, _sums(mine, _shapes))


def _sums(holdings: Sequence[Holding], amount: Callable[[Holding], int]) -> list[tuple[int, int]]:
    """What each way takes, and on how many shapes: a mix with all groups, a switch with its larger part."""
    mixes: dict[str, tuple[int, int]] = {}
    switches: dict[str, tuple[int, int]] = {}
    parts: list[tuple[int, int]] = []
    for holding in holdings:
        mine = amount(holding), holding.shapes
        name = _mix_of(holding)
        if name is not None:
            before = mixes.get(name, (0, 0))
            mixes[name] = before[0] + mine[0], before[1] + mine[1]
        elif (name := _switch_of(holding)) is not None:
            switches[name] = max(switches.get(name, mine), mine)
        else:
            parts.append(mine)
    return [*parts, *mixes.values(), *switches.values()]


def _shapes(holding: Holding) -> int:
    return holding.shapes


def _devices(holding: Holding) -> int:
    return holding.shapes * holding.facts.shape.devices


def _spend(holding: Holding) -> int:
    return holding.shapes * holding.facts.offer.price_microusd_per_hour


def _milliwatts(holding: Holding) -> int:
    if holding.facts.power_w is None:
        return UNKNOWN  # unknown power may not be used under a power limit
    return math.ceil(holding.facts.power_w * 1000) * holding.shapes


def _quotas_of(facts: OfferFacts, scenario: Scenario) -> frozenset[int]:
    """Quotas that count an offer."""
    return frozenset(index for index, quota in enumerate(scenario.hardware.quotas) if _counts(quota, facts))


def _counts(quota: Quota, facts: OfferFacts) -> bool:
    """Quotas count what is rented, contracts as they are bought, never what is owned."""
    offer: Offer = facts.offer
    asked = (
        facts.owned is None,
        quota.provider is None or provider_matches(offer.provider, quota.provider),
        quota.device is None or device_matches(facts.device, quota.device),
        quota.price_model is None or offer.price_model == quota.price_model,
        quota.region is None or region_matches(offer, quota.region),
    )
    return all(asked) and offer.price_model in RENTED
