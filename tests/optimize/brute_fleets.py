"""Random small fleets of every kind and the best plan by trying everything; imports nothing from optimize/.

What must be carried is written out situation by situation, as the words of `Program` say it. One
bucket is added up in fractions, two buckets of whole requests are split by comparative speed,
roles with two buckets are left to SciPy, whose numbers are far from any edge: all data are
small integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import Program, Task
from tests.optimize.brute import key_of, routes, within_limits
from tests.optimize.instances import program, row

KINDS = ("spares", "levels", "roles", "roles2", "spot", "slices", "domains", "all")


def random_fleet(kind: str, seed: int) -> Program:
    """One fleet of a kind, with a limit now and then."""
    rng = np.random.default_rng((KINDS.index(kind), seed))
    every = kind == "all"
    n = int(rng.integers(2, 4 if kind in ("slices", "all") else 5))
    buckets = {"roles": 1, "all": 1 + seed % 2}.get(kind, 2 if kind in ("roles2", "slices", "spares") else 1 + seed % 2)
    peak = rng.integers(1, 13, buckets)
    levels: tuple[tuple[int, ...], ...] = ()
    level = np.zeros(n)
    if kind == "levels" or (every and rng.random() < 0.7):
        count = int(rng.integers(2, 4))
        levels = tuple(tuple(int(-(-d * (m + 1) // count)) for d in peak) for m in range(count))
        level = rng.integers(0, count, n)
        level[0] = 0
    role = np.zeros(n)
    if kind in ("roles", "roles2") or (every and rng.random() < 0.5):
        role = rng.integers(0, 3, n)
    task = Task(
        name="fleet",
        kind="serving",
        first=0,
        stop=n,
        demand_micro_per_s=tuple(int(d) for d in peak),
        levels=levels,
        spare_replicas=int(rng.integers(1, 3)) if kind == "spares" or rng.random() < 0.3 else 0,
        min_replicas=int(rng.integers(0, 4)) if rng.random() < 0.3 else 0,
        max_spot_share=[0.0, 0.3, 0.5, 0.75][int(rng.integers(4))]
        if kind == "spot" or (every and seed % 3 == 0)
        else None,
        integer_slices=int(rng.integers(1, 4)) if kind == "slices" else 0,
        survive_domain=kind == "domains" or (every and rng.random() < 0.4),
    )
    replicas = rng.integers(1, 4, n)
    nodes = rng.integers(1, 4, n)
    rows = (row("limits.max_devices", int(rng.integers(3, 25)), nodes),) if rng.random() < 0.4 else ()
    return program(
        [task],
        cost=rng.integers(1, 9, n) * [1, 7_654_321][int(rng.integers(2))],
        nodes=nodes,
        carbon_mg=rng.integers(0, 3, n),
        replicas=replicas,
        capacity_micro_per_s=rng.integers(0, 7, (n, buckets)) * replicas[:, None],
        max_units=rng.integers(1, 4 if kind in ("slices", "all") else 5, n),
        provider=rng.integers(0, 2, n),
        offer=rng.permutation(n),
        rows=rows,
        role=role,
        level=level,
        spot=rng.integers(0, 2, n),
        domain=rng.integers(0, 3, n),
    )


def best_fleet(question: Program) -> tuple[int, ...] | None:
    """Units of the best plan by the whole tie rule; None when there is none."""
    found = []
    for units in itertools.product(*(range(int(most) + 1) for most in question.max_units)):
        if within_limits(question, list(units)):
            found.append((key_of(question, units), units))
    seen: dict[Any, bool] = {}
    return next((units for _, units in sorted(found) if lives(question, units, seen)), None)


@dataclass(frozen=True)
class Pools:
    """What is left of a fleet in one situation: (rates, units, role) of each column that runs."""

    demand: tuple[int, ...]
    columns: tuple[tuple[tuple[int, ...], Fraction, int], ...]


def lives(question: Program, units: tuple[int, ...], seen: dict[Any, bool]) -> bool:
    """Everything that a fleet asks for."""
    (task,) = question.tasks
    used = [k for k, amount in enumerate(units) if amount]
    always = sum(int(question.replicas[k]) * units[k] for k in used if question.level[k] == 0)
    if always < task.min_replicas or not spot_is_within(question, task, units):
        return False
    several = len(task.demand_micro_per_s) > 1 or task.levels or task.survive_domain or task.integer_slices
    routed = bool(several or question.role.any())
    if routed and any(question.replicas[k] * units[k] < task.spare_replicas for k in used):
        return False
    if not all(slices_fit(question, task, units, level) for level in range(len(levels_of(task)))):
        return False
    for pools in losses(question, task, units):
        if pools not in seen:
            seen[pools] = carried(pools)
        if not seen[pools]:
            return False
    return True


def levels_of(task: Task) -> tuple[tuple[int, ...], ...]:
    return task.levels or (task.demand_micro_per_s,)


def losses(question: Program, task: Task, units: tuple[int, ...]) -> Iterator[Pools]:
    """Every level with every loss."""
    for level, demand in enumerate(levels_of(task)):
        running = [k for k, amount in enumerate(units) if amount and question.level[k] <= level]

        def pools(left: dict[int, Fraction], demand: tuple[int, ...] = demand) -> Pools:
            columns = (
                (tuple(question.capacity_micro_per_s[k].tolist()), u, int(question.role[k])) for k, u in left.items()
            )
            return Pools(demand=demand, columns=tuple(columns))

        everything = {k: Fraction(units[k]) for k in running}
        yield pools(everything)
        for k in running if task.spare_replicas else []:
            gone = Fraction(task.spare_replicas, int(question.replicas[k]))
            yield pools({**everything, k: everything[k] - gone})
        if task.survive_domain:
            for domain in {int(question.domain[k]) for k in running}:
                yield pools({k: u for k, u in everything.items() if question.domain[k] != domain})


def carried(pools: Pools) -> bool:
    roles = {role for _, _, role in pools.columns}
    if len(pools.demand) == 1:
        sums = [sum((r[0] * u for r, u, role in pools.columns if role == part), Fraction(0)) for part in range(3)]
        return sums[0] + min(sums[1], sums[2]) >= pools.demand[0]
    if not pools.columns:
        return not any(pools.demand)
    if roles == {0}:
        rates = {k: list(r) for k, (r, _, _) in enumerate(pools.columns)}
        return routes(pools.demand, rates, {k: u for k, (_, u, _) in enumerate(pools.columns)})
    return by_scipy(pools)


def by_scipy(pools: Pools) -> bool:
    """Rates sent to each column and bucket, in a linear program with nothing to minimise."""
    from scipy.optimize import linprog

    n, b = len(pools.columns), len(pools.demand)
    equal, sides, loads = [], [], np.zeros((n, n * b))
    for bucket, demand in enumerate(pools.demand):
        for part in (1, 2):
            line = np.zeros((n, b))
            line[[k for k in range(n) if pools.columns[k][2] in (0, part)], bucket] = 1
            equal.append(line.ravel())
            sides.append(demand)
    bounds = []
    for k, (rates, _, _) in enumerate(pools.columns):
        for bucket, rate in enumerate(rates):
            loads[k, k * b + bucket] = 1 / rate if rate else 0
            bounds.append((0, None if rate else 0))
    left = [float(u) for _, u, _ in pools.columns]
    return linprog(np.zeros(n * b), loads, left, np.array(equal), sides, bounds, method="highs").status == 0


def spot_is_within(question: Program, task: Task, units: tuple[int, ...]) -> bool:
    if task.max_spot_share is None:
        return True
    share = Fraction(str(task.max_spot_share))
    rates = []
    for capacity in question.capacity_micro_per_s.tolist():
        able = [(d, c) for d, c in zip(task.demand_micro_per_s, capacity) if c]
        rates.append(sum(d for d, _ in able) // sum(Fraction(d, c) for d, c in able) if able else 0)
    for level, role in itertools.product(range(len(levels_of(task))), range(3)):
        here = [k for k in range(len(units)) if question.level[k] <= level and question.role[k] == role]
        spot = sum(rates[k] * units[k] for k in here if question.spot[k])
        if spot > share * sum(rates[k] * units[k] for k in here):
            return False
    return True


def slices_fit(question: Program, task: Task, units: tuple[int, ...], level: int) -> bool:
    """All ways to deal the slices of two buckets to columns (whole requests only)."""
    if not task.integer_slices:
        return True
    demand, used = levels_of(task)[level], [k for k, u in enumerate(units) if u and question.level[k] <= level]
    dealt = []
    for b, d in enumerate(demand):
        rates = [int(question.capacity_micro_per_s[k, b]) for k in used]
        ways = [way for way in deals(task.integer_slices, len(used)) if all(r or not s for r, s in zip(rates, way))]
        dealt.append([[Fraction(d * s, task.integer_slices * max(r, 1)) for r, s in zip(rates, way)] for way in ways])
    return any(
        all(sum(loads) <= units[k] for k, loads in zip(used, zip(*choice))) for choice in itertools.product(*dealt)
    )


def deals(slices: int, columns: int) -> Iterator[tuple[int, ...]]:
    for way in itertools.product(range(slices + 1), repeat=columns):
        if sum(way) == slices:
            yield way
