"""What must hold between the answers to related programs.

Each law is tried on random programs of jobs and fleets under every kind of row, on calendars with purchases, and
on full fleets; many times as many in `make campaign`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.candidates.program import OPTIONAL, Program, Task, restrict
from planner.candidates.prune import prune
from planner.optimize.adapter import PulpAdapter
from planner.optimize.build import build
from planner.optimize.check import judge
from planner.optimize.scope import scope_of
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import Options
from tests.optimize.brute import random_program
from tests.optimize.brute_fleets import KINDS, random_fleet
from tests.optimize.brute_supplies import random_supplied
from tests.optimize.instances import permuted, program, row, static, within_tasks
from tests.tiers import settings

SEEDS = st.integers(min_value=0, max_value=10**6)
LAW = settings(max_examples=40, few=14)
MONEY = ("limits.budget", "limits.spend")
FOR_COST = {"objective": ("cost",)}


def question_of(seed: int) -> Program:
    """Rows, a calendar or a full fleet, in turn."""
    if seed % 5 == 4:
        return random_fleet(KINDS[seed // 5 % len(KINDS)], seed)
    return random_supplied(seed) if seed % 5 in (1, 3) else random_program(seed)


def cost_of(question: Program) -> float:
    answer = optimize(replace(question, objective=("cost",)), cost_only=True)
    assert answer.status in ("optimal", "infeasible"), answer.messages
    return answer.cost_microusd if answer.status == "optimal" else np.inf


def chosen(question: Program, answer: Solution) -> list[tuple[int, ...]]:
    """The plan as facts, whatever the indices."""
    arrays = (question.offer, question.cost_microusd, question.nodes, question.provider, question.replicas)
    task_of = {k: task.name for task in question.tasks for k in range(task.first, task.stop)}
    return sorted(
        (task_of[k], int(answer.units[k]), *(int(array[k]) for array in arrays), float(question.finish_s[k]))
        for k in np.flatnonzero(answer.units)
    )


def asked_for(question: Program) -> list[int]:
    """Columns of workloads, not of purchases."""
    return [k for task in question.tasks if task.kind != "optional" for k in range(task.first, task.stop)]


def repriced(question: Program, cost: np.ndarray) -> Program:
    """The same at other prices, in the rows of money as well."""
    rows = tuple(replace(r, coefficients=cost[r.columns]) if r.name in MONEY else r for r in question.rows)
    return replace(question, cost_microusd=cost, rows=rows)


@LAW
@given(SEEDS)
def test_more_of_any_limit_never_costs_more(seed: int) -> None:
    """A bigger quota, budget, carbon cap, and any number of providers."""
    question = question_of(seed)
    before = cost_of(question)
    looser = tuple(replace(row, bound=row.bound + 1 + abs(row.bound) // 3) for row in question.rows)
    assert cost_of(replace(question, rows=looser)) <= before
    assert cost_of(replace(question, max_providers=None)) <= before


@LAW
@given(SEEDS)
def test_longer_deadline_never_costs_more(seed: int) -> None:
    question = replace(question_of(seed), **FOR_COST)
    answers = []
    for deadline in sorted(set(question.finish_s.tolist())):
        answer = optimize(question, columns=question.finish_s <= deadline, cost_only=True)
        answers.append(answer.cost_microusd if answer.status == "optimal" else np.inf)
    assert answers == sorted(answers, reverse=True)
    assert answers[-1] == cost_of(question)


@LAW
@given(SEEDS)
def test_extra_offer_never_costs_more(seed: int) -> None:
    """Seen from the other side: leaving a column out never costs less."""
    question = question_of(seed)
    mask = np.ones(question.column_count, dtype=bool)
    mask[seed % question.column_count] = False
    before = cost_of(question)
    assert cost_of(restrict(question, mask)[0]) >= before
    masked = optimize(replace(question, objective=("cost",)), columns=mask, cost_only=True)
    assert (masked.cost_microusd if masked.status == "optimal" else np.inf) >= before
    assert not masked.units[~mask].any()


@LAW
@given(SEEDS, st.integers(min_value=1, max_value=99))
def test_lower_price_never_costs_more(seed: int, percent: int) -> None:
    question = question_of(seed)
    cost = question.cost_microusd.copy()
    cost[seed % len(cost)] = cost[seed % len(cost)] * percent // 100
    assert cost_of(repriced(question, cost)) <= cost_of(question)


@LAW
@given(SEEDS, st.sampled_from([2, 7, 1000]))
def test_prices_times_k_cost_k_times_as_much(seed: int, factor: int) -> None:
    question = question_of(seed)
    scaled = repriced(question, question.cost_microusd * factor)
    rows = tuple(replace(r, bound=r.bound * factor) if r.name in MONEY else r for r in scaled.rows)
    first, second = optimize(question), optimize(replace(scaled, rows=rows))
    assert first.status == second.status
    assert first.cost_microusd * factor == second.cost_microusd
    assert first.units.tolist() == second.units.tolist()


@LAW
@given(SEEDS, st.sampled_from(["highs", "cbc"]))
def test_order_of_columns_tasks_and_rows_does_not_matter(seed: int, solver: str) -> None:
    question = question_of(seed)
    rng = np.random.default_rng(seed)
    mixed = permuted(question, within_tasks(question, rng))
    mixed = replace(mixed, tasks=mixed.tasks[::-1], rows=mixed.rows[::-1])
    first, second = optimize(question), optimize(mixed, solver=solver)
    assert first.status == second.status
    assert chosen(question, first) == chosen(mixed, second)


def with_copy(question: Program, column: int, **changed: int) -> Program:
    """A column twice, side by side; the copy may differ in some facts."""
    copied = np.sort(np.append(np.arange(question.column_count), column))
    place = np.searchsorted(copied, np.arange(question.column_count))
    arrays = ["cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units"]
    arrays += ["provider", "offer", *OPTIONAL]
    new = {name: getattr(question, name)[copied] for name in arrays}
    for name, value in changed.items():
        new[name][column + 1] = value
    rows = []
    for limit in question.rows:
        dense = np.zeros(question.column_count, dtype=np.int64)
        dense[limit.columns] = limit.coefficients
        used = np.flatnonzero(dense[copied])
        rows.append(replace(limit, columns=used, coefficients=dense[copied][used]))
    tasks = tuple(
        replace(task, first=int(place[task.first]), stop=int(np.searchsorted(copied, task.stop - 1, "right")))
        for task in question.tasks
    )
    return replace(question, tasks=tasks, rows=tuple(rows), **new)


def with_enough(question: Program) -> Program:
    """Units of workloads do not run out."""
    most = question.max_units.copy()
    most[asked_for(question)] = 50
    return replace(question, max_units=most)


@LAW
@given(SEEDS)
def test_copy_of_a_column_changes_nothing(seed: int) -> None:
    question = with_enough(question_of(seed))
    columns = asked_for(question)
    both = with_copy(question, columns[seed % len(columns)])
    first, second = optimize(question), optimize(both)
    assert first.status == second.status
    assert first.stages == second.stages
    assert set(question.offer[first.units > 0]) == set(both.offer[second.units > 0])


@LAW
@given(SEEDS)
def test_irrelevant_offers_change_nothing(seed: int) -> None:
    """A column that is another one for more money, and a purchase that supplies nothing."""
    question = with_enough(question_of(seed))
    columns = [
        k for k in asked_for(question) if not any((r.coefficients[r.columns == k] < 0).any() for r in question.rows)
    ]
    if not columns or any(r.name in MONEY for r in question.rows) or question.objective != ("cost",):
        question, columns = with_enough(random_fleet("spares", seed)), [0]
    column = columns[seed % len(columns)]
    more = with_copy(question, column, cost_microusd=int(question.cost_microusd[column]) + 1)
    first, second = optimize(question), optimize(more)
    assert (first.status, first.stages) == (second.status, second.stages)
    assert second.units[column + 1] == 0
    assert np.delete(second.units, column + 1).tolist() == first.units.tolist()


@LAW
@given(SEEDS)
def test_pruned_equals_unpruned(seed: int) -> None:
    question = question_of(seed)
    kept = prune(question)
    small, indices = restrict(question, np.isin(np.arange(question.column_count), kept))
    whole, pruned = optimize(question), optimize(small)
    assert (whole.status, whole.stages) == (pruned.status, pruned.stages)
    assert whole.units[indices].tolist() == pruned.units.tolist()
    assert whole.units.sum() == pruned.units.sum()


@LAW
@given(SEEDS, st.sampled_from(["highs", "cbc"]))
def test_price_and_fix_equals_the_whole_model(seed: int, solver: str) -> None:
    """From the smallest first model up, against the whole model given to a solver at once."""
    question = replace(random_supplied(seed) if seed % 2 else random_program(seed), objective=("cost",))
    scope = scope_of(question)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("planner.optimize.ways.MOST_STEPS", 0)
        patch.setattr("planner.optimize.stage.WHOLE", 0)
        patch.setattr("planner.optimize.stage.BEST", 1)
        answer = optimize(question, cost_only=True, solver=solver)
    if answer.status == "infeasible" and not len(scope.open):
        return
    model = build(scope, "cost")
    outcome = PulpAdapter(solver=solver).run(model, Options())
    assert (outcome.ending == "infeasible") == (answer.status == "infeasible")
    verdict = judge(scope, model, outcome)
    if verdict.units is not None:
        assert int(question.cost_microusd @ verdict.units) == answer.cost_microusd


def metered_and_phased(seed: int) -> tuple[Program, Program]:
    """Jobs that pay for nodes of pools under quotas; and in one period, on nodes that are rented for it."""
    rng = np.random.default_rng(seed)
    pools, sizes = int(rng.integers(1, 4)), rng.integers(1, 6, int(rng.integers(1, 5)))
    n = int(sizes.sum())
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    pool, nodes = rng.integers(0, pools, n), rng.integers(1, 6, n)
    price, quota = rng.integers(1, 9, pools) * 1_000_003, rng.integers(0, 12, pools)
    extra = rng.integers(0, 2_000_000, n)
    tasks = [
        Task(
            name=f"j{j}", kind="training", first=int(bounds[j]), stop=int(bounds[j + 1]), count=int(rng.integers(1, 3))
        )
        for j in range(len(sizes))
    ]
    metered = program(
        tasks,
        cost=nodes * price[pool] + extra,
        max_units=np.full(n, 2),
        nodes=nodes,
        rows=tuple(row(f"quota {p}", int(quota[p]), nodes * (pool == p)) for p in range(pools)),
    )
    bought = Task(name="~bought", kind="optional", first=n, stop=n + pools)
    rows = tuple(
        row(f"pool {p} 0", 0, np.concatenate([nodes * (pool == p), -1 * (np.arange(pools) == p)])) for p in range(pools)
    )
    phased = program(
        [*tasks, bought],
        cost=np.concatenate([extra, price]),
        max_units=np.concatenate([np.full(n, 2), quota]),
        nodes=np.concatenate([nodes, np.zeros(pools)]),
        rows=rows,
    )
    return metered, phased


@LAW
@given(SEEDS)
def test_static_equals_one_period(seed: int) -> None:
    metered, phased = metered_and_phased(seed)
    first, second = optimize(metered), optimize(phased)
    assert first.status == second.status
    assert first.cost_microusd == second.cost_microusd
    assert first.units.tolist() == second.units[: metered.column_count].tolist()


@LAW
@given(SEEDS)
@example(39857)  # two micro-dollars of 46,000 dollars are within what solvers allow themselves
def test_no_slack_means_feasible(seed: int) -> None:
    """Every limit may be exceeded at one micro-dollar each; that costs nothing exactly when there is a plan."""
    question = replace(question_of(seed), objective=("cost",), max_providers=None)
    n, limits = question.column_count, len(question.rows)
    if not limits:
        question = replace(question, rows=(row("limits.nodes", seed % 9, question.nodes),))
        limits = 1
    names = [
        "cost_microusd",
        "finish_s",
        "carbon_mg",
        "nodes",
        "replicas",
        "capacity_micro_per_s",
        "max_units",
        "provider",
    ]
    names += ["offer", *OPTIONAL]
    longer = {
        name: np.concatenate([getattr(question, name), 0 * getattr(question, name)[[0] * limits]]) for name in names
    }
    longer["cost_microusd"][:n], longer["cost_microusd"][n:], longer["max_units"][n:] = 0, 1, 10**6
    rows = tuple(
        replace(r, columns=np.append(r.columns, n + number), coefficients=np.append(r.coefficients, -1 - abs(r.bound)))
        for number, r in enumerate(question.rows)
    )
    slack = Task(name="~slack", kind="optional", first=n, stop=n + limits)
    elastic = replace(question, tasks=(*question.tasks, slack), rows=rows, **longer)
    least, feasible = cost_of(elastic), cost_of(question) < np.inf
    assert (least == 0) == feasible
    if least < np.inf:
        units = optimize(elastic, cost_only=True).units[n:]
        given = tuple(replace(r, bound=r.bound + int(u) * (1 + abs(r.bound))) for r, u in zip(question.rows, units))
        assert cost_of(replace(question, rows=given)) < np.inf


@LAW
@given(SEEDS)
def test_halves_of_a_job_cost_between_its_relaxation_and_the_whole(seed: int) -> None:
    """Twice half the job can be split; that never costs more than the whole, nor less than its relaxation."""
    halves, _ = metered_and_phased(seed)
    single = tuple(replace(task, count=1) for task in halves.tasks)
    twice = tuple(replace(task, count=2) for task in halves.tasks)
    split = replace(halves, tasks=twice)
    doubled = tuple(replace(r, coefficients=2 * r.coefficients) for r in halves.rows)
    whole = replace(
        halves, tasks=single, rows=doubled, cost_microusd=2 * halves.cost_microusd, max_units=0 * halves.nodes + 1
    )
    cost = cost_of(split)
    assert cost <= cost_of(whole)
    one = np.array([[task.first <= k < task.stop for k in range(whole.column_count)] for task in whole.tasks])
    limits = np.zeros((len(whole.rows), whole.column_count))
    for number, limit in enumerate(whole.rows):
        limits[number, limit.columns] = limit.coefficients
    bounds = [limit.bound for limit in whole.rows]
    found = linprog(whole.cost_microusd, limits, bounds, one.astype(float), np.ones(len(one)), bounds=(0, 1))
    assert cost >= found.fun * (1 - 1e-9) if found.status == 0 else cost == np.inf


@LAW
@given(SEEDS)
def test_more_demand_or_spares_never_cost_less(seed: int) -> None:
    question = random_fleet(KINDS[seed % len(KINDS)], seed)
    (task,) = question.tasks
    before = cost_of(question)
    spared = replace(task, spare_replicas=task.spare_replicas + 1)
    assert cost_of(replace(question, tasks=(spared,))) >= before
    levels = tuple(tuple(demand + 1 for demand in level) for level in task.levels)
    grown = replace(task, demand_micro_per_s=tuple(d + 1 for d in task.demand_micro_per_s), levels=levels)
    assert cost_of(replace(question, tasks=(grown,))) >= before


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_seed_of_the_solver_does_not_choose_the_plan(seed: int) -> None:
    """Coarse prices and one finish time, so mostly ties: one plan whatever the seed and the solver."""
    question = static(6, 40, seed=4)
    tied = replace(question, cost_microusd=question.cost_microusd // 10**11, finish_s=np.ones(question.column_count))
    plans = [
        optimize(tied, solver=solver, seed=other).units.tolist() for solver in ("highs", "cbc") for other in (0, seed)
    ]
    assert plans.count(plans[0]) == len(plans)
