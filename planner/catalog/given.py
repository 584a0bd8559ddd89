"""Offers that a user gives with rates of their own: a name and a price an hour, no device that a catalog knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device, Offer, Provenance, Shape

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
