"""What a reader should know of the sellers of a plan: who promises nothing, and what is more than one may expect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from planner.candidates.offers import quota_matches, site_at
from planner.candidates.search import Candidates
from planner.candidates.sellers import MARKETPLACE
from planner.catalog.model import Catalog
from planner.plan.model.workloads import Workload
from planner.scenario.schema import Scenario

SHOWN = 5  # grids by name
OLD_RATE_DAYS = 90  # from which on a rate of a currency may well be another


def market_warnings(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Marketplaces that a plan rents from, and devices on demand beyond what a seller of that kind has free."""
    catalog, scenario = candidates.catalog, candidates.scenario
    held: dict[tuple[str, str, str], int] = defaultdict(int)
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
                held[row["provider"], row["region"], row["device"]] += row["devices"]
    yield from _beyond_stock(held, catalog)
    yield from _old_rates(scenario, catalog)
    yield from _unknown_grids(candidates)
    yield from _devices_alone(candidates, workloads)


def _devices_alone(candidates: Candidates, workloads: Sequence[Workload]) -> Iterator[str]:
    """Machines of which a limit of power or carbon counts the accelerators alone: nobody says what the rest draws."""
    limits = candidates.scenario.limits
    places = [limits, *limits.sites]
    power, carbon = (any(getattr(one, name) is not None for one in places) for name in ("power_w", "carbon_g"))
    counts = ["power"] * power + ["carbon"] * (carbon or "carbon" in candidates.scenario.objective)
    sites = {site.offer.id: site for table in candidates.tables.values() for site in table.sites}
    used = {row["offer"] for workload in workloads for row in workload["allocations"]}
    devices = sorted({sites[offer].device.id for offer in used & sites.keys() if sites[offer].drawn_w is None})
    if counts and devices:
        yield (
            f"{' and '.join(counts)} is that of accelerators as they are rated ({', '.join(devices)}), without hosts, "
            "fans and network, which may draw as much again (a DGX H100 is rated 10.2 kW, its eight H100 5.6): say "
            "what an owned machine draws by power: {watts: …} there, and lower the limit for others"
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
            f"{'are' if left_out > 1 else 'is'} left out; known: {shown or 'none'}; grids.csv of a catalog of your own "
            "adds more, and carbon under hardware.owned says it of machines that you own"
        )


def _old_rates(scenario: Scenario, catalog: Catalog) -> Iterator[str]:
    """Rates of currencies of long before the prices: a document depends on no day on which it is read."""
    rates = scenario.rates
    days = (date.fromisoformat(catalog.as_of) - date.fromisoformat(rates.as_of)).days if rates.dollars else 0
    if days > OLD_RATE_DAYS:
        yield (
            f"the rate of {', '.join(rates.dollars)} to the dollar is of {rates.as_of}, {days} days before the "
            f"catalog ({catalog.as_of}): write today's with its day in currency"
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


def _beyond_stock(held: dict[tuple[str, str, str], int], catalog: Catalog) -> Iterator[str]:
    for (provider, region, device), devices in sorted(held.items()):
        stock = catalog.stock_of(provider, device)
        if stock is not None and devices > stock.devices:
            yield (
                f"{devices:,} {device} on demand at {provider} {region} are more than the {stock.devices:,} that one "
                f"may expect of a {stock.kind} in one region ({stock.provenance.source}): reserve them, take a "
                "capacity block or a second region, or state what was granted in hardware.quotas"
            )
