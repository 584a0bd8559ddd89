"""The last step in integers: walk through every plan that can still be the answer.

A solver proves in floating point that no plan is better than Z. Prices then say which ways
to meet each task a plan of at most Z, and what may be paid beside it in a tie, can be made of (`ways`). When these are
few, all their combinations are tried here, in exact arithmetic: first for the least cost, then, among all that are as
cheap, by what is left of the chain of criteria. So neither the best cost nor the winner of a tie hangs on the solver's
tolerance. When they are many, the caller settles one criterion after another by solving.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.candidates.program import IntArray, Program
from planner.candidates.prune import canonical_order
from planner.carriers import dataclass
from planner.optimize import ways
from planner.optimize.check import task_violations, violations
from planner.optimize.criteria import LINEAR, value_of, weights_of
from planner.optimize.relax import MARGIN
from planner.optimize.scope import Scope
from planner.optimize.ways import Prices, Steps, TooManyError, Way, cheapest_way, walkable, ways_within


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The bound that prices prove (scaled), and each task's own least."""

    bound: float
    least: tuple[float, ...]
    units: IntArray  # every task's cheapest way at these prices; seldom within all limits

    def room(self, value: float) -> float:
        """What the excesses of a plan of at most this scaled value can sum to."""
        size = sum(abs(each) for each in self.least)
        return value - self.bound + MARGIN * max(1.0, abs(value), size)


def floor_of(scope: Scope, prices: Prices) -> Floor | None:
    """Every task alone at the prices; None when that takes too long or some task cannot be met."""
    if not walkable(scope):
        return None
    steps, found = Steps(left=ways.MOST_STEPS), []
    try:
        for task in scope.program.tasks:
            way = cheapest_way(scope, task, prices, steps)
            if way is None:
                return None
            found.append(way)
    except TooManyError:
        return None
    least = tuple(weight for weight, _ in found)
    units = _dense(scope.program, [pair for _, pairs in found for pair in pairs])
    return Floor(bound=sum(least) + prices.constant, least=least, units=units)


def is_plan(scope: Scope, units: IntArray) -> bool:
    """Whether units are a plan of the scope."""
    return not any(True for _ in violations(scope, units))


def ways_of(scope: Scope, prices: Prices, floor: Floor, value: float) -> list[list[Way]] | None:
    """For each task the ways that a plan of at most a scaled value can be made of; None = too many.

    Parameters
    ----------
    scope
        Says which columns are open, in how many units.
    prices
        Of the joint limits, in a relaxation of the scope.
    floor
        `floor_of` the same scope and prices.
    value
        Most that such a plan is worth, scaled as the prices are.
    """
    steps, room = Steps(left=ways.MOST_STEPS), floor.room(value)
    try:
        return [
            ways_within(scope, task, prices, least + room, steps)
            for task, least in zip(scope.program.tasks, floor.least)
        ]
    except TooManyError:
        return None


def narrowed(scope: Scope, options: list[list[Way]]) -> Scope:
    """The scope with only the units that some way uses."""
    upper = np.zeros_like(scope.upper)
    for choices in options:
        for _, pairs in choices:
            for column, amount in pairs:
                upper[column] = max(upper[column], amount)
    return replace(scope, upper=upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One way to meet one task."""

    units: tuple[tuple[int, int], ...]  # (column, units), in canonical order of columns
    excess: float
    sums: tuple[int, ...]  # linear criteria in chain order
    finish_s: float
    providers: frozenset[int]
    uses: IntArray  # of joint rows and settled criteria

    def covers(self, other: _Choice) -> bool:
        """Whether a plan never gets worse by taking this instead of the other, which comes later in order."""
        return (
            self.finish_s <= other.finish_s
            and self.providers <= other.providers
            and bool((self.uses <= other.uses).all())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A plan of the first tasks, in the order in which they are walked through."""

    excess: float
    uses: IntArray
    first: int  # value of the first criterion, as far as it is linear
    taken: tuple[_Choice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """The best plan and the least cost of any, where that is among the criteria."""

    units: IntArray
    cheapest_microusd: int | None = None


def walked(scope: Scope, options: list[list[Way]], floor: Floor, value: float, chain: tuple[str, ...]) -> Walked | None:
    """The best plan by a chain of criteria, costs that are near enough being equal; None when there are too many.

    Parameters
    ----------
    options, floor, value
        Ways that plans of at most a scaled value can be made of, what may be dearer in a tie included.
    """
    if "cost" not in chain:
        units = Walk(scope, options, floor, value, chain).best()
        return None if units is None else Walked(units=units)
    after = chain.index("cost") + 1
    first = Walk(scope, options, floor, value, chain[:after]).best()
    if first is None:
        return None
    for name in chain[:after]:
        least = value_of(scope.program, first, name)
        scope = scope.settle(name, least + scope.program.tie_microusd(int(least)) if name == "cost" else least)
    open_ = [[way for way in choices if all(scope.upper[k] >= u for k, u in way[1])] for choices in options]
    units = Walk(scope, open_, floor, value, chain[after:]).best()
    cheapest = int(value_of(scope.program, first, "cost"))
    return None if units is None else Walked(units=units, cheapest_microusd=cheapest)


class Walk:
    """All plans made of the listed ways whose excesses fit the room, best first by the chain."""

    def __init__(
        self, scope: Scope, options: list[list[Way]], floor: Floor, value: float, chain: tuple[str, ...]
    ) -> None:
        self.scope, self.program, self.chain = scope, scope.program, chain
        self.options, self.floor, self.room = options, floor, floor.room(value)
        self.linear = [name for name in chain if name in LINEAR]
        self.weights = [weights_of(self.program, name) for name in self.linear]
        used = np.unique([column for choices in options for _, pairs in choices for column, _ in pairs]).astype(int)
        self.rank = {int(k): n for n, k in enumerate(canonical_order(self.program, used))}
        self.place = {int(k): n for n, k in enumerate(used)}
        self.limits, self.bounds = _limits(scope, used)
        self.steps = Steps(left=ways.MOST_STEPS)

    def best(self) -> IntArray | None:
        """The best plan, or None when there are too many to tell."""
        try:
            return self._combine([self._front(number) for number in range(len(self.options))])
        except TooManyError:
            return None

    def _front(self, number: int) -> list[_Choice]:
        """Ways to meet a task, without those that another one covers."""
        task, least = self.program.tasks[number], self.floor.least[number]
        choices = [
            self._choice(pairs, weight - least)
            for weight, pairs in self.options[number]
            if task.kind == "training"  # the jobs of every way sum to the count
            or not any(True for _ in task_violations(self.program, task, _dense(self.program, pairs)))
        ]
        choices.sort(key=lambda c: (c.sums, [(self.rank[k], -u) for k, u in c.units]))
        front: list[_Choice] = []
        for choice in choices:
            self.steps.take(1 + len(front) // 8)
            if not any(better.covers(choice) for better in front):
                front.append(choice)
        return sorted(front, key=lambda c: c.excess)

    def _choice(self, units: tuple[tuple[int, int], ...], excess: float) -> _Choice:
        program = self.program
        uses = np.zeros(len(self.bounds), dtype=np.int64)
        for column, amount in units:
            uses += self.limits[self.place[column]] * amount
        return _Choice(
            units=tuple(sorted(units, key=lambda item: self.rank[item[0]])),
            excess=excess,
            sums=tuple(sum(int(weight[k]) * u for k, u in units) for weight in self.weights),
            finish_s=max((float(program.finish_s[k]) for k, _ in units), default=0.0),
            providers=frozenset(int(program.provider[k]) for k, _ in units),
            uses=uses,
        )

    def _combine(self, options: list[list[_Choice]]) -> IntArray | None:
        """Depth first over the tasks, those with few ways first; keeps the best by the chain.

        Tasks to come use at least the least of their ways of each row, which may be below zero.
        """
        if not all(options):
            return None
        options = sorted(options, key=len)
        room, rooms, to_come = [self.room], [self.bounds], [0]
        for each in reversed(options):
            room.append(room[-1] - min(c.excess for c in each))
            rooms.append(rooms[-1] - np.min([c.uses for c in each], axis=0))
            to_come.append(to_come[-1] + min(self._first(c) for c in each))
        best: tuple[tuple[float, ...], list[tuple[int, int]], tuple[_Choice, ...]] | None = None
        stack = [_Part(excess=0.0, uses=np.zeros_like(self.bounds), first=0)]
        while stack:
            part = stack.pop()
            self.steps.take()
            depth = len(part.taken)
            if best is not None and self.linear and part.first + to_come[len(options) - depth] > best[0][0]:
                continue
            if depth == len(options):
                best = self._better(best, part.taken)
                continue
            most, bounds = room[len(options) - depth - 1], rooms[len(options) - depth - 1]
            for choice in reversed(options[depth]):
                excess, uses = part.excess + choice.excess, part.uses + choice.uses
                taken = (*part.taken, choice)
                if excess <= most and (uses <= bounds).all() and self._few_providers(taken):
                    first = part.first + self._first(choice)
                    stack.append(_Part(excess=excess, uses=uses, first=first, taken=taken))
        return None if best is None else _dense(self.program, [pair for choice in best[2] for pair in choice.units])

    def _first(self, choice: _Choice) -> int:
        """Value of the first criterion, 0 when it is no sum."""
        return choice.sums[0] if self.linear and self.chain[0] == self.linear[0] else 0

    def _better(
        self,
        best: tuple[tuple[float, ...], list[tuple[int, int]], tuple[_Choice, ...]] | None,
        taken: tuple[_Choice, ...],
    ) -> tuple[tuple[float, ...], list[tuple[int, int]], tuple[_Choice, ...]] | None:
        """The better of two plans by the chain, then by canonical order."""
        key = self._key(taken)
        if best is not None and key > best[0]:
            return best
        order = sorted((self.rank[k], -u) for choice in taken for k, u in choice.units)
        return (key, order, taken) if best is None or (key, order) < best[:2] else best

    def _few_providers(self, taken: tuple[_Choice, ...]) -> bool:
        most = self.program.max_providers
        return most is None or len(frozenset[int]().union(*(c.providers for c in taken)) - {-1}) <= most

    def _key(self, taken: tuple[_Choice, ...]) -> tuple[float, ...]:
        sums = dict(zip(self.linear, (sum(values) for values in zip(*(choice.sums for choice in taken)))))
        key: list[float] = []
        for name in self.chain:
            if name in sums:
                key.append(sums[name])
            elif name == "time":
                key.append(max(choice.finish_s for choice in taken))
        return tuple(key)


def _limits(scope: Scope, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Coefficients of some columns (columns, limits) in joint rows and settled linear criteria; the bounds."""
    joint, place = scope.joint, np.full(scope.program.column_count, -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    here, row = place[joint.columns], np.repeat(np.arange(len(joint.bounds)), np.diff(joint.starts))
    dense = np.zeros((len(columns), len(joint.bounds)), dtype=np.int64)
    dense[here[here >= 0], row[here >= 0]] = joint.coefficients[here >= 0]
    settled = [(name, int(value)) for name, value in scope.settled if name in LINEAR]
    held = [weights_of(scope.program, name)[columns] for name, _ in settled]
    bounds = np.array([value for _, value in settled], dtype=np.int64)
    return np.column_stack([dense, *held]), np.concatenate([joint.bounds, bounds])


def _dense(program: Program, units: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> IntArray:
    dense = np.zeros(program.column_count, dtype=np.int64)
    for column, amount in units:
        dense[column] = amount
    return dense
