"""Which of several equally cheap plans this one is: ways to run a workload that would be as cheap, and what decided.

Looked at are ways to run the whole of one workload alike, the others staying as they are: each that costs no more than
the plan may, and breaks no limit. What decided is the first criterion of the tie rule in which each of them is worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

import numpy as np

from planner.candidates.program import WHOLE, IntArray, Program, Task
from planner.candidates.prune import alone_units
from planner.candidates.search import Candidates, places_in_whole
from planner.candidates.ties import TIE_RULE, tie_weights
from planner.optimize.check import violations
from planner.optimize.scope import Scope, scope_of
from planner.optimize.solve import Solution

if TYPE_CHECKING:
    from planner.plan.model.plan import TieCriterion, TieRow, Ties, Untold

MOST = 20  # other ways of a workload that are looked at, the cheapest


def ties_of(candidates: Candidates, solution: Solution) -> Ties | None:
    """What the plan says of ties; None without a plan, or where more than the cost is asked for."""
    program = candidates.program
    if not solution.has_plan or program.objective != ("cost",):
        return None
    rows = list(_rows(candidates, solution)) if candidates.calendar is None and not candidates.spaces else []
    return {"tolerance": candidates.tie_share, "rows": rows, "untold": cast("Untold", solution.untold)}


def _rows(candidates: Candidates, solution: Solution) -> Iterator[TieRow]:
    """Workloads that have other ways as cheap."""
    whole = candidates.whole
    units = _over_all(candidates, solution)
    least = solution.cost_microusd if solution.bound_microusd is None else solution.bound_microusd
    room = least + whole.tie_microusd(least) - solution.cost_microusd
    scope = scope_of(whole)

    @cache
    def weights(criterion: str) -> IntArray:
        return tie_weights(whole, criterion)

    for task in (one for one in whole.tasks if one.kind != "optional"):
        decided: list[str] = []
        for other in _as_cheap(scope, task, units, room):
            changed = [(name, int(weights(name) @ other) - int(weights(name) @ units)) for name in TIE_RULE]
            worse = next(((name, by) for name, by in changed if by), ("offers", 1))
            if worse[1] > 0:
                decided.append(worse[0])
        if decided:
            by = [name for name in (*TIE_RULE, "offers") if name in decided]
            yield {"workload": task.name, "others": len(decided), "by": cast("list[TieCriterion]", by)}


def _over_all(candidates: Candidates, solution: Solution) -> IntArray:
    """The units of a plan over all columns that were listed."""
    units = np.zeros(candidates.whole.column_count, dtype=np.int64)
    units[places_in_whole(candidates)] = solution.units
    return units


def _as_cheap(scope: Scope, task: Task, units: IntArray, room: int) -> Iterator[IntArray]:
    """Plans that run one workload another way, all of it alike, and cost no more than may be; the cheapest first."""
    program, part = scope.program, slice(task.first, task.stop)
    alone = alone_units(program, task)
    paid = program.cost_microusd[part].astype(np.float64) * alone
    mine = int(program.cost_microusd[part] @ units[part])
    able = (paid <= mine + room + 1) & (alone <= scope.upper[part]) & _serves(program, task)
    places = np.flatnonzero(able)
    for place in places[np.argsort(paid[places], kind="stable")][: MOST + 1].tolist():
        other = units.copy()
        other[part] = 0
        other[task.first + place] = alone[place]
        dearer = int(program.cost_microusd[part] @ other[part]) - mine
        if (other != units).any() and dearer <= room and next(violations(scope, other, tasks=[task]), None) is None:
            yield other


def _serves(program: Program, task: Task) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Columns that can do all of a workload."""
    part = slice(task.first, task.stop)
    if task.kind == "training":
        return np.ones(task.stop - task.first, dtype=bool)
    asked = np.array(task.demands).max(axis=0) > 0 if task.demand_micro_per_s else np.zeros(0, dtype=bool)
    rates = program.capacity_micro_per_s[part, : len(asked)]
    able = (program.role[part] == WHOLE) & (program.level[part] == 0) & (rates[:, asked] > 0).all(axis=1)
    return np.asarray(able)
