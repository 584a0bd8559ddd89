"""What can be reserved, and every way to buy it: terms, start periods, fees.

A *pool* is a shape in a place for which some contract is offered. Whoever runs on reserved nodes runs on those of a
pool; contracts, and nodes taken on demand for whole periods, supply them. Terms are those of optimisation.md 4.4 and
catalog.md 3.4: a commitment is paid for the whole of its term, a block in whole steps of its length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.candidates.calendar import NO_POOL, RESERVED, Pool
from planner.candidates.grid import Grid
from planner.candidates.money import cost_microusd
from planner.candidates.offers import Site, shape_cap, usable_offers
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Offer, Provenance
from planner.estimate.market import is_own_contract
from planner.estimate.resolve import inter_node_rate
from planner.scenario.hardware_keys import COMMITMENT_HOURS, RESERVING
from planner.scenario.schema import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """One way to have one node of a pool in the periods [start, stop)."""

    pool: int
    offer: Offer
    start: int
    stop: int
    hours: float  # that are paid for  [h]
    fee_microusd: int  # of the whole term
    cost_microusd: int  # of it that counts: all, or the part within the horizon


def pools_of(scenario: Scenario, catalog: Catalog, *, allow_suspect: bool = False) -> tuple[Pool, ...]:
    """Pools in the order of their names; none when no contract may be used.

    Parameters
    ----------
    scenario
        Its hardware section says which offers may be used.
    catalog
        With what the scenario adds to it, contracts of its own among it.
    allow_suspect
        Use prices that look wrong, too.

    Raises
    ------
    InputError
        The scenario asks for a price model on which nothing that is allowed is sold.
    """
    offers = list(usable_offers(scenario, catalog, allow_suspect=allow_suspect))
    contracts: dict[tuple[str, str, str, str], list[Offer]] = {}
    for offer in offers:
        if offer.price_model in RESERVING:
            contracts.setdefault((offer.provider, offer.region, offer.zone, offer.shape), []).append(offer)
    steady = [offer for offer in offers if offer.price_model == "on_demand"]
    pools = [
        Pool(
            provider=provider,
            region=region,
            zone=zone,
            shape=shape,
            contracts=tuple(sorted(found, key=lambda offer: offer.id)),
            on_demand=_cheapest(o for o in steady if (o.provider, o.region, o.shape) == (provider, region, shape)
                                and zone in ("", o.zone)),
        )
        for (provider, region, zone, shape), found in contracts.items()
    ]  # fmt: skip
    return tuple(sorted(pools, key=lambda pool: (pool.name, pool.shape)))


def _cheapest(offers: Iterable[Offer]) -> Offer | None:
    return min(offers, key=lambda offer: (offer.price_microusd_per_hour, offer.id), default=None)


def reserved_sites(pools: Iterable[Pool], scenario: Scenario, catalog: Catalog) -> list[Site]:
    """One site for each pool, whose nodes cost nothing to whoever runs on them: contracts pay.

    Parameters
    ----------
    pools
        What may be reserved.
    scenario
        Its limits say how many nodes each pool may have, and it may assume a network.
    catalog
        Shapes and devices of the pools.
    """
    sites = []
    for pool in pools:
        shape = catalog.shapes[pool.shape]
        offer = Offer(
            id=f"{RESERVED}:{pool.name}",
            provider=pool.provider,
            region=pool.region,
            zone=pool.zone,
            country=pool.contracts[0].country,
            shape=pool.shape,
            price_model=RESERVED,
            price_microusd_per_hour=0,
            max_shapes=most_nodes(pool, scenario, catalog),
            provenance=Provenance(source="contracts of the plan", as_of="", status="user"),
        )
        rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
        device = catalog.devices[shape.device]
        sites.append(Site(offer=offer, shape=shape, device=device, inter_node_bytes_per_s=rate))
    return sites


def most_nodes(pool: Pool, scenario: Scenario, catalog: Catalog) -> int:
    """Nodes that all purchases of a pool may supply at one time, under the limits that concern each offer alone.

    Parameters
    ----------
    pool
        Its contracts, and what tops them up.
    scenario
        Its limit of devices and its quotas count.
    catalog
        Shapes and devices of the offers.
    """
    offers = (*pool.contracts, *([pool.on_demand] if pool.on_demand else []))
    return sum(most_of(offer, scenario, catalog) for offer in offers)


def most_of(offer: Offer, scenario: Scenario, catalog: Catalog) -> int:
    """Nodes that may be had of one offer at one time; blocks that a catalog lists may be several.

    Parameters
    ----------
    offer
        A contract, or what tops a pool up.
    scenario
        Its limit of devices and its quotas count.
    catalog
        Shape and device of the offer.
    """
    listed = offer.price_model == "block" and not is_own_contract(offer)
    shape = catalog.shapes[offer.shape]
    counted = replace(offer, max_shapes=None) if listed else offer
    return shape_cap(scenario, Site(offer=counted, shape=shape, device=catalog.devices[shape.device]), one_job=False)


def pool_index(site: Site, pools: tuple[Pool, ...]) -> int:
    """The pool that a reserved site stands for; -1 for any other."""
    if site.offer.price_model != RESERVED:
        return NO_POOL
    return [f"{RESERVED}:{pool.name}" for pool in pools].index(site.offer.id)


def supplies_of(number: int, pool: Pool, grid: Grid, *, prorate: bool) -> Iterator[Supply]:
    """Every contract of a pool at every start that no other makes pointless.

    Parameters
    ----------
    number
        Of the pool, which supplies bear.
    pool
        What may be reserved.
    grid
        Periods in which contracts begin.
    prorate
        Of a contract that begins with the plan only the part within the horizon counts; False: the whole fee.
    """
    for offer in pool.contracts:
        if offer.price_model in COMMITMENT_HOURS:
            yield from _commitments(number, offer, grid, prorate)
        else:
            yield from _blocks(number, offer, grid, prorate)


def _commitments(number: int, offer: Offer, grid: Grid, prorate: bool) -> Iterator[Supply]:
    """One for each start; of those that cost the same and reach the horizon only the earliest."""
    hours = offer.min_term_hours or COMMITMENT_HOURS[offer.price_model]
    for start in range(grid.periods):
        found = _supply(number, offer, grid, start, hours, prorate)
        if found.stop > start:
            yield found
        if found.stop == grid.periods and found.cost_microusd == found.fee_microusd:
            return


def _blocks(number: int, offer: Offer, grid: Grid, prorate: bool) -> Iterator[Supply]:
    """Every length of whole steps that no chain of shorter ones replaces, and no other covers at the same price."""
    for start in range(grid.periods):
        kept: list[Supply] = []
        exact_hours: float | None = None  # the shortest length that leaves nothing of its last period unused
        for stop in range(start + 1, grid.periods + 1):
            needed = grid.hours(start, stop)
            hours = block_hours(offer, needed)
            if hours is None or (exact_hours is not None and _is_chain(offer, exact_hours, hours)):
                break
            if exact_hours is None and math.isclose(hours, needed, rel_tol=1e-9):
                exact_hours = hours
            found = _supply(number, offer, grid, start, hours, prorate)
            kept = [one for one in kept if one.cost_microusd < found.cost_microusd]  # a longer one for no more
            kept.append(found)
        yield from kept


def _is_chain(offer: Offer, first_hours: float, all_hours: float) -> bool:
    """Whether a block of `first_hours` and one for the rest cost what one block for all costs."""
    least, step = offer.min_term_hours or 0.0, offer.term_step_hours
    whole_steps = not step or abs(least / step - round(least / step)) < 1e-9
    return whole_steps and all_hours - first_hours >= least * (1 - 1e-9)


def block_hours(offer: Offer, needed_hours: float) -> float | None:
    """The shortest length of a block that lasts for some hours; None when none does.  [h]

    Examples
    --------
    >>> source = Provenance(source="a price list", as_of="2024-12-01", status="seen")
    >>> block = Offer(id="b", provider="p", region="r", zone="", country="", shape="p/s", price_model="block",
    ...     price_microusd_per_hour=1, min_term_hours=24, max_term_hours=4368, term_step_hours=24, provenance=source)
    >>> block_hours(block, 168), block_hours(block, 25), block_hours(block, 5000)
    (168.0, 48.0, None)
    """
    least, step = offer.min_term_hours or 0.0, offer.term_step_hours
    hours = max(needed_hours, least)
    if step:
        hours = least + math.ceil((hours - least) / step - 1e-9) * step
    most = offer.max_term_hours
    return None if most is not None and hours > most * (1 + 1e-9) else float(hours)


def _supply(number: int, offer: Offer, grid: Grid, start: int, hours: float, prorate: bool) -> Supply:
    """A purchase; what lies beyond the horizon is left out only of one that begins with the plan.

    A later one would be bought for its last weeks alone, at a fee that nobody sells them for.
    """
    fee = cost_microusd(1, offer.price_microusd_per_hour, hours)
    within = min(hours, grid.hours(0, grid.periods))
    counted = cost_microusd(1, offer.price_microusd_per_hour, within) if prorate and start == 0 else fee
    stop = int(grid.covered(start, hours * 3600.0))
    return Supply(
        pool=number, offer=offer, start=start, stop=stop, hours=hours, fee_microusd=fee, cost_microusd=counted
    )
