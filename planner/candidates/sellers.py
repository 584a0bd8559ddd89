"""Whom a scenario rents from: providers by name and by kind, and marketplaces only where they are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planner.catalog.model import Catalog, Offer
from planner.catalog.names import device_matches, provider_matches
from planner.catalog.offers import GIVEN
from planner.errors import InputError, Problem
from planner.estimate.market import is_own_contract
from planner.scenario.schema import Hardware

MARKETPLACE = "marketplace"
Judged = tuple[Offer, str]  # an offer, and why it may not be used: "" where it may


def is_seller(offer: Offer, hardware: Hardware) -> bool:
    """Whether a scenario may rent from the provider of an offer; contracts of one's own are with whoever signed."""
    return is_own_contract(offer) or offer.provider == GIVEN or is_asked(offer.provider, hardware)


def is_asked(provider: str, hardware: Hardware) -> bool:
    """Whether a provider is among those that a scenario names, and not among those that it leaves out."""
    return _covered(provider, hardware.providers) and not is_excluded(provider, hardware)


def is_excluded(provider: str, hardware: Hardware) -> bool:
    """Whether a scenario leaves a provider out by name."""
    return _covered(provider, hardware.exclude)


def with_promise(judged: Sequence[Judged], hardware: Hardware, catalog: Catalog) -> list[Judged]:
    """Offers of kinds of providers that are not asked for refused, too.

    Nobody promises capacity on a marketplace: suppliers come and go. Its offers count where the scenario names the
    provider or the kind, and where nobody else sells what a pattern of `allow` means.

    Parameters
    ----------
    judged
        Offers with the verdict of all other filters.
    hardware
        Kinds and names of providers that are asked for.
    catalog
        Kinds of the providers.
    """
    kinds = {name: seller.kind for name, seller in catalog.providers.items()}
    if hardware.kinds is not None:
        wanted = set(hardware.kinds)
        return [
            (offer, reason or ("" if is_brought(offer) or kinds.get(offer.provider, "") in wanted else "kind"))
            for offer, reason in judged
        ]
    alone = only_sellers(judged, hardware, catalog)
    return [
        (offer, reason or (MARKETPLACE if _unasked(offer, hardware, catalog) and offer.id not in alone else ""))
        for offer, reason in judged
    ]


def only_sellers(judged: Iterable[Judged], hardware: Hardware, catalog: Catalog) -> set[str]:
    """Offers of marketplaces for devices of a pattern of `allow` that nobody else sells on the terms asked for.

    Parameters
    ----------
    judged
        Offers with the verdict of all other filters; those that may not be used do not count.
    hardware
        Patterns of devices that are allowed, and names of providers.
    catalog
        Devices, and kinds of the providers.

    Returns
    -------
    Ids of offers.
    """
    fitting = [offer for offer, reason in judged if not reason]
    found = set[str]()
    for pattern in hardware.allow:
        meant = {one.id for one in catalog.devices.values() if device_matches(one, pattern)}
        mine = [offer for offer in fitting if catalog.shapes[offer.shape].device in meant]
        if mine and all(_unasked(offer, hardware, catalog) for offer in mine):
            found.update(offer.id for offer in mine)
    return found


def _unasked(offer: Offer, hardware: Hardware, catalog: Catalog) -> bool:
    """Whether an offer is of a marketplace that the scenario does not name."""
    seller = catalog.providers.get(offer.provider)
    if seller is None or seller.kind != MARKETPLACE or is_brought(offer):
        return False
    return not any(pattern != "*" and provider_matches(offer.provider, pattern) for pattern in hardware.providers)


def is_brought(offer: Offer) -> bool:
    """Whether the user brought the offer: a contract, a table of rates, or a price that was negotiated."""
    return is_own_contract(offer) or offer.provider == GIVEN or offer.provenance.status == "user"


def _covered(provider: str, patterns: Iterable[str]) -> bool:
    return any(provider_matches(provider, pattern) for pattern in patterns)


def demand_sold(hardware: Hardware, catalog: Catalog, allowed: Mapping[str, bool]) -> None:
    """Refuse price models that are asked for and on which nothing that is allowed is sold.

    Parameters
    ----------
    hardware
        Nothing is refused where it leaves price models out.
    catalog
        What is offered.
    allowed
        Whether each device may be used, by id.

    Raises
    ------
    InputError
        Each of them, with the price models that those devices are offered on; contracts of one's own count.
    """
    if "pricing" not in hardware.model_fields_set:
        return
    mine = [offer for offer in catalog.offers if allowed[catalog.shapes[offer.shape].device]]
    sold = {offer.price_model for offer in mine} | {contract.price_model for contract in hardware.contracts}
    asked = sorted(sold - {"auction"})  # which nobody can ask for
    hint = f"those devices are offered as {', '.join(asked)}; a price of your own: hardware.contracts"
    problems = [
        Problem(
            reference="no-offer",
            message=f"hardware.pricing: nothing that is allowed is offered as {model}",
            hint=hint,
        )
        for model in hardware.pricing
        if mine and model not in sold
    ]
    if problems:
        raise InputError(*problems)
