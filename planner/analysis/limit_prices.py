"""Prices of limits at which the least ways of whole units, of each workload alone, prove most.

A relaxation takes parts of units: of one owned machine an eighth for each of two fleets, which leaves the other seven
parts worth nothing, where one of the fleets has to rent. The bound of a certificate takes whole units, and is the
least of finitely many sums at any prices p >= 0 of the limits,

    sum over the workloads of min over their ways x of (c x + p A x)  -  p b,

so it is highest where a linear program over the ways that were seen to be least says; the ways that are least there
join them, until none is new. Source: Kelley, J. SIAM 8(4) (1960), section 2; Dantzig and Wolfe, Operations Research
8(1) (1960); that whole units prove more than the relaxation: Geoffrion, Math. Programming Study 2 (1974), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, optional_columns, units_of
from planner.candidates.search import Candidates
from planner.optimize import highs
from planner.optimize.status import FloatArray
from planner.plan.least_weights import STEPS, least_of_task, parts_of, priced_weights

if TYPE_CHECKING:
    from planner.plan.model.others import Selection

ROUNDS = 40  # prices that are tried; counted, never timed
MOST_ROWS, MOST_CELLS = 400, 1 << 25  # limits that are priced so, and what all columns take of them
BOX = 4.0  # values of a plan that all a limit allows may cost at most
DEAR = 1e-6  # values of a plan, by which a price of what is bought counts as worth more than none
SHIFT = 1e3  # values of a plan, by which what a workload weighs may lie below nothing
Weights = NDArray[Any]  # whole numbers of any size
Cut = tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]  # weight of a way, and what it takes of each limit


def with_whole_units_priced(
    candidates: Candidates, units: IntArray, priced: Selection, value: int, over: Callable[[], bool]
) -> Selection:
    """A certificate whose prices of limits prove the most of its lines in whole units; the same where none prove more.

    Parameters
    ----------
    candidates
        Every way that was listed; prices are made of those that no plan can do without.
    units
        (columns,) of a plan of their program, whose parts are ways of the workloads too.
    priced
        Prices of limits and of requests.
    value
        Of the plan, in the criterion's unit: a bound that reaches it is the highest there is.
    over
        Whether the time is up.
    """
    program = candidates.program
    numbers = [number for number, row in enumerate(program.rows) if (row.coefficients > 0).any()]
    most = min(MOST_ROWS, MOST_CELLS // max(program.column_count, 1))
    if len(numbers) > most:
        numbers = _scarce(program, units, priced, numbers)[:most]
    if not numbers or not highs.available() or value <= 0:
        return priced
    search = _Search(program, priced, numbers, value, units)
    best, known = priced, search.bound(priced)
    for _ in range(ROUNDS):
        prices = None if over() else search.highest()
        if prices is None:
            break
        tried, before = search.at(prices), search.cuts
        found = search.bound(tried)
        if found > known:
            best, known = tried, found
        if known >= value * STEPS or search.cuts == before:
            break
    return best


def _scarce(program: Program, units: IntArray, priced: Selection, numbers: Sequence[int]) -> list[int]:
    """Limits that have a price, or leave no room for one unit more beside a plan."""
    prices = {one["number"] for one in priced["rows"]}
    if len(units) != program.column_count:
        return [number for number in numbers if number in prices]
    found = []
    for number in numbers:
        row = program.rows[number]
        used = int(row.coefficients @ units[row.columns])
        if number in prices or used + int(row.coefficients[row.coefficients > 0].min()) > row.bound:
            found.append(number)
    return found


def taken_of(program: Program, numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """What a unit of each column takes of some limits, (limits, columns), and the limits' bounds, (limits,)."""
    taken = np.zeros((len(numbers), program.column_count))
    for place, number in enumerate(numbers):
        np.add.at(taken[place], program.rows[number].columns, program.rows[number].coefficients)
    return taken, np.array([program.rows[number].bound for number in numbers], dtype=np.float64)


def dearest_of(program: Program, numbers: Sequence[int], plain: Weights, units: IntArray) -> FloatArray:
    """Prices of limits beyond which buying what supplies them would pay for itself, (limits,); infinite for others.

    Of what a plan leaves some to buy of no more is worth charging: all that there is would weigh less than nothing.

    Parameters
    ----------
    program
        With what may be bought for others to use.
    numbers
        Of the limits.
    plain
        (columns,) what a unit of each column weighs without prices of limits.
    units
        (columns,) of the plan.
    """
    optional = optional_columns(program)
    most = np.full(len(numbers), np.inf)
    if len(units) != program.column_count:
        return most
    for place, number in enumerate(numbers):
        row = program.rows[number]
        supplies = row.coefficients < 0
        bought = row.columns[supplies]
        if len(bought) and optional[bought].all() and (units[bought] < program.max_units[bought]).all():
            costs = zip(plain[bought].tolist(), row.coefficients[supplies].tolist())
            most[place] = min(max(int(w), 0) // -int(a) for w, a in costs)
    return most


def prices_of_ways(
    bounds: FloatArray, taken: FloatArray, ways: Sequence[Sequence[Cut]], size: float, most: FloatArray
) -> tuple[list[int], list[FloatArray]] | None:
    """Prices of limits at which the least of some ways weigh most, and the mixture of the ways that weighs as much.

    Parameters
    ----------
    bounds
        (limits,) of the limits.
    taken
        (limits,) what is charged for so much of one at most `BOX` values of a plan.
    ways
        Of each workload.
    size
        Value of a plan, as ways weigh.
    most
        (limits,) that is charged for a unit of each.

    Returns
    -------
    Prices [per unit], whole numbers, and by workload the share of each way; None without an answer.
    """
    scale, count = size / np.asarray(taken, dtype=np.float64), len(bounds)
    starts, variables, values, high = [0], list[int](), list[float](), list[float]()
    for number, some in enumerate(ways):
        for weight, takes in some:
            used = np.flatnonzero(takes)
            variables += [count + number, *used.tolist()]
            values += [1.0, *(-takes[used] * scale[used] / size).tolist()]
            starts.append(len(variables))
            high.append(weight / size + SHIFT)
    there = np.array([bool(some) for some in ways], dtype=bool)
    # of prices that prove as much the highest: others lack the ways that are least at lower ones
    cost = np.concatenate([bounds * scale / size - DEAR * np.isfinite(most), np.where(there, -1.0, 0.0)])
    lines = highs.Lines(
        starts=np.array(starts),
        variables=np.array(variables),
        values=np.array(values),
        low=np.full(len(high), -np.inf),
        high=np.array(high),
    )
    upper = np.concatenate([np.minimum(BOX, most / scale), np.where(there, 2 * SHIFT, 0.0)])
    found = highs.optimum(highs.program(cost, upper, lines)) if len(ways) else None
    if found is None:
        return None
    shares = np.split(-found[1], np.cumsum([len(some) for some in ways])[:-1])
    prices = np.minimum(np.rint(found[0][:count] * scale), most)
    return [int(price) for price in prices.tolist()], shares


class _Search:
    """The ways that were seen, and the prices that they leave open."""

    def __init__(
        self, program: Program, priced: Selection, numbers: Sequence[int], value: int, units: IntArray
    ) -> None:
        self.program, self.priced, self.numbers = program, priced, numbers
        self.size = float(value) * STEPS
        self.upper = units_of(program)
        self.plain = priced_weights(program, {**priced, "rows": []})
        self.most = np.array([np.abs(program.rows[number].coefficients).max() for number in numbers], dtype=np.float64)
        self.taken, self.bounds = taken_of(program, numbers)
        self.dearest = dearest_of(program, numbers, self.plain, units)
        self.seen: dict[tuple[int, tuple[tuple[int, int], ...]], None] = {}
        self.ways: list[list[Cut]] = [[] for _ in program.tasks]
        for number, task in enumerate(program.tasks):
            if len(units) == program.column_count:
                self._add(number, {k: int(units[k]) for k in range(task.first, task.stop) if units[k]})

    @property
    def cuts(self) -> int:
        """How many ways were seen."""
        return len(self.seen)

    def bound(self, priced: Selection) -> int:
        """What some prices prove, in whole units; the ways that are least at them are seen."""
        weights = priced_weights(self.program, priced)
        total = -sum(one["price"] * self.program.rows[one["number"]].bound for one in priced["rows"])
        for number, task in enumerate(self.program.tasks):
            parts = parts_of(priced["requests"], task)
            least = least_of_task(self.program, task, weights, self.upper, parts)
            total += least.weight
            if least.units is not None:
                self._add(number, least.units)
        return int(total)

    def _add(self, number: int, units: dict[int, int]) -> None:
        key = number, tuple(sorted(units.items()))
        if key in self.seen:
            return
        self.seen[key] = None
        columns, counts = np.array(list(units), dtype=np.int64), np.array(list(units.values()), dtype=np.float64)
        weight = float(sum(int(self.plain[k]) * count for k, count in units.items()))
        self.ways[number].append((weight, self.taken[:, columns] @ counts))

    def highest(self) -> list[int] | None:
        """Prices at which the least of the ways that were seen weigh most; None without an answer.  [per unit]"""
        found = prices_of_ways(self.bounds, self.most, self.ways, self.size, self.dearest)
        return None if found is None else found[0]

    def at(self, prices: Sequence[int]) -> Selection:
        """The certificate at other prices of its limits."""
        kept = {one["number"]: one for one in self.priced["rows"] if one["number"] not in self.numbers}
        for number, price in zip(self.numbers, prices):
            if price > 0:
                kept[number] = {"number": number, "name": self.program.rows[number].name, "price": price}
        return cast("Selection", {**self.priced, "rows": [kept[number] for number in sorted(kept)]})
