"""A plan made without a solver, so that there is one when the solver is cut short.

Tasks are placed one after another, each on the column that is cheapest now: its own cost, plus what the
supplies (optional columns) are worth that it takes beyond what is free. Afterwards supplies are bought where
rows lack them, always the one that covers most for its money. That is done in several orders and with two
values of supplies (of a single row alone, and shared by all rows that they serve); the cheapest plan that
stands up to the exact check is the answer. Nothing here is believed: sums are in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, WHOLE, IntArray, Task, optional_columns, splits_simply
from planner.candidates.prune import carrying_units
from planner.carriers import dataclass
from planner.optimize.check import task_violations, violations
from planner.optimize.criteria import value_of
from planner.optimize.incumbent import covers
from planner.optimize.scope import Scope
from planner.optimize.status import FloatArray

ROUNDS = 3  # of working out what supplies are worth that need supplies themselves
MOST_STEPS = 20_000  # purchases of one try
MOST_STARTS = 12  # providers to begin with, where their number is limited
Bundle = tuple[tuple[int, int], ...]  # (column, units) that meet a task together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Joint rows by column: column k has the entries `starts[k]:starts[k + 1]`."""

    starts: IntArray
    rows: IntArray
    uses: FloatArray
    bounds: FloatArray
    suppliers: tuple[IntArray, ...]  # of each row: open optional columns with a coefficient below zero
    supply: FloatArray  # (rows,) all that these can add

    @classmethod
    def of(cls, scope: Scope) -> _Rows:
        joint, n = scope.joint, scope.program.column_count
        row = np.repeat(np.arange(len(joint.bounds)), np.diff(joint.starts))
        order = np.argsort(joint.columns, kind="stable")
        columns, rows, uses = joint.columns[order], row[order], joint.coefficients[order].astype(np.float64)
        gives = (uses < 0) & optional_columns(scope.program)[columns] & (scope.upper[columns] > 0)
        supply = np.bincount(
            rows[gives], weights=-uses[gives] * scope.upper[columns[gives]], minlength=len(joint.bounds)
        )
        by_row = np.argsort(rows[gives], kind="stable")
        ends = np.searchsorted(rows[gives][by_row], np.arange(len(joint.bounds) + 1))
        return cls(
            starts=np.searchsorted(columns, np.arange(n + 1)),
            rows=rows,
            uses=uses,
            bounds=joint.bounds.astype(np.float64),
            suppliers=tuple(columns[gives][by_row][a:b] for a, b in pairwise(ends.tolist())),
            supply=supply.astype(np.float64),
        )

    def of_column(self, column: int) -> tuple[IntArray, FloatArray]:
        """Rows that a column touches, and its coefficients there."""
        part = slice(int(self.starts[column]), int(self.starts[column + 1]))
        return self.rows[part], self.uses[part]

    def worth(self, scope: Scope, *, shared: bool) -> FloatArray:
        """What a unit of each row costs when it has to be bought; 0 where nothing supplies it."""
        cost = scope.program.cost_microusd
        worth = np.zeros(len(self.bounds))
        for _ in range(ROUNDS):
            before = worth.copy()
            for row, columns in enumerate(self.suppliers):
                each = []
                for column in columns.tolist():
                    rows, uses = self.of_column(column)
                    price = float(cost[column]) + float(np.maximum(uses, 0.0) @ before[rows])
                    given = -uses[rows == row][0] if not shared else float(-uses[uses < 0].sum())
                    each.append(price / given)
                worth[row] = min(each, default=0.0)
            if (worth == before).all():
                break
        return worth


def greedy_plan(scope: Scope, *, stop: Callable[[], bool] = lambda: False) -> IntArray | None:
    """The cheapest of several plans that are put together task by task; None when none stands.

    Parameters
    ----------
    stop
        Asked now and then: whether what was found by now has to do.

    Examples
    --------
    Two jobs and room for one on the cheaper column.

    >>> from planner.candidates.program import Program, Row, Task
    >>> from planner.optimize.scope import scope_of
    >>> ints = lambda *v: np.array(v, dtype=np.int64)
    >>> program = Program(
    ...     tasks=(Task(name="job", kind="training", first=0, stop=2, count=2),), cost_microusd=ints(5, 7),
    ...     finish_s=np.zeros(2), carbon_mg=ints(0, 0), nodes=ints(1, 1), replicas=ints(0, 0),
    ...     capacity_micro_per_s=np.zeros((2, 0), dtype=np.int64), max_units=ints(9, 9), provider=ints(0, 0),
    ...     offer=ints(0, 1), rows=(Row(name="quota", label="", bound=1, columns=ints(0), coefficients=ints(1)),))
    >>> greedy_plan(scope_of(program))
    array([1, 1])
    """
    program, rows = scope.program, _Rows.of(scope)
    asked = [task for task in program.tasks if task.kind != "optional"]
    bundles = {task.name: _bundles(scope, task, stop) for task in asked}
    best: IntArray | None = None
    tried = False
    for worth in _values_of_supplies(scope, rows):
        for start in _starts(scope):
            here = scope if start is None else scope.only(start)
            for order in _orders(here, asked, rows, worth):
                if tried and stop():
                    return best
                tried = True
                units = _Try(scope=here, rows=rows, worth=worth, bundles=bundles).run(order)
                if units is None or (best is not None and _cost(scope, units) >= _cost(scope, best)):
                    continue
                if next(violations(scope, units), None) is None:
                    best = units
    return best


def _cost(scope: Scope, units: IntArray) -> int:
    return int(value_of(scope.program, units, "cost"))


def _values_of_supplies(scope: Scope, rows: _Rows) -> Iterator[FloatArray]:
    alone = rows.worth(scope, shared=False)
    yield alone
    if alone.any():
        shared = rows.worth(scope, shared=True)
        if (shared != alone).any():
            yield shared


def _starts(scope: Scope) -> Iterator[NDArray[np.bool_] | None]:
    """Where the number of providers is limited: each with those that have most columns."""
    program = scope.program
    most = program.max_providers
    names, counts = np.unique(program.provider[scope.open], return_counts=True)
    names, counts = names[names >= 0], counts[names >= 0]
    if most is None or most >= len(names):
        yield None
        return
    by_size = names[np.argsort(-counts, kind="stable")]
    for first in by_size[:MOST_STARTS].tolist():
        others = [name for name in by_size.tolist() if name != first][: most - 1]
        yield np.isin(program.provider, [-1, first, *others])


def _orders(scope: Scope, tasks: list[Task], rows: _Rows, worth: FloatArray) -> Iterator[list[Task]]:
    """Most to lose by the second best first; largest first; fewest ways first."""
    regret, size, ways = [], [], []
    for task in tasks:
        columns = scope.of_task(task)
        prices = np.sort(_prices(scope, rows, worth, columns)) if len(columns) else np.zeros(1)
        regret.append(float(prices[min(len(prices) - 1, 3)] - prices[0]))
        size.append(float(prices[0]))
        ways.append(len(columns))
    seen: list[list[int]] = []
    for keys in ([-r for r in regret], [-s for s in size], ways):
        order = [int(place) for place in np.argsort(np.array(keys, dtype=np.float64), kind="stable")]
        if order not in seen:
            seen.append(order)
            yield [tasks[place] for place in order]


def _prices(scope: Scope, rows: _Rows, worth: FloatArray, columns: IntArray) -> FloatArray:
    """Cost of a unit of each column with all that it takes of supplied rows."""
    starts, ends = rows.starts[columns], rows.starts[columns + 1]
    touched = _ranges(starts, ends)
    taken = np.maximum(rows.uses[touched], 0.0) * worth[rows.rows[touched]]
    owner = np.repeat(np.arange(len(columns)), ends - starts)
    price = np.bincount(owner, weights=taken, minlength=len(columns)) + scope.program.cost_microusd[columns]
    return np.asarray(price, dtype=np.float64)


def _ranges(starts: IntArray, ends: IntArray) -> IntArray:
    """All numbers from each start to its end."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths), dtype=np.int64)


def _bundles(scope: Scope, task: Task, stop: Callable[[], bool]) -> list[Bundle]:
    """Ways to meet a fleet: one column alone, a pair of pools, or the best rates for the money together."""
    if task.kind != "serving":
        return []
    program, first = scope.program, task.first
    if not any(map(any, task.demands)) and task.min_replicas <= 0:
        return [()]
    part = slice(first, task.stop)
    alone = np.asarray(carrying_units(program, task))
    asked = np.array(task.demands).max(axis=0) > 0
    able = (program.capacity_micro_per_s[part, : len(asked)][:, asked] > 0).all(axis=1)
    able &= (alone <= scope.upper[part]) & (program.level[part] == 0)
    price = alone * program.cost_microusd[part].astype(np.float64)
    role = program.role[part]
    found: list[Bundle] = [((first + int(k), int(alone[k])),) for k in np.flatnonzero(able & (role == WHOLE))]
    pools = [np.flatnonzero(able & (role == each)) for each in (PREFILL, DECODE)]
    if all(len(pool) for pool in pools):
        pairs = [[int(k) for k in pool[np.argsort(price[pool], kind="stable")[:4]]] for pool in pools]
        found += [((first + a, int(alone[a])), (first + b, int(alone[b]))) for a in pairs[0] for b in pairs[1]]
    if splits_simply(program, task):
        found += _filled(scope, task)
    if task.survive_domain:
        found = list(_twice(scope, found))
    if task.boxed and not splits_simply(program, task):
        found += [_sparse(units) for units in covers(scope, task, program.cost_microusd)]
    found.sort(key=lambda bundle: sum(units * float(program.cost_microusd[k]) for k, units in bundle))
    standing: list[Bundle] = []
    for bundle in found:  # the cheapest first: what there is no time to look at is dearer
        if standing and stop():
            break
        if next(task_violations(program, task, _dense(scope, bundle)), None) is None:
            standing.append(bundle)
    return standing


def _sparse(units: IntArray) -> Bundle:
    return tuple((int(k), int(units[k])) for k in np.flatnonzero(units))


def _dense(scope: Scope, bundle: Bundle) -> IntArray:
    units = np.zeros(scope.program.column_count, dtype=np.int64)
    for column, amount in bundle:
        units[column] += amount
    return units


def _twice(scope: Scope, bundles: list[Bundle]) -> Iterator[Bundle]:
    """Two bundles that share no failure domain, the cheapest of each domain first."""
    program = scope.program
    domains = [{int(program.domain[k]) for k, _ in bundle} for bundle in bundles]
    prices = [sum(units * float(program.cost_microusd[k]) for k, units in bundle) for bundle in bundles]
    cheapest: dict[int, int] = {}
    for place in sorted(range(len(bundles)), key=lambda at: prices[at]):
        if len(domains[place]) == 1:
            cheapest.setdefault(next(iter(domains[place])), place)
    for one, other in combinations(cheapest.values(), 2):
        yield (*bundles[one], *bundles[other])


def _filled(scope: Scope, task: Task) -> Iterator[Bundle]:
    """The cheapest rates first, as many units as there are, until all is carried; with and without spot."""
    program, columns = scope.program, scope.of_task(task)
    rates = program.capacity_micro_per_s[columns, 0]
    for firm in (False, True):
        usable = columns[(rates > 0) & ((program.spot[columns] == 0) | (not firm))]
        each = program.cost_microusd[usable] / program.capacity_micro_per_s[usable, 0]
        units = np.zeros(program.column_count, dtype=np.int64)
        for column in usable[np.argsort(each, kind="stable")].tolist():
            low, high = 1, int(scope.upper[column])
            units[column] = high
            if next(task_violations(program, task, units), None) is not None:
                continue
            while low < high:  # as few as will do
                units[column] = (low + high) // 2
                if next(task_violations(program, task, units), None) is None:
                    high = int(units[column])
                else:
                    low = int(units[column]) + 1
            units[column] = high
            yield _sparse(units)
            break


@dataclass(slots=True, kw_only=True)
class _Try:
    """One plan in the making."""

    scope: Scope
    rows: _Rows
    worth: FloatArray
    bundles: dict[str, list[Bundle]]

    def run(self, order: list[Task]) -> IntArray | None:
        """Tasks in an order, then purchases; None when something does not fit."""
        scope, rows = self.scope, self.rows
        units = np.zeros(scope.program.column_count, dtype=np.int64)
        room = rows.bounds.copy()
        hope = rows.supply.copy()  # what can still be added: supplies, and tasks that are not placed yet
        promised = {task.name: self._promise(task) for task in order}
        for given in promised.values():
            hope += given
        for task in order:
            hope -= promised[task.name]
            placed = (
                self._jobs(task, units, room, hope) if task.kind == "training" else self._fleet(task, units, room, hope)
            )
            if not placed:
                return None
        return units if self._buy(units, room) else None

    def _promise(self, task: Task) -> FloatArray:
        """The most that the jobs of a task can add to each row."""
        given = np.zeros(len(self.rows.bounds))
        touched = slice(int(self.rows.starts[task.first]), int(self.rows.starts[task.stop]))
        less = self.rows.uses[touched] < 0
        np.maximum.at(given, self.rows.rows[touched][less], -self.rows.uses[touched][less] * task.count)
        return given

    def _jobs(self, task: Task, units: IntArray, room: FloatArray, hope: FloatArray) -> bool:
        scope, rows, missing = self.scope, self.rows, task.count
        columns = scope.of_task(task)
        starts, ends = rows.starts[columns], rows.starts[columns + 1]
        touched, owner = _ranges(starts, ends), np.repeat(np.arange(len(columns)), ends - starts)
        row, use = rows.rows[touched], rows.uses[touched]
        lacking = np.flatnonzero(room + hope < 0)  # rows that only this task can put right
        while missing > 0:
            free = scope.upper[columns] - units[columns]
            left = room[row] + hope[row]
            most = np.where(use > 0, np.floor(np.maximum(left, -1.0) / np.maximum(use, 1e-300)), np.inf)
            fits = np.full(len(columns), float(missing))
            np.minimum.at(fits, owner, most)
            fits = np.minimum(fits, free)
            for each in lacking:
                given = np.bincount(owner[row == each], weights=-use[row == each], minlength=len(columns))
                fits[room[each] + hope[each] + given * missing < 0] = 0
            bought = np.clip(use - np.maximum(room[row], 0.0), 0.0, np.maximum(use, 0.0)) * self.worth[row]
            price = scope.program.cost_microusd[columns] + np.bincount(owner, weights=bought, minlength=len(columns))
            price = np.where(fits < 1, np.inf, price)
            if not len(price) or not np.isfinite(price.min()):
                return False
            place = int(np.argmin(price))
            amount = int(fits[place]) if missing > 1 else 1
            self._take(int(columns[place]), amount, units, room)
            missing -= amount
            lacking = np.flatnonzero(room + hope < 0) if missing else lacking
        return True

    def _fleet(self, task: Task, units: IntArray, room: FloatArray, hope: FloatArray) -> bool:
        best, least = None, np.inf
        for bundle in self.bundles[task.name]:
            if any(self.scope.upper[k] < amount for k, amount in bundle):
                continue
            need = np.zeros(len(room))
            for column, amount in bundle:
                touched, uses = self.rows.of_column(column)
                need[touched] += uses * amount
            if (need > np.maximum(room + hope, 0.0)).any():
                continue
            price = sum(float(self.scope.program.cost_microusd[k]) * amount for k, amount in bundle)
            price += float(np.clip(need - np.maximum(room, 0.0), 0.0, None) @ self.worth)
            if price < least:
                best, least = bundle, price
        for column, amount in best or ():
            self._take(column, amount, units, room)
        return best is not None

    def _take(self, column: int, amount: int, units: IntArray, room: FloatArray) -> None:
        touched, uses = self.rows.of_column(column)
        units[column] += amount
        room[touched] -= uses * amount

    def _buy(self, units: IntArray, room: FloatArray) -> bool:
        """Supplies for every row that lacks them, the best value first."""
        for _ in range(MOST_STEPS):
            lacking = np.flatnonzero(room < 0)
            if not len(lacking):
                return True
            best, least, amount = -1, np.inf, 0
            for column in self.rows.suppliers[int(lacking[0])].tolist():
                touched, uses = self.rows.of_column(column)
                free = int(self.scope.upper[column] - units[column])
                covers = (uses < 0) & (room[touched] < 0)
                if free <= 0 or not covers.any():
                    continue
                covered = float(np.minimum(-uses[covers], -room[touched[covers]]) @ self._weights(touched[covers]))
                needed = np.maximum(uses, 0.0) > np.maximum(room[touched], 0.0)
                price = float(self.scope.program.cost_microusd[column])
                price += float(np.maximum(uses[needed], 0.0) @ self.worth[touched[needed]])
                if any(not len(self.rows.suppliers[int(r)]) for r in touched[needed]):
                    continue  # takes what cannot be bought
                if price < least * covered or best < 0:
                    steps = np.ceil(-room[touched[covers]] / -uses[covers])
                    best, least, amount = column, price / covered, int(min(free, max(float(steps.min()), 1.0)))
                    amount = min(amount, self._payable(touched, uses, room))
            if best < 0:
                return False
            self._take(best, amount, units, room)
        return False

    def _payable(self, touched: IntArray, uses: FloatArray, room: FloatArray) -> int:
        """Units that fit rows which nothing supplies."""
        hard = [
            (float(room[r]), float(a)) for r, a in zip(touched, uses) if a > 0 and not len(self.rows.suppliers[int(r)])
        ]
        return max(1, int(min((left // use for left, use in hard), default=2**62)))

    def _weights(self, rows: IntArray) -> FloatArray:
        """Rows count by what a unit of them is worth."""
        return np.maximum(self.worth[rows], 1e-9)


__all__ = ["greedy_plan"]
