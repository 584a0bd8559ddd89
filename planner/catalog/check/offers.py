"""Prices that a minimiser would seek out: zeros, sentinels, swapped columns, placeholders, twins, outliers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from statistics import median

from planner.catalog.age import OLD_DAYS, price_age
from planner.catalog.check.findings import error, warning
from planner.catalog.model import Catalog, Offer
from planner.catalog.pricing import is_own
from planner.errors import Problem

SENTINEL_MICROUSD = 700_000_000  # stands for "no price" in one public catalog
TYPICAL = (0.5, 2.0)  # times the median price of the same device on the same terms
TWO_LEVELS = 1.4  # dearest over cheapest place of one shape at one provider


def check_offers(catalog: Catalog) -> Iterator[Problem]:
    """Each price alone, beside its twins, and beside those of the same device."""
    for offer in catalog.offers:
        yield from _check_offer(offer, catalog)
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
    if offer.quality:
        yield warning("flagged", f"{offer.id} is flagged {offer.quality}", file)


def _check_duplicates(offers: Iterable[Offer]) -> Iterator[Problem]:
    seen: dict[tuple[str, ...], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.region, offer.zone, offer.shape, offer.price_model)
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
            yield warning("old-price", f"{age.old} prices of {file} are older than {OLD_DAYS} days", file)


def _check_typical(catalog: Catalog) -> Iterator[Problem]:
    groups: dict[tuple[str, str], list[tuple[Offer, float]]] = defaultdict(list)
    for offer in catalog.offers:
        shape = catalog.shapes.get(offer.shape)
        if shape and not offer.quality and offer.price_model != "auction":
            each = offer.price_microusd_per_hour / (shape.devices * shape.compute_share)
            groups[shape.device, offer.price_model].append((offer, each))
    for (device, model), priced in groups.items():
        middle = median(each for _, each in priced)
        for offer, each in priced:
            if not TYPICAL[0] * middle <= each <= TYPICAL[1] * middle:
                message = (
                    f"{offer.id}: {each / 1e6:.2f} $/h a device, {each / middle:.2g} x the median {model} {device}"
                )
                yield warning("unusual-price", message, f"offers/{offer.provider}.csv")


def _check_levels(offers: Iterable[Offer]) -> Iterator[Problem]:
    levels: dict[tuple[str, str], list[int]] = defaultdict(list)
    for offer in offers:
        if offer.price_model == "on_demand":
            levels[offer.provider, offer.shape].append(offer.price_microusd_per_hour)
    for (provider, shape), prices in levels.items():
        if max(prices) >= TWO_LEVELS * min(prices) > 0:
            message = f"{shape} costs {min(prices) / 1e6:g} and {max(prices) / 1e6:g} $/h: two price levels"
            yield warning("two-levels", message, f"offers/{provider}.csv", "a flex or calendar price among on-demand?")
