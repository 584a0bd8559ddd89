"""Other decisions: the k best *different* ones, what plans can have near the optimum, and staying with the plan before.

Different is not the same machines with another micro-batch. A decision is what each workload rents: the set of its
(device, price model, place) labels. The next best decision is the best plan that gives up at least one of the choices
of every decision before it; so a plan that only adds to an earlier one is none, and neither is another layout on the
same machines.

As rows (a *no-good* per decision S): where every workload is one job, units on choices of S sum to at
most |S| - 1. Otherwise, for every choice p of S, an optional column w_p says that p is given up,

    sum of units on p + M_p w_p <= M_p,      sum of w_p >= 1,

with M_p the most units that p can have.

How much of each device plans can have that cost hardly more than the best ("0 to 64 H100 within 2 %"): with z the least
cost and d a share, the fewest and the most devices of a kind over all plans that cost at most (1 + d) z, each an
integer program of its own. Nothing is maximised: with T no less than any plan can have, an optional column t >= T -
(devices of the kind) is made least, and the most is T - t. The most is what the money allows, needed or not, no column
beyond what it would need alone.

Staying with the plan before, where that costs little: with r the nodes that a plan has of each (workload, offer) and r'
those of the plan before, the nodes changed are sum |r - r'|. Since |a - b| = a - b + 2 max(0, b - a), one optional
column v >= r' - r per pair that had nodes is enough: sum |r - r'| = sum of nodes + 2 sum of v - sum of r'. Either the
changes are made fewest among the plans of at most (1 + d) times the least cost, then the scenario's own objective
decides; or every change costs something and cost and changes are made least together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import OPTIONAL, IntArray, Program, Row, Task
from planner.candidates.prune import alone_units
from planner.carriers import dataclass
from planner.optimize.solve import Solution

NOBODY = -1  # a provider that does not count


def with_columns(program: Program, name: str, most: Iterable[int]) -> tuple[Program, IntArray]:
    """The program with optional columns of up to `most` units at its end, and their indices.

    Parameters
    ----------
    program
        What is asked of.
    name
        Of the task that the columns make up.
    most
        Units of each column at most; empty: no column is added.
    """
    upper = np.array(list(most), dtype=np.int64)
    first, count = program.column_count, len(upper)
    nothing = np.zeros(count, dtype=np.int64)
    width = program.capacity_micro_per_s.shape[1]
    added: dict[str, Any] = dict.fromkeys(("cost_microusd", "carbon_mg", "nodes", "replicas", *OPTIONAL), nothing)
    added["offer"] = nothing + int(program.offer.max(initial=0)) + 1  # last in order: ties are not theirs to break
    added |= {"max_units": upper, "provider": nothing + NOBODY, "finish_s": np.zeros(count)}
    arrays: dict[str, Any] = {key: np.concatenate([getattr(program, key), values]) for key, values in added.items()}
    arrays["capacity_micro_per_s"] = np.concatenate(
        [program.capacity_micro_per_s, np.zeros((count, width), dtype=np.int64)]
    )
    task = Task(name=name, kind="optional", first=first, stop=first + count)
    tasks = (*program.tasks, task) if count else program.tasks
    grown = replace(program, tasks=tasks, most_tie_microusd=0, **arrays)  # what they count is exact
    return grown, np.arange(first, first + count)


def row_of(name: str, bound: int, *parts: tuple[IntArray, IntArray | int]) -> Row:
    """A row from pieces of (columns, coefficients)."""
    columns = np.concatenate([np.asarray(columns, dtype=np.int64) for columns, _ in parts])
    values = np.concatenate([np.broadcast_to(np.asarray(each, dtype=np.int64), len(cols)) for cols, each in parts])
    order = np.argsort(columns, kind="stable")
    return Row(name=name, label=name, bound=int(bound), columns=columns[order], coefficients=values[order])


def trimmed(solution: Solution, count: int) -> Solution:
    """The solution of the first `count` columns: what the program was before columns were added."""
    return replace(
        solution,
        units=solution.units[:count],
        flows=solution.flows[:count],
        level_flows=tuple(flows[:count] for flows in solution.level_flows),
    )


Choice = tuple[str, int]  # task, label
Decision = frozenset[Choice]
NONE = -1  # label of columns that are no choice: what is bought ahead
GIVEN_UP = "given up"


def decision_of(program: Program, labels: IntArray, units: IntArray) -> Decision:
    """What each workload of a plan rents.

    Parameters
    ----------
    program
        Whose columns the plan is of.
    labels
        (columns,) one number for each device, price model and place; -1 where there is none.
    units
        (columns,) units of each column in the plan.
    """
    return frozenset(
        (task.name, int(labels[column]))
        for task in program.tasks
        for column in range(task.first, task.stop)
        if units[column] > 0 and labels[column] != NONE
    )


def unlike(program: Program, labels: IntArray, taken: list[Decision]) -> Program:
    """The program in which every plan gives up something of each decision taken, costs told apart exactly.

    Parameters
    ----------
    program
        What is asked of.
    labels
        (columns,) one number for each device, price model and place; -1 where there is none.
    taken
        Decisions that are no answer any more; empty: every plan is one.

    Returns
    -------
    Columns that were added for it stand at the end.
    """
    program = replace(program, most_tie_microusd=0)
    single = all(task.kind == "optional" or _one_job(task) for task in program.tasks)
    for number, decision in enumerate(taken):
        choices = [_columns(program, labels, choice) for choice in sorted(decision)]
        if single:
            every = np.concatenate(choices)
            row = row_of(f"decision {number + 1}", len(decision) - 1, (every, 1))
            program = replace(program, rows=(*program.rows, row))
        else:
            program = _with_no_good(program, choices, number)
    return program


def _with_no_good(program: Program, choices: list[IntArray], number: int) -> Program:
    most = [_most(program, columns) for columns in choices]
    grown, given_up = with_columns(program, f"~decision {number + 1}", [1] * len(choices))
    rows: list[Row] = [
        row_of(GIVEN_UP, limit, (columns, 1), (given_up[place : place + 1], limit))
        for place, (columns, limit) in enumerate(zip(choices, most))
    ]
    rows.append(row_of(f"decision {number + 1}", -1, (given_up, -1)))
    return replace(grown, rows=(*grown.rows, *rows))


def _one_job(task: Task) -> bool:
    return task.kind == "training" and task.count == 1


def _columns(program: Program, labels: IntArray, choice: Choice) -> IntArray:
    (task,) = [task for task in program.tasks if task.name == choice[0]]
    return np.flatnonzero(labels[task.first : task.stop] == choice[1]) + task.first


def _most(program: Program, columns: IntArray) -> int:
    """Units that columns of one task can have together."""
    (task,) = [task for task in program.tasks if task.first <= columns[0] < task.stop]
    if task.kind == "training":
        return task.count
    alone = alone_units(program, task)[columns - task.first]
    return int(np.minimum(program.max_units[columns], alone).sum())


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


WITHIN = "within the share"
TOLD_APART = 10**8  # a cost and what differs from it by this part of it are two to any solver


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The fewest and the most of something, each proven or None."""

    fewest: int | None
    most: int | None


def most_microusd(cost_microusd: int, share: float) -> int:
    """(1 + share) times a cost, the share read as the decimal number that it prints as.  [micro-USD]"""
    return int(cost_microusd * (1 + Fraction(repr(float(share)))))


def range_of(program: Program, amounts: IntArray, most: int, solve: Callable[..., Solution]) -> Range:
    """The fewest and the most of an amount over all plans of at most a cost.

    Parameters
    ----------
    amounts
        (columns,) of one unit of each column.
    most
        What plans may cost.  [micro-USD]
    solve
        As `planner.optimize.solve.optimize`.
    """
    return Range(
        fewest=_bracketed(lambda limit: _least(_paying(program, limit, amounts), solve), most),
        most=_bracketed(lambda limit: _most_of_kind(_paying(program, limit, program.carbon_mg), amounts, solve), most),
    )


def _bracketed(value: Callable[[int], int | None], most: int) -> int | None:
    """A value at a limit on the cost; where no solver can tell the limit, that of a little less and of a little more.

    Both values are monotone in the limit: when the two are equal, so is the one between.
    """
    found = value(most)
    if found is not None:
        return found
    step = max(1, most // TOLD_APART)
    below, above = value(most - step), value(most + step)
    return below if below == above else None


def _paying(program: Program, most: int, weights: IntArray) -> Program:
    """The program with plans of at most a cost, and weights in the place of carbon."""
    paid = np.flatnonzero(program.cost_microusd)
    row = row_of(WITHIN, most, (paid, program.cost_microusd[paid]))
    return replace(program, rows=(*program.rows, row), carbon_mg=weights)


def _most_of_kind(program: Program, amounts: IntArray, solve: Callable[..., Solution]) -> int | None:
    some = np.flatnonzero(amounts)
    total = int(sum(int(a) * int(u) for a, u in zip(amounts[some], _upper(program)[some])))
    if not total:
        return 0
    grown, slack = with_columns(program, "~short", [total])
    weights = np.zeros(grown.column_count, dtype=np.int64)
    weights[slack] = 1
    row = row_of("short of all", -total, (some, -amounts[some]), (slack, -1))
    least = _least(replace(grown, carbon_mg=weights, rows=(*grown.rows, row)), solve)
    return None if least is None else total - least


def _least(program: Program, solve: Callable[..., Solution]) -> int | None:
    """The least sum of what stands in the place of carbon; None when it was not proven."""
    solution = solve(replace(program, objective=("carbon",)), cost_only=True)
    if solution.status != "optimal":
        return None
    return sum(int(a) * int(u) for a, u in zip(program.carbon_mg, solution.units) if u)


def _upper(program: Program) -> IntArray:
    """Most units of each column worth considering."""
    upper = np.array(program.max_units, dtype=np.int64)
    for task in program.tasks:
        part = slice(task.first, task.stop)
        upper[part] = np.minimum(upper[part], alone_units(program, task))
    return upper
