"""A part of a program: which columns may be used, how many units of each, and what is already settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import (
    DECODE,
    PREFILL,
    WHOLE,
    IntArray,
    Program,
    Row,
    Task,
    splits_simply,
    supplies,
    task_of,
)
from planner.candidates.prune import alone_units, binding_rows
from planner.carriers import dataclass
from planner.optimize.situations import Cut, box_lines

FAR = 2**62  # no sum of a row comes near


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Joint rows that can bind, as compressed rows without zeros: row r is `starts[r]:starts[r + 1]`."""

    starts: IntArray
    columns: IntArray
    coefficients: IntArray
    bounds: IntArray

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Joint:
        """The rows one after another."""
        used = [row.coefficients != 0 for row in rows]
        none = np.zeros(0, dtype=np.int64)
        lengths = np.array([np.count_nonzero(mask) for mask in used], dtype=np.int64)
        return cls(
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            columns=np.concatenate([none, *(row.columns[mask] for row, mask in zip(rows, used))]),
            coefficients=np.concatenate([none, *(row.coefficients[mask] for row, mask in zip(rows, used))]),
            bounds=np.array([max(min(row.bound, FAR), -FAR) for row in rows], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The program seen through what is known so far.

    Every set of `open` columns with `upper` units holds all plans that can still be the
    answer; `settled` holds criteria whose best value has been proven, as (criterion, value).
    """

    program: Program
    upper: IntArray  # (n,) most units worth considering; 0 = closed
    joint: Joint  # the rows that can bind
    settled: tuple[tuple[str, int | float], ...] = ()
    fixed: tuple[tuple[int, int], ...] = ()  # (column, units) already decided
    cuts: list[Cut] = field(default_factory=list)  # of boxed tasks, or learned on the way; shared by all scopes

    @property
    def open(self) -> IntArray:
        """Columns that may be used, ascending."""
        return np.flatnonzero(self.upper > 0)

    def of_task(self, task: Task) -> IntArray:
        """Open columns of a task."""
        return np.flatnonzero(self.upper[task.first : task.stop] > 0) + task.first

    def only(self, mask: NDArray[np.bool_]) -> Scope:
        """The same with all columns outside the mask closed."""
        return replace(self, upper=np.where(mask, self.upper, 0))

    def settle(self, criterion: str, value: int | float) -> Scope:
        """The same with a criterion held at a value; the makespan closes columns at once."""
        held = replace(self, settled=(*self.settled, (criterion, value)))
        return held.only(self.program.finish_s <= value) if criterion == "time" else held

    def fix_all(self, units: dict[int, int]) -> Scope:
        """The same with the units of some columns decided; a training task that is complete is closed."""
        upper, fixed = self.upper.copy(), (*self.fixed, *units.items())
        decided = dict(fixed)
        columns, amounts = np.array(list(decided)), np.array(list(decided.values()))
        upper[list(units)] = list(units.values())
        for task in self.program.tasks:
            inside = (columns >= task.first) & (columns < task.stop)
            if task.kind == "training" and inside.any() and int(amounts[inside].sum()) == task.count:
                kept = upper[columns[inside]]
                upper[task.first : task.stop] = 0
                upper[columns[inside]] = kept
        return replace(self, upper=upper, fixed=fixed)


def scope_of(program: Program, columns: NDArray[np.bool_] | None = None) -> Scope:
    """All columns (or those of the mask) with the tightest upper bounds known beforehand."""
    upper = np.array(program.max_units, dtype=np.int64)
    for task in program.tasks:
        part = slice(task.first, task.stop)
        upper[part] = np.minimum(upper[part], alone_units(program, task))
        if task.kind == "serving" and any(task.demand_micro_per_s):
            helps = (program.capacity_micro_per_s[part, : len(task.demand_micro_per_s)] > 0).any(axis=1)
            wanted = task.min_replicas > 0 or supplies(program, task)
            upper[part] = np.where(helps | wanted, upper[part], 0)
    of = task_of(program)
    for row in program.rows:
        positive = row.coefficients > 0
        used, each = row.columns[positive], row.coefficients[positive]
        supplied = _most_supplied(program, row, of)
        upper[used] = np.minimum(upper[used], max(row.bound + supplied, -1) // each)
    upper = np.maximum(upper, 0)
    open_units = upper if columns is None else np.where(columns, upper, 0)
    boxes = [task for task in program.tasks if task.boxed and not splits_simply(program, task)]
    cuts = [line for task in boxes for line in box_lines(program, task)]
    return Scope(program=program, upper=open_units, joint=Joint.of(binding_rows(program)), cuts=cuts)


def _most_supplied(program: Program, row: Row, task: IntArray) -> int:
    """What the columns with coefficients below zero can add to the bound of a row at most."""
    negative = row.coefficients < 0
    columns, each = row.columns[negative], -row.coefficients[negative]
    if not len(columns):
        return 0
    of, total = task[columns], 0
    for number in np.unique(of).tolist():
        owner, inside = program.tasks[number], of == number
        if owner.kind == "training":
            total += int(each[inside].max()) * owner.count
        else:
            total += sum(a * u for a, u in zip(each[inside].tolist(), program.max_units[columns[inside]].tolist()))
    return total


def decided(scope: Scope) -> bool:
    """Whether at most one plan is left: jobs have no more open units than they need, nothing else is open."""
    return all(
        int(scope.upper[task.first : task.stop].sum()) <= (task.count if task.kind == "training" else 0)
        for task in scope.program.tasks
    )


def hopeless(scope: Scope) -> str:
    """Name of a task that cannot be met however the limits stand; empty when none is seen at a glance."""
    program = scope.program
    for task in program.tasks:
        columns = scope.of_task(task)
        if task.kind == "optional":
            continue
        if task.kind == "training":
            if int(scope.upper[columns].sum()) < task.count:
                return task.name
            continue
        if not all(_served(program, columns, level, demand) for level, demand in enumerate(task.demands)):
            return task.name
        if task.min_replicas > 0 and not (program.replicas[columns] > 0).any():
            return task.name
    return ""


def _served(program: Program, columns: IntArray, level: int, demand: tuple[int, ...]) -> bool:
    """Whether something that runs at a level can take every bucket."""
    running = columns[program.level[columns] <= level]
    able = program.capacity_micro_per_s[running, : len(demand)] > 0
    role = program.role[running]
    whole, prefill, decode = (able[role == part].any(axis=0) for part in (WHOLE, PREFILL, DECODE))
    return bool((whole | (prefill & decode) | (np.array(demand) <= 0)).all())
