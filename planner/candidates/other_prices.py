"""The ways of one training job at other prices: what depends on no price is taken over, costs are worked out anew.

Of a job that is not mixed, prices decide in one place which rows there are: a way that costs more than ten billion
dollars is dropped. Everything else (layouts, memory, time, what was dropped and why) follows from machines alone, so
that where two markets differ in nothing but prices the table of the one is that of the other, but for its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache

from planner.candidates.evaluated import Around, Evaluated, Workload, said_of
from planner.candidates.ledger import Ledger
from planner.candidates.money import DEAREST_MICROUSD
from planner.candidates.node_parts import part_of
from planner.candidates.offers import Site, sites_of
from planner.candidates.placement import data_sets
from planner.candidates.training_question import TrainingQuestion
from planner.candidates.training_table import TrainingTable, costs_of
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Offer
from planner.scenario.schema import TrainingJob

PRICED = ("price_microusd_per_hour", "provenance")  # of an offer, what may differ
_FIXED = tuple(field.name for field in fields(Offer) if field.name not in PRICED)
OTHER = ("offers", "digest", "own_prices")  # of a catalog


def at_other_prices(before: Evaluated, workload: Workload, around: Around, market: Catalog) -> Evaluated | None:
    """The ways of a job in a market that differs in prices alone; None where that is not so, or not known.

    Parameters
    ----------
    before
        The ways of the same job, of the same model, in another market.
    around
        What the ways depend on now.
    market
        The catalog with what the scenario adds to it.
    """
    table, question = before.table, before.question
    if not isinstance(workload, TrainingJob) or workload != before.workload or workload.mix_within_job:
        return None
    if not isinstance(table, TrainingTable) or not isinstance(question, TrainingQuestion):
        return None
    assert isinstance(before.median, TrainingTable)
    if table.late is not None or before.median.late is not None:  # whether a switch pays depends on prices
        return None
    if around.pools or before.around.pools or around.plainer is not None:
        return None
    if said_of(around, discounts=False) != said_of(before.around, discounts=False):
        return None
    if workload.data is not None and data_sets(around.scenario) != data_sets(before.around.scenario):
        return None
    if not _same_but_for_prices(_Pair(one=question.catalog, other=market)):
        return None
    sites, left_out = _sites(around, market)
    known, left_out_there = _sites(before.around, question.catalog)
    if list(sites) != list(known) or left_out != left_out_there:
        return None
    found = _at_prices(table, sites)
    median = found if before.median is table else _at_prices(before.median, sites)
    if max((*found.cost_microusd, *median.cost_microusd), default=0) > DEAREST_MICROUSD // 2:
        return None
    if any(drop.reason == "too-dear" for drop in before.ledger):
        return None
    question = replace(question, scenario=around.scenario, catalog=market)
    return replace(before, workload=workload, around=around, question=question, table=found, median=median, space=None)


def _sites(around: Around, market: Catalog) -> tuple[dict[str, Site], Ledger]:
    """Sites by the id of their offer, in their order, and what was left out."""
    ledger = Ledger(workload="")
    found = sites_of(around.scenario, market, ledger, allow_suspect=around.allow_suspect)
    return {site.offer.id: site for site in found}, ledger


def _at_prices(table: TrainingTable, sites: Mapping[str, Site]) -> TrainingTable:
    """The table where each site is that of the other market."""
    there = {id(site): _there(site, sites[site.offer.id]) for site in table.sites}  # a site stands in many rows
    moved = tuple(there[id(site)] for site in table.sites)
    return replace(table, sites=moved, cost_microusd=costs_of(moved, table.nodes, table.finish_s / 3600.0))


def _there(site: Site, other: Site) -> Site:
    """The site of the other market, or as much of a node of it."""
    return other if site.whole_devices is None else part_of(other, site.shape.devices)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    """Two catalogs as they are: the same objects, never compared by what they hold."""

    one: Catalog
    other: Catalog

    def __eq__(self, other: object) -> bool:
        """The same two."""
        return isinstance(other, _Pair) and self.one is other.one and self.other is other.other

    def __hash__(self) -> int:
        """Of the objects."""
        return hash((id(self.one), id(self.other)))


@lru_cache(maxsize=8)  # asked by every job of a scenario
def _same_but_for_prices(pair: _Pair) -> bool:
    one, other = pair.one, pair.other
    for name in [field.name for field in fields(Catalog) if field.name not in OTHER]:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine is not theirs and mine != theirs:
            return False
    return len(one.offers) == len(other.offers) and all(map(_same_offer, one.offers, other.offers))


def _same_offer(one: Offer, other: Offer) -> bool:
    if one is other:
        return True
    return all(getattr(one, name) == getattr(other, name) for name in _FIXED)
