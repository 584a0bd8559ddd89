"""Which offers a pattern covers, what a discount leaves of a price, what a device-hour makes of a shape-hour."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import ROUND_HALF_EVEN, Decimal
from fnmatch import fnmatchcase

from planner.carriers import dataclass
from planner.catalog.model import Device, Offer, Provenance, Shape
from planner.catalog.names import device_matches, provider_matches
from planner.catalog.regions import region_matches

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
