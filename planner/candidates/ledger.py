"""Why each way to run a workload was dropped: counts by reason, with the nearest miss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from planner.carriers import dataclass


@dataclass(slots=True)
class Drop:
    """One reason: how many were dropped and which came nearest."""

    reason: str  # memory, deadline, network-unknown, precision, ...
    what: str  # offers | counts | layouts | columns
    count: int = 0
    nearest: str = ""  # "needs 3.1 GB less per device on l4-24gb"
    miss: float = float("inf")  # how far the nearest one is off, in the unit of the reason


@dataclass(slots=True)
class Ledger:
    """The drops of one workload; `seen` counts what was looked at."""

    workload: str
    offers_seen: int = 0
    layouts_seen: int = 0
    drops: dict[tuple[str, str], Drop] = field(default_factory=dict)

    def drop(self, reason: str, what: str, count: int = 1, *, nearest: str = "", miss: float = float("inf")) -> None:
        """Count drops; the text of the smallest miss is kept."""
        if count <= 0:
            return
        entry = self.drops.setdefault((reason, what), Drop(reason=reason, what=what))
        entry.count += int(count)
        if nearest and (not entry.nearest or miss < entry.miss):
            entry.nearest, entry.miss = nearest, float(miss)

    def copy(self) -> Ledger:
        """The same counts, to be counted on."""
        return replace(self, drops={key: replace(entry) for key, entry in self.drops.items()})

    def __iter__(self) -> Iterator[Drop]:
        """Drops, most frequent first within each kind."""
        order = {"offers": 0, "counts": 1, "layouts": 2, "columns": 3}
        return iter(sorted(self.drops.values(), key=lambda drop: (order[drop.what], -drop.count, drop.reason)))

    def reasons(self) -> list[dict[str, object]]:
        """As plain rows, for output."""
        return [
            {"reason": drop.reason, "what": drop.what, "count": drop.count, "nearest": drop.nearest} for drop in self
        ]
