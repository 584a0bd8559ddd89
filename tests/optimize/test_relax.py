"""What a relaxation proves: a bound, and units that no plan of a value can have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.program import Program, Row, Task
from planner.optimize.build import build
from planner.optimize.limited import Asker
from planner.optimize.relax import Relaxation, relax
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from tests.optimize.brute import best, random_program
from tests.optimize.brute_supplies import best_supplied, random_supplied
from tests.optimize.instances import program, row
from tests.tiers import cases


@pytest.mark.parametrize("supplied", [False, True])
def test_best_plan_survives_and_costs_no_less_than_the_bound(supplied: bool) -> None:
    seen = closed = 0
    for seed in range(cases(30, 120)):
        question = replace(random_supplied(seed) if supplied else random_program(seed), objective=("cost",))
        found = best_supplied(question) if supplied else (best(question) or (None, None))[1]
        if found is None:
            continue
        scope = scope_of(question)
        model = build(scope, "cost")
        relaxation = relax(model)
        if relaxation is None:
            continue
        units = np.array(found)
        value = float(question.cost_microusd @ units) * model.scale
        assert relaxation.bound <= value * (1 + 1e-9) + 1e-9, seed
        highest = relaxation.highest(value, len(model.columns))
        assert (units[model.columns] <= highest + 1e-9).all(), seed
        assert not units[scope.upper == 0].any(), seed
        seen, closed = seen + 1, closed + int((highest < model.upper[: len(highest)]).sum())
    assert seen > cases(6, 30)
    assert closed > seen


def test_tiny_and_huge_reduced_costs_raise_no_warning() -> None:
    reduced = np.array([0.0, -5.0, 5e-324, 1e-300, 1e-9, 2.0, 1e300])
    upper = np.array([3.0, 3.0, 3.0, 1e9, 1e9, 9.0, 9.0])
    relaxation = Relaxation(
        bound=10.0,
        multipliers=np.zeros(0),
        reduced=reduced,
        upper=upper,
        support=np.zeros(0, dtype=np.int64),
        point=np.zeros(7),
        size=0.0,
    )
    with np.errstate(all="raise", under="ignore"):
        assert relaxation.highest(15.0, 7).tolist() == [3.0, 3.0, 3.0, 1e9, 1e9, 2.0, 0.0]
        assert relaxation.highest(5.0, 7).tolist() == [3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_bound_of_a_knapsack_by_hand() -> None:
    """Three units, two at most on the column of 3; the other costs 5: 2 * 3 + 5 = 11 is also the relaxation's value."""
    task = Task(name="job", kind="training", first=0, stop=2, count=3)
    model = build(scope_of(program([task], cost=[3, 5], rows=(row("quota", 2, [1, 0]),))), "cost")
    relaxation = relax(model)
    assert relaxation is not None
    assert relaxation.bound / model.scale == pytest.approx(11)
    assert relaxation.highest(11 * model.scale, 2).tolist() == [2.0, 3.0]


def test_a_budget_is_told_by_what_costs_least() -> None:
    """Of costs near it that was slow to tell; the answers are those of the program with the row."""
    rng = np.random.default_rng(5)
    for _ in range(cases(15, 200)):
        ways = 6
        cost, rate = rng.integers(3, 40, ways), rng.integers(2, 30, ways)
        task = Task(name="fleet", kind="serving", first=0, stop=ways, demand_micro_per_s=(int(rng.integers(20, 90)),))
        zeros, columns = np.zeros(ways, dtype=np.int64), np.arange(ways)
        free = Program(
            tasks=(task,), cost_microusd=cost, finish_s=np.zeros(ways), carbon_mg=zeros, nodes=zeros + 1,
            replicas=zeros + 1, capacity_micro_per_s=rate[:, None], max_units=zeros + 90, provider=zeros,
            offer=columns,
        )  # fmt: skip
        least = optimize(free).cost_microusd
        for bound in (least - 1, least, least + 1):
            row = Row(name="limits.budget", label="budget", bound=bound, columns=columns, coefficients=cost)
            limited = replace(free, rows=(row,))
            asker = Asker()
            assert asker.any_plan(limited).has_plan == asker.cheapest(limited).has_plan == (bound >= least)
            assert asker.cheapest(limited).cost_microusd == (least if bound >= least else 0)
