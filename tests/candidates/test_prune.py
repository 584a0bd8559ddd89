"""Dominated columns go, and neither the best value nor the chosen plan changes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates import dominance
from planner.candidates.program import Program, Task, restrict
from planner.candidates.prune import alone_units, can_bind, canonical_order, count_pruned, prune
from planner.optimize.solve import optimize
from tests.optimize.brute import best, random_program, with_ties
from tests.optimize.instances import permuted, program, row, within_tasks
from tests.tiers import cases, settings


def one(cost: list[int], **more: object) -> Program:
    return program([Task(name="job", kind="training", first=0, stop=len(cost))], cost=cost, **more)


def fleet(cost: list[int], capacity: list[int], demand: int = 10, **more: object) -> Program:
    fields = {name: more.pop(name) for name in ("spare_replicas", "min_replicas") if name in more}
    task = Task(name="f", kind="serving", first=0, stop=len(cost), demand_micro_per_s=(demand,), **fields)  # type: ignore[arg-type]
    more.setdefault("replicas", np.ones(len(cost)))
    return program([task], cost=cost, capacity_micro_per_s=[[c] for c in capacity], **more)


def tied(cost: list[int], **more: object) -> Program:
    """Costs that differ by one are equal."""
    return replace(one(cost, **more), tie_share=1e-6, most_tie_microusd=1)


NODES = (row("limits.max_devices", 10, [8, 16]),)
CASES = {
    "dearer": (one([5, 7]), [0]),
    "dearer but faster, cost first": (one([5, 7], finish=[9.0, 1.0]), [0]),
    "dearer but faster, time asked for": (one([5, 7], finish=[9.0, 1.0], objective=("cost", "time")), [0, 1]),
    "dearer but fewer nodes under a limit": (one([7, 5], rows=NODES), [0, 1]),
    "dearer and more nodes under a limit": (one([5, 7], rows=NODES), [0]),
    "limit that can never bind": (one([7, 5], rows=(row("limits.max_devices", 99, [8, 16]),)), [1]),
    "dearer elsewhere, providers limited": (one([5, 7], provider=[0, 1], max_providers=1), [0, 1]),
    "dearer elsewhere, providers free": (one([5, 7], provider=[0, 1]), [0]),
    "equal, same provider: offer order": (one([5, 5], offer=[4, 2]), [1]),
    "equal, other provider: offer order": (one([5, 5], provider=[0, 1], offer=[4, 2]), [1]),
    "equal, fewer devices": (one([5, 5], nodes=[2, 1]), [1]),
    "as cheap, fewer devices": (tied([5, 6], nodes=[2, 1]), [0, 1]),
    "as cheap, more devices": (tied([5, 6], nodes=[1, 2]), [0]),
    "as cheap, no better: names": (tied([5, 6], offer=[4, 2]), [0, 1]),
    "dearer than as cheap, fewer devices": (tied([5, 7], nodes=[2, 1]), [0]),
    "copies": (one([5, 5, 5], offer=[1, 1, 1]), [0]),
    "carbon first": (one([5, 7], carbon_mg=[2, 1], objective=("carbon",)), [1]),
    "too few units to stand in": (fleet([5, 7], [4, 4], max_units=[1, 9]), [0, 1]),
    "replicas: more for less": (fleet([5, 7], [6, 4]), [0]),
    "replicas: less for less": (fleet([5, 7], [4, 6]), [0, 1]),
    # a spare of the cheap unit is a whole unit of 6, of the other one half of 6
    "spares: large replicas lose more": (fleet([5, 7], [6, 6], replicas=[1, 2], spare_replicas=1), [0, 1]),
    "spares: small replicas lose less": (fleet([5, 7], [6, 6], replicas=[2, 1], spare_replicas=1), [0]),
    "least replicas": (fleet([5, 7], [6, 6], replicas=[1, 2], min_replicas=3), [0, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    question, kept = CASES[name]
    assert prune(question).tolist() == kept


def test_within_labels_keeps_the_best_of_each() -> None:
    question = one([5, 7, 6, 9])
    assert prune(question, within=np.array([0, 1, 1, 0])).tolist() == [0, 2]


def test_ledger_counts_per_task() -> None:
    tasks = [Task(name="a", kind="training", first=0, stop=3), Task(name="b", kind="training", first=3, stop=4)]
    question = program(tasks, cost=[3, 1, 2, 9])
    assert count_pruned(question, prune(question)) == {"a": 2, "b": 0}


def check_same_plan(question: Program) -> int:
    kept = prune(question)
    small, indices = restrict(question, np.isin(np.arange(question.column_count), kept))
    whole, pruned = best(question), best(small)
    assert (whole is None) == (pruned is None)
    if whole is not None and pruned is not None:
        units = np.zeros(question.column_count, dtype=np.int64)
        units[indices] = pruned[1]
        assert units.tolist() == whole[1].tolist()
    return question.column_count - len(kept)


def test_pruned_equals_unpruned_by_brute_force() -> None:
    tried = cases(60, 300)
    pruned = sum(check_same_plan(with_ties(seed)) for seed in range(5000, 5000 + tried))
    assert pruned > 0.8 * tried  # about a column of each question goes


@settings(max_examples=80, few=30)
@given(st.integers(min_value=0, max_value=10**6))
def test_pruned_equals_unpruned_solved(seed: int) -> None:
    question = with_ties(seed)
    question = replace(question, max_units=np.full(question.column_count, 60))
    kept = prune(question)
    small, indices = restrict(question, np.isin(np.arange(question.column_count), kept))
    whole, pruned = optimize(question), optimize(small)
    assert whole.status == pruned.status
    assert whole.stages == pruned.stages
    assert whole.units[indices].tolist() == pruned.units.tolist()


@settings(max_examples=60, few=25)
@given(st.integers(min_value=0, max_value=10**6))
def test_what_is_kept_does_not_depend_on_order(seed: int) -> None:
    """Up to copies that differ in nothing, of which any one may be kept."""
    question = random_program(seed)
    order = within_tasks(question, np.random.default_rng(seed))
    mixed = permuted(question, order)

    def facts(asked: Program) -> list[tuple[int, ...]]:
        kept = prune(asked)
        return sorted(zip(*(a[kept].tolist() for a in (asked.offer, asked.cost_microusd, asked.nodes, asked.provider))))

    assert facts(question) == facts(mixed)


def test_many_columns_shrink_to_few() -> None:
    rng = np.random.default_rng(0)
    n = 30_000
    nodes = 2 ** rng.integers(0, 8, n)
    question = one(
        rng.integers(1, 10**9, n).tolist(),
        nodes=nodes,
        provider=rng.integers(0, 4, n),
        finish=rng.uniform(1, 9, n),
        rows=(row("limits.max_devices", 512, nodes * 8), row("limits.power", 600, nodes * rng.integers(3, 9, n))),
    )
    kept = prune(question)
    assert 2 < len(kept) < 100
    cost, power = question.cost_microusd, np.zeros(n, dtype=np.int64)
    power[question.rows[1].columns] = question.rows[1].coefficients
    for column in range(0, n, 997):
        covered = (cost[kept] <= cost[column]) & (nodes[kept] <= nodes[column]) & (power[kept] <= power[column])
        assert covered.any()


def test_alone_units() -> None:
    question = fleet([1, 1, 1], [4, 6, 0], replicas=[2, 1, 1], spare_replicas=1, min_replicas=5)
    # 10/4 + 1/2 = 3 units and ceil(5/2) = 3; 10/6 + 1 -> 3 but 5 replicas -> 5; no capacity: 5 for the replicas
    assert alone_units(question, question.tasks[0]).tolist() == [3, 5, 5]
    assert alone_units(one([1, 2]), one([1, 2]).tasks[0]).tolist() == [1, 1]


def test_can_bind() -> None:
    question = replace(one([1, 2]), tasks=(Task(name="job", kind="training", first=0, stop=2, count=3),))
    assert can_bind(question, row("r", 5, [1, 2]))
    assert not can_bind(question, row("r", 7, [1, 2]))


def test_canonical_order_is_by_offer_then_task() -> None:
    tasks = [Task(name="z", kind="training", first=0, stop=2), Task(name="a", kind="training", first=2, stop=4)]
    question = program(tasks, cost=[1, 1, 1, 1], offer=[1, 0, 0, 1])
    assert canonical_order(question).tolist() == [2, 1, 3, 0]


def signed_program(seed: int) -> Program:
    """Jobs of many columns, each of which touches a few of many rows, some rows supplied, with purchases."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 40, 3)]
    n = sum(sizes) + 4
    bounds = np.cumsum([0, *sizes, 4])
    kinds = ["training"] * 3 + ["optional"]
    tasks = [
        Task(name=f"t{number}", kind=kind, first=int(a), stop=int(b), count=int(rng.integers(1, 4)))
        for number, (kind, (a, b)) in enumerate(zip(kinds, itertools.pairwise(bounds)))
    ]
    rows = []
    for number in range(12):
        dense = np.where(rng.random(n) < rng.choice([0.1, 0.3, 0.9]), rng.integers(1, 4, n), 0)
        if rng.random() < 0.4:
            dense = np.where(rng.random(n) < 0.2, -dense, dense)
        dense[-4:] = -np.abs(dense[-4:])
        if dense.any():
            rows.append(row(f"r{number}", int(rng.integers(0, 12)), dense))
    return program(
        tasks,
        cost=rng.integers(1, 6, n),
        finish=rng.integers(1, 3, n) * 1000.0,
        nodes=rng.integers(1, 3, n),
        max_units=rng.integers(1, 4, n),
        provider=rng.integers(0, 2, n),
        offer=rng.integers(0, n, n),
        rows=tuple(rows),
        max_providers=1 if rng.random() < 0.2 else None,
        objective=("time", "cost") if rng.random() < 0.3 else ("cost",),
    )


def dominated_by_definition(question: Program) -> list[int]:
    """The claim of the module, pair by pair, in the words of `prune`."""
    order = {int(k): place for place, k in enumerate(canonical_order(question))}
    names = ["cost", "devices", "finish"]  # of jobs that are equal in all else
    arrays = {"cost": question.cost_microusd, "devices": question.devices, "finish": question.finish_s}
    after = slice(1, None)
    dense = []
    for limit in question.rows:
        if can_bind(question, limit):
            line = np.zeros(question.column_count, dtype=np.int64)
            line[limit.columns] = limit.coefficients
            dense.append(line)
    gone = []
    for task in question.tasks:
        for j in range(task.first, task.stop) if task.kind == "training" else ():
            for i in range(task.first, task.stop):
                left, right = (tuple(arrays[name][k] for name in names) for k in (i, j))
                same = question.provider[i] == question.provider[j]
                if (
                    i != j
                    and question.max_units[i] >= task.count
                    and all(line[i] <= line[j] for line in dense)
                    and ("time" not in question.objective or question.finish_s[i] <= question.finish_s[j])
                    and (question.max_providers is None or same)
                    and (left < right or (left == right and order[i] < order[j]))
                    and (not 0 < right[0] - left[0] <= question.most_tie_microusd or left[after] < right[after])
                ):
                    gone.append(j)
                    break
    return gone


def test_exactly_what_the_claim_says_goes() -> None:
    """Rows of few columns, of most columns, supplied and not: the arrays say what the words say."""
    total = 0
    for seed in range(60):
        question = replace(signed_program(seed), tie_share=1e-6, most_tie_microusd=seed % 3)
        gone = dominated_by_definition(question)
        kept = np.setdiff1d(np.arange(question.column_count), gone)
        assert prune(question).tolist() == kept.tolist(), seed
        total += len(gone)
    assert total > 300


def test_wide_signatures_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same whether columns are compared in pairs or one by one, in small portions or large ones."""
    expected = [prune(signed_program(seed)).tolist() for seed in range(30)]
    monkeypatch.setattr(dominance, "WIDE", 2)
    monkeypatch.setattr(dominance, "PAIRS", 7)
    assert [prune(signed_program(seed)).tolist() for seed in range(30)] == expected


def test_fleets_that_supply_a_row_are_left_alone() -> None:
    """Two units of the dearer column let the job run; without the supply it would be dominated."""
    tasks = [
        Task(name="f", kind="serving", first=0, stop=2, demand_micro_per_s=(4,)),
        Task(name="job", kind="training", first=2, stop=3),
    ]
    question = program(
        tasks,
        cost=[3, 5, 1],
        replicas=[1, 1, 0],
        capacity_micro_per_s=[[4], [4], [0]],
        max_units=[9, 9, 1],
        rows=(row("power", 0, [-1, -2, 4]),),
    )
    assert prune(question).tolist() == [0, 1, 2]
    assert alone_units(question, question.tasks[0]).tolist() == [9, 9]
    answer = optimize(question)
    assert (answer.status, answer.units.tolist()) == ("optimal", [0, 2, 1])
