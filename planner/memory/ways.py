"""Ways out where a question about memory fits no card as it was asked: each worked out with the same equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.memory.cards import Card
from planner.memory.model import CardFit, FewestDevices, WithChange


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
