"""Every row kind of a fleet against trying everything, with both solvers and after pruning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.candidates.program import restrict
from planner.candidates.prune import prune
from planner.optimize import fleet, stage
from planner.optimize.situations import Cut
from planner.optimize.solve import optimize
from tests.optimize.brute_fleets import KINDS, best_fleet, random_fleet
from tests.optimize.instances import permuted, within_tasks
from tests.tiers import cases

INSTANCES = cases(6, 100)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_brute_force(kind: str) -> None:
    """With HiGHS, with CBC, and without the columns that are dominated: the very same plan."""
    infeasible = dropped = 0
    for seed in range(INSTANCES):
        question = random_fleet(kind, seed)
        expected = best_fleet(question)
        kept = prune(question)
        small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
        dropped += question.column_count - len(kept)
        answers = [optimize(question), optimize(question, solver="cbc"), optimize(small)]
        if expected is None:
            infeasible += 1
            assert [answer.status for answer in answers] == ["infeasible"] * 3, (seed, answers)
            continue
        assert [answer.status for answer in answers] == ["optimal"] * 3, (seed, [a.messages for a in answers])
        assert answers[0].units.tolist() == list(expected), seed
        assert answers[1].units.tolist() == list(expected), seed
        assert answers[2].units.tolist() == [expected[k] for k in kept], seed
        assert sum(expected[k] for k in range(len(expected)) if k not in kept) == 0, seed
        assert answers[0].messages == (), seed
    assert 0.1 * INSTANCES <= infeasible <= 0.85 * INSTANCES
    assert dropped >= cases(0, 1)  # of few instances of some kinds every column is kept


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("slices", "spot")])
@pytest.mark.parametrize("flows", [True, False])
def test_equals_brute_force_by_learned_lines(kind: str, flows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What large fleets do: losses, and without `flows` routings too, are learned as lines of prices."""
    monkeypatch.setattr(fleet, "COPIES", -1)
    if not flows:
        monkeypatch.setattr(stage, "ROUTED", 0)
    for seed in range(1000, 1000 + cases(3, 40)):
        question = random_fleet(kind, seed)
        expected, answer = best_fleet(question), optimize(question)
        assert answer.status == ("infeasible" if expected is None else "optimal"), (seed, answer.messages)
        if expected is not None:
            assert answer.units.tolist() == list(expected), seed
            assert answer.messages == (), seed


def test_plans_are_listed_and_equal_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plans that the lines allow are walked through: the very same plan, and that way is taken."""
    monkeypatch.setattr(fleet, "COPIES", -1)
    listed = []
    inner = stage.Run._list

    def counted(*arguments: Any) -> Any:
        found = inner(*arguments)
        listed.append(found is not None)
        return found

    monkeypatch.setattr(stage.Run, "_list", counted)
    for kind in ("spares", "domains", "levels", "roles"):
        for seed in range(3000, 3000 + cases(7, 40)):
            question = replace(random_fleet(kind, seed), rows=())
            expected, answer = best_fleet(question), optimize(question)
            assert answer.status == ("infeasible" if expected is None else "optimal"), (kind, seed, answer.messages)
            if expected is not None:
                assert answer.units.tolist() == list(expected), (kind, seed)
    assert sum(listed) > cases(3, 20)


@pytest.mark.parametrize("kind", KINDS)
def test_plans_that_cost_too_much_are_not_looked_for(kind: str) -> None:
    """With the least cost as the most there is a plan, with a micro-dollar less there is none."""
    for seed in range(4000, 4000 + cases(2, 20)):
        question = random_fleet(kind, seed)
        answer = optimize(question)
        if answer.status != "optimal" or question.objective[0] != "cost":
            continue
        same = optimize(question, cost_only=True, most_microusd=answer.cost_microusd)
        assert (same.status, same.cost_microusd) == ("optimal", answer.cost_microusd), seed
        assert optimize(question, cost_only=True, most_microusd=answer.cost_microusd - 1).status == "infeasible", seed


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_columns_does_not_matter(kind: str) -> None:
    for seed in range(2000, 2000 + cases(2, 15)):
        question = random_fleet(kind, seed)
        order = within_tasks(question, np.random.default_rng(seed))
        first, second = optimize(question), optimize(permuted(question, order))
        assert first.status == second.status
        assert first.units[order].tolist() == second.units.tolist(), seed


def test_a_line_with_a_loss_is_another_than_the_same_without_it() -> None:
    """Taken for one, a point that breaks the second was refused as breaking what it was given, by every solver."""
    alone = Cut(task="f", columns=np.arange(2), earnings=(3, 2), need=4)
    assert alone.key != replace(alone, spares=1).key
    assert alone.key == replace(alone, lossless=True).key


def test_roomy_columns_are_dominated_under_a_share_on_spot() -> None:
    """None was, where requests are of several kinds: of one fleet 2,808 columns were left, and solved for minutes."""
    dropped = 0
    for seed in range(cases(40, 400)):
        drawn = random_fleet("spot", seed)
        if drawn.column_count > 4:
            continue
        question = replace(drawn, max_units=np.full(drawn.column_count, 6, dtype=np.int64))
        kept, several = prune(question), len(question.tasks[0].demand_micro_per_s) > 1
        dropped += several and question.column_count - len(kept)
        best = best_fleet(question) if len(kept) < question.column_count else None
        assert best is None or not any(best[k] for k in range(len(best)) if k not in kept), seed
    assert dropped > 0
