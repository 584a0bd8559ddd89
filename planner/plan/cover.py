"""The least weight of whole units that earns enough on several lines at once: exact, in whole numbers, counted steps.

    min  sum_i w_i u_i   with   sum_i e_il u_i  >=  n_l + k max {s_il : u_i > 0}   for every line l,   0 <= u_i <= m_i.

s_il is what one replica of column i earns on line l; the line must hold after k of them are lost.

The search takes the line that is furthest from being met and adds one unit of a column that earns on it. Columns that
were tried before it are given no more units below it, so that no set of units is met twice. What is left to pay is
bounded by each line alone in parts of units, and by the cheapest unit. A column is left out when another one weighs
no more, earns no less on every line, loses no more with a replica, and is there in a number that meets all lines
alone: units of the first can be exchanged for units of the second, and any beyond that number be left away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_STEPS = 100_000  # units tried in the search for a least cover
UNMET = 2**400  # weighs more than any plan


@dataclass(frozen=True, slots=True)
class Item:
    """What may be taken: weight, most units, and per line what a unit earns and what a replica of it earns."""

    weight: int
    most: int
    earned: tuple[int, ...]
    lost: tuple[int, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Cover:
    """Units by item that meet every line, None where there are none; and a bound: no cover weighs less."""

    bound: int
    units: dict[int, int] | None


def least_cover(
    weights: Sequence[int],
    upper: Sequence[int],
    earned: Sequence[Sequence[int]],
    needs: Sequence[int],
    *,
    replicas: Sequence[int] | None = None,
    spare: int = 0,
    steps: int = MOST_STEPS,
) -> Cover:
    """The least cover; a bound below it when the search grows longer than so many steps.

    Parameters
    ----------
    weights, upper
        Of a unit of each item, >= 0; and how many units there are.
    earned
        By line, what a unit of each item earns, >= 0.
    needs
        By line.
    replicas, spare
        Replicas of a unit of each item, >= 1; every line is met when that many of one item in use are lost.

    Returns
    -------
    The bound is `UNMET` when nothing meets every line.

    Examples
    --------
    Two units of 3 for 2 each are dearer than one of 5 for 3 where 5 are needed.

    >>> least_cover([2, 3], [9, 9], [[3, 5]], [5]).bound
    3

    With a spare replica the second is lost whole: two of them, or two of the first, which lose half of one.

    >>> least_cover([2, 3], [9, 9], [[3, 5]], [4], replicas=[2, 1], spare=1).bound
    4
    """
    lines = [line for line, need in enumerate(needs) if need > 0]
    if not lines:
        return Cover(0, {})
    parts = replicas if replicas is not None and spare else [1] * len(weights)
    scale = math.lcm(*set(parts))
    items = [
        Item(
            weight=weight,
            most=most,
            earned=tuple(scale * earned[line][number] for line in lines),
            lost=tuple(spare * (scale // parts[number]) * earned[line][number] if spare else 0 for line in lines),
            number=number,
        )
        for number, (weight, most) in enumerate(zip(weights, upper))
        if most > 0 and any(earned[line][number] > 0 for line in lines)
    ]
    return _Search(items, tuple(scale * needs[line] for line in lines), steps).run()


class _Search:
    """One search for a least cover."""

    def __init__(self, items: Sequence[Item], needs: tuple[int, ...], steps: int) -> None:
        self.needs, self.steps = needs, steps
        self.lines = range(len(needs))
        first = self._greedy(items)
        self.best, self.units = first
        worth = [item for item in items if item.weight < self.best] if self.units is not None else list(items)
        self.items = _undominated(worth, needs)
        # the cheapest for what it earns first; two ratios of whole numbers below 2^128 differ by more than 2^-256
        self.order = [
            sorted(
                (i for i, item in enumerate(self.items) if item.earned[line]),
                key=lambda i: ((self.items[i].weight << 256) // self.items[i].earned[line], self.items[i].number),
            )
            for line in self.lines
        ]
        self.cheap = [sorted(order, key=lambda i: self.items[i].weight) for order in self.order]

    def _greedy(self, items: Sequence[Item]) -> tuple[int, dict[int, int] | None]:
        """Some cover: the best of one item alone, and of the cheapest for each line in turn."""
        found: list[tuple[int, dict[int, int]]] = []
        for item in items:
            needed = 0
            for line in self.lines:
                need = self.needs[line] + item.lost[line]
                needed = max(needed, -(-need // item.earned[line]) if item.earned[line] else item.most + 1)
            if needed <= item.most:
                found.append((needed * item.weight, {item.number: needed}))
        return min(found, key=lambda one: (one[0], sorted(one[1].items()))) if found else (UNMET, None)

    def run(self) -> Cover:
        """Depth first, the most promising unit first."""
        # (paid, units by item, banned items, what is earned, what is lost)
        zero = (0,) * len(self.needs)
        stack: list[tuple[int, int, dict[int, int], frozenset[int], tuple[int, ...], tuple[int, ...]]] = [
            (self._least(0, {}, frozenset(), zero, zero)[0], 0, {}, frozenset(), zero, zero)
        ]
        taken = 0
        while stack:
            bound, paid, units, banned, have, lost = stack.pop()
            if bound >= self.best:
                continue
            if taken > self.steps:
                return Cover(min([bound, self.best, *(node[0] for node in stack)]), self.units)
            _, line = self._least(paid, units, banned, have, lost)
            if line is None:
                self.best, self.units = paid, {self.items[i].number: count for i, count in units.items()}
                continue
            children = []
            tried = set(banned)
            for i in self.order[line]:
                item = self.items[i]
                if not self._left(i, units, banned):
                    continue
                taken += 1
                more = tuple(have[k] + item.earned[k] for k in self.lines)
                gone = tuple(max(lost[k], item.lost[k]) for k in self.lines)
                now, without = {**units, i: units.get(i, 0) + 1}, frozenset(tried)
                least = self._least(paid + item.weight, now, without, more, gone)[0]
                if least < self.best:
                    children.append((least, paid + item.weight, now, without, more, gone))
                tried.add(i)
            stack += sorted(children, key=lambda node: node[0], reverse=True)
        return Cover(self.best, self.units)

    def _least(
        self,
        paid: int,
        units: dict[int, int],
        banned: frozenset[int],
        have: tuple[int, ...],
        lost: tuple[int, ...],
    ) -> tuple[int, int | None]:
        """A bound of what is paid in all, and the line that gives it; None: every line is met."""
        worst, at = -1, None
        for line in self.lines:
            need = self.needs[line] + lost[line] - have[line]
            if need <= 0:
                continue
            more = self._parts(line, need, units, banned)
            if more > worst:
                worst, at = more, line
        return (paid, None) if at is None else (paid + worst, at)

    def _parts(self, line: int, need: int, units: dict[int, int], banned: frozenset[int]) -> int:
        """What a line costs at least: in parts of units, and at least the cheapest unit."""
        cheapest = next((self.items[i].weight for i in self.cheap[line] if self._left(i, units, banned)), UNMET)
        total = 0
        for i in self.order[line]:
            item, most = self.items[i], self._left(i, units, banned)
            if need <= item.earned[line] * most:
                return max(total + -(-need * item.weight // item.earned[line]), cheapest)
            total, need = total + item.weight * most, need - item.earned[line] * most
        return UNMET

    def _left(self, i: int, units: dict[int, int], banned: frozenset[int]) -> int:
        return 0 if i in banned else self.items[i].most - units.get(i, 0)


def _undominated(items: Sequence[Item], needs: tuple[int, ...]) -> list[Item]:
    """The items without those that another one can stand in for."""
    largest = [max((item.lost[line] for item in items), default=0) for line in range(len(needs))]
    kept: list[Item] = []
    for item in sorted(items, key=lambda one: (one.weight, [-e for e in one.earned], one.lost, one.number)):
        if not any(_stands_in(other, item, needs, largest) for other in kept):
            kept.append(item)
    return kept


def _stands_in(one: Item, other: Item, needs: tuple[int, ...], largest: Sequence[int]) -> bool:
    """Whether units of one, which weighs no more, can take the place of any number of units of the other."""
    return all(
        e >= f and a <= b and (e == 0 or e * one.most >= need + most)
        for e, f, a, b, need, most in zip(one.earned, other.earned, one.lost, other.lost, needs, largest)
    )
