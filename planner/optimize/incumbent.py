"""A plan that is seen without a model: each task on one column alone, or a cover; and what its value rules out.

No criterion has negative weights, so a plan whose criterion is at most Z has w_k u_k <= Z of every
column: u_k <= floor(Z / w_k). That closes columns whose single unit is dearer than a whole plan and
shortens the ranges of others, which a relaxation cannot see, since it takes parts of units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.candidates.program import WHOLE, IntArray, Task
from planner.candidates.prune import carrying_units
from planner.optimize.criteria import LINEAR, value_of, weights_of
from planner.optimize.enumerate import is_plan
from planner.optimize.scope import Scope
from planner.optimize.situations import Cut
from planner.optimize.status import FloatArray

SAFE = 1e-9  # of a line's need


def known_value(scope: Scope, criterion: str) -> int | None:
    """The value of a linear criterion of a plan found at a glance; None without one."""
    units = lone_plan(scope, criterion) if criterion in LINEAR else None
    return None if units is None else int(value_of(scope.program, units, criterion))


def at_most(scope: Scope, criterion: str, value: int) -> Scope:
    """The scope without units that alone exceed a value of a linear criterion.

    Parameters
    ----------
    scope
        As it is; units that it closes stay closed.
    criterion
        A linear one.
    value
        In units of the criterion; below 0 counts as 0.
    """
    weights = weights_of(scope.program, criterion)
    most = np.where(weights > 0, max(value, 0) // np.maximum(weights, 1), scope.upper)
    return replace(scope, upper=np.minimum(scope.upper, most))


def lone_plan(scope: Scope, criterion: str) -> IntArray | None:
    """Every task on the one column that does it best alone, a boxed one on a cover; None when that breaks anything."""
    units = np.zeros(scope.program.column_count, dtype=np.int64)
    weights = weights_of(scope.program, criterion)
    for task in scope.program.tasks:
        if task.kind == "optional":
            continue
        ways = [*_alone(scope, task, weights), *(covers(scope, task, weights) if task.boxed else ())]
        if not ways:
            return None
        units += min(ways, key=lambda way: float(weights @ way))
    return units if is_plan(scope, units) else None


def _alone(scope: Scope, task: Task, weights: IntArray) -> Iterator[IntArray]:
    """The task on the best single column, where one can do it."""
    needed = _needed(scope, task)
    if (needed > 0).any():
        value = needed * weights[task.first : task.stop].astype(np.float64)
        best = int(np.argmin(np.where(needed > 0, value, np.inf)))
        units = np.zeros(scope.program.column_count, dtype=np.int64)
        units[task.first + best] = needed[best]
        yield units


def _needed(scope: Scope, task: Task) -> IntArray:
    """Units with which each column needs no other; 0 where it cannot do all or there are too few."""
    program, part = scope.program, slice(task.first, task.stop)
    alone = carrying_units(program, task)
    able = alone <= scope.upper[part]
    if task.kind != "training":
        asked = np.array(task.demands).max(axis=0) > 0 if task.demand_micro_per_s else np.zeros(0, dtype=bool)
        rates = program.capacity_micro_per_s[part, : len(asked)]
        able &= (rates[:, asked] > 0).all(axis=1)
        able &= (program.role[part] == WHOLE) & (program.level[part] == 0)
    for uses, bound in own_rows(scope, task) if task.boxed else ():
        able &= uses * alone.astype(np.float64) <= bound
    return np.where(able, alone, 0)


def own_rows(scope: Scope, task: Task) -> Iterator[tuple[FloatArray, int]]:
    """Of rows in which no other task stands, the coefficient of each column of the task, and the bound."""
    for row in scope.program.rows:
        if len(row.columns) and ((row.columns >= task.first) & (row.columns < task.stop)).all():
            uses = np.zeros(task.stop - task.first)
            np.add.at(uses, row.columns - task.first, row.coefficients.astype(np.float64))
            yield uses, row.bound


def covers(scope: Scope, task: Task, weights: IntArray) -> Iterator[IntArray]:
    """Units of a boxed task that bring all of every bucket: the cheapest for what is missing first.

    Once of all columns, and once of those alone that take no room in a row which others of the task supply.

    Parameters
    ----------
    scope
        Says how many units there are, and with its cuts what the task must bring.
    task
        A boxed one.
    weights
        What one unit of each column of the program costs, (n,).

    Yields
    ------
    Units of each column of the program, (n,), within the rows that are the task's own.
    """
    part, rows = slice(task.first, task.stop), list(own_rows(scope, task))
    lines = [cut for cut in scope.cuts if cut.task == task.name and cut.need > 0]
    modest = np.ones(task.stop - task.first, dtype=bool)
    for uses, _ in rows:
        modest &= (uses <= 0) | (not (uses < 0).any())
    for usable in ([modest | True] if modest.all() else [modest | True, modest]) if lines else ():
        units = _cover(scope, task, lines, weights[part], np.where(usable, scope.upper[part], 0))
        if units is not None and all(uses @ units <= bound for uses, bound in rows):
            whole = np.zeros(scope.program.column_count, dtype=np.int64)
            whole[part] = units
            yield whole


def _cover(scope: Scope, task: Task, lines: Sequence[Cut], weights: IntArray, most: IntArray) -> IntArray | None:
    """Columns in as many units as finish the first of the lines that they help with; None when some line stays open."""
    replicas = scope.program.replicas[task.first : task.stop]
    counted = np.where(scope.program.level[task.first : task.stop] == 0, replicas, 0) / max(task.min_replicas, 1)
    earned = np.array([*([each / line.need for each in line.earnings] for line in lines), counted])
    lost = earned * np.array([*([line.spares] for line in lines), [0]]) / np.maximum(replicas, 1)
    needs = np.array([*(1.0 for _ in lines), float(task.min_replicas > 0)])
    units = np.zeros(len(most), dtype=np.int64)
    for _ in range(len(needs) * (len(most) + 1)):
        gone = np.where(units > 0, lost, 0.0).max(axis=1, initial=0.0)
        missing = needs - (earned @ units - gone)
        missing[missing <= SAFE] = 0.0
        if not missing.any():
            return units
        gain = np.minimum(earned, missing[:, None]).sum(axis=0)
        rates = np.where(units < most, gain / np.maximum(weights, 1), 0.0)
        best = int(np.argmax(rates))
        if rates[best] <= 0:
            return None
        here = (earned[:, best] > 0) & (missing > 0)
        steps = float(np.ceil(missing[here] / earned[here, best] - SAFE).min())
        units[best] += int(min(max(steps, 1), most[best] - units[best]))
    return None
