"""The same ways to run everything at other prices: no layout is evaluated again.

A row of a table is an offer, a number of its shapes and a layout. Which rows there are depends on the offer's price in
one place only: a way that costs more than ten billion dollars is dropped (`money.DEAREST_MICROUSD`), far from anything
that is planned. Memory, time and rates belong to the *physics* of a site (`Site.physics`), in which there is no price.
So at other prices every row keeps everything but its cost, which is worked out by the very function that made it, and
the joint rows that count money, of a budget or a limit on spend, are written anew. An offer that is not to be had is
closed: its columns are left out of the program.

Three things do look at prices while ways are listed: mixes of offers within a job, switches from one to another, and
what may be reserved. `repriceable` says where none of them is possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.evaluated import Table
from planner.candidates.money import cost_microusd, rental_microusd
from planner.candidates.offers import Site
from planner.candidates.program import IntArray, restrict
from planner.candidates.prune import prune
from planner.candidates.rates import RatesTable
from planner.candidates.search import Candidates, select, with_tables
from planner.candidates.shared_nodes import NODES
from planner.candidates.training_table import TrainingTable
from planner.catalog.model import Catalog, Offer
from planner.errors import InputError


def repriceable(candidates: Candidates) -> bool:
    """Whether no way was listed, or left out, because of a price."""
    scenario = candidates.scenario
    mixing = scenario.mixes
    switching = any(isinstance(one, TrainingTable) and one.late for one in candidates.tables.values())
    return not (mixing or switching or candidates.pools or scenario.uncertainty or scenario.scheduled)


def offers_in_play(candidates: Candidates) -> frozenset[str]:
    """Ids of the offers that some workload can run on."""
    return frozenset(site.offer.id for table in candidates.tables.values() for site in table.sites)


def repriced(candidates: Candidates, market: Catalog) -> Candidates:
    """The same rows at the prices of a market (`planner.estimate.market`); offers that it lacks stay as they are."""
    offers = {offer.id: offer for offer in market.offers}
    tables = dict(candidates.tables)
    for name, table in tables.items():
        if not isinstance(table, RatesTable):  # prices of the scenario itself
            tables[name] = _at_prices(table, offers)
    limits = candidates.scenario.limits
    priced_rows = limits.budget_microusd is not None or limits.spend_microusd_per_hour is not None
    if priced_rows or candidates.whole_shared is not None:
        return with_tables(replace(candidates, catalog=market), tables, {})
    costs = [np.array(table.cost_microusd, dtype=np.int64) for table in tables.values()]
    parts = [cost[candidates.whole_rows[t.first : t.stop]] for cost, t in zip(costs, candidates.whole.tasks)]
    whole = replace(candidates.whole, cost_microusd=np.concatenate(parts))
    return narrowed(replace(candidates, catalog=market, tables=tables, whole=whole))


def cost_at(candidates: Candidates, units: IntArray, market: Catalog) -> int:
    """What a plan costs at the prices of a market, whatever would be best there.  [micro-USD]

    Parameters
    ----------
    units
        (columns of `candidates.program`,) of each column.

    Raises
    ------
    InputError
        The market lacks an offer that the plan rents.
    """
    offers = {offer.id: offer for offer in market.offers}
    gone = {offer.id for offer in candidates.catalog.offers} - offers.keys()  # what the scenario brings itself stays
    cost = 0
    for task in candidates.program.tasks:
        used = [column for column in range(task.first, task.stop) if units[column]]
        for column, (site, each) in zip(used, _each(candidates, task.name, used, offers)):
            if site.offer.id in gone:
                hint = "what was rented cannot be rented any more: only the best plan is told"
                raise InputError.of("not-offered", f"{site.offer.id} has no price there", hint=hint)
            cost += int(units[column]) * each
    return cost


def _each(
    candidates: Candidates, task: str, columns: Sequence[int], offers: Mapping[str, Offer]
) -> Iterator[tuple[Site, int]]:
    """What columns of a task rent, and what a unit of each costs at the prices of some offers.  [micro-USD]"""
    shared = candidates.shared
    if task == NODES:
        assert shared is not None
        hours = candidates.scenario.horizon_s / 3600.0
        for column in columns:
            site = _moved(shared.sites[int(shared.site[column])], offers)
            yield site, cost_microusd(1, site.offer.price_microusd_per_hour, hours)
        return
    table = candidates.tables[task]
    table = table if isinstance(table, RatesTable) else _at_prices(table, offers)  # prices of the scenario itself
    for column in columns:
        row = int(candidates.rows[column])
        share = shared is not None and shared.is_share(column)  # it costs nothing itself: its nodes do
        yield table.sites[row], 0 if share else table.cost_microusd[row]


def _at_prices(table: Table, offers: Mapping[str, Offer]) -> Table:
    """A table at other prices of its offers; the same one when nothing changed."""
    new = {id(site): _moved(site, offers) for site in table.sites}  # a site stands in many rows
    rows = [row for row, site in enumerate(table.sites) if new[id(site)] is not site]
    if not rows:
        return table
    cost = list(table.cost_microusd)
    for row in rows:
        site, nodes = new[id(table.sites[row])], int(table.nodes[row])
        price = site.offer.price_microusd_per_hour
        if not isinstance(table, TrainingTable):
            cost[row] = cost_microusd(nodes, price, table.hours(row))
            continue
        hours = float(table.finish_s[row]) / 3600.0
        cost[row] = rental_microusd(nodes, price, hours, site.bill.seconds(hours) if site.bill else None)
    return replace(table, sites=tuple(new[id(site)] for site in table.sites), cost_microusd=tuple(cost))


def _moved(site: Site, offers: Mapping[str, Offer]) -> Site:
    """The site at its offer's price in the market; the same object when nothing changed."""
    offer = offers.get(site.offer.id)
    if offer is None or offer.price_microusd_per_hour == site.offer.price_microusd_per_hour:
        return site
    return replace(site, offer=offer)


def narrowed(candidates: Candidates) -> Candidates:
    """With the program of the columns of `whole` that a best plan may need."""
    kept = prune(candidates.whole)
    return select(candidates, kept)


def closed(candidates: Candidates, absent: Collection[str]) -> Candidates:
    """Without the columns of some offers; the tables keep their rows."""
    if not absent:
        return candidates
    whole, rows = candidates.whole, candidates.whole_rows
    mask = np.ones(whole.column_count, dtype=bool)
    for task in whole.tasks:
        sites = candidates.tables[task.name].sites if task.name in candidates.tables else ()
        for column in range(task.first, task.stop) if sites else ():
            mask[column] = sites[int(rows[column])].offer.id not in absent
    shared = candidates.whole_shared.select(np.flatnonzero(mask)) if candidates.whole_shared else None
    return narrowed(replace(candidates, whole=restrict(whole, mask)[0], whole_rows=rows[mask], whole_shared=shared))
