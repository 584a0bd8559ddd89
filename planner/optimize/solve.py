"""The answer to a program: see `optimize`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray, Program
from planner.deadline import Deadline, TimeIsUp, is_up, left_s
from planner.optimize.adapter import PulpAdapter
from planner.optimize.answer import Kept
from planner.optimize.check import flows_of, violations
from planner.optimize.child import most_threads
from planner.optimize.criteria import criteria_of, told_value, value_of
from planner.optimize.greedy import greedy_plan
from planner.optimize.incumbent import at_most
from planner.optimize.lexicographic import TIES_S, Ended, settle_all
from planner.optimize.places import apart, together
from planner.optimize.pulp_adapter import SOLVERS
from planner.optimize.scope import Scope, hopeless, scope_of
from planner.optimize.stage import Adapter, Run
from planner.optimize.status import STOPS, Ending, Options, Solution, Status

LARGE, GREEDY_SHARE = 1_500, 0.3  # open columns from which a plan is made without a solver first; of a time limit
GREEDY_S = 0.7  # beyond the time limit for a plan without a solver, where none is known
CUT_SHORT = (Ending.LIMIT, Ending.HANG, Ending.INTERRUPT)  # a plan made without a solver is better than none
_NOTED: ContextVar[set[tuple[str, int]] | None] = ContextVar("noted", default=None)
__all__ = ["Solution", "Status", "noting_bounds", "optimize"]


def optimize(
    program: Program,
    *,
    columns: NDArray[np.bool_] | None = None,
    cost_only: bool = False,
    most_microusd: int | None = None,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    adapters: Sequence[Adapter] | None = None,
    first: IntArray | None = None,
    ties_s: float = TIES_S,
) -> Solution:
    """The best plan of a program by its objective and the tie rule.

    Ctrl-C ends it with the best plan so far, `stopped_by` ``interrupt``; callers that go on to solve
    something else pass the answer through `planner.optimize.status.uninterrupted`.

    Parameters
    ----------
    program
        Columns, tasks and joint limits.
    columns
        Mask of the columns that may be used (default: all).
    cost_only
        Leave ties unbroken after the cost.
    most_microusd
        Plans that cost more are not wanted: infeasible then says that there is none for so much.  [micro-USD]
    solver
        ``highs`` or ``cbc``; the other one, if installed, is asked when an answer does not stand.
    gap
        Relative gap at which to stop; a plan within the gap is ``feasible`` unless proven best.
    time_limit_s
        Seconds for this program, or a deadline that it shares with others.  [s]
    threads
        Of the solver, as many as there are cores at most.
    adapters
        What to run models with, in order (for tests); default PuLP with the solver and the other one.
    first
        A plan from elsewhere, kept for when the run ends early, if it stands up to the check.
    ties_s
        Plans of equal cost are told apart for so long, or half of what the cost took, if that is longer.  [s]

    Raises
    ------
    StoppedError
        The solver asked for is not installed.
    """
    if adapters is None:
        asked = PulpAdapter(solver=solver)
        asked.require()
        adapters = _Lazily(asked, solver)
    if apart(program, columns) is not None:
        until = Deadline.after(time_limit_s) if isinstance(time_limit_s, (int, float)) else time_limit_s
        given: dict[str, Any] = {"cost_only": cost_only, "solver": solver, "gap": gap, "time_limit_s": until}
        given |= {"threads": threads, "seed": seed, "adapters": adapters, "first": first, "ties_s": ties_s}

        def there(some: NDArray[np.bool_], most: int | None) -> Solution:
            limits = [limit for limit in (most, most_microusd) if limit is not None]
            return optimize(program, columns=some, most_microusd=min(limits, default=None), **given)

        return together(program, columns, there, lambda: is_up(until))
    scope = scope_of(program, columns)
    if most_microusd is not None:
        scope = at_most(scope, "cost", most_microusd).settle("cost", most_microusd)
    most = most_threads()
    limit_s = left_s(time_limit_s)
    options = Options(gap=gap, time_limit_s=limit_s, threads=min(threads, most), seed=seed)
    run = Run(
        adapters=adapters,
        options=options,
        ties=not cost_only,
        ties_s=ties_s,
        stop_at=None if limit_s is None else time.monotonic() + limit_s,
    )
    if threads > most:
        run.messages.append(f"{threads:,} threads were asked for, {most} were used: there are no more cores")
    main = adapters[0]
    task = hopeless(scope)
    if task:
        return _without_plan(run, main, program, Status.INFEASIBLE, f"{task}: no way to run it is left")
    if not len(program.tasks):
        return _with_plan(run, main, scope, np.zeros(program.column_count, dtype=np.int64), 0, Status.OPTIMAL, "")
    chain = criteria_of(program)
    if cost_only:
        chain = chain[: chain.index("cost") + 1]
    run.kept = Kept(scope=scope, chain=chain)
    run.kept.offer(first)
    if run.stop_at is not None and run.kept.units is None and len(scope.open) > LARGE:
        run.kept.offer(_made_without_solver(scope, time.monotonic() + GREEDY_SHARE * (limit_s or 0.0)), checked=True)
    ended = _at_best(settle_all(run, scope, chain, partial(_unsure, program)), run.kept, run.stop_at)
    if ended.stopped_by in STOPS:
        run.messages.append(STOPS[ended.stopped_by])
    if ended.units is None:
        status = {Ending.INFEASIBLE: Status.INFEASIBLE, Ending.ERROR: Status.FAILED}.get(ended.ending, Status.STOPPED)
        detail = ended.detail if ended.ending is Ending.ERROR else ""
        return _without_plan(run, main, program, status, detail, ended.stopped_by)
    status = Status.OPTIMAL if ended.proven else Status.FEASIBLE
    plan = (run, main, scope, ended.units, ended.bound, status, ended.stopped_by, ended.untold)
    _note_bounds(program, ended.units)
    try:
        return _with_plan(*plan)
    except TimeIsUp:  # once, for work that did not end by itself: this does
        return _with_plan(*plan)


@contextmanager
def noting_bounds() -> Iterator[set[tuple[str, int]]]:
    """Ways that plans found meanwhile use although their rates are only bounded: workload, and number in its table."""
    found = set[tuple[str, int]]()
    token = _NOTED.set(found)
    try:
        yield found
    finally:
        _NOTED.reset(token)


def bounds_noted() -> bool:
    """Whether a plan that was found since they are noted uses such ways."""
    return bool(_NOTED.get())


def _unsure(program: Program, units: IntArray) -> bool:
    """Whether bounds are noted and a plan uses some: whoever notes them asks again, whatever plans are as good."""
    return _NOTED.get() is not None and bool((program.bounded[units > 0] > 0).any())


def _note_bounds(program: Program, units: IntArray) -> None:
    found = _NOTED.get()
    for task in program.tasks if found is not None else ():
        part = slice(task.first, task.stop)
        used = program.bounded[part][(units[part] > 0) & (program.bounded[part] > 0)]
        found |= {(task.name, int(number) - 1) for number in used}  # type: ignore[operator]


def _at_best(ended: Ended, kept: Kept, stop_at: float | None) -> Ended:
    """The plan kept takes the place of a worse one, or of none, when the run ended early."""
    if ended.units is None and kept.units is None and ended.ending in CUT_SHORT:
        until = None if stop_at is None else stop_at + GREEDY_S
        kept.offer(_made_without_solver(kept.scope, until), checked=True)
    if ended.proven or kept.units is None or (ended.units is not None and not kept.better_than(ended.units)):
        return ended
    bound = ended.bound if ended.bound is not None else kept.bound_microusd
    stopped_by = ended.stopped_by or "solver-failure"  # a proof that no plan exists, and yet there is one
    return replace(ended, units=kept.units, bound=bound, stopped_by=stopped_by)


def _made_without_solver(scope: Scope, until: float | None) -> IntArray | None:
    try:
        return greedy_plan(scope, stop=lambda: until is not None and time.monotonic() > until)
    except TimeIsUp:
        return None


class _Lazily(Sequence[Adapter]):
    """The solver asked for, then the other; whether that is installed is looked up only if needed."""

    def __init__(self, main: PulpAdapter, solver: str) -> None:
        self.main = main
        self.other = PulpAdapter(solver=next(name for name in SOLVERS if name != solver))

    def __len__(self) -> int:
        return 2 if self.other.available() else 1

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if index == 0:
            return self.main
        if index == 1 and self.other.available():
            return self.other
        raise IndexError(index)


def _without_plan(
    run: Run, adapter: Adapter, program: Program, status: Status, detail: str, stopped_by: str = ""
) -> Solution:
    messages = (*run.messages, detail) if detail else tuple(run.messages)
    return Solution(
        status=status,
        units=np.zeros(program.column_count, dtype=np.int64),
        flows=np.zeros(program.capacity_micro_per_s.shape),
        stopped_by=stopped_by,
        solver=adapter.name,
        modelling=adapter.modelling,
        messages=messages,
    )


def _with_plan(
    run: Run,
    adapter: Adapter,
    scope: Scope,
    units: IntArray,
    bound: int | None,
    status: Status,
    stopped_by: str,
    untold: str = "",
) -> Solution:
    program = scope.program
    broken = next(violations(scope, units), "")
    if broken:  # cannot happen: every way here was checked; kept as the last line of defence
        return _without_plan(run, adapter, program, Status.FAILED, broken, "solver-failure")
    cost = int(value_of(program, units, "cost"))
    if status is Status.OPTIMAL and bound is None:
        bound = cost
    routed = run.routed
    same = routed is not None and bool((routed[0] == units).all())
    flows = flows_of(program, units, routed[1] if routed and same else None, routed[2] if routed and same else None)
    return Solution(
        status=status,
        units=units,
        flows=flows[-1],
        level_flows=flows,
        cost_microusd=cost,
        bound_microusd=bound,
        gap=None if bound is None else (cost - bound) / cost if cost and status is not Status.OPTIMAL else 0.0,
        untold=untold,
        stopped_by=stopped_by,
        solver=adapter.name,
        modelling=adapter.modelling,
        stages=tuple((name, told_value(program, units, name)) for name in criteria_of(program) if name != "offers"),
        messages=tuple(run.messages),
    )
