"""The pools of a fleet lie in one place: held against solving each place by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task, restrict
from planner.candidates.prune import prune
from planner.optimize.check import violations
from planner.optimize.places import apart, least_microusd, together
from planner.optimize.scope import scope_of
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import Status
from planner.scenario.load import parse_scenario
from tests.tiers import cases

PLACES = (1, 2, 3)


def random_pools(seed: int, *, fleets: int = 1) -> Program:
    """Fleets of one or two buckets; in each place some columns of either role, anywhere some of whole requests."""
    rng = np.random.default_rng(seed)
    buckets = int(rng.integers(1, 3))
    roles: list[int] = []
    places: list[int] = []
    tasks = []
    for number in range(fleets):
        first = len(roles)
        for role, place in [*product((PREFILL, DECODE), PLACES), (WHOLE, 0)]:
            for _ in range(int(rng.integers(0 if place == 3 else 1, 3))):
                roles.append(role)
                places.append(place)
        demand = tuple(int(rate) for rate in rng.integers(1, 12, buckets) * 1_000_000)
        tasks.append(Task(name=f"fleet-{number}", kind="serving", first=first, stop=len(roles), levels=(demand,),
                          demand_micro_per_s=demand, spare_replicas=int(rng.integers(0, 2))))  # fmt: skip
    count = len(roles)
    whole = np.array(roles) == WHOLE
    return Program(
        tasks=tuple(tasks),
        cost_microusd=rng.integers(50, 400, count) * 1_000_000 * np.where(whole, 3, 1),
        finish_s=np.zeros(count),
        carbon_mg=np.zeros(count, dtype=np.int64),
        nodes=np.ones(count, dtype=np.int64),
        replicas=np.ones(count, dtype=np.int64),
        capacity_micro_per_s=rng.integers(1, 5, (count, buckets)) * 1_000_000,
        max_units=np.full(count, 30, dtype=np.int64),
        provider=np.array(places, dtype=np.int64),
        offer=np.arange(count, dtype=np.int64),
        role=np.array(roles, dtype=np.int64),
        place=np.array(places, dtype=np.int64),
    )


def by_trying(program: Program, **given: Any) -> int | None:
    """The least cost over all choices of a place for each fleet, each solved without a word of places."""
    costs = []
    for chosen in product(PLACES, repeat=len(program.tasks)):
        kept = np.ones(program.column_count, dtype=bool)
        for task, place in zip(program.tasks, chosen):
            part = slice(task.first, task.stop)
            kept[part] = (program.place[part] == 0) | (program.place[part] == place)
        small, _ = restrict(program, kept)
        found = optimize(replace(small, place=np.zeros(small.column_count, dtype=np.int64)), **given)
        costs += [found.cost_microusd] if found.has_plan else []
    return min(costs, default=None)


def solved(program: Program, **given: Any) -> Solution:
    found = optimize(program, **given)
    assert not list(violations(scope_of(program), found.units)) or not found.has_plan
    return found


@pytest.mark.parametrize("fleets", [1, 2])
def test_pools_lie_in_the_cheapest_of_all_places(fleets: int) -> None:
    moved = 0
    for seed in range(cases(8, 150)):
        program = random_pools(seed, fleets=fleets)
        found, least = solved(program), by_trying(program)
        assert found.status is (Status.OPTIMAL if least is not None else Status.INFEASIBLE)
        if least is None:
            continue
        assert found.cost_microusd == found.bound_microusd == least
        anywhere = optimize(replace(program, place=np.zeros(program.column_count, dtype=np.int64)))
        assert anywhere.cost_microusd <= least
        moved += anywhere.cost_microusd < least
        for task in program.tasks:
            assert least_microusd(program, task, np.ones(program.column_count, dtype=bool)) <= anywhere.cost_microusd
    assert moved  # half a pool in each of two places would have been cheaper


def test_pools_in_two_places_are_no_plan() -> None:
    program = random_pools(1)
    apart_ = np.zeros(program.column_count, dtype=np.int64)
    for role, place in ((PREFILL, 1), (DECODE, 2)):
        apart_[np.flatnonzero((program.role == role) & (program.place == place))[0]] = 30
    assert any("pools in 2 places" in one for one in violations(scope_of(program), apart_))
    assert apart(program, program.place <= 1) is None


def test_a_limit_of_cost_and_a_limit_of_time_hold_over_all_places() -> None:
    program = random_pools(3)
    least = solved(program).cost_microusd
    assert solved(program, most_microusd=least).cost_microusd == least
    assert solved(program, most_microusd=least - 1).status is Status.INFEASIBLE
    late = solved(program, time_limit_s=0.0)
    assert late.status in (Status.FEASIBLE, Status.STOPPED, Status.OPTIMAL)
    assert late.bound_microusd is None or late.bound_microusd <= least


def test_places_that_were_not_looked_at_in_time_leave_a_plan_that_is_not_proven() -> None:
    for seed in range(6):
        program = random_pools(seed)
        whole = solved(program)
        asked: list[int | None] = []

        def solve(columns: Any, most: int | None, program: Program = program, asked: Any = asked) -> Solution:
            asked.append(most)
            return optimize(program, columns=columns, most_microusd=most)

        found = together(program, None, solve, lambda: True)
        assert len(asked) == 1
        assert whole.has_plan
        if found.status is Status.FEASIBLE:
            assert found.bound_microusd is not None
            assert found.bound_microusd <= whole.cost_microusd <= found.cost_microusd
        else:  # no other place could have been cheaper
            assert found.cost_microusd == whole.cost_microusd


def test_a_column_stands_in_for_none_of_another_place() -> None:
    """What is left after pruning holds the best plan: the cheapest decode of all is no use to a prefill elsewhere."""
    fewer = 0
    for seed in range(cases(30, 300)):
        program = random_pools(seed)
        program = replace(program, capacity_micro_per_s=program.capacity_micro_per_s // 2_000_000 * 2_000_000 + 10**6)
        mask = np.isin(np.arange(program.column_count), prune(program))
        fewer += not mask.all()
        assert solved(restrict(program, mask)[0]).cost_microusd == solved(program).cost_microusd, seed
    assert fewer


POOLS = """\
schema: plan/v1
name: pools
{more}
serving:
  - {{name: documents, model: gpt-oss-20b, requests: 2 /s, input_tokens: 500, output_tokens: 400,
     slo: {{tpot_p95: 60 ms}}, disaggregated: {pools}}}
  - {{name: chat, model: gpt-oss-20b, qpm: 60, input_tokens: 1500, output_tokens: 100, spare_replicas: 1}}
hardware: {{allow: ["h100-*", "a100-*"], regions: ["us-*"], assume_inter_node: 400 Gbit/s}}
"""


@pytest.mark.parametrize(
    ("pools", "more"), [("true", ""), ("auto", ""), ("true", "periods: 2 weeks\nhorizon: 4 weeks")]
)
def test_pools_lie_in_one_place_whatever_else_the_program_holds(pools: str, more: str) -> None:
    """Calendars and machines that fleets share dropped the places: pools apart, or an error of our own."""
    scenario = parse_scenario(POOLS.format(pools=pools, more=more), file="pools.yaml")
    candidates = api.enumerate_candidates(scenario)
    whole, first = candidates.whole, candidates.whole.tasks[0]
    part = slice(first.first, first.stop)
    assert (whole.role[part] != WHOLE).any()
    assert ((whole.place[part] > 0) == (whole.role[part] != WHOLE)).all()
    assert (candidates.shared is not None) == (pools == "auto")
    rows = api.solve(scenario, time_limit_s=60).document["workloads"][0]["allocations"]
    assert len({(row["provider"], row["region"]) for row in rows if row["role"] != "whole"}) == (pools == "true")


def test_a_program_whose_columns_are_not_of_one_length_is_none() -> None:
    program = random_pools(1)
    with pytest.raises(ValueError, match="place: "):
        replace(program, place=program.place[1:])
