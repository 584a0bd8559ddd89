"""Cards that a question about memory is asked of: every device of the catalog, those of one size together."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from planner.carriers import dataclass
from planner.equations import memory as mem

if TYPE_CHECKING:
    from planner.catalog.model import Catalog, Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A size to fill: its label, its capacity, and what a process may use of it.  [B]"""

    label: str
    capacity_bytes: float
    usable_bytes: float
    devices: tuple[str, ...] = field(default=())  # of the catalog, most offered first; () where only a size is given
    offers: int = 0  # of the catalog, for any of them


def card(
    label: str, capacity_bytes: float, reserved_bytes: float | None = None, *, devices: tuple[str, ...] = (),
    offers: int = 0,
) -> Card:  # fmt: skip
    """A card of a capacity, less what the driver and the context take.

    Parameters
    ----------
    label
        As people read it.
    capacity_bytes
        Of one device.  [B]
    reserved_bytes
        What driver, context and communication library take; None: not known, and assumed.  [B]
    devices
        Ids of the catalog, most offered first; empty where only a size is given.
    offers
        Of the catalog, for any of them.
    """
    reserved = float("nan") if reserved_bytes is None else reserved_bytes
    return Card(
        label=label,
        capacity_bytes=capacity_bytes,
        usable_bytes=float(mem.usable_memory_bytes(capacity_bytes, reserved)),
        devices=devices,
        offers=offers,
    )


def marketed_card(gigabytes: float) -> Card:
    """A card as it is sold: "80 GB" holds 80 × 2^30 bytes."""
    return card(f"{gigabytes:g} GB", gigabytes * 2.0**30)


def device_card(device: Device) -> Card:
    """One device of the catalog."""
    return card(device.id, device.memory_bytes, device.reserved_memory_bytes, devices=(device.id,))


def catalog_cards(catalog: Catalog, use: str) -> tuple[Card, ...]:
    """Every device that is used for training or serving, smallest memory first; one card for each size."""
    offered = Counter(catalog.shapes[offer.shape].device for offer in catalog.offers)
    sizes: dict[tuple[int, float | None], list[Device]] = defaultdict(list)
    for device in catalog.devices.values():
        if use in device.uses:
            sizes[device.memory_bytes, device.reserved_memory_bytes].append(device)
    cards = []
    for (capacity, reserved), same in sizes.items():
        names = tuple(sorted((device.id for device in same), key=lambda name: -offered[name]))
        more = f" +{len(names) - 1}" if len(names) > 1 else ""
        size = next(device.memory_label for device in same if device.id == names[0])
        label = f"{size}: {names[0]}{more}"
        cards.append(card(label, capacity, reserved, devices=names, offers=sum(offered[name] for name in names)))
    return tuple(cards[index] for index in np.argsort([one.usable_bytes for one in cards], kind="stable"))
