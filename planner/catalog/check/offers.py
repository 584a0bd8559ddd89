"""Prices that a minimiser would seek out: zeros, sentinels, swapped columns, placeholders, twins, outliers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from statistics import median

from planner.catalog.age import OLD_DAYS, price_age
from planner.catalog.check.findings import error, warning
from planner.catalog.doubtful import MARKS
from planner.catalog.model import Catalog, Offer
from planner.catalog.pricing import is_own
from planner.errors import Problem

SENTINEL_MICROUSD = 700_000_000  # stands for "no price" in one public catalog
TYPICAL = (0.5, 4.0)  # times the median price of a device on the same terms at sellers of one kind; regions differ by 2
TWO_LEVELS = 1.4  # median over cheapest place of one shape at one provider: what is sold on other terms is far below
FAR = 2.5  # dearest place over the median; regions reach twice the cheapest
FEW = 20  # flagged offers of a file that are named one by one


def check_offers(catalog: Catalog) -> Iterator[Problem]:
    """Each price alone, beside its twins, and beside those of the same device."""
    for offer in catalog.offers:
        yield from _check_offer(offer, catalog)
    yield from _check_flags(catalog.offers)
    yield from _check_duplicates(catalog.offers)
    yield from _check_spot(catalog.offers)
    yield from _check_typical(catalog)
    yield from _check_levels(catalog.offers)


def _check_offer(offer: Offer, catalog: Catalog) -> Iterator[Problem]:
    file = f"offers/{offer.provider}.csv"
    if offer.shape not in catalog.shapes:
        yield error("unknown-shape", f"{offer.id}: there is no shape '{offer.shape}'", file)
    if not math.isfinite(offer.price_microusd_per_hour) or offer.price_microusd_per_hour <= 0:
        hint = "no price is not a price of zero: leave the row out"
        yield error("bad-price", f"{offer.id} costs {offer.price_microusd_per_hour} micro-dollars", file, hint)
    if offer.price_microusd_per_hour == SENTINEL_MICROUSD and offer.quality != "sentinel":
        yield error("sentinel", f"{offer.id} costs 700.00, a known placeholder", file, "drop the row")


def _check_flags(offers: Iterable[Offer]) -> Iterator[Problem]:
    """Prices that look wrong, by file: one line for all that are flagged alike."""
    flagged: dict[tuple[str, str], list[str]] = defaultdict(list)
    for offer in offers:
        if offer.quality:
            flagged[f"offers/{offer.provider}.csv", offer.quality].append(offer.id)
    for (file, quality), names in flagged.items():
        what = ", ".join(names) if len(names) <= FEW else f"{len(names):,} prices of {file}"
        verb = "are" if len(names) > 1 else "is"
        hint = (
            "newer prices: plan catalog refresh" if quality in ("stale", "placeholder") else "correct it, or leave it"
        )
        yield warning("flagged", f"{what} {verb} flagged {quality}: no plan takes such a price", file, hint)


def _check_duplicates(offers: Iterable[Offer]) -> Iterator[Problem]:
    seen: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        terms = offer.contract, offer.min_term_hours, offer.max_term_hours, offer.upfront_fraction
        key = (offer.provider, offer.region, offer.zone, offer.shape, offer.price_model, *terms)
        first = seen.setdefault(key, offer)
        if first is not offer:
            same = first.price_microusd_per_hour == offer.price_microusd_per_hour
            message = f"{first.id} and {offer.id} are one offer" + ("" if same else " at two prices")
            yield warning("duplicate-offer", message, f"offers/{offer.provider}.csv")


def _check_spot(offers: Iterable[Offer]) -> Iterator[Problem]:
    steady = {(o.provider, o.region, o.zone, o.shape): o for o in offers if o.price_model == "on_demand"}
    for spot in offers:
        demand = steady.get((spot.provider, spot.region, spot.zone, spot.shape))
        if spot.price_model != "spot" or demand is None or spot.quality or demand.quality:
            continue
        price, full, file = spot.price_microusd_per_hour, demand.price_microusd_per_hour, f"offers/{spot.provider}.csv"
        if price > full and (is_own(demand) or is_own(spot)):
            message = f"{spot.id} is dearer than {demand.id} at your own price: spot saves nothing there"
            yield warning("spot-above-on-demand", message, file)
        elif price > full:
            yield error("spot-above-on-demand", f"{spot.id} is dearer than {demand.id}", file, "swapped?")
        elif price == full:
            yield warning("spot-equals-on-demand", f"{spot.id} equals {demand.id}: no spot market?", file)
        elif price * 10 == full:
            yield warning("spot-placeholder", f"{spot.id} is exactly a tenth of {demand.id}", file)


def check_dates(catalog: Catalog, today: date) -> Iterator[Problem]:
    """Prices of no known date, and old ones, by provider."""
    files: dict[str, list[Offer]] = defaultdict(list)
    for offer in catalog.offers:
        files[f"offers/{offer.provider}.csv"].append(offer)
    for file, offers in files.items():
        age = price_age(offers, today)
        if age.unknown:
            yield warning("date-unknown", f"{age.unknown} prices of {file} carry no date of their own", file)
        if age.old:
            yield warning(
                "old-price",
                f"{age.old} prices of {file} are older than {OLD_DAYS} days",
                file,
                "newer ones: plan catalog refresh",
            )


def _check_typical(catalog: Catalog) -> Iterator[Problem]:
    groups: dict[tuple[str, str, str], list[tuple[Offer, float]]] = defaultdict(list)
    for offer in catalog.offers:
        shape, seller = catalog.shapes.get(offer.shape), catalog.providers.get(offer.provider)
        if shape and offer.quality in ("", *MARKS) and offer.price_model != "auction":
            each = offer.price_microusd_per_hour / (shape.devices * shape.compute_share)
            groups[shape.device, offer.price_model, seller.kind if seller else ""].append((offer, each))
    for (device, model, kind), priced in groups.items():
        middle = median(each for _, each in priced)
        for offer, each in priced:
            if not offer.quality and not TYPICAL[0] * middle <= each <= TYPICAL[1] * middle:
                message = (
                    f"{offer.id}: {each / 1e6:.2f} $/h a device, {each / middle:.2g} x the median {model} {device}"
                    f"{f' of a {kind}' if kind else ''}"
                )
                hint = "of one machine, or of a device? of other terms?"
                yield warning("unusual-price", message, f"offers/{offer.provider}.csv", hint)


def _check_levels(offers: Iterable[Offer]) -> Iterator[Problem]:
    levels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for offer in offers:
        if offer.price_model == "on_demand" and not offer.quality:
            levels[offer.provider, offer.shape].append(offer.price_microusd_per_hour)
    for (provider, shape), prices in levels.items():
        middle = median(prices)
        if middle >= TWO_LEVELS * min(prices) or max(prices) >= FAR * middle:
            least, most = (f"{price / 1e6:g}" for price in (min(prices), max(prices)))
            message = f"{shape} costs {least} to {most} $/h, {middle / 1e6:g} in the median: two price levels"
            yield warning("two-levels", message, f"offers/{provider}.csv", "a flex or calendar price among on-demand?")
