"""Why nothing works: a smallest set of limits and workloads that cannot be met together.

Deletion filter: leave one group out; if what remains is still proven infeasible, it stays
out. What is left at the end is infeasible, and each of its members was kept because
leaving it out of a larger set gave a plan, so leaving it out of the final set does too.
Groups are left out many at a time while that goes well, since most have nothing to do with
it: what can be left out together can be left out one by one, so the set found is the same.
Of many groups those are ruled out first without which the relaxation alone is infeasible;
the integer programs that are left to solve are then small.

Groups go by the names of business limits (`limited.limit_of`): all rows of one quota, the
provider limit, deadlines and other limits on single columns (`limited.Filter`), and workloads.
Purchases and rows that define the plan belong to no group and are always there.

Infeasible already without whole numbers: a quick proof, by weights on the lines of the model.

Every line of the model gets slack of its own, and the sum of the slack, each in units of its line's largest
coefficient, is minimised. If the least sum is above 0, no plan exists: a plan would need none. The bound on the least
sum is worked out from the multipliers by our own arithmetic (`relax.weigh`), whoever found them; so "infeasible" is
proven, while anything else says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.candidates.program import Program
from planner.carriers import dataclass
from planner.deadline import Deadline
from planner.optimize.build import build
from planner.optimize.limited import PROVIDERS, Asker, Limited
from planner.optimize.model import Model
from planner.optimize.relax import relax
from planner.optimize.scope import hopeless, scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Status, uninterrupted

SURE = 1e-6  # of slack, against rounding


def surely_infeasible(program: Program) -> bool:
    """Whether the relaxation alone proves that there is no plan."""
    scope = scope_of(program)
    if hopeless(scope):
        return True
    if not len(scope.open):
        return False
    model = build(scope, "cost")
    if model.unfit() or not model.line_count:
        return False
    answer = relax(with_slack(model))
    return answer is not None and answer.bound > SURE * max(1.0, answer.size)


def with_slack(model: Model) -> Model:
    """The same lines, each with slack in the directions that it limits; only slack costs."""
    table, count = model.table(), model.variable_count
    lengths = np.diff(table.starts)
    of_line = np.repeat(np.arange(len(lengths)), lengths)
    largest = np.ones(len(lengths))
    np.maximum.at(largest, of_line, np.abs(table.coefficients))
    most = np.zeros(len(lengths))
    np.add.at(most, of_line, np.abs(table.coefficients) * model.upper[table.variables])
    loose = Model(columns=model.columns)
    loose.add("x", model.upper, integer=False)
    reach = np.ceil((most + np.abs(np.where(np.isfinite(table.low), table.low, table.high))) / largest) + 1.0
    under, over = np.flatnonzero(np.isfinite(table.low)), np.flatnonzero(np.isfinite(table.high))
    below = loose.add("s", reach[under], integer=False)
    above = loose.add("s", reach[over], integer=False)
    lines = np.concatenate([of_line, under, over])
    order = np.argsort(lines, kind="stable")
    variables = np.concatenate([table.variables, below, above])[order]
    values = np.concatenate([table.coefficients, largest[under], -largest[over]])[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=len(lengths)))])
    loose.add_lines("slack", starts, variables, values, low=table.low, high=table.high)
    loose.objective[count:] = 1.0
    return loose


MANY = 12  # groups, beyond which most are ruled out by relaxations before any integer program is solved
Names = tuple[str, ...]

__all__ = ["PROVIDERS", "Conflict", "find_conflict", "groups_of", "without_others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Names of the groups in conflict; `minimal` when every step was proven."""

    names: tuple[str, ...]
    minimal: bool


def find_conflict(
    program: Program | Limited,
    *,
    solver: str = "highs",
    time_limit_s: float | Deadline | None = None,
    asker: Asker | None = None,
) -> Conflict:
    """Names of limits and tasks that together are infeasible, by deletion.

    Parameters
    ----------
    program
        `Limited` where there are limits on single columns.
    solver
        ``highs`` or ``cbc``.
    time_limit_s
        Of each step, or a deadline of all; a step that ends without proof keeps its group and clears `minimal`. None =
        no limit.  [s]
    asker
        Solves the steps, in place of the solver and its limit.
    """
    limited = _limited(program)

    def infeasible(groups: tuple[str, ...]) -> bool | None:
        small = limited.only(groups)
        if asker is None:
            return _infeasible(small, solver, time_limit_s)
        met = asker.feasible(small)
        return None if met is None else not met

    groups = groups_of(limited)
    if len(groups) > MANY and surely_infeasible(limited.only(groups)):
        groups = _deleted(groups, lambda rest: _in_time(asker) and surely_infeasible(limited.only(rest)))[0]
    elif not (whole := infeasible(groups)):
        return Conflict(names=(), minimal=whole is not None)
    names, minimal = _deleted(groups, infeasible)
    return Conflict(names=names, minimal=minimal)


def _deleted(groups: tuple[str, ...], infeasible: Callable[[tuple[str, ...]], bool | None]) -> tuple[Names, bool]:
    """What is left of infeasible groups when all that can be left out is, and whether every step was answered."""
    minimal, place, size = True, 0, max(1, len(groups) // 2)
    while place < len(groups):
        rest = groups[:place] + groups[place + size :]
        answer = infeasible(rest)
        if answer:
            groups, size = rest, size * 2
        elif size > 1:
            size //= 2
        else:
            place, minimal = place + 1, minimal and answer is not None
        size = max(1, min(size, len(groups) - place))
    return groups, minimal


def _in_time(asker: Asker | None) -> bool:
    return asker is None or asker.stop_at is None or time.monotonic() < asker.stop_at


def groups_of(program: Program | Limited) -> tuple[str, ...]:
    """All groups: tasks, limits on columns, the provider limit, rows by the name of their limit."""
    limited = _limited(program)
    return tuple(dict.fromkeys([*limited.tasks, *limited.limits]))


def without_others(program: Program | Limited, groups: tuple[str, ...]) -> Program:
    """The program with the demands and limits of these groups alone."""
    return _limited(program).only(groups)


def _limited(program: Program | Limited) -> Limited:
    return Limited(program=program) if isinstance(program, Program) else program


def _infeasible(program: Program, solver: str, time_limit_s: float | Deadline | None) -> bool | None:
    """Proven infeasible, has a plan, or None = neither shown."""
    asked = replace(program, objective=("cost",), cost_microusd=0 * program.cost_microusd)
    answer = uninterrupted(optimize(asked, cost_only=True, solver=solver, time_limit_s=time_limit_s))
    return False if answer.has_plan else True if answer.status is Status.INFEASIBLE else None
