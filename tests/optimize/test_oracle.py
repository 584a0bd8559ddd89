"""Small programs against trying everything: the cost to the micro-dollar and the very same plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.program import IntArray, restrict, task_of
from planner.candidates.prune import prune
from planner.optimize import stage, ways
from planner.optimize.enumerate import Walk
from planner.optimize.solve import optimize
from tests.optimize.brute import best, random_program, tolerance, value, with_ties
from tests.optimize.brute_supplies import best_supplied, random_supplied
from tests.tiers import cases

INSTANCES = cases(24, 200)
SUPPLIED = cases(10, 60)
FOUND = (50_004, 50_331)  # purchases that a criterion leaves out altogether


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_equals_brute_force(solver: str) -> None:
    """On Python 3.12 and newer CBC comes with the test extra: without it this fails, it never skips."""
    infeasible = 0
    for seed in range(INSTANCES):
        infeasible += _same_as_brute_force(seed, solver)
    assert 0.3 * INSTANCES <= infeasible <= 0.7 * INSTANCES


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("first", [1000, 23_150])
def test_equals_brute_force_without_walking(solver: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every criterion settled by solving, from the whole model and from the smallest first model."""
    monkeypatch.setattr(ways, "MOST_STEPS", 0)
    if first == 23_150:
        monkeypatch.setattr(stage, "WHOLE", 0)
        monkeypatch.setattr(stage, "BEST", 1)
    for seed in range(first, first + cases(7, 60)):
        _same_as_brute_force(seed, solver)


def _same_as_brute_force(seed: int, solver: str) -> bool:
    question = with_ties(seed)
    expected, answer = best(question), optimize(question, solver=solver, ties_s=60.0)
    if expected is None:
        assert answer.status == "infeasible", seed
        return True
    assert answer.status == "optimal", (seed, answer.messages)
    assert answer.cost_microusd == value(question, expected[1].tolist(), "cost"), seed
    least = answer.bound_microusd
    assert least is not None
    assert 0 <= answer.cost_microusd - least <= tolerance(question, least), seed
    np.testing.assert_array_equal(answer.units, expected[1], err_msg=str(seed))
    assert answer.messages == (), seed
    return False


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_supplies_equal_brute_force(solver: str) -> None:
    """Calendars with purchases, chains, pauses, copies of data: the very same plan, also after pruning."""
    infeasible = bought = 0
    for seed in (*range(SUPPLIED), *FOUND):
        question = random_supplied(seed)
        expected, kept = best_supplied(question), prune(question)
        small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
        for asked, indices in ((question, np.arange(question.column_count)), (small, kept)):
            answer = optimize(asked, solver=solver)
            assert answer.status == ("infeasible" if expected is None else "optimal"), (seed, answer.messages)
            if expected is not None:
                assert answer.messages == (), seed
                assert answer.units.tolist() == [expected[k] for k in indices], seed
        infeasible += expected is None
        if expected is not None:
            bought += any(expected[t.first : t.stop] for t in question.tasks if t.kind == "optional")
    assert 0.2 * SUPPLIED <= infeasible <= 0.7 * SUPPLIED
    assert bought > 0.2 * SUPPLIED


def test_flows_carry_every_bucket() -> None:
    """Routed requests sum to the demand of each bucket and no column carries more than its units can."""
    seen = 0
    for seed in range(cases(30, 120)):
        question = random_program(seed)
        answer = optimize(question)
        if not answer.has_plan:
            continue
        for task in question.tasks:
            part, buckets = slice(task.first, task.stop), len(task.demand_micro_per_s)
            if not buckets:
                continue
            flows = answer.flows[part, :buckets]
            np.testing.assert_allclose(flows.sum(axis=0), task.demand_micro_per_s, rtol=1e-6)
            capacity = question.capacity_micro_per_s[part, :buckets]
            load = np.where(flows > 0, flows / np.maximum(capacity, 1), 0.0).sum(axis=1)
            assert (load <= answer.units[part] * (1 + 1e-6)).all()
            seen += buckets > 1
    assert seen >= cases(2, 10)


def test_chains_without_purchases_equal_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of either sign among jobs alone, where the last step walks through plans: that way is taken, too."""
    walked = []
    inner = Walk.best

    def counted(self: Walk) -> IntArray | None:
        found = inner(self)
        walked.append(found is not None)
        return found

    monkeypatch.setattr(Walk, "best", counted)
    there = 0
    for seed in range(cases(450, 900)):
        whole = random_supplied(seed)
        if not any(r.name.startswith("after") for r in whole.rows):
            continue
        jobs = np.array([task.kind != "optional" for task in whole.tasks])[task_of(whole)]
        rows = tuple(replace(r, bound=r.bound + 2) if r.name.startswith("pool") else r for r in whole.rows)
        tasks = tuple(task for task in whole.tasks if task.kind != "optional")
        question = restrict(replace(whole, rows=rows, tasks=tasks), jobs)[0]
        expected, answer = best_supplied(question), optimize(question)
        assert answer.status == ("infeasible" if expected is None else "optimal"), seed
        if expected is not None:
            assert answer.units.tolist() == expected, seed
            there += 1
    assert min(sum(walked), there) >= cases(7, 15)
