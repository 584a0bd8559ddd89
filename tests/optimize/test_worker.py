"""What the solver process answers, asked in this process: the same as over the pipe, with each solver."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.candidates.program import Task
from planner.optimize import process, worker
from planner.optimize.build import build
from planner.optimize.model import Model
from planner.optimize.pulp_adapter import installed_here
from planner.optimize.scope import hopeless, scope_of
from planner.optimize.status import Ending, Options
from planner.optimize.wire import Arrays, arrays_of, header_of, parts_of, unpacked
from tests.optimize.brute_supplies import random_supplied
from tests.optimize.instances import program, row

Frame = tuple[dict[str, Any], Arrays]
TASKS = [Task(name=name, kind="training", first=first, stop=first + 2) for name, first in (("a", 0), ("b", 2))]
QUESTION = program(TASKS, cost=[3, 8, 4, 9], nodes=[4, 1, 4, 1], rows=(row("limits.max_devices", 5, [4, 1, 4, 1]),))
TOO_FEW = program(TASKS, cost=[3, 8, 4, 9], nodes=[4, 1, 4, 1], rows=(row("limits.max_devices", 1, [4, 1, 4, 1]),))


class Answers:
    """Frames that were said, each sent and taken in as on the pipe."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def say(self, header: dict[str, Any], **arrays: Any) -> None:
        self.frames.append(unpacked(b"".join(map(bytes, parts_of(header, **arrays)))[8:]))


def model_of(question: Any) -> Model:
    return build(scope_of(question), "cost")


def asked(do: str, model: Model, until: float | None = None, start: Any = None, **settings: Any) -> list[Frame]:
    """What a question is answered with, its last frame the answer."""
    more = {} if start is None else {"start": start}
    header = {"do": do, "until": until, "gap": 0.0, "seed": 0, "threads": 1, **settings, **header_of(model)}
    answers = Answers()
    getattr(worker, do)(answers.say, *unpacked(b"".join(parts_of(header, **arrays_of(model), **more))[8:]))
    return answers.frames


def solver(name: str) -> Any:
    missing = not installed_here(name)
    return pytest.param(name, marks=pytest.mark.skipif(missing, reason=f"{name} is not installed"))


@pytest.mark.parametrize("name", [solver("highs"), solver("cbc")])
@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_that_of_the_process(name: str, seed: int) -> None:
    question = replace(random_supplied(seed), objective=("cost",)) if seed else QUESTION
    if hopeless(scope_of(question)):
        pytest.skip("no way to run a task is left")
    model = model_of(question)
    *points, (header, arrays) = asked("solve", model, solver=name)
    other = process.solve(model, name, Options(gap=0.0))
    assert header["say"] == "outcome"
    assert header["ending"] == str(other.ending)
    if other.ending is not Ending.OPTIMAL:
        return
    assert header["objective"] == pytest.approx(other.objective, rel=1e-9, abs=1e-9)
    assert float(model.objective @ arrays["values"]) == pytest.approx(header["objective"], rel=1e-9, abs=1e-9)
    for told, its in points:  # on the way, of HiGHS: plans, none of them cheaper
        assert told["say"] == "point"
        assert float(model.objective @ its["values"]) >= header["objective"] - 1e-6


@pytest.mark.parametrize("name", [solver("highs"), solver("cbc")])
def test_what_cannot_be_met_is_infeasible(name: str) -> None:
    ((header, arrays),) = asked("solve", model_of(TOO_FEW), solver=name)
    assert header["ending"] == str(Ending.INFEASIBLE)
    assert not arrays


def test_no_time_left_is_a_limit_without_a_point() -> None:
    ((header, arrays),) = asked("solve", model_of(QUESTION), until=time.monotonic() - 1.0, solver="highs")
    assert (header["ending"], header["detail"]) == (str(Ending.LIMIT), "no time was left for it")
    assert not arrays


def test_relaxation_is_below_the_optimum_and_its_multipliers_say_so() -> None:
    model = model_of(QUESTION)
    ((header, arrays),) = asked("relax", model)
    assert header["say"] == "relaxed"
    value = float(model.objective @ arrays["values"])
    assert value <= asked("solve", model, solver="highs")[-1][0]["objective"] + 1e-9
    table, multipliers = model.table(), arrays["multipliers"]
    line = np.repeat(np.arange(model.line_count), np.diff(table.starts))
    reduced = model.objective - np.bincount(
        table.variables, weights=table.coefficients * multipliers[line], minlength=len(model.objective)
    )
    sides = np.where(multipliers > 0, table.low, table.high)
    bound = float(multipliers[multipliers != 0] @ sides[multipliers != 0]) + float(np.minimum(reduced, 0) @ model.upper)
    assert bound == pytest.approx(value, rel=1e-9)


def test_relaxation_of_what_cannot_be_met_has_none() -> None:
    ((header, arrays),) = asked("relax", model_of(TOO_FEW))
    assert header["say"] == "relaxed"
    assert not arrays


def test_parts_come_to_the_optimum_of_the_whole() -> None:
    model = model_of(QUESTION)
    best = asked("solve", model, solver="highs")[-1][0]["objective"]
    start = np.zeros(len(model.objective))
    start[[1, 3]] = 1.0
    header, arrays = asked("improve", model, until=time.monotonic() + 20.0, start=start)[-1]
    assert header["ending"] == str(Ending.OPTIMAL)
    assert float(model.objective @ arrays["values"]) == pytest.approx(best)


def test_threads_of_a_question_are_those_of_highs() -> None:
    assert worker._with_threads({"do": "improve", "threads": 4}, 0) == 1
    assert worker._with_threads({"do": "solve", "threads": 1}, 1) == 1
    assert worker._with_threads({"do": "solve", "threads": 2}, 1) == 2  # HiGHS is told anew
    assert worker._with_threads({"do": "solve", "threads": 1}, 2) == 1
    assert asked("solve", model_of(QUESTION), solver="highs")[-1][0]["ending"] == str(Ending.OPTIMAL)


def test_waiting_for_the_process_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    process.solvers()  # it is ready
    taken = process._take
    monkeypatch.setattr(process, "_take", lambda *asked: (time.sleep(0.3), taken(*asked))[1])
    before_s, own_s = process.worked_s(), time.process_time()
    assert process.solve(model_of(QUESTION), "highs", Options(gap=0.0)).ending is Ending.OPTIMAL
    assert process.worked_s() - before_s >= 0.3 + time.process_time() - own_s - 1e-3
