"""Ways to meet one task at given prices: the cheapest, and all that are nearly as cheap.

Joint limits get prices (multipliers of the relaxation, `Prices`). With the priced weight
w_k = c_k + sum_r price_r a_rk >= 0 of each column, every plan has

    c u >= sum_t min over the ways of task t of (w u)  -  sum_r price_r bound_r  =  L,

a bound in which tasks are met in whole units (so it is at least the linear relaxation's,
as far as joint limits go), and c u - L is at least the sum over the tasks of what their
way is dearer than the cheapest, their *excess*. A plan of value at most Z is therefore
made of ways whose excesses sum to at most Z - L. Any prices >= 0 give a valid bound.

Only ways that stop working when a unit is taken out are listed: with more units than that,
every criterion is as bad or worse and there are more nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from planner.candidates.program import IntArray, Task, splits_simply, supplies
from planner.carriers import dataclass
from planner.optimize.model import Model
from planner.optimize.relax import MARGIN, Relaxation
from planner.optimize.scope import Scope
from planner.optimize.status import FloatArray

JOINT = ("limit", "hold")  # families of lines that get prices
MOST_STEPS = 8_000
MOST_WAYS = 1_500  # of one task

Way = tuple[float, tuple[tuple[int, int], ...]]  # priced weight, (column, units)


class TooManyError(Exception):
    """More than it is worth walking through."""


@dataclass(slots=True, kw_only=True)
class Steps:
    """What is left of the patience."""

    left: int

    def take(self, count: int = 1) -> None:
        """Spend some; raises `TooManyError` when it is gone."""
        self.left -= count
        if self.left < 0:
            raise TooManyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Priced weight of every open column (scaled), and what the limits give back."""

    weights: FloatArray  # by column, infinite when it is closed
    constant: float

    @classmethod
    def of(cls, model: Model, relaxation: Relaxation) -> Prices:
        """From the multipliers of the joint lines (limits and held criteria); others get none."""
        table, count = model.table(), len(model.columns)
        weights, multipliers = model.objective[:count].copy(), relaxation.multipliers
        constant = 0.0
        # lines learned since then have no multiplier
        known = table.kinds[: len(multipliers)]
        joint = np.array([kind in JOINT for kind in known], dtype=bool) & (multipliers < 0)
        for number in np.flatnonzero(joint).tolist():
            part = slice(table.starts[number], table.starts[number + 1])
            variables = table.variables[part]
            if (variables < count).all():
                constant += float(multipliers[number] * table.high[number])
                weights[variables] -= multipliers[number] * table.coefficients[part]
        dense = np.full(int(model.columns.max(initial=-1)) + 1, math.inf)
        dense[model.columns] = weights
        return cls(weights=dense, constant=constant)


def walkable(scope: Scope) -> bool:
    """Whether the ways of every task can be listed: nothing optional, no fleet to route, on spot, or that supplies."""
    return all(
        task.kind == "training"
        or (
            task.kind == "serving"
            and task.max_spot_share is None
            and not task.levels
            and (splits_simply(scope.program, task) or not any(task.demand_micro_per_s))
            and not supplies(scope.program, task)
        )
        for task in scope.program.tasks
    )


def cheapest_way(scope: Scope, task: Task, prices: Prices, steps: Steps) -> Way | None:
    """The way of least priced weight; None when there is none.

    Parameters
    ----------
    scope
        One that is `walkable`.
    task
        Of its program.
    prices
        Of every open column.
    steps
        Patience, of which each look takes some.

    Raises
    ------
    TooManyError
        The patience is gone.
    """
    best: Way | None = None
    limit = [math.inf]
    for way in _ways(scope, task, prices, limit, steps):
        if best is None or way[0] < best[0]:
            best, limit[0] = way, math.nextafter(way[0], -math.inf)  # from now on only better ones
    return best


def ways_within(scope: Scope, task: Task, prices: Prices, most: float, steps: Steps) -> list[Way]:
    """All ways of at most a priced weight.

    Parameters
    ----------
    scope
        One that is `walkable`.
    task
        Of its program.
    prices
        Of every open column.
    most
        Priced weight, scaled as the prices are; a margin for rounding is added.
    steps
        Patience, of which each look takes some.

    Raises
    ------
    TooManyError
        The patience is gone, or there are too many ways.
    """
    found = []
    for way in _ways(scope, task, prices, [most + MARGIN * max(1.0, abs(most))], steps):
        found.append(way)
        if len(found) > MOST_WAYS:
            raise TooManyError
    return found


def _ways(scope: Scope, task: Task, prices: Prices, limit: list[float], steps: Steps) -> Iterator[Way]:
    """Ways of at most `limit[0]`, which the reader may lower on the way."""
    columns = scope.of_task(task)
    if task.kind == "training":
        yield from _jobs(scope, task, columns, prices, limit, steps)
    else:
        yield from _Fleet(scope, task, columns, prices, steps).ways(limit)


def _jobs(
    scope: Scope, task: Task, columns: IntArray, prices: Prices, limit: list[float], steps: Steps
) -> Iterator[Way]:
    """Training: all ways to share the jobs of a task, cheapest columns first."""
    weights = prices.weights[columns]
    near = weights <= limit[0] if task.count == 1 else np.ones(len(columns), dtype=bool)
    columns, weights = columns[near], weights[near]
    order = np.argsort(weights, kind="stable")
    if task.count > 1:
        prices_of = dict(zip(columns.tolist(), weights.tolist()))
        yield from _shares(scope, columns[order].tolist(), prices_of, limit, steps, 0, task.count, 0.0, ())
        return
    for place in order:
        if weights[place] > limit[0]:
            return
        steps.take()
        yield float(weights[place]), ((int(columns[place]), 1),)


def _shares(
    scope: Scope,
    order: list[int],
    prices: dict[int, float],
    limit: list[float],
    steps: Steps,
    start: int,
    missing: int,
    weight: float,
    units: tuple[tuple[int, int], ...],
) -> Iterator[Way]:
    """All ways to share `missing` jobs among the columns from `start` on."""
    if not missing:
        yield weight, units
        return
    for at in range(start, len(order)):
        column = order[at]
        price = prices[column]
        if weight + missing * price > limit[0]:
            return  # later columns cost as much or more
        for amount in range(min(int(scope.upper[column]), missing), 0, -1):
            steps.take()
            total, more = weight + amount * price, (*units, (column, amount))
            yield from _shares(scope, order, prices, limit, steps, at + 1, missing - amount, total, more)


class _Fleet:
    """Serving with one bucket: covers of the demand, in integers (`parts` to the micro-request)."""

    def __init__(self, scope: Scope, task: Task, columns: IntArray, prices: Prices, steps: Steps) -> None:
        program = scope.program
        replicas = {int(k): max(int(program.replicas[k]), 1) for k in columns}
        parts = math.lcm(*replicas.values()) if task.spare_replicas else 1
        demand = task.demand_micro_per_s[0] if task.demand_micro_per_s else 0
        self.steps, self.scope = steps, scope
        self.demand, self.least_replicas = max(demand, 0) * parts, task.min_replicas
        self.capacity = {k: int(program.capacity_micro_per_s[k, 0]) * parts if demand > 0 else 0 for k in replicas}
        self.lost = {k: task.spare_replicas * self.capacity[k] // replicas[k] for k in replicas}
        self.replicas = {k: int(program.replicas[k]) for k in replicas}
        self.weights = dict(zip(columns.tolist(), prices.weights[columns].tolist()))
        self.order = sorted(replicas, key=lambda k: (self._rate(k), k))
        self.rates = [self._rate(k) for k in self.order]
        # least weight per replica of this column and all later ones
        self.per_replica = [math.inf] * (len(self.order) + 1)
        for at in range(len(self.order) - 1, -1, -1):
            each = self.weights[self.order[at]] / max(self.replicas[self.order[at]], 1)
            self.per_replica[at] = min(self.per_replica[at + 1], each)

    def _rate(self, column: int) -> float:
        capacity = self.capacity[column]
        return self.weights[column] / capacity if capacity else math.inf

    def ways(self, limit: list[float]) -> Iterator[Way]:
        """All minimal covers of at most the limit."""
        if not self.demand and self.least_replicas <= 0:
            yield 0.0, ()
            return
        yield from self._from(0, 0, 0, 0, 0.0, (), limit)

    def _from(
        self,
        start: int,
        carried: int,
        lost: int,
        replicas: int,
        weight: float,
        units: tuple[tuple[int, int], ...],
        limit: list[float],
    ) -> Iterator[Way]:
        missing = self.demand + lost - carried
        short = self.least_replicas - replicas
        for at in range(start, len(self.order)):
            column = self.order[at]
            if missing > 0 and weight + missing * self.rates[at] > limit[0]:
                return  # later columns carry no more for the money
            if short > 0 and weight + short * self.per_replica[at] > limit[0]:
                return
            more_lost = max(lost, self.lost[column])
            enough = self._enough(column, self.demand + more_lost - carried, short)
            price = self.weights[column]
            top = int(min(enough, int(self.scope.upper[column])))
            if price > 0 and weight + top * price > limit[0]:
                top = min(top, int((limit[0] - weight) / price) + 1)
            for amount in range(top, 0, -1):
                self.steps.take()
                total = weight + amount * price
                if total > limit[0]:
                    continue
                chosen = (*units, (column, amount))
                if amount >= enough:
                    yield total, chosen
                    continue
                grown = carried + amount * self.capacity[column]
                counted = replicas + amount * self.replicas[column]
                yield from self._from(at + 1, grown, more_lost, counted, total, chosen, limit)

    def _enough(self, column: int, missing: int, short: int) -> float | int:
        """Units of a column that complete the fleet; infinite when it cannot."""
        needed: float | int = 1
        for want, each in ((missing, self.capacity[column]), (short, self.replicas[column])):
            if want > 0:
                needed = max(needed, -(-want // each)) if each else math.inf
        return needed
