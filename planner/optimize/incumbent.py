"""A plan that is seen without a model: each task on one column alone; and what its value rules out.

No criterion has negative weights, so a plan whose criterion is at most Z has w_k u_k <= Z of every
column: u_k <= floor(Z / w_k). That closes columns whose single unit is dearer than a whole plan and
shortens the ranges of others, which a relaxation cannot see, since it takes parts of units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import WHOLE, IntArray, Task
from planner.candidates.prune import carrying_units
from planner.optimize.criteria import LINEAR, value_of, weights_of
from planner.optimize.enumerate import is_plan
from planner.optimize.scope import Scope


def known_value(scope: Scope, criterion: str) -> int | None:
    """The value of a linear criterion of a plan found at a glance; None without one."""
    units = lone_plan(scope, criterion) if criterion in LINEAR else None
    return None if units is None else int(value_of(scope.program, units, criterion))


def at_most(scope: Scope, criterion: str, value: int) -> Scope:
    """The scope without units that alone exceed a value of a linear criterion."""
    weights = weights_of(scope.program, criterion)
    most = np.where(weights > 0, max(value, 0) // np.maximum(weights, 1), scope.upper)
    return replace(scope, upper=np.minimum(scope.upper, most))


def lone_plan(scope: Scope, criterion: str) -> IntArray | None:
    """Every task on the one column that does it best alone; None when that breaks anything."""
    units = np.zeros(scope.program.column_count, dtype=np.int64)
    for task in scope.program.tasks:
        if task.kind == "optional":
            continue
        needed = _needed(scope, task)
        if not len(needed) or not (needed > 0).any():
            return None
        value = needed * weights_of(scope.program, criterion)[task.first : task.stop].astype(np.float64)
        best = int(np.argmin(np.where(needed > 0, value, np.inf)))
        units[task.first + best] = needed[best]
    return units if is_plan(scope, units) else None


def _needed(scope: Scope, task: Task) -> IntArray:
    """Units with which each column needs no other; 0 where it cannot do all or there are too few."""
    program, part = scope.program, slice(task.first, task.stop)
    alone = carrying_units(program, task)
    able = (alone <= scope.upper[part]) & _within_own_rows(scope, task, alone)
    if task.kind != "training":
        asked = np.array(task.demands).max(axis=0) > 0 if task.demand_micro_per_s else np.zeros(0, dtype=bool)
        rates = program.capacity_micro_per_s[part, : len(asked)]
        able &= (rates[:, asked] > 0).all(axis=1)
        able &= (program.role[part] == WHOLE) & (program.level[part] == 0)
    return np.where(able, alone, 0)


def _within_own_rows(scope: Scope, task: Task, units: IntArray) -> NDArray[np.bool_]:
    """Whether so many units of each column keep the rows in which a boxed task alone takes room."""
    fine = np.ones(len(units), dtype=bool)
    for row in scope.program.rows if task.boxed else ():
        inside = (row.columns >= task.first) & (row.columns < task.stop)
        used = np.zeros(len(units))
        np.add.at(used, row.columns[inside] - task.first, row.coefficients[inside].astype(np.float64))
        if not (row.coefficients[~inside] != 0).any():
            fine &= used * units <= row.bound
    return fine
