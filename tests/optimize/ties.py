"""Programs in which many plans are equally good, and other orders of the same program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.candidates.program import Program, Task
from tests.optimize.brute_fleets import KINDS, random_fleet
from tests.optimize.brute_supplies import random_supplied
from tests.optimize.instances import permuted, program, row, static, within_tasks

Facts = tuple[tuple[str, int, int, int], ...]


def tied(number: int) -> Program:
    """One of five sorts, in turn; offers differ, nearly everything else is the same."""
    sorts = (_portfolio, _jobs, _fleet, _mixed_fleet, _calendar)
    return sorts[number % len(sorts)](number // len(sorts))


def _portfolio(seed: int) -> Program:
    """A portfolio at coarse prices, all jobs ending at once."""
    question = static(6, 40, seed=seed)
    coarse = np.maximum(question.cost_microusd // 10**10, 1)
    return replace(question, cost_microusd=coarse, finish_s=np.ones(question.column_count))


def _jobs(seed: int) -> Program:
    """Equal jobs on equal columns of a few providers, one node short of what all want."""
    rng = np.random.default_rng(seed)
    jobs, columns = 4, 6
    n = jobs * columns
    tasks = [
        Task(name=f"j{j}", kind="training", first=j * columns, stop=(j + 1) * columns, count=2) for j in range(jobs)
    ]
    half = (np.arange(n) % 2 == 0).astype(int)
    return program(
        tasks,
        cost=rng.integers(1, 3, n),
        provider=rng.integers(0, 3, n),
        offer=np.arange(n) % columns,
        max_units=np.full(n, 2),
        rows=(row("quota", 2 * jobs - 1, half), row("devices", 2 * jobs, np.ones(n))),
    )


def _fleet(seed: int) -> Program:
    """Replicas that cost what they carry, in many sizes."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, 8)
    task = Task(name="f", kind="serving", first=0, stop=8, demand_micro_per_s=(12,), spare_replicas=int(seed % 2))
    return program(
        [task],
        cost=size,
        replicas=np.ones(8),
        capacity_micro_per_s=size[:, None],
        offer=rng.permutation(8),
        max_units=np.full(8, 9),
    )


def _mixed_fleet(seed: int) -> Program:
    """A full fleet in which all columns cost the same."""
    question = random_fleet(KINDS[seed % len(KINDS)], seed)
    same = np.ones(question.column_count, dtype=np.int64)
    return replace(question, cost_microusd=same, carbon_mg=0 * same, nodes=same, rows=())


def _calendar(seed: int) -> Program:
    """A calendar in which all that costs anything costs the same."""
    question = random_supplied(seed)
    same = np.minimum(question.cost_microusd, 1)
    rows = tuple(r for r in question.rows if not r.name.startswith("limits"))
    return replace(question, cost_microusd=same, carbon_mg=0 * same, finish_s=0.0 * same, rows=rows)


def shuffled(question: Program, key: tuple[int, ...]) -> Program:
    """The same program with its columns, tasks and rows in another order."""
    rng = np.random.default_rng(key)
    mixed = permuted(question, within_tasks(question, rng))
    tasks = tuple(mixed.tasks[k] for k in rng.permutation(len(mixed.tasks)))
    return replace(mixed, tasks=tasks, rows=tuple(mixed.rows[k] for k in rng.permutation(len(mixed.rows))))


def facts(question: Program, units: np.ndarray) -> Facts:
    """A plan told by what its columns are, not where they stand."""
    owner = {k: task.name for task in question.tasks for k in range(task.first, task.stop)}
    return tuple(
        sorted(
            (owner[k], int(question.offer[k]), int(question.provider[k]), int(units[k]))
            for k in np.flatnonzero(units).tolist()
        )
    )
