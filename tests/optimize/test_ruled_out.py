"""A point that breaks a line by less than a solver can tell is ruled out, and no plan with it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.program import Program, Task
from planner.optimize.build import build
from planner.optimize.ruled_out import rule_out
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Ending, Options, Outcome
from tests.optimize.instances import program, row

LARGE = 10**7


def of_two(bound: int) -> Program:
    """Two kinds that are bought and one that makes room: x and y weigh against z in a line of large numbers."""
    tasks = [Task(name="~bought", kind="optional", first=0, stop=3)]
    return program(
        tasks, cost=[1, 1, 1], max_units=[3, 3, 3], rows=(row("limit", bound, [2 * LARGE + 1, 3 * LARGE, -LARGE]),)
    )


@pytest.mark.parametrize("bound", [2 * LARGE, 3 * LARGE - 1, 5 * LARGE])
def test_every_plan_is_kept_and_the_point_is_not(bound: int) -> None:
    """All points of a small program: those that the new lines leave are the plans, and others that break it more."""
    question = of_two(bound)
    scope, (limit,) = scope_of(question), question.rows
    for point in itertools.product(range(4), repeat=3):
        units, model = np.array(point), build(scope_of(question), "cost")
        terms = limit.coefficients * units
        close = 0 < terms.sum() - bound <= 1e-5 * max(abs(bound), abs(terms).max())
        assert rule_out(model, scope, units) == close
        if not close:
            continue
        left = [other for other in itertools.product(range(4), repeat=3) if _possible(model, np.array(other))]
        plans = [p for p in itertools.product(range(4), repeat=3) if np.dot(limit.coefficients, p) <= bound]
        assert point not in left
        assert set(plans) <= set(left)


def _possible(model, units) -> bool:  # type: ignore[no-untyped-def]
    """Whether some flags let these units keep every new line."""
    table, flags = model.table(), model.variable_count - 3
    lines = [n for n, kind in enumerate(table.kinds) if kind == "ruled"]
    for flagged in itertools.product((0, 1), repeat=flags):
        values = np.array([*units, *flagged], dtype=float)
        sums = [
            float(np.dot(table.coefficients[a:b], values[table.variables[a:b]]))
            for a, b in ((table.starts[n], table.starts[n + 1]) for n in lines)
        ]
        if all(table.low[n] <= total <= table.high[n] for n, total in zip(lines, sums)):
            return True
    return False


class Lax:
    """A solver that counts a limit as kept a little beyond it, as all do."""

    name, modelling, sure_of_infeasible = "lax", "none", True

    def __init__(self) -> None:
        self.asked = 0

    def run(self, model, options: Options) -> Outcome:  # type: ignore[no-untyped-def]
        """The best of all points of the model within a tolerance of one in ten million."""
        self.asked += 1
        table, best, least = model.table(), None, math.inf
        for point in itertools.product(*(range(int(most) + 1) for most in model.upper)):
            values = np.array(point, dtype=float)
            sums = np.add.reduceat(table.coefficients * values[table.variables], table.starts[:-1])
            size = 1e-6 * np.maximum(np.abs(sums), 1.0)
            cost = float(model.objective @ values)
            if cost < least and ((table.low - size <= sums) & (sums <= table.high + size)).all():
                best, least = values, cost
        ending = Ending.INFEASIBLE if best is None else Ending.OPTIMAL
        return Outcome(ending=ending, values=best, objective=None if best is None else least, bound=least)


def in_money(budget: int) -> Program:
    """Two jobs, each on one of two kinds: both on the better one take 45,925.926080 dollars, one 0.000003 less."""
    tasks = [Task(name=name, kind="training", first=2 * k, stop=2 * k + 2, count=1) for k, name in enumerate("ab")]
    limit = row("limits.budget", budget, [22_962_963_040, 22_962_963_037] * 2)
    return program(tasks, cost=[1, 3, 1, 3], max_units=[1] * 4, rows=(limit,))


@pytest.mark.parametrize(("budget", "status", "cost"), [
    (45_925_926_080, "optimal", 2), (45_925_926_079, "optimal", 4), (45_925_926_075, "optimal", 6),
    (45_925_926_073, "infeasible", 0),
])  # fmt: skip
def test_a_solver_is_asked_again_without_the_point(budget: int, status: str, cost: int) -> None:
    lax = Lax()
    answer = optimize(in_money(budget), adapters=[lax], cost_only=True)
    assert (answer.status, answer.cost_microusd) == (status, cost)
    assert not [text for text in answer.messages if "refused" in text]


def test_a_solver_that_is_far_off_is_refused() -> None:
    """No tolerance excuses it."""

    class Wrong(Lax):
        name = "wrong"

        def run(self, model, options: Options) -> Outcome:  # type: ignore[no-untyped-def]
            self.asked += 1
            values = np.array([1.0, 0.0, 1.0, 0.0])
            return Outcome(ending=Ending.OPTIMAL, values=values, objective=float(model.objective @ values))

    wrong, limit = Wrong(), row("limits.budget", 3, [2, 1, 2, 1])
    answer = optimize(replace(in_money(0), rows=(limit,)), adapters=[wrong], cost_only=True)
    assert answer.status == "failed"
    assert wrong.asked == 1
