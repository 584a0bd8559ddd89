"""Criteria one after another, each held exactly at its best value before the next.

After each linear stage the plans that are left are few as a rule, and are walked through in
integers (`enumerate`), which settles all criteria that follow at once. Otherwise the stages
go on: a held value is a line of the model and is checked in integers afterwards, so a later
stage whose answer breaks an earlier value is refused and the plan before it stays. The
makespan has no line at all: it is found by bisection over the distinct finish times, each
step closing the columns that end later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.candidates.program import IntArray, Program
from planner.candidates.prune import canonical_order
from planner.candidates.ties import NAMES
from planner.carriers import dataclass
from planner.deadline import TimeIsUp
from planner.optimize.criteria import value_of, weights_of
from planner.optimize.enumerate import Walked, walked
from planner.optimize.fleets import first_of
from planner.optimize.scope import Scope, decided, hopeless
from planner.optimize.stage import Answer, Found, Run
from planner.optimize.status import Ending

TIES_S, TIES_SHARE = 1.0, 0.5  # for ties, at most: the larger of both, the share of what the cost took
WORK_PER_S = 80_000.0  # of what `Run.ask` counts: what ends ties is this, the same on every machine
SLOW = 3.0  # as many times the seconds are let pass before the clock ends them after all
RADIX = 10**6  # weights of one block of the canonical order stay below this
MOST_BLOCKS = 400
QUIET, MANY = 2, 100  # blocks that change nothing before so many columns are asked about at once
UNTOLD = "plans of equal cost were not told apart by {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the chain ended."""

    units: IntArray | None = None
    proven: bool = False  # the objective's own criteria and the cost are at their best
    bound: int | None = None  # of the cost
    untold: str = ""  # the first criterion by which plans of equal value were not told apart, for lack of time
    ending: Ending = Ending.OPTIMAL
    stopped_by: str = ""
    detail: str = ""


def settle_all(
    run: Run, scope: Scope, chain: tuple[str, ...], unsure: Callable[[IntArray], bool] = lambda _: False
) -> Ended:
    """Work through the criteria; the plan of the last stage that stands is the answer.

    Ctrl-C and a time limit end the work wherever it is, without an answer: what is known then is in `run.kept`.

    Parameters
    ----------
    run
        Its clock is set anew, for ties, once what is asked for is settled.
    scope
        All plans that can be the answer.
    chain
        Criteria, most important first.
    unsure
        Whether a plan rests on what is to be looked at first: plans as good as that are not told apart.
    """
    try:
        return _settle(run, scope, chain, unsure)
    except TimeIsUp:
        return Ended(ending=Ending.LIMIT, stopped_by="time-limit")
    except KeyboardInterrupt:
        return Ended(ending=Ending.INTERRUPT, stopped_by="interrupt")


def _settle(run: Run, scope: Scope, chain: tuple[str, ...], unsure: Callable[[IntArray], bool]) -> Ended:
    state, begun = Ended(), time.monotonic()
    important = max(chain.index(name) for name in {"cost", *scope.program.objective} if name in chain)
    for at, criterion in enumerate(chain):
        if at == important + 1:
            _ties_begin(run, begun)
        if criterion == "time":
            scope, units, proven = _least_makespan(run, scope, state.units)
            stopped_by = state.stopped_by if proven else "time-limit"
            state = replace(state, units=units, stopped_by=stopped_by, proven=state.proven and proven)
            continue
        if state.units is not None and decided(scope):
            return replace(state, proven=not state.stopped_by)
        if criterion == "offers":
            units, told = _first_in_order(run, scope, state.units)
            return replace(state, units=units) if told else _untold(run, scope, replace(state, units=units), criterion)
        known = _value_without_solving(scope, criterion, state.units)
        if known is not None:
            scope = scope.settle(criterion, known + (run.tie(scope, known) if criterion == "cost" else 0))
            bound = known if criterion == "cost" else state.bound
            state = replace(state, proven=not state.stopped_by, bound=bound)
            continue
        if run.stop_at is not None and time.monotonic() >= run.stop_at:  # even the model may take a while
            return _cut_short(run, scope, state, Answer(ending=Ending.LIMIT), criterion, late=at > important)
        found = run.minimise(scope, criterion, state.units)
        late = at > important
        if found.answer.units is None:
            return _cut_short(run, scope, state, found.answer, criterion, late=late)
        state = _after(state, found, criterion, late=late)
        if not found.proven or state.stopped_by:
            return _untold(run, scope, state, criterion) if late else state
        value = int(value_of(scope.program, found.answer.units, criterion))
        if criterion == "cost":
            state = replace(state, bound=value)
        if at == important and unsure(found.answer.units):
            return state
        best = _walk(found, chain[at:])
        if best is not None:
            cheapest = best.cheapest_microusd
            return replace(state, units=best.units, bound=state.bound if cheapest is None else cheapest)
        if at + 1 == len(chain):
            break
        scope = found.scope.settle(criterion, value + (run.tie(scope, value) if criterion == "cost" else 0))
        if at == important:
            _ties_begin(run, begun)
        scope = _without_rivals(run, scope, found.answer.units)
    return state


def _ties_begin(run: Run, begun: float) -> None:
    """What is asked from now on only tells equal plans apart, and has limits; set once."""
    if run.most_work < math.inf:
        return
    run.most_work = run.work + max(run.ties_s * WORK_PER_S, TIES_SHARE * run.work)
    most = time.monotonic() + SLOW * max(run.ties_s, TIES_SHARE * (time.monotonic() - begun))
    run.stop_at = most if run.stop_at is None else min(run.stop_at, most)


def _after(state: Ended, found: Found, criterion: str, *, late: bool) -> Ended:
    stopped_by = state.stopped_by
    if not found.proven and not late:
        named = {Ending.LIMIT: "time-limit", Ending.WORK: "work-limit", Ending.HANG: "hang"}
        stopped_by = named.get(found.answer.ending, "gap")
    bound = state.bound
    if criterion == "cost":
        bound = max(math.floor(found.bound * (1 - 1e-9)), 0) if math.isfinite(found.bound) else None
    return Ended(
        units=found.answer.units,
        proven=(found.proven or late) and not stopped_by,
        bound=bound,
        ending=found.answer.ending,
        stopped_by=stopped_by,
    )


def _cut_short(run: Run, scope: Scope, state: Ended, answer: Answer, criterion: str, *, late: bool) -> Ended:
    """A stage without an answer: the plan before it stays, if there is one."""
    by_limit = answer.ending in (Ending.LIMIT, Ending.HANG)
    stopped_by = {Ending.LIMIT: "time-limit", Ending.HANG: "hang"}.get(answer.ending, "solver-failure")
    if state.units is None:
        infeasible = answer.ending is Ending.INFEASIBLE
        ending = answer.ending if infeasible or by_limit else Ending.ERROR
        return replace(state, ending=ending, stopped_by="" if infeasible else stopped_by, detail=answer.detail)
    return _untold(run, scope, state, criterion) if late else replace(state, proven=False, stopped_by=stopped_by)


def _untold(run: Run, scope: Scope, state: Ended, criterion: str) -> Ended:
    """The plan is as cheap as any, and stays as it is but for jobs that wait for nothing."""
    if state.units is not None:
        state = replace(state, units=sooner(scope.program, state.units))
    late = run.stop_at is not None and time.monotonic() >= run.stop_at
    text = UNTOLD.format(f"{NAMES.get(criterion, criterion)} and what comes after it")
    run.messages.append(f"{text}: the time for that was over" if late else text)
    return replace(state, untold=criterion)


def sooner(program: Program, units: IntArray) -> IntArray:
    """A plan with every single job as early as its limits leave it, one after the other, on the same machines.

    Where there was no time to settle which of many equal plans is best, a job would stand weeks after it could.

    Parameters
    ----------
    units
        (columns,) of a plan.
    """
    if not program.rows:
        return units
    units, bounds = units.copy(), np.array([row.bound for row in program.rows])
    rows = np.repeat(np.arange(len(program.rows)), [len(row.columns) for row in program.rows])
    columns, taken = (np.concatenate([getattr(row, name) for row in program.rows])
                      for name in ("columns", "coefficients"))  # fmt: skip
    order = np.argsort(columns, kind="stable")
    rows, taken = rows[order], taken[order]
    starts = np.searchsorted(columns[order], np.arange(program.column_count + 1))
    used = np.zeros_like(bounds)
    np.add.at(used, rows, taken * units[columns[order]])
    same = ("cost_microusd", "carbon_mg", "nodes", "devices", "offer", "plain", "pipelined", "undated")
    moved = True
    while moved:
        moved = False
        for task in program.tasks:
            here = np.flatnonzero(units[task.first : task.stop]) + task.first
            if task.kind != "training" or task.count != 1 or len(here) != 1:
                continue
            (now,) = here.tolist()
            alike = program.finish_s[task.first : task.stop] < program.finish_s[now]
            for name in same:
                values = getattr(program, name)
                alike &= values[task.first : task.stop] == values[now]
            for other in sorted(np.flatnonzero(alike) + task.first, key=lambda column: program.finish_s[column]):
                change = np.zeros_like(bounds)
                for column, sign in ((other, 1), (now, -1)):
                    mine = slice(starts[column], starts[column + 1])
                    np.add.at(change, rows[mine], sign * taken[mine])
                if ((change <= 0) | (used + change <= bounds)).all():
                    units[now], units[other], used, moved = 0, 1, used + change, True
                    break
    return units


def _walk(found: Found, chain: tuple[str, ...]) -> Walked | None:
    """Settle everything that is left in integers, when it is little."""
    if found.plans is not None:
        units = first_of(found.scope, found.plans, chain[1:])  # all are as good by the first
        return None if units is None else Walked(units=units)
    if found.options is None or found.floor is None:
        return None
    return walked(found.scope, found.options, found.floor, found.value, chain)


def _without_rivals(run: Run, scope: Scope, units: IntArray) -> Scope:
    """Close what the plan does not use, when no plan of the same value uses any of it.

    One question in place of many: most often the plan has no rival, and all later stages are
    settled at a glance.
    """
    return scope if _without(run, scope, units, scope.open.tolist()) is None else scope.only(units > 0)


def _value_without_solving(scope: Scope, criterion: str, units: IntArray | None) -> int | None:
    """The value of a criterion in which the plans cannot differ (units known), else None."""
    if units is None:
        return None
    value = value_of(scope.program, units, criterion)
    weights = weights_of(scope.program, criterion)
    for task in scope.program.tasks:
        here = weights[scope.of_task(task)]
        if len(here) and ((here != here[0]).any() or (task.kind != "training" and here[0] != 0)):
            return None
    return int(value)


def _least_makespan(run: Run, scope: Scope, units: IntArray | None) -> tuple[Scope, IntArray | None, bool]:
    """Close the columns that end after the least makespan; a plan that has it; whether it is proven."""
    program = scope.program
    jobs = [scope.of_task(task) for task in program.tasks if task.kind == "training"]
    if not jobs:
        return scope, units, True
    floor = max(float(program.finish_s[columns].min()) for columns in jobs)
    times = np.unique(program.finish_s[scope.open])  # those of jobs, and of periods that a job may run in
    times = times[times >= floor]
    if units is not None:  # no later than the plan at hand
        times = times[times <= value_of(program, units, "time")]
    low, high, proven = 0, len(times) - 1, True
    middle = 0  # most often the floor itself can be had
    while low < high:
        answer = _try(run, scope.settle("time", float(times[middle])))
        if answer.units is not None:
            high, units = middle, answer.units
        else:
            proven &= answer.ending is Ending.INFEASIBLE
            low = middle + 1
        middle = (low + high) // 2
    return scope.settle("time", float(times[high])), units, proven


def _try(run: Run, scope: Scope) -> Answer:
    if hopeless(scope):
        return Answer(ending=Ending.INFEASIBLE)
    return run.any_plan(scope)


def _first_in_order(run: Run, scope: Scope, units: IntArray | None) -> tuple[IntArray | None, bool]:
    """Among equal plans the one first in canonical order, block by block of columns; whether it is known to be.

    Where blocks stay as they are, many columns to come are asked about at once: most often no equal
    plan uses any of those that this plan does not use.
    """
    if units is None:
        return None, True
    ahead, unchanged, many = canonical_order(scope.program, scope.open).tolist(), 0, MANY
    for _ in range(MOST_BLOCKS):
        ahead = [k for k in ahead if scope.upper[k] > 0]
        if not ahead or decided(scope):
            return units, True
        if unchanged >= QUIET:
            narrower = _without(run, scope, units, ahead[:many])
            unchanged, many = (unchanged, 2 * many) if narrower else (0, MANY)
            scope = narrower or scope
            if narrower:
                continue
        block = _block(scope, ahead)
        answer = run.ask(scope, "offers", _radix_weights(scope, block))
        if answer.units is None:
            break
        unchanged = unchanged + 1 if (answer.units[block] == units[block]).all() else 0
        units = answer.units
        scope = scope.fix_all({column: int(units[column]) for column in block})
        ahead = ahead[len(block) :]
    return units, False


def _block(scope: Scope, columns: list[int]) -> list[int]:
    """As many of the first columns as one objective can tell apart."""
    size = 1
    for place, column in enumerate(columns):
        size *= int(scope.upper[column]) + 1
        if place and size > RADIX:
            return columns[:place]
    return columns


def _without(run: Run, scope: Scope, units: IntArray, columns: list[int]) -> Scope | None:
    """The scope without those of some columns that a plan does not use, when no equal plan uses any of them."""
    mask = np.zeros(scope.program.column_count, dtype=bool)
    mask[columns] = True
    strange = mask & (units == 0) & (scope.upper > 0)
    if not strange.any():
        return None
    answer = run.ask(scope, "offers", -strange.astype(np.int64))
    if answer.units is None or answer.ending is not Ending.OPTIMAL or answer.units[strange].any():
        return None
    return scope.only(~strange)


def _radix_weights(scope: Scope, columns: list[int]) -> IntArray:
    """Negative place values: minimising them gives most units to the first column, then the second."""
    weights = np.zeros(scope.program.column_count, dtype=np.int64)
    value = 1
    for column in reversed(columns):
        weights[column] = -value
        value *= int(scope.upper[column]) + 1
    return weights
