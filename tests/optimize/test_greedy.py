"""Plans made without a solver: real plans, most of the time, and not far off."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.candidates.program import Program, Task
from planner.optimize.check import violations
from planner.optimize.criteria import value_of
from planner.optimize.greedy import greedy_plan
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from tests.optimize.brute import best, random_program
from tests.optimize.brute_fleets import KINDS, best_fleet, random_fleet
from tests.optimize.brute_supplies import best_supplied, random_supplied
from tests.optimize.instances import program, row, static
from tests.tiers import cases


def costs(question: Program, units: np.ndarray) -> int:
    """Cost of a plan that is checked here."""
    assert not list(violations(scope_of(question), units))
    return int(value_of(question, units, "cost"))


def test_found_in_most_random_programs_and_never_where_there_is_none() -> None:
    there = found = 0
    for seed in range(cases(60, 150)):
        question = random_program(seed)
        expected, units = best(question), greedy_plan(scope_of(question))
        there += expected is not None
        if units is not None:
            assert expected is not None, seed
            costs(question, units)
            found += 1
    assert found >= 0.85 * there > 0


@pytest.mark.parametrize("kind", KINDS)
def test_fleets(kind: str) -> None:
    there = found = 0
    for seed in range(40):
        question = random_fleet(kind, seed)
        expected, units = best_fleet(question), greedy_plan(scope_of(question))
        there += expected is not None
        if units is not None:
            assert expected is not None, seed
            costs(question, units)
            found += 1
    assert found >= 0.5 * there > 0


def test_supplies_are_bought() -> None:
    there = found = 0
    for seed in range(80):
        question = random_supplied(seed)
        expected, units = best_supplied(question), greedy_plan(scope_of(question))
        there += expected is not None
        if units is not None:
            assert expected is not None, seed
            costs(question, units)
            found += 1
    assert found >= 0.6 * there > 0


def test_near_the_best_of_a_portfolio() -> None:
    question = static(20, 100)
    units = greedy_plan(scope_of(question))
    assert units is not None
    assert costs(question, units) <= 1.05 * optimize(question, cost_only=True).cost_microusd


def lasting(periods: int, busy: int) -> Program:
    """One job of 4 nodes in the first `busy` periods; a node costs 3 a period or 10 for all of them."""
    tasks = [
        Task(name="job", kind="training", first=0, stop=1),
        Task(name="~bought", kind="optional", first=1, stop=2 + periods),
    ]
    rows = []
    for period in range(periods):
        dense = np.zeros(2 + periods)
        dense[0], dense[1], dense[2 + period] = 4 * (period < busy), -1, -1
        rows.append(row(f"pool@{period}", 0, dense))
    return program(tasks, cost=[0, 10, *[3] * periods], max_units=[1, 9, *[9] * periods], rows=tuple(rows))


@pytest.mark.parametrize(("busy", "expected"), [(2, 24), (3, 36), (4, 40), (8, 40)])
def test_reserved_when_the_load_lasts(busy: int, expected: int) -> None:
    """2 or 3 periods on demand cost 6 or 9 a node, less than the 10 of a reservation; 4 cost more."""
    question = lasting(8, busy)
    units = greedy_plan(scope_of(question))
    assert units is not None
    assert costs(question, units) == expected == optimize(question).cost_microusd


def test_jobs_in_a_chain_wait_for_each_other() -> None:
    """Three jobs of two periods in a row, six periods: only one schedule works."""
    tasks = [Task(name=f"j{number}", kind="training", first=5 * number, stop=5 * number + 5) for number in range(3)]
    rows = []
    for before, after in itertools.pairwise(range(3)):
        dense = np.zeros(15)
        dense[5 * before : 5 * before + 5] = np.arange(5) + 2
        dense[5 * after : 5 * after + 5] = -np.arange(5)
        rows.append(row(f"{before}-{after}", 0, dense))
    question = program(tasks, cost=np.ones(15), max_units=np.ones(15), rows=tuple(rows))
    expected = np.zeros(15)
    expected[[0, 7, 14]] = 1
    assert optimize(question).units.tolist() == expected.tolist()
    units = greedy_plan(scope_of(question))
    assert units is None or units.tolist() == expected.tolist()
