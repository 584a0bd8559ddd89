"""The single changes between two questions, and every question in between.

A change is one price, one offer that came or went, one fact, or one scenario key. Any set of them applied to A gives a
question in between: none gives A, all give B. Devices and shapes that only one catalog knows are in every catalog in
between: nothing runs on them but through an offer, which is a change of its own. Offers whose price is flagged as wrong
are as good as none (`candidates.offers.is_suspect`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from planner.analysis.compare.scenario_keys import Key, blended, changed_keys
from planner.candidates.offers import is_suspect
from planner.carriers import dataclass
from planner.catalog.diff import TABLES, WHOLE, difference
from planner.catalog.diff import Change as Difference
from planner.catalog.model import Catalog, Offer
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario

PRICED = ("price", "added", "removed")  # kinds that change what offers cost, and nothing else
NOT_TRIED = (("hardware", "catalog"),)  # the catalog is compared by what it says, not by where it is
Chosen = Collection[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that is another one in B."""

    kind: str  # price | added | removed | terms | fact | table | scenario
    group: str  # what is tried together first
    id: str  # of the offer, device, shape or table; of a scenario key its first steps
    field: str
    old: Any
    new: Any
    key: Key = ()  # of the scenario

    @property
    def name(self) -> str:
        """A name for people: what --set would say, or the catalog's id and field."""
        return ".".join(self.key) if self.key else f"{self.id} {self.field}".strip()

    @property
    def dearer(self) -> bool:
        """Whether it can only make plans that use its offer dearer, or impossible."""
        return self.kind == "removed" or (self.kind == "price" and self.new > self.old)

    @property
    def cheaper(self) -> bool:
        """Whether it can only make plans that use its offer cheaper, or possible."""
        return self.kind == "added" or (self.kind == "price" and self.new < self.old)


def changes_between(
    old: Scenario, new: Scenario, before: Catalog, after: Catalog, *, allow_suspect: bool = False
) -> tuple[Change, ...]:
    """Every single change from one question to another, in a fixed order: scenario, facts, offers.

    Parameters
    ----------
    old, new
        The scenarios.
    before, after
        The catalogs.
    allow_suspect
        Offers whose price is flagged as wrong count too.
    """
    found = list(_scenario_changes(old, new))
    if before.digest != after.digest or before is not after:
        found += _catalog_changes(before, after, allow_suspect)
    return tuple(found)


def _scenario_changes(old: Scenario, new: Scenario) -> Iterator[Change]:
    for key, was, now in changed_keys(old.resolved, new.resolved):
        if key not in NOT_TRIED:
            head = ".".join(key[:2]) if key[0] in ("training", "serving") else key[0]
            yield Change(kind="scenario", group=head, id=head, field=".".join(key[2:]), old=was, new=now, key=key)


def _catalog_changes(before: Catalog, after: Catalog, allow_suspect: bool) -> Iterator[Change]:
    one, other = (_usable(catalog, allow_suspect) for catalog in (before, after))
    for change in difference(before, after).changes:
        yield from _fact_changes(change, before, after, one, other)
    for name in sorted(one.keys() | other.keys()):
        old, new = one.get(name), other.get(name)
        offer = new or old
        assert offer is not None
        group = f"{offer.provider} · {(after if new else before).shapes[offer.shape].device}"
        kind = "added" if old is None else "removed" if new is None else "price"
        prices = [each.price_microusd_per_hour if each else None for each in (old, new)]
        if prices[0] != prices[1]:
            yield Change(kind=kind, group=group, id=name, field="price", old=prices[0], new=prices[1])


def _usable(catalog: Catalog, allow_suspect: bool) -> dict[str, Offer]:
    return {offer.id: offer for offer in catalog.offers if not is_suspect(offer, allow_suspect=allow_suspect)}


def _fact_changes(
    change: Difference, before: Catalog, after: Catalog, one: Mapping[str, Offer], other: Mapping[str, Offer]
) -> Iterator[Change]:
    old, new = change.old, change.new
    if change.kind == "table":
        yield Change(kind="table", group=change.id, id=change.id, field=change.field, old=old, new=new)
    elif change.kind == "offer":
        if change.id in one and change.id in other:
            group = f"{other[change.id].provider} · {after.shapes[other[change.id].shape].device}"
            yield Change(kind="terms", group=group, id=change.id, field=change.field, old=old, new=new)
    else:
        device = change.id if change.kind == "device" else after.shapes[change.id].device
        yield Change(kind="fact", group=f"facts of {device}", id=change.id, field=change.field, old=old, new=new)


@dataclass(frozen=True)
class Between:
    """Every question between two, by the numbers of the changes that are applied to the first."""

    old: Scenario
    new: Scenario
    before: Catalog
    after: Catalog
    changes: tuple[Change, ...]
    allow_suspect: bool = False

    def scenario(self, chosen: Chosen) -> Scenario:
        """The scenario with some keys as they are in the new one.

        Raises
        ------
        InputError
            Keys that make no sense without others.
        """
        keys = [self.changes[number].key for number in sorted(chosen) if self.changes[number].kind == "scenario"]
        if not keys:
            return self.old
        if len(keys) == sum(change.kind == "scenario" for change in self.changes):
            return self.new
        data = blended(self.old.resolved, self.new.resolved, keys)
        return parse_scenario(json.dumps(data), file=self.old.file)

    def catalog(self, chosen: Chosen, *, every_offer: bool = False, prices: Mapping[str, int] | None = None) -> Catalog:
        """The catalog with some facts, offers and prices as they are in the new one.

        Parameters
        ----------
        every_offer
            With the offers of both, whatever is chosen.
        prices
            Micro-dollars an hour of some offers, in place of what either catalog says.
        """
        applied = [self.changes[number] for number in sorted(chosen)]
        offers = dict(self._sides[0])
        if every_offer:
            offers = {**self._sides[1], **offers}
        self._apply(offers, [n for n in sorted(chosen) if self.changes[n].kind in (*PRICED, "terms")], every_offer)
        for name, price in (prices or {}).items():
            offers[name] = replace(offers[name], price_microusd_per_hour=price)
        tables = any(change.kind == "table" for change in applied)
        given = {table: self._table(table, applied) for table in (*TABLES, *WHOLE)} if tables else {}
        return replace(
            self.before,
            devices=self._items("devices", applied),
            shapes=self._items("shapes", applied),
            aliases={**self.after.aliases, **self.before.aliases},
            offers=tuple(offers[name] for name in sorted(offers)),
            **given,
        )

    def _apply(self, offers: dict[str, Offer], numbers: list[int], every_offer: bool) -> None:
        """Put the changes of offers into them."""
        new = self._sides[1]
        for number in numbers:
            change = self.changes[number]
            if change.kind == "added":
                offers[change.id] = new[change.id]
            elif change.kind == "price":
                offers[change.id] = self._repriced[number]
            elif change.kind == "removed" and not every_offer:
                del offers[change.id]
        for change in (self.changes[number] for number in numbers):
            if change.kind == "terms":
                fields = {change.field: getattr(new[change.id], change.field)}
                offers[change.id] = replace(offers[change.id], **fields)

    @cached_property
    def _repriced(self) -> dict[int, Offer]:
        """By change of a price: A's offer at B's price."""
        old, new = self._sides
        return {
            number: replace(
                old[change.id],
                price_microusd_per_hour=new[change.id].price_microusd_per_hour,
                provenance=new[change.id].provenance,
            )
            for number, change in enumerate(self.changes)
            if change.kind == "price"
        }

    @cached_property
    def _sides(self) -> tuple[dict[str, Offer], dict[str, Offer]]:
        return _usable(self.before, self.allow_suspect), _usable(self.after, self.allow_suspect)

    @cached_property
    def offer_names(self) -> frozenset[str]:
        """Ids of the offers of either catalog."""
        return frozenset(self._sides[0].keys() | self._sides[1].keys())

    def _items(self, table: str, applied: list[Change]) -> dict[str, Any]:
        """Devices or shapes: those of the old catalog, with new facts where chosen, and those that only B knows."""
        before, after = getattr(self.before, table), getattr(self.after, table)
        items = {**after, **before}
        for change in applied:
            if change.kind == "fact" and change.id in before and change.id in after:
                items[change.id] = _with_fact(items[change.id], after[change.id], change.field)
        return items

    def _table(self, table: str, applied: list[Change]) -> Any:
        fields = {change.field for change in applied if change.kind == "table" and change.id == table}
        before, after = getattr(self.before, table), getattr(self.after, table)
        if table in WHOLE:
            return after if fields else before
        keys = {"/".join(key) if isinstance(key, tuple) else str(key): key for key in (*before, *after)}
        merged = dict(before)
        for field in fields:
            key = keys[field]
            if key in after:
                merged[key] = after[key]
            else:
                merged.pop(key, None)
        return merged


def _with_fact(item: Any, other: Any, field: str) -> Any:
    """A device or shape with one fact of another one: a field, an entry of a mapping, or a part of a link."""
    name, dot, part = field.partition(".")
    mine, theirs = getattr(item, name), getattr(other, name)
    if not dot:
        return replace(item, **{name: theirs})
    if isinstance(mine, Mapping) or isinstance(theirs, Mapping):
        merged = {key: value for key, value in mine.items() if key != part}
        return replace(item, **{name: merged | ({part: theirs[part]} if part in theirs else {})})
    whole = mine is None or theirs is None  # a link that is there in one of them alone
    return replace(item, **{name: theirs if whole else replace(mine, **{part: getattr(theirs, part)})})
