"""Why nothing works: a smallest set of limits and workloads that cannot be met together.

Deletion filter: leave one group out; if what remains is still proven infeasible, it stays
out. What is left at the end is infeasible, and each of its members was kept because
leaving it out of a larger set gave a plan, so leaving it out of the final set does too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.program import Program, restrict
from planner.optimize.solve import optimize
from planner.optimize.status import Status

PROVIDERS = "limits.max_providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Names of the groups in conflict; `minimal` when every step was proven."""

    names: tuple[str, ...]
    minimal: bool


def minimal_conflict(program: Program, *, solver: str = "highs", time_limit_s: float | None = None) -> tuple[str, ...]:
    """Names of `find_conflict`; empty when the program is feasible."""
    return find_conflict(program, solver=solver, time_limit_s=time_limit_s).names


def find_conflict(program: Program, *, solver: str = "highs", time_limit_s: float | None = None) -> Conflict:
    """Row names, ``max_providers`` and task names that together are infeasible, by deletion.

    Parameters
    ----------
    time_limit_s
        Of each step; a step that ends without proof keeps its group and clears `minimal`.
    """

    def infeasible(groups: tuple[str, ...]) -> bool | None:
        return _infeasible(without_others(program, groups), solver, time_limit_s)

    groups = groups_of(program)
    whole = infeasible(groups)
    if not whole:
        return Conflict(names=(), minimal=whole is not None)
    minimal = True
    for group in groups:
        rest = tuple(name for name in groups if name != group)
        answer = infeasible(rest)
        if answer:
            groups = rest
        elif answer is None:
            minimal = False
    return Conflict(names=groups, minimal=minimal)


def groups_of(program: Program) -> tuple[str, ...]:
    """All groups: tasks, the provider limit, rows by name (several rows may share one)."""
    names = [task.name for task in program.tasks if task.kind != "optional"]
    if program.max_providers is not None:
        names.append(PROVIDERS)
    return tuple(dict.fromkeys([*names, *(row.name for row in program.rows)]))


def without_others(program: Program, groups: tuple[str, ...]) -> Program:
    """The program with the demands and limits of these groups alone."""
    kept = set(groups)
    tasks = tuple(task for task in program.tasks if task.name in kept or task.kind == "optional")
    mask = np.zeros(program.column_count, dtype=bool)
    for task in tasks:
        mask[task.first : task.stop] = True
    small = replace(
        program,
        tasks=tasks,
        rows=tuple(row for row in program.rows if row.name in kept),
        max_providers=program.max_providers if PROVIDERS in kept else None,
    )
    return restrict(small, mask)[0]


def _infeasible(program: Program, solver: str, time_limit_s: float | None) -> bool | None:
    """Proven infeasible, has a plan, or None = neither shown."""
    answer = optimize(replace(program, objective=("cost",)), cost_only=True, solver=solver, time_limit_s=time_limit_s)
    return False if answer.has_plan else True if answer.status is Status.INFEASIBLE else None
