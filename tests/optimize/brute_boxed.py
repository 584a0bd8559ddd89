"""Random small boxed fleets and the best plan by trying everything; imports nothing from optimize/.

A unit brings its rate of every bucket at once, so a plan is a cover: what is left of it after every loss is added up,
bucket by bucket, in whole numbers. Rows have coefficients of either sign, as targets of latency do.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import Program, Row, Task
from tests.optimize.brute import CHAIN, reading_order, six_digits, weights
from tests.optimize.instances import ints, program, row

PARTS = 6  # of a unit: replicas of a unit are 1, 2 or 3
Units = NDArray[np.int64]  # (plans, columns)


def random_boxed(seed: int) -> Program:
    """A boxed fleet of one to four buckets, and a job beside it now and then."""
    rng = np.random.default_rng((14, seed))
    n, buckets = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    peak = rng.integers(0 if rng.random() < 0.1 else 1, 13, buckets)
    peak[0] = max(peak[0], 1)
    count = int(rng.integers(2, 4)) if rng.random() < 0.25 else 1
    levels = tuple(tuple(int(-(-d * (m + 1) // count)) for d in peak) for m in range(count)) if count > 1 else ()
    task = Task(
        name="fleet",
        kind="serving",
        first=0,
        stop=n,
        demand_micro_per_s=tuple(int(d) for d in peak),
        levels=levels,
        spare_replicas=int(rng.integers(1, 4)) if rng.random() < 0.45 else 0,
        min_replicas=int(rng.integers(1, 5)) if rng.random() < 0.3 else 0,
        max_spot_share=[0.0, 0.3, 0.5, 0.75][int(rng.integers(4))] if rng.random() < 0.2 else None,
        survive_domain=rng.random() < 0.15,
        boxed=True,
    )
    jobs = int(rng.integers(1, 3)) if rng.random() < 0.2 else 0
    tasks = [task, *([Task(name="job", kind="training", first=n, stop=n + jobs)] if jobs else [])]
    every, job = n + jobs, np.arange(n + jobs) >= n
    replicas = np.where(job, 0, rng.integers(1, 4, every))
    capacity = rng.integers(0, 7, (every, buckets))
    return program(
        tasks,
        cost=rng.integers(1, 9, every) * [1, 7_654_321][int(rng.integers(2))],
        nodes=rng.integers(1, 4, every),
        carbon_mg=rng.integers(0, 3, every),
        replicas=replicas,
        capacity_micro_per_s=np.where(job[:, None], 0, capacity * np.maximum(replicas, 1)[:, None]),
        max_units=np.where(job, 1, rng.integers(1, 13 - 2 * n, every)),
        provider=rng.integers(0, 2, every),
        offer=rng.permutation(every),
        rows=_rows(rng, every, capacity, replicas),
        max_providers=1 if rng.random() < 0.1 else None,
        objective=[("cost",), ("carbon", "cost"), ("cost", "carbon")][int(rng.integers(8)) % 3],
        level=np.where(job, 0, rng.integers(0, count, every) * (np.arange(every) > 0)),
        spot=np.where(job, 0, rng.integers(0, 2, every)),
        domain=rng.integers(0, 3, every),
    )


def _rows(rng: np.random.Generator, n: int, capacity: Any, replicas: Any) -> tuple[Row, ...]:
    """A limit on devices, and targets: late requests less those that may be late, at most none."""
    rows = [row("limits.max_devices", int(rng.integers(3, 25)), rng.integers(1, 4, n))] if rng.random() < 0.3 else []
    for number in range(int(rng.integers(0, 3))):
        late = rng.integers(-4, 5, n) * (replicas > 0)
        if rng.random() < 0.3:  # a supply for others, or by them
            late = rng.integers(-4, 5, n)
        rows.append(row(f"target[{number}]", int(rng.choice([0, 0, 0, 2, -2])), late))
    return tuple(each for each in rows if len(each.columns))


def best_boxed(question: Program) -> list[int] | None:
    """Units of the best plan by the whole tie rule; None when there is none."""
    units = np.indices(question.max_units + 1).reshape(question.column_count, -1).T
    for limit in question.rows:
        units = units[units[:, limit.columns] @ limit.coefficients <= limit.bound]
    if question.max_providers is not None:
        units = units[_providers(question, units) <= question.max_providers]
    for task in question.tasks:
        units = units[_meets(question, task, units)]
    if not len(units):
        return None
    keys = [_value(question, units, name) for name in dict.fromkeys((*question.objective, *CHAIN))]
    keys += [-units[:, k] for k in reading_order(question)]
    return [int(amount) for amount in units[np.lexsort(keys[::-1])[0]]]


def _meets(question: Program, task: Task, units: Units) -> NDArray[np.bool_]:
    part = slice(task.first, task.stop)
    if task.kind == "training":
        return np.asarray(units[:, part].sum(axis=1) == task.count)
    mine, level = units[:, part], question.level[part]
    fine = mine @ np.where(level == 0, question.replicas[part], 0) >= task.min_replicas
    capacity, asked = question.capacity_micro_per_s[part], ints(task.demand_micro_per_s) > 0
    for number, demand in enumerate(task.levels or (task.demand_micro_per_s,)):
        runs = mine * (level <= number)
        brought = PARTS * runs @ capacity
        needs = [brought]
        for k in range(mine.shape[1]) if task.spare_replicas else ():
            lost = task.spare_replicas * PARTS // int(question.replicas[part][k]) * capacity[k]
            needs.append(brought - np.where(runs[:, [k]] > 0, lost, 0))
        for domain in range(3) if task.survive_domain else ():
            left = runs * (question.domain[part] != domain)
            here = (runs * (question.domain[part] == domain)).any(axis=1)
            needs.append(np.where(here[:, None], PARTS * left @ capacity, brought))
        for left in needs:
            fine &= ((left >= PARTS * ints(demand)) | (ints(demand) == 0)).all(axis=1)
        if task.max_spot_share is not None:
            share, rates = Fraction(str(task.max_spot_share)), capacity[:, asked].sum(axis=1)
            spot = runs @ (rates * question.spot[part])
            fine &= spot * share.denominator <= share.numerator * (runs @ rates)
    return np.asarray(fine)


def _providers(question: Program, units: Units) -> Units:
    used = [(units[:, question.provider == one] > 0).any(axis=1) for one in np.unique(question.provider)]
    return np.sum(used, axis=0)


def _value(question: Program, units: Units, name: str) -> Units:
    if name == "capacity":
        (fleet, *_), capacity = question.tasks, question.capacity_micro_per_s
        carried = (capacity * (ints(fleet.demand_micro_per_s) > 0)).sum(axis=1) / sum(fleet.demand_micro_per_s)
        return -(units @ ints([six_digits(1e6 * each) for each in carried]))
    return units @ ints(weights(question, name))


def for_cost(question: Program) -> Program:
    """The same with the cost first."""
    return replace(question, objective=("cost",))
