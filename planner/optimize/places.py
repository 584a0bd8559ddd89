"""Fleets in two pools: both lie in one place, since the cache of each request goes from one to the other.

Which place is a choice of few values that no relaxation sees (half a pool in each of two places costs nothing more), so
that it is no variable of the model: each place is solved by itself, the most promising first, and left out once no plan
there can cost less than the best so far. What was proven of all of them is proven of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task, splits_simply
from planner.optimize.criteria import criteria_of, value_of
from planner.optimize.status import Solution, Status

Mask = NDArray[np.bool_]
Solve = Callable[[Mask, int | None], Solution]  # of some columns, for at most so much  [micro-USD]


def apart(program: Program, columns: Mask | None) -> tuple[Task, list[int]] | None:
    """The first fleet whose pools could lie in several places, and these; None where there is none.

    Parameters
    ----------
    columns
        Mask of the columns that may be used; None: all.
    """
    if not program.place.any():
        return None
    for task in program.tasks:
        part = np.arange(task.first, task.stop)
        part = part[program.place[part] > 0]
        found = np.unique(program.place[part if columns is None else part[columns[part]]])
        if len(found) > 1:
            return task, found.tolist()
    return None


def together(program: Program, columns: Mask | None, solve: Solve, over: Callable[[], bool]) -> Solution:
    """The best plan in which the pools of a fleet lie in one place.

    Parameters
    ----------
    program, columns
        With a fleet that `apart` names.
    solve
        The best plan of some of the columns.
    over
        Whether the time is up: places that were not looked at by then prove no more than what a fleet costs there.
    """
    found = apart(program, columns)
    assert found is not None
    task, places = found
    free = np.ones(program.column_count, dtype=bool) if columns is None else columns
    elsewhere = np.zeros(program.column_count, dtype=bool)
    elsewhere[task.first : task.stop] = program.place[task.first : task.stop] > 0
    masks = {place: free & (~elsewhere | (program.place == place)) for place in places}
    least = {place: least_microusd(program, task, mask) for place, mask in masks.items()}
    best: Solution | None = None
    bounds: list[int | None] = []
    proven = True
    for place in sorted(places, key=lambda place: (least[place], place)):
        most = None
        if best is not None and best.has_plan and program.objective[0] == "cost":
            most = best.cost_microusd - 1
            if least[place] > most:
                continue  # neither here nor in any that follows
        if best is not None and over():
            proven = False
            bounds.append(least[place])
            break  # those that follow cost no less
        answer = solve(masks[place], most)
        if best is not None and not answer.has_plan and answer.status is Status.INFEASIBLE:
            continue
        proven = proven and answer.status in (Status.OPTIMAL, Status.INFEASIBLE)
        bounds.append(answer.bound_microusd if answer.has_plan or answer.bound_microusd is not None else least[place])
        if best is None or _better(program, answer, best):
            best = answer
        if answer.stopped_by == "interrupt":
            break
    assert best is not None
    if not best.has_plan or proven:
        return best
    known = [bound for bound in bounds if bound is not None]
    bound = min(known) if len(known) == len(bounds) else None
    gap = None if bound is None or not best.cost_microusd else (best.cost_microusd - bound) / best.cost_microusd
    return replace(best, status=Status.FEASIBLE, bound_microusd=bound, gap=gap)


def _better(program: Program, one: Solution, other: Solution) -> bool:
    if not (one.has_plan and other.has_plan):
        return one.has_plan
    chain = [name for name in criteria_of(program) if name != "offers"]  # the last tie-breaker has no value
    mine, theirs = (tuple(value_of(program, some.units, name) for name in chain) for some in (one, other))
    return mine < theirs


def least_microusd(program: Program, task: Task, columns: Mask) -> int:
    """What a fleet costs at least on some columns: each kind of request on the cheapest of each role.  [micro-USD]

    Parameters
    ----------
    program
        The whole program.
    task
        A serving task of it.
    columns
        (n,) mask of the columns that may be used.

    Returns
    -------
    A bound, for the peak of the load; 0 where none is known.  [micro-USD]
    """
    part = np.arange(task.first, task.stop)
    part = part[columns[part]]
    if task.boxed or splits_simply(program, task) or not len(part):
        return 0
    role, capacity = program.role[part], program.capacity_micro_per_s[part].astype(np.float64)
    with np.errstate(divide="ignore"):
        each = program.cost_microusd[part][:, None] / capacity
    total = 0.0
    for bucket, rate in enumerate(task.demands[-1]):
        whole, prefill, decode = (each[role == kind, bucket].min(initial=np.inf) for kind in (WHOLE, PREFILL, DECODE))
        total += rate * min(whole, prefill + decode) if rate else 0.0
    return 0 if not np.isfinite(total) else int(total * (1 - 1e-9))


def scattered(program: Program, task: Task, used: list[int]) -> Iterator[str]:
    """Pools of one fleet in several places.

    Parameters
    ----------
    program
        Says in which place each pool lies.
    task
        Named in what is told.
    used
        Its columns that have units.
    """
    places = {int(program.place[k]) for k in used} - {0}
    if len(places) > 1:
        yield f"{task.name}: pools in {len(places)} places, and a cache does not go from one to the other"
