"""The certificate: true of every plan at any prices, in whole units where that takes several lines."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from planner import api
from planner.analysis.certified import certificate_of
from planner.api.checking import check
from planner.candidates.program import DECODE, PREFILL, Program, Task
from planner.candidates.search import Candidates
from planner.estimate.recall import Recall
from planner.optimize.bound import prices_of
from planner.optimize.solve import Solution, optimize
from planner.plan.certificate import bound_of_earlier, certified_bound
from planner.plan.cover import UNMET, _undominated, least_cover, least_of_job, lightest_first
from planner.plan.least_weights import CertificateError
from planner.plan.proof import gap_of, reaches, slack
from tests import worlds
from tests.optimize import brute
from tests.optimize.instances import ints, program, row
from tests.tiers import cases
from tests.verified import errors


def around(question: Program) -> Candidates:
    """A program as if it had been listed for a scenario without mixes."""
    listed: Any = SimpleNamespace(
        whole=question,
        program=question,
        rows=np.arange(question.column_count),
        whole_rows=np.arange(question.column_count),
        spaces={},
        shared=None,
        whole_shared=None,
        tables={},
        questions={},
        columns_before=question.column_count,
        recall=Recall(),
    )
    return listed  # type: ignore[no-any-return]


def priced(question: Program, rows: dict[int, int], requests: list[dict[str, Any]]) -> Any:
    named = [{"number": n, "name": question.rows[n].name, "price": price} for n, price in rows.items()]
    return {"criterion": "cost", "latest_s": None, "rows": named, "requests": requests}


def relaxed(question: Program) -> Any:
    prices = prices_of(question, "cost")
    assert prices is not None
    lines: dict[str, list[Any]] = {}
    for one in prices.requests:
        entry = {"level": one.level, "prefill": list(one.prefill), "decode": list(one.decode)}
        lines.setdefault(one.task, []).append(entry)
    requests = [{"workload": name, "share": 1, "lines": [line]} for name, line in lines.items()]
    return priced(question, prices.rows, requests)


def feasible(seeds: range) -> list[tuple[Program, int]]:
    found = []
    for seed in seeds:
        question = replace(brute.random_program(seed), objective=("cost",))
        answer = brute.best(question)
        if answer is not None:
            found.append((question, int(answer[0][0])))
    return found


def test_no_plan_is_below_the_bound_of_the_relaxations_prices() -> None:
    questions = feasible(range(cases(50, 120)))
    assert len(questions) > cases(15, 40)
    bounds = [certified_bound(around(question), relaxed(question)) for question, _ in questions]
    assert all(bound <= best for bound, (_, best) in zip(bounds, questions))
    assert sum(bound == best for bound, (_, best) in zip(bounds, questions)) > len(questions) / 2


def test_a_certificate_made_for_a_plan_is_never_above_the_best_and_seldom_below_it() -> None:
    questions = feasible(range(300, 300 + cases(45, 120)))
    made = [certificate_of(around(question), optimize(question)) for question, _ in questions]
    assert all(one is not None and one["bound"] <= best for one, (_, best) in zip(made, questions))
    reached = sum(one is not None and one["bound"] == best for one, (_, best) in zip(made, questions))
    assert reached > 0.9 * len(questions)


@pytest.mark.parametrize(("devices", "best"), [(4, 14), (5, 13), (6, 12)])
def test_jobs_that_share_a_limit_are_tried_together(devices: int, best: int) -> None:
    """Two jobs, of 3 devices for 6, 2 for 7 or 1 for 12: what fits beside each other, not the mean of what does."""
    question = program(
        [Task(name="a", kind="training", first=0, stop=3, count=2)],
        cost=[6, 7, 12],
        rows=(row("limits.max_devices", devices, [3, 2, 1]),),
    )
    nothing = priced(question, {}, [])
    assert optimize(question).cost_microusd == best
    assert certified_bound(around(question), nothing) == 12
    assert certified_bound(around(question), nothing, best + 1) == best
    assert certified_bound(around(question), nothing, best) == best
    assert certified_bound(around(question), nothing, best - 1) == max(best - 1, 12)


def test_any_prices_prove_something_true() -> None:
    rng = np.random.default_rng(5)
    for question, best in feasible(range(200, 200 + cases(30, 80))):
        rows = {number: int(rng.integers(0, 10**6)) for number in range(len(question.rows))}

        def line(task: Task) -> list[dict[str, Any]]:
            count = len(task.demand_micro_per_s)
            return [{"level": 0, **{side: rng.integers(0, 9, count).tolist() for side in ("prefill", "decode")}}]

        requests = [
            {
                "workload": task.name,
                "share": int(rng.integers(0, 4)),
                "lines": [line(task) for _ in range(int(rng.integers(1, 4)))],
            }
            for task in question.tasks
            if task.kind == "serving"
            for _ in range(int(rng.integers(1, 3)))
        ]
        assert certified_bound(around(question), priced(question, rows, requests)) <= best
        assert certified_bound(around(question), priced(question, rows, requests), 2 * best + 9) <= best


def test_what_is_bought_ahead_is_bounded_too() -> None:
    """One job of 4 nodes; a node costs 10 reserved and 30 on demand; one is there. Best: 3 reserved."""
    question = program(
        [Task(name="job", kind="training", first=0, stop=1), Task(name="bought", kind="optional", first=1, stop=3)],
        cost=[0, 10, 30],
        max_units=[1, 9, 9],
        rows=(row("pool", 1, [4, -1, -1]),),
    )
    assert optimize(question).cost_microusd == 30
    assert certified_bound(around(question), relaxed(question)) == 30


def covers(
    weights: list[int], upper: list[int], earned: list[list[int]], needs: list[int], replicas: list[int], spare: int
) -> list[int]:
    """The weight of every set of units that meets every line, also after the loss of the spares of a type in use."""
    return [
        sum(w * u for w, u in zip(weights, units))
        for units in itertools.product(*(range(most + 1) for most in upper))
        if all(
            need <= 0
            or sum(e * u for e, u in zip(line, units))
            >= need + max((spare * Fraction(e, r) for e, r, u in zip(line, replicas, units) if u), default=0)
            for line, need in zip(earned, needs)
        )
    ]


def test_a_cover_of_several_lines_against_every_cover() -> None:
    rng = np.random.default_rng(2)
    met = 0
    for _ in range(400):
        lines = int(rng.integers(1, 4))
        weights, upper = rng.integers(0, 9, 4).tolist(), rng.integers(0, 4, 4).tolist()
        earned, needs = rng.integers(0, 9, (lines, 4)).tolist(), rng.integers(0, 25, lines).tolist()
        replicas, spare = rng.integers(1, 4, 4).tolist(), int(rng.integers(0, 3))
        ways = covers(weights, upper, earned, needs, replicas, spare)
        found = least_cover(weights, upper, earned, needs, replicas=replicas, spare=spare)
        assert found.bound == min(ways, default=UNMET)
        assert (found.units is None) == (not ways)
        if found.units is not None:
            assert sum(weights[k] * count for k, count in found.units.items()) == found.bound
        met += bool(ways)
        cut_short = least_cover(weights, upper, earned, needs, replicas=replicas, spare=spare, steps=2)
        assert cut_short.bound <= found.bound
    assert met > 100


def test_a_cover_of_a_sum_of_lines_against_every_cover() -> None:
    """A sum of two lines needs what they need and asks for no more than they do; each has a loss of its own."""
    rng, met = np.random.default_rng(4), 0
    for _ in range(400):
        weights, upper = rng.integers(1, 9, 4).tolist(), rng.integers(0, 5, 4).tolist()
        alone = rng.integers(0, 7, (2, 4)) * rng.integers(0, 2, (2, 4))
        needs, times = rng.integers(1, 15, 2), rng.integers(1, 4, 2)
        earned = [*alone.tolist(), (times @ alone).tolist()]
        every = [*needs.tolist(), int(times @ needs)]
        replicas, spare = rng.integers(1, 3, 4).tolist(), int(rng.integers(0, 3))
        ways = covers(weights, upper, earned[:2], every[:2], replicas, spare)
        sums: list[dict[int, int]] = [{}, {}, dict(enumerate(times.tolist()))]
        found = least_cover(weights, upper, earned, every, replicas=replicas, spare=spare, sums=sums)
        assert found.bound == min(ways, default=UNMET)
        met += bool(ways)
        for steps in (2, 20):
            cut_short = least_cover(
                weights, upper, earned, every, replicas=replicas, spare=spare, sums=sums, steps=steps
            )
            assert cut_short.bound <= found.bound
    assert met > 100


def test_a_sum_of_lines_is_filled_line_by_line() -> None:
    """A unit for each of two lines, before any step: together they would be a part of one; three with a spare each."""
    lines: dict[str, Any] = {"weights": [5, 5], "upper": [9, 9], "earned": [[4, 0], [0, 4], [4, 4]]}
    sums: list[dict[int, int]] = [{}, {}, {0: 1, 1: 1}]
    assert least_cover(**lines, needs=[1, 1, 2], steps=0).bound == 5
    assert least_cover(**lines, needs=[1, 1, 2], sums=sums, steps=0).bound == 10
    assert least_cover(**lines, needs=[8, 8, 16], sums=sums, replicas=[1, 1], spare=1).bound == 30


def test_several_units_stand_in_for_a_large_one() -> None:
    """Of sizes whose units cost ever more than as many of the least none but the least is looked at."""
    sizes = list(range(1, 101))
    weights, lost = [3 * k + (k > 1) for k in sizes], [[1] * 100]
    assert _undominated(weights, [200] * 100, [sizes], lost, [77], [0]) == [0]
    assert len(_undominated(weights, [50] * 100, [sizes], lost, [77], [0])) == 100  # too few are there


def test_units_stand_in_by_whole_numbers() -> None:
    """Two of 2^60 weigh one more than what earns as much: as floats they weigh the same."""
    assert least_cover([2**60, 2**61 - 1], [9, 9], [[1, 2]], [2]).bound == 2**61 - 1


@pytest.mark.parametrize(("need", "least"), [(9, 6), (10, 6), (11, 9)])
def test_a_line_is_met_at_the_bound_and_not_one_beyond(need: int, least: int) -> None:
    assert least_cover([3], [9], [[5]], [need]).bound == least


@pytest.mark.parametrize(("most", "least"), [(1, UNMET), (2, 6), (3, 6)])
def test_no_more_units_are_taken_than_there_are(most: int, least: int) -> None:
    assert least_cover([3], [most], [[5]], [10]).bound == least


@pytest.mark.parametrize(("need", "least"), [(5, 6), (6, 9)])
def test_a_line_is_met_after_the_loss_of_one_replica(need: int, least: int) -> None:
    """Units of 5 and one replica: two carry 5 after a loss, three carry 10."""
    assert least_cover([3], [9], [[5]], [need], replicas=[1], spare=1).bound == least


@pytest.mark.parametrize(("most", "least"), [(2, 9), (3, 6)])
def test_a_column_stands_in_for_another_one_only_in_numbers_that_are_there(most: int, least: int) -> None:
    """Two of 2 beside one of 5: with a third one of 2 there is no need of the dear one."""
    assert least_cover([2, 5], [most, 9], [[5, 5]], [15]).bound == least


@pytest.mark.parametrize(("replicas", "least"), [(1, 15), (2, 12)])
def test_a_dear_column_in_smaller_replicas_stays_beside_a_cheap_one(replicas: int, least: int) -> None:
    """12 after a loss, of units that earn 8: three in one replica for 5 each, or two in two replicas for 6 each."""
    assert least_cover([5, 6], [9, 9], [[8, 8]], [12], replicas=[1, replicas], spare=1).bound == least


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["rows"].append({"number": 0, "name": "limits.max_devices", "price": -1}),
        lambda c: c["rows"].append({"number": 0, "name": "limits.max_devices", "price": True}),
        lambda c: c["rows"].append({"number": 1, "name": "limits.max_devices", "price": 1}),
        lambda c: c["rows"].append({"number": -1, "name": "limits.max_devices", "price": 1}),
        lambda c: c["rows"].append({"number": 0, "name": "another limit", "price": 1}),
        lambda c: c["requests"].append({"workload": "fleet", "share": -1, "lines": []}),
        lambda c: c["requests"].append(
            {"workload": "fleet", "share": 1, "lines": [[{"level": 0, "prefill": [-1], "decode": [1]}]]}
        ),
        lambda c: c["requests"].append(
            {"workload": "fleet", "share": 1, "lines": [[{"level": 0, "prefill": [1], "decode": []}]]}
        ),
        lambda c: c["requests"].append(
            {"workload": "fleet", "share": 1, "lines": [[{"level": 1, "prefill": [1], "decode": [1]}]]}
        ),
        lambda c: c.update(criterion="joy"),
    ],
)
def test_prices_that_fit_nothing_are_refused(change: Any) -> None:
    question = program(
        [
            Task(name="job", kind="training", first=0, stop=2),
            Task(name="fleet", kind="serving", first=2, stop=3, demand_micro_per_s=(5,)),
        ],
        cost=[3, 4, 5],
        capacity_micro_per_s=[[0], [0], [5]],
        rows=(row("limits.max_devices", 5, [2, 1, 1]),),
    )
    made = relaxed(question)
    certified_bound(around(question), made)
    change(made)
    with pytest.raises(CertificateError):
        certified_bound(around(question), made)


def fleet(**options: Any) -> Program:
    """Two pools of one role and a column of both: 10 prefill and 10 decode requests are asked for."""
    return program(
        [Task(name="f", kind="serving", first=0, stop=3, demand_micro_per_s=(10,), **options)],
        cost=[3_000_000, 2_000_000, 9_000_000],
        capacity_micro_per_s=[[4], [4], [3]],
        max_units=[9, 9, 9],
        role=[PREFILL, DECODE, 0],
        replicas=[1, 1, 1],
    )


@pytest.mark.parametrize("alone", [True, False])
def test_pools_of_one_role_are_rounded_up_each(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    """Three units of each pool; their relaxation takes two and a half. Prices alone do with a part for each pool."""
    if alone:
        monkeypatch.setattr("planner.plan.role_cover.least_by_role", lambda *_: 0)
    question = fleet()
    solution = optimize(question)
    assert solution.cost_microusd == 15_000_000
    made = certificate_of(around(question), solution)
    assert made is not None
    assert made["bound"] == 15_000_000
    assert {entry["share"] for entry in made["requests"]} == ({60, 40} if alone else {1})


def test_shares_of_a_weight_never_sum_above_it() -> None:
    question = fleet()
    line = [{"level": 0, "prefill": [1], "decode": [1]}]
    for shares in ([1, 1], [7, 5], [0, 3], [1, 1, 1]):
        requests = [{"workload": "f", "share": share, "lines": [line]} for share in shares]
        assert certified_bound(around(question), priced(question, {}, requests)) <= 15_000_000


def infeasible(bound: int) -> Program:
    """Two jobs that take at least 3 devices each, of so many."""
    return program(
        [Task(name="a", kind="training", first=0, stop=2), Task(name="b", kind="training", first=2, stop=4)],
        cost=[5, 6, 5, 6],
        rows=(row("limits.max_devices", bound, [3, 4, 3, 4]),),
    )


@pytest.mark.parametrize(("devices", "shown"), [(5, True), (6, False), (7, False)])
def test_limits_that_cannot_be_met_are_shown_by_their_prices(devices: int, shown: bool) -> None:
    question = infeasible(devices)
    nothing = Solution(status="infeasible", units=ints([0] * 4), flows=np.zeros((4, 1)))  # type: ignore[arg-type]
    made = certificate_of(around(question), nothing)
    assert (made is not None) == shown
    if made is not None:
        assert certified_bound(around(question), made, 1) > 0
        assert certified_bound(around(infeasible(6)), made) <= 0


@pytest.mark.parametrize(("asked", "spare", "shown"), [(21, 0, True), (20, 0, False), (16, 1, True), (15, 1, False)])
def test_a_fleet_beyond_all_units_that_there_are_is_shown_by_its_requests(asked: int, spare: int, shown: bool) -> None:
    """Three machines of 5 and one of 5: 20 in all, and 15 after the loss of one; no joint limit could give way."""
    fleet = Task(name="f", kind="serving", first=0, stop=2, demand_micro_per_s=(asked,), spare_replicas=spare)
    question = program([fleet], cost=[1, 1], capacity_micro_per_s=[[5], [5]], replicas=[1, 1], max_units=[3, 1])
    nothing = Solution(status="infeasible", units=ints([0, 0]), flows=np.zeros((2, 1)))  # type: ignore[arg-type]
    made = certificate_of(around(question), nothing)
    assert (made is not None) == shown
    if made is not None:
        assert certified_bound(around(question), made, 1) == UNMET


def test_a_workload_without_a_way_is_shown_by_no_prices_at_all() -> None:
    question = program([Task(name="a", kind="training", first=0, stop=0)], cost=[])
    nothing: Any = {"criterion": "limits", "latest_s": None, "rows": [], "requests": []}
    assert certified_bound(around(question), nothing) == UNMET


@pytest.mark.parametrize(("finish", "earlier"), [(10.0, True), (10.1, False), (9.0, True)])
def test_that_none_finishes_earlier_is_shown(finish: float, earlier: bool) -> None:
    """Columns that finish at 10 and 12: nothing is done before 10, something before 10.1."""
    question = program([Task(name="a", kind="training", first=0, stop=2)], cost=[9, 5], finish=[10.0, 12.0])
    assert (bound_of_earlier(around(question), {"rows": [], "requests": []}, finish) > 0) == earlier


@pytest.mark.parametrize(("latest_s", "bound"), [(10.0, 9), (12.0, 5), (None, 5)])
def test_only_what_finishes_in_time_is_bounded(latest_s: float | None, bound: int) -> None:
    question = program([Task(name="a", kind="training", first=0, stop=2)], cost=[9, 5], finish=[10.0, 12.0])
    selected: Any = {"criterion": "cost", "latest_s": latest_s, "rows": [], "requests": []}
    assert certified_bound(around(question), selected) == bound


@pytest.mark.parametrize("value", [20_000_000, 27_821_549_245])
def test_a_bound_reaches_a_value_within_a_cent_or_a_millionth(value: int) -> None:
    apart = max(10_000, value // 1_000_000)
    assert slack(value) == apart
    assert reaches(value, value - apart)
    assert reaches(value, value - apart + 1)
    assert not reaches(value, value - apart - 1)
    assert gap_of(value, value - apart) == 0
    assert gap_of(value, value - apart - 1) == pytest.approx((apart + 1) / value)


def test_fleets_alone_finish_at_no_time_that_could_be_earlier() -> None:
    """Where time is what is asked for first, plans without a job were never shown to be the best."""
    world = worlds.catalog()
    plan = api.solve(worlds.scenario([], [worlds.fleet("chat")], objective="time"), world)
    assert errors(plan.document, world) == []
    assert check(plan.document, world).standing.proven


def test_what_is_told_before_anything_is_lost_loses_nothing() -> None:
    """Two units carry one after the loss of one, and are two; asked for after it, they would be three."""
    asked: Any = {"replicas": [1], "spare": 1}
    assert least_cover([2], [9], [[1], [1]], [1, 2], taken=[[0]], **asked).bound == 4
    assert least_cover([2], [9], [[1], [1]], [1, 2], **asked).bound == 6


def test_what_nobody_buys_costs_what_buying_it_does() -> None:
    """A relaxation that buys none of something leaves its worth open: 77 % of a fleet in a calendar was not proven."""
    fleet = {"name": "chat", "model": "gpt-oss-20b", "input_tokens": 1000, "output_tokens": 200, "qpm": 300}
    asked = {
        "schema": "plan/v1",
        "name": "weeks",
        "prefer": "cheapest",
        "periods": "1 week",
        "horizon": "12 weeks",
        "serving": [{**fleet, "max_spot_share": "30 %", "spare_replicas": 2}],
        "hardware": {
            "allow": ["mi300x*", "h100-*"],
            "providers": ["azure", "lambda"],
            "pricing": ["on_demand", "spot", "commitment_1y"],
            "spot": {"interruptions": "0.02 /h"},
        },
    }
    plan = api.solve(asked)
    assert plan.status == "optimal"
    assert plan.document["certificate"]["gap"] == 0
    assert plan.verify() == []


@pytest.mark.parametrize("rates", [(600, 600), (1800, 1800), (3000, 3000), (600, 3000, 6000)])
@pytest.mark.parametrize("devices", [1, 4])
def test_fleets_that_compete_for_an_owned_node_are_proven(rates: tuple[int, ...], devices: int) -> None:
    """A relaxation owns an eighth of a node for each, and 57 to 88 % were left open of plans that were the best."""
    shapes = [worlds.shape("north/large", devices=8), worlds.shape("north/small", devices=devices)]
    known = worlds.catalog([worlds.device()], shapes, [worlds.offer("north/small", devices * 4.0)])
    owned = {"shape": "north/large", "count": 1, "price": "$1/h"}
    fleets = [worlds.fleet(f"fleet{number}", qpm=rate) for number, rate in enumerate(rates)]
    asked = worlds.scenario([], fleets, hardware={"share_nodes": False, "owned": [owned]}, horizon="30 days")
    document = api.solve(asked, known).document
    assert (document["status"], document["summary"]["gap"]) == ("optimal", 0.0)
    assert api.verify(document, known) == []


def test_a_job_beside_fleets_that_share_owned_nodes_is_proven() -> None:
    """Of two owned nodes fleets fill one, and a job that wants both has to rent: 30 % were left open."""
    fleets = [worlds.fleet(f"fleet{number}") for number in range(3)]
    job = worlds.job("train", tokens="900B", deadline="100 h")
    owned = {"shape": "north/large", "count": 2, "price": "$0.1/h"}
    known = worlds.catalog(
        [worlds.device()], [worlds.shape("north/large", devices=8)], [worlds.offer("north/large", 7.0)]
    )
    asked = worlds.scenario([job], fleets, hardware={"owned": [owned]}, horizon="8760 h")
    document = api.solve(asked, known).document
    assert [one["count"] for one in document["shared_nodes"]] == [1]
    assert (document["status"], document["summary"]["gap"]) == ("optimal", 0.0)
    assert api.verify(document, known) == []


def test_a_bound_that_is_known_is_of_these_columns_and_these_prices() -> None:
    question = program([Task(name="j", kind="training", first=0, stop=2, count=2)], cost=[5, 3], max_units=[4, 1])
    dearer = replace(question, cost_microusd=question.cost_microusd * 2)
    listed, other = around(question), around(dearer)
    vars(other)["recall"] = listed.recall
    nothing = priced(question, {}, [])
    assert [certified_bound(one, nothing) for one in (listed, other, listed, other)] == [8, 16, 8, 16]
    assert certified_bound(listed, nothing, 8) == certified_bound(listed, {**nothing, "latest_s": 1e9}) == 8


def test_some_jobs_take_what_there_is_too_little_of_and_the_others_what_each_may_have() -> None:
    one_cheap, dear = lightest_first([1, 100]), [1, 9]
    assert least_of_job(one_cheap, ints(dear), 2, None).bound == 101
    assert least_of_job(one_cheap, ints(dear), 2, 10).bound == 11
    assert least_of_job(one_cheap, ints([1, 0]), 2, None).bound == UNMET
    assert least_of_job(one_cheap, ints([1, 0]), 3, 10).bound == 21
