"""What is better: the objective list, then one written rule for ties.

The criteria, most important first, are those of ``program.objective``, then whatever of
the following is not among them:

=========  =======================================================================
cost       sum of cost in micro-dollars
finish     sum over the training jobs of their finish time, in whole milliseconds
carbon     sum of carbon in milligrams
nodes      sum of shapes
providers  number of providers used
offers     columns stand in one canonical order, lowest offer rank first
           (`planner.candidates.prune.canonical_order`); the plan with more units of the
           first column wins, then of the second, and so on
=========  =======================================================================

``time`` (only when asked for) is the makespan: the latest finish of a job. The last
criterion leaves no tie between plans that differ in anything, and it does not depend on
how the columns are ordered or on columns that nobody uses.
"""

from __future__ import annotations

import numpy as np

from planner.candidates.program import IntArray, Program

TIE_RULE = ("cost", "finish", "carbon", "nodes", "providers", "offers")
LINEAR = frozenset({"cost", "finish", "carbon", "nodes"})


def criteria_of(program: Program) -> tuple[str, ...]:
    """All criteria, most important first, each once."""
    return tuple(dict.fromkeys((*program.objective, *TIE_RULE)))


def finish_ms(program: Program) -> IntArray:
    """Finish of each column in whole milliseconds, so that sums are exact."""
    return np.rint(np.asarray(program.finish_s, dtype=np.float64) * 1e3).astype(np.int64)


def weights_of(program: Program, criterion: str) -> IntArray:
    """Integer weight of one unit of each column in a linear criterion."""
    if criterion == "finish":
        return finish_ms(program)
    arrays = {"cost": program.cost_microusd, "carbon": program.carbon_mg, "nodes": program.nodes}
    return np.asarray(arrays[criterion], dtype=np.int64)


def value_of(program: Program, units: IntArray, criterion: str) -> int | float:
    """Exact value of a criterion other than ``offers`` for a plan."""
    used = np.flatnonzero(units)
    if criterion == "time":
        return max((float(program.finish_s[column]) for column in used), default=0.0)
    if criterion == "providers":
        return len({int(program.provider[column]) for column in used} - {-1})
    weights = weights_of(program, criterion)
    return sum(int(weights[column]) * int(units[column]) for column in used)
