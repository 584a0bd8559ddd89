"""One program of several cases against trying every set of contracts; costs at risk against their definition."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner.analysis.uncertain import choose_contracts, cost_at_risk, mean_cost, with_contracts
from planner.candidates.calendar import CONTRACT, ON_DEMAND, Calendar, Pool, Purchase
from planner.candidates.cases import Case, Risk, combine
from planner.candidates.program import Task
from planner.optimize.solve import optimize
from tests.optimize.instances import ints, program, row

PERIODS = 3


def offer(name: str) -> Any:
    return SimpleNamespace(id=name, provider="p")


def case(name: str, probability: Fraction, loads: list[int], fee: int, price: int, own: int = 0) -> Case:
    """A fleet that needs so many nodes in each period; nodes by contract for all periods, or on demand for one."""
    pool = Pool(provider="p", region="r", zone="", shape="s", contracts=(), on_demand=None)
    purchases = [
        None,
        Purchase(kind=CONTRACT, offer=offer("contract")),
        *(Purchase(kind=ON_DEMAND, offer=offer("hour")) for _ in range(PERIODS)),
    ]
    tasks = [
        Task(name="job", kind="training", first=0, stop=1),
        Task(name="purchases", kind="optional", first=1, stop=2 + PERIODS),
    ]
    rows = tuple(
        row(f"pool@{t}", own, [load, -1, *(-int(other == t) for other in range(PERIODS))])
        for t, load in enumerate(loads)
    )
    question = program(tasks, cost=[0, fee, *([price] * PERIODS)], max_units=[1, 9, *([9] * PERIODS)], rows=rows)
    calendar = Calendar(
        period_s=3600.0,
        periods=PERIODS,
        horizon_s=3600.0 * PERIODS,
        start=ints([0, 0, *range(PERIODS)]),
        stop=ints([PERIODS, PERIODS, *range(1, PERIODS + 1)]),
        pool=ints([0, *([0] * (PERIODS + 1))]),
        pausable=np.zeros(2 + PERIODS, dtype=bool),
        pools=(pool,),
        purchases=tuple(purchases),
    )
    table = SimpleNamespace(sites=(SimpleNamespace(offer=offer("reserved")),))
    candidates: Any = _Candidates(
        program=question, calendar=calendar, tables={"job": table}, rows=ints([0, -1, -1, -1, -1])
    )
    return Case(name=name, probability=probability, candidates=candidates)


class _Candidates(SimpleNamespace):
    cut: tuple[str, ...] = ()
    shared = whole_shared = None


def cost_of(loads: list[int], reserved: int, fee: int, price: int) -> int:
    return fee * reserved + price * sum(max(load - reserved, 0) for load in loads)


def random_cases(seed: int) -> tuple[list[Case], list[list[int]], list[Fraction], int, int]:
    rng = np.random.default_rng(seed)
    price = int(rng.integers(1, 6)) * 1_000_000
    fee = int(rng.integers(1, 3 * PERIODS)) * 1_000_000
    parts = rng.integers(1, 9, int(rng.integers(2, 5)))
    shares = [Fraction(int(part), int(parts.sum())) for part in parts]
    loads = [rng.integers(0, 7, PERIODS).tolist() for _ in parts]
    cases = [case(f"c{i}", share, load, fee, price) for i, (share, load) in enumerate(zip(shares, loads))]
    return cases, loads, shares, fee, price


@pytest.mark.parametrize("seed", range(25))
def test_contracts_of_least_expected_cost_against_every_number_of_them(seed: int) -> None:
    cases, loads, shares, fee, price = random_cases(seed)
    combined = combine(cases)
    solution = optimize(combined.program, cost_only=True)
    tried = [
        mean_cost(shares, [cost_of(load, reserved, fee, price) for load in loads]) or Fraction(0)
        for reserved in range(10)
    ]
    assert solution.cost_microusd / combined.scale == min(tried)


@pytest.mark.parametrize("seed", range(25))
def test_contracts_that_weigh_risk_against_every_number_of_them(seed: int) -> None:
    cases, loads, shares, fee, price = random_cases(seed)
    risk = Risk(level=Fraction(3, 4), weight=Fraction(1, 2))
    combined = combine(cases, risk)
    solution = optimize(combined.program, cost_only=True)

    def weighed(reserved: int) -> Fraction:
        costs = [cost_of(load, reserved, fee, price) for load in loads]
        return (mean_cost(shares, costs) or Fraction(0)) / 2 + cost_at_risk(shares, costs, risk.level) / 2

    reached = solution.cost_microusd / combined.scale
    best = min(weighed(reserved) for reserved in range(10))
    assert best <= reached <= best + combined.rounding
    chosen = int(solution.units[combined.shared[0]])
    assert weighed(chosen) <= best + combined.rounding


def test_a_case_with_the_contracts_of_all_takes_them_as_they_are() -> None:
    cases, loads, _, fee, price = random_cases(3)
    chosen = choose_contracts(cases, None)
    held = sum(chosen.held.values())
    for one, load in zip(cases, loads):
        fixed: Any = SimpleNamespace(**vars(one.candidates))
        fixed.program = _fixed_program(one.candidates, chosen.held)
        assert optimize(fixed.program, cost_only=True).cost_microusd == cost_of(load, held, fee, price)


def _fixed_program(candidates: Any, held: Any) -> Any:
    from dataclasses import dataclass, field

    @dataclass(frozen=True)
    class Plain:
        program: Any
        calendar: Any
        tables: Any = field(default_factory=dict)
        rows: Any = None

    plain: Any = Plain(program=candidates.program, calendar=candidates.calendar)
    return with_contracts(plain, held).program


def test_the_reservation_is_a_quantile_of_the_load() -> None:
    """Newsvendor: with a fee of 2 against 3 periods at 1, a node is reserved when it is used in 2 of them or more."""
    loads = [5, 3, 1]
    combined = combine([case("only", Fraction(1), loads, 2_000_000, 1_000_000)])
    solution = optimize(combined.program, cost_only=True)
    assert int(solution.units[combined.shared[0]]) in (1, 2, 3)
    assert solution.cost_microusd == min(cost_of(loads, r, 2_000_000, 1_000_000) for r in range(6))


def test_cost_at_risk_is_the_least_over_all_thresholds() -> None:
    """CVaR = min over eta of eta + E max(cost - eta, 0) / (1 - level), at a cost of some case."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        costs = rng.integers(0, 100, 4).tolist()
        parts = rng.integers(1, 9, 4)
        shares = [Fraction(int(part), int(parts.sum())) for part in parts]
        level = Fraction(int(rng.integers(0, 10)), 10)
        least = min(
            eta + sum((share * max(cost - eta, 0) for share, cost in zip(shares, costs)), Fraction(0)) / (1 - level)
            for eta in costs
        )
        assert cost_at_risk(shares, costs, level) == least


def test_tasks_and_rows_of_cases_have_names_of_their_own() -> None:
    cases, *_ = random_cases(0)
    combined = combine(cases)
    names = [one.name for one in (*combined.program.tasks, *combined.program.rows)]
    assert len(names) == len(set(names))
    stops = [(task.first, task.stop) for task in combined.program.tasks]
    assert all(stop == first for (_, stop), (first, _) in itertools.pairwise(stops))
