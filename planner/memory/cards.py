"""Cards that a question about memory is asked of, what rules of thumb say of them, and ways out where none fits.

Asked is every device of the catalog, those of one size together. Other tools and rules of thumb stand side by side with
ours. Ways out are worked out with the same equations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations import memory as mem
from planner.equations.activations import founding_activation_values
from planner.equations.memory import adam_mixed_precision_state_bytes
from planner.equations.rules import estimate_memory_tool_bytes
from planner.memory.model import CardFit, FewestDevices, WithChange

if TYPE_CHECKING:
    from planner.catalog.model import Catalog, Device
    from planner.memory.model import Rule


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


_VALUE_BYTES = 2  # the founding rule counts 16-bit values


def training_rules(arch: Architecture, batch: int, sequence_length: int, state_bytes: float | None) -> list[Rule]:
    """ZeRO's 16 bytes, the founding activation rule, and the largest-part rule of another tool.

    Parameters
    ----------
    arch
        The model.
    batch
        Sequences of one pass of one model copy.
    sequence_length
        Of each sequence.  [tokens]
    state_bytes
        Weight, gradient and optimizer state of one parameter; None where most of them are frozen.  [B]
    """
    states = float(adam_mixed_precision_state_bytes(arch.parameters))
    matches = "if all weights were trained"
    if state_bytes is not None:
        matches = "matches" if state_bytes == states / arch.parameters else f"this recipe takes {state_bytes:g} B/param"
    rules = [
        _rule("16·Φ (ZeRO)", states, "model states", f"Adam, 16-bit mixed precision: {matches}", "EQ-MEM-1"),
        _rule(
            "4 × weights (accelerate estimate-memory)",
            float(estimate_memory_tool_bytes(arch.parameters)),
            "",
            "largest part of a step, not the sum; no activations",
            "EQ-RULE-11",
        ),
    ]
    if arch.layers:
        values = float(founding_activation_values(arch.hidden_size, batch, sequence_length, arch.layer_count))
        note = f"{values / 1e9:.3g}e9 values of 2 bytes: leaves out attention scores and masks"
        rules.insert(1, _rule("12·h·b·s·L values (founding)", values * _VALUE_BYTES, "activations", note, "EQ-ACT-20"))
    return rules


def serving_rules(arch: Architecture) -> list[Rule]:
    """Weights alone at 16 bits: what a model card tells."""
    return [_rule("2·Φ", 2.0 * arch.parameters, "weights", "no cache, no workspace", "EQ-SRV-1")]


def _rule(name: str, value_bytes: float, of_what: str, note: str, equation: str) -> Rule:
    return {"rule": name, "bytes": value_bytes, "of": of_what, "note": note, "equation": equation}


def unfit(cards: Sequence[Card], told: Sequence[CardFit]) -> list[Card]:
    """Cards on which nothing fits as it was asked, smallest first."""
    empty = [one for one, fit in zip(cards, told) if not any(column["fits"] for column in fit["columns"].values())]
    return sorted(empty, key=lambda one: one.usable_bytes)


def card_devices(card: Card, devices: Mapping[str, int | None]) -> FewestDevices:
    """The fewest devices of a card that would do, by column; None where no number does."""
    return {"card": card.label, "devices": dict(devices)}


def change_on(
    change: str, flags: str, total_bytes: float, cards: Sequence[Card], usable_bytes: Sequence[float]
) -> WithChange:
    """A change, and the cards that it then fits on.

    Parameters
    ----------
    change, flags
        In words, and as it is asked for on the command line.
    total_bytes
        Of a device, once changed.  [B]
    cards, usable_bytes
        Of each card what a workload may fill.  [B]
    """
    fits = [one.label for one, usable in zip(cards, usable_bytes) if total_bytes <= usable]
    return change_told(change, flags, total_bytes, fits)


def change_told(change: str, flags: str, total_bytes: float, fits: list[str]) -> WithChange:
    """A change as the document tells it.

    Parameters
    ----------
    change, flags
        In words, and as it is asked for on the command line.
    total_bytes
        Of a device, once changed.  [B]
    fits
        Labels of the cards that it then fits on.
    """
    return {"change": change, "flags": flags, "total_bytes": total_bytes, "fits_on": fits}
