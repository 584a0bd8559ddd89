"""What prices of a catalog are worth: which offers a pattern covers, what a discount leaves, which are doubtful or old.

Doubtful is a price that stands far below those of the same device: a minimiser would take every one of them. How old
prices are on a given day no document says, since what a plan holds may not depend on the day it is read; the command
line tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase
from statistics import median

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape
from planner.catalog.names import device_matches, provider_matches, region_matches
from planner.errors import Problem

LESS, PLUS = ", less ", ", plus "  # how the source of a changed price goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPattern:
    """Offers by what they are; a part that is left out covers all."""

    offer: str | None = None  # id, with wildcards
    provider: str | None = None
    device: str | None = None
    shape: str | None = None
    region: str | None = None
    price_model: str | None = None

    def covers(self, offer: Offer, device: Device) -> bool:
        """Whether an offer of a device is meant."""
        return (
            (self.offer is None or fnmatchcase(offer.id, self.offer))
            and (self.provider is None or provider_matches(offer.provider, self.provider))
            and (self.device is None or device_matches(device, self.device))
            and (self.shape is None or fnmatchcase(offer.shape, self.shape))
            and (self.region is None or region_matches(offer, self.region))
            and (self.price_model is None or offer.price_model == self.price_model)
        )

    def __str__(self) -> str:
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return ", ".join(f"{name} {value}" for name, value in given.items() if value is not None) or "every offer"


def discounted(offer: Offer, fraction: float, by: str) -> Offer:
    """The offer at the price that a discount leaves, rounded half to even; a discount below zero is a rise.

    Its date and status stay those of the list price, which it is only as good as; its source says who takes
    how much off.

    Parameters
    ----------
    fraction
        Share of the list price that is taken off, below 1.  [1]
    by
        Who grants or states it.
    """
    left = Decimal(offer.price_microusd_per_hour) * (1 - Decimal(repr(fraction)))
    price = max(int(left.to_integral_value(rounding=ROUND_HALF_EVEN)), 1)
    source = f"{offer.provenance.source}{LESS if fraction >= 0 else PLUS}{abs(100 * fraction):g} % ({by})"
    return replace(offer, price_microusd_per_hour=price, provenance=replace(offer.provenance, source=source))


def is_discounted(offer: Offer) -> bool:
    """Whether a discount was taken off the listed price, or a rise put on it."""
    return LESS in offer.provenance.source or PLUS in offer.provenance.source


def is_own(offer: Offer) -> bool:
    """Whether a user negotiated the price, or asked what if: what is odd about it is meant."""
    return offer.provenance.status == "user" or is_discounted(offer)


def shape_price(microusd_per_device_hour: int, shape: Shape) -> int:
    """Price of an hour of a shape at a price of a device-hour, rounded half to even.  [micro-USD/h]

    A share of a device costs its share: a sixth of a card a sixth.
    """
    exact = Decimal(microusd_per_device_hour) * shape.devices * Decimal(repr(shape.compute_share))
    return max(int(exact.to_integral_value(rounding=ROUND_HALF_EVEN)), 1)


def repriced(offer: Offer, microusd_per_hour: int, provenance: Provenance) -> Offer:
    """The offer at a price of one's own; what was doubtful about the listed one does not matter any more.

    Parameters
    ----------
    offer
        The offer as it is listed.
    microusd_per_hour
        New price of one shape.  [micro-USD/h]
    provenance
        Source, date and status of the new price.
    """
    return replace(offer, price_microusd_per_hour=microusd_per_hour, provenance=provenance, quality="")


LEAST = 0.5  # of the median price of a device among offers of its kind; below it a price is suspect
FEWEST = 4  # offers that make a median
MARKS = ("suspect", "suspect_spot")


def with_doubtful(catalog: Catalog) -> Catalog:
    """The catalog with prices below half of the median of their device among offers of their kind marked suspect.

    Of a kind are offers of one price model by providers of one kind; who is of no known kind is not judged. Prices that
    the user gives are the user's own to judge, and bids of an auction are none. What is marked counts for the median,
    so that a catalog that was marked stays as it is.
    """
    groups: dict[tuple[str, str, str], list[tuple[float, Offer]]] = defaultdict(list)
    for offer in catalog.offers:
        shape, seller = catalog.shapes[offer.shape], catalog.providers.get(offer.provider)
        if seller is not None and offer.price_model != "auction" and offer.quality in ("", *MARKS):
            each = offer.price_microusd_per_hour / (shape.devices * shape.compute_share)
            groups[shape.device, offer.price_model, seller.kind].append((each, offer))
    middles = {key: median(each for each, _ in priced) for key, priced in groups.items() if len(priced) >= FEWEST}
    marked = {
        offer.id: "suspect_spot" if offer.price_model == "spot" else "suspect"
        for key, middle in middles.items()
        for each, offer in groups[key]
        if each < LEAST * middle and not offer.quality and not is_own(offer)
    }
    if not marked:
        return catalog
    offers = tuple(
        replace(offer, quality=marked[offer.id]) if offer.id in marked else offer for offer in catalog.offers
    )
    return replace(catalog, offers=offers)


OLD_DAYS = 180  # list prices that were followed stood about that long


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceAge:
    """Counts of prices by their age."""

    prices: int
    old: int  # more than OLD_DAYS
    unknown: int  # of no known date
    oldest: str  # ISO date of the oldest known one; "" when none is known
    days: int  # its age


def price_age(offers: Iterable[Offer], today: date) -> PriceAge:
    """How many prices are old, and how many of no known date. Prices given with the question count as new."""
    dates, unknown, every = [], 0, 0
    for offer in offers:
        every += 1
        if offer.provenance.status == "date-unknown":
            unknown += 1
        elif offer.provenance.as_of:
            dates.append(offer.provenance.as_of)
    ages = [(today - date.fromisoformat(text)).days for text in dates]
    old = sum(age > OLD_DAYS for age in ages)
    return PriceAge(prices=every, old=old, unknown=unknown, oldest=min(dates, default=""), days=max(ages, default=0))


def gone_stale(catalog: Catalog, today: date) -> Problem | None:
    """A warning when most prices that have a date are old: nobody has refreshed them; None while they are not.

    A few old prices among new ones, and prices without a date, are told by the plans that use them.
    """
    age = price_age(catalog.offers, today)
    return stale_prices(catalog, today) if 2 * age.old > age.prices - age.unknown else None


def stale_prices(catalog: Catalog, today: date) -> Problem | None:
    """A warning when prices are old or of no known date; None when all are new."""
    age = price_age(catalog.offers, today)
    told = []
    if age.old:
        share = "" if age.old == age.prices else f"{age.old:,} of {age.prices:,} "
        upto = "" if age.old == age.prices else "up to "
        told.append(f"{share}prices are {upto}{age.days:,} days old (as of {age.oldest})")
    if age.unknown:
        told.append(f"{age.unknown:,} of {age.prices:,} prices are of no known date")
    if not told:
        return None
    message = f"catalog {catalog.name}: {'; '.join(told)}; run stands, totals may not"
    hint = "newer ones: plan catalog import, --prices FILE, or --price 'DEVICE=$2.50/h'"
    return Problem(reference="stale-prices", message=message, hint=hint, severity="warning")
