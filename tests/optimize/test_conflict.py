"""The conflict set: infeasible as a whole, feasible without any one member."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.candidates.program import Task
from planner.optimize import conflict
from planner.optimize.conflict import find_conflict, groups_of, without_others
from planner.optimize.solve import optimize
from planner.optimize.status import Solution, Status
from tests.optimize.brute import best, random_program
from tests.optimize.instances import program, row
from tests.tiers import cases

TASKS = [Task(name=n, kind="training", first=f, stop=f + 2) for n, f in (("a", 0), ("b", 2), ("c", 4))]


def test_two_jobs_and_the_one_quota_between_them() -> None:
    """a and b need 3 nodes each of a quota of 5; c and the budget have nothing to do with it."""
    question = program(
        TASKS,
        cost=[3, 4, 5, 6, 1, 2],
        rows=(
            row("limits.budget", 100, [3, 4, 5, 6, 1, 2]),
            row("hardware.quotas[0]", 5, [3, 3, 3, 3, 0, 0]),
        ),
    )
    assert set(find_conflict(question).names) == {"a", "b", "hardware.quotas[0]"}


def test_rows_of_one_name_are_one_group() -> None:
    question = program(
        TASKS[:1],
        cost=[3, 4],
        rows=(row("limits.max_devices", 1, [2, 0]), row("limits.max_devices", 1, [0, 2])),
    )
    assert set(find_conflict(question).names) == {"a", "limits.max_devices"}


def test_provider_limit_is_a_member() -> None:
    question = program(TASKS[:2], cost=[3, 4, 5, 6], provider=[0, 0, 1, 1], max_providers=1)
    assert set(find_conflict(question).names) == {"a", "b", "limits.max_providers"}


def test_a_task_without_columns_is_the_conflict() -> None:
    tasks = [Task(name="a", kind="training", first=0, stop=2), Task(name="void", kind="training", first=2, stop=2)]
    assert find_conflict(program(tasks, cost=[1, 2], rows=(row("limits.budget", 9, [1, 2]),))).names == ("void",)


def test_feasible_has_no_conflict() -> None:
    found = find_conflict(program(TASKS, cost=[1, 2, 3, 4, 5, 6]))
    assert (found.names, found.minimal) == ((), True)


def test_random_conflicts_are_minimal_by_brute_force() -> None:
    seen = 0
    for seed in range(cases(20, 200)):
        question = random_program(seed)
        if best(question) is not None:
            continue
        names = find_conflict(question).names
        assert names, seed
        assert best(without_others(question, names)) is None, seed
        for name in names:
            rest = tuple(other for other in names if other != name)
            assert best(without_others(question, rest)) is not None, (seed, name)
        assert set(names) <= set(groups_of(question))
        seen += 1
    assert seen >= cases(5, 60)


def test_step_without_proof_is_flagged(monkeypatch: object) -> None:
    """A solver that runs out of time on every smaller set proves the whole, but nothing minimal."""
    question = program(TASKS[:2], cost=[3, 4, 5, 6], rows=(row("limits.budget", 7, [3, 4, 5, 6]),))

    def stopping(asked: object, **options: object) -> Solution:
        real = optimize(asked, **options)  # type: ignore[arg-type]
        if real.status is Status.INFEASIBLE and asked is not None and len(asked.rows) == 1 and len(asked.tasks) == 2:  # type: ignore[attr-defined]
            return real
        return replace(real, status=Status.STOPPED, units=np.zeros_like(real.units))

    monkeypatch.setattr(conflict, "optimize", stopping)  # type: ignore[attr-defined]
    found = find_conflict(question)
    assert (set(found.names), found.minimal) == ({"a", "b", "limits.budget"}, False)
