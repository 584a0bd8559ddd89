"""One plan whatever the seed, the solver, its threads and the order of the input.

All instances and runs: ``python benchmarks/determinism.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.optimize import lexicographic, stage
from planner.optimize.adapter import PulpAdapter
from planner.optimize.build import build
from planner.optimize.check import judge
from planner.optimize.model import Model
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Options, Outcome
from tests.optimize.ties import Facts, facts, shuffled, tied
from tests.tiers import cases

RUNS = (("highs", 0), ("highs", 7), ("cbc", 0), ("cbc", 3))  # solver and seed
INSTANCES = 25
Plans = dict[int, set[tuple[str, Facts]]]


def plans_with(threads: int, step: int = 1) -> Plans:
    """Plans of every instance, or of some, found in several ways."""
    plans: Plans = {}
    for number in range(0, INSTANCES, step):
        for solver, seed in RUNS:
            asked = shuffled(tied(number), (number, seed, threads))
            answer = optimize(asked, solver=solver, threads=threads, seed=seed)
            assert answer.status == "infeasible" or answer.messages == (), number
            plans.setdefault(number, set()).add((answer.status, facts(asked, answer.units)))
    return plans


@pytest.fixture(scope="module")
def with_one_thread() -> Plans:
    return plans_with(1)


def test_one_plan(with_one_thread: Plans) -> None:
    assert {number: len(found) for number, found in with_one_thread.items()} == dict.fromkeys(range(INSTANCES), 1)
    assert sum(status == "optimal" for found in with_one_thread.values() for status, _ in found) >= 15


def test_the_same_with_two_threads(with_one_thread: Plans) -> None:
    found = plans_with(2, cases(5, 1))
    assert found == {number: with_one_thread[number] for number in found}


def test_ties_are_many() -> None:
    """The instances are what they should be: left to the solver, orders and seeds give different plans."""
    several = 0
    for number in range(15):
        plans = set()
        for seed in range(4):
            asked = shuffled(tied(number), (number, seed))
            scope = scope_of(asked)
            if not len(scope.open):
                continue
            model = build(scope, "cost")
            verdict = judge(scope, model, PulpAdapter(solver="highs").run(model, Options(seed=seed)))
            if verdict.units is not None:
                plans.add(facts(asked, verdict.units))
        several += len(plans) > 1
    assert several >= 5


class Clock:
    """Stands still but for what each run of a solver is said to take."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Slow:
    """A solver that takes its time by that clock.  [s]"""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.inner = clock, seconds, PulpAdapter(solver="highs")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, model: Model, options: Options) -> Outcome:
        self.clock.now += self.seconds
        return self.inner.run(model, options)


@pytest.mark.parametrize("work", [lexicographic.WORK_PER_S, 24.0, 1.0], ids=["all told", "some", "none"])
def test_how_far_ties_are_told_apart_is_no_matter_of_the_clock(monkeypatch: pytest.MonkeyPatch, work: float) -> None:
    """Five questions after the cost; where each takes 0.4 of the second for ties, as far as where it takes none."""
    monkeypatch.setattr(lexicographic, "WORK_PER_S", work)
    found = set()
    for seconds in (0.0, 0.4):
        clock = Clock()
        for module in (lexicographic, stage):
            monkeypatch.setattr(module, "time", clock)
        answer = optimize(tied(14), adapters=[Slow(clock, seconds)], ties_s=1.0)
        found.add((answer.status, answer.messages, facts(tied(14), answer.units)))
    ((_, messages, _),) = found
    assert bool(messages) == (work < 80)
