"""Random small calendars with purchases, and the best plan by trying everything; imports nothing from optimize/.

Jobs start in one of a few periods and hold nodes of a pool in all that they touch; what they hold is at most what is
owned, reserved for all periods and rented on demand in each. Some jobs wait for each other, pause, or need a copy
of their data; a fleet may hold nodes at all times. Purchases are optional tasks, and rows have coefficients of either
sign.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.candidates.program import Program, Row, Task
from tests.optimize.brute import CHAIN, meets, reading_order, weights
from tests.optimize.instances import ints, program

MOST_PLANS = 60_000  # of one instance


@dataclass
class Draft:
    """Columns and rows as they are thought of."""

    rng: np.random.Generator
    tasks: list[Task] = field(default_factory=list)
    columns: list[dict[str, Any]] = field(default_factory=list)
    uses: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)

    def column(self, **facts: Any) -> int:
        """One more column."""
        self.columns.append(facts)
        return len(self.columns) - 1

    def use(self, row: str, column: int, coefficient: int, bound: int = 0) -> None:
        """An entry of a row; the first to name a row says its bound."""
        self.bounds.setdefault(row, bound)
        self.uses.setdefault(row, []).append((column, coefficient))

    def task(self, name: str, kind: str, first: int, **more: Any) -> None:
        """The columns from `first` on as a task."""
        self.tasks.append(Task(name=name, kind=kind, first=first, stop=len(self.columns), **more))

    def plans(self) -> int:
        """At most how many plans there are, by bounds alone."""
        total = 1
        for task in self.tasks:
            sizes = [self.columns[k]["max_units"] + 1 for k in range(task.first, task.stop)]
            few = task.kind == "training" and task.count == 1
            total *= len(sizes) if few else int(np.prod(sizes))
        return total


def random_supplied(seed: int) -> Program:
    """A calendar of two or three periods; the first draft that is small enough."""
    for attempt in itertools.count():
        draft = _draft(np.random.default_rng((seed, attempt)))
        if draft.plans() <= MOST_PLANS:
            return _program(draft)
    raise AssertionError


def _draft(rng: np.random.Generator) -> Draft:
    draft = Draft(rng=rng)
    periods, pools = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    owned = rng.integers(0, 3, pools)
    jobs = [_job(draft, number, periods, owned) for number in range(int(rng.integers(1, 4)))]
    for before, after in itertools.pairwise(jobs):
        if rng.random() < 0.3:
            name = f"after {before}-{after}"
            for task, sign, edge in ((before, 1, "stop"), (after, -1, "start")):
                for column in range(task.first, task.stop):
                    draft.use(name, column, sign * draft.columns[column][edge])
    if rng.random() < 0.35:
        _fleet(draft, periods, owned)
    if rng.random() < 0.25:
        _pausing(draft, periods, owned)
    first = len(draft.columns)
    _purchases(draft, periods, pools, owned)
    if rng.random() < 0.3:
        _copies(draft, jobs)
    if len(draft.columns) > first:
        draft.task("~bought", "optional", first)
    _limits(draft)
    return draft


def _hold(draft: Draft, column: int, pool: int, owned: Any, nodes: int, start: int, stop: int) -> None:
    for period in range(start, stop):
        draft.use(f"pool {pool} {period}", column, nodes, int(owned[pool]))


def _job(draft: Draft, number: int, periods: int, owned: Any) -> Task:
    rng, first = draft.rng, len(draft.columns)
    count = 2 if rng.random() < 0.15 else 1
    for _ in range(int(rng.integers(1, 5))):
        pool, nodes = int(rng.integers(len(owned))), int(rng.integers(1, 3))
        length = int(rng.integers(1, periods + 1))
        start = int(rng.integers(0, periods - length + 1))
        metered = rng.random() < 0.3
        column = draft.column(
            cost=int(rng.integers(4, 12)) * nodes * length if metered else int(rng.integers(0, 3)),
            nodes=nodes,
            finish=float(start + length),
            start=start,
            stop=start + length,
            provider=pool,
            max_units=count,
        )
        if metered:
            for period in range(start, start + length):
                draft.use(f"quota {pool} {period}", column, nodes, int(rng.integers(0, 4)))
        else:
            _hold(draft, column, pool, owned, nodes, start, start + length)
    draft.task(f"job{number}", "training", first, count=count)
    return draft.tasks[-1]


def _fleet(draft: Draft, periods: int, owned: Any) -> None:
    rng, first = draft.rng, len(draft.columns)
    for _ in range(int(rng.integers(1, 3))):
        pool, replicas = int(rng.integers(len(owned))), int(rng.integers(1, 3))
        column = draft.column(
            cost=int(rng.integers(0, 9)),
            nodes=1,
            provider=pool,
            replicas=replicas,
            capacity=int(rng.integers(2, 7)) * replicas,
            max_units=3,
        )
        _hold(draft, column, pool, owned, 1, 0, periods)
    spares = int(rng.integers(0, 2))
    draft.task("fleet", "serving", first, demand_micro_per_s=(int(rng.integers(1, 9)),), spare_replicas=spares)


def _pausing(draft: Draft, periods: int, owned: Any) -> None:
    """A job that runs in any of the periods, as many as its plan needs."""
    rng, first, plans = draft.rng, len(draft.columns), []
    for _ in range(int(rng.integers(1, 3))):
        pool, nodes, needed = int(rng.integers(len(owned))), int(rng.integers(1, 3)), int(rng.integers(1, periods + 1))
        plans.append((draft.column(cost=0, nodes=nodes, provider=pool, max_units=1, finish=1.0), pool, nodes, needed))
    draft.task("pausing", "training", first)
    first = len(draft.columns)
    for plan, pool, nodes, needed in plans:
        draft.use(f"work {plan}", plan, needed)
        for period in range(periods):
            running = draft.column(cost=int(rng.integers(0, 3)), nodes=0, provider=-1, max_units=1)
            draft.use(f"work {plan}", running, -1)
            draft.use(f"runs {plan} {period}", running, 1)
            draft.use(f"runs {plan} {period}", plan, -1)
            _hold(draft, running, pool, owned, nodes, period, period + 1)
    draft.task("~running", "optional", first)


def _purchases(draft: Draft, periods: int, pools: int, owned: Any) -> None:
    rng = draft.rng
    for pool in range(pools):
        if rng.random() < 0.85:
            cost, most = int(rng.integers(2, 6)) * periods, int(rng.integers(1, 4))
            reserved = draft.column(cost=cost, nodes=0, provider=-1, max_units=most)
            _hold(draft, reserved, pool, owned, -1, 0, periods)
        for period in range(periods):
            if rng.random() < 0.75:
                rented = draft.column(
                    cost=int(rng.integers(4, 9)), nodes=0, provider=-1, max_units=int(rng.integers(1, 3))
                )
                _hold(draft, rented, pool, owned, -1, period, period + 1)
                if rng.random() < 0.5:
                    draft.use(f"quota {pool} {period}", rented, 1, int(rng.integers(0, 3)))


def _copies(draft: Draft, jobs: list[Task]) -> None:
    """Jobs that run in pool 0 need a copy of their data there."""
    copy = draft.column(cost=int(draft.rng.integers(1, 9)), nodes=0, provider=-1, max_units=1)
    here = [k for task in jobs for k in range(task.first, task.stop) if draft.columns[k]["provider"] == 0]
    for column in here:
        draft.use("data", column, 1)
    draft.use("data", copy, -sum(task.count for task in jobs))


def _limits(draft: Draft) -> None:
    rng = draft.rng
    costs = [column["cost"] for column in draft.columns]
    if rng.random() < 0.35:
        for column, cost in enumerate(costs):
            draft.use("limits.budget", column, cost, int(rng.integers(15, 90)))
    if rng.random() < 0.25:
        for column, cost in enumerate(costs):
            if draft.columns[column]["provider"] == 0:
                draft.use("limits.spend", column, cost, int(rng.integers(5, 40)))
    for column in draft.columns:
        column["carbon"] = int(rng.integers(0, 4))
    if rng.random() < 0.25:
        for column, facts in enumerate(draft.columns):
            draft.use("limits.carbon", column, facts["carbon"], int(rng.integers(3, 20)))


def _program(draft: Draft) -> Program:
    rng, columns = draft.rng, draft.columns
    money = [1, 1_000_000, 7_654_321][int(rng.integers(3))]
    rows = []
    for name, entries in draft.uses.items():
        entries = [(k, a) for k, a in entries if a]
        scale = money if name in ("limits.budget", "limits.spend") else 1
        if entries:
            used, coefficients = ints(entries).T
            rows.append(
                Row(
                    name=name,
                    label=name,
                    bound=draft.bounds[name] * scale,
                    columns=used,
                    coefficients=coefficients * scale,
                )
            )
    objectives = [("cost",), ("cost",), ("carbon", "cost"), ("cost", "carbon"), ("time", "cost")]
    return program(
        draft.tasks,
        cost=ints([column["cost"] for column in columns]) * money,
        finish=[column.get("finish", 0.0) * 3600 for column in columns],
        carbon_mg=[column["carbon"] for column in columns],
        nodes=[column["nodes"] for column in columns],
        replicas=[column.get("replicas", 0) for column in columns],
        capacity_micro_per_s=[[column.get("capacity", 0)] for column in columns],
        max_units=[column["max_units"] for column in columns],
        provider=[column["provider"] for column in columns],
        offer=rng.permutation(len(columns)),
        rows=tuple(rows),
        max_providers=1 if rng.random() < 0.2 else None,
        objective=objectives[int(rng.integers(len(objectives)))],
    )


def best_supplied(question: Program) -> list[int] | None:
    """Units of the best plan by the whole tie rule; None when there is none."""
    units = _all_units(question)
    for limit in question.rows:
        units = units[units[:, limit.columns] @ limit.coefficients <= limit.bound]
    if question.max_providers is not None:
        units = units[_providers(question, units) <= question.max_providers]
    if not len(units):
        return None
    keys = [_values(question, units, name) for name in dict.fromkeys((*question.objective, *CHAIN))]
    keys += [-units[:, k] for k in reading_order(question)]
    return [int(amount) for amount in units[np.lexsort(keys[::-1])[0]]]


def _all_units(question: Program) -> Any:
    """Every combination of ways to meet each task, one a row."""
    units = np.zeros((1, question.column_count), dtype=np.int64)
    for task in question.tasks:
        ranges = [range(int(most) + 1) for most in question.max_units[task.first : task.stop]]
        if task.kind == "training" and task.count == 1:
            amounts = np.eye(len(ranges), dtype=np.int64)
        else:
            every = itertools.product(*ranges)
            amounts = ints([each for each in every if _meets(question, task, each)]).reshape(-1, len(ranges))
        both = np.repeat(units, len(amounts), axis=0)
        both[:, task.first : task.stop] = np.tile(amounts, (len(units), 1))
        units = both
    return units


def _meets(question: Program, task: Task, amounts: tuple[int, ...]) -> bool:
    return meets(question, task, [(task.first + at, amount) for at, amount in enumerate(amounts) if amount])


def _providers(question: Program, units: Any) -> Any:
    total = np.zeros(len(units), dtype=np.int64)
    for provider in np.unique(question.provider[question.provider >= 0]):
        total += (units[:, question.provider == provider] > 0).any(axis=1)
    return total


def _values(question: Program, units: Any, name: str) -> Any:
    if name == "time":
        return np.where(units > 0, question.finish_s, 0.0).max(axis=1)
    return units @ weights(question, name)
