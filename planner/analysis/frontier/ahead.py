"""Points of a frontier asked beside each other: which limits are worth asking while others are being answered.

One walk goes from the loosest limit down, each limit just below what the one before came to. Others begin in the
middle of what is not known yet: what such a walk comes to is a point of the frontier, so that the limit just below it
is one that the first walk asks, too. Answers are kept by their exact limit and the first walk alone is told: what a
guess found out only saves time, and never changes a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from planner.analysis.frontier.sweep import Value, next_limit
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import Record

GUESSES = 4  # walks that are begun in the middle, for each answer that is worked on at a time
FINEST = 1e-3  # share of the first gap below which none is split any more


@dataclass(slots=True, kw_only=True)
class Ahead:
    """Limits of one range of a sweep, in the order in which they are worth asking.

    Parameters
    ----------
    low, high
        The range, as of a `Sweep`.
    known
        What was found at a limit; None: not known.
    beside
        How many answers are worked on at a time.
    """

    low: Value
    high: Value | None
    known: Callable[[Value | None], Record | None]
    beside: int
    asked: set[Value | None] = field(default_factory=set)  # that are being answered, or were
    guessed: list[Value] = field(default_factory=list)  # where walks begin besides the first
    widest: float = 0.0  # of the gaps seen

    def __iter__(self) -> Iterator[Value | None]:
        return self

    def __next__(self) -> Value | None:
        """The next limit to ask; it ends where only answers can tell which, and may then go on."""
        heads, bottom = self._heads()
        for head in heads:
            if head not in self.asked:
                self.asked.add(head)
                return head
        middle = self._guess(heads, bottom)
        if middle is None:
            raise StopIteration
        self.guessed.append(middle)
        self.asked.add(middle)
        return middle

    def _heads(self) -> tuple[list[Value | None], Value]:
        """Where each walk stands, the loosest first, and the limit under which nothing is left."""
        heads: dict[Value | None, None] = {}
        bottom = self.low
        for start in (self.high, *sorted(self.guessed, reverse=True)):
            limit = start
            while (record := self.known(limit)) is not None:
                reached = record.get("over")
                if reached is None or reached <= self.low:
                    if limit is not None and record["status"] == "infeasible":
                        bottom = max(bottom, limit)
                    break
                limit = next_limit(reached)
            else:
                heads[limit] = None
        return list(heads), bottom

    def _guess(self, heads: list[Value | None], bottom: Value) -> Value | None:
        """The middle of the widest gap below a walk that is under way; None: nothing is worth guessing."""
        if len(self.guessed) >= GUESSES * self.beside:
            return None
        known = [head for head in heads if head is not None]
        gaps = []
        for head in known:
            under = max([bottom, *(one for one in (*known, *self.guessed) if one < head)])
            gaps.append((head - under, head, under))
        if not gaps:
            return None
        width, head, under = max(gaps)
        self.widest = max(self.widest, float(width))
        whole = isinstance(head, int)
        middle: Value = (head + int(under)) // 2 if whole else (head + under) / 2
        if width < FINEST * self.widest or not under < middle < head or middle in self.asked:
            return None
        return middle
