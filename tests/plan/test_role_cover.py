"""Fleets with pools: what proves them best, beside every plan of small ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task
from planner.optimize.solve import optimize
from planner.plan.cover import UNMET
from planner.plan.role_cover import least_by_role
from tests.tiers import cases


def pools(rng: np.random.Generator, *, spare: int) -> Program:
    """Two columns of each role, the pools in one or two places, and one bucket of requests."""
    roles = np.array([WHOLE, WHOLE, PREFILL, PREFILL, DECODE, DECODE])
    place = np.where(roles == WHOLE, 0, 1 + rng.integers(0, 2, 6))
    replicas = rng.integers(1, 3, 6)
    task = Task(name="f", kind="serving", first=0, stop=6, demand_micro_per_s=(int(rng.integers(8, 30)),),
                spare_replicas=spare)  # fmt: skip
    zero = np.zeros(6, dtype=np.int64)
    return Program(
        tasks=(task,),
        cost_microusd=rng.integers(10_000, 60_000, 6) * np.where(roles == WHOLE, 2, 1),
        finish_s=np.zeros(6),
        carbon_mg=zero,
        nodes=zero + 1,
        replicas=replicas,
        capacity_micro_per_s=(rng.integers(3, 14, 6) * replicas)[:, None],
        max_units=rng.integers(1, 4, 6),
        provider=zero,
        offer=np.arange(6),
        role=roles,
        place=place,
    )


def least(program: Program) -> int | None:
    """The cheapest units that carry the demand, whatever replicas of one type are lost; by trying all."""
    (task,) = program.tasks
    rates, role, place = program.capacity_micro_per_s[:, 0], program.role, program.place
    best = None
    for units in product(*(range(most + 1) for most in program.max_units.tolist())):
        used = np.array(units)
        cost = int(used @ program.cost_microusd)
        if (best is not None and cost >= best) or len(set(place[(used > 0) & (role != WHOLE)])) > 1:
            continue
        losses = [np.zeros(6)] + [
            np.eye(6)[k] * min(task.spare_replicas, used[k] * program.replicas[k]) * rates[k] / program.replicas[k]
            for k in np.flatnonzero(used)
            if task.spare_replicas
        ]
        carried = all(
            (used * rates - loss)[(role == WHOLE) | (role == side)].sum() >= task.demand_micro_per_s[0]
            for loss in losses
            for side in (PREFILL, DECODE)
        )
        # of a type in use there are as many replicas as may be lost
        enough = all(used[k] * program.replicas[k] >= task.spare_replicas for k in np.flatnonzero(used))
        if carried and enough:
            best = cost
    return best


@pytest.mark.parametrize(("spare", "share"), [(0, 1.0), (1, 0.8), (2, 0.4)])
def test_no_plan_weighs_less_and_most_are_reached(spare: int, share: float) -> None:
    """What replicas of whole requests and pools stand by for each other is bounded by the least that a loss takes."""
    reached = plans = 0
    for seed in range(cases(40, 600)):
        program = pools(np.random.default_rng(1000 * spare + seed), spare=spare)
        (task,) = program.tasks
        weights, upper = program.cost_microusd.astype(object), np.array(program.max_units)
        cost = least(program)
        coarse, bound = (least_by_role(program, task, weights, upper, (price,), UNMET) for price in (1, 1024))
        if cost is None:
            continue
        assert coarse <= bound <= cost, seed
        plans += 1
        reached += bound == cost
    assert plans > cases(20, 300)
    assert reached >= share * plans, (reached, plans)


def test_the_search_finds_the_same_plans() -> None:
    for seed in range(cases(10, 100)):
        program = pools(np.random.default_rng(seed), spare=seed % 2)
        answer = optimize(program, cost_only=True)
        assert (answer.cost_microusd if answer.has_plan else None) == least(program), seed
