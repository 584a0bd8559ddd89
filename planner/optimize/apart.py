"""What every workload weighs at least by itself in whole units, at the prices of a relaxation, and what that rules out.

A relaxation takes parts of units, so that what it proves of a fleet of a few replicas is far below any plan, and what
it rules out is little. With its multipliers y of the joint limits as prices, w = c - A'y, and those of a workload's own
lines added up to one line (g u >= need, which all its plans meet), no plan weighs less than

    L  =  sum over the workloads t of F_t(need_t)  +  sum_r y_r bound_r,

    F_t(d)  =  min w u   with   g u >= d,  u whole,

and a plan that uses a unit of column k of t is above L by w_k + F_t(need_t - g_k) - F_t(need_t) at least. F is worked
out on a grid of parts of the need, what units bring being rounded up, so that it is never too high; where units are
small the line of the relaxation itself says more, and stands. Where ways can be listed one by one `enumerate` says
more still. Source: Geoffrion, Math. Programming Study 2 (1974), section 3; fixing by what a bound leaves: Crowder,
Johnson and Padberg, Operations Research 31(5) (1983), section 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program, optional_columns, task_of
from planner.carriers import dataclass
from planner.optimize.model import Model
from planner.optimize.relax import MARGIN, Relaxation
from planner.optimize.status import FloatArray
from planner.optimize.ways import JOINT, Prices

GRID = 512  # parts of what a fleet needs
UNLIKE = 1e-9  # relative, by which what a unit brings may be short of what its numbers say
BETWEEN = ("vendor", "most", "fix")  # families of lines that workloads have in common, or that are no need: left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A bound, and by how much a plan that uses a column is above it; all scaled."""

    bound: float
    excess: FloatArray  # (columns of the model,) of a plan with one unit of each, at least
    least: FloatArray  # (columns of the model,) what the workload of each weighs at least
    weights: FloatArray  # (columns of the model,) of one unit, priced, never below 0
    size: float  # of the numbers summed, for the margin

    def highest(self, value: float, upper: IntArray) -> IntArray:
        """The most units of each column in a plan of at most this scaled value.

        Parameters
        ----------
        value
            That such a plan is worth.
        upper
            (columns of the model,) units that there are.
        """
        room = value - self.bound + MARGIN * max(1.0, abs(value), self.size)
        most, paid = upper.astype(np.float64), self.least + max(room, 0.0)
        np.divide(paid, self.weights, out=most, where=self.weights * np.maximum(most, 1.0) > paid)
        fewer = np.minimum(np.floor(most).astype(np.int64), upper)
        return np.where(self.excess <= room, fewer, 0)


def apart_of(program: Program, model: Model, relaxation: Relaxation, prices: Prices) -> Apart | None:
    """Every workload alone; None where a line belongs to several of them, or something has no weight.

    Parameters
    ----------
    program
        Whose columns the model has.
    model
        With the lines that the relaxation is of, and perhaps further ones, which are left out.
    relaxation
        Any multipliers make a bound; the better they are, the higher it is.
    prices
        Those of the joint limits, of the same relaxation.
    """
    columns, task = model.columns, task_of(program)[model.columns]
    priced, upper = prices.weights[columns], model.upper[: len(columns)]
    if not len(columns) or not np.isfinite(priced).all():
        return None
    priced = _with_supplies_paid(model, priced, optional_columns(program)[columns])
    needs = _needs(model, relaxation.multipliers, task, len(program.tasks))
    if needs is None:
        return None
    need, brought = needs
    gained = np.minimum(priced, 0.0) * upper  # what is worth taking anyway
    weights = np.maximum(priced, 0.0)
    least, excess = np.zeros(len(program.tasks)), weights.copy()
    fleets = []
    for number, one in enumerate(program.tasks):
        here = np.flatnonzero(task == number)
        if one.kind == "training" and len(here):
            cheapest = float(weights[here].min())
            least[number] = one.count * cheapest
            excess[here] = weights[here] - cheapest
        elif one.kind == "serving" and need[number] > 0:
            fleets.append((number, here))
    for number, here, table in _tables(fleets, need, brought, weights):
        earned = _parts(brought[here], need[number])
        least[number] = table[-1]
        excess[here] = np.maximum(weights[here] + table[GRID - earned] - table[-1], 0.0)
    own = least + np.bincount(task, weights=gained, minlength=len(least))
    return Apart(
        bound=float(own.sum() + prices.constant),
        excess=excess,
        least=least[task],
        weights=weights,
        size=float(np.abs(least).sum() + np.abs(gained).sum() + abs(prices.constant)),
    )


def _with_supplies_paid(model: Model, weights: FloatArray, bought: NDArray[np.bool_]) -> FloatArray:
    """With prices of what is bought for others to use raised to what buying it costs.

    A relaxation that buys none of something leaves open what it is worth there, down to nothing. Whatever its price up
    to that of buying, none is bought for the price alone: no bound falls, and units that use it weigh more.
    """
    table, weights = model.table(), weights.copy()
    less = np.repeat(np.arange(len(table.kinds)), np.diff(table.starts))[table.coefficients < 0]
    for number in np.unique(less).tolist():
        part = slice(table.starts[number], table.starts[number + 1])
        variables, values = table.variables[part], table.coefficients[part]
        if table.kinds[number] not in JOINT or table.high[number] != 0 or (variables >= len(weights)).any():
            continue
        supplies = values < 0
        if not bought[variables[supplies]].all():
            continue
        more = float((weights[variables[supplies]] / -values[supplies]).min())
        if more > 0:
            weights[variables] += values * more
    return weights


def _needs(model: Model, multipliers: FloatArray, task: IntArray, tasks: int) -> tuple[FloatArray, FloatArray] | None:
    """The lines of each workload at their multipliers as one, of units alone: the need, and what units bring to it."""
    table, count = model.table(), len(model.columns)
    told = len(multipliers)  # lines that were learned since then have none
    own = np.array([kind not in JOINT and kind not in BETWEEN for kind in table.kinds[:told]], dtype=bool)
    entries = int(table.starts[told])
    line = np.repeat(np.arange(told), np.diff(table.starts[: told + 1]))
    mine = np.flatnonzero(own[line])
    line, variable, value = line[mine], table.variables[:entries][mine], table.coefficients[:entries][mine]
    of = _owners(line, variable, np.concatenate([task, np.full(model.variable_count - count, -1)]), told)
    if of is None:
        return None
    y = np.where(own & (of[0] >= 0), multipliers, 0.0)
    sides = np.zeros(told)
    sides[y > 0] = y[y > 0] * table.low[:told][y > 0]
    sides[y < 0] = y[y < 0] * table.high[:told][y < 0]
    need = np.bincount(of[0][of[0] >= 0], weights=sides[of[0] >= 0], minlength=tasks)
    brought = np.bincount(variable, weights=y[line] * value, minlength=model.variable_count)
    beside = np.flatnonzero((np.arange(model.variable_count) >= count) & (of[1] >= 0))  # flows, flags, losses
    most = np.maximum(brought[beside], 0.0) * model.upper[beside]
    need = need - np.bincount(of[1][beside], weights=most, minlength=tasks)
    units: FloatArray = np.maximum(brought[:count], 0.0)
    return np.asarray(need, dtype=np.float64), units


def _owners(line: IntArray, variable: IntArray, owner: IntArray, lines: int) -> tuple[IntArray, IntArray] | None:
    """The workload of each line and of each variable, -1 = nobody's; None where a line has units of several."""
    known = owner[variable] >= 0
    of_line = np.full(lines, -1, dtype=np.int64)
    while True:
        np.maximum.at(of_line, line[known], owner[variable[known]])
        if (of_line[line[known]] != owner[variable[known]]).any():
            return None
        found = owner.copy()
        np.maximum.at(found, variable, of_line[line])
        if (found == owner).all():
            return of_line, owner
        owner, known = found, found[variable] >= 0


def _parts(brought: FloatArray, need: float) -> IntArray:
    """What units bring, in parts of the need, rounded up."""
    return np.minimum(np.ceil(brought / need * GRID * (1 + UNLIKE)), GRID).astype(np.int64)


def _tables(
    fleets: list[tuple[int, IntArray]], need: FloatArray, brought: FloatArray, weights: FloatArray
) -> list[tuple[int, IntArray, FloatArray]]:
    """For each fleet the least weight of units that bring 0, 1, ... parts of its need, (GRID + 1,); at least."""
    kept, per_need = [], np.zeros(len(fleets))
    for place, (number, here) in enumerate(fleets):
        able = here[brought[here] > 0]
        if not len(able):
            return []
        earned, weight = _parts(brought[able], need[number]), weights[able]
        order = np.lexsort((weight, -earned))
        lowest = np.minimum.accumulate(weight[order])
        first = np.concatenate([[True], weight[order][1:] < lowest[:-1]])  # no other brings as much for as little
        kept.append((earned[order][first], weight[order][first]))
        per_need[place] = float((weights[able] / brought[able]).min()) * need[number]
    if not fleets:
        return []
    width = max(len(earned) for earned, _ in kept)
    bring, pay = np.full((len(fleets), width), GRID), np.full((len(fleets), width), np.inf)
    for place, (earned, weight) in enumerate(kept):
        bring[place, : len(earned)], pay[place, : len(earned)] = earned, weight
    least, rows = np.zeros((len(fleets), GRID + 1)), np.arange(len(fleets))[:, None]
    for part in range(1, GRID + 1):
        least[:, part] = (pay + least[rows, np.maximum(part - bring, 0)]).min(axis=1)
    least = np.maximum(least, per_need[:, None] * np.arange(GRID + 1) / GRID)
    return [(number, here, table) for (number, here), table in zip(fleets, least)]
