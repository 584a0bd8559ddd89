"""Marks prices that stand far below those of the same device: a minimiser would take every one of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import median

from planner.catalog.model import Catalog, Offer
from planner.catalog.pricing import is_own

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
