"""Staying with the plan before, where that costs little: the fewest nodes changed among nearly best plans.

With r the nodes that a plan has of each (workload, offer) and r' those of the plan before, the nodes changed are
sum |r - r'|. Since |a - b| = a - b + 2 max(0, b - a), one optional column v >= r' - r per pair that had nodes is
enough: sum |r - r'| = sum of nodes + 2 sum of v - sum of r'. Either the changes are made fewest among the plans of
at most (1 + d) times the least cost, then the scenario's own objective decides; or every change costs something and
cost and changes are made least together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from planner.analysis.others.added import row_of, trimmed, with_columns
from planner.candidates.program import IntArray, Program
from planner.carriers import dataclass
from planner.optimize.solve import Solution

Held = Sequence[tuple[int, IntArray]]  # of a (workload, offer): nodes of the plan before, (columns,) those of a unit
STAYED = "changed nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The plan chosen, and how many nodes it changes of those that the program knows."""

    solution: Solution
    changed: int | None  # None = not proven fewest


def changed_nodes(nodes: IntArray, held: Held, units: IntArray) -> int:
    """Sum of |r - r'| over the (workload, offer) pairs.

    Parameters
    ----------
    nodes
        (columns,) of a unit of each column, at all its offers together; 0 where none count.
    held
        Nodes that the plan before had, and of which column's units they are.
    units
        (columns,) units of each column in the plan.
    """
    now = [int(each @ units) for _, each in held]
    new = int(nodes @ units) - sum(now)  # where the plan before had none
    return new + sum(abs(there - before) for there, (before, _) in zip(now, held))


def fewest_changes(program: Program, nodes: IntArray, held: Held, most: int, solve: Callable[..., Solution]) -> Stay:
    """The plan of fewest changed nodes that costs at most `most` micro-dollars, best by the program's objective.

    Parameters
    ----------
    program
        What is asked of.
    nodes
        (columns,) of a unit of each column, at all its offers together; 0 where none count.
    held
        Nodes that the plan before had, and of which column's units they are.
    most
        Cost of a plan at most.  [micro-USD]
    solve
        Solves a program.
    """
    grown, weights, known = _with_losses(program, nodes, held)
    paid = np.flatnonzero(program.cost_microusd)
    within = replace(grown, rows=(*grown.rows, row_of("within", most, (paid, program.cost_microusd[paid]))))
    first = solve(replace(within, carbon_mg=weights, objective=("carbon",)), cost_only=True)
    if first.status != "optimal":
        return Stay(solution=trimmed(first, program.column_count), changed=None)
    least = sum(int(a) * int(u) for a, u in zip(weights, first.units) if u)
    some = np.flatnonzero(weights)
    settled = replace(within, rows=(*within.rows, row_of(STAYED, least, (some, weights[some]))))
    second = solve(settled)
    chosen = second if second.has_plan else first
    return Stay(solution=trimmed(chosen, program.column_count), changed=least - known)


def with_move_cost(
    program: Program, nodes: IntArray, held: Held, microusd: int, solve: Callable[..., Solution]
) -> Stay:
    """The plan of least cost + `microusd` for every node changed.

    Parameters
    ----------
    program
        What is asked of; cost comes first of its criteria.
    nodes
        (columns,) of a unit of each column, at all its offers together; 0 where none count.
    held
        Nodes that the plan before had, and of which column's units they are.
    microusd
        For one node more or less.  [micro-USD]
    solve
        Solves a program.

    Returns
    -------
    The plan at its own cost, without what the changes are charged.
    """
    grown, weights, known = _with_losses(program, nodes, held)
    charged = replace(grown, cost_microusd=grown.cost_microusd + microusd * weights)
    found = trimmed(solve(charged), program.column_count)
    if not found.has_plan:
        return Stay(solution=found, changed=None)
    cost = sum(int(c) * int(u) for c, u in zip(program.cost_microusd, found.units) if u)
    bound = None if found.bound_microusd is None else found.bound_microusd - (found.cost_microusd - cost)
    changed = changed_nodes(nodes, held, found.units)
    assert found.cost_microusd - cost == microusd * (changed + known)
    stages = tuple((name, cost if name == "cost" else value) for name, value in found.stages)
    return Stay(solution=replace(found, cost_microusd=cost, bound_microusd=bound, stages=stages), changed=changed)


def _with_losses(program: Program, nodes: IntArray, held: Held) -> tuple[Program, IntArray, int]:
    """The program with a column for the nodes lost of each pair, the weight of every column, and sum of r'."""
    kept = [one for one in held if one[0] > 0]
    grown, losses = with_columns(program, "~nodes given back", [before for before, _ in kept])
    rows = []
    for place, (before, each) in enumerate(kept):
        columns = np.flatnonzero(each)
        mine = losses[place : place + 1]
        rows.append(row_of("given back", -before, (columns, -each[columns]), (mine, -1)))
    weights = np.concatenate([nodes, np.full(len(kept), 2, dtype=np.int64)])
    return replace(grown, rows=(*grown.rows, *rows)), weights, sum(before for before, _ in kept)
