"""The market that a scenario sees: the catalog's offers less its discounts, and contracts and rates of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance
from planner.catalog.names import find_shape
from planner.catalog.offers import GIVEN, Given, with_given
from planner.catalog.pricing import OfferPattern, discounted
from planner.errors import InputError
from planner.estimate.given import given_offers
from planner.scenario.schema import Contract, Discount, Scenario

OWN_CONTRACT = "contract:"  # how the ids of the scenario's own contracts begin
CAP = "catalog.offers["  # how the names of limits begin that an offer states itself
METERED = ("on_demand", "spot", "flex")  # price models that are paid by the hour that something runs


def is_own_contract(offer: Offer) -> bool:
    """Whether the scenario states this contract: it may be used whatever `hardware.pricing` says."""
    return offer.id.startswith(OWN_CONTRACT)


def cap_name(offer: Offer) -> str:
    """Name of the limit on all that is held of a metered offer at one time, its `max_shapes`.

    >>> cap_name(Offer(id="a:r1:s:spot", provider="a", region="r1", zone="", country="", shape="a/s",
    ...     price_model="spot", price_microusd_per_hour=1, provenance=Provenance(source="", as_of="", status="user")))
    'catalog.offers[a:r1:s:spot].max_shapes'
    """
    return f"{CAP}{offer.id.replace('@', '%40')}].max_shapes"  # what follows @ in the name of a limit is a time


def market(scenario: Scenario, catalog: Catalog) -> Catalog:
    """The catalog with what the scenario says of prices; its digest stays that of the files.

    Raises
    ------
    InputError
        A contract names a shape that the catalog does not have.
    """
    contracts = tuple(contract_offers(scenario, catalog)) if scenario.hardware.contracts else ()
    given, discounts = tuple(given_offers(scenario)), scenario.hardware.discounts
    return _market(_Asked(catalog=catalog, given=given, contracts=contracts, discounts=discounts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """A catalog as it is, and what a scenario says of prices: equal for equal words about the same catalog."""

    catalog: Catalog
    given: tuple[Given, ...]
    contracts: tuple[Offer, ...]
    discounts: tuple[Discount, ...]

    def __eq__(self, other: object) -> bool:
        """The same catalog, not one like it: that is never compared offer by offer."""
        if not isinstance(other, _Asked) or self.catalog is not other.catalog:
            return False
        mine, theirs = ((one.given, one.contracts, one.discounts) for one in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        """Of the catalog alone: there are few, and few markets of each."""
        return hash(id(self.catalog))


@lru_cache(maxsize=8)  # asked by listings, by the verifier, and by further questions at the same prices
def _market(asked: _Asked) -> Catalog:
    known = with_given(asked.catalog, asked.given)
    if not asked.contracts and not asked.discounts:
        return known
    discounts = [(_pattern(one), one) for one in asked.discounts]
    offers = [_discounted(offer, known.devices[known.shapes[offer.shape].device], discounts) for offer in known.offers]
    return replace(known, offers=tuple(sorted((*offers, *asked.contracts), key=lambda offer: offer.id)))


def contract_offers(scenario: Scenario, catalog: Catalog) -> Iterator[Offer]:
    """The scenario's own contracts as offers; a discount does not touch what was negotiated."""
    countries = {(offer.provider, offer.region): offer.country for offer in catalog.offers}
    for index, contract in enumerate(scenario.hardware.contracts):
        yield _contract(index, contract, scenario, catalog, countries)


def _contract(
    index: int, contract: Contract, scenario: Scenario, catalog: Catalog, countries: dict[tuple[str, str], str]
) -> Offer:
    try:
        shape = find_shape(catalog, contract.shape)
    except InputError as error:
        place = scenario.places.get(f"hardware.contracts[{index}].shape")
        raise InputError(*(replace(one, places=(place,) if place else ()) for one in error.problems)) from None
    least, most, step = contract.hours
    return Offer(
        id=f"{OWN_CONTRACT}{index}:{shape.id}:{contract.region}",
        provider=shape.provider,
        region=contract.region,
        zone=contract.zone or "",
        country=countries.get((shape.provider, contract.region), ""),
        shape=shape.id,
        price_model=contract.price_model,
        price_microusd_per_hour=contract.price_microusd_per_hour,
        max_shapes=contract.max_shapes,
        min_term_hours=least,
        max_term_hours=most,
        term_step_hours=step,
        wait_hours=None if contract.wait_s is None else contract.wait_s / 3600.0,
        provenance=Provenance(source=contract.source or "scenario", as_of="", status="user"),
    )


def _discounted(offer: Offer, device: Device, discounts: Sequence[tuple[OfferPattern, Discount]]) -> Offer:
    """The offer at the price that the first matching discount leaves."""
    found = next((one for pattern, one in discounts if pattern.covers(offer, device)), None)
    if found is None or offer.price_model == GIVEN:
        return offer
    return discounted(offer, found.fraction, "scenario")


def idle_discounts(scenario: Scenario, catalog: Catalog, offers: Iterable[Offer]) -> dict[int, bool]:
    """Discounts that are the first to fit none of some offers, by number; whether they fit some where another is first.

    Parameters
    ----------
    scenario
        Its discounts, in their order; one of everything, as other prices are asked, is left out.
    catalog
        Shapes and devices of the offers.
    offers
        What may be used.
    """
    patterns = [_pattern(one) for one in scenario.hardware.discounts]
    fits = [False] * len(patterns)
    first = [False] * len(patterns)
    for offer in offers:
        device = catalog.devices[catalog.shapes[offer.shape].device]
        mine = [k for k, pattern in enumerate(patterns) if not is_own_contract(offer) and pattern.covers(offer, device)]
        for k in mine:
            fits[k] = True
        for k in mine[:1]:
            first[k] = True
    return {k: fits[k] for k, pattern in enumerate(patterns) if not first[k] and pattern != OfferPattern()}


def _pattern(one: Discount) -> OfferPattern:
    return OfferPattern(provider=one.provider, device=one.device, region=one.region, price_model=one.price_model)
