"""Ways of jobs that share limits, tried together: what prices of limits leave open when units are whole.

At the prices of a certificate every plan below a value uses, of each job, only columns whose weights exceed the least
of that job by at most what the bound is short of the value. These are few. All their choices are tried, each job's in
turn, with the joint limits as they are; a choice that breaks one is no plan. What is left is bounded by its weights,
and by its own cost beside the least of everything else. So the tree of branches stands in no file: who checks walks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import Program, Task

MOST_CHOICES = 50_000  # that are tried
MOST_JOBS = 12  # of all workloads together


class Open(NamedTuple):
    """What is open: jobs that are chosen for, in thousandths of the criterion's unit."""

    tasks: tuple[Task, ...]
    rest: int  # the least of everything else at the prices, less what limits are worth
    plain: int  # the least of everything else without prices


def open_jobs(program: Program) -> tuple[Task, ...]:
    """Workloads whose jobs can be tried one by one."""
    jobs = [task for task in program.tasks if task.kind == "training"]
    return tuple(jobs) if sum(task.count for task in jobs) <= MOST_JOBS else ()


def least_choice(
    program: Program, weights: NDArray[Any], costs: NDArray[Any], upper: Sequence[int], free: Open, upto: int
) -> int:
    """The least that any choice of the jobs comes to, or `upto`; a bound below it after `MOST_CHOICES`.

    Parameters
    ----------
    weights, costs
        Of a unit of each column, with and without what limits charge.
    upper
        Units that there are.
    upto
        Of no interest beyond.
    """
    uses = _uses(program)
    jobs = [task for task in free.tasks for _ in range(task.count)]
    options = {task.name: _options(weights, upper, task) for task in free.tasks}
    if not all(options.values()):
        return upto
    base = free.rest + sum(options[task.name][0][0] for task in jobs)
    jobs.sort(key=lambda task: sum(w - options[task.name][0][0] < upto - base for w, _ in options[task.name]))
    best, tried = upto, 0
    # bound, plain cost, jobs that are placed, place of the last option, units by column, use by row
    stack: list[tuple[int, int, int, int, dict[int, int], dict[int, int]]] = [(base, free.plain, 0, 0, {}, {})]
    while stack:
        bound, paid, placed, last, units, used = stack.pop()
        if bound >= best:
            continue
        if tried > MOST_CHOICES:
            return min([bound, best, *(node[0] for node in stack)])
        if placed == len(jobs):
            best = min(best, max(bound, paid))
            continue
        task = jobs[placed]
        same = placed > 0 and jobs[placed - 1] is task  # jobs of one workload are alike: in one order only
        mine, children = options[task.name], []
        for place in range(last if same else 0, len(mine)):
            weight, column = mine[place]
            above = bound + weight - mine[0][0]
            if above >= best:
                break
            tried += 1
            taken = units.get(column, 0) + 1
            now = _added(program, used, uses.get(column, ()))
            if taken <= upper[column] and now is not None:
                cost = paid + int(costs[column])
                children.append((above, cost, placed + 1, place, {**units, column: taken}, now))
        stack += reversed(children)
    return best


def _options(weights: NDArray[Any], upper: Sequence[int], task: Task) -> list[tuple[int, int]]:
    """Weight and column of each way of a job, the least first."""
    return sorted((int(weights[k]), k) for k in range(task.first, task.stop) if upper[k] > 0)


def _uses(program: Program) -> dict[int, list[tuple[int, int]]]:
    """Row and coefficient of each column, of the limits that nothing supplies."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, row in enumerate(program.rows):
        if len(row.coefficients) and int(np.min(row.coefficients)) >= 0:
            for column, coefficient in zip(row.columns.tolist(), row.coefficients.tolist()):
                found.setdefault(column, []).append((number, coefficient))
    return found


def _added(program: Program, used: Mapping[int, int], more: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """The use of limits with one more job; None when that breaks one."""
    now = dict(used)
    for number, coefficient in more:
        now[number] = now.get(number, 0) + coefficient
        if now[number] > program.rows[number].bound:
            return None
    return now
