"""Programs solved in parts: bounds below and plans above what trying everything finds, and equal where it says so."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from planner.optimize import improve as parts
from planner.optimize import large, neighbourhood
from planner.optimize.adapter import PulpAdapter
from planner.optimize.arrays import Mip, mip_of, relaxed, rounded, solved, tightened
from planner.optimize.build import build
from planner.optimize.check import judge, violations
from planner.optimize.model import Model
from planner.optimize.neighbourhood import group_of, label_of
from planner.optimize.scope import hopeless, scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Ending, Outcome, Status
from planner.optimize.wire import arrays_of, header_of
from planner.optimize.wire import model_of as received
from tests.optimize.brute_supplies import best_supplied, random_supplied
from tests.optimize.instances import ints, program, row
from tests.tiers import cases

NEAR = 1e-6


def cheapest_first(seed: int) -> Any:
    """A random calendar that asks for the least cost."""
    return replace(random_supplied(seed), objective=("cost",))


def cost_of(question: Any, units: Any) -> int:
    return sum(int(c) * int(u) for c, u in zip(question.cost_microusd, units))


def model_of(question: Any) -> Model | None:
    """The model of the cost; None where no way to run a task is left."""
    scope = scope_of(question)
    return None if hopeless(scope) else build(scope, "cost")


def calendar(jobs: int = 5, periods: int = 6, owned: int = 3, seed: int = 3) -> Any:
    """Jobs of 1 to 4 nodes that start when they like in two pools; one pool has nodes of its own."""
    from planner.candidates.program import Row, Task

    rng = np.random.default_rng(seed)
    tasks, cost, most, uses = [], [], [], {}
    for job in range(jobs):
        first = len(cost)
        for pool in range(2):
            nodes, length = int(rng.choice([1, 2, 4])), int(rng.integers(1, 4))
            for start in range(periods - length + 1):
                for period in range(start, start + length):
                    uses.setdefault((pool, period), []).append((len(cost), nodes))
                cost.append(0)
                most.append(1)
        tasks.append(Task(name=f"job{job}", kind="training", first=first, stop=len(cost)))
    first = len(cost)
    for pool in range(2):
        for period in range(periods):
            uses.setdefault((pool, period), []).append((len(cost), -1))
        cost.append(int(rng.integers(3, 5)) * periods * 1_000_000)
        most.append(40)
        for period in range(periods):
            uses[pool, period].append((len(cost), -1))
            cost.append(int(rng.integers(6, 9)) * 1_000_000)
            most.append(40)
    tasks.append(Task(name="~bought", kind="optional", first=first, stop=len(cost)))
    rows = []
    for (pool, period), entries in sorted(uses.items()):
        columns, coefficients = np.array(entries).T
        name = f"pool {pool} {period}"
        bound = owned * (pool == 0)
        rows.append(Row(name=name, label=name, bound=bound, columns=columns, coefficients=coefficients))
    return program(tasks, cost=cost, max_units=most, rows=tuple(rows))


@pytest.mark.parametrize("seed", range(80))
def test_lines_for_wide_columns_rule_no_plan_out(seed: int) -> None:
    question = cheapest_first(seed)
    model, units = model_of(question), best_supplied(question)
    if model is None or units is None:
        return
    mip = mip_of(model)
    tight = tightened(mip)
    plan = np.array(units)[model.columns]
    if len(plan) == mip.count:
        assert tight.holds(plan.astype(float))
    assert relaxed(tight).bound >= relaxed(mip).bound - NEAR * max(1.0, abs(relaxed(mip).bound))


def test_a_job_wider_than_what_is_owned_pays_for_the_rest() -> None:
    from planner.candidates.program import Task

    tasks = [
        Task(name="wide", kind="training", first=0, stop=2),
        Task(name="~bought", kind="optional", first=2, stop=4),
    ]
    rows = tuple(row(f"period {t}", 2, [4 * (t == 0), 4 * (t == 1), -(t == 0), -(t == 1)]) for t in range(2))
    question = program(tasks, cost=[0, 0, 5_000_000, 5_000_000], max_units=[1, 1, 9, 9], rows=rows)
    model = model_of(question)
    assert model is not None
    assert relaxed(mip_of(model)).bound == pytest.approx(0.0, abs=NEAR)  # half on each period's own nodes
    assert relaxed(tightened(mip_of(model))).bound / model.scale == pytest.approx(10_000_000)


@pytest.mark.parametrize("seed", range(80))
def test_lines_of_rounding_rule_no_plan_out(seed: int) -> None:
    """Those that a point of the relaxation breaks, and those that a random point does."""
    question = cheapest_first(seed)
    model, units = model_of(question), best_supplied(question)
    if model is None or units is None:
        return
    mip = mip_of(model)
    base = relaxed(mip)
    assert base.point is not None
    plan = np.array(units)[model.columns].astype(float)
    far = np.random.default_rng(seed).uniform(0, 1, mip.count) * mip.upper
    for point in (base.point, far):
        tight = rounded(mip, point)
        if tight is not None and len(plan) == mip.count:
            assert tight.holds(plan)
            assert not tight.holds(point)
            assert relaxed(tight).bound >= base.bound - NEAR * max(1.0, abs(base.bound))


def test_a_second_job_of_four_does_not_fit_on_seven_nodes() -> None:
    from planner.candidates.program import Task

    tasks = [Task(name=name, kind="training", first=2 * k, stop=2 * k + 2) for k, name in enumerate("abc")]
    rows = (row("owned", 7, [4, 0, 4, 0, 1, 0]),)
    cost = [0, 8_000_000, 0, 8_000_000, 0, 1_000_000]
    question = program(tasks, cost=cost, max_units=[1] * 6, rows=rows)
    model = model_of(question)
    assert model is not None
    mip = mip_of(model)
    base = relaxed(mip)
    assert base.point is not None
    assert base.bound / model.scale == pytest.approx(3_000_000)  # three quarters of one are there
    tight = rounded(mip, base.point)
    assert tight is not None
    assert relaxed(tight).bound / model.scale == pytest.approx(8_000_000)
    assert rounded(mip, np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])) is None


def test_pools_are_apart_and_jobs_tie_them() -> None:
    model = model_of(calendar())
    assert model is not None
    mip = mip_of(model)
    label, group = label_of(mip), group_of(mip)
    assert len(np.unique(label)) == 2
    assert len(np.unique(group[group >= 0])) == 5


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(60))
def test_all_steps_come_to_what_trying_everything_finds(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    monkeypatch.setattr(neighbourhood, "STALE", 3)
    question = cheapest_first(seed)
    model, units = model_of(question), best_supplied(question)
    if model is None:
        assert units is None
        return
    outcome = parts.improve(model, threads=threads)
    if units is None:
        assert outcome.ending is Ending.INFEASIBLE
        return
    assert outcome.ending is Ending.OPTIMAL
    found = judge(scope_of(question), model, outcome).units
    assert found is not None
    assert cost_of(question, found) == cost_of(question, units)


@pytest.mark.parametrize("seed", range(40))
def test_without_the_last_step_the_truth_lies_between(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    monkeypatch.setattr(neighbourhood, "STALE", 2)
    monkeypatch.setattr(parts._Work, "_whole", lambda work: None)
    question = cheapest_first(seed)
    model, units = model_of(question), best_supplied(question)
    if model is None or units is None:
        return
    outcome = parts.improve(model)
    best = cost_of(question, units) * model.scale
    size = NEAR * max(1.0, abs(best))
    assert outcome.bound is not None
    assert outcome.bound <= best + size
    if outcome.values is not None:
        assert outcome.objective >= best - size
        assert judge(scope_of(question), model, outcome).units is not None
    if outcome.ending is Ending.OPTIMAL:
        assert outcome.objective == pytest.approx(best, abs=size)


@pytest.mark.parametrize("seed", range(30))
def test_through_the_whole_pipeline(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)
    question = cheapest_first(seed)
    units = best_supplied(question)
    answer = optimize(question)
    assert answer.status is (Status.INFEASIBLE if units is None else Status.OPTIMAL)
    if units is not None:
        assert answer.units.tolist() == units  # ties and all


def test_arrays_from_the_wire_are_solved_whatever_the_order_of_their_entries() -> None:
    """They are read-only; the lines of fleets name their columns in no order."""
    model = model_of(calendar(owned=0))
    assert model is not None
    header, arrays = header_of(model), {name: array.copy() for name, array in arrays_of(model).items()}
    for first, end in pairwise(arrays["starts"]):
        for name in ("entries", "coefficients"):
            arrays[name][first:end] = arrays[name][first:end][::-1].copy()
    for array in arrays.values():
        array.setflags(write=False)
    here, there = parts.improve(model), parts.improve(received(header, arrays))
    assert here.ending is there.ending is Ending.OPTIMAL
    assert here.objective == pytest.approx(there.objective)


class Failing(PulpAdapter):
    """Cannot solve in parts."""

    def improve(self, model: Model, options: Any, start: Any) -> Outcome | None:
        return Outcome(ending=Ending.ERROR, detail="ValueError: of some kind")


def test_a_failure_to_solve_in_parts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)
    answer = optimize(calendar(), cost_only=True, adapters=[Failing(solver="highs")])
    assert answer.status is Status.OPTIMAL
    assert any("not solved in parts: ValueError: of some kind" in message for message in answer.messages)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_question_takes_the_same_work_to_the_same_answer(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    monkeypatch.setattr(neighbourhood, "STALE", 4)
    monkeypatch.setattr(neighbourhood, "FREE", 3)
    monkeypatch.setattr(parts._Work, "done", lambda work: False)
    monkeypatch.setattr(parts._Work, "_whole", lambda work: None)
    model = model_of(calendar(jobs=20, periods=10))
    assert model is not None
    first, second = parts.improve(model, threads=threads), parts.improve(model, threads=threads)
    assert first.values is not None
    assert second.values is not None
    assert first.values.tolist() == second.values.tolist()
    assert (first.bound, first.work, first.ending) == (second.bound, second.work, second.ending)
    assert first.work > 0


def test_no_neighbourhood_is_begun_when_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    monkeypatch.setattr(parts, "WORK", 1)
    monkeypatch.setattr(parts._Work, "_root", lambda work, *_: (work.mip, None))
    begun: list[int] = []
    monkeypatch.setattr(neighbourhood.Search, "_moved", lambda search, *rest: begun.append(1))
    model = model_of(calendar(jobs=12, periods=12))
    assert model is not None
    outcome = parts.improve(model)
    assert outcome.ending is Ending.WORK
    assert outcome.work > 1
    assert begun == []


def test_the_answer_says_on_what_it_depends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CutShort, "how", Ending.WORK, raising=False)
    monkeypatch.setattr(large, "LARGE", 1)
    monkeypatch.setattr(large, "greedy_plan", lambda scope, **_: None)
    answer = optimize(calendar(), cost_only=True, adapters=[CutShort(solver="highs")])
    assert (answer.status, answer.stopped_by) == (Status.FEASIBLE, "work-limit")
    assert any("for 1,234 iterations" in message and "every run" in message for message in answer.messages)
    monkeypatch.setattr(CutShort, "how", Ending.LIMIT)
    answer = optimize(calendar(), cost_only=True, adapters=[CutShort(solver="highs")])
    assert answer.stopped_by == "time-limit"
    assert any("for 1,234 iterations" in message and "the clock ended" in message for message in answer.messages)


def test_a_bad_start_gets_better_and_every_better_plan_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    monkeypatch.setattr(parts._Work, "_root", lambda work, *_: (work.mip, None))
    monkeypatch.setattr(parts._Work, "_whole", lambda work: None)
    question = calendar(jobs=8, periods=8)
    model = model_of(question)
    assert model is not None
    scope = scope_of(question)
    start = dearest(scope, question)[model.columns].astype(float)
    told: list[float] = []
    outcome = parts.improve(model, start=start, better=lambda values, value: told.append(value))
    assert told[0] == pytest.approx(float(model.objective @ start))
    assert told == sorted(told, reverse=True)
    assert outcome.objective == told[-1] < told[0]
    assert solved(mip_of(model)).value == pytest.approx(told[-1])


def dearest(scope: Any, question: Any) -> Any:
    """Every job on its last column, all of it bought on demand."""
    units = np.zeros(question.column_count, dtype=np.int64)
    for task in question.tasks[:-1]:
        units[task.stop - 1] = 1
    for limit in question.rows:
        lacking = int(limit.coefficients @ units[limit.columns]) - limit.bound
        last = limit.columns[limit.coefficients < 0][-1]
        units[last] += max(lacking, 0)
    assert not list(violations(scope, units))
    return units


def test_a_reservation_is_a_quantile_of_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a fixed load the best flat reservation is its (1 - fee / price) quantile (the newsvendor)."""
    monkeypatch.setattr(large, "LARGE", 1)
    from planner.candidates.program import Task

    rng = np.random.default_rng(5)
    for fee, price in ((3, 10), (6, 10), (9, 10), (5, 8)):
        load = rng.integers(0, 12, 20)
        periods = len(load)
        tasks = [Task(name=f"load{t}", kind="training", first=t, stop=t + 1) for t in range(periods)]
        tasks.append(Task(name="~bought", kind="optional", first=periods, stop=2 * periods + 1))
        rows = []
        for t in range(periods):
            dense = np.zeros(2 * periods + 1, dtype=np.int64)
            dense[t], dense[periods], dense[periods + 1 + t] = int(load[t]), -1, -1
            rows.append(row(f"period {t}", 0, dense))
        cost = [0] * periods + [fee * periods * 1_000_000] + [price * 1_000_000] * periods
        most = [1] * periods + [99] * (periods + 1)
        answer = optimize(program(tasks, cost=cost, max_units=most, rows=tuple(rows)), cost_only=True)
        totals = [fee * periods * r + price * int(np.maximum(load - r, 0).sum()) for r in range(13)]
        assert answer.cost_microusd == min(totals) * 1_000_000
        quantile = int(np.sort(load)[math.ceil(periods * (1 - fee / price)) - 1])
        assert totals[quantile] == min(totals)


class Broken(PulpAdapter):
    """Solves as it should, but what it makes of large programs is not a plan."""

    def improve(self, model: Model, options: Any, start: Any) -> Outcome | None:
        return Outcome(ending=Ending.OPTIMAL, values=np.zeros(model.variable_count), objective=0.0, bound=0.0)


class CutShort(PulpAdapter):
    """Is broken off with the dearest plan in hand."""

    def improve(self, model: Model, options: Any, start: Any) -> Outcome | None:
        units = dearest(scope_of(calendar()), calendar())[model.columns].astype(float)
        return Outcome(ending=self.how, values=units, objective=float(model.objective @ units), work=1234)


@pytest.mark.parametrize(
    ("how", "stopped_by"), [(Ending.INTERRUPT, "interrupt"), (Ending.HANG, "time-limit"), (Ending.LIMIT, "time-limit")]
)
def test_broken_off_the_plan_in_hand_is_kept(how: Ending, stopped_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)
    monkeypatch.setattr(large, "greedy_plan", lambda scope, **_: None)
    monkeypatch.setattr(CutShort, "how", how, raising=False)
    answer = optimize(calendar(), cost_only=True, adapters=[CutShort(solver="highs")])
    assert answer.status is Status.FEASIBLE
    assert answer.stopped_by == stopped_by
    assert answer.units.tolist() == dearest(scope_of(calendar()), calendar()).tolist()


def test_an_answer_that_does_not_stand_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)
    question = calendar()
    wrong = optimize(question, cost_only=True, adapters=[Broken(solver="highs")])
    right = optimize(question, cost_only=True)
    assert wrong.status is right.status is Status.OPTIMAL
    assert wrong.cost_microusd == right.cost_microusd


def test_cut_short_there_is_a_plan_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FEW", -1)
    model = model_of(calendar(jobs=12, periods=12))
    assert model is not None
    best = solved(mip_of(model))
    outcome = parts.improve(model, time_limit_s=0.5)
    assert outcome.bound is not None
    assert outcome.bound <= best.value * (1 + NEAR)
    if outcome.values is not None:
        assert outcome.objective >= best.value * (1 - NEAR)


def test_parts_keep_what_others_use() -> None:
    model = model_of(calendar())
    assert model is not None
    mip: Mip = mip_of(model)
    whole = solved(mip)
    assert whole.point is not None
    free = np.flatnonzero(group_of(mip) != group_of(mip)[0])
    part = mip.part(free, whole.point)
    again = solved(part)
    assert again.value + float(mip.cost @ np.where(np.isin(np.arange(mip.count), free), 0, whole.point)) == (
        pytest.approx(whole.value)
    )


def test_rows_with_most_of_a_job_do_not_join_pools() -> None:
    question = calendar()
    jobs = [task for task in question.tasks if task.kind == "training"]
    dense = np.zeros(question.column_count, dtype=np.int64)
    for sign, task in ((1, jobs[0]), (-1, jobs[1])):
        dense[task.first : task.stop] = sign * ints(range(1, task.stop - task.first + 1))
    tied = replace(question, rows=(*question.rows, row("after", 0, dense)))
    model = model_of(tied)
    assert model is not None
    assert len(np.unique(label_of(mip_of(model)))) == 2
    answer = optimize(tied, cost_only=True)
    assert answer.status is Status.OPTIMAL
    assert answer.cost_microusd >= optimize(question, cost_only=True).cost_microusd


def test_other_questions_are_answered_with_as_many_threads_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are solved with one thread each; HiGHS must still answer what comes before and after with two."""
    monkeypatch.setattr(large, "LARGE", 4)
    for seed in range(cases(2, 6)):
        answers = [optimize(random_supplied(seed), threads=threads) for threads in (2, 1)]
        assert answers[0].status is answers[1].status
        assert (answers[0].units == answers[1].units).all()
        assert not any("refused" in message for answer in answers for message in answer.messages)
