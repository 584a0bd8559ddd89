"""Whole points that keep a line as a solver counts and break it exactly, ruled out by lines of small numbers.

A point that breaks sum a u <= b takes with it every point that has no fewer units where a > 0 and no more where a < 0.
So in every plan one of these columns has fewer, or more: a flag each says of which it is not true (a canonical cut of
Balas and Jeroslow, SIAM J. Appl. Math. 23 (1972), for whole numbers in place of 0 and 1). No plan is lost by it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.candidates.program import IntArray, splits_simply
from planner.optimize.criteria import LINEAR, weights_of
from planner.optimize.model import Model
from planner.optimize.rows import never
from planner.optimize.scope import Scope

MOST = 200  # flags for one line
CLOSE = 1e-5  # of the largest number of a line, by which it may be exceeded within the tolerances of solvers

Broken = tuple[list[int], list[int], int]  # columns, their coefficients, by how much it is exceeded


def rule_out(model: Model, scope: Scope, units: IntArray) -> bool:
    """Add lines to a model that a point does not keep and every plan does; whether there was one to add.

    Nothing is added for a point that is far off: no tolerance excuses its solver.

    Parameters
    ----------
    model
        Of the scope; takes the lines, and flags for each.
    scope
        Says what plans keep, settled criteria included.
    units
        The point, in whole units of each column of the program, (n,).
    """
    found = [_add(model, scope, units, *line) for line in _broken(scope, units)]
    return any(found)


def _broken(scope: Scope, units: IntArray) -> Iterator[Broken]:
    """Joint rows, earlier criteria and demands of one kind of request that a point does not keep, in integers."""
    program = scope.program
    lines = [(row.columns, row.coefficients, row.bound) for row in program.rows]
    every = np.arange(program.column_count)
    lines += [(every, weights_of(program, name), int(most)) for name, most in scope.settled if name in LINEAR]
    for task in program.tasks:
        if task.kind == "serving" and splits_simply(program, task) and not task.spare_replicas:
            part = slice(task.first, task.stop)
            lines.append((every[part], -program.capacity_micro_per_s[part, 0], -int(task.demand_micro_per_s[0])))
    for columns, coefficients, bound in lines:
        listed, factors = columns.tolist(), coefficients.tolist()
        terms = [a * int(units[k]) for k, a in zip(listed, factors) if units[k]]
        excess = sum(terms) - bound
        if 0 < excess <= CLOSE * max(abs(bound), *map(abs, terms), 0):
            yield listed, factors, excess


def _add(model: Model, scope: Scope, units: IntArray, columns: list[int], coefficients: list[int], excess: int) -> bool:
    place = dict(zip(model.columns.tolist(), range(len(model.columns))))
    fewer: list[tuple[int, int, int]] = []  # place, units that are too many, most
    more: list[tuple[int, int]] = []  # place, units that are too few
    for column, a in sorted(zip(columns, coefficients), key=lambda pair: (abs(pair[1]), pair[0])):
        here, had, most = place.get(column), int(units[column]), int(scope.upper[column])
        if here is None or a == 0 or (a > 0 and not had):
            continue
        spare = (excess - 1) // abs(a)  # so many units less, or more, would break it still
        used = min(spare, had if a > 0 else most - had)
        excess -= used * abs(a)
        if a > 0 and had > used:
            fewer.append((here, had - used, most))
        elif a < 0 and had + used < most:
            more.append((here, had + used))
    if len(fewer) + len(more) > MOST:
        return False
    if not fewer and not more:
        never(model, "ruled")
        return True
    flags = model.add("ruled", np.ones(len(fewer) + len(more)), integer=True).tolist()
    for (here, many, most), flag in zip(fewer, flags):
        model.line("ruled", [here, flag], [1.0, -float(most - many + 1)], high=many - 1)
    for (here, few), flag in zip(more, flags[len(fewer) :]):
        model.line("ruled", [here, flag], [1.0, float(few + 1)], low=few + 1)
    model.line("ruled", flags, np.ones(len(flags)), high=len(flags) - 1)
    return True
