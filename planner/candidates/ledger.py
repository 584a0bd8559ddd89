"""Why each way to run a workload was dropped: counts by reason, with the nearest miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from planner.carriers import dataclass

STAGES = ("offers", "counts", "layouts", "columns")  # in the order in which ways are dropped
LAST = ("latency", "deadline", "failures")  # of layouts: what fits the memory is held against these


@dataclass(slots=True)
class Drop:
    """One reason: how many were dropped and which came nearest."""

    reason: str  # memory, deadline, network-unknown, precision, ...
    what: str  # offers | counts | layouts | columns
    count: int = 0
    nearest: str = ""  # "needs 3.1 GB less per device on l4-24gb"
    miss: float = float("inf")  # how far the nearest one is off, in the unit of the reason

    @property
    def nearness(self) -> tuple[int, bool, bool, bool, float]:
        """How far a way came before it was dropped, then how little it lacked."""
        allowed = self.reason != "not-allowed"  # the first that is asked of an offer
        return STAGES.index(self.what), self.reason in LAST, allowed, bool(self.nearest), -self.miss


@dataclass(slots=True)
class Ledger:
    """The drops of one workload; `seen` counts what was looked at."""

    workload: str
    offers_seen: int = 0
    layouts_seen: int = 0
    drops: dict[tuple[str, str], Drop] = field(default_factory=dict)
    nearest_on: dict[str, Drop] = field(default_factory=dict)  # by device, provider or owned group: what came furthest

    def drop(
        self,
        reason: str,
        what: str,
        count: int = 1,
        *,
        nearest: str = "",
        miss: float = float("inf"),
        on: Iterable[str] = (),
    ) -> None:
        """Count drops; the text of the smallest miss is kept, also for each of the names that it happened on.

        Parameters
        ----------
        reason
            In one word: memory, deadline, network-unknown and others.
        what
            What was dropped, one of `STAGES`.
        count
            How many; of 0 or less nothing is noted, not even a text.
        nearest
            What was missing, in words, where one came nearest; empty: not told.
        miss
            How far that one is off, in the unit of the reason; infinite: not known.
        on
            Devices, providers and owned groups, as `offers.names_on` has them.
        """
        if count <= 0:
            return
        self.note(reason, what, nearest, miss, on)
        entry = self.drops.setdefault((reason, what), Drop(reason=reason, what=what))
        entry.count += int(count)
        if nearest and (not entry.nearest or miss < entry.miss):
            entry.nearest, entry.miss = nearest, float(miss)

    def note(self, reason: str, what: str, nearest: str, miss: float, on: Iterable[str]) -> None:
        """Keep for each name what came furthest there, without counting it.

        Parameters
        ----------
        reason
            In one word: memory, deadline, network-unknown and others.
        what
            What it happened to, one of `STAGES`.
        nearest
            What was missing, in words; empty: not told.
        miss
            How far it is off, in the unit of the reason; infinite: not known.
        on
            Devices, providers and owned groups, as `offers.names_on` has them.
        """
        mine = Drop(reason=reason, what=what, nearest=nearest, miss=float(miss))
        for name in on:
            before = self.nearest_on.get(name)
            if before is None or mine.nearness > before.nearness:
                self.nearest_on[name] = mine

    def copy(self) -> Ledger:
        """The same counts, to be counted on."""
        drops = {key: replace(entry) for key, entry in self.drops.items()}
        return replace(self, drops=drops, nearest_on=dict(self.nearest_on))

    def become(self, other: Ledger) -> None:
        """Hold what another one holds."""
        self.offers_seen, self.layouts_seen = other.offers_seen, other.layouts_seen
        self.drops, self.nearest_on = other.drops, other.nearest_on

    def __iter__(self) -> Iterator[Drop]:
        """Drops, most frequent first within each kind."""
        order = STAGES.index
        return iter(sorted(self.drops.values(), key=lambda drop: (order(drop.what), -drop.count, drop.reason)))

    def reasons(self) -> list[dict[str, object]]:
        """As plain rows, for output."""
        return [
            {"reason": drop.reason, "what": drop.what, "count": drop.count, "nearest": drop.nearest} for drop in self
        ]
