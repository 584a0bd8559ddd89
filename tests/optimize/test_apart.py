"""What workloads weigh alone in whole units: a bound at any prices, and units that no plan of a value can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.candidates.program import Program, Task
from planner.optimize.apart import apart_of
from planner.optimize.build import build
from planner.optimize.relax import relax, weigh
from planner.optimize.scope import scope_of
from planner.optimize.ways import Prices
from tests.optimize.brute import best, random_program
from tests.optimize.brute_boxed import best_boxed, random_boxed
from tests.optimize.brute_fleets import KINDS as FLEETS
from tests.optimize.brute_fleets import best_fleet, random_fleet
from tests.optimize.brute_supplies import best_supplied, random_supplied
from tests.optimize.instances import program, row
from tests.tiers import cases

KINDS: dict[str, tuple[Callable[[int], Program], Callable[[Program], Any]]] = {
    "plain": (random_program, lambda question: (best(question) or (None, None))[1]),
    "supplied": (random_supplied, best_supplied),
    "boxed": (random_boxed, best_boxed),
    **{
        kind: (lambda seed, kind=kind: random_fleet(kind, seed), best_fleet)  # type: ignore[misc]
        for kind in FLEETS
    },
}


def questions(kind: str, few: int, many: int) -> Iterator[tuple[Program, Any]]:
    """Random programs for the least cost, and the units of a plan that has it."""
    make, solve = KINDS[kind]
    for seed in range(cases(few, many)):
        question = replace(make(seed), objective=("cost",))
        units = solve(question)
        if units is not None:
            yield question, np.array(units)


@pytest.mark.parametrize("flows", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_no_plan_is_below_the_bound_nor_without_its_units(kind: str, flows: bool) -> None:
    rng, seen, closed, above = np.random.default_rng(3), 0, 0, 0
    for question, units in questions(kind, 25, 150):
        scope = scope_of(question)
        model = build(scope, "cost", flows=flows)
        relaxation = relax(model)
        if relaxation is None:
            continue
        value = float(question.cost_microusd @ units) * model.scale
        noise = relaxation.multipliers * rng.choice([0.0, 0.5, 1.0, 1.3], len(relaxation.multipliers))
        for multipliers in (relaxation.multipliers, noise):  # any prices make a bound
            weighed = weigh(model, multipliers, relaxation.point)
            assert weighed is not None
            apart = apart_of(question, model, weighed, Prices.of(model, weighed))
            assert apart is not None
            assert apart.bound <= value + 1e-6 * max(1.0, abs(value))
            highest = apart.highest(value, scope.upper[model.columns])
            assert (units[model.columns] <= highest).all(), question
            seen, closed = seen + 1, closed + int((highest < scope.upper[model.columns]).sum())
            above += apart.bound > weighed.bound * (1 + 1e-6) and multipliers is relaxation.multipliers
    assert seen >= cases(6, 40)
    assert closed > seen // 4
    assert above >= cases(0, 5)  # whole units prove more than parts of them


def test_two_replicas_by_hand() -> None:
    """Ten requests: 7 for six of them, 5 for four, 12 for ten: the line says 11.67, whole units 12; 9 for five no more.

    With one of the last 9 + 7 = 16 is the least, with one of the first 7 + 5 = 12.
    """
    task = Task(name="fleet", kind="serving", first=0, stop=4, demand_micro_per_s=(10,))
    rates = np.array([[6], [4], [10], [5]])
    question = program([task], cost=[7, 5, 12, 9], capacity_micro_per_s=rates, max_units=np.full(4, 9))
    model = build(scope_of(question), "cost")
    relaxation = relax(model)
    assert relaxation is not None
    assert relaxation.bound / model.scale == pytest.approx(70 / 6)
    apart = apart_of(question, model, relaxation, Prices.of(model, relaxation))
    assert apart is not None
    assert apart.bound / model.scale == pytest.approx(12)
    assert (apart.excess / model.scale).tolist() == pytest.approx([0, 0, 0, 4])
    assert apart.highest(12 * model.scale, np.full(4, 9)).tolist() == [1, 2, 1, 0]
    assert apart.highest(16 * model.scale, np.full(4, 9)).tolist() == [2, 3, 1, 1]


def test_what_nobody_buys_costs_what_buying_it_costs() -> None:
    """A node of four for 10 that the relaxation leaves alone: parts of it at no price would look like gifts."""
    fleet = Task(name="fleet", kind="serving", first=0, stop=2, demand_micro_per_s=(4,))
    nodes = Task(name="~nodes", kind="optional", first=2, stop=3)
    rates = np.array([[4], [4], [0]])
    question = program(
        [fleet, nodes],
        cost=[2, 1, 10],
        capacity_micro_per_s=rates,
        max_units=np.full(3, 9),
        rows=(row("shared", 0, [0, 1, -4]),),
    )
    model = build(scope_of(question), "cost")
    relaxation = relax(model)
    assert relaxation is not None
    carried = np.array([kind != "limit" for kind in model.table().kinds])
    relaxation = weigh(model, relaxation.multipliers * carried, relaxation.point)  # as a solver may leave it
    assert relaxation is not None
    apart = apart_of(question, model, relaxation, Prices.of(model, relaxation))
    assert apart is not None
    assert apart.bound / model.scale == pytest.approx(2)
    assert apart.excess[1] / model.scale == pytest.approx(1.5)  # a quarter of the node, and 1, less the 2
    assert apart.highest(2 * model.scale, np.full(3, 9))[1] == 0
