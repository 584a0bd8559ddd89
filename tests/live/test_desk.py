"""Answers are those of `plan solve`; a question that nobody waits for is given up, and the next one is right."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from planner import api
from planner.cli.interrupts import on_time
from planner.errors import InputError
from planner.live import desk as desks
from planner.live.desk import Desk, Question
from planner.live.knobs import Changes, settings_of
from planner.scenario.load import with_settings
from tests.live.conftest import Heard
from tests.tiers import cases, sampled


@pytest.fixture
def desk() -> Desk:
    return Desk(api.session("gpt2-xl"), on_time)


def ended() -> None:
    signal.raise_signal(signal.SIGINT)  # as Ctrl-C


def asked(desk: Desk, *changes: Changes) -> list[Heard]:
    """What is heard of some questions, one after the other."""
    heard = [Heard() for _ in changes]
    heard[-1].then = ended
    for one, listener in zip(changes, heard):
        desk.put(Question(changes=one, listener=listener))
    desk.run()
    return heard


def test_answers_are_those_of_plan_solve(desk: Desk) -> None:
    changes: list[Changes] = [
        {},
        {"training.gpt2-xl.deadline": "60 days"},
        {"price": "+10%"},
        {"hardware.deny": ["v100-sxm3-32gb"]},
        {"training.gpt2-xl.deadline": "60 days"},
    ]
    for one, heard in zip(changes, asked(desk, *changes)):
        scenario = desk.start.scenario
        plan = api.solve(with_settings(scenario, settings_of(scenario, one)))
        last = heard.answers[-1]
        assert last.last
        assert last.proven
        assert last.document["summary"] == plan.document["summary"]
        assert last.document["workloads"] == plan.document["workloads"]
        assert [job["workload"] for job in heard.traded_] == ["gpt2-xl"]
        assert heard.ends == 1


def test_that_there_is_no_plan_is_told_before_ways_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: Changes = {"training.gpt2-xl.deadline": "2 hours"}
    (heard,) = asked(desk, changes)
    (first,), (mended,) = heard.answers, heard.mended_
    assert first.last and first.proven and first.looking  # noqa: PT018
    assert first.document["infeasible"]
    assert not first.document["infeasible"]["ways_out"]
    assert mended.last and mended.proven and not mended.looking  # noqa: PT018
    plan = api.solve(with_settings(desk.start.scenario, settings_of(desk.start.scenario, changes)))
    assert mended.document["infeasible"] == plan.document["infeasible"]
    assert plan.document["infeasible"]
    assert plan.document["infeasible"]["ways_out"]
    assert heard.traded_ == []
    monkeypatch.setattr(desks, "Session", None)  # nothing is asked again
    (again,) = asked(desk, changes)
    assert (again.answers, again.mended_) == ([mended], [])


def test_the_same_is_answered_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = asked(desk, {}, {"price": "0%"})
    monkeypatch.setattr(desks, "Session", None)  # nothing is asked again
    (again,) = asked(desk, {})
    assert again.answers == first.answers


def test_what_cannot_be_read_is_refused_and_the_next_is_answered(desk: Desk) -> None:
    wrong, right = asked(desk, {"training.gpt2-xl.deadline": "soon"}, {})
    assert isinstance(wrong.errors[0], InputError)
    assert not wrong.answers
    assert right.answers[-1].proven


def test_a_bug_ends_its_question_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(desk, "_tradeoffs", broken)
    first, second = asked(desk, {}, {"price": "+1%"})
    assert [type(error) for error in first.errors + second.errors] == [ZeroDivisionError] * 2
    assert second.answers[-1].proven


def _after(seconds: float, what: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()


def test_a_question_that_runs_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is: listing, solving, checking; what is asked next comes out as if it had not been asked."""
    begun = threading.Event()

    def endless(*_: object) -> None:
        begun.set()
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(desk, "_tradeoffs", endless)
    dropped, right = Heard(), Heard(then=ended)
    first = Question(changes={}, listener=dropped)
    desk.put(first)
    desk.put(Question(changes={"price": "cheap"}, listener=right))
    threading.Thread(target=lambda: (begun.wait(30), desk.drop(first)), daemon=True).start()
    desk.run()
    assert dropped.ends == 1
    assert dropped.traded_ == []
    assert isinstance(right.errors[0], InputError)


def test_a_signal_that_is_lost_is_given_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A destructor cannot raise: Python only prints what came up in it, and goes on."""
    begun, lost = threading.Event(), []

    class Deaf:
        def __del__(self) -> None:
            begun.set()
            try:
                while True:
                    time.sleep(0.01)
            finally:
                lost.append(True)

    def destroying(*_: object) -> None:
        Deaf()
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(desk, "_tradeoffs", destroying)
    dropped, right = Heard(), Heard(then=ended)
    first = Question(changes={}, listener=dropped)
    desk.put(first)
    desk.put(Question(changes={"price": "cheap"}, listener=right))
    threading.Thread(target=lambda: (begun.wait(30), desk.drop(first)), daemon=True).start()
    desk.run()
    assert lost == [True]
    assert dropped.traded_ == []
    assert right.errors
    assert capsys.readouterr().err == ""


def test_given_up_at_any_moment_the_next_answer_is_right(desk: Desk) -> None:
    plan = api.solve(with_settings(desk.start.scenario, ["training.gpt2-xl.deadline=60 days"]))
    for number in range(cases(3, 20)):
        dropped, right = Heard(), Heard(then=ended)
        first = Question(changes={"training.gpt2-xl.deadline": f"{100 - number} days"}, listener=dropped)
        desk._answers.clear()
        desk.put(first)
        desk.put(Question(changes={"training.gpt2-xl.deadline": "60 days"}, listener=right))
        _after(0.01 + 0.2 * number / cases(3, 20), lambda first=first: desk.drop(first))  # type: ignore[misc]
        desk.run()
        assert right.errors == []
        assert right.answers[-1].document["workloads"] == plan.document["workloads"]


def test_one_that_waits_is_not_begun(desk: Desk) -> None:
    dropped = Heard()
    waiting = Question(changes={}, listener=dropped)
    desk.put(waiting)
    desk.drop(waiting)
    (right,) = asked(desk, {})
    assert dropped.answers == []
    assert dropped.ends == 1
    assert right.answers


SLOW = [("gpt2-xl", "training.gpt2-xl.deadline", "61 days"), ("llama", "training.pretrain-8b.deadline", "22 days")]


@pytest.mark.parametrize(("name", "path", "text"), sampled(SLOW, 1))
@pytest.mark.parametrize("first_s", sampled([0.01, 0.1, 0.5], 1))
def test_what_takes_long_is_told_as_far_as_it_is(
    name: str, path: str, text: str, first_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little time there is at first, the last answer is that of `plan solve`, and only it says so."""
    monkeypatch.setattr(desks, "FIRST_S", first_s)
    desk = Desk(api.session(name), on_time)
    (heard,) = asked(desk, {path: text})
    *before, last = heard.answers
    assert len(before) <= 1
    assert all(not one.last for one in before)
    assert last.last
    assert last.proven
    plan = api.solve(with_settings(desk.start.scenario, [f"{path}={text}"]))
    assert last.document["workloads"] == plan.document["workloads"]


def test_answers_that_are_kept_are_few_and_the_start_is_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "MOST_KEPT", 2)
    asked(desk, {}, {"price": "1%"}, {"price": "2%"})
    assert desk.known(()) is not None
    assert desk.known(settings_of(desk.start.scenario, {"price": "1%"})) is None
    assert desk.known(settings_of(desk.start.scenario, {"price": "2%"})) is not None
