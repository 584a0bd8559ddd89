"""What a reader should know of the market, and of when things run.

Sellers that promise nothing, what nobody sells, what is nowhere; what a calendar takes for granted, and the facts
behind what is bought ahead.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast, get_args

from planner.candidates.offers import OWNED, models_sold, owned_key, quota_matches, site_at, usable_offers
from planner.candidates.placement import data_sets
from planner.candidates.search import Candidates
from planner.candidates.sellers import MARKETPLACE, is_asked
from planner.catalog.model import Catalog, Offer, Provenance, Transfer
from planner.catalog.names import device_matches, find_shape, region_matches
from planner.estimate.market import OWN_CONTRACT, idle_discounts, is_own_contract
from planner.optimize.class_mixes import able_to_mix
from planner.scenario.hardware_keys import COMMITMENT_HOURS, ContractModel
from planner.scenario.periods import TENTH, first_period
from planner.scenario.schema import HORIZON_S, MAX_PERIODS, Scenario
from planner.spelling import closest
from planner.units import counted, format_duration, format_money

if TYPE_CHECKING:
    from planner.plan.model.bought import BoughtParts
    from planner.plan.model.plan import Allocation, Workload
    from planner.plan.model.rows import TrainingAllocation


Place: TypeAlias = tuple[str, str, str]  # provider, region, device

SHOWN = 5  # grids by name
MIXES_SAVED = 0.08  # the most of eight fleets held against every mix of a grid: decision 0036
FAR_BELOW, FEWEST = 0.1, 4  # of the median of so many offers: an eighth of a price is one of a device, not of a node
PERIODS_H, FOLLOWING = (24.0, 168.0), 2  # that jobs may follow one another in, and from how many jobs on
OLD_RATE_DAYS = 90  # from which on a rate of a currency may well be another


def market_warnings(candidates: Candidates, workloads: Sequence[Workload], bought: Iterable[str]) -> Iterator[str]:
    """Marketplaces, devices on demand beyond what a seller of that kind has free, and what the market has not.

    Parameters
    ----------
    candidates
        The ways, with their scenario and catalog.
    workloads
        As they stand in the plan.
    bought
        Ids of the offers that are bought ahead.
    """
    catalog, scenario = candidates.catalog, candidates.scenario
    held: dict[Place, list[Held]] = defaultdict(list)
    granted = _granted(scenario, catalog)
    for workload in workloads:
        for row in workload["allocations"]:
            seller = catalog.providers.get(row["provider"])
            if seller is not None and seller.kind == MARKETPLACE:
                yield (
                    f"{row['provider']} is a marketplace: nobody promises that {row['offer']} is there, or stays; "
                    f"hardware.exclude: [{row['provider']}] leaves it out"
                )
            if row["price_model"] == "on_demand" and row["offer"] not in granted:
                held[row["provider"], row["region"], row["device"]] += _held(workload, row)
    yield from _beyond_stock(held, candidates)
    yield from _old_rates(scenario, catalog)
    yield from _unknown_grids(candidates)
    yield from _unknown_power(candidates)
    yield from _devices_alone(candidates, workloads)
    yield from _unsold(scenario, catalog)
    yield from _no_spot_share(scenario)
    yield from _terms_of_nothing(scenario)
    rented = {row["offer"] for workload in workloads for row in workload["allocations"]}
    yield from _owned_all_the_same(candidates, rented)
    for offer in filter(is_own_contract, catalog.offers):
        yield from _own_contract(offer, scenario, catalog, used=offer.id in rented.union(bought))
    yield from _idle_discounts(scenario, catalog)
    yield from _idle_shares(scenario, catalog)
    yield from _data_nowhere(scenario, catalog)


def _idle_discounts(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Discounts of the scenario that change no price that counts."""
    usable = usable_offers(scenario, catalog) if scenario.hardware.discounts else ()
    for index, elsewhere in idle_discounts(scenario, catalog, usable).items():
        why = "where it fits an earlier one counts" if elsewhere else "nothing that may be used fits it"
        yield f"hardware.discounts[{index}] changes no price: {why}"


def _idle_shares(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Shares of the peak that were measured on devices that may not be used."""
    shares = [(job.name, pattern) for job in scenario.training for pattern in job.mfu]
    if not shares:
        return
    shapes = {offer.shape for offer in usable_offers(scenario, catalog)}
    shapes |= {find_shape(catalog, owned.shape).id for owned in scenario.hardware.owned}
    devices = {catalog.shapes[shape].device for shape in shapes}
    for name, pattern in shares:
        if not any(device_matches(catalog.devices[device], pattern) for device in devices):
            yield f"training.{name}.mfu of {pattern} changes nothing: no such device may be used"


def _owned_all_the_same(candidates: Candidates, used: set[str]) -> Iterator[str]:
    """Machines of one's own that run where, or on what, nothing may be rented: they count whatever is filtered."""
    hardware = candidates.scenario.hardware
    sites = {site.owned: site for table in candidates.tables.values() for site in table.sites
             if site.offer.id in used}  # fmt: skip
    for index, site in sorted((index, site) for index, site in sites.items() if index is not None):
        place = hardware.owned[index].region or ""
        here = replace(site.offer, country=place if len(place) == 2 else "")
        kept = ["hardware.deny"] if any(device_matches(site.device, one) for one in hardware.deny) else []
        if place and not any(region_matches(here, pattern) for pattern in hardware.regions):
            kept.append("hardware.regions")
        if kept:
            yield (
                f"{owned_key(index)}: {hardware.owned[index].shape}{f' in {place}' if place else ''} is used all the "
                f"same: {' and '.join(kept)} {'say' if len(kept) > 1 else 'says'} what may be rented, and machines of "
                "your own always count; taken out of hardware.owned, they do not"
            )


def _unsold(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Price models that the scenario names and that nobody whom it allows sells its devices on."""
    named = scenario.hardware.pricing if "pricing" in scenario.hardware.model_fields_set else ()
    sold = models_sold(scenario, catalog) if named else frozenset[str]()
    for model in named if sold else ():
        if model not in sold:
            own = "; a price of your own: hardware.contracts" if model in get_args(ContractModel) else ""
            yield (
                f"hardware.pricing: nobody who is allowed sells the devices as {model}, so that it was not weighed; "
                f"they are sold as {', '.join(sorted(sold))}{own}"
            )


def _no_spot_share(scenario: Scenario) -> Iterator[str]:
    """Fleets that may stand on spot which nobody may sell, and of a scenario that names spot and trains nothing those
    that may not.
    """
    if "spot" not in scenario.hardware.pricing:
        for fleet in scenario.serving:
            if fleet.max_spot_share:
                yield (
                    f"{fleet.name}: max_spot_share ({fleet.max_spot_share:.4g}) does nothing while hardware.pricing "
                    "names no spot: add spot there, and hardware.spot: {interruptions: 0.05 /h}"
                )
    if "spot" in scenario.hardware.pricing and not scenario.training:
        for name in [fleet.name for fleet in scenario.serving if fleet.max_spot_share is None]:
            yield (
                f"{name} stands on no spot, which hardware.pricing names, without --set "
                f"serving.{name}.max_spot_share=0.5 (1 of a batch of requests): how much of it may be taken away"
            )


def _terms_of_nothing(scenario: Scenario) -> Iterator[str]:
    """Terms of spot and of queues beside prices that nobody chose, which are those on demand alone."""
    hardware = scenario.hardware
    if "pricing" in hardware.model_fields_set or any(fleet.max_spot_share for fleet in scenario.serving):
        return  # what was chosen is meant, and of shares on spot something is said already
    for model, stated in (("spot", hardware.spot), ("flex", hardware.flex)):
        if stated is not None:
            more = ", ".join((*hardware.pricing, model))
            yield (
                f"hardware.{model} does nothing while hardware.pricing, left out, is on demand alone: "
                f"--set 'hardware.pricing=[{more}]'"
            )


def _own_contract(offer: Offer, scenario: Scenario, catalog: Catalog, *, used: bool) -> Iterator[str]:
    """That a contract of the scenario is used though its seller is left out, or that a quota has no room for it."""
    hardware, site = scenario.hardware, site_at(offer, catalog)
    name = f"hardware.contracts[{offer.id.removeprefix(OWN_CONTRACT).partition(':')[0]}]"
    if used and not is_asked(offer.provider, hardware):
        yield (
            f"{name} is used though hardware.providers or exclude leaves {offer.provider} out: they say whom one rents "
            "from anew, and a contract of your own is there; taken out of hardware.contracts, it is not used"
        )
    if used:
        yield from _far_below(name, offer, catalog)
    sold = {one.region for one in catalog.offers if one.provider == offer.provider and not is_own_contract(one)}
    near = closest(offer.region, sorted(sold)) if offer.region not in sold else []
    if near:
        yield (
            f"{name}: no other offer of {offer.provider} is in {offer.region}, so that it counts as a place by itself, "
            f"apart from what is rented there; did you mean {' or '.join(near)}?"
        )
    for index, quota in enumerate(hardware.quotas):
        room = quota.max_shapes != 0 and (quota.max_devices is None or quota.max_devices >= site.shape.devices)
        if quota.price_model is None and quota_matches(site, quota) and not room:
            yield (
                f"{name} is left out: hardware.quotas[{index}] names no price model, counts contracts too, and has no "
                f"room for one {offer.shape} of {site.shape.devices:,} devices; with price_model: on_demand it counts "
                "what is on demand alone"
            )


def _far_below(name: str, offer: Offer, catalog: Catalog) -> Iterator[str]:
    """That a price of one's own is a small part of what the device costs elsewhere: of a device, or of another time?"""
    shape = catalog.shapes[offer.shape]
    listed = [
        one.price_microusd_per_hour / catalog.shapes[one.shape].devices
        for one in catalog.offers
        if one.price_model == "on_demand" and not one.quality and catalog.shapes[one.shape].device == shape.device
    ]
    mine = offer.price_microusd_per_hour / shape.devices
    if len(listed) >= FEWEST and mine < FAR_BELOW * median(listed):
        yield (
            f"{name}: {format_money(round(mine))} a device-hour is {mine / median(listed):.2g} of what {shape.device} "
            f"costs on demand in the median; the price is of one {offer.shape} with {counted(shape.devices, 'device')} "
            "for an hour"
        )


def _data_nowhere(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Data at a place that looks like one of the catalog and is none; what looks like none is a place of one's own."""
    places = {f"{offer.provider}/{offer.region}" for offer in catalog.offers}
    places |= {f"{OWNED}/{one.region or OWNED}" for one in scenario.hardware.owned}
    providers = {offer.provider for offer in catalog.offers}
    for wanted in data_sets(scenario):
        at, near = wanted.data.at, closest(wanted.data.at, sorted(places))
        if at not in places and (near or wanted.data.provider in providers):
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            yield (
                f"{', '.join(wanted.jobs)}: no machine of the catalog stands at {at}, where the data lie, so that they "
                f"are copied wherever they are read (training[].data.at){meant}"
            )


def _devices_alone(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Machines of which a limit of power or carbon counts the accelerators alone: nobody says what the rest draws."""
    counts = _counted(candidates.scenario)
    sites = {site.offer.id: site for table in candidates.tables.values() for site in table.sites}
    used = {row["offer"] for workload in workloads for row in workload["allocations"]}
    devices = sorted({sites[offer].device.id for offer in used & sites.keys() if sites[offer].drawn_w is None})
    if counts and devices:
        yield (
            f"{' and '.join(counts)} is that of accelerators as they are rated ({', '.join(devices)}), without hosts, "
            "fans and network, which may draw as much again (a DGX H100 is rated 10.2 kW, its eight H100 5.6): say "
            "what an owned machine draws by power: {watts: …} there, and lower the limit for others"
        )


def _counted(scenario: Scenario) -> list[str]:
    """Of power and carbon, what a limit or an objective counts."""
    places = [scenario.limits, *scenario.limits.sites]
    power, carbon = (any(getattr(one, name) is not None for one in places) for name in ("power_w", "carbon_g"))
    return ["power"] * power + ["carbon"] * (carbon or "carbon" in scenario.objective)


def _unknown_power(candidates: Candidates) -> Iterator[str]:
    """Devices that count for nothing under a limit of power or carbon, since nobody said what they draw."""
    ledgers, catalog = candidates.ledgers.values(), candidates.catalog
    counts = [drop.count for ledger in ledgers for drop in ledger if drop.reason == "power-unknown"]
    offered = {catalog.shapes[offer.shape].device for offer in usable_offers(candidates.scenario, catalog)}
    kept = {name: drop.reason for ledger in ledgers for name, drop in ledger.nearest_on.items()}
    devices = sorted(
        name for name in offered
        if catalog.devices[name].tdp_w is None and kept.get(name) in ("power-unknown", "not-run")  # a shape may not
    )  # fmt: skip
    left_out = max(counts, default=0)
    if left_out and devices:
        shown = ", ".join(devices[:SHOWN]) + f" and {len(devices) - SHOWN} more" * (len(devices) > SHOWN)
        what = " or ".join(_counted(candidates.scenario))
        yield (
            f"where {what} counts, {left_out:,} offer{'s' * (left_out > 1)} of devices whose power is unknown "
            f"{'are' if left_out > 1 else 'is'} left out ({shown}), and weighed without a limit or objective of "
            f"{what}; power: {{tdp: 300 W}} of a device in a catalog of your own says it, power: {{watts: …}} of "
            "machines that you own under hardware.owned"
        )


def _unknown_grids(candidates: Candidates) -> Iterator[str]:
    """Offers that count for nothing under a limit of carbon, since nobody said what their energy emits."""
    drops = [(drop.count, drop) for ledger in candidates.ledgers.values() for drop in ledger]
    left_out = max((count for count, drop in drops if drop.reason == "carbon-unknown"), default=0)
    if left_out:
        known = sorted(f"{provider} {region}" for provider, region in candidates.catalog.grids)
        shown = ", ".join(known[:SHOWN]) + f" and {len(known) - SHOWN} more" * (len(known) > SHOWN)
        yield (
            f"where carbon counts, {left_out:,} offer{'s' * (left_out > 1)} of regions whose grids are unknown "
            f"{'are' if left_out > 1 else 'is'} left out, and weighed without a limit or objective of carbon; known: "
            f"{shown or 'none'}; grids.csv of a catalog of your own adds more, and carbon "
            "under hardware.owned says it of machines that you own"
        )


def _old_rates(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Rates of currencies of long before the prices: a document depends on no day on which it is read."""
    rates = scenario.rates
    days = (date.fromisoformat(catalog.as_of) - date.fromisoformat(rates.as_of)).days if rates.dollars else 0
    if abs(days) > OLD_RATE_DAYS:
        when = f"{days} days before" if days > 0 else f"{-days} days after"
        mend = "write today's with its day in currency" if days > 0 else "--prices reads prices of that time"
        yield (
            f"the rate of {', '.join(rates.dollars)} to the dollar is of {rates.as_of}, {when} the catalog "
            f"({catalog.as_of}): {mend}"
        )


def _granted(scenario: Scenario, catalog: Catalog) -> set[str]:
    """Offers on demand that a quota of the scenario covers: the user knows what was granted."""
    if not scenario.hardware.quotas:
        return set()
    offers = [offer for offer in catalog.offers if offer.price_model == "on_demand"]
    return {
        offer.id
        for offer in offers
        if any(quota_matches(site_at(offer, catalog), quota) for quota in scenario.hardware.quotas)
    }


class Held(NamedTuple):
    """Devices that a workload holds for some hours; of a fleet for good."""

    workload: str
    devices: int
    start_h: float
    end_h: float


def _held(workload: Workload, row: Allocation) -> list[Held]:
    """When the devices of a row are held; those of each of several jobs apart."""
    if workload["kind"] == "serving":
        return [Held(workload["name"], row["devices"], 0.0, math.inf)]
    row = cast("TrainingAllocation", row)
    jobs = max(workload["count"], 1)
    each = -(-row["devices"] // jobs)
    if row["runs"]:
        return [Held(workload["name"], each * run["jobs"], run["start_hours"], run["end_hours"]) for run in row["runs"]]
    return [Held(workload["name"], each, row["start_hours"], row["start_hours"] + row["held_hours"])] * jobs


def _at_once(held: Sequence[Held]) -> int:
    """The most devices that are held at one time."""
    ends = [(one.end_h, -one.devices) for one in held]
    now = most = 0
    for _, change in sorted([*ends, *((one.start_h, one.devices) for one in held)]):  # what ends makes room first
        now += change
        most = max(most, now)
    return most


def _in_turn(held: Sequence[Held], device: str, stock: int, candidates: Candidates) -> str:
    """How to let jobs follow one another on no more than may be had; empty where they cannot, or do as they can.

    Tried is one order: the first deadline first, each job from the beginning of a period on.
    """
    scenario = candidates.scenario
    jobs = {job.name: job for job in scenario.training}
    mine = [one for one in held if one.workload in jobs]
    least = sum(one.devices for one in held if one.workload not in jobs) + max((one.devices for one in mine), default=0)
    whole = len(mine) == sum(max(jobs[name].count, 1) for name in {one.workload for one in mine})  # in one piece each
    if len(mine) < FOLLOWING or least > stock or not whole or any(job.after for job in jobs.values()):
        return ""
    if candidates.calendar is not None:
        period_h, begin = candidates.calendar.period_hours(0), ""
    else:
        period_h = next((each for each in PERIODS_H if scenario.horizon_s <= each * 3600.0 * MAX_PERIODS), 0.0)
        begin = f"periods: {format_duration(period_h * 3600.0)}, and "
    if not period_h:
        return ""
    clock_h = 0.0
    for one in sorted(mine, key=lambda one: jobs[one.workload].start_s + jobs[one.workload].deadline_s):
        job = jobs[one.workload]
        start_h = math.ceil(max(clock_h, job.start_s / 3600.0) / period_h - _SHORT) * period_h
        clock_h = start_h + one.end_h - one.start_h
        if not clock_h * 3600.0 <= job.start_s + job.deadline_s:
            return ""
    return (
        f"its {len(mine)} jobs can follow one another on {least:,} ({begin}hardware.quotas: "
        f"[{{device: {device}, max_devices: {stock}}}]); else "
    )


def _beyond_stock(held: Mapping[Place, Sequence[Held]], candidates: Candidates) -> Iterator[str]:
    for (provider, region, device), some in sorted(held.items()):
        devices, stock = _at_once(some), candidates.catalog.stock_of(provider, device)
        if stock is not None and devices > stock.devices:
            yield (
                f"{devices:,} {device} on demand at {provider} {region} are more than the {stock.devices:,} that one "
                f"may expect: {_in_turn(some, device, stock.devices, candidates)}reserve them, take a block, use two "
                f"regions, or state what was granted (hardware.quotas); of a {stock.kind} in one region, "
                f"{stock.provenance.source}"
            )


def waiting_jobs(candidates: Candidates) -> Iterator[str]:
    """Jobs that lose a tenth of their time until a period begins; a hundredth where nobody says how long one is."""
    scenario = candidates.scenario
    if candidates.calendar is None:
        return
    period_s, few = scenario.period_s, TENTH if scenario.periods_s else 100
    for job in scenario.training:
        waits_s = first_period(job.start_s, period_s) * period_s - job.start_s
        if few * waits_s > job.deadline_s:
            yield (
                f"{job.name}: it waits {format_duration(waits_s)} of its {format_duration(job.deadline_s)} until a "
                f"period of {format_duration(period_s)} begins; shorter ones (periods) begin nearer its start"
            )


_SHORT = 1e-9  # share of a period that rounding may take


def calendar_assumptions(candidates: Candidates, bought: BoughtParts, workloads: Sequence[Workload]) -> Iterator[str]:
    """What was not in the scenario and shaped the schedule, and what was not looked at; nothing without a calendar."""
    scenario, calendar = candidates.scenario, candidates.calendar
    if calendar is None:
        return
    if calendar.periods > 1:
        period = format_duration(calendar.period_s)
        yield (
            f"a job starts with a period of {period} and holds its machines in every period that it touches, "
            "its time margin included; fleets hold theirs all the time"
        )
    renewed_s = scenario.renewed_s
    if renewed_s and calendar.pools:
        yield (
            f"a commitment that ends may be followed by another at the same price: a period is {_term(renewed_s)}, the "
            "shortest term within the horizon (periods)"
        )
    if calendar.pools:
        yield "nodes on demand beside contracted ones are taken for whole periods"
    if any(contract["full_microusd"] != contract["prorated_microusd"] for contract in bought["contracts"]) and (
        "beyond_horizon" not in scenario.hardware.model_fields_set
    ):
        yield "fees of contracts that reach beyond the horizon count whole (hardware.beyond_horizon)"
    if bought["copies"]:
        yield (
            "a copy of data is kept from the first start to the last deadline of the jobs that read them, and is there "
            "when they start"
        )
    yield from _not_looked_at(candidates, workloads)


def _not_looked_at(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """What makes a plan cheaper without a calendar and is left out beside one, with what it may be worth."""
    for name in able_to_mix(candidates):
        yield (
            f"{name}: replicas for mixes of its classes of requests are not looked for beside contracts or periods; "
            f"without them they were worth up to {MIXES_SAVED:.0%} of a fleet"
        )
    held = {fleet.name for fleet in candidates.scenario.serving if fleet.availability is not None}
    for workload in workloads:
        fleet = workload["fleet"] if workload["kind"] == "serving" and workload["name"] in held else None
        if fleet and fleet["spare_replicas"] > 1:
            yield (
                f"{workload['name']}: fewer, larger replicas, of which fewer are spare, are not looked for beside "
                "contracts or periods; they may save a replica"
            )


def bought_warnings(bought: BoughtParts) -> Iterator[str]:
    """Prices of contracts that were not seen, or have no date."""
    for contract in bought["contracts"]:
        if contract["price_status"] == "date-unknown":
            yield f"{contract['offer']}: the price has no date of its own (transcribed {contract['price_as_of']})"
        if contract["price_status"] == "recalled":
            yield f"{contract['offer']}: the price was recalled, not seen"


def short_terms(candidates: Candidates) -> Iterator[str]:
    """Contracts that are allowed and last for no period: none of them was weighed."""
    calendar = candidates.calendar
    if calendar is None:
        return
    shortest_h = min(calendar.period_hours(number) for number in range(calendar.periods))
    longest: dict[str, float] = {}
    for offer in (offer for pool in calendar.pools for offer in pool.contracts):
        most = COMMITMENT_HOURS.get(offer.price_model) if offer.max_term_hours is None else offer.max_term_hours
        longest[offer.price_model] = max(longest.get(offer.price_model, 0.0), math.inf if most is None else most)
    for model, hours in sorted(longest.items()):
        if hours * (1 + _SHORT) < shortest_h:
            periods = f"periods={hours:.17g} h"
            mends = calendar.horizon_s / 3600.0 / hours <= MAX_PERIODS
            yield (
                f"{model} is left out: its longest term, {_term(3600.0 * hours)}, is shorter than a period, "
                f"{_term(3600.0 * shortest_h)}, and covers none"
                + (f"; --set '{periods}' lets one follow another" if mends else "")
            )


def _term(length_s: float) -> str:
    """A time in months where it is whole months, as contracts are sold."""
    months = length_s / HORIZON_S
    return f"{months:.0f} months" if months > 1 and math.isclose(months, round(months)) else format_duration(length_s)


def bought_facts(candidates: Candidates, bought: BoughtParts) -> Iterator[tuple[str, str, str, Provenance]]:
    """Subject, fact, value and origin of every price behind contracts and copies."""
    for contract in bought["contracts"]:
        origin = Provenance(
            source=contract["price_source"], as_of=contract["price_as_of"], status=contract["price_status"]
        )
        yield contract["offer"], "price", f"{contract['price_microusd_per_hour'] / 1e6:g} USD/h per shape", origin
    for copy in bought["copies"]:
        home = copy["from"].partition("/")[0]
        keys = [(home, "inter-region" if home == copy["provider"] else "egress"), (copy["provider"], "storage")]
        for provider, kind in keys:
            found = _transfer(candidates.catalog, provider, kind)
            if found is not None:
                yield provider, kind, _tiers(found.tiers), found.provenance


def _transfer(catalog: Catalog, provider: str, kind: str) -> Transfer | None:
    return catalog.transfers.get((provider, kind))


def _tiers(tiers: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{price:g} USD/GB above {above:g} GB" for above, price in tiers)
