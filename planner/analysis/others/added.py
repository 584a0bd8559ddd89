"""Columns that only help to ask: optional ones that cost nothing, belong to nobody and stand in a few rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from planner.candidates.program import OPTIONAL, IntArray, Program, Row, Task
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
