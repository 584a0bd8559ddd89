"""A time limit is that of everything: the listing is cut, comparisons are left out, and the plan says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import Plan, api
from planner.candidates.patience import LATEST
from planner.candidates.search import Candidates, enumerate_candidates
from planner.deadline import MORE_TIME, Deadline, TimeIsUp
from planner.errors import StoppedError
from planner.optimize.status import Solution, Status
from planner.scenario.schema import Scenario
from tests.worlds import catalog, fleet, job, offer, scenario, shape

SHAPES = [shape(f"north/of-{count}", devices=count) for count in range(1, 7)]
MANY = catalog(shapes=SHAPES, offers=[offer(one.id, dollars=6.0 - number) for number, one in enumerate(SHAPES)])
QUESTION = scenario(training=[job("a"), job("b")])


def listed(question: Scenario, spent: Callable[[], float]) -> Candidates:
    return enumerate_candidates(question, MANY, api.load_model, spent=spent)


@pytest.mark.parametrize("gone", [1.0, LATEST])
@pytest.mark.parametrize("looks", range(12))
def test_a_listing_is_cut_at_any_moment_and_names_what_it_lacks(looks: int, gone: float) -> None:
    """Every prefix of the work gives columns that the whole has, fewer the earlier it stops, none at the very end."""
    whole = listed(QUESTION, lambda: 0.0)
    answers: Iterator[float] = iter([0.0] * looks)
    part = listed(QUESTION, lambda: next(answers, gone))
    assert whole.cut == ()
    assert part.cut in (("a", "b"), ("b",), ())
    for name, table in part.tables.items():
        offers = {site.offer.id for site in whole.tables[name].sites}
        assert {site.offer.id for site in table.sites} <= offers
        assert (len(table) < len(whole.tables[name])) <= (name in part.cut)
        if gone < LATEST:  # of each workload there is what it may run on
            assert len(table)
    if not looks and gone == LATEST:
        assert [len(table) for table in part.tables.values()] == [0, 0]


def test_each_workload_has_its_part_of_the_time() -> None:
    """The first one may use a half and its part of the other: the second is listed although the first was cut.

    What the first one has by then is the machine that computes for the least, of which it is on time.
    """
    part, whole = listed(QUESTION, lambda: 0.8), listed(QUESTION, lambda: 0.0)
    assert part.cut == ("a",)
    assert {site.shape.id for site in part.tables["a"].sites} == {"north/of-6"}
    assert len(part.tables["b"]) == len(whole.tables["b"]) > len(part.tables["a"])


def test_machines_that_are_too_slow_are_no_way() -> None:
    """What computes for the least but not by the deadline does not end the search for the first way."""
    facts = {"model": "llama-3.1-70b", "tokens": "4B", "deadline": "23 days"}
    question = scenario(training=[{"name": "late", **facts}])
    part = enumerate_candidates(question, api.load_catalog(), api.load_model, spent=lambda: 1.0)
    assert part.cut == ("late",)
    assert len(part.tables["late"])


def test_what_the_others_left_goes_to_those_that_were_cut() -> None:
    """The first of three is cut at its third; the others need a tenth, and what is left lists the first from anew."""
    question = scenario(training=[job("a"), job("b"), job("c")])
    clock = {"spent": 0.35}

    def spent() -> float:
        clock["spent"] += 0.002
        return clock["spent"]

    part = listed(question, spent)
    assert part.cut == ()
    assert len(part.tables["a"]) == len(listed(question, lambda: 0.0).tables["a"])


def test_nothing_is_listed_again_in_less_time_than_it_had() -> None:
    part = listed(QUESTION, lambda: 0.9)
    assert part.cut == ("a",)
    assert {site.shape.id for site in part.tables["a"].sites} == {"north/of-6"}


def test_a_fleet_that_there_is_no_time_for_is_named() -> None:
    question = scenario(serving=[fleet("one"), fleet("two")])
    assert listed(question, lambda: 1.0).cut == ()
    assert listed(question, lambda: LATEST).cut == ("one", "two")


def deadline(clock: Callable[[], float]) -> Deadline:
    return Deadline(limit_s=10.0, began_s=0.0, due_s=9.0, clock=clock)


def test_what_was_listed_in_time_gives_a_plan_that_claims_nothing() -> None:
    """After a few looks at the clock the time of the first job is up, and that of the second is not."""
    cheapest = api.solve(QUESTION, MANY)
    looks = iter([0.0] * 8)
    plan = api.solve(QUESTION, MANY, time_limit_s=deadline(lambda: next(looks, 5.5)))
    summary = plan.document["summary"]
    assert plan.status == "feasible"
    assert plan.exit_code == 5
    assert summary["bound_usd"] is None
    assert summary["gap"] is None
    assert plan.document["certificate"] is None
    assert summary["cost_microusd"] >= cheapest.document["summary"]["cost_microusd"]
    assert any("the time limit ended the listing of ways to run" in text for text in plan.document["warnings"])
    assert not [problem for problem in api.verify(plan, MANY) if problem.severity == "error"]


def test_nothing_listed_proves_nothing() -> None:
    plan = api.solve(QUESTION, MANY, time_limit_s=deadline(lambda: 9.0))
    assert (plan.status, plan.exit_code) == ("stopped", 6)
    assert plan.document["infeasible"] is None
    assert any("the time limit ended the listing" in text for text in plan.document["warnings"])


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    with_limit = api.solve(QUESTION, MANY, time_limit_s=deadline(lambda: 0.0))
    assert with_limit.document == api.solve(QUESTION, MANY).document


@pytest.mark.parametrize("rings", [False, True])
def test_what_there_is_no_time_for_is_left_out_and_named(rings: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up when the plan was found; or an alarm rings in what comes beside it."""
    from planner.analysis import beside

    up: list[bool] = []
    solved = api.sessions.Session.solved

    def find(session: Any, candidates: Candidates) -> Solution:
        answer = solved(session, candidates)
        up.append(True)
        return answer

    def ring(*_: Any, **__: Any) -> None:
        raise TimeIsUp

    monkeypatch.setattr(api.sessions.Session, "solved", find)
    if rings:
        monkeypatch.setattr(beside, "best_single_kind", ring)
        monkeypatch.setattr(beside, "is_up", lambda limit: len(up) > 1 or up.append(True) is not None)
    limit = deadline(lambda: 9.0 if up else 0.0)
    plan = api.solve(QUESTION, MANY, time_limit_s=limit, simulate=True, best=3)
    assert plan.status == "optimal"
    said = "\n".join(plan.document["warnings"])
    assert (
        "left out for lack of time: the best plan on one kind of device, the cost at the median of the errors" in said
    )
    assert "left out for lack of time: other plans, the simulation" in said
    assert not [problem for problem in api.verify(plan, MANY) if problem.severity == "error"]


def test_each_call_of_a_session_has_its_own_time() -> None:
    """Seconds begin anew with every call; a deadline is one of all calls."""
    session, one = api.session(QUESTION, MANY, time_limit_s=3600.0), Deadline.after(3600.0)
    began = [session.options["time_limit_s"].began_s]
    calls: list[Callable[[], object]] = [
        session.solve, session.break_even, session.marginal_values, lambda: session.why_not("plain"), session.repairs,
    ]  # fmt: skip
    for call in calls:
        call()
        began.append(session.options["time_limit_s"].began_s)
    assert began == sorted(set(began))
    other = session.with_(horizon="2 weeks")
    assert other.options["time_limit_s"].began_s > began[-1]
    shared = api.session(QUESTION, MANY, time_limit_s=one)
    shared.solve()
    assert shared.with_(horizon="2 weeks").options["time_limit_s"].began_s == one.began_s


def test_no_time_for_one_call_is_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one call had no time for, another has: here the clock jumps once, while the first one lists."""
    ticks = iter([0.0, 0.0, *[50.0] * 40])
    first = iter([Deadline(limit_s=10.0, began_s=0.0, due_s=9.0, clock=lambda: next(ticks, 50.0))])
    real = Deadline.of
    monkeypatch.setattr(Deadline, "of", lambda limit: next(first, None) or real(limit))
    session = api.session(QUESTION, MANY, time_limit_s=3600.0)
    assert session.candidates.cut
    assert session.with_(title="again").solve().status == "optimal"


@pytest.mark.parametrize(
    ("limit_s", "by", "gone_s", "kept_back_s"),
    [(100.0, 0.5, 0.0, 1.0), (100.0, 3.0, 0.0, 3.0), (5.0, 2.0, 0.0, 1.0), (5.0, 9.0, 0.0, 2.0), (5.0, 9.0, 3.0, 1.0)],
)
def test_more_is_kept_back_on_a_busy_machine(limit_s: float, by: float, gone_s: float, kept_back_s: float) -> None:
    """To write down what was found: up to four tenths, and half of what is left."""
    slow = Deadline.after(limit_s, lambda: 7.0, began_s=7.0 - gone_s).slowed(by)
    assert slow.left_s() == pytest.approx(limit_s - gone_s - kept_back_s)


def test_more_is_kept_back_for_more_workloads() -> None:
    """Forty plans of workloads were found in time and lost in being written down."""
    few, many = (scenario(training=[job(f"w{number}") for number in range(count)]) for count in (4, 8))
    left = [api.session(one, MANY, time_limit_s=Deadline.after(100.0, lambda: 0.0)).options for one in (few, many)]
    assert [options["time_limit_s"].left_s() for options in left] == pytest.approx([99.0, 98.0])


def test_once_the_time_is_up_fewer_ways_on_other_devices_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of forty workloads took as long to tell and to check as the plan; the plan says so and stands."""
    from planner.plan import document
    from planner.plan.reasons import IN_HASTE

    one = scenario(training=[{"name": "a", "model": "gpt2-xl", "tokens": "10B", "deadline": "90 days"}])
    monkeypatch.setattr(document, "MOST_IN_HASTE", 2)
    session = api.session(one)
    listed, solution = session.answer()
    whole, hasty = (document.build_document(listed, solution, over=lambda up=up: up) for up in (False, True))
    assert len(whole["workloads"][0]["alternatives"]) > 2
    assert hasty["workloads"][0]["alternatives"] == whole["workloads"][0]["alternatives"][:2]
    assert (IN_HASTE in whole["warnings"], IN_HASTE in hasty["warnings"]) == (False, True)
    for made in (whole, hasty):
        assert not [one.message for one in api.verify(Plan(document=made)) if one.severity == "error"]


@pytest.mark.parametrize("over", [False, True])
def test_prices_are_made_no_finer_once_the_time_is_up(over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """That took as long again as all that came before it, after the time that was given."""
    from planner.analysis import certified

    session, made = api.session(QUESTION, MANY), []
    finer = certified._finer
    monkeypatch.setattr(certified, "reaches", lambda *_: False)
    monkeypatch.setattr(certified, "_finer", lambda *given: made.append(given) or finer(*given))
    certificate = certified.certificate_of(session.candidates, session.solved(session.candidates), over=lambda: over)
    assert certificate is not None
    assert len(made) == (not over)


@pytest.mark.parametrize("ask", [api.frontier, api.compare])
def test_a_sweep_or_a_comparison_of_part_of_the_ways_is_none(ask: Callable[..., object]) -> None:
    """A listing that the time cut would give points that are not on the front, and causes that are none."""
    up = Deadline(limit_s=10.0, began_s=0.0, due_s=0.0, clock=lambda: 1.0)
    if ask is api.frontier:
        with pytest.raises(StoppedError, match="the time limit ended the listing"):
            api.frontier(QUESTION, MANY, over="budget", time_limit_s=up)
        return
    sides = [api.side_of(name, QUESTION.with_(title=name), MANY) for name in "ab"]
    comparison = api.compare(*sides, time_limit_s=up).document["comparisons"][0]
    assert comparison["cause"] == {"looked_for": False, "reason": "no time was left for it"}


def test_a_cut_program_is_never_called_infeasible() -> None:
    from planner.optimize.solve import optimize
    from planner.optimize.status import LISTING_ENDED, as_far_as_listed

    best = optimize(listed(QUESTION, lambda: 0.0).program)
    assert as_far_as_listed(best, ()) is best
    known = as_far_as_listed(best, ("a",))
    assert (known.status, known.bound_microusd, known.gap, known.stopped_by) == ("feasible", None, None, "time-limit")
    none = optimize(listed(QUESTION, lambda: LATEST).program)
    assert none.status is Status.INFEASIBLE
    stopped = as_far_as_listed(none, ("a", "b"))
    assert stopped.status is Status.STOPPED
    assert stopped.messages == (f"{LISTING_ENDED} a, b: {MORE_TIME}",)
