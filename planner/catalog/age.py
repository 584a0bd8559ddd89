"""How old the prices of a catalog are on a given day.

A document never says it: what a plan holds may not depend on the day it is read. The command line tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Offer
from planner.errors import Problem

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
