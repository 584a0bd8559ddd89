"""One training job on many layouts: what it needs in memory, how long it takes by the rule tier.

Long arrays in blocks that stay in the processor's cache: the same values, up to twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.run import whole_run
from planner.estimate.step_distinct import Index, Ways
from planner.estimate.terms import Terms, Values
from planner.estimate.training_analytic import analytic_steps, analytic_time, analytic_times, column, runs_of_steps
from planner.estimate.training_memory import fullest_stage
from planner.estimate.training_spec import RunSpec, TrainingSpec
from planner.estimate.training_time import rule_time

BLOCK = 8192  # layouts: an array of them takes 64 kB


def in_blocks(evaluate: Callable[[Layout], Terms], layout: Layout) -> Terms:
    """Terms of many layouts, worked out a block at a time where every field is an array of one length."""
    shapes = {np.shape(getattr(layout, f.name)) for f in fields(Layout)}
    (count,) = next(iter(shapes)) if len(shapes) == 1 and len(next(iter(shapes))) == 1 else (0,)
    if count <= 2 * BLOCK:
        return evaluate(layout)
    starts = range(0, count, BLOCK)
    return Terms.concatenate([evaluate(layout.select(slice(i, i + BLOCK))) for i in starts])


_ENDLESS_TOKENS = 1e18
PASS = 1 << 15  # layouts of several machines at once: what is the same of them is worked out once a pass


def activations_known(arch: Architecture) -> bool:
    """False for a model of which only the parameter count is known: its activations are left out."""
    return bool(arch.layers)


def training_memory(arch: Architecture, spec: TrainingSpec, layout: Layout, family: str | None = None) -> Terms:
    """Bytes per device of the fullest rank: weights, gradients, optimizer, activations and the rest.

    The first and the last pipeline stage are evaluated, and the terms are those of the larger.
    For a model without layers (only a parameter count) activations, logits, gathered and scratch
    are unknown and come out as 0: see `activations_known`.

    Parameters
    ----------
    arch
        The model.
    spec
        The job.
    layout
        How it is split: one layout or many.
    family
        Of the device, which decides the software of a job that names none; None: any, and the common stack.
    """
    return in_blocks(lambda part: fullest_stage(arch, spec, part, family), layout)


def training_time(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Terms:
    """Wall seconds of what is left of the run, term by term, by the tier that `spec.tier` names.

    * analytic: one optimizer step from matrix products to collectives, with the machine's fitted constants;
    * rule: 13.3 A100-hours per 1e9 tokens x 1e9 active parameters, scaled by sustained FLOP/s, and what each
      kind of split costs;
    * measured (`spec.measured_mfu`): the share of peak that the user measured, nothing on top of it.

    Failures and checkpoints of `spec.run` come on top, as terms of their own.

    Parameters
    ----------
    arch
        The model.
    spec
        The job.
    layout
        How it is split: one layout or many.
    machine
        What it runs on; for the analytic tier with the fitted constants of its family.
    """
    if spec.tier == "analytic" and not spec.measured_mfu:
        return in_blocks(
            lambda part: whole_run(analytic_time(arch, spec, part, machine), arch, spec, part.devices), layout
        )
    return whole_run(rule_time(arch, spec, layout, machine), arch, spec, layout.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnMachine:
    """Some layouts of a job on one machine."""

    spec: TrainingSpec
    machine: Machine
    rows: Index  # of all layouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Wall seconds of layouts on one machine, among those of others."""

    terms: Terms
    first: int  # element of the first layout


def training_times(arch: Architecture, layout: Layout, ways: Ways | None, asked: Sequence[OnMachine]) -> list[Timed]:
    """`training_time` of some layouts on each of several machines, to the last bit: machines alike in one pass.

    Parameters
    ----------
    layout
        All layouts, arrays of one length.
    ways
        Which of them are the same in a part of a step; None: not known.
    """
    kinds: dict[object, list[OnMachine]] = {}
    found: dict[int, Timed] = {}
    for one in asked:
        kinds.setdefault(_kind(one.spec) if ways is not None else id(one), []).append(one)
    for some in kinds.values():
        if ways is None or len(some) == 1 or not is_analytic(some[0].spec):
            for one in some:
                terms = training_time(arch, one.spec, layout.select(one.rows), one.machine)
                found[id(one)] = Timed(terms=terms, first=0)
            continue
        terms = _together(arch, layout, ways, some)
        starts = np.cumsum([0, *(len(one.rows) for one in some)]).tolist()
        found |= {id(one): Timed(terms=terms, first=first) for one, first in zip(some, starts)}
    return [found[id(one)] for one in asked]


def step_seconds(arch: Architecture, layout: Layout, ways: Ways, asked: Sequence[OnMachine]) -> list[Values]:
    """Seconds of one optimizer step of layouts on each of several machines, all of the analytic tier.

    They differ from the sum of its terms by rounding alone. Nothing of them follows from tokens, deadlines or prices.

    Parameters
    ----------
    arch
        The model.
    layout
        All layouts, arrays of one length.
    ways
        Which of them are the same in a part of a step.
    asked
        Some layouts of one job on each machine.

    Returns
    -------
    An array for each machine, of its layouts.  [s]
    """
    parts = []
    for some, of, rows, at in _passes(asked):
        parts.append(
            analytic_steps(
                arch, some[0].spec, layout.select(rows), [one.machine for one in some], of, ways.on(rows, at)
            )
        )
    whole = np.concatenate(parts) if parts else np.zeros(0)
    return np.split(whole, np.cumsum([len(one.rows) for one in asked])[:-1])


def run_seconds(
    arch: Architecture, layout: Layout, asked: Sequence[OnMachine], step_s: Sequence[Values]
) -> list[tuple[Values, Values]]:
    """Seconds of all optimizer steps and of the whole run on each machine, from the seconds of one step.

    They differ from those of `training_times` by rounding alone.

    Parameters
    ----------
    arch
        The model.
    layout
        All layouts, arrays of one length.
    asked
        Some layouts of a job on each machine, all of the analytic tier.
    step_s
        Of one optimizer step of each of them, by machine, as `step_seconds` gives them.  [s]

    Returns
    -------
    For each machine both times of its layouts, of what is left of the run.  [s]
    """
    kinds: dict[object, list[int]] = {}
    for place, one in enumerate(asked):
        kinds.setdefault(_kind(one.spec), []).append(place)
    found: dict[int, tuple[Values, Values]] = {}
    for places in kinds.values():
        some = [asked[place] for place in places]
        seconds = np.concatenate([step_s[place] for place in places])
        busy, wall, start = [], [], 0
        for few, of, rows, _ in _passes(some):
            spec, batch = _spec_of(few, of), np.asarray(layout.global_batch)[rows]
            busy.append(runs_of_steps(spec, batch, seconds[start : start + len(rows)]))
            whole = whole_run(Terms({"steps": busy[-1]}), arch, spec, np.asarray(layout.devices)[rows])
            busy[-1] = whole["steps"]
            wall.append(whole.total)
            start += len(rows)
        ends = np.cumsum([len(one.rows) for one in some])[:-1]
        pairs = zip(np.split(np.concatenate(busy), ends), np.split(np.concatenate(wall), ends))
        found |= dict(zip(places, pairs))
    return [found[place] for place in range(len(asked))]


def pace_s(arch: Architecture, layout: Layout, asked: OnMachine, step_s: Values) -> Values:
    """Seconds for so many tokens that neither the last step nor what fails counts: which layouts of a machine are fast.

    Parameters
    ----------
    layout
        All layouts, of which some are asked for on a machine.
    step_s
        Of one optimizer step of each of these, for jobs of the analytic tier.
    """
    spec = replace(asked.spec, tokens=_ENDLESS_TOKENS, epochs=1.0, progress_tokens=0.0, run=None)
    if not is_analytic(spec):
        return training_time(arch, spec, layout.select(asked.rows), asked.machine).total
    return runs_of_steps(spec, np.asarray(layout.global_batch)[asked.rows], step_s)


def _passes(asked: Sequence[OnMachine]) -> Iterator[tuple[Sequence[OnMachine], Index, Index, Index]]:
    """Machines that are worked on at once, which of them each layout is on, its row, and its machine among all."""
    machine = np.repeat(np.arange(len(asked)), [len(one.rows) for one in asked])
    rows = np.concatenate([one.rows for one in asked])
    for start in range(0, len(rows), PASS):
        at = machine[start : start + PASS]
        low, high = int(at[0]), int(at[-1]) + 1
        yield asked[low:high], at - low, rows[start : start + PASS], at


def _spec_of(asked: Sequence[OnMachine], of: Index) -> TrainingSpec:
    """The job as all of its machines have it; figures of how it runs and fails by layout, where they differ."""

    spec = asked[0].spec
    ratio = column([one.spec.step_time_ratio for one in asked], of)
    if spec.run is None:
        return replace(spec, step_time_ratio=ratio)
    runs = [_figures(one.spec.run) for one in asked if one.spec.run is not None]
    names = [name for name, value in runs[0].items() if _is_figure(value)]
    run = RunSpec(**runs[0] | {name: column([run[name] for run in runs], of) for name in names})
    return replace(spec, run=run, step_time_ratio=ratio)


def is_analytic(spec: TrainingSpec) -> bool:
    """Whether a job's steps are put together from its products and collectives."""
    return spec.tier == "analytic" and not spec.measured_mfu


def _kind(spec: TrainingSpec) -> object:
    """What jobs on machines that are asked together have in common: all but the figures of how they run and fail."""
    run = spec.run
    if run is not None:
        figures = _figures(run)
        run = RunSpec(**{name: value for name, value in figures.items() if not _is_figure(value)})
    return replace(spec, run=run, step_time_ratio=1.0)


def _figures(run: RunSpec) -> dict[str, Any]:
    return {field.name: getattr(run, field.name) for field in fields(RunSpec)}


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _together(arch: Architecture, layout: Layout, ways: Ways, asked: Sequence[OnMachine]) -> Terms:
    """One pass over several machines, in blocks."""

    parts = []
    for some, of, rows, at in _passes(asked):
        spec, lay = _spec_of(some, of), layout.select(rows)
        steps = analytic_times(arch, spec, lay, [one.machine for one in some], of, ways.on(rows, at))
        parts.append(whole_run(steps, arch, spec, lay.devices))
    return Terms.concatenate(parts)
