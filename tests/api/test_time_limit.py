"""A time limit is that of everything: the listing is cut, comparisons are left out, and the plan says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import api
from planner.candidates.search import Candidates, enumerate_candidates
from planner.deadline import Deadline, TimeIsUp
from planner.optimize.status import Solution, Status
from planner.scenario.schema import Scenario
from tests.worlds import catalog, fleet, job, offer, scenario, shape

SHAPES = [shape(f"north/of-{count}", devices=count) for count in range(1, 7)]
MANY = catalog(shapes=SHAPES, offers=[offer(one.id, dollars=6.0 - number) for number, one in enumerate(SHAPES)])
QUESTION = scenario(training=[job("a"), job("b")])


def listed(question: Scenario, spent: Callable[[], float]) -> Candidates:
    return enumerate_candidates(question, MANY, api.load_model, spent=spent)


@pytest.mark.parametrize("looks", range(12))
def test_a_listing_is_cut_at_any_moment_and_names_what_it_lacks(looks: int) -> None:
    """Every prefix of the work gives columns that the whole has, fewer the earlier it stops."""
    whole = listed(QUESTION, lambda: 0.0)
    answers: Iterator[float] = iter([0.0] * looks)
    part = listed(QUESTION, lambda: next(answers, 1.0))
    assert whole.cut == ()
    assert part.cut in (("a", "b"), ("b",), ())
    for name, table in part.tables.items():
        offers = {site.offer.id for site in whole.tables[name].sites}
        assert {site.offer.id for site in table.sites} <= offers
        assert (len(table) < len(whole.tables[name])) <= (name in part.cut)
    if not looks:
        assert [len(table) for table in part.tables.values()] == [0, 0]


def test_each_workload_has_its_part_of_the_time() -> None:
    """The first one may use a half: the second is listed although the first was cut."""
    part = listed(QUESTION, lambda: 0.5)
    assert part.cut == ("a",)
    assert len(part.tables["a"]) == 0
    assert len(part.tables["b"]) == len(listed(QUESTION, lambda: 0.0).tables["b"])


def test_a_fleet_that_there_is_no_time_for_is_named() -> None:
    question = scenario(serving=[fleet("one"), fleet("two")])
    assert listed(question, lambda: 0.7).cut == ("one",)
    assert listed(question, lambda: 0.4).cut == ()
    assert listed(question, lambda: 1.0).cut == ("one", "two")


def deadline(clock: Callable[[], float]) -> Deadline:
    return Deadline(limit_s=10.0, began_s=0.0, due_s=9.0, clock=clock)


def test_what_was_listed_in_time_gives_a_plan_that_claims_nothing() -> None:
    """After a few looks at the clock the time of the first job is up, and that of the second is not."""
    cheapest = api.solve(QUESTION, MANY)
    looks = iter([0.0] * 11)
    plan = api.solve(QUESTION, MANY, time_limit_s=deadline(lambda: next(looks, 3.0)))
    summary = plan.document["summary"]
    assert plan.status == "feasible"
    assert plan.exit_code == 5
    assert summary["bound_usd"] is None
    assert summary["gap"] is None
    assert plan.document["certificate"] is None
    assert summary["cost_microusd"] > cheapest.document["summary"]["cost_microusd"]
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
    from planner.plan import beside

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


def test_a_cut_program_is_never_called_infeasible() -> None:
    from planner.optimize.solve import optimize
    from planner.optimize.status import as_far_as_listed

    best = optimize(listed(QUESTION, lambda: 0.0).program)
    assert as_far_as_listed(best, ()) is best
    known = as_far_as_listed(best, ("a",))
    assert (known.status, known.bound_microusd, known.gap, known.stopped_by) == ("feasible", None, None, "time-limit")
    none = optimize(listed(QUESTION, lambda: 1.0).program)
    assert none.status is Status.INFEASIBLE
    assert as_far_as_listed(none, ("a", "b")).status is Status.STOPPED
