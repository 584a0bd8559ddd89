"""Seeded programs with known optima, and small ones for brute force.

`static` and `mix` are seeded generators whose optima are known: choose one column per job under
pool quotas and a carbon cap (10x100: 1165.020 k$, 50x500: 4057.5277 k$), and route request
rates of several buckets to replica types (16x4: 149.788 $/h).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from planner.candidates.program import OPTIONAL, Program, Row, Task


def ints(values: Any) -> Any:
    return np.asarray(values, dtype=np.int64)


def program(tasks: list[Task], *, cost: Any, **more: Any) -> Program:
    """A program whose arrays default to something plain."""
    n = len(cost)
    arrays = {
        "carbon_mg": ints(np.zeros(n)),
        "nodes": ints(np.ones(n)),
        "replicas": ints(np.zeros(n)),
        "capacity_micro_per_s": ints(np.zeros((n, 1))),
        "max_units": ints(np.full(n, 1000)),
        "provider": ints(np.zeros(n)),
        "offer": ints(np.arange(n)),
        **{name: ints(np.zeros(n)) for name in OPTIONAL},
        "devices": ints(more.get("nodes", np.ones(n))),
    }
    given = {name: ints(value) for name, value in more.items() if name in arrays}
    rest = {name: value for name, value in more.items() if name not in arrays and name != "finish"}
    return Program(
        tasks=tuple(tasks),
        cost_microusd=ints(cost),
        finish_s=np.asarray(more.get("finish", np.zeros(n)), dtype=np.float64),
        **{**arrays, **given, **rest},
    )


def row(name: str, bound: int, coefficients: Any) -> Row:
    """A joint row from a dense list of coefficients."""
    dense = ints(coefficients)
    used = np.flatnonzero(dense)
    return Row(name=name, label=name, bound=bound, columns=used, coefficients=dense[used])


def permuted(program: Program, order: Any) -> Program:
    """The same program with its columns in another order; `order` may not mix tasks."""
    place = np.argsort(order)
    arrays = ["cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units"]
    arrays += ["provider", "offer", *OPTIONAL]
    rows = tuple(replace(r, columns=place[r.columns], coefficients=r.coefficients) for r in program.rows)
    return replace(program, rows=rows, **{name: getattr(program, name)[order] for name in arrays})


def within_tasks(program: Program, rng: np.random.Generator) -> Any:
    """A random order of the columns that keeps every task's slice."""
    return np.concatenate([[], *(rng.permutation(np.arange(t.first, t.stop)) for t in program.tasks)]).astype(np.int64)


def static(jobs: int, columns: int, seed: int = 0, hardware: int = 12, regions: int = 6) -> Program:
    """Exactly one column per job; node quotas of pools and a carbon cap that bind."""
    rng = np.random.default_rng(seed)
    speed = np.geomspace(100, 1000, hardware) * rng.uniform(0.9, 1.1, hardware)
    price = 2.0 * (speed / 300) ** 0.9 * rng.uniform(0.8, 1.25, hardware)
    watt = 300 + speed * 0.9
    region_factor, intensity = rng.uniform(0.85, 1.3, regions), rng.uniform(0.02, 0.6, regions)
    price_factor, slowdown = np.array([1.0, 0.45, 0.62]), np.array([1.0, 1.18, 1.0])
    sizes = 8 * 2 ** np.arange(0, 8)
    total = jobs * columns
    job = np.repeat(np.arange(jobs), columns)
    h, r, m = rng.integers(0, hardware, total), rng.integers(0, regions, total), rng.integers(0, 3, total)
    gpus = sizes[rng.integers(0, len(sizes), total)]
    efficiency = 0.5 * (gpus / 8.0) ** -0.06 * rng.uniform(0.35, 1, total)
    work = 10 ** rng.uniform(5.5, 7.6, jobs)
    hours = work[job] / (speed[h] * gpus * efficiency) * slowdown[m]
    cost = hours * gpus * price[h] * region_factor[r] * price_factor[m]
    carbon = hours * gpus * watt[h] / 1000 * 1.25 * intensity[r]
    deadline = rng.uniform(200, 1500, jobs)
    ok = hours <= deadline[job]
    pool = h * regions + r
    job, pool, gpus, cost, carbon, hours = job[ok], pool[ok], gpus[ok], cost[ok], carbon[ok], hours[ok]
    offer = (pool * 3 + m[ok]).astype(np.int64)
    used, cap = np.zeros(hardware * regions), 0.0
    order = np.lexsort((cost, job))
    first, last = np.searchsorted(job[order], np.arange(jobs)), np.searchsorted(job[order], np.arange(jobs), "right")
    for j in range(jobs):
        if first[j] < last[j]:
            k = order[first[j] + rng.integers(0, min(8, last[j] - first[j]))]
            used[pool[k]] += gpus[k]
            cap += carbon[k]
    quota = np.maximum(used * 0.999999 // 8 * 8 + 8 * (used > 0), 8 * rng.integers(0, 9, hardware * regions))
    quota = np.maximum(quota, used)
    carbon_mg = np.ceil(carbon * 1e6).astype(np.int64)
    rows = [
        Row(
            name=f"quota[{p}]",
            label=f"pool {p}",
            bound=int(quota[p]) // 8,
            columns=np.flatnonzero(pool == p),
            coefficients=ints(gpus[pool == p] // 8),
        )
        for p in range(hardware * regions)
        if (pool == p).any()
    ]
    everyone = np.arange(len(job))
    # ceil rounds each column up by less than 1 mg: one more mg per job keeps the hidden plan inside
    rows.append(
        Row(name="carbon", label="carbon", bound=int(cap * 1e6) + jobs, columns=everyone, coefficients=carbon_mg)
    )
    bounds = np.searchsorted(job, np.arange(jobs + 1))
    tasks = [
        Task(name=f"job{j:03d}", kind="training", first=int(a), stop=int(b))
        for j, (a, b) in enumerate(itertools.pairwise(bounds))
    ]
    return program(
        tasks,
        cost=np.rint(cost * 1e6),
        finish=hours * 3600,
        carbon_mg=carbon_mg,
        nodes=gpus // 8,
        offer=offer,
        max_units=np.ones(len(job)),
        rows=tuple(rows),
    )


def mix(buckets: int, types: int, seed: int = 3, total_rate: float = 200.0) -> Program:
    """One fleet, several buckets, continuous routing; cost in micro-dollars per hour."""
    rng = np.random.default_rng(seed)
    price = np.geomspace(0.5, 12, types) * rng.uniform(0.8, 1.2, types)
    size = np.geomspace(1, 60, buckets)[:, None]
    throughput = (20 * price[None, :] ** 1.05 / size) * rng.uniform(0.5, 1.5, (buckets, types))
    throughput[(size / 60 > rng.uniform(0.1, 1.3, types)[None, :]) & (np.arange(types)[None, :] < types // 2)] = 0
    rate = rng.dirichlet(np.ones(buckets)) * total_rate
    demand = tuple(int(value) for value in np.rint(rate * 1e6))
    task = Task(name="fleet", kind="serving", first=0, stop=types, demand_micro_per_s=demand)
    return program(
        [task],
        cost=np.rint(price * 1e6),
        replicas=np.ones(types),
        capacity_micro_per_s=np.rint(throughput.T * 1e6),
        max_units=np.full(types, 10_000),
    )
