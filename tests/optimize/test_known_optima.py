"""Programs whose optimum is known: seeded instances, textbook cases, and hand-solved ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.program import Program, Task, restrict
from planner.candidates.prune import prune
from planner.optimize.solve import optimize
from tests.optimize.instances import mix, program, row, static

BOTH = pytest.mark.parametrize("solver", ["highs", "cbc"])


@BOTH
@pytest.mark.parametrize(
    ("question", "optimum_usd"),
    [
        pytest.param(static(10, 100), 1_165_020, id="static-10x100"),
        pytest.param(mix(16, 4), 149.788, id="mix-16x4"),
    ],
)
def test_small_instance(question: Program, optimum_usd: float, solver: str) -> None:
    answer = optimize(question, solver=solver)
    assert answer.status == "optimal"
    assert answer.cost_microusd / 1e6 == pytest.approx(optimum_usd, rel=5e-6)


@BOTH
def test_static_50x500_whole_and_pruned(solver: str) -> None:
    question = static(50, 500)
    assert question.column_count == 13_760
    answer = optimize(question, solver=solver)
    assert answer.status == "optimal"
    assert answer.cost_microusd / 1e9 == pytest.approx(4057.5277, abs=5e-5)
    kept = prune(question)
    small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
    again = optimize(small, solver=solver)
    assert again.cost_microusd == answer.cost_microusd
    assert set(kept[again.units > 0]) == set(np.flatnonzero(answer.units))


def one_task(cost: list[int], **more: object) -> Program:
    kind, count = more.pop("kind", "training"), more.pop("count", 1)
    fields = {name: more.pop(name) for name in ("demand_micro_per_s", "spare_replicas", "min_replicas") if name in more}
    task = Task(name="task", kind=str(kind), first=0, stop=len(cost), count=int(str(count)), **fields)  # type: ignore[arg-type]
    return program([task], cost=cost, **more)


def serving(cost: list[int], capacity: list[int], demand: int, **more: object) -> Program:
    replicas = more.pop("replicas", [1] * len(cost))
    columns = [[c] for c in capacity]
    return one_task(
        cost, kind="serving", capacity_micro_per_s=columns, demand_micro_per_s=(demand,), replicas=replicas, **more
    )


def with_purchases(cost: list[int], needs: list[int], **more: object) -> Program:
    """One job, each way of which needs so many units of what is bought for nothing."""
    tasks = [Task(name="job", kind="training", first=0, stop=2), Task(name="~bought", kind="optional", first=2, stop=3)]
    return program(tasks, cost=[*cost, 0], rows=(row("~pool", 0, [*needs, -1]),), nodes=[1, 1, 0], **more)


def within(question: Program) -> Program:
    """Costs within a millionth or a cent are equal, whatever the plan costs."""
    return replace(question, tie_share=1e-6, most_tie_microusd=10**12)


HAND_SOLVED = {
    # argmin of a single job
    "cheapest column": (one_task([5, 3, 4]), [0, 1, 0]),
    # three jobs, one slot on the cheap column (quota 1): one there, two on the next
    "quota splits a count": (one_task([3, 5], count=3, rows=(row("quota", 1, [1, 0]),)), [1, 2]),
    # 7 jobs of 2 nodes or 3 nodes; 17 nodes: 2a + 3b <= 17, a + b = 7, b is cheaper -> b = 3
    "one knapsack row": (one_task([9, 8], count=7, nodes=[2, 3], rows=(row("nodes", 17, [2, 3]),)), [4, 3]),
    # covering 10 with pieces of 4 ($3) and 7 ($5): 4+7 = $8; 4+4+4 = $9; 7+7 = $10
    "covering": (serving([3, 5], [4, 7], 10), [1, 1]),
    # cutting stock: 12 from 5s ($5) and 4s ($4): three 4s, $12, no waste
    "cutting stock": (serving([5, 4], [5, 4], 12), [0, 3]),
    # 10 with one spare: sizes 5 ($5): 3 units; 10 ($8): 2 units $16; 5+10 leaves 5 -> not enough
    "one spare": (serving([5, 8], [5, 10], 10, spare_replicas=1), [3, 0]),
    # two replicas in a unit: losing one loses half a unit: 10 <= 6u - 3 -> u = 3
    "spare inside a unit": (serving([5], [6], 10, replicas=[2], spare_replicas=1), [3]),
    # two spares: 4 (u - 2) >= 10 -> u = 5
    "two spares": (serving([5], [4], 10, spare_replicas=2), [5]),
    # the demand needs one unit, the least number of replicas three
    "least replicas": (serving([5], [20], 10, min_replicas=3), [3]),
    # nobody needs more than covers the demand although units are free
    "free units": (serving([0], [5], 10), [2]),
    # same cost: fewer devices, though they take longer
    "tie: devices": (one_task([5, 5], nodes=[2, 1], finish=[10.0, 20.0]), [0, 1]),
    # then no pipeline, though it carries more
    "tie: pipelined": (serving([5, 5], [11, 10], 10, pipelined=[1, 0]), [0, 1]),
    # then more capacity, though in fewer replicas
    "tie: capacity": (serving([5, 5], [10, 11], 10, replicas=[2, 1]), [0, 1]),
    # of two units each: two of 6 carry more than one of 6 and one of 5
    "tie: capacity of several": (serving([5, 5], [5, 6], 10), [0, 2]),
    # then the earlier finish, though the layout is more involved
    "tie: finish": (one_task([5, 5], finish=[20.0, 10.0], plain=[0, 1]), [0, 1]),
    # a ten-millionth earlier is no earlier
    "tie: finish to six digits": (one_task([5, 5], finish=[1e5, 1e5 - 0.01], plain=[0, 1]), [1, 0]),
    # then more replicas
    "tie: replicas": (serving([5, 5], [10, 10], 10, replicas=[1, 2], plain=[0, 1]), [0, 1]),
    # then the plainer layout, though more is bought for it
    "tie: plain": (with_purchases([5, 5], [1, 2], plain=[1, 0, 0]), [0, 1, 2]),
    # then fewer purchases, though the price is of no known day
    "tie: bought": (with_purchases([5, 5], [2, 1], undated=[0, 1, 0]), [0, 1, 1]),
    # then prices of a known day, though the offer comes later
    "tie: undated": (one_task([5, 5], undated=[1, 0]), [0, 1]),
    # then the offer that comes first
    "tie: names": (one_task([5, 5], offer=[7, 3]), [0, 1]),
    # ten micro-dollars of $10,000 are nothing: 32 devices in place of 96
    "as cheap": (within(one_task([10**10, 10**10 + 10], nodes=[96, 32])), [0, 1]),
    "as cheap within a cent": (within(one_task([10**9, 10**9 + 10_000], nodes=[96, 32])), [0, 1]),
    "dearer than a cent": (within(one_task([10**9, 10**9 + 10_001], nodes=[96, 32])), [1, 0]),
    "as cheap within a millionth": (within(one_task([10**11, 10**11 + 10**5], nodes=[96, 32])), [0, 1]),
    "dearer than a millionth": (within(one_task([10**11, 10**11 + 10**5 + 1], nodes=[96, 32])), [1, 0]),
    "told apart exactly": (one_task([10**10, 10**10 + 10], nodes=[96, 32]), [1, 0]),
    # each of three jobs may be as cheap, all of them together may not
    "as cheap in all": (within(one_task([10**9, 10**9 + 5000], count=3, nodes=[9, 3])), [1, 2]),
    # fastest: makespan first, whatever the cost
    "time first": (one_task([5, 9], finish=[20.0, 10.0], objective=("time",)), [0, 1]),
    "carbon first": (one_task([5, 9], carbon_mg=[2, 1], objective=("carbon",)), [0, 1]),
}


@BOTH
@pytest.mark.parametrize("name", HAND_SOLVED)
def test_hand_solved(name: str, solver: str) -> None:
    question, units = HAND_SOLVED[name]
    answer = optimize(question, solver=solver)
    assert answer.status == "optimal"
    assert answer.units.tolist() == units


@BOTH
def test_fastest_within_a_budget(solver: str) -> None:
    """Two jobs, $10 in all: one of them can take its fast column; the makespan is the other's."""
    tasks = [Task(name=n, kind="training", first=f, stop=f + 2) for n, f in (("a", 0), ("b", 2))]
    question = program(
        tasks,
        cost=[3, 7, 3, 6],
        finish=[30.0, 5.0, 20.0, 4.0],
        rows=(row("limits.budget", 10, [3, 7, 3, 6]),),
        objective=("time", "cost"),
    )
    answer = optimize(question, solver=solver)
    assert answer.units.tolist() == [0, 1, 1, 0]
    assert dict(answer.stages)["time"] == 20.0


@BOTH
def test_at_most_one_provider_costs_more(solver: str) -> None:
    """Apart the jobs cost 2 + 2 at two providers; at one provider the best is 2 + 4."""
    tasks = [Task(name=n, kind="training", first=f, stop=f + 2) for n, f in (("a", 0), ("b", 2))]
    question = program(tasks, cost=[2, 5, 4, 2], provider=[0, 1, 0, 1], max_providers=1)
    answer = optimize(question, solver=solver)
    assert (answer.units.tolist(), answer.cost_microusd) == ([1, 0, 1, 0], 6)


def test_one_micro_dollar_in_a_million_dollars_is_seen() -> None:
    million = 10**12
    cost = [million + 1, million, million + 2]
    assert optimize(one_task(cost)).units.tolist() == [0, 1, 0]
    budget = (row("limits.budget", million, cost),)
    assert optimize(one_task(cost, rows=budget)).units.tolist() == [0, 1, 0]
    assert optimize(one_task(cost, rows=(row("limits.budget", million - 1, cost),))).status == "infeasible"


def test_nothing_to_decide() -> None:
    """No solver is asked for a task without columns, or for no task at all."""
    answer = optimize(one_task([]))
    assert answer.status == "infeasible"
    assert "task" in answer.messages[0]
    empty = optimize(program([], cost=[]))
    assert (empty.status, empty.cost_microusd) == ("optimal", 0)


def test_bucket_that_no_column_serves_is_named() -> None:
    question = program(
        [Task(name="chat", kind="serving", first=0, stop=1, demand_micro_per_s=(5, 5))],
        cost=[1],
        replicas=[1],
        capacity_micro_per_s=[[9, 0]],
    )
    answer = optimize(question)
    assert answer.status == "infeasible"
    assert "chat" in answer.messages[0]
