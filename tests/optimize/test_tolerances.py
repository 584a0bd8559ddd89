"""A "no" of HiGHS is asked again: its presolve has been wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.candidates.program import Task
from planner.optimize.solve import optimize
from tests.optimize.instances import ints, program, row

COST = ints([22962963040, 45925926079, 45925926078, 7654321013, 22962963039])


def question(budget: int):  # type: ignore[no-untyped-def]
    fleet = Task(name="t0", kind="serving", first=0, stop=1, demand_micro_per_s=(6,), min_replicas=3)
    jobs = Task(name="t1", kind="training", first=1, stop=5, count=3)
    limits = (row("limits.power", 74202, [7116, 35768, 3963, 8242, 34836]), row("limits.budget", budget, COST))
    return replace(
        program([fleet, jobs], cost=COST, replicas=[3, 0, 0, 0, 0], max_units=[1, 2, 1, 1, 1], rows=limits),
        capacity_micro_per_s=np.array([[15], [0], [0], [0], [0]]),
    )


def test_a_program_that_has_a_plan_is_not_called_infeasible() -> None:
    """1 + 0 + 1 + 1 + 1 costs 99,506,173,170; HiGHS 1.15.1 at 1e-9 says that nothing costs at most 122,469,136,209."""
    for budget in (99_506_173_170, 122_469_136_209):
        answer = optimize(question(budget))
        assert (answer.status, answer.cost_microusd) == ("optimal", 99_506_173_170)


def test_one_microdollar_less_is_infeasible() -> None:
    assert optimize(question(99_506_173_169)).status == "infeasible"


def test_presolve_is_not_believed() -> None:
    """1 + 1 + 1 costs 91,851,852,158; with presolve HiGHS 1.15.1 says that nothing costs at most 137,777,778,235."""
    cost = ints([30617284052, 7654321014, 53580247092])
    jobs = Task(name="t", kind="training", first=0, stop=3, count=3)
    limits = (row("quota", 8, [1, 0, 2]), row("limits.budget", 137_777_778_235, cost))
    asked = program([jobs], cost=cost, carbon_mg=[0, 4, 0], max_units=[1, 1, 3], rows=limits, objective=("carbon",))
    answer = optimize(asked)
    assert (answer.status, answer.units.tolist()) == ("optimal", [1, 1, 1])
