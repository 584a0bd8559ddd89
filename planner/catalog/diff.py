"""What sets two catalogs apart: facts field by field, offers with what a unit of hardware costs, sources, flags.

Money is compared per unit of what it buys: a device-hour, a PFLOP/s of dense 16-bit compute for an hour, a GB of
device memory for an hour, a TB/s of memory bandwidth for an hour, each at the cheapest offer of a provider.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape

TABLES = ("efficiencies", "grids", "fabrics", "training_families", "transfers", "training_stacks", "training_beyond")
WHOLE = ("serving", "rule_error")
NOT_FACTS = ("id", "facts", "price_microusd_per_hour", "provenance", "quality", "note", "notes")
WORSE = {"seen": 0, "measured": 0, "user": 0, "date-unknown": 1, "inferred": 2, "recalled": 3}  # by status


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One fact that differs."""

    kind: str  # device | shape | offer | table
    id: str
    field: str
    old: Any
    new: Any
    old_source: str = ""
    new_source: str = ""

    @property
    def ratio(self) -> float | None:
        """New over old, of two numbers."""
        both = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (self.old, self.new))
        return self.new / self.old if both and self.old else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The cheapest offer of a device from a provider on one price model, in USD an hour for a unit of each."""

    offer: str
    usd_per_device: float
    usd_per_pflop_per_s: float | None
    usd_per_gb: float
    usd_per_tb_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What the cheapest offers of one provider, device and price model cost before and after."""

    provider: str
    device: str
    price_model: str
    old: Cheapest | None
    new: Cheapest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A fact whose source, date or status changed."""

    kind: str
    id: str
    field: str
    old: Provenance
    new: Provenance

    @property
    def better(self) -> bool | None:
        """Whether more is known of it now; None when it is another source of the same standing."""
        one, other = WORSE.get(self.old.status, 1), WORSE.get(self.new.status, 1)
        return None if one == other else other < one


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Everything that sets catalog B apart from catalog A."""

    added: Mapping[str, tuple[str, ...]]  # by kind: ids
    removed: Mapping[str, tuple[str, ...]]
    changes: tuple[Change, ...]
    prices: tuple[Change, ...]  # of offers, in USD an hour of a shape
    moved: tuple[Moved, ...]
    drifts: tuple[Drift, ...]
    flagged: tuple[Offer, ...]  # flagged now, not before
    cleared: tuple[Offer, ...]

    @property
    def empty(self) -> bool:
        """Whether the catalogs say the same, sources apart."""
        listed = any(self.added.values()) or any(self.removed.values())
        return not (listed or self.changes or self.prices or self.flagged or self.cleared)


def difference(old: Catalog, new: Catalog) -> Difference:
    """What sets `new` apart from `old`."""
    parts: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
        "device": (old.devices, new.devices),
        "shape": (old.shapes, new.shapes),
        "offer": ({o.id: o for o in old.offers}, {o.id: o for o in new.offers}),
    }
    changes: list[Change] = []
    prices: list[Change] = []
    drifts: list[Drift] = []
    flagged: list[Offer] = []
    cleared: list[Offer] = []
    for kind, (before, after) in parts.items():
        for name in sorted(before.keys() & after.keys()):
            changes += _changed(kind, before[name], after[name])
            drifts += _drifted(kind, before[name], after[name])
    offers = parts["offer"]
    for name in sorted(offers[0].keys() & offers[1].keys()):
        prices += _repriced(offers[0][name], offers[1][name])
    for name, offer in sorted(offers[1].items()):
        before_quality = offers[0][name].quality if name in offers[0] else ""
        if offer.quality and not before_quality:
            flagged.append(offer)
        elif before_quality and not offer.quality:
            cleared.append(offer)
    changes += _tables(old, new)
    return Difference(
        added={kind: tuple(sorted(after.keys() - before.keys())) for kind, (before, after) in parts.items()},
        removed={kind: tuple(sorted(before.keys() - after.keys())) for kind, (before, after) in parts.items()},
        changes=tuple(changes),
        prices=tuple(prices),
        moved=tuple(_moved(old, new)),
        drifts=tuple(drifts),
        flagged=tuple(flagged),
        cleared=tuple(cleared),
    )


def _facts(item: Any) -> dict[str, Any]:
    """Fields as a flat mapping: peaks and links by their parts."""
    found: dict[str, Any] = {}
    for part in fields(item):
        value = getattr(item, part.name)
        if part.name in NOT_FACTS:
            continue
        if isinstance(value, Mapping):
            found |= {f"{part.name}.{key}": inner for key, inner in value.items()}
        elif hasattr(value, "__dataclass_fields__"):
            found |= {f"{part.name}.{inner.name}": getattr(value, inner.name) for inner in fields(value)}
        else:
            found[part.name] = value
    return found


def _changed(kind: str, old: Any, new: Any) -> Iterator[Change]:
    before, after = _facts(old), _facts(new)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Change(
                kind=kind,
                id=new.id,
                field=name,
                old=before.get(name),
                new=after.get(name),
                old_source=_source(old, name),
                new_source=_source(new, name),
            )


def _tables(old: Catalog, new: Catalog) -> Iterator[Change]:
    """What is known of families, places and networks: one change an entry of a table, in its words."""
    for table in TABLES:
        before, after = getattr(old, table), getattr(new, table)
        for key in sorted(before.keys() | after.keys(), key=str):
            if before.get(key) != after.get(key):
                yield _entry(table, key, before.get(key), after.get(key))
    for table in WHOLE:
        if getattr(old, table) != getattr(new, table):
            yield _entry(table, "", getattr(old, table), getattr(new, table))


def _entry(table: str, key: Any, old: Any, new: Any) -> Change:
    name = "/".join(key) if isinstance(key, tuple) else str(key)
    pair = [_told(one, other) for one, other in ((old, new), (new, old))]
    sources = [getattr(getattr(one, "provenance", None), "source", "") for one in (old, new)]
    return Change(
        kind="table", id=table, field=name, old=pair[0], new=pair[1], old_source=sources[0], new_source=sources[1]
    )


def _told(item: Any, other: Any) -> Any:
    """An entry by what sets it apart from the other one."""
    if item is None or not hasattr(item, "__dataclass_fields__"):
        return item
    differing = (part.name for part in fields(item) if getattr(item, part.name) != getattr(other, part.name, None))
    return ", ".join(f"{name} {getattr(item, name)}" for name in differing if name != "provenance")[:200] or "sourced"


def _source(item: Any, name: str) -> str:
    if isinstance(item, Offer):
        return item.provenance.source
    known = item.facts.get(name) or item.facts.get(name.split(".")[0])
    return known.source if known else ""


def _repriced(old: Offer, new: Offer) -> Iterator[Change]:
    if old.price_microusd_per_hour != new.price_microusd_per_hour:
        yield Change(
            kind="offer",
            id=new.id,
            field="price_usd_per_hour",
            old=old.price_microusd_per_hour / 1e6,
            new=new.price_microusd_per_hour / 1e6,
            old_source=old.provenance.source,
            new_source=new.provenance.source,
        )


def _drifted(kind: str, old: Any, new: Any) -> Iterator[Drift]:
    before = {"price": old.provenance} if isinstance(old, Offer) else old.facts
    after = {"price": new.provenance} if isinstance(new, Offer) else new.facts
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield Drift(kind=kind, id=new.id, field=name, old=before[name], new=after[name])


def _moved(old: Catalog, new: Catalog) -> Iterator[Moved]:
    before, after = cheapest_offers(old), cheapest_offers(new)
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            provider, device, model = key
            yield Moved(provider=provider, device=device, price_model=model, old=before.get(key), new=after.get(key))


def cheapest_offers(catalog: Catalog) -> dict[tuple[str, str, str], Cheapest]:
    """The cheapest offer without a flag, by provider, device and price model."""
    groups: dict[tuple[str, str, str], list[tuple[float, Offer]]] = defaultdict(list)
    for offer in catalog.offers:
        shape = catalog.shapes.get(offer.shape)
        if shape is not None and not offer.quality and offer.price_model != "auction":
            each = offer.price_microusd_per_hour / 1e6 / (shape.devices * shape.compute_share)
            groups[offer.provider, shape.device, offer.price_model].append((each, offer))
    return {key: _cheapest(catalog, found) for key, found in groups.items()}


def _cheapest(catalog: Catalog, found: Iterable[tuple[float, Offer]]) -> Cheapest:
    each, offer = min(found, key=lambda pair: (pair[0], pair[1].id))
    shape: Shape = catalog.shapes[offer.shape]
    device: Device = catalog.devices[shape.device]
    peak = max((device.peak_flop_per_s.get(name) or 0.0 for name in ("bf16", "fp16")), default=0.0)
    bandwidth = device.memory_bandwidth_bytes_per_s
    return Cheapest(
        offer=offer.id,
        usd_per_device=each,
        usd_per_pflop_per_s=each / (peak / 1e15) if peak else None,
        usd_per_gb=each * shape.compute_share / ((shape.memory_bytes_per_device or device.memory_bytes) / 1e9),
        usd_per_tb_per_s=each / (bandwidth / 1e12) if bandwidth else None,
    )
