"""What is better: the objective list, then the cost, then one written rule for ties.

The criteria, most important first, are those of ``program.objective``, then the cost, the tie rule
(`planner.candidates.ties`) and ``offers``, whatever is not among them yet. Costs that differ by no more than
`Program.tie_microusd` are equal: what comes after the cost decides between such plans.

``time`` (only when asked for) is the makespan: the latest finish of a job. ``offers`` is last: columns stand in one
canonical order, lowest offer rank first (`planner.candidates.prune.canonical_order`); the plan with more units of the
first column wins, then of the second, and so on. It leaves no tie between plans that differ in anything, and it does
not depend on how the columns are ordered or on columns that nobody uses.
"""

from __future__ import annotations

import numpy as np

from planner.candidates.program import IntArray, Program
from planner.candidates.prune import LINEAR_ORDER, linear_weights
from planner.candidates.ties import GAINED, TIE_RULE, gained_of

LINEAR = frozenset(LINEAR_ORDER)


def criteria_of(program: Program) -> tuple[str, ...]:
    """All criteria, most important first, each once."""
    return tuple(dict.fromkeys((*program.objective, "cost", *TIE_RULE, "offers")))


def weights_of(program: Program, criterion: str) -> IntArray:
    """Integer weight >= 0 of one unit of each column in a linear criterion."""
    return linear_weights(program, criterion)


def value_of(program: Program, units: IntArray, criterion: str) -> int | float:
    """Exact value of a criterion other than ``offers`` for a plan.

    Parameters
    ----------
    program
        The whole program.
    units
        Of each column, (n,).
    criterion
        ``cost``, ``carbon``, ``time`` or one of the tie rule.

    Returns
    -------
    In micro-USD, mg or s for the first three; of the tie rule the sum of its whole weights.
    """
    used = np.flatnonzero(units)
    if criterion == "time":
        return max((float(program.finish_s[column]) for column in used), default=0.0)
    weights = weights_of(program, criterion)
    return sum(int(weights[column]) * int(units[column]) for column in used)


def told_value(program: Program, units: IntArray, criterion: str) -> int | float:
    """The value of a criterion as it is told: of what is to be large how much of it there is.

    Parameters
    ----------
    program
        The whole program.
    units
        Of each column, (n,).
    criterion
        ``cost``, ``carbon``, ``time`` or one of the tie rule.
    """
    if criterion not in GAINED:
        return value_of(program, units, criterion)
    return int(gained_of(program, criterion) @ units)


def providers_of(program: Program, units: IntArray) -> set[int]:
    """Numbers of the providers that a plan uses."""
    return {int(program.provider[column]) for column in np.flatnonzero(units)} - {-1}
