"""How large calendars are solved in parts, beside HiGHS on the whole model: cost, proven bound, gap, iterations, CPU s.

Run ``python benchmarks/calendars.py [NAME ...] [--seconds S] [--work N] [--whole]``. A name is a shipped scenario, a
scenario with a ``+`` after it (every job of a count stands alone then), or JOBSxPLANSxPERIODS of a seeded instance:
every job takes one plan and start; per pool and period the nodes in use are at most those owned, reserved for all
periods and on demand; spot nodes have a quota. Optima that are known: 10x20x13 197.6667 k$, 50x20x26 1319.2746 k$.
Both ways run with one thread, end by counts (``--work``: iterations after which no neighbourhood is begun), and by the
clock after S seconds at the latest. The whole model goes to HiGHS up to 20,000 columns, and beyond with ``--whole``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner import enumerate_candidates, load_scenario
from planner.candidates.program import Program, Row, Task
from planner.optimize import improve as parts
from planner.optimize.arrays import mip_of, solved
from planner.optimize.build import build
from planner.optimize.greedy import greedy_plan
from planner.optimize.large import LARGE
from planner.optimize.model import Model
from planner.optimize.scope import Scope, scope_of
from planner.scenario.load import parse_scenario

NAMES = ("10x20x13", "50x20x26", "company", "company+", "200x25x52")
K_USD = 1e9  # micro-dollars


def calendar(jobs: int, plans: int, periods: int, seed: int = 7, hardware: int = 8, regions: int = 3) -> dict[str, Any]:
    """The instance as arrays; prices in k$ per node and period."""
    rng = np.random.default_rng(seed)
    pools = hardware * regions
    speed = np.geomspace(1, 8, hardware)
    on_demand = 2.0 * 8 * 168 / 1e3 * speed**0.9 * rng.uniform(0.85, 1.2, hardware)
    on_demand = np.repeat(on_demand, regions) * rng.uniform(0.9, 1.25, pools)
    owned = np.where(rng.random(pools) < 0.15, rng.integers(2, 17, pools), 0)
    quota, reserve, spot = rng.integers(16, 129, pools), np.full(pools, 64), rng.integers(0, 49, pools)
    release = rng.integers(0, max(1, periods - 6), jobs)
    deadline = np.minimum(release + rng.integers(4, max(5, periods // 2), jobs), periods)
    work = 10 ** rng.uniform(0.3, 2.2, jobs)
    found = []
    for j in range(jobs):
        seen: set[tuple[int, int, int]] = set()
        tries, window = 0, deadline[j] - release[j]
        while len(seen) < plans and tries < plans * 30:
            tries += 1
            p, s, n = int(rng.integers(0, pools)), int(rng.random() < 0.35), int(2 ** rng.integers(0, 6))
            length = int(np.ceil(work[j] / (speed[p // regions] * n * n**-0.05) * (1.15 if s else 1)))
            room = spot[p] if s else quota[p] + owned[p] + reserve[p]
            if 1 <= length <= window and n <= room and (p, s, n) not in seen:
                seen.add((p, s, n))
                found.append((j, p, s, n, length))
        if not seen:
            found.append((j, 0, 0, 32, int(max(1, min(window, np.ceil(work[j] / 30))))))
    limits = {"owned": owned, "quota": quota, "reserve": reserve, "spot": spot, "on_demand": on_demand}
    return {"plans": found, "release": release, "deadline": deadline, "periods": periods, "pools": pools, **limits}


def program_of(found: dict[str, Any]) -> Program:
    """The instance as a program: a column for every plan and start, reservations and nodes on demand to buy."""
    periods, prices = found["periods"], found["on_demand"]
    cost: list[int] = []
    most: list[int] = []
    uses: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    tasks: list[Task] = []
    for j in range(len(found["release"])):
        first = len(cost)
        for _, p, s, n, length in (plan for plan in found["plans"] if plan[0] == j):
            for start in range(int(found["release"][j]), int(found["deadline"][j]) - length + 1):
                for t in range(start, start + length):
                    uses.setdefault((s, p, t), []).append((len(cost), n))
                cost.append(round(K_USD * prices[p] * 0.4 * n * length) if s else 0)
                most.append(1)
        tasks.append(Task(name=f"job{j:03d}", kind="training", first=first, stop=len(cost)))
    first = len(cost)
    for p in range(found["pools"]):
        for t in range(periods):
            uses.setdefault((0, p, t), []).append((len(cost), -1))
        cost.append(round(K_USD * prices[p] * 0.55 * periods))
        most.append(int(found["reserve"][p]))
        for t in range(periods):
            uses[0, p, t].append((len(cost), -1))
            cost.append(round(K_USD * prices[p]))
            most.append(int(found["quota"][p]))
    tasks.append(Task(name="~bought", kind="optional", first=first, stop=len(cost)))
    rows = []
    for (s, p, t), entries in sorted(uses.items()):
        columns, coefficients = np.array(entries, dtype=np.int64).T
        name, bound = f"{'spot' if s else 'firm'} {p} {t}", int(found["spot" if s else "owned"][p])
        rows.append(Row(name=name, label=name, bound=bound, columns=columns, coefficients=coefficients))
    zeros = np.zeros(len(cost), dtype=np.int64)
    return Program(
        tasks=tuple(tasks),
        cost_microusd=np.array(cost, dtype=np.int64),
        finish_s=np.zeros(len(cost)),
        carbon_mg=zeros,
        nodes=zeros,
        replicas=zeros,
        capacity_micro_per_s=np.zeros((len(cost), 0), dtype=np.int64),
        max_units=np.array(most, dtype=np.int64),
        provider=zeros,
        offer=np.arange(len(cost)),
        rows=tuple(rows),
    )


def of_scenario(name: str) -> Program:
    """The program of a shipped scenario; with a + every job of a count is a job of its own."""
    scenario = load_scenario(name.rstrip("+"))
    if name.endswith("+"):
        asked = json.loads(json.dumps(scenario.resolved))
        asked["training"] = [
            job if count == 1 else {**job, "name": f"{job['name']}-{number + 1}"}
            for job in asked["training"]
            for count in [job.pop("count", 1)]
            for number in range(count)
        ]
        scenario = parse_scenario(json.dumps(asked), file=scenario.file)
    return enumerate_candidates(scenario).program


def in_parts(scope: Scope, model: Model, seconds: float) -> tuple[float, float, int]:
    """Cost, bound and iterations."""
    units = greedy_plan(scope, stop=lambda: False) if len(model.columns) == model.variable_count else None
    start = None if units is None else units[model.columns].astype("float64")
    found = parts.improve(model, start=start, time_limit_s=seconds)
    return found.objective or 0.0, found.bound or 0.0, found.work


def whole(model: Model, seconds: float) -> tuple[float, float, int]:
    """The same of HiGHS on the whole model."""
    found = solved(mip_of(model), seconds=seconds)
    return found.value, found.bound, found.work


def main() -> None:
    """Print a line or two for every instance."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", default=NAMES)
    asked.add_argument("--seconds", type=float, default=600.0)
    asked.add_argument("--work", type=int, default=parts.WORK)
    asked.add_argument("--whole", action="store_true")
    given = asked.parse_args()
    parts.WORK = given.work
    head = f"{'cost k$':>11} {'bound k$':>11} {'gap %':>7} {'iterations':>10} {'CPU s':>7}"
    print(f"{'instance':12} {'columns':>8} {'way':13} {head}")
    for name in given.names:
        seeded = name.replace("x", "").isdigit()
        program = program_of(calendar(*(int(part) for part in name.split("x")))) if seeded else of_scenario(name)
        scope = scope_of(program)
        model = build(scope, "cost")
        line(name, model, "in parts", partial(in_parts, scope, model, given.seconds))
        if len(model.columns) <= LARGE or given.whole:
            line(name, model, "HiGHS, whole", partial(whole, model, given.seconds))


def line(name: str, model: Model, way: str, work: Callable[[], tuple[float, float, int]]) -> None:
    """One line of the table."""
    before = time.process_time()
    value, low, iterations = work()
    cost, bound = (figure / model.scale / K_USD for figure in (value, low))
    gap = 100 * (cost - bound) / cost if cost else 0.0
    figures = f"{cost:11.4f} {bound:11.4f} {gap:7.3f} {iterations:10,} {time.process_time() - before:7.1f}"
    print(f"{name:12} {len(model.columns):8,} {way:13} {figures}", flush=True)


if __name__ == "__main__":
    main()
