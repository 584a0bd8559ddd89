"""Least weights of whole units: exact, in whole numbers, counted steps; who checks a bound walks them.

The least weight of whole units that earns enough on several lines at once is

    min  sum_i w_i u_i   with   sum_i e_il u_i  >=  n_l + k max {s_il : u_i > 0}   for every line l,   0 <= u_i <= m_i.

s_il is what one replica of column i earns on line l; the line must hold after k of them are lost. Of lines that are
asked for before any loss k s_il is what column i takes from them by being in use, however many its units are.

The search parts the covers by how many units of a column they have at least or at most. What covers between two such
numbers weigh is bounded by each line alone, in parts of units and by the cheapest unit; it is a multiple of what
divides the weights of all units that may be added. The column that is parted is the last that the dearest line takes,
of which it needs a part of a unit or all that there is to take. Units of columns of which one more would make that
line cost as much as the best cover are not looked at. Where a loss counts, covers are parted first by the most that it
takes from the dearest line. Source: Land and Doig, Econometrica 28(3) (1960); of what is not looked at, fixing by
reduced costs, Crowder, Johnson and Padberg, Operations Research 31(5) (1983), section 2.

A column is left out when another one weighs no more, earns no less on every line, loses no more with a replica, and is
there in a number that meets all lines alone: units of the first can be exchanged for units of the second, and any
beyond that number be left away.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass

MOST_STEPS = 400_000  # sets of covers looked at in a search, times the items of each
NEARLY = 1e-12  # relative: what may come of rounding
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
    steps: int = 0  # that the search took


def least_cover(
    weights: Sequence[int],
    upper: Sequence[int],
    earned: Sequence[Sequence[int]],
    needs: Sequence[int],
    *,
    replicas: Sequence[int] | None = None,
    spare: int = 0,
    taken: Sequence[Sequence[int]] = (),
    sums: Sequence[Mapping[int, int]] = (),
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
    taken
        Of so many of the last lines, which no loss of replicas is asked of, what an item takes by being in use, >= 0.
    sums
        By line, how often other ones are in it: no item earns less on it than so many times on those. Each of them is
        met after a loss of its own, which the search counts. Left out: of none.

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
    found = _least_cover(
        tuple(weights),
        tuple(upper),
        tuple(map(tuple, earned)),
        tuple(needs),
        tuple(replicas) if replicas is not None and spare else None,
        spare,
        tuple(map(tuple, taken)),
        tuple(tuple(sorted(each.items())) for each in sums),
        steps,
    )
    return found if found.units is None else Cover(found.bound, dict(found.units), found.steps)


@lru_cache(maxsize=64)  # prices of a plan are asked about as they are made, as they are checked, and by what follows
def _least_cover(
    weights: tuple[int, ...],
    upper: tuple[int, ...],
    earned: tuple[tuple[int, ...], ...],
    needs: tuple[int, ...],
    replicas: tuple[int, ...] | None,
    spare: int,
    taken: tuple[tuple[int, ...], ...],
    sums: tuple[tuple[tuple[int, int], ...], ...],
    steps: int,
) -> Cover:
    lines = [line for line, need in enumerate(needs) if need > 0]
    if not lines:
        return Cover(0, {})
    parts = replicas or (1,) * len(weights)
    scale = math.lcm(*set(parts))
    there = [
        number for number, (most, *each) in enumerate(zip(upper, *(earned[k] for k in lines))) if most and any(each)
    ]
    earns = [[scale * earned[line][number] for number in there] for line in lines]
    own = len(needs) - len(taken)
    loses = [
        [spare * earned[line][number] * (scale // parts[number]) for number in there]
        if line < own
        else [scale * taken[line - own][number] for number in there]
        for line in lines
    ]
    loses = loses if any(map(any, loses)) else [[] for _ in lines]
    wanted = [scale * needs[line] for line in lines]
    place = {line: k for k, line in enumerate(lines)}
    every = [[(place[k], times) for k, times in sums[line] if k in place] if sums else [] for line in lines]
    told = [
        k
        for k, parts in enumerate(every)
        if (sums and len(parts) < len(sums[lines[k]])) or not _follows(k, parts, wanted, loses)
    ]
    items = [
        Item(
            weight=weights[there[k]],
            most=upper[there[k]],
            earned=tuple(each[k] for each in earns),
            lost=tuple(each[k] if each else 0 for each in loses),
            number=there[k],
        )
        for k in _undominated([weights[k] for k in there], [upper[k] for k in there], earns, loses, wanted, told)
    ]
    return _Search(items, tuple(wanted), every, told, steps).run()


def _follows(line: int, parts: Sequence[tuple[int, int]], needs: Sequence[int], lost: Sequence[Sequence[int]]) -> bool:
    """Whether a line is met where all those are that add up to it: it needs no more, and no item loses more on it."""
    if not parts or needs[line] > sum(times * needs[other] for other, times in parts):
        return False
    return all(
        mine <= sum(times * one for (_, times), one in zip(parts, of_parts))
        for mine, *of_parts in zip(lost[line], *(lost[other] for other, _ in parts))
    )


def lightest_first(weights: Sequence[int]) -> list[tuple[int, int]]:
    """Weights with their places, for `least_of_job`."""
    return sorted(zip(weights, range(len(weights))))


def least_of_job(
    lightest: Sequence[tuple[int, int]],
    upper: Sequence[int],
    count: int,
    mixed: int | None,
    *,
    lower: Sequence[int] | None = None,
) -> Cover:
    """The least of so many equal jobs, each on one unit of a column; its units by place, None where some are mixed.

    Parameters
    ----------
    lightest
        Weights of a unit of each column and their places, as of `lightest_first`.
    upper
        Units that there are, by place.
    count
        Of the jobs.
    mixed
        What a mix weighs, which may be had as often as jobs are asked for; None: there is none.
    lower
        Units that there are at least, by place; None: none.

    Returns
    -------
    The bound is `UNMET` where there are too few units, or at least too many.
    """
    there = lower if lower is not None else [0] * len(upper)
    units = {place: int(least) for place, least in enumerate(there) if least}
    total, left = sum(weight * int(there[place]) for weight, place in lightest), count - sum(units.values())
    if left < 0:
        return Cover(UNMET, None)
    for weight, place in lightest:
        if not left or (mixed is not None and mixed <= weight):
            break
        if taken := min(int(upper[place]) - int(there[place]), left):
            total, left, units[place] = total + taken * weight, left - taken, units.get(place, 0) + taken
    if not left:
        return Cover(total, units)
    return Cover(total + left * mixed if mixed is not None else UNMET, None)


class _Search:
    """One search for a least cover."""

    def __init__(
        self,
        items: Sequence[Item],
        needs: tuple[int, ...],
        sums: Sequence[Sequence[tuple[int, int]]],
        told: Sequence[int],
        steps: int,
    ) -> None:
        self.needs, self.sums, self.steps = needs, sums, steps
        self.lines = range(len(needs))
        self.best, self.units = _of_one_item(items, needs)
        worth = [item for item in items if item.weight < self.best] if self.units is not None else list(items)
        earned = [[item.earned[line] for item in worth] for line in self.lines]
        lost = [[item.lost[line] for item in worth] for line in self.lines]
        kept = _undominated([item.weight for item in worth], [item.most for item in worth], earned, lost, needs, told)
        self.items = [worth[k] for k in kept]
        self.weights = [item.weight for item in self.items]
        self.order = [self._cheapest_first(line) for line in self.lines]
        self.shared = [self._shared_out(line) for line in self.lines]

    def _cheapest_first(self, line: int) -> list[int]:
        """Items that earn on a line, the cheapest for what it earns first."""
        mine = [i for i, item in enumerate(self.items) if item.earned[line]]
        # two ratios of whole numbers below 2^128 differ by more than 2^-256
        return sorted(
            mine, key=lambda i: ((self.weights[i] << 256) // self.items[i].earned[line], self.items[i].number)
        )

    def _shared_out(self, line: int) -> list[tuple[int, list[int]]]:
        """Of a sum of lines each of them, with its part of each item's weight: as much as it has in what that earns."""
        every = [sum(times * item.earned[k] for k, times in self.sums[line]) for item in self.items]
        return [
            (other, [w * times * item.earned[other] // all_ if all_ else 0
                     for item, w, all_ in zip(self.items, self.weights, every)])
            for other, times in self.sums[line]
        ]  # fmt: skip

    def run(self) -> Cover:
        """The set of covers with the least bound first."""
        heap = [(root.bound, number, root) for number, root in enumerate(self._roots())]
        heapq.heapify(heap)
        made = len(heap)
        while heap:
            bound, _, node = heapq.heappop(heap)
            if bound >= self.best:
                break
            if made * (len(self.items) + 1) > self.steps:
                return Cover(bound, self.units, made * (len(self.items) + 1))
            for part in self._parts(node):
                made += 1
                child = self._node(*part)
                if child is not None and child.bound < self.best:
                    heapq.heappush(heap, (child.bound, made, child))
        return Cover(self.best, self.units, made * (len(self.items) + 1))

    def _roots(self) -> Iterator[_Node]:
        """All covers, by the most that a loss takes from the line that is dearest without one; a sum has several."""
        none, every = tuple(0 for _ in self.items), tuple(item.most for item in self.items)
        root = self._node(none, every, tuple(0 for _ in self.lines))
        if root is None or self.sums[root.line] or not any(any(item.lost) for item in self.items):
            yield from [root] if root is not None else []
            return
        for loss in sorted({item.lost[root.line] for item in self.items}):
            inside = tuple(item.most if item.lost[root.line] <= loss else 0 for item in self.items)
            part = self._node(none, inside, tuple(loss if line == root.line else 0 for line in self.lines))
            if part is not None:
                yield part

    def _parts(self, node: _Node) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        """Both sides of a set of covers: lowest and highest numbers of units, and what is lost at least."""
        if node.losing is not None:  # less than so much is lost on a line, or no less
            line, loss = node.losing
            inside = tuple(m if item.lost[line] < loss else 0 for item, m in zip(self.items, node.highest))
            if all(least <= most for least, most in zip(node.lowest, inside)):
                yield node.lowest, inside, node.least_lost
            lost = tuple(max(loss, least) if k == line else least for k, least in enumerate(node.least_lost))
            yield node.lowest, node.highest, lost
            return
        at = node.lowest[node.item] + node.whole
        fewer, more = list(node.highest), list(node.lowest)
        fewer[node.item], more[node.item] = at, at + 1
        yield node.lowest, tuple(fewer), node.least_lost
        yield tuple(more), node.highest, node.least_lost

    def _node(self, lowest: tuple[int, ...], highest: tuple[int, ...], least_lost: tuple[int, ...]) -> _Node | None:
        """What covers between two numbers of units weigh at least, and where to part them; None: none is better."""
        have, lost, paid = self._sums(lowest)
        lost = [max(pair) for pair in zip(lost, least_lost)]
        room = [most - least for most, least in zip(highest, lowest)]
        short = [max(self.needs[line] + lost[line] - have[line], 0) for line in self.lines]
        worst: _Filled | None = None
        for line in self.lines:
            filled = self._filled(line, short, room)
            if filled is None:
                return None
            if filled.taken and (worst is None or filled.cost > worst.cost):
                worst = filled
        if worst is None:
            have, lost, paid = self._sums(lowest)
            if all(self.needs[line] + lost[line] <= have[line] for line in self.lines):
                self._found(lowest, paid)
            return None
        step = math.gcd(*(self.items[i].weight for i, most in enumerate(room) if most))
        bound = paid + (-(-worst.cost // step) * step if step else worst.cost)
        if bound >= self.best:
            return None
        units = dict[int, int]()
        for part in worst.taken:
            units.update({i: max(count, units.get(i, 0)) for i, count in part.units})
        self._tried([*lowest], list(units.items()), room)
        highest = self._without_dear(worst, lowest, highest, paid)
        # the last unit of the last item is a part of one, or all of it and another line is short
        part = max(worst.taken, key=lambda one: one.whole - one.parts)
        last, count = part.units[-1]
        return _Node(bound, lowest, highest, least_lost, worst.line, self._losing(worst, lost), last, count - 1)

    def _losing(self, filled: _Filled, lost: Sequence[int]) -> tuple[int, int] | None:
        """Where units lose most beyond what is counted as lost: a line, and how much; None where they do not."""
        found: tuple[int, int, int] | None = None
        for part in filled.taken:
            most = max(self.items[i].lost[part.line] for i, _ in part.units)
            last = part.units[-1][0]
            beyond = (most - lost[part.line]) * part.weights[last] // self.items[last].earned[part.line]
            if most > lost[part.line] and (found is None or beyond > found[0]):
                found = beyond, part.line, most
        return found and found[1:]

    def _sums(self, units: Sequence[int]) -> tuple[list[int], list[int], int]:
        """What units earn on each line, the most that is lost there, and what they weigh."""
        used = [(self.items[i], count) for i, count in enumerate(units) if count]
        have = [sum(item.earned[line] * count for item, count in used) for line in self.lines]
        lost = [max((item.lost[line] for item, _ in used), default=0) for line in self.lines]
        return have, lost, sum(item.weight * count for item, count in used)

    def _filled(self, line: int, short: Sequence[int], room: Sequence[int]) -> _Filled | None:
        """What a line costs at least, of which so much is short; None where all that there is does not do.

        Lines that add up to it are each filled by the items that earn on them, at their part of the weight.
        """
        taken, cost = list[_Taken](), 0
        for other, weights in self.shared[line] or [(line, self.weights)]:
            if short[other] > 0:
                part = self._taken(other, weights, self.order[line], short[other], room)
                if part is None:
                    return None
                taken.append(part)
                cost += max(part.parts, part.cheapest)
        return _Filled(line, cost, taken)

    def _taken(
        self, line: int, weights: Sequence[int], order: Sequence[int], need: int, room: Sequence[int]
    ) -> _Taken | None:
        """Units that fill a line, the cheapest first, and what they weigh in parts of units; None where they do not."""
        total, units, cheapest = 0, list[tuple[int, int]](), -1
        for i in order:
            earned = self.items[i].earned[line]
            if not room[i] or not earned:
                continue
            if need > earned * room[i]:
                total, need = total + weights[i] * room[i], need - earned * room[i]
                units.append((i, room[i]))
                continue
            cheapest = min(w for w, left, item in zip(weights, room, self.items) if left and item.earned[line])
            count = -(-need // earned)
            units.append((i, count))
            return _Taken(
                line, weights, total - (-need * weights[i] // earned), total + count * weights[i], cheapest, units
            )
        return None

    def _tried(self, units: list[int], taken: Sequence[tuple[int, int]], room: Sequence[int]) -> None:
        """Whether whole units in place of the parts make a cover, with more for lines that are short; kept if best."""
        left = list(room)
        while True:
            for i, count in taken:
                units[i] += count
                left[i] -= count
            have, lost, paid = self._sums(units)
            short = [(self.needs[k] + lost[k] - have[k], k) for k in self.lines]
            short = [(need, line) for need, line in short if need > 0]
            if paid >= self.best:
                return
            if not short:
                self._found(units, paid)
                return
            line = short[0][1]
            filled = self._taken(line, self.weights, self.order[line], short[0][0], left)
            if filled is None:
                return
            taken = filled.units

    def _found(self, units: Sequence[int], paid: int) -> None:
        if paid < self.best:
            self.best = paid
            self.units = {self.items[i].number: count for i, count in enumerate(units) if count}

    def _without_dear(
        self, filled: _Filled, lowest: tuple[int, ...], highest: tuple[int, ...], paid: int
    ) -> tuple[int, ...]:
        """No more units of items of which one more would cost as much as the best cover.

        With one unit more of an item a line costs at least w - e w' / e' more, w' / e' being of the last item.
        """
        last = [(part.line, part.weights[k := part.units[-1][0]], self.items[k].earned[part.line])
                for part in filled.taken]  # fmt: skip
        spent, most = paid + sum(part.parts for part in filled.taken), list(highest)
        for i, item in enumerate(self.items):
            if most[i] > lowest[i]:
                saved = sum(-(-item.earned[line] * weight // earned) for line, weight, earned in last)
                if spent - 1 + item.weight - saved >= self.best:
                    most[i] = lowest[i]
        return tuple(most)


class _Taken(NamedTuple):
    """What fills a line."""

    line: int
    weights: Sequence[int]  # by item, of which parts may be another line's
    parts: int  # what it weighs in parts of units
    whole: int  # and in whole ones
    cheapest: int  # unit of all that earn there
    units: list[tuple[int, int]]  # whole ones, of the cheapest items for what they earn


class _Filled(NamedTuple):
    """What fills a line, or each of the lines that add up to it."""

    line: int
    cost: int
    taken: list[_Taken]


@dataclass(frozen=True, slots=True)
class _Node:
    """Covers between a lowest and a highest number of units of each item."""

    bound: int
    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    least_lost: tuple[int, ...]  # by line, what some item in use is known to lose
    line: int  # the dearest
    losing: tuple[int, int] | None  # a line on which some item may lose so much, by which they are parted first
    item: int  # that is parted
    whole: int  # units of it beyond the lowest number in the lower half


def _of_one_item(items: Sequence[Item], needs: tuple[int, ...]) -> tuple[int, dict[int, int] | None]:
    """The least cover of one item alone."""
    found: list[tuple[int, dict[int, int]]] = []
    for item in items:
        needed = 0
        for line, need in enumerate(needs):
            wanted = need + item.lost[line]
            needed = max(needed, -(-wanted // item.earned[line]) if item.earned[line] else item.most + 1)
        if needed <= item.most:
            found.append((needed * item.weight, {item.number: needed}))
    return min(found, key=lambda one: (one[0], sorted(one[1].items()))) if found else (UNMET, None)


def _undominated(
    weights: Sequence[int],
    upper: Sequence[int],
    earned: Sequence[Sequence[int]],
    lost: Sequence[Sequence[int]],
    needs: Sequence[int],
    told: Sequence[int],
) -> list[int]:
    """Places of the items that no other one can stand in for, the lightest first; `told`: lines that no others imply.

    Units of one that weighs no more can take the place of any number of units of another where they earn no less and
    lose no more. Of more than there are the rest is not needed: all there are meet each line on which they earn at all,
    after their own loss, and after that of any other in use, which earns there as much as a unit of it does. Whole
    numbers of any size are compared by their ranks.
    """
    spare = any(map(any, lost))
    rank, e = _ranks(weights), np.array([_ranks(each) for each in earned])
    f = np.array([_ranks(each) for each in lost]) if spare else np.zeros((len(earned), len(weights)), dtype=np.int64)
    able = np.ones(len(weights), dtype=bool)
    for line, need in ((line, needs[line]) for line in told):
        mine = lost[line] if spare else [0] * len(weights)
        others = max((loss - each for loss, each in zip(mine, earned[line])), default=0)
        able &= np.array(
            [not 0 < each * most < need + max(loss, others, 0) for each, most, loss in zip(earned[line], upper, mine)],
            dtype=bool,
        )
    order = np.lexsort((*f[::-1], *-e[::-1], rank))
    e, f = e[:, order], f[:, order]
    alive = np.ones(len(order), dtype=bool)
    for place in np.flatnonzero(able[order]).tolist():
        if alive[place]:
            worse = (e[:, place + 1 :] <= e[:, place, None]) & (f[:, place + 1 :] >= f[:, place, None])
            alive[place + 1 :] &= ~worse.all(axis=0)
    return _but_for_several(order[alive].tolist(), weights, earned, lost if spare else (), able)


def _but_for_several(
    places: Sequence[int],
    weights: Sequence[int],
    earned: Sequence[Sequence[int]],
    lost: Sequence[Sequence[int]],
    able: NDArray[np.bool_],
) -> list[int]:
    """Without items that several units of a lighter one can stand in for, which is looked for roughly, and checked."""

    def stands_in(one: int, other: int) -> bool:
        units = max((-(-each[other] // each[one]) for each in earned if each[other]), default=1)
        return units * weights[one] <= weights[other] and all(each[one] <= each[other] for each in lost)

    here = np.array(places, dtype=np.int64)
    weighs, earns, loses = (
        np.array([[float(each[k]) for k in places] for each in some]) for some in ([weights], earned, lost)
    )
    alive = np.ones(len(here), dtype=bool)
    for place in np.flatnonzero(able[here]).tolist():
        none = (earns > 0) & (earns[:, place, None] == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.ceil(np.nan_to_num(earns / earns[:, place, None], posinf=1.0) - NEARLY).max(axis=0)
        better = alive & ~none.any(axis=0) & (units > 1) & (units * weighs[0, place] <= weighs[0] * (1 + NEARLY))
        if len(lost):
            better &= (loses[:, place, None] <= loses * (1 + NEARLY)).all(axis=0)
        for other in np.flatnonzero(better).tolist():
            if weights[here[place]] and stands_in(int(here[place]), int(here[other])):
                alive[other] = False
    return [int(k) for k in here[alive]]


def _ranks(values: Sequence[int]) -> NDArray[np.int64]:
    """Of whole numbers of any size, from the least."""
    place = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return np.fromiter(map(place.__getitem__, values), dtype=np.int64, count=len(values))
