"""What catalog.yaml changes of the catalog that it extends: single facts, prices, flags, discounts, removals.

    extends: default
    offers:    [{provider: aws, device: h100-sxm-80gb, price_model: on_demand, price_per_device: $2.10/h}]
    discounts: [{provider: gcp, device: tpu-*, fraction: 20 %}]
    devices:   [{id: h100-sxm-80gb, power: {tdp: 650 W}}]
    shapes:    [{id: aws/p5.48xlarge, network: 400 Gbit/s}]

Every change keeps a source (its own, else the file) and a date (its own, else that of the file).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace

from planner.carriers import dataclass
from planner.catalog.model import Device, Offer, Shape
from planner.catalog.offers import PRICE_MODELS, QUALITIES, is_price
from planner.catalog.pricing import OfferPattern, discounted, repriced, shape_price
from planner.catalog.reading import Fields, Origin, Problems, parsed
from planner.errors import Place
from planner.units import UnitError, parse_fraction, parse_price

_ACTIONS = ("price_per_device", "price_per_shape", "flag", "remove")
_PATTERN = tuple(part.name for part in fields(OfferPattern))
_UNFLAGGED = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferChange:
    """What is done to the offers that a pattern covers; one of the four is set."""

    pattern: OfferPattern
    place: Place
    origin: Origin
    microusd_per_device_hour: int | None = None
    microusd_per_shape_hour: int | None = None
    flag: str | None = None  # a quality; "" takes the flag away
    because: str = ""
    remove: bool = False

    def applied(self, offer: Offer, shape: Shape) -> Offer:
        """The offer with its new price or flag."""
        if self.flag is not None:
            return replace(offer, quality=self.flag, note=self.because or offer.note)
        price = self.microusd_per_shape_hour
        if self.microusd_per_device_hour is not None:
            price = shape_price(self.microusd_per_device_hour, shape)
        return repriced(offer, price or offer.price_microusd_per_hour, self.origin.provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDiscount:
    """A share off the listed price of the offers that a pattern covers."""

    pattern: OfferPattern
    place: Place
    origin: Origin
    fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything that one catalog.yaml changes; devices and shapes are read when it is known what there is."""

    devices: tuple[Fields, ...]
    shapes: tuple[Fields, ...]
    offers: tuple[OfferChange, ...]
    discounts: tuple[CatalogDiscount, ...]
    removed_devices: Mapping[str, Place]
    removed_shapes: Mapping[str, Place]

    @property
    def removals(self) -> tuple[OfferChange, ...]:
        """Offers that are taken out of what is extended."""
        return tuple(change for change in self.offers if change.remove)

    @property
    def edits(self) -> tuple[OfferChange, ...]:
        """New prices and flags."""
        return tuple(change for change in self.offers if not change.remove)


def read_changes(top: Fields, above: Origin, until: str = "") -> Changes:
    """The changes that a catalog.yaml states, those of offers that are dated after `until` left out.

    Parameters
    ----------
    top
        The whole of a catalog.yaml; its keys devices, shapes, offers and discounts are taken.
    above
        Source, date and status of a change that does not say its own.
    until
        ISO date: changes of offers, and discounts, of later dates do not count; empty: all count.
    """
    devices, removed_devices = _entries(top, "devices", above)
    shapes, removed_shapes = _entries(top, "shapes", above)
    offers = [change for item in top.items("offers") if (change := _offer_change(item, above))]
    discounts = [one for item in top.items("discounts") if (one := _discount(item, above))]
    return Changes(
        devices=devices,
        shapes=shapes,
        offers=tuple(change for change in offers if not until or change.origin.as_of <= until),
        discounts=tuple(one for one in discounts if not until or one.origin.as_of <= until),
        removed_devices=removed_devices,
        removed_shapes=removed_shapes,
    )


def _entries(top: Fields, key: str, above: Origin) -> tuple[tuple[Fields, ...], dict[str, Place]]:
    """Entries that change something by its id, and places of those that take it out."""
    kept, removed = [], {}
    for item in top.items(key):
        if _yes(item, "remove"):
            removed[item.text("id", required=True)] = item.node.place
            item.done()
        else:
            _demand_date(item, above)
            kept.append(item)
    return tuple(kept), removed


def _yes(item: Fields, key: str) -> bool:
    node = item.take(key)
    if node is not None and node.value is not True:
        item.problems.add("wrong-type", f"'{key}' of {item.what} wants true", node.place, "leave it out otherwise")
    return node is not None and node.value is True


def _demand_date(item: Fields, above: Origin) -> None:
    if not above.as_of and "as_of" not in item.left:
        hint = "add as_of: 2026-11-21 to it, or to the whole file"
        item.problems.add("missing-date", f"{item.what} does not say of which day it is", item.node.place, hint)


def _pattern(item: Fields) -> OfferPattern:
    """The offers that an entry is about."""
    if "price_model" in item.left:
        model = item.text("price_model", among=PRICE_MODELS)
        return OfferPattern(**{name: item.text(name) or None for name in _PATTERN[:-1]}, price_model=model or None)
    return OfferPattern(**{name: item.text(name) or None for name in _PATTERN})


def _offer_change(item: Fields, above: Origin) -> OfferChange | None:
    said = [name for name in _ACTIONS if name in item.left]
    place, pattern = item.node.place, _pattern(item)
    if len(said) != 1:
        hint = "one of " + ", ".join(_ACTIONS)
        item.problems.add("missing-key", f"{item.what} wants one thing done to its offers", place, hint)
        return None
    if pattern == OfferPattern():
        hint = "one of " + ", ".join(_PATTERN)
        item.problems.add("missing-key", f"{item.what} does not say which offers", place, hint)
        return None
    remove = _yes(item, "remove")
    if not remove:
        _demand_date(item, above)
    flag = item.text("flag", among=(*filter(None, QUALITIES), _UNFLAGGED)) if "flag" in item.left else None
    change = OfferChange(
        pattern=pattern,
        place=place,
        microusd_per_device_hour=_price(item, "price_per_device"),
        microusd_per_shape_hour=_price(item, "price_per_shape"),
        flag="" if flag == _UNFLAGGED else flag,
        because=item.text("because"),
        remove=remove,
        origin=item.origin(above),
    )
    item.done()
    return change


def _dollars(value: object, *, field: str) -> int:
    """A price; a catalog is read without the scenario, whose rates count for its own amounts alone."""
    try:
        return parse_price(value, field=field)
    except UnitError as error:
        if error.reference != "mixed-currency":
            raise
        raise UnitError(error.reference, f"{error.message} in a catalog", "write it in dollars, as $2.49/h") from None


def _price(item: Fields, key: str) -> int | None:
    node = item.take(key)
    price = None if node is None else parsed(node, _dollars, f"{key} of {item.what}", item.problems)
    if node is not None and price is not None and not is_price(price):
        hint = "no price is not a price of zero: write remove: true"
        item.problems.add("bad-price", f"the price is '{node.value}'", node.place, hint)
    return price


def _discount(item: Fields, above: Origin) -> CatalogDiscount | None:
    _demand_date(item, above)
    place, pattern, node = item.node.place, _pattern(item), item.take("fraction", required=True)
    fraction = parsed(node, parse_fraction, f"fraction of {item.what}", item.problems) if node else None
    origin = item.origin(above)
    item.done()
    if fraction is None or node is None:
        return None
    if not 0 <= fraction < 1:
        item.problems.add("out-of-range", f"a discount of {node.value} leaves no price", node.place, "write 20 %")
        return None
    return CatalogDiscount(pattern=pattern, place=place, origin=origin, fraction=fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """Devices and shapes that offers are of."""

    devices: Mapping[str, Device]
    shapes: Mapping[str, Shape]

    def covered(self, pattern: OfferPattern, offers: Iterable[Offer]) -> Iterator[Offer]:
        """Offers that a pattern covers, of shapes and devices that there are."""
        for offer in offers:
            shape = self.shapes.get(offer.shape)
            device = self.devices.get(shape.device) if shape else None
            if device is not None and pattern.covers(offer, device):
                yield offer


def without_removed(
    offers: dict[str, Offer], removals: Iterable[OfferChange], things: Things, problems: Problems
) -> dict[str, Offer]:
    """Offers that are left when those that an entry covers are taken out.

    Parameters
    ----------
    offers
        Offers of the catalog that is extended, by id.
    removals
        Entries that take offers out, each held against all of `offers`.
    things
        Devices and shapes that the offers are of.
    problems
        Where mistakes go: an entry that covers no offer.
    """
    left = offers
    for change in removals:
        gone = {offer.id for offer in things.covered(change.pattern, offers.values())}
        _demand_match(bool(gone), change.pattern, change.place, problems)
        left = {name: offer for name, offer in left.items() if name not in gone}
    return left


def with_changes(offers: dict[str, Offer], changes: Changes, things: Things, problems: Problems) -> dict[str, Offer]:
    """Offers at their own prices and flags, the others less the first discount that covers them.

    Parameters
    ----------
    offers
        Offers at their listed prices, by id; removals are done already.
    changes
        Of which edits and discounts are applied, in their order; a price that an edit set takes no discount.
    things
        Devices and shapes that the offers are of.
    problems
        Where mistakes go: an entry that covers no offer.
    """
    found, negotiated = dict(offers), set[str]()
    for change in changes.edits:
        covered = list(things.covered(change.pattern, found.values()))
        _demand_match(bool(covered), change.pattern, change.place, problems)
        for offer in covered:
            found[offer.id] = change.applied(offer, things.shapes[offer.shape])
        if change.flag is None:
            negotiated |= {offer.id for offer in covered}
    for discount in changes.discounts:
        covered = list(things.covered(discount.pattern, found.values()))
        _demand_match(bool(covered), discount.pattern, discount.place, problems)
        for offer in covered:
            if offer.id not in negotiated:
                by = ", ".join(filter(None, (discount.origin.source, discount.origin.as_of)))
                found[offer.id] = discounted(offer, discount.fraction, by)
                negotiated.add(offer.id)
    return found


def _demand_match(matched: bool, pattern: OfferPattern, place: Place, problems: Problems) -> None:
    if not matched:
        hint = "plan catalog list --allow-suspect shows every offer"
        problems.add("no-match", f"no offer is meant by {pattern}", place, hint)
