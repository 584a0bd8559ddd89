"""Sweeps of random programs against all their plans: every Pareto point, no other, each by the tie rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.analysis.frontier.points import front
from planner.analysis.frontier.sweep import TOO_CLOSE, Point, Trade, best_under, columns_for, steps
from planner.candidates.program import IntArray, Program, restrict
from planner.optimize.solve import optimize
from tests.frontier.brute import all_plans, pareto, small, with_times
from tests.optimize.brute import key_of, random_program, value
from tests.tiers import cases

PAIRS = [("time", "cost"), ("cost", "time"), ("carbon", "cost"), ("cost", "carbon"), ("time", "carbon")]
SWEEPS = cases(40, 100)


def narrowed(program: Program, trade: Trade, kept: IntArray) -> tuple[Program, Trade]:
    """The program and the trade with only the columns kept."""
    mask = np.isin(np.arange(program.column_count), kept)
    return restrict(program, mask)[0], replace(trade, ends_s=trade.ends_s[mask])


def undominated(points: list[Point]) -> list[Point]:
    """Points, the lowest of the held objective first, as a frontier keeps them."""
    records: list[Any] = [{"point": point, "over": point.over, "against": point.against} for point in points]
    return [record["point"] for record in front(records)]


def sweep(question: Program, trade: Trade, low: Any, high: Any) -> list[Point]:
    """As the frontier does it: columns that may matter, then one limit after another."""
    question, trade = narrowed(question, trade, columns_for(question, trade))
    found: list[Point] = []

    def at(limit: Any) -> Any:
        point = best_under(question, trade, limit, optimize)
        if not isinstance(point, Point):
            assert point.status == "infeasible", point
            return None
        assert point.solution.status == "optimal"
        found.append(point)
        return point.over

    for _ in steps(low, high, at):
        pass
    return found


def instance(seed: int) -> tuple[Program, Trade, Any, Any]:
    """A random program with times of its own for the deadline, a pair of objectives, and a range or none."""
    rng = np.random.default_rng([seed, 7])
    question = replace(random_program(seed), carbon_mg=rng.integers(0, 5, random_program(seed).column_count))
    over, against = PAIRS[seed % len(PAIRS)]
    jobs = np.zeros(question.column_count, dtype=bool)
    for task in question.tasks:
        jobs[task.first : task.stop] = task.kind == "training" and rng.random() < 0.8
    ends_s = question.finish_s.copy()
    if over == "time":  # the band of each column, and jobs whose deadline is another's business
        ends_s = np.where(jobs, question.finish_s * rng.choice([1.0, 1.12, 1.25], question.column_count), 0.0)
    return question, Trade(over=over, against=against, ends_s=ends_s), rng.random(), rng.random()


def expected(question: Program, trade: Trade) -> set[tuple[Any, Any]]:
    timed = with_times(question, trade.ends_s)
    return {
        tuple(value(timed if name == "time" else question, list(plan), name) for name in (trade.over, trade.against))
        for plan in all_plans(question)
    }  # type: ignore[misc]


def of_seed(seed: int) -> tuple[Program, Trade, set[tuple[Any, Any]], Any, Any] | None:
    question, trade, a, b = instance(seed)
    if not small(question):
        return None
    points = expected(question, trade)
    if not points:
        return None
    reach = sorted({x for x, _ in points})
    low = reach[int(a * len(reach) * 0.5)] if seed % 2 else 0
    high = reach[-1 - int(b * len(reach) * 0.4)] if seed % 3 else None
    return question, trade, points, low, max(low, high) if high is not None else None


def seeds(first: int, count: int) -> list[int]:
    """Seeds whose program has a plan at all."""
    found = (seed for seed in range(first, first + 6 * count) if of_seed(seed) is not None)
    return [seed for seed, _ in zip(found, range(count))]


def test_what_is_no_better_in_anything_is_left_out() -> None:
    def point(over: int, against: int) -> Point:
        return Point(limit=None, over=over, against=against, solution=None, solves=1)  # type: ignore[arg-type]

    found = [point(3, 5), point(1, 9), point(2, 9), point(4, 5), point(3, 6), point(5, 4), point(1, 9)]
    assert [(one.over, one.against) for one in undominated(found)] == [(1, 9), (3, 5), (5, 4)]


def test_a_sweep_finds_every_pareto_point() -> None:
    several = 0
    for seed in seeds(0, SWEEPS):
        case = of_seed(seed)
        assert case is not None
        question, trade, points, low, high = case
        found = sweep(question, trade, low, high)
        assert [(p.over, p.against) for p in reversed(found)] == pareto(points, low, high), seed
        assert undominated(found) == found[::-1], seed  # monotone: the tighter the dearer
        several += len(found) > 1
    assert several >= SWEEPS // 4


def test_a_point_that_solvers_take_for_the_one_before_it() -> None:
    """HiGHS keeps a plan one micro-dollar over the limit: its answer is refused, the next point is found."""
    case = of_seed(40_333)
    assert case is not None
    question, trade, points, low, high = case
    assert [(p.over, p.against) for p in reversed(sweep(question, trade, low, high))] == pareto(points, low, high)


def test_both_anchors_are_contained() -> None:
    for seed in seeds(9000, cases(10, 20)):
        case = of_seed(seed)
        assert case is not None
        question, trade, points, _, _ = case
        found = sweep(question, trade, 0, None)
        assert found[0].against == min(y for _, y in points), seed
        assert found[-1].over == min(x for x, _ in points), seed


def test_ties_go_by_the_tie_rule() -> None:
    """A point is the plan that a solve under the same limit chooses: the first of its plans by the whole chain."""
    for seed in seeds(20_000, cases(12, 30)):
        case = of_seed(seed)
        assert case is not None
        question, trade, _, low, high = case
        timed = with_times(question, trade.ends_s) if trade.over == "time" else question
        plans = list(all_plans(question))
        kept = columns_for(question, trade)
        for point in sweep(question, trade, low, high):
            equal = [
                plan
                for plan in plans
                if value(timed, list(plan), trade.over) == point.over
                and value(question, list(plan), trade.against) == point.against
            ]
            chain = tuple(name for name in (trade.against, trade.over) if name != "time") or ("cost",)
            best = min(equal, key=lambda plan: key_of(replace(question, objective=chain), plan))
            units = np.zeros(question.column_count, dtype=np.int64)
            units[kept] = point.solution.units
            np.testing.assert_array_equal(units, best, err_msg=str(seed))


def test_a_limit_that_no_solver_can_tell_is_lowered_and_said() -> None:
    """Both solvers' answers may be refused one unit below a plan's value; then the next limit that can be told is."""
    case = next(case for seed in range(0, 400) if (case := of_seed(seed)) and case[1].over == "cost")
    question, trade = case[0], case[1]
    limits: list[int] = []

    def refused_once(program: Program, **given: Any) -> Any:
        limits.append(int(program.rows[-1].bound))
        answer = optimize(program, **given)
        return replace(answer, status="failed") if len(limits) == 1 else answer

    loose = int(question.cost_microusd.sum()) * 1000
    point = best_under(question, trade, loose, refused_once)
    assert isinstance(point, Point)
    assert limits[:2] == [loose, loose - loose // 10**8]
    assert TOO_CLOSE in point.solution.messages
