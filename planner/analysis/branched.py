"""The tree of branches of a certificate: made where prices of limits alone prove too little.

At each side the prices that prove the most are found from the ways that were seen to be least there, as of all plans
together (`planner.analysis.limit_prices`), every other time half-way from the best ones so far (Wentges, International
Transactions in Operational Research 4(2) 1997). What mixture of these ways weighs so much shows what is not whole: the
dearest purchase of which there is a part, a job that uses a limit in part, or units of a fleet that differ from way to
way. There the side is parted; the side that proves least comes first. Source: branch and price, Barnhart et al.,
Operations Research 46(3) (1998).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, cast

import numpy as np

from planner.analysis.limit_prices import Cut, prices_of_ways, taken_of
from planner.candidates.program import Program, Task, optional_columns, units_of
from planner.candidates.shared_nodes import NODES
from planner.carriers import dataclass
from planner.optimize import highs
from planner.optimize.status import FloatArray
from planner.plan.branches import MOST_BRANCHES, Between, Left, Mixed, Way, left_below, no_mixes
from planner.plan.certificate import TIE
from planner.plan.cover import MOST_STEPS, UNMET
from planner.plan.least_weights import STEPS, Least, priced_weights
from planner.plan.proof import reaches

if TYPE_CHECKING:
    from planner.plan.model.others import Branch, RowPrice, Selection

MOST_COLUMNS = 40_000  # of a program that is parted: of more, each side takes seconds
MOST_ROUNDS, MOST_WEIGHED = 1_500, 20_000_000  # prices tried at all sides together, and steps of the searches for it
MANY = 100  # limits whose prices are all looked for; where there are more, those of shared nodes alone
ROUNDS, MOST_AT_ONE = 60, 400  # at one side, where there is what parts it, and where there is not
LARGE = 10**9  # what is charged for limits that nothing meets, as much as you like
WHOLE = 1e-6  # parts of a unit below this are rounding
BOUGHT, USED, RUN, UNEVEN, SIZED = 4, 3, 2, 1, 0  # what is parted, first to last
STEPS_OF_WEIGHING = 20_000  # of a search for the least of one fleet, while prices are looked for
Ways = dict[tuple[tuple[int, int], ...], Cut]  # units by column, what they weigh and what they take


@dataclass(slots=True, kw_only=True)
class _Side:
    """Some plans, and what is known of them."""

    plans: Between
    prices: list[int]  # that prove most, of the limits that are priced
    seen: tuple[Ways, ...]  # by task
    bound: int = -UNMET
    mixture: _Mixture | None = None  # of ways that weighs so much; None: no more is asked of the side
    branch: Branch | None = None
    sides: tuple[_Side, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mixture:
    """Mean, variance and most of the units of each column."""

    mean: FloatArray
    variance: FloatArray
    most: FloatArray


def parted(
    whole: Program,
    priced: Selection,
    value: int,
    share: float,
    over: Callable[[], bool] = lambda: False,
    mixed: Mixed = no_mixes,
) -> Selection | None:
    """A certificate with a tree of branches, or at prices of all plans that do without; None where none is made.

    Parameters
    ----------
    whole
        Every column.
    priced
        Prices of limits and of requests; of the criterion ``limits`` they are to show that nothing meets them.
    value
        Of a plan, in the criterion's unit; of limits what shows that there is none.
    share
        Of the value, within which two are equal.
    over
        Whether the time is up.
    mixed
        Of mixes of jobs that are not among the columns.
    """
    if whole.column_count > MOST_COLUMNS or not whole.rows or value <= 0 or not highs.available():
        return None
    upper = units_of(whole)
    if priced["latest_s"] is not None:
        upper[whole.finish_s > priced["latest_s"] * (1 + TIE)] = 0
    for _ in range(2):  # the second time of fewer columns: at the prices of the first the bound is nearer to the value
        left = left_below(whole, priced, upper, value, mixed)
        if left is None or left.bound >= value * STEPS:
            return None if left is None else priced  # prices of all plans do
        search, base = _Search(left, priced, value, share, over), priced
        if not search.numbers:
            return None
        root = search.root()
        priced = _of_all(whole, priced, dict(zip(search.numbers, root.prices)))
    search.part(root)
    return cast("Selection", {**base, "branches": list(search.tree(root))})


def _of_all(whole: Program, priced: Selection, found: Mapping[int, int]) -> Selection:
    """A certificate at other prices of some limits, no more than what is bought for others to use is worth.

    Prices of fewer columns know nothing of purchases that are left out, of which there would be any number.
    """
    prices = {one["number"]: one["price"] for one in priced["rows"]} | dict(found)
    changed = cast("Selection", {**priced, "rows": _entries(whole, prices)})
    weights, optional = priced_weights(whole, changed), optional_columns(whole)
    for number, row in enumerate(whole.rows):
        supplies = (row.coefficients < 0) & optional[row.columns]
        short = [-(int(w) // -int(a)) for w, a in zip(weights[row.columns[supplies]], row.coefficients[supplies])]
        if short and (less := min(max(short), prices.get(number, 0))) > 0:
            prices[number] -= less
            np.subtract.at(weights, row.columns, row.coefficients.astype(object) * less)
    return cast("Selection", {**priced, "rows": _entries(whole, prices)})


def _entries(program: Program, prices: Mapping[int, int]) -> list[RowPrice]:
    """Prices as a certificate has them."""
    return [{"number": n, "name": program.rows[n].name, "price": p} for n, p in sorted(prices.items()) if p > 0]


class _Search:
    """One tree."""

    def __init__(self, left: Left, priced: Selection, value: int, share: float, over: Callable[[], bool]) -> None:
        self.left, self.program, self.value, self.share, self.over = left, left.program, value, share, over
        self.limits = priced["criterion"] == "limits"
        self.numbers = [number for number, row in enumerate(left.program.rows) if (row.coefficients > 0).any()]
        if len(self.numbers) > MANY:
            shared = next((range(t.first, t.stop) for t in self.program.tasks if t.name == NODES), range(0))
            supplied = {n: row.columns[row.coefficients < 0] for n, row in enumerate(self.program.rows)}
            self.numbers = [number for number in self.numbers if np.isin(supplied[number], shared).any()]
        rows = [left.program.rows[number] for number in self.numbers]
        self.taken, self.bounds = taken_of(left.program, self.numbers)
        self.dearest = np.full(len(self.numbers), np.inf)  # on a side little may be left to buy, at any price
        # what a unit that takes the least of a limit is charged at most
        self.least_taken = np.array([row.coefficients[row.coefficients > 0].min() for row in rows], dtype=np.float64)
        known = {one["number"]: one["price"] for one in priced["rows"]}
        self.start = [known.get(number, 0) for number in self.numbers]
        # of a limit that nobody left uses any price makes what is bought for it only lighter
        idle = {n for n, row in enumerate(left.program.rows) if row.bound >= 0 and not (row.coefficients > 0).any()}
        self.others = {n: price for n, price in known.items() if n not in {*self.numbers, *idle}}
        self.weights = left.unpriced.copy()
        for number, price in self.others.items():
            row = left.program.rows[number]
            np.add.at(self.weights, row.columns, row.coefficients.astype(object) * price)
        self.known: dict[object, Least] = {}
        self.rounds = self.steps = 0

    def root(self) -> _Side:
        """All plans."""
        every = Between(np.zeros_like(self.left.upper), self.left.upper)
        seen = tuple(Ways() for _ in self.program.tasks)
        return self._priced(_Side(plans=every, prices=self.start, seen=seen))

    def part(self, root: _Side) -> None:
        """Part the side that proves least, again and again."""
        heap, made = [(root.bound, 0, root)], 1
        while heap and made + 2 <= MOST_BRANCHES and not self._tired():
            _, _, side = heappop(heap)
            if self._done(side):
                return
            side.branch = self._branch(side)
            if side.branch is None:
                return
            for plans in self.left.sides(side.branch, side.plans):
                one = self._priced(_Side(plans=plans, prices=side.prices, seen=side.seen))
                side.sides = (*side.sides, one)
                made += 1
                heappush(heap, (one.bound, made, one))

    def _tired(self) -> bool:
        """Whether enough was tried: counted, so that it is as much on every machine; or the time is up."""
        return self.rounds >= MOST_ROUNDS or self.steps >= MOST_WEIGHED or self.over()

    def tree(self, side: _Side) -> Iterator[Branch]:
        """From a side on."""
        if side.branch is None:
            yield {"kind": "prices", "rows": _entries(self.program, self._prices(side.prices))}
            return
        yield side.branch
        for one in side.sides:
            yield from self.tree(one)

    def _done(self, side: _Side) -> bool:
        if self.limits:
            return side.bound >= self.value * STEPS
        return reaches(self.value, -(-side.bound // STEPS), self.share)

    def _priced(self, side: _Side) -> _Side:
        """With the prices that prove the most of it."""
        fits = [self._kept(side, task, ways) for task, ways in zip(self.program.tasks, side.seen)]
        prices, side.seen, dearest, steps = side.prices, tuple(fits), None, STEPS_OF_WEIGHING
        for tried in range(MOST_AT_ONE):
            if (tried and self.over()) or (tried >= ROUNDS and (self._tired() or self._branch(side) is not None)):
                break
            self.rounds += 1
            bound, ways = self._weighed(side, prices, steps)
            if bound > side.bound:
                side.bound, side.prices = bound, prices
            if bound >= UNMET or self._done(side):
                return side
            new = [self._add(fits[number], way) for number, way in enumerate(ways) if way is not None]
            if any(new) or dearest is None:
                seen = [list(some.values()) for some in fits]
                found = prices_of_ways(self.bounds, self.least_taken, seen, self._size, self.dearest)
                if found is None:
                    break
                dearest, side.mixture = found[0], self._mixture([list(some) for some in fits], found[1])
                prices = dearest
                if tried % 2:  # half-way from the best so far: few ways say little of prices far from those tried
                    prices = [(best + price) // 2 for best, price in zip(side.prices, dearest)]
            elif prices != dearest:
                prices = dearest
            elif steps < MOST_STEPS:  # a search that was cut short proves less than its ways weigh
                steps = MOST_STEPS
            else:
                break
        side.bound = max(side.bound, self._weighed(side, side.prices, MOST_STEPS)[0])
        return side

    def _weighed(self, side: _Side, prices: Sequence[int], steps: int) -> tuple[int, list[Way | None]]:
        found = self.left.weigh(self._prices(prices), side.plans, steps, known=self.known)
        self.steps += found.steps
        return found.weight, found.ways

    def _prices(self, some: Sequence[int]) -> dict[int, int]:
        """Of all limits, where those that are looked for are so much."""
        return self.others | dict(zip(self.numbers, some))

    @property
    def _size(self) -> float:
        return float(LARGE if self.limits else self.value) * STEPS

    def _kept(self, side: _Side, task: Task, ways: Ways) -> Ways:
        """Ways of a task that are between the numbers of units."""
        lower, upper, _ = side.plans
        needed = np.flatnonzero(lower[task.first : task.stop]) + task.first
        kept = Ways()
        for way, cut in ways.items():
            units = dict(way)
            enough = all(units.get(k, 0) >= lower[k] for k in needed.tolist())
            if enough and all(count <= upper[k] for k, count in way):
                kept[way] = cut
        return kept

    def _add(self, seen: Ways, way: Way) -> bool:
        """Whether a way is new."""
        key = tuple(sorted((k, int(count)) for k, count in way.items() if count))
        if key in seen:
            return False
        columns, counts = np.array([k for k, _ in key], dtype=np.int64), np.array([c for _, c in key], dtype=np.float64)
        weight = float(sum(int(self.weights[k]) * count for k, count in key))
        seen[key] = weight, self.taken[:, columns] @ counts
        return True

    def _mixture(self, ways: Sequence[Sequence[tuple[tuple[int, int], ...]]], shares: Sequence[FloatArray]) -> _Mixture:
        mean, square, most = (np.zeros(self.program.column_count) for _ in range(3))
        for some, parts in zip(ways, shares):
            for way, part in zip(some, parts.tolist()):
                for k, count in way if part > WHOLE else ():
                    mean[k], square[k] = mean[k] + part * count, square[k] + part * count**2
                    most[k] = max(most[k], count)
        return _Mixture(mean=mean, variance=square - mean**2, most=most)

    def _branch(self, side: _Side) -> Branch | None:
        """What parts a side; None where nothing is left to be parted."""
        mixture, best = side.mixture, None
        if mixture is None:
            return None
        for order, weight, branch in self._branches(side, mixture):
            if best is None or (order, weight) > best[:2]:
                best = order, weight, branch
        return best and best[2]

    def _branches(self, side: _Side, mixture: _Mixture) -> Iterator[tuple[int, float, Branch]]:
        mean = mixture.mean
        down = np.floor(mean + WHOLE)
        parts = np.minimum(mean - down, 1.0 - (mean - down))
        for task in self.program.tasks:
            one_job = task.kind == "training" and task.count == 1
            for k in range(task.first, task.stop) if not one_job else ():
                weight = float(self.left.unpriced[k]) + 1.0
                if parts[k] > WHOLE:
                    order = BOUGHT if task.kind == "optional" else RUN
                    yield order, weight * float(parts[k]), self.left.units_branch(k, int(down[k]))
                elif mixture.variance[k] > WHOLE:  # each way whole, and more units in one than in another
                    yield (
                        UNEVEN,
                        weight * float(mixture.variance[k]),
                        self.left.units_branch(k, int(mixture.most[k]) - 1),
                    )
            for place, number in enumerate(self.numbers if one_job else ()):
                part = slice(task.first, task.stop)
                taken = float((self.taken[place, part] * mean[part]).sum())
                for order, most in ((USED, 0), (SIZED, int(taken + WHOLE))):  # at all, or more than in the mean
                    used = float(mean[part][self.left.using(task, number, most)].sum())
                    if WHOLE < used < 1.0 - WHOLE:
                        branch: Branch = {"kind": "use", "workload": task.name, "number": number, "most": most}
                        yield order, min(used, 1.0 - used) * taken / max(float(self.taken[place].max()), 1.0), branch
