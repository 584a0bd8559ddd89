"""Points looked for beside each other: the same bytes in whatever order they come, and what is told of deaths."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.analysis.frontier.run import GUESSES, Ahead
from planner.api import frontiers
from planner.errors import PlanError, Problem, StoppedError, UsageError
from planner.plan.model.frontier_document import Record
from planner.sweeps.answering import KILLER, KILLER_HINT
from planner.sweeps.question import Answered, lost
from tests.frontier.random_worlds import calendar_world, random_world
from tests.tiers import cases


class Shuffled:
    """Stands for processes: as many questions at a time, answered in any order."""

    asked = 0
    seed = 0

    def __init__(self, answer: Any, workers: int) -> None:
        self.answer, self.workers, self.chance = answer, workers, random.Random(Shuffled.seed)

    def __enter__(self) -> Shuffled:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, questions: Iterable[Any]) -> Iterator[tuple[int, Answered]]:
        waiting, flying = iter(questions), []
        while True:
            while len(flying) < self.workers and (one := next(waiting, None)) is not None:
                flying.append(one)
            if not flying:
                return
            number, question = flying.pop(self.chance.randrange(len(flying)))
            Shuffled.asked += 1
            yield number, self.answer(question)


ASKED: list[dict[str, Any]] = [
    {"over": "deadline", "low": "1000 s", "high": "9000 s"},
    {"over": "budget"},
    {"over": "carbon"},
    {"over": "deadline", "low": "1000 s", "high": "9000 s", "most": 2},
]


@pytest.mark.parametrize("asked", ASKED)
def test_the_same_bytes_in_any_order(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where a deadline divides the range into several, and again from a journal of what was found out of turn."""
    monkeypatch.setattr(frontiers, "Processes", Shuffled)
    monkeypatch.setattr(Shuffled, "asked", 0)
    several = 0
    for seed in range(27, 27 + cases(2, 8)):
        scenario, catalog = random_world(seed, apart=seed % 2 == 0)
        serial = api.frontier(scenario, catalog, **asked)
        journal = tmp_path / f"{seed}.jsonl"
        for workers in (2, 5):
            monkeypatch.setattr(Shuffled, "seed", seed)
            assert api.frontier(scenario, catalog, workers=workers, **asked).to_json() == serial.to_json(), seed
        assert api.frontier(scenario, catalog, workers=3, journal=journal, **asked).to_json() == serial.to_json()
        before = Shuffled.asked
        assert api.frontier(scenario, catalog, workers=3, journal=journal, **asked).to_json() == serial.to_json()
        assert Shuffled.asked == before, "what is in the journal is not asked again"
        several += len(serial.points) > 2
    assert several or "most" in asked


def test_the_same_bytes_with_a_calendar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontiers, "Processes", Shuffled)
    scenario, catalog = calendar_world()
    asked: dict[str, Any] = {"over": "deadline", "low": "2 h", "high": "9 h"}
    assert api.frontier(scenario, catalog, workers=2, **asked).to_json() == (
        api.frontier(scenario, catalog, **asked).to_json()
    )


def test_the_same_bytes_from_processes() -> None:
    scenario, catalog = random_world(31)
    asked = ASKED[0]
    serial = api.frontier(scenario, catalog, **asked).to_json()
    assert api.frontier(scenario, catalog, workers=2, **asked).to_json() == serial


def test_a_point_that_kills_its_workers_ends_it_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(Shuffled):
        def __call__(self, questions: Iterable[Any]) -> Iterator[tuple[int, Answered]]:
            for number, _ in questions:
                yield number, Answered(row=lost("worker-died", KILLER, KILLER_HINT))

    monkeypatch.setattr(frontiers, "Processes", Dying)
    with pytest.raises(StoppedError) as told:
        api.frontier(*random_world(31), over="budget", workers=2)
    assert told.value.problems[0].reference == "worker-died"
    assert "fewer workers" in told.value.problems[0].hint


def test_a_plan_that_does_not_hold_is_told_as_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> list[Problem]:
        return [Problem(reference="wrong", message="a sum", hint="none")]

    monkeypatch.setattr(frontiers, "Processes", Shuffled)
    monkeypatch.setattr(frontiers, "_verify", wrong)
    with pytest.raises(PlanError) as told:
        api.frontier(*random_world(31), over="budget", workers=2)
    assert told.value.problems[0].reference == "wrong"


@pytest.mark.parametrize("workers", [0, 1025])
def test_workers_are_one_or_more(workers: int) -> None:
    with pytest.raises(UsageError):
        api.frontier(*random_world(31), over="budget", workers=workers)


def walked(points: list[int], low: int, high: int, beside: int) -> tuple[list[int | None], dict[Any, Record]]:
    """Limits as they are asked, of a frontier of integers: a limit comes to the largest point at or below it."""
    found: dict[Any, Record] = {}
    ahead = Ahead(low=low, high=high, known=found.get, beside=beside)
    asked, flying = [], []
    while True:
        while len(flying) < beside and (limit := next(ahead, None)) is not None:
            flying.append(limit)
        if not flying:
            return asked, found
        limit = flying.pop(0)
        asked.append(limit)
        under = [point for point in points if point <= limit]
        found[limit] = {"status": "optimal", "over": max(under)} if under else {"status": "infeasible"}


@pytest.mark.parametrize("beside", [1, 2, 7])
def test_every_limit_of_the_walk_is_asked_once(beside: int) -> None:
    points = [100, 170, 180, 400, 401, 850]
    asked, found = walked(points, 0, 1000, beside)
    assert len(asked) == len(set(asked))
    limit, met = 1000, []
    while (reached := found[limit].get("over")) is not None:
        met.append(reached)
        limit = int(reached) - 1
    assert met == points[::-1]
    assert len(asked) - len(points) - 1 <= (GUESSES * beside) * 2 * (beside > 1)


def test_nothing_is_guessed_where_answers_come_one_at_a_time() -> None:
    assert walked([10, 500], 0, 1000, 1)[0] == [1000, 499, 9]


def test_while_the_loosest_is_answered_a_middle_is_guessed() -> None:
    ahead = Ahead(low=0, high=1000, known={}.get, beside=3)
    assert [next(ahead), next(ahead), next(ahead)] == [1000, 500, 750]


def test_without_a_loosest_limit_the_first_answer_is_waited_for() -> None:
    found: dict[Any, Record] = {}
    ahead = Ahead(low=0, high=None, known=found.get, beside=3)
    assert next(ahead, "end") is None
    assert next(ahead, "end") == "end"
    found[None] = {"status": "optimal", "over": 801}
    assert [next(ahead), next(ahead)] == [800, 400]
