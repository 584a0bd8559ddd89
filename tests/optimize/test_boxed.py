"""Boxed fleets, whose units bring every bucket at once, against trying everything; see `tests.optimize.brute_boxed`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.analysis.certified import certificate_of
from planner.analysis.supports import _alone
from planner.analysis.why.alternatives import _floor
from planner.candidates.program import Program, Row, Task, earnings, fleet_rates, restrict
from planner.candidates.prune import alone_units, carrying_units, prune
from planner.optimize import stage
from planner.optimize.adapter import PulpAdapter
from planner.optimize.build import build
from planner.optimize.check import violations
from planner.optimize.greedy import greedy_plan
from planner.optimize.incumbent import lone_plan
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Options
from planner.plan.certificate import certified_bound
from planner.plan.cover import Cover, least_cover
from planner.plan.least_weights import STEPS
from tests.optimize.brute_boxed import best_boxed, for_cost, random_boxed
from tests.optimize.instances import ints, program, row
from tests.plan.test_certificate import around, priced, relaxed
from tests.tiers import cases


def boxed(cost: list[int], capacity: Any, demand: tuple[int, ...], rows: tuple[Row, ...] = (), **more: Any) -> Program:
    """One fleet; what is of the task or of the program by name."""
    own = {name: more.pop(name) for name in ("spare_replicas", "min_replicas", "survive_domain") if name in more}
    own |= {name: more.pop(name) for name in ("levels", "max_spot_share") if name in more}
    task = Task(name="fleet", kind="serving", first=0, stop=len(cost), demand_micro_per_s=demand, boxed=True, **own)
    more.setdefault("replicas", np.ones(len(cost)))
    return program([task], cost=cost, capacity_micro_per_s=capacity, rows=rows, **more)


def test_equals_brute_force() -> None:
    """With HiGHS, and without the columns that are dominated: the very same plan by the whole tie rule."""
    tried, infeasible, dropped = cases(60, 2000), 0, 0
    for seed in range(tried):
        question = random_boxed(seed)
        expected, kept = best_boxed(question), prune(question)
        small, _ = restrict(question, np.isin(np.arange(question.column_count), kept))
        dropped += question.column_count - len(kept)
        answers = [optimize(question), optimize(small)]
        if expected is None:
            infeasible += 1
            assert [answer.status for answer in answers] == ["infeasible"] * 2, (seed, answers)
            continue
        assert answers[0].units.tolist() == expected, (seed, answers[0].messages)
        assert answers[1].units.tolist() == [expected[k] for k in kept], (seed, answers[1].messages)
        assert [(answer.status, answer.messages) for answer in answers] == [("optimal", ())] * 2, seed
    assert 0.2 * tried < infeasible < 0.6 * tried
    assert dropped > 0.15 * tried


def test_equals_brute_force_with_cbc() -> None:
    for seed in range(5000, 5000 + cases(15, 500)):
        question = random_boxed(seed)
        expected, answer = best_boxed(question), optimize(question, solver="cbc")
        assert answer.status == ("infeasible" if expected is None else "optimal"), (seed, answer.messages)
        if expected is not None:
            assert answer.units.tolist() == expected, seed


def test_small_models_are_put_to_cbc_as_they_are() -> None:
    """Preprocessed by CBC 2.10.3, this is said to cost 10 at least."""
    question = boxed(
        [2, 1], [[8, 10, 8], [0, 4, 6]], (3, 1, 7), replicas=[2, 2], spare_replicas=3, max_units=[3, 1],
        rows=(row("target[0]", 0, [0, -4]), row("target[1]", 0, [-3, 0])),
    )  # fmt: skip
    model = build(scope_of(question), "cost")
    found = [PulpAdapter(solver=solver).run(model, Options()).objective for solver in ("highs", "cbc")]
    assert found[0] == pytest.approx(found[1])


def test_plans_are_listed_and_equal_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plans that the lines allow are walked through: the very same plan, and that way is taken."""
    listed = []
    inner = stage.Run._list

    def counted(*arguments: Any) -> Any:
        found = inner(*arguments)
        listed.append(found is not None)
        return found

    monkeypatch.setattr(stage.Run, "_list", counted)
    tried = cases(20, 200)
    for seed in range(9000, 9000 + tried):
        question = random_boxed(seed)
        expected, answer = best_boxed(question), optimize(question)
        assert answer.status == ("infeasible" if expected is None else "optimal"), (seed, answer.messages)
        assert expected is None or answer.units.tolist() == expected, seed
    assert sum(listed) > tried / 10


@pytest.mark.parametrize(("demand", "units"), [((8, 6), [2, 0]), ((9, 6), [3, 0]), ((8, 7), [3, 0])])
def test_every_bucket_is_met_at_its_own_bound(demand: tuple[int, int], units: list[int]) -> None:
    """Units of 4 and 3 together: all of both is brought, where routing would halve them."""
    question = boxed([3, 99], [[4, 3], [9, 9]], demand, max_units=[5, 5])
    assert optimize(question).units.tolist() == units


@pytest.mark.parametrize(("demand", "units"), [((7, 8), [3]), ((8, 8), [3]), ((9, 8), [4]), ((8, 9), [4])])
def test_every_bucket_is_met_after_a_loss(demand: tuple[int, int], units: list[int]) -> None:
    """Units of two replicas bring (4, 4): with two spares a unit more."""
    question = boxed([3], [[4, 4]], demand, replicas=[2], spare_replicas=2, max_units=[9])
    assert optimize(question).units.tolist() == units


def test_a_type_may_have_fewer_replicas_than_spares() -> None:
    """Beside four of the first two replicas of the second are counted as lost, as if that many were there."""
    question = boxed([3, 1], [[4, 0], [1, 4]], (10, 4), spare_replicas=2, max_units=[9, 9])
    assert optimize(question).units.tolist() == [4, 3]
    assert optimize(replace(question, max_units=ints([9, 2]))).status == "infeasible"


def test_all_replicas_that_may_be_lost_are_counted_by_the_check() -> None:
    """Two of the second are lost, one is there: (8, 8) less (3, 2) is short, (12, 12) less that is not."""
    question = boxed([9, 1], [[4, 4], [3, 2]], (8, 8), replicas=[4, 1], spare_replicas=2, max_units=[9, 9])
    scope = scope_of(question)
    assert len(list(violations(scope, ints([2, 1])))) == 2
    assert not list(violations(scope, ints([3, 1])))


def test_more_units_than_alone_make_up_for_what_others_lose() -> None:
    """One of the third saves a unit of the second and takes 3 more of the first bucket than it brings."""
    question = boxed(
        [5, 10, 1], [[4, 0], [0, 4], [3, 1]], (10, 9), replicas=[4, 1, 1], spare_replicas=2, max_units=[9, 9, 1]
    )
    assert optimize(question).units.tolist() == [4, 4, 1]
    assert optimize(replace(question, max_units=ints([3, 9, 1]))).units.tolist() == [3, 5, 0]


THREE = (row("target", 0, [-1, 3]),)
BEYOND = {
    "the other domain is needed": boxed([2, 1], [[4], [4]], (4,), THREE, survive_domain=True, domain=[0, 1]),
    "it does not run at night": boxed([2, 1], [[4], [4]], (8,), THREE, levels=((4,), (8,)), level=[1, 0]),
    "it brings nothing": boxed([2, 1], [[0], [4]], (4,), THREE),
    "it lacks a bucket": boxed([2, 1], [[4, 0], [0, 4]], (4, 4), THREE),
}


@pytest.mark.parametrize("name", BEYOND)
def test_suppliers_are_taken_beyond_what_they_carry(name: str) -> None:
    """One unit of the second takes what three of the first supply."""
    assert optimize(BEYOND[name]).units.tolist() == [3, 1]


def test_a_fleet_that_supplies_a_job_is_left_alone() -> None:
    tasks = [
        Task(name="f", kind="serving", first=0, stop=2, demand_micro_per_s=(4, 4), boxed=True),
        Task(name="job", kind="training", first=2, stop=3),
    ]
    question = program(
        tasks, cost=[3, 5, 1], replicas=[1, 1, 0], capacity_micro_per_s=[[4, 4], [4, 4], [0, 0]],
        max_units=[9, 9, 1], rows=(row("power", 0, [-1, -2, 4]),),
    )  # fmt: skip
    assert prune(question).tolist() == [0, 1, 2]
    assert optimize(question).units.tolist() == [0, 2, 1]


def test_a_cover_is_seen_without_a_model() -> None:
    """Neither brings both buckets; with a spare three of each do."""
    question = boxed([3, 3], [[4, 0], [0, 4]], (8, 8), spare_replicas=1, min_replicas=5)
    plan = lone_plan(scope_of(question), "cost")
    assert plan is not None
    assert plan.tolist() == [3, 3]


def test_what_is_routed_is_in_proportion_to_what_is_brought() -> None:
    levels = ((2, 2), (4, 8))
    question = boxed([3, 3], [[3, 6], [1, 2]], (4, 8), levels=levels, level=[0, 1], max_units=[1, 1])
    answer = optimize(question)
    assert [flows.tolist() for flows in answer.level_flows] == [[[2, 2], [0, 0]], [[3, 6], [1, 2]]]


def test_targets_are_kept_by_quick_replicas_beside_slow_ones() -> None:
    """The slow one is cheap and has one late request more than it may, the quick one is dear and has two fewer."""
    question = boxed([2, 9], [[4, 4], [4, 4]], (12, 12), rows=(row("target", 0, [1, -2]),), max_units=[9, 9])
    assert optimize(question).units.tolist() == [2, 1]
    assert optimize(replace(question, rows=())).units.tolist() == [3, 0]


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_looser_rows_and_smaller_demands_never_cost_more(solver: str) -> None:
    def cost_of(question: Program) -> float:
        answer = optimize(question, cost_only=True, solver=solver)
        return answer.cost_microusd if answer.status == "optimal" else np.inf

    dearer = 0
    for seed in range(7200, 7200 + cases(8, 150)):
        question = for_cost(random_boxed(seed))
        fleet, *others = question.tasks
        before, where = cost_of(question), seed % len(fleet.demand_micro_per_s)
        fewer = tuple(tuple(d // 2 if b == where else d for b, d in enumerate(demand)) for demand in fleet.demands)
        less = replace(fleet, demand_micro_per_s=fewer[-1], levels=fewer if fleet.levels else ())
        firm = replace(less, max_spot_share=fleet.max_spot_share if all(fewer[-1]) else None)
        rows = tuple(replace(each, bound=each.bound + 4) for each in question.rows)
        after = [cost_of(replace(question, rows=rows)), cost_of(replace(question, tasks=(firm, *others)))]
        assert max(after) <= before, seed
        dearer += sum(cost < before for cost in after)
    assert dearer > cases(2, 60)


def test_no_plan_is_below_a_bound_and_lines_alone_prove_the_best() -> None:
    """The certificate of the answer, and prices of the relaxation: never above, and equal where nothing else binds."""
    rng = np.random.default_rng(3)
    plain = reached = tried = 0
    for seed in range(11_000, 11_000 + cases(40, 700)):
        drawn = for_cost(random_boxed(seed))
        question = replace(drawn, cost_microusd=drawn.cost_microusd * 1_000_003)
        if seed % 2:  # nothing but the lines of the buckets and the least number of replicas
            fleet = replace(question.tasks[0], survive_domain=False, max_spot_share=None)
            question = replace(question, rows=(), max_providers=None, tasks=(fleet, *question.tasks[1:]))
        units = best_boxed(question)
        if units is None:
            continue
        best, fleet, tried = int(ints(units) @ question.cost_microusd), question.tasks[0], tried + 1
        made = certificate_of(around(question), optimize(question, cost_only=True))
        assert made is not None
        prices = {number: int(rng.integers(0, 10**6)) for number in range(len(question.rows))}
        lines = [[{"level": 0, "prefill": rng.integers(0, 9, len(fleet.demand_micro_per_s)).tolist(),
                   "decode": [0] * len(fleet.demand_micro_per_s)}] for _ in range(2)]  # fmt: skip
        anything = priced(question, prices, [{"workload": "fleet", "share": 1, "lines": lines}])
        for selection in (made, relaxed(question), anything):
            assert certified_bound(around(question), selection) <= best, seed
        floor = _floor(question, np.ones(question.column_count, dtype=bool))
        assert floor is not None
        assert floor <= best
        plain += seed % 2
        reached += seed % 2 and made["bound"] == best
    assert reached == plain > tried / 2 > cases(8, 150)


def test_what_stands_on_a_shared_node_for_nothing_is_no_price_of_what_it_does_not_take() -> None:
    """0 / 0: the floor of such a fleet was not a number, so that its device was told to have no plan at all."""
    fleet = Task(name="fleet", kind="serving", first=0, stop=2, demand_micro_per_s=(8, 6))
    two = program([fleet], cost=[0, 10], capacity_micro_per_s=[[4, 0], [1, 1]], replicas=np.ones(2))
    assert _floor(two, np.ones(2, dtype=bool)) == 59  # 6 of the second kind, at 10 each, less what rounding takes
    assert _floor(two, np.array([True, False])) is None


def test_the_best_of_all_bounds_is_kept_where_searches_are_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search with the last line ends early, with less than the one before."""
    bounds: list[int] = []

    def cut_short(*arguments: Any, **more: Any) -> Cover:
        found = least_cover(*arguments, **{**more, "steps": 8})
        bounds.append(found.bound)
        return found

    monkeypatch.setattr("planner.plan.least_weights.least_cover", cut_short)
    drawn = for_cost(random_boxed(11_407))
    fleet = replace(drawn.tasks[0], min_replicas=0)
    question = replace(drawn, cost_microusd=drawn.cost_microusd * 1_000_003, rows=(), tasks=(fleet,))
    question, _ = restrict(question, np.arange(question.column_count) < fleet.stop)
    made = certificate_of(around(question), optimize(question, cost_only=True))
    assert made is not None
    assert made["bound"] == -(-max(bounds) // STEPS)
    assert any(later < before for before, later in itertools.pairwise(bounds))


def test_replicas_that_bring_nothing_are_not_free_in_a_bound() -> None:
    """Three replicas: two units of the third, cheaper than one of it beside one of the second, which brings nothing."""
    question = boxed([3_000_000, 1_500_000, 1_000_000], [[15], [0], [6]], (1,), replicas=[3, 3, 2], min_replicas=3)
    made = certificate_of(around(question), optimize(question))
    assert made is not None
    assert made["bound"] == 2_000_000


def test_a_plan_without_a_solver_is_a_plan() -> None:
    """What is seen at a glance and what is put together stand up to the check, and are there as a rule."""
    found = tried = covered = 0
    for seed in range(13_000, 13_000 + cases(40, 400)):
        question = for_cost(random_boxed(seed))
        units = best_boxed(question)
        if units is None:
            continue
        scope, tried = scope_of(question), tried + 1
        lone, greedy = lone_plan(scope, "cost"), greedy_plan(scope)
        for plan in (lone, greedy):
            assert plan is None or not list(violations(scope, plan)), seed
        found += greedy is not None
        covered += lone is not None and int((lone[: question.tasks[0].stop] > 0).sum()) > 1
    assert found > 0.4 * tried
    assert covered > 0.05 * tried


SLOW_QUICK = (row("target", 0, [3, -1, -1]),)
PRUNED = {
    "brings less of one bucket": (boxed([5, 7], [[4, 4], [4, 5]], (9, 9)), [0, 1]),
    "brings no more for more": (boxed([5, 7], [[4, 5], [4, 5]], (9, 9)), [0]),
    "loses more of one bucket": (boxed([5, 7], [[4, 4], [4, 4]], (9, 9), replicas=[1, 2], spare_replicas=1), [0, 1]),
    "loses more of the second bucket": (
        boxed([5, 7], [[8, 4], [4, 4]], (9, 9), replicas=[2, 4], spare_replicas=1), [0, 1],
    ),
    "loses no more": (boxed([5, 7], [[4, 4], [4, 4]], (9, 9), replicas=[2, 1], spare_replicas=1), [0]),
    "enough by itself, and quicker": (boxed([5, 7], [[4, 4], [4, 4]], (9, 9), (row("t", 0, [-2, -1]),)), [0]),
    "cheaper, but slower": (boxed([5, 7], [[4, 4], [4, 4]], (9, 9), (row("t", 0, [2, -1]),)), [0, 1]),
    "quicker, but not of every bucket": (
        boxed([5, 7, 1], [[4, 0], [4, 0], [0, 4]], (9, 9), (row("t", 0, [-2, -1, 3]),)), [0, 1, 2],
    ),
    "quicker, but short of units": (
        boxed([5, 7, 1], [[4, 4], [4, 4], [4, 4]], (9, 9), (row("t", 0, [-2, -1, 3]),), max_units=[2, 9, 9]), [0, 1, 2],
    ),
    "slow, among those that supply": (boxed([5, 7, 8], [[4, 4], [4, 4], [4, 4]], (9, 9), SLOW_QUICK), [0, 1]),
    "no supplier, among those that are": (
        boxed([5, 7, 8], [[4, 4], [4, 4], [4, 4]], (9, 9), (row("t", 0, [1, 2, -1]),)), [0, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRUNED)
def test_what_is_dominated(name: str) -> None:
    question, kept = PRUNED[name]
    assert prune(question).tolist() == kept


def test_suppliers_are_bounded_by_what_is_there_unless_enough_by_themselves() -> None:
    question = boxed([5, 7, 1], [[4, 4], [4, 4], [0, 4]], (9, 9), (row("t", 0, [-2, 1, -1]),))
    assert alone_units(question, question.tasks[0]).tolist() == [3, 3, 1000]
    below = replace(question, rows=(replace(question.rows[0], bound=-1),))
    assert alone_units(below, below.tasks[0]).tolist() == [1000, 3, 1000]


def test_units_alone_are_those_of_the_shortest_bucket() -> None:
    """Demands of 9 and 4 at (4, 4) and (6, 1) a unit of two replicas, one of which is lost."""
    question = boxed([5, 7], [[4, 4], [6, 1]], (9, 4), replicas=[2, 2], spare_replicas=1, max_units=[9, 9])
    assert carrying_units(question, question.tasks[0]).tolist() == [3, 5]
    supported = [_alone(around(question), question.tasks[0], column) for column in (0, 1)]
    assert [each and int(each.units.sum()) for each in supported] == [3, 5]


def test_what_a_unit_brings() -> None:
    question = boxed([1, 1], [[4, 12], [3, 0]], (5, 5))
    assert fleet_rates(question, question.tasks[0]).tolist() == [16, 3]
    rates = question.capacity_micro_per_s.astype(object)
    assert earnings(question.tasks[0], rates, [1, 2]).tolist() == [28, 3]
    assert earnings(replace(question.tasks[0], boxed=False), rates, [1, 2]).tolist() == [24, 3]


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_without_requests_nothing_is_taken(solver: str) -> None:
    """A model without a line, of which CBC tells no bound."""
    question = boxed([6, 2], [[3], [4]], (0,), levels=((0,), (0,)), spare_replicas=2)
    answer = optimize(question, solver=solver, cost_only=True)
    assert (answer.status, answer.units.tolist(), answer.bound_microusd) == ("optimal", [0, 0], 0)


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match="no slices"):
        Task(name="f", kind="serving", first=0, stop=1, boxed=True, integer_slices=4)
    with pytest.raises(ValueError, match="whole requests"):
        boxed([1, 1], [[4, 12], [3, 0]], (5, 5), role=[0, 1])
