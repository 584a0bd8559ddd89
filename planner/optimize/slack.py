"""Infeasible already without whole numbers: a quick proof, by weights on the lines of the model.

Every line of the model gets slack of its own, and the sum of the slack, each in units of its line's largest
coefficient, is minimised. If the least sum is above 0, no plan exists: a plan would need none. The bound on the least
sum is worked out from the multipliers by our own arithmetic (`relax.weigh`), whoever found them; so "infeasible" is
proven, while anything else says nothing.
"""

from __future__ import annotations

import numpy as np

from planner.candidates.program import Program
from planner.optimize.build import build
from planner.optimize.model import Model
from planner.optimize.relax import relax
from planner.optimize.scope import hopeless, scope_of

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
