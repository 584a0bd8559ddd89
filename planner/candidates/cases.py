"""One program of several cases: what is bought ahead is shared, everything else is decided in each case.

Two-stage stochastic program in its deterministic equivalent (Birge and Louveaux, Introduction to Stochastic
Programming, 2nd ed. 2011, section 1.1). Columns of contracts are the first stage; tasks, rows and all other columns
are repeated for every case, with costs times the case's whole weight, so that the cost of a plan is the sum of the
weights times the expected cost. The conditional value at risk at level a (Rockafellar and Uryasev, J. Risk 2(3)
2000, equation 17) joins as optional columns in steps of money: min eta + sum_w p_w s_w / (1 - a), with
cost_w <= eta + s_w.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from planner.candidates.calendar import CONTRACT, Purchase
from planner.candidates.program import OPTIONAL, IntArray, Program, Row, Task
from planner.candidates.prune import alone_units, carrying_units
from planner.candidates.search import Candidates
from planner.carriers import dataclass

AHEAD = "bought ahead"  # the task of what all cases share
RISK = "cost at risk"
MOST_STEPS = 10_000_000  # of money that eta and each shortfall are counted in
AMPLE = 4  # times each task on its dearest column alone
ARRAYS = ("finish_s", "carbon_mg", "nodes", "replicas", "max_units", *OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The candidates of one case and its probability."""

    name: str
    probability: Fraction
    candidates: Candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Weigh the expected cost with 1 - weight, the mean of the worst 1 - level of the cases with weight."""

    level: Fraction
    weight: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """One program of all cases; `columns[i]` = where each column of case i stands in it."""

    program: Program
    columns: tuple[IntArray, ...]
    shared: IntArray  # columns of the first stage
    scale: Fraction  # objective of the program = scale x ((1 - weight) x expected cost + weight x cost at risk)
    rounding: Fraction = Fraction(0)  # by which that sum may be too large: risk is counted in steps  [micro-USD]


def combine(cases: Sequence[Case], risk: Risk | None = None) -> Combined:
    """The program of all cases."""
    first, places = _first_stage(cases)
    columns, at = [], len(first)
    for shared in places:
        own = np.flatnonzero(shared < 0)
        where = shared.copy()
        where[own] = at + np.arange(len(own))
        at += len(own)
        columns.append(where)
    joined = _joined(cases, columns, first, at)
    scale = lcm(*(case.probability.denominator for case in cases))
    weights = [int(case.probability * scale) for case in cases]
    joined = replace(joined, cost_microusd=_costs(cases, columns, joined, weights, scale))
    shared = np.arange(len(first))
    if risk is None:
        return Combined(program=joined, columns=tuple(columns), shared=shared, scale=Fraction(scale))
    return _with_risk(cases, tuple(columns), joined, shared, Fraction(scale), risk)


def contract_keys(candidates: Candidates) -> dict[int, tuple[str, int, int, int]]:
    """Columns of contracts: what tells one from another in every case."""
    calendar = candidates.calendar
    if calendar is None:
        return {}
    return {
        column: (_id(purchase), int(calendar.start[column]), int(calendar.stop[column]), int(calendar.pool[column]))
        for column, purchase in enumerate(calendar.purchases)
        if purchase is not None and purchase.kind == CONTRACT
    }


def _id(purchase: Purchase) -> str:
    return purchase.offer.id if purchase.offer else ""


def _first_stage(cases: Sequence[Case]) -> tuple[list[tuple[Case, int]], list[IntArray]]:
    """The contracts of all cases, each once, with a column that tells of it; their places, by case and column."""
    known: dict[tuple[object, ...], int] = {}
    first: list[tuple[Case, int]] = []
    places = []
    for case in cases:
        place = np.full(case.candidates.program.column_count, -1, dtype=np.int64)
        pools = case.candidates.calendar.pools if case.candidates.calendar else ()
        for column, (offer, start, stop, pool) in contract_keys(case.candidates).items():
            key = (offer, start, stop, pools[pool].name if pool >= 0 else "")
            if key not in known:
                known[key] = len(first)
                first.append((case, column))
            place[column] = known[key]
        places.append(place)
    return first, places


def _joined(cases: Sequence[Case], columns: Sequence[IntArray], first: list[tuple[Case, int]], count: int) -> Program:
    """All tasks, rows and columns, still without costs."""
    parts = [case.candidates.program for case in cases]
    width = max(part.capacity_micro_per_s.shape[1] for part in parts)
    arrays: dict[str, Any] = {
        name: np.zeros(count, dtype=np.float64 if name == "finish_s" else np.int64)
        for name in (*ARRAYS, "provider", "offer")
    }
    capacity = np.zeros((count, width), dtype=np.int64)
    for case, where in zip(cases, columns):
        part = case.candidates.program
        for name in ARRAYS:
            values = getattr(part, name)
            arrays[name][where] = np.maximum(arrays[name][where], values) if name == "max_units" else values
        capacity[where, : part.capacity_micro_per_s.shape[1]] = part.capacity_micro_per_s
    arrays["place"][:] = 0  # each future would multiply the places to try: its pools lie where they are cheapest
    for name, ranks in (("provider", _ranks(cases, columns, 0)), ("offer", _ranks(cases, columns, 1))):
        arrays[name][:] = ranks
    tasks = [Task(name=AHEAD, kind="optional", first=0, stop=len(first))] if first else []
    rows: list[Row] = []
    for number, (case, where) in enumerate(zip(cases, columns)):
        tasks += _tasks(case, where, len(first), number)
        rows += [_moved(row, where, number) for row in case.candidates.program.rows]
    limits = [part.max_providers for part in parts if part.max_providers is not None]
    return Program(
        tasks=tuple(tasks),
        cost_microusd=np.zeros(count, dtype=np.int64),
        capacity_micro_per_s=capacity,
        rows=tuple(rows),
        max_providers=min(limits) if limits else None,
        objective=("cost",),
        **arrays,
    )


def _tasks(case: Case, where: IntArray, shared: int, number: int) -> Iterator[Task]:
    """The tasks of a case without what is shared: their columns follow one another."""
    for task in case.candidates.program.tasks:
        mine = where[task.first : task.stop]
        mine = mine[mine >= shared]
        if len(mine) or task.kind != "optional":
            start = int(mine[0]) if len(mine) else shared
            yield replace(task, name=f"{task.name}@{number}", first=start, stop=start + len(mine))


def _moved(row: Row, where: IntArray, number: int) -> Row:
    order = np.argsort(where[row.columns], kind="stable")
    return replace(
        row,
        name=f"{row.name}@{number}",
        columns=where[row.columns][order],
        coefficients=row.coefficients[order],
    )


def _ranks(cases: Sequence[Case], columns: Sequence[IntArray], which: int) -> IntArray:
    """Providers (0) or offers (1) of all columns, ranked by name."""
    names: dict[int, str] = {}
    for case, where in zip(cases, columns):
        names |= dict(zip(where.tolist(), (pair[which] for pair in _names(case.candidates))))
    rank = {name: place for place, name in enumerate(sorted(set(names.values())))}
    return np.array([rank[names[column]] for column in sorted(names)], dtype=np.int64)


def _names(candidates: Candidates) -> Iterator[tuple[str, str]]:
    """Provider and offer of every column of a program."""
    purchases = candidates.calendar.purchases if candidates.calendar else ()
    for task in candidates.program.tasks:
        for column in range(task.first, task.stop):
            node = candidates.shared.node_at(column) if candidates.shared is not None else None
            if task.kind == "optional" and node is not None:
                yield node.offer.provider, node.offer.id
            elif task.kind == "optional":
                bought = purchases[column]
                assert bought is not None
                yield (bought.offer.provider if bought.offer else bought.provider), _id(bought) or bought.workload
            else:
                offer = candidates.tables[task.name].sites[int(candidates.rows[column])].offer
                yield offer.provider, offer.id


def _costs(
    cases: Sequence[Case], columns: Sequence[IntArray], joined: Program, weights: Sequence[int], scale: int
) -> IntArray:
    """Cost times the weight of the case; of what is shared, times all weights together."""
    costs = np.zeros(joined.column_count, dtype=np.int64)
    for case, where, weight in zip(cases, columns, weights):
        shared = np.array(sorted(contract_keys(case.candidates)), dtype=np.int64)
        own = case.candidates.program.cost_microusd * weight
        own[shared] = case.candidates.program.cost_microusd[shared] * scale
        costs[where] = own
    return costs


def _with_risk(
    cases: Sequence[Case], columns: tuple[IntArray, ...], joined: Program, shared: IntArray, scale: Fraction, risk: Risk
) -> Combined:
    """With eta and one shortfall a case, counted in steps of money, and the costs of cases above eta in rows."""
    count, n = len(cases), joined.column_count
    step = _step_microusd(cases)
    tail = [case.probability * risk.weight / (1 - risk.level) for case in cases]
    whole = lcm(*(part.denominator for part in (*tail, risk.weight)))
    factor = scale * whole  # of the new objective, over micro-dollars
    expected = (1 - risk.weight) * whole
    whole *= expected.denominator
    factor, expected = scale * whole, (1 - risk.weight) * whole
    risky = [int(risk.weight * factor) * step, *(int(part * factor) * step for part in tail)]
    program = _longer(joined, count + 1, risky, [int(expected) * int(cost) for cost in joined.cost_microusd])
    rows = [_cost_row(case, where, number, n, step) for number, (case, where) in enumerate(zip(cases, columns))]
    task = Task(name=RISK, kind="optional", first=n, stop=n + count + 1)
    program = replace(program, tasks=(*joined.tasks, task), rows=(*joined.rows, *rows))
    rounding = step * risk.weight * (1 + 1 / (1 - risk.level))
    return Combined(program=program, columns=columns, shared=shared, scale=factor, rounding=rounding)


def _step_microusd(cases: Sequence[Case]) -> int:
    """Such that any plan worth its money costs less than `MOST_STEPS` steps; a cent at least."""
    dearest = 0
    for case in cases:
        program, total = case.candidates.program, 0
        for task in program.tasks:
            part = slice(task.first, task.stop)
            most = carrying_units if task.boxed else alone_units
            units = np.minimum(program.max_units[part], most(program, task))
            total += int((program.cost_microusd[part].astype(object) * units).max(initial=0)) * AMPLE
        dearest = max(dearest, total)
    return max(dearest // MOST_STEPS + 1, 10_000)


def _cost_row(case: Case, where: IntArray, number: int, first: int, step: int) -> Row:
    """cost of the case - eta - shortfall <= 0."""
    costs = case.candidates.program.cost_microusd
    used = np.flatnonzero(costs)
    pairs = sorted(zip(where[used].tolist(), costs[used].tolist()))
    return Row(
        name=f"{RISK}@{number}",
        label=f"cost of {case.name}",
        bound=0,
        columns=np.array([*(column for column, _ in pairs), first, first + 1 + number], dtype=np.int64),
        coefficients=np.array([*(cost for _, cost in pairs), -step, -step], dtype=np.int64),
    )


def _longer(program: Program, more: int, costs: Sequence[int], before: Sequence[int]) -> Program:
    """The program with more columns at its end that use nothing."""
    zeros = np.zeros(more, dtype=np.int64)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(program, name), zeros.astype(getattr(program, name).dtype)])
        for name in (*ARRAYS, "provider", "offer")
    }
    arrays["max_units"][-more:] = MOST_STEPS
    arrays["provider"][-more:] = -1  # nobody's
    capacity = np.pad(program.capacity_micro_per_s, ((0, more), (0, 0)))
    cost = np.array([*before, *costs], dtype=np.int64)
    return replace(program, cost_microusd=cost, capacity_micro_per_s=capacity, **arrays)
