"""Random small programs and the best plan by trying everything; imports nothing from optimize/."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import Program, Task
from tests.optimize.instances import ints, program, row

CHAIN = ("cost", "devices", "pipelined", "capacity", "finish", "replicas", "plain", "bought", "undated")


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
        pipelined=np.where(kind, 0, nodes * rng.integers(0, 2, n)),
        plain=nodes * rng.integers(0, 2, n),
        undated=nodes * rng.integers(0, 2, n),
    )


def with_ties(seed: int) -> Program:
    """A program in which costs a little apart may be equal: never, or within 1 or 10,000 micro-dollars, or more."""
    question = random_program(seed)
    return replace(question, tie_share=1e-6, most_tie_microusd=(0, 1, 10**9)[seed % 3])


def best(question: Program) -> tuple[tuple[Any, ...], Any] | None:
    """Key and units of the best plan by the whole tie rule; None when there is none."""
    options = [list(ways(question, task)) for task in question.tasks]
    found = []
    for combination in itertools.product(*options):
        units = [0] * question.column_count
        for way in combination:
            for column, amount in way:
                units[column] = amount
        if not within_limits(question, units):
            continue
        found.append(tuple(units))
    units = first_of(question, found)
    return None if units is None else (key_of(question, units), ints(units))


def key_of(question: Program, units: Sequence[int]) -> tuple[Any, ...]:
    """By the whole chain of the program's objective and the tie rule: less is better."""
    chain = dict.fromkeys((*question.objective, *CHAIN))
    return (*(value(question, units, name) for name in chain), tuple(-units[k] for k in reading_order(question)))


def tolerance(question: Program, cost: int) -> int:
    """By how much a plan may be dearer than the cheapest and be as cheap: a share of it, a cent at least."""
    share = Fraction(question.tie_share)
    return min(max(int(share * cost), 10_000), question.most_tie_microusd) if share else 0


def first_of(question: Program, plans: Iterable[Sequence[int]]) -> Any:
    """The best of all plans by the whole rule, costs that are near enough being equal; None when there is none."""
    keys = {tuple(units): key_of(question, units) for units in plans}
    after = list(dict.fromkeys((*question.objective, *CHAIN))).index("cost")
    if not keys:
        return None
    least = min(key[: after + 1] for key in keys.values())
    most = least[after] + tolerance(question, least[after])
    as_good = {units: key for units, key in keys.items() if key[:after] == least[:after] and key[after] <= most}
    return min(as_good, key=lambda units: as_good[units][after + 1 :])


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


def value(question: Program, units: Sequence[int], name: str) -> Any:
    used = [(k, u) for k, u in enumerate(units) if u]
    if name == "time":
        return max((float(question.finish_s[k]) for k, _ in used), default=0.0)
    array = weights(question, name)
    return sum(int(array[k]) * u for k, u in used)


def weights(question: Program, name: str) -> Any:
    """What one unit of each column counts, less being better."""
    if name == "finish":
        return ints([six_digits(round(float(each) * 1000)) for each in question.finish_s])
    if name == "capacity":
        return -ints([share for task in question.tasks for share in _shares(question, task)])
    if name == "replicas":
        return -question.replicas
    if name == "bought":
        return ints([task.kind == "optional" for task in question.tasks for _ in range(task.first, task.stop)])
    arrays = {"cost": question.cost_microusd, "carbon": question.carbon_mg, "devices": question.devices}
    arrays |= {"pipelined": question.pipelined}
    return {**arrays, "plain": question.plain, "undated": question.undated}[name]


def six_digits(value: Any) -> int:
    """A number with six significant digits, none after the point."""
    return int(Decimal(f"{float(value):.5e}").to_integral_value()) if value else 0


def _shares(question: Program, task: Task) -> Iterator[int]:
    """Millionths of a fleet's own traffic that a unit of each column carries, of the buckets that it can serve."""
    for k in range(task.first, task.stop):
        demand = task.demands[-1] if task.kind == "serving" else ()
        able = [(d, int(c)) for d, c in zip(demand, question.capacity_micro_per_s[k]) if d and c]
        load = sum((Fraction(d, c) for d, c in able), Fraction(0))
        whole = max(sum(demand), 1)
        yield six_digits(Fraction(10**6 * sum(d for d, _ in able), whole) / load) if load else 0
