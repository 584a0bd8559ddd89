"""The k best *different* decisions: not the same machines with another micro-batch.

A decision is what each workload rents: the set of its (device, price model, place) labels. The next
best decision is the best plan that gives up at least one of the choices of every decision before it;
so a plan that only adds to an earlier one is none, and neither is another layout on the same machines.

As rows (a *no-good* per decision S): where every workload is one job, units on choices of S sum to at
most |S| - 1. Otherwise, for every choice p of S, an optional column w_p says that p is given up,

    sum of units on p + M_p w_p <= M_p,      sum of w_p >= 1,

with M_p the most units that p can have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.analysis.others.added import row_of, with_columns
from planner.candidates.program import IntArray, Program, Row, Task
from planner.candidates.prune import alone_units

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
