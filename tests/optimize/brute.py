"""Random small programs and the best plan by trying everything; imports nothing from optimize/."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import Program, Task
from tests.optimize.instances import ints, program, row

CHAIN = ("cost", "finish", "carbon", "nodes", "providers")


def random_program(seed: int) -> Program:
    """One to three tasks, few columns, every kind of row, many ties, many infeasible ones."""
    rng = np.random.default_rng(seed)
    tasks: list[Task] = []
    n = 0
    for number in range(rng.integers(1, 4)):
        size = int(rng.integers(1, 6))
        if rng.random() < 0.55:
            task = Task(name=f"t{number}", kind="training", first=n, stop=n + size, count=int(rng.integers(1, 4)))
        else:
            size = min(size, 3)
            buckets = 1 if rng.random() < 0.7 else 2
            task = Task(
                name=f"t{number}",
                kind="serving",
                first=n,
                stop=n + size,
                demand_micro_per_s=tuple(int(d) for d in rng.integers(1, 25, buckets)),
                spare_replicas=int(rng.integers(0, 3)) if rng.random() < 0.6 else 0,
                min_replicas=int(rng.integers(0, 4)) if rng.random() < 0.4 else 0,
            )
        tasks.append(task)
        n += size
    kind = np.concatenate([[t.kind == "training"] * (t.stop - t.first) for t in tasks])
    money = [1, 1_000_000, 7_654_321_013][int(rng.integers(3))]
    nodes = rng.integers(1, 5, n)
    cost = rng.integers(1, 8, n) * money + (rng.integers(0, 2, n) if rng.random() < 0.3 else 0)
    replicas = np.where(kind, 0, rng.integers(1, 4, n))
    each = rng.integers(0, 9, (n, 2))
    capacity = np.where(kind[:, None], 0, each * replicas[:, None])
    rows = []
    if rng.random() < 0.6:
        rows.append(row("limits.max_devices", int(rng.integers(2, 30)), nodes * rng.integers(1, 3)))
    if rng.random() < 0.5:
        rows.append(row("hardware.quotas[0]", int(rng.integers(0, 9)), nodes * rng.integers(0, 2, n)))
    if rng.random() < 0.3:
        rows.append(row("limits.budget", int(rng.integers(3, 60)) * money, cost))
    if rng.random() < 0.3:
        rows.append(row("limits.power", int(rng.integers(1000, 90_000)), nodes * rng.integers(700, 9000, n)))
    objectives = [("cost",), ("time", "cost"), ("carbon", "cost"), ("cost", "carbon"), ("time",), ("cost", "time")]
    return program(
        tasks,
        cost=cost,
        finish=np.where(kind, rng.integers(1, 5, n) * 1000.0, 0.0),
        carbon_mg=rng.integers(0, 4, n) * int(rng.integers(0, 2)),
        nodes=nodes,
        replicas=replicas,
        capacity_micro_per_s=capacity,
        max_units=np.where(kind, rng.integers(1, 4, n), rng.integers(1, 6, n)),
        provider=rng.integers(0, 3, n),
        offer=rng.integers(0, n, n),
        rows=tuple(rows),
        max_providers=int(rng.integers(1, 3)) if rng.random() < 0.4 else None,
        objective=objectives[int(rng.integers(len(objectives)))],
    )


def best(question: Program) -> tuple[tuple[Any, ...], Any] | None:
    """Key and units of the best plan by the whole tie rule; None when there is none."""
    order = reading_order(question)
    chain = tuple(dict.fromkeys((*question.objective, *CHAIN)))
    options = [list(ways(question, task)) for task in question.tasks]
    found: tuple[tuple[Any, ...], Any] | None = None
    for combination in itertools.product(*options):
        units = [0] * question.column_count
        for way in combination:
            for column, amount in way:
                units[column] = amount
        if not within_limits(question, units):
            continue
        key = (*(value(question, units, name) for name in chain), tuple(-units[k] for k in order))
        if found is None or key < found[0]:
            found = (key, ints(units))
    return found


def reading_order(question: Program) -> list[int]:
    """Columns by offer, task name, then all that they are."""
    task_of = {k: task.name for task in question.tasks for k in range(task.first, task.stop)}

    def rest(k: int) -> tuple[Any, ...]:
        arrays = (question.cost_microusd, question.finish_s, question.carbon_mg, question.nodes, question.replicas)
        return (
            *(array[k] for array in arrays),
            question.provider[k],
            question.max_units[k],
            *question.capacity_micro_per_s[k],
        )

    return sorted(range(question.column_count), key=lambda k: (question.offer[k], task_of[k], rest(k)))


def ways(question: Program, task: Task) -> Iterator[list[tuple[int, int]]]:
    """Every way to meet one task."""
    columns = range(task.first, task.stop)
    for amounts in itertools.product(*(range(int(question.max_units[k]) + 1) for k in columns)):
        way = [(k, amount) for k, amount in zip(columns, amounts) if amount]
        if meets(question, task, way):
            yield way


def meets(question: Program, task: Task, way: list[tuple[int, int]]) -> bool:
    """Whether units meet one task."""
    if task.kind == "training":
        return sum(amount for _, amount in way) == task.count
    return task.kind == "optional" or carries(question, task, way)


def carries(question: Program, task: Task, way: list[tuple[int, int]]) -> bool:
    """Demand, spares and least replicas of a fleet, in fractions."""
    if sum(int(question.replicas[k]) * u for k, u in way) < task.min_replicas:
        return False
    rates = {k: [int(c) for c in question.capacity_micro_per_s[k]] for k, _ in way}
    counts = {k: Fraction(u) for k, u in way}
    spare = {k: Fraction(task.spare_replicas, int(question.replicas[k])) for k in counts}
    demand = task.demand_micro_per_s
    if len(demand) == 1:
        total = sum(u * rates[k][0] for k, u in counts.items())
        lost = max((spare[k] * rates[k][0] for k in counts), default=Fraction(0))
        return total - lost >= demand[0]
    if not task.spare_replicas:
        return routes(demand, rates, counts)
    return (
        all(counts[k] >= spare[k] for k in counts)
        and all(routes(demand, rates, {**counts, k: counts[k] - spare[k]}) for k in counts)
        and bool(counts)
    )


def routes(demand: tuple[int, ...], rates: dict[int, list[int]], counts: dict[int, Fraction]) -> bool:
    """Two buckets: the first goes where it is comparatively fastest, the second gets what is left."""
    missing, other = Fraction(demand[0]), Fraction(0)
    ranked = sorted(counts, key=lambda k: Fraction(rates[k][0], rates[k][1]) if rates[k][1] else Fraction(10**9))
    for k in reversed(ranked):
        taken = min(missing, counts[k] * rates[k][0])
        missing -= taken
        left = counts[k] - (taken / rates[k][0] if rates[k][0] else 0)
        other += left * rates[k][1]
    return missing == 0 and other >= demand[1]


def within_limits(question: Program, units: list[int]) -> bool:
    for limit in question.rows:
        if sum(int(a) * units[k] for k, a in zip(limit.columns, limit.coefficients)) > limit.bound:
            return False
    used = {int(question.provider[k]) for k, u in enumerate(units) if u} - {-1}
    return question.max_providers is None or len(used) <= question.max_providers


def value(question: Program, units: list[int], name: str) -> Any:
    used = [(k, u) for k, u in enumerate(units) if u]
    if name == "time":
        return max((float(question.finish_s[k]) for k, _ in used), default=0.0)
    if name == "providers":
        return len({int(question.provider[k]) for k, _ in used} - {-1})
    if name == "finish":
        return sum(round(float(question.finish_s[k]) * 1000) * u for k, u in used)
    array = {"cost": question.cost_microusd, "carbon": question.carbon_mg, "nodes": question.nodes}[name]
    return sum(int(array[k]) * u for k, u in used)
