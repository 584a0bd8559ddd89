"""Whatever a solver says or does, the status is ours: fourteen endings, and who is asked next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from planner.candidates.program import Task
from planner.errors import StoppedError
from planner.optimize import adapter
from planner.optimize.adapter import PulpAdapter
from planner.optimize.model import Model
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import Ending, Options, Outcome
from tests.faults.hard import hard
from tests.optimize.instances import program, row

# two jobs of two columns; a budget keeps both cheap columns apart: the optimum is 3 + 9
TASKS = [Task(name=name, kind="training", first=first, stop=first + 2) for name, first in (("a", 0), ("b", 2))]
QUESTION = program(TASKS, cost=[3, 8, 4, 9], nodes=[4, 1, 4, 1], rows=(row("limits.max_devices", 5, [4, 1, 4, 1]),))
BEST = [1, 0, 0, 1]


@dataclass
class Fake:
    """Lets HiGHS solve, then reports something else."""

    twist: Callable[[Outcome, Model], Outcome]
    name: str = "fake 1.0"
    modelling: str = "none"
    sure_of_infeasible: bool = True
    asked: list[Options] = field(default_factory=list)

    def run(self, model: Model, options: Options) -> Outcome:
        self.asked.append(options)
        return self.twist(PulpAdapter(solver="highs").run(model, options), model)


def solved_by(twist: Callable[[Outcome, Model], Outcome], *others: Any, **options: Any) -> Solution:
    return optimize(QUESTION, adapters=[Fake(twist), *others], **options)


def ending(kind: Ending, *, point: bool = False) -> Callable[[Outcome, Model], Outcome]:
    return lambda real, _: replace(real, ending=kind, values=real.values if point else None, bound=None)


def dearer(real: Outcome, model: Model) -> Outcome:
    """A plan that meets everything but is not the best: 8 + 9."""
    values = np.array([0.0, 1.0, 0.0, 1.0])
    return replace(real, values=values, objective=float(np.dot(model.objective, values)), bound=None)


def point(*values: float) -> Callable[[Outcome, Model], Outcome]:
    def twist(real: Outcome, model: Model) -> Outcome:
        array = np.array(values)
        return replace(real, values=array, objective=float(np.dot(model.objective[: len(array)], array)))

    return twist


BROKEN = {
    "a point that breaks a limit, called optimal": (point(1, 0, 1, 0), "limits.max_devices: 8 of 5"),
    "a point that runs no job, called optimal": (point(0, 0, 0, 0), "a: not 1 jobs"),
    "a point that is not whole": (point(0.5, 0.5, 0, 1), "not whole"),
    "values that are not numbers": (point(math.nan, 0, 0, 1), "not numbers"),
    "an optimum without a point": (ending(Ending.OPTIMAL), "no point"),
    "a point of another size": (point(1, 0), "no point"),
    "a wrong objective": (lambda real, _: replace(real, objective=real.objective * 0.5), "reports the objective"),
    "unbounded": (ending(Ending.UNBOUNDED), "unbounded"),
    "a crash": (lambda real, _: Outcome(ending=Ending.ERROR, detail="Segmentation fault"), "Segmentation fault"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_answer_alone_is_a_failure(name: str) -> None:
    twist, words = BROKEN[name]
    answer = solved_by(twist)
    assert answer.status == "failed"
    assert answer.stopped_by == "solver-failure"
    assert words in " ".join(answer.messages)
    assert not answer.units.any()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_answer_is_put_to_the_other_solver(name: str) -> None:
    twist, words = BROKEN[name]
    answer = solved_by(twist, PulpAdapter(solver="highs"))
    assert (answer.status, answer.units.tolist(), answer.cost_microusd) == ("optimal", BEST, 12)
    assert words in " ".join(answer.messages)


def test_optimal() -> None:
    answer = solved_by(lambda real, _: real)
    assert (answer.status, answer.units.tolist(), answer.gap, answer.messages) == ("optimal", BEST, 0.0, ())
    assert answer.solver == "fake 1.0"


def test_dearer_plan_called_optimal_is_found_out() -> None:
    """The walk in integers sees every plan that the relaxation allows, so the better one as well."""
    assert solved_by(dearer).units.tolist() == BEST


def test_limit_with_a_plan() -> None:
    answer = solved_by(lambda real, model: replace(dearer(real, model), ending=Ending.LIMIT))
    assert (answer.status, answer.stopped_by, answer.cost_microusd) == ("feasible", "time-limit", 17)
    assert answer.bound_microusd is not None
    assert answer.bound_microusd <= 12
    assert answer.gap == pytest.approx((17 - answer.bound_microusd) / 17)


@pytest.fixture
def only_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is made without a solver."""
    monkeypatch.setattr("planner.optimize.solve.greedy_plan", lambda scope, **_: None)


@pytest.mark.usefixtures("only_solvers")
def test_limit_without_a_plan() -> None:
    answer = solved_by(ending(Ending.LIMIT))
    assert (answer.status, answer.stopped_by) == ("stopped", "time-limit")
    assert answer.bound_microusd is None


@pytest.mark.usefixtures("only_solvers")
def test_no_time_at_all() -> None:
    assert solved_by(lambda real, _: real, time_limit_s=0.0).status == "stopped"


@pytest.mark.parametrize(("way", "stopped_by"), [(Ending.LIMIT, "time-limit"), (Ending.HANG, "hang")])
def test_plan_made_without_the_solver_is_kept(way: Ending, stopped_by: str) -> None:
    answer = solved_by(ending(way))
    assert (answer.status, answer.stopped_by) == ("feasible", stopped_by)
    assert answer.units.sum() > 0
    assert (answer.bound_microusd or 0) <= 12 <= answer.cost_microusd


def test_gap_reached() -> None:
    answer = solved_by(lambda real, model: replace(dearer(real, model), ending=Ending.GAP), gap=0.5)
    assert (answer.status, answer.stopped_by, answer.cost_microusd) == ("feasible", "gap", 17)
    proven = solved_by(lambda real, _: replace(real, ending=Ending.GAP), gap=0.5)
    assert (proven.cost_microusd, proven.bound_microusd is not None) == (12, True)


def test_gap_reached_though_none_was_asked_for_is_an_optimum() -> None:
    """CBC calls an optimum within its own tolerance a gap stop."""
    assert solved_by(lambda real, _: replace(real, ending=Ending.GAP)).status == "optimal"


def test_infeasible() -> None:
    assert solved_by(ending(Ending.INFEASIBLE)).status == "infeasible"


def test_infeasible_is_doubted_when_the_solver_is_known_to_err() -> None:
    doubtful = Fake(ending(Ending.INFEASIBLE), sure_of_infeasible=False)
    answer = optimize(QUESTION, adapters=[doubtful, PulpAdapter(solver="highs")])
    assert (answer.status, answer.units.tolist()) == ("optimal", BEST)
    assert "called infeasible" in answer.messages[0]
    assert optimize(QUESTION, adapters=[doubtful]).status == "infeasible"


@pytest.mark.usefixtures("only_solvers")
def test_hang() -> None:
    answer = solved_by(ending(Ending.HANG))
    assert (answer.status, answer.stopped_by) == ("stopped", "hang")


def test_solver_gets_gap_zero_one_thread_and_the_seed() -> None:
    fake = Fake(lambda real, _: real)
    optimize(QUESTION, adapters=[fake], seed=7)
    assert fake.asked[0] == Options(gap=0.0, time_limit_s=None, threads=1, seed=7)


def test_solver_gets_no_more_threads_than_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.optimize.solve.most_threads", lambda: 2)
    fake = Fake(lambda real, _: real)
    answer = optimize(QUESTION, adapters=[fake], threads=5000)
    assert {options.threads for options in fake.asked} == {2}
    assert "5,000 threads were asked for, 2 were used: there are no more cores" in answer.messages
    assert optimize(QUESTION, adapters=[fake], threads=2).messages == ()


@pytest.mark.parametrize(("solver", "way"), [("highs", "pip install highspy"), ("cbc", "pulp[cbc]")])
def test_missing_solver_names_the_way_out(solver: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "has_module", lambda name: False)
    monkeypatch.setattr(adapter, "_has_cbc", lambda: False)
    with pytest.raises(StoppedError, match="not installed") as caught:
        optimize(QUESTION, solver=solver)
    assert way in str(caught.value)


def test_unknown_solver() -> None:
    with pytest.raises(StoppedError, match="glpk"):
        optimize(QUESTION, solver="glpk")


def test_both_solvers_are_here() -> None:
    """PuLP 3 brings its CBC along; from Python 3.12 on the test extra must have installed one."""
    assert PulpAdapter(solver="highs").available()
    assert PulpAdapter(solver="cbc").available(), "install the test extra: pulp[cbc]"


def test_solver_and_layer_are_named_with_versions() -> None:
    answer = optimize(QUESTION)
    assert answer.solver.startswith("HiGHS 1.")
    assert answer.modelling.startswith("PuLP ")


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_real_time_limit_is_not_called_optimal(solver: str) -> None:
    answer = optimize(hard(), solver=solver, time_limit_s=0.5)
    assert answer.status in ("feasible", "stopped")
    assert answer.stopped_by == "time-limit"
    if answer.status == "feasible":
        assert answer.bound_microusd is not None
        assert 0 < answer.bound_microusd < answer.cost_microusd
        assert answer.gap == pytest.approx(1 - answer.bound_microusd / answer.cost_microusd)
