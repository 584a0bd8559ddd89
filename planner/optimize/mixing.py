"""Mixes of jobs that share limits: columns made as they are needed, until no other one could be in a best plan.

A job that may be mixed has more columns than anyone would list. Let C be the columns at hand, X all mixes, L the bound
that the multipliers y of the relaxation of C prove (`relax`), m_j the multiplier of "job j is run n_j times", and

    d_x = w_x + sum over the joint limits of |y_r| a_rx - m_j

the reduced cost of a mix x of job j, w the criterion. The columns of one job sum to n_j in any plan, so that

    L' = L + sum over the jobs of n_j min(0, min over X_j of d_x)

bounds every plan that uses any columns of C and X: the terms of L for C stay, and a unit of x adds d_x (`relax`, first
paragraph). min d_x is found exactly by `cheapest` at the prices w + |y| a (without a solver: Dinkelbach's iterations).
A mix with d_x < 0 joins C, and the relaxation is solved again; when there is none, L' = L.

*Closing the gap.* Let Z be the value of the best plan of C. A plan of value at most Z that uses x has L' + d_x <= Z, so
that every mix of every plan as good has d_x <= Z - L'. All of these are listed (`listed`, exact) and join C: the best
plan of the columns then at hand is the best of all. When they are too many to list, L' remains as the proven bound.
L' takes fleets in parts, and what whole replicas cost beyond that opens the gap to mixes by the ten thousand. So who
asks may bring a bound that knows whole replicas and all mixes (`proven`): where it reaches Z, nothing is left to list.

An artificial column for each job, dearer than any plan, keeps the relaxation solvable; multipliers of lines that a mix
also stands in and that are left out here (providers, carbon of one site) would only raise d_x, so that leaving them out
is safe.

References
----------
[1] P. Gilmore and R. Gomory, "A Linear Programming Approach to the Cutting-Stock Problem," Operations Research 9, 1961.
[2] R. Baldacci, N. Christofides and A. Mingozzi, "An exact algorithm for the vehicle routing problem based on the set
    partitioning formulation," Mathematical Programming 115, 2008: listing all columns within the gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner.candidates.mixed_columns import Named, mixes_of, with_named_mixes
from planner.candidates.mixed_prices import prices_of_mixes
from planner.candidates.mixed_search import cheapest, evaluate, listed
from planner.candidates.mixed_table import name_of
from planner.candidates.mixed_walk import Prices
from planner.candidates.program import Row, Task
from planner.candidates.prune import can_bind
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.optimize.build import build
from planner.optimize.model import Model
from planner.optimize.relax import MARGIN, Relaxation, relax
from planner.optimize.scope import Scope, scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Solution, Status

ROUNDS = 40  # of new columns; a handful is usual
MOST = 1000  # mixes of one job that are listed within the gap
FEW = 100  # of one job that join the columns where there are more than can be listed
ARTIFICIAL = 4.0  # times each task on its dearest column


def with_mixes_that_matter(
    candidates: Candidates, proven: Callable[[Candidates, Solution], bool] = lambda *_: False, **options: Any
) -> Candidates:
    """Every mix that a best plan may use among the candidates; a bound of the others when they are too many.

    Parameters
    ----------
    proven
        Whether a plan of some candidates is known to be the best of all mixes, those that are not among them too.
    options
        Of `optimize`.
    """
    if not candidates.spaces:
        return candidates
    if _alone(candidates):
        return _as_far_as_walked(candidates)
    listed_first, criterion = candidates, candidates.scenario.objective[0]
    priced = _priced(candidates, criterion)
    if priced is None:
        return candidates
    fresh, bound = _better(candidates, priced)
    for _ in range(ROUNDS):
        if not fresh:
            break
        candidates = with_named_mixes(candidates, fresh)
        priced = _priced(candidates, criterion) or priced
        fresh, bound = _better(candidates, priced)
    solution = optimize(replace(candidates.program, objective=(criterion,)), **options)
    if not solution.has_plan:
        return replace(candidates, unlisted=math.floor(bound / priced.model.scale))
    if solution.status is Status.OPTIMAL and proven(candidates, solution):
        return with_named_mixes(listed_first, mixes_of(candidates))
    value = dict(solution.stages)[criterion]
    within, complete = _within(candidates, priced, float(value) * priced.model.scale - bound)
    more = with_named_mixes(candidates, within)
    more = with_named_mixes(listed_first, mixes_of(more))  # in one order, whatever was found first
    return replace(more, unlisted=None if complete else math.floor(bound / priced.model.scale))


def _as_far_as_walked(candidates: Candidates) -> Candidates:
    """The candidates of one job, with the bound of its mixes where the walk over them was given up."""
    ((name, space),) = candidates.spaces.items()
    prices = Prices.of_cost(space.job)
    if candidates.scenario.objective[0] == "carbon":
        prices = Prices(cost=0.0, carbon=1.0, node=prices.node)
    weights = candidates.whole.cost_microusd if prices.cost else candidates.whole.carbon_mg
    cutoff = float(weights.min()) if len(weights) else math.inf
    mix, bound = cheapest(space.job, prices, cutoff)
    if mix is not None and name_of(space, mix.choice) not in mixes_of(candidates).get(name, []):
        candidates = with_named_mixes(candidates, {name: [name_of(space, mix.choice)]})
    least = cutoff if mix is None else mix.value(space.job, prices)
    rounded = 2.0 + 1e-9 * abs(least) if math.isfinite(least) else 0.0  # money and carbon are whole numbers
    return candidates if bound >= least - rounded else replace(candidates, unlisted=math.floor(bound))


def _alone(candidates: Candidates) -> bool:
    """Whether the cheapest mix is all that is needed: one job that is run once, under limits on it alone."""
    tasks, limits = candidates.program.tasks, candidates.scenario.limits
    carbon = limits.carbon_g is not None or any(site.carbon_g is not None for site in limits.sites)
    return len(tasks) == 1 and tasks[0].count == 1 and not carbon


@dataclass(frozen=True, slots=True, kw_only=True)
class _Priced:
    """A relaxation with what it charges for limits."""

    model: Model  # without artificial columns
    relaxation: Relaxation
    prices: Mapping[str, Prices]  # of each job that may be mixed; scaled
    worth: Mapping[str, float]  # multiplier of running the job once more; scaled


def _priced(candidates: Candidates, criterion: str) -> _Priced | None:
    scope = scope_of(candidates.program)
    model = build(scope, criterion)
    ones = _lines(model, "one")
    training = [task for task in candidates.program.tasks if task.kind == "training"]
    mixing = {ones[k]: task for k, task in enumerate(training) if task.name in candidates.spaces}
    found = relax(_with_artificial(model, candidates, mixing, criterion))
    if found is None:
        return None
    limits = _limit_charges(model, scope, found)
    prices = {task.name: prices_of_mixes(candidates, task, limits, criterion, model.scale) for task in mixing.values()}
    worth = {task.name: float(found.multipliers[line]) for line, task in mixing.items()}
    return _Priced(model=model, relaxation=found, prices=prices, worth=worth)


def _lines(model: Model, kind: str) -> list[int]:
    return [number for number, name in enumerate(model.table().kinds) if name == kind]


def _with_artificial(model: Model, candidates: Candidates, mixing: Mapping[int, Task], criterion: str) -> Model:
    """The model with one more way to run each job that may be mixed, dearer than any plan."""
    program, table = candidates.program, model.table()
    weights = program.cost_microusd if criterion == "cost" else program.carbon_mg
    dearest = [float(weights[t.first : t.stop].max(initial=0)) * max(t.count, 1) for t in program.tasks]
    units = np.array([max(float(program.max_units[t.first : t.stop].max(initial=1)), 1.0) for t in program.tasks])
    fee = ARTIFICIAL * max(float((np.array(dearest) * units).sum()), 1.0) * model.scale
    ends, variables, values = [0], list[int](), list[float]()
    first = model.variable_count
    numbers = {line: first + k for k, line in enumerate(sorted(mixing))}
    for line in range(model.line_count):
        part = slice(int(table.starts[line]), int(table.starts[line + 1]))
        variables += table.variables[part].tolist()
        values += table.coefficients[part].tolist()
        if line in numbers:
            variables.append(numbers[line])
            values.append(1.0)
        ends.append(len(variables))
    counts = [float(mixing[line].count) for line in sorted(mixing)]
    full = Model(columns=model.columns, scale=model.scale)
    full.add("x", np.concatenate([model.upper, counts]), integer=False)
    full.objective[:] = np.concatenate([model.objective, np.full(len(counts), fee)])
    full.add_lines("line", ends, variables, values, low=table.low, high=table.high)
    return full


def _limit_charges(model: Model, scope: Scope, relaxation: Relaxation) -> list[tuple[Row, float]]:
    """What one unit of each joint limit is charged, >= 0."""
    place = np.full(scope.program.column_count, -1, dtype=np.int64)
    place[model.columns] = np.arange(len(model.columns))
    table, numbers = model.table(), _lines(model, "limit")
    charges: list[tuple[Row, float]] = []
    for row in scope.program.rows:
        inside = (place[row.columns] >= 0) & (row.coefficients != 0)
        if not (inside.any() and can_bind(scope.program, row)):
            continue
        line = numbers[len(charges)]
        entry = int(table.starts[line])
        column = int(model.columns[table.variables[entry]])
        own = int(row.coefficients[np.flatnonzero(row.columns == column)[0]])
        factor = float(table.coefficients[entry]) / own
        charges.append((row, max(-float(relaxation.multipliers[line]), 0.0) * factor))
    return charges


def _better(candidates: Candidates, priced: _Priced) -> tuple[dict[str, list[Named]], float]:
    """The mix of least reduced cost of each job, if that is below 0 and new; and the bound L' of everything."""
    fresh: dict[str, list[Named]] = {}
    bound = priced.relaxation.bound - MARGIN * max(1.0, priced.relaxation.size)
    counts = {task.name: task.count for task in candidates.program.tasks}
    for name, prices in sorted(priced.prices.items()):
        space, worth = candidates.spaces[name], priced.worth[name]
        mix, least = cheapest(space.job, prices, worth * (1 - MARGIN) if worth > 0 else worth)
        bound += counts[name] * min(0.0, least - worth)
        if mix is not None and name_of(space, mix.choice) not in mixes_of(candidates).get(name, []):
            fresh[name] = [name_of(space, mix.choice)]
    return fresh, bound


def _within(candidates: Candidates, priced: _Priced, room: float) -> tuple[dict[str, list[Named]], bool]:
    """Every mix of a reduced cost up to the gap; and whether these are all."""
    found: dict[str, list[Named]] = {}
    whole = True
    for name, prices in sorted(priced.prices.items()):
        space = candidates.spaces[name]
        cutoff = (
            priced.worth[name] + max(room, 0.0) + MARGIN * max(1.0, abs(priced.worth[name]), priced.relaxation.size)
        )
        bounds, complete = listed(space.job, prices, cutoff, most=MOST)
        whole = whole and complete >= cutoff
        mixes = [evaluate(space.job, choice) for _, choice in (bounds if complete >= cutoff else bounds[:FEW])]
        near = sorted(
            (mix.value(space.job, prices), mix.choice)
            for mix in mixes
            if mix is not None and mix.value(space.job, prices) <= cutoff
        )
        found[name] = [name_of(space, choice) for _, choice in near]
    return found, whole


def within_bound(solution: Solution, bound: int) -> Solution:
    """A solution of the columns at hand, as far as it is proven for the mixes that were not listed too."""
    if not solution.has_plan or solution.bound_microusd is None or bound >= solution.bound_microusd:
        return solution
    cost, message = solution.cost_microusd, "more mixes within jobs lie within the gap than are listed"
    return replace(
        solution, status=Status.FEASIBLE, bound_microusd=max(bound, 0), messages=(*solution.messages, message),
        gap=(cost - max(bound, 0)) / cost if cost else 0.0,
    )  # fmt: skip
