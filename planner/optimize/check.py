"""A point held against the program in exact arithmetic, whoever found it.

Training counts, joint rows, provider limits, replicas, the share on spot and fleets with one
bucket are checked in Python integers and fractions. Fleets with several buckets, levels, roles
or failure domains are routed anew here, situation by situation (`situations`): what the solver
says of flows is not read, except for whole slices, whose loads are added in fractions. What a boxed
fleet brings is added up likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from planner.candidates.program import (
    DECODE,
    PREFILL,
    WHOLE,
    IntArray,
    Program,
    Task,
    decimal_share,
    fleet_rates,
    splits_simply,
)
from planner.carriers import dataclass
from planner.optimize.criteria import providers_of, value_of
from planner.optimize.model import Model
from planner.optimize.places import scattered
from planner.optimize.scope import Scope
from planner.optimize.situations import ROUTED, Cut, flows_at, unmet
from planner.optimize.status import FloatArray, Outcome

ROUND = 1e-5  # farther from an integer than this is not an integer


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the exact check says of an answer: its units, or why not, and lines that it breaks."""

    units: IntArray | None = None
    why: str = ""
    cuts: tuple[Cut, ...] = ()
    raw: IntArray | None = None  # units that break nothing but the cuts
    broken: IntArray | None = None  # whole units that break something else


def judge(scope: Scope, model: Model, outcome: Outcome) -> Verdict:
    """The rounded units of an answer, or why it cannot be believed, or what the model did not know.

    Parameters
    ----------
    scope
        What the plan must keep, settled criteria included.
    model
        That was solved; its columns are open ones of the scope.
    outcome
        As the solver reports it; only its values count, and its objective is compared with theirs.
    """
    units = np.zeros(scope.program.column_count, dtype=np.int64)
    values = outcome.values
    if values is None or len(values) != model.variable_count:
        return Verdict(why="no point came with it")
    # what stands in no line and costs nothing is left out by modelling layers: it may be anything, so it is nothing
    values = np.where(np.isnan(values) & ~model.mentioned(), 0.0, values)
    if not np.isfinite(values).all():
        return Verdict(why="its values are not numbers")
    raw = values[: len(model.columns)]
    if np.abs(raw - np.rint(raw)).max(initial=0.0) > ROUND:
        return Verdict(why="its point is not whole")
    units[model.columns] = np.rint(raw).astype(np.int64)
    problem = next(violations(scope, units, routed=False), "") or next(_unsliced(scope, model, values, units), "")
    if problem:
        return Verdict(why=problem, broken=units)
    claimed, real = outcome.objective, float(np.dot(model.objective, values))
    if claimed is not None and not math.isclose(claimed, real, rel_tol=1e-6, abs_tol=1e-6):
        return Verdict(why=f"it reports the objective {claimed:.9g}, its own point has {real:.9g}")
    cuts = []
    for task in scope.program.tasks:
        for missed in _unrouted(scope.program, task, units):
            if not isinstance(missed, Cut):
                return Verdict(why=f"{task.name}: neither a routing nor prices stand at level {missed.level}")
            cuts.append(missed)
    return Verdict(cuts=tuple(cuts), raw=units) if cuts else Verdict(units=units)


def _unrouted(program: Program, task: Task, units: IntArray) -> Iterator[Any]:
    if task.kind == "serving" and any(map(any, task.demands)) and not splits_simply(program, task):
        yield from unmet(program, task, units)


def violations(
    scope: Scope, units: IntArray, *, routed: bool = True, tasks: Sequence[Task] | None = None
) -> Iterator[str]:
    """Everything that a plan breaks, exactly.

    Parameters
    ----------
    scope
        What the plan must keep, settled criteria included.
    units
        Of each column of the program, (n,).
    routed
        Also check every situation of fleets that do not split simply (`situations.unmet`).
    tasks
        Those whose units are others than in a plan that breaks nothing; None: all.
    """
    program = scope.program
    if (units < 0).any() or (units > scope.upper).any():
        yield "a column has more units than it may"
    for task in program.tasks if tasks is None else tasks:
        yield from task_violations(program, task, units)
        for missed in _unrouted(program, task, units) if routed else ():
            yield f"{task.name}: demand unmet ({missed})"
    for row in program.rows:
        taken = units[row.columns]
        some = np.flatnonzero(taken)
        used = sum(a * u for a, u in zip(row.coefficients[some].tolist(), taken[some].tolist()))
        if used > row.bound:
            yield f"{row.name}: {used} of {row.bound}"
    if program.max_providers is not None and len(providers_of(program, units)) > program.max_providers:
        yield "too many providers"
    for criterion, value in scope.settled:
        if value_of(program, units, criterion) > value:
            yield f"{criterion} is worse than proven possible"


def task_violations(program: Program, task: Task, units: IntArray) -> Iterator[str]:
    """What a plan breaks of one task's own demand.

    Whether a fleet that does not split simply carries its demand is told by `situations.unmet`.

    Parameters
    ----------
    program
        The whole program.
    task
        One of its tasks.
    units
        Of each column of the program, (n,); those of other tasks do not count.
    """
    used = (np.flatnonzero(units[task.first : task.stop]) + task.first).tolist()
    if task.kind == "training":
        if int(units[task.first : task.stop].sum()) != task.count:
            yield f"{task.name}: not {task.count} jobs"
        return
    if task.kind == "optional":
        return
    running = [k for k in used if program.level[k] == 0]
    if sum(int(program.replicas[k]) * int(units[k]) for k in running) < task.min_replicas:
        yield f"{task.name}: fewer than {task.min_replicas} replicas"
    if task.max_spot_share is not None:
        yield from _too_much_spot(program, task, units, used)
    yield from scattered(program, task, used)
    if splits_simply(program, task) and task.demand_micro_per_s[0] > 0:
        sizes = [(int(program.capacity_micro_per_s[k, 0]), max(int(program.replicas[k]), 1)) for k in used]
        total = sum(size * int(units[k]) for (size, _), k in zip(sizes, used))
        largest = max((Fraction(size, replicas) for size, replicas in sizes), default=Fraction(0))
        if total - task.spare_replicas * largest < task.demand_micro_per_s[0]:
            yield f"{task.name}: demand unmet"
    elif any(map(any, task.demands)) and not (splits_simply(program, task) or task.boxed):
        for k in used:
            if int(units[k]) * int(program.replicas[k]) < task.spare_replicas:
                yield f"{task.name}: fewer than {task.spare_replicas} replicas of a type in use"


def _too_much_spot(program: Program, task: Task, units: IntArray, used: Sequence[int]) -> Iterator[str]:
    """Levels and roles in which spot units have more than their share of the rates of all units that run."""
    share, rates = decimal_share(task.max_spot_share or 0.0), fleet_rates(program, task, used).tolist()
    for level in range(len(task.demands)):
        for role in (WHOLE, PREFILL, DECODE):
            whole = spot = 0
            for k, each in zip(used, rates):
                if program.level[k] <= level and program.role[k] == role:
                    rate = each * int(units[k])
                    whole, spot = whole + rate, spot + (rate if program.spot[k] else 0)
            if spot > share * whole:
                yield f"{task.name}: {float(spot / whole):.3g} of the capacity on spot"


def _unsliced(scope: Scope, model: Model, values: FloatArray, units: IntArray) -> Iterator[str]:
    """What is wrong with the slices of an answer: not whole, not all of a bucket, or too many for a column."""
    program = scope.program
    for task in program.tasks:
        for level in range(len(task.demands)) if task.integer_slices else ():
            slices = _slices(model, task, values, level)
            if any(abs(amount - round(amount)) > ROUND for amount in slices.values()):
                yield f"{task.name}: a slice is not whole"
                return
            whole = {key: round(amount) for key, amount in slices.items()}
            for bucket, demand in enumerate(task.demands[level]):
                for part in (PREFILL, DECODE):
                    sent = sum(n for (k, b), n in whole.items() if b == bucket and program.role[k] in (WHOLE, part))
                    if demand > 0 and sent != task.integer_slices:
                        yield f"{task.name}: {sent} of {task.integer_slices} slices of bucket {bucket} are routed"
            for column in {k for k, _ in whole}:
                load = sum(
                    Fraction(n * task.demands[level][b], task.integer_slices * int(program.capacity_micro_per_s[k, b]))
                    for (k, b), n in whole.items()
                    if k == column and n
                )
                if load > int(units[column]) * (1 + ROUTED):
                    yield f"{task.name}: slices need {float(load):.9g} units of a column that has {units[column]}"


def _slices(model: Model, task: Task, values: FloatArray, level: int) -> dict[tuple[int, int], float]:
    """Slices by column and bucket of one task at one level."""
    return {
        (flow.column, flow.bucket): float(values[variable])
        for variable, flow in model.flows.items()
        if flow.level == level and task.first <= flow.column < task.stop
    }


def flows_of(
    program: Program, units: IntArray, model: Model | None, values: FloatArray | None
) -> tuple[FloatArray, ...]:
    """Requests routed to each column at every level of load (as many as any task has; the peak is the last).

    In proportion to capacity for one bucket, in slices as solved, else as evenly as can be.

    Parameters
    ----------
    program
        The whole program.
    units
        Of each column, (n,).
    model, values
        That was solved, and the values of its variables: slices flow as they say. None = as evenly as can be.

    Returns
    -------
    By level, least first: (n, buckets).  [micro-requests/s]
    """
    levels = max((len(task.demands) for task in program.tasks), default=1)
    flows = tuple(np.zeros(program.capacity_micro_per_s.shape) for _ in range(levels))
    for task in program.tasks:
        if task.kind != "serving" or not any(map(any, task.demands)):
            continue
        part, first = slice(task.first, task.stop), levels - len(task.demands)
        for level, here in enumerate(flows):
            own = max(level - first, 0)
            if splits_simply(program, task):
                offered = program.capacity_micro_per_s[part, 0].astype(np.float64) * units[part]
                here[part, 0] = task.demand_micro_per_s[0] * offered / max(offered.sum(), 1.0)
            elif task.integer_slices and model is not None and values is not None:
                for (column, bucket), amount in _slices(model, task, values, own).items():
                    here[column, bucket] = round(amount) * task.demands[own][bucket] / task.integer_slices
            else:
                here[part] = flows_at(program, task, units, own)[part]
    return flows
