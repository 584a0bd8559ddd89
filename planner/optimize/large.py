"""Large programs with supplies (calendars, contracts) are solved in parts: when, with what, and for how long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from planner.candidates.program import IntArray
from planner.optimize.answer import Adapter, Answer, Kept
from planner.optimize.check import judge
from planner.optimize.criteria import LINEAR
from planner.optimize.greedy import greedy_plan
from planner.optimize.model import Model
from planner.optimize.scope import Scope
from planner.optimize.status import Ending, FloatArray, Options, Outcome

LARGE = 20_000  # open columns from which a program with supplies is solved in parts; up to there HiGHS is as good
WORKED = "solved in parts for {:,} iterations of the simplex method: as many, and the same plan, on every run"
CLOCKED = "solved in parts for {:,} iterations of the simplex method, which the clock ended: other runs may differ"
USABLE = (Ending.OPTIMAL, Ending.GAP, Ending.LIMIT, Ending.WORK, Ending.HANG, Ending.INTERRUPT)


class Running(Protocol):
    """What is needed of a run (`stage.Run`)."""

    adapters: Sequence[Adapter]
    options: Options
    stop_at: float | None
    messages: list[str]
    kept: Kept | None

    def keep(self, units: IntArray | None) -> None:
        """Remember a checked plan."""


def decomposed(run: Running, scope: Scope, criterion: str, model: Model) -> Answer | None:
    """The answer of `improve`, checked; None where it is not for the program, or its answer does not stand.

    Parameters
    ----------
    run
        Its first adapter solves, in the time that is left; a plan and what is to be told are noted there.
    scope
        Of the model; its program has supplies, else there is no answer.
    criterion
        A linear one, else there is no answer.
    model
        Of the scope and the criterion.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C; what was found until then has been kept.
    """
    improve = getattr(run.adapters[0], "improve", None)
    supplies = any(task.kind == "optional" for task in scope.program.tasks)
    if improve is None or criterion not in LINEAR or not supplies or len(model.columns) < LARGE:
        return None
    left = None if run.stop_at is None else run.stop_at - time.monotonic()
    if left is not None and left <= 0:
        return None
    outcome: Outcome | None = improve(model, replace(run.options, time_limit_s=left), _start(run, scope, model))
    if outcome is None or outcome.ending not in USABLE:
        if outcome is not None and outcome.ending is Ending.ERROR:
            run.messages.append(f"{run.adapters[0].name}: not solved in parts: {outcome.detail or 'no words'}")
        return None
    units = judge(scope, model, outcome).units if outcome.values is not None else None
    run.keep(units)
    if outcome.ending is Ending.INTERRUPT:
        raise KeyboardInterrupt
    bound = 0.0 if outcome.bound is None else outcome.bound / model.scale  # no criterion has weights below zero
    if units is None:
        return None if outcome.values is not None else Answer(ending=Ending.LIMIT, bound=bound, detail="time-limit")
    if outcome.ending is not Ending.OPTIMAL:
        run.messages.append((CLOCKED if outcome.ending is Ending.LIMIT else WORKED).format(outcome.work))
    ending = Ending.LIMIT if outcome.ending is Ending.HANG else outcome.ending
    return Answer(ending=ending, units=units, bound=bound, solver=run.adapters[0].name)


def _start(run: Running, scope: Scope, model: Model) -> FloatArray | None:
    """A plan to start from: the one that is kept, or one made without a solver; None where flows belong to it."""
    if len(model.columns) < model.variable_count:
        return None

    def stop() -> bool:
        return run.stop_at is not None and time.monotonic() > run.stop_at

    units = run.kept.units if run.kept is not None and run.kept.units is not None else greedy_plan(scope, stop=stop)
    run.keep(units)
    return None if units is None else units[model.columns].astype("float64")
