"""Reads hardware/offers/*.csv: a shape at a price in a place; and offers that a user gives with rates of their own.

Those have a name and a price an hour, and no device that a catalog knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.catalog.reading import Problems, Row, is_date, open_csv
from planner.spelling import closest

GIVEN = "given"  # as provider and price model


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One offer of a fleet's own table of rates."""

    fleet: str
    name: str
    price_microusd_per_hour: int
    source: str  # the file that says so

    @property
    def offer(self) -> Offer:
        """The offer: one shape that goes by its name, in no place."""
        return Offer(
            id=f"{GIVEN}:{self.fleet}:{self.name}",
            provider=GIVEN,
            region="",
            zone="",
            country="",
            shape=f"{GIVEN}/{self.name}",
            price_model=GIVEN,
            price_microusd_per_hour=self.price_microusd_per_hour,
            provenance=Provenance(source=self.source, as_of="", status="user"),
        )

    @property
    def device(self) -> Device:
        """Something that serves at the rates given: nothing else is known of it."""
        return Device(
            id=self.name,
            vendor="",
            kind=GIVEN,
            family=GIVEN,
            aliases=(),
            memory_label="",
            memory_bytes=0,
            reserved_memory_bytes=0,
            memory_bandwidth_bytes_per_s=None,
            peak_flop_per_s={},
            measured_matmul_flop_per_s={},
            scale_up=None,
            host_link_bytes_per_s=None,
            tdp_w=None,
            frameworks=(),
            uses=("serving",),
        )

    @property
    def shape(self) -> Shape:
        """What one hour of the price rents: counted as one device."""
        return Shape(
            id=f"{GIVEN}/{self.name}",
            provider=GIVEN,
            name=self.name,
            kind=GIVEN,
            device=self.device.id,
            devices=1,
        )


def with_given(catalog: Catalog, given: Iterable[Given]) -> Catalog:
    """The catalog with given offers, their shapes and devices beside its own; its digest stays that of the files.

    A device of the catalog that has the name of a given one stays what it is.
    """
    found = tuple(given)
    if not found:
        return catalog
    return replace(
        catalog,
        devices={**{one.device.id: one.device for one in found}, **catalog.devices},
        shapes={**catalog.shapes, **{one.shape.id: one.shape for one in found}},
        offers=tuple(sorted((*catalog.offers, *(one.offer for one in found)), key=lambda offer: offer.id)),
    )


PRICE = "price_usd_per_hour_per_shape"
PRICE_MODELS = ("on_demand", "spot", "commitment_1y", "commitment_3y", "block", "calendar", "flex", "auction")
MOST_USD_PER_HOUR = 1_000_000_000  # of one shape; beyond it a price is a slip of the pen
QUALITIES = ("", "suspect", "suspect_spot", "sentinel", "stale", "placeholder")
REQUIRED = ("offer", "provider", "shape", "region", "price_model", PRICE, "as_of", "status", "source")
OPTIONAL = (
    "zone", "country", "max_shapes", "quality", "note", "min_term_hours", "max_term_hours", "term_step_hours",
    "upfront_fraction", "start_rule", "cancel_rule", "min_shapes", "interruptible", "mean_hours_between_interruptions",
    "not_before", "not_after", "confirmed_on", "contract",
)  # fmt: skip


def read_offers(path: Path, shapes: Collection[str], taken: set[tuple[str, str]], problems: Problems) -> list[Offer]:
    """Every line of one file; an offer may be listed at the prices of several dates.

    Parameters
    ----------
    shapes
        Ids of the shapes that there are.
    taken
        Ids and dates of the files before; grows.
    """
    offers = []
    for row in open_csv(path, REQUIRED, OPTIONAL, problems):
        offer = read_offer(row, shapes, problems)
        key = (row["offer"], row["as_of"])
        if key in taken:
            hint = "number them: ...:2, or give each its date"
            problems.add("duplicate-id", f"offer {row['offer']} is given twice", row.place, hint)
        taken.add(key)
        if offer:
            offers.append(offer)
    return offers


def newest(offers: Iterable[Offer], until: str = "") -> dict[str, Offer]:
    """Offers by id, each at its newest price of the day `until` or earlier; one that has none is left out."""
    found: dict[str, Offer] = {}
    for offer in offers:
        if until and offer.provenance.as_of > until:
            continue
        known = found.get(offer.id)
        if known is None or offer.provenance.as_of > known.provenance.as_of:
            found[offer.id] = offer
    return found


def placed(offers: Mapping[str, Offer]) -> dict[str, Offer]:
    """Offers with the country that others tell of their provider's region, where they tell none.

    A quote without a country in a region that the catalog knows was in no country: `regions: [us]` did not find it.
    """
    told = {(one.provider, one.region): one.country for one in offers.values() if one.country}
    return {
        name: one if one.country else replace(one, country=told.get((one.provider, one.region), ""))
        for name, one in offers.items()
    }


def read_offer(row: Row, shapes: Collection[str], problems: Problems) -> Offer | None:
    """The offer of one line, or None after a problem with its price was noted.

    Parameters
    ----------
    row
        A line of a price file.
    shapes
        Ids of the shapes that there are.
    problems
        Where mistakes go; after one that is not about the price the offer is given all the same.
    """
    # as plans write it, too: aws/p5.48xlarge
    shape = row["shape"] if row["shape"].startswith(f"{row['provider']}/") else f"{row['provider']}/{row['shape']}"
    if shape not in shapes:
        near = closest(shape[:200], list(shapes))
        hint = f"did you mean '{near[0]}'? else " if near else ""
        problems.add("unknown-shape", f"there is no shape '{shape}'", row.place, f"{hint}add it to hardware/shapes")
    for column, allowed in (("price_model", PRICE_MODELS), ("quality", QUALITIES)):
        if row[column] not in allowed:
            hint = "one of: " + ", ".join(filter(None, allowed))
            problems.add("unknown-value", f"{column} is '{row[column]}'", row.place, hint)
    if row["min_shapes"] not in ("", "1"):
        hint = "leave it out: any count of shapes can be planned"
        problems.add("not-yet", "a least number of shapes is not built yet", row.place, hint)
    price = read_price(row, problems)
    if price is None:
        return None
    confirmed = tuple(part for part in row["confirmed_on"].split(";") if part)
    for text in (*confirmed, row["not_before"], row["not_after"]):
        if text and not is_date(text):
            problems.add("bad-date", f"'{text[:40]}' is no date", row.place, "write a date such as 2026-11-21")
    if row["not_before"] and row["not_after"] and row["not_after"] < row["not_before"]:
        problems.add("bad-date", "not_after is before not_before", row.place, "swap the two")
    return Offer(
        id=row["offer"],
        provider=row["provider"],
        region=row["region"],
        zone=row["zone"],
        country=row["country"],
        shape=shape,
        price_model=row["price_model"],
        price_microusd_per_hour=price,
        max_shapes=row.whole("max_shapes", problems),
        min_term_hours=row.number("min_term_hours", problems),
        max_term_hours=row.number("max_term_hours", problems),
        term_step_hours=row.number("term_step_hours", problems),
        upfront_fraction=row.number("upfront_fraction", problems, most=1.0),
        quality=row["quality"],
        note=row["note"],
        not_before=row["not_before"],
        not_after=row["not_after"],
        confirmed_on=confirmed,
        contract=row["contract"],
        provenance=row.provenance(problems),
    )


def is_price(microusd_per_hour: int) -> bool:
    """Whether an amount can be the price of an hour: above zero, and no slip of the pen.  [micro-USD/h]"""
    return 0 < microusd_per_hour <= MOST_USD_PER_HOUR * 1_000_000


def read_price(row: Row, problems: Problems) -> int | None:
    """The price, exactly; a price that no micro-dollar can hold is a slip of the pen."""
    text = row[PRICE]
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 < price <= MOST_USD_PER_HOUR:
        hint = "leave the row out when it is not sold: no price is not a price of zero"
        if any(map(str.isdigit, text)) and not price.is_finite():
            hint = "write dollars as a number alone, with a dot before the cents: 31.50"
        problems.add("bad-price", f"the price is '{text}'", row.place, hint)
        return None
    micro = price * 1_000_000
    if micro != micro.to_integral_value():
        problems.add("bad-price", f"the price {text} is finer than a micro-dollar", row.place, "round it to 6 decimals")
        return None
    return int(micro)
