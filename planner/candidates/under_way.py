"""A run that is under way: what its measured step time says of the prediction on such devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.candidates.layouts import RECOMPUTE, SHARDING, LayoutRules, enumerate_layouts, offered
from planner.carriers import dataclass
from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Shape
from planner.equations.flops import linear_forward_flop_per_token
from planner.errors import InputError, Problem
from planner.estimate.layout import Layout
from planner.estimate.resolve import inter_node_rate, predicted_step_s, training_machine, training_spec, usable_bytes
from planner.estimate.training import training_memory
from planner.scenario.schema import GivenLayout, Scenario, StepTime, TrainingJob
from planner.scenario.workload_parts import TRAINING_SIZES
from planner.units import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """Where a step time was measured, and what was predicted there."""

    device: str
    shape: str
    count: int  # shapes
    layout: Layout  # the one given or, where it is open, the fastest that fits; arrays of one element
    measured_step_s: float
    predicted_step_s: float

    @property
    def ratio(self) -> float:
        """Measured over predicted: scales every prediction for such devices."""
        return self.measured_step_s / self.predicted_step_s

    @property
    def measured(self) -> dict[str, Any]:
        """What a step was timed on, for `step_measured`."""
        sizes = {name: int(getattr(self.layout, name)[0]) for name in TRAINING_SIZES}
        levels = {
            "sharding": SHARDING[int(self.layout.sharding[0])],
            "recompute": RECOMPUTE[int(self.layout.recompute[0])],
        }
        return {"device": self.device, "shape": self.shape, "layout": sizes | levels}


def under_way(
    job: TrainingJob, arch: Architecture, rules: LayoutRules, scenario: Scenario, catalog: Catalog
) -> UnderWay | None:
    """The run under way of a job with a measured step time.

    Parameters
    ----------
    job
        One without a measured step time is not under way.
    arch
        Its model.
    rules
        What the job allows; the fast domain is that of the machines it was measured on.
    scenario
        Its first owned machines are what was measured on where the job does not say.
    catalog
        Shapes and devices.

    Raises
    ------
    InputError
        No legal layout is as the scenario says, none fits the memory of the machines it names, or the step is shorter
        than those can be.
    """
    if job.step_time is None:
        return None
    shape, count = measured_on(job.step_time, scenario, catalog)
    domain = replace(rules, domain_devices=shape.domain_devices)
    legal, given = enumerate_layouts(arch, [count * shape.devices], domain), job.step_time.layout
    if given.pp is None or given.sharding is None:  # what runs need not be what anyone advises, where it is said
        legal = offered(job, rules, legal)
    layout = legal.select(_as_given(legal, given))
    if not np.size(layout.tp):  # as where what is left is to run in another layout
        raise _no_layout(job, scenario, f"{count} × {shape.id}")
    device = catalog.devices[shape.device]
    spec = training_spec(job, arch, device, shape)
    fits = np.asarray(training_memory(arch, spec, layout, device.family).total) <= usable_bytes(device, shape)
    rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
    machine = training_machine(device, shape, job, arch, catalog, rate)
    seconds = np.where(fits, predicted_step_s(arch, spec, layout, machine), np.inf)
    if not np.isfinite(seconds).any():
        raise _no_layout(job, scenario, f"{count} × {shape.id}")
    best = np.array([int(np.argmin(seconds))])
    passes = 3 if job.lora is None else 2  # forward, gradient of inputs, gradient of weights
    step_tokens = float(layout.global_batch[best[0]]) * spec.sequence_length
    flop_count = passes * float(linear_forward_flop_per_token(arch.matmul_parameters)) * step_tokens
    peak = device.peak_flop_per_s.get(job.precision, 0.0) * shape.compute_share * shape.devices * count
    if peak and job.step_time.measured_s * peak < flop_count:
        raise _too_fast(job, scenario, f"{count} × {shape.id}", flop_count / peak, step_tokens)
    return UnderWay(
        device=device.id,
        shape=shape.id,
        count=count,
        layout=layout.select(best),
        measured_step_s=job.step_time.measured_s,
        predicted_step_s=float(seconds[best[0]]),
    )


def measured_on(given: StepTime, scenario: Scenario, catalog: Catalog) -> tuple[Shape, int]:
    """The machines that a step time was measured on: those it names, else the only ones that are owned.

    Parameters
    ----------
    given
        The step time; shape and count, or a count of what is owned, or neither.
    scenario
        Its first owned machines count where the step time names none.
    catalog
        Its shapes.

    Returns
    -------
    The shape, and how many of them.

    Raises
    ------
    InputError
        The catalog has no such shape.
    """
    owned = scenario.hardware.owned
    return find_shape(catalog, given.shape or owned[0].shape), given.count or owned[0].count


def _as_given(legal: Layout, given: GivenLayout) -> NDArray[np.int64]:
    """Layouts that agree with everything that is given."""
    levels: dict[str, Any] = {
        "sharding": None if given.sharding is None else SHARDING.index(given.sharding),
        "recompute": None if given.recompute is None else RECOMPUTE.index(given.recompute),
    }
    sizes = {name: getattr(given, name) for name in TRAINING_SIZES}
    agrees = np.ones(len(np.asarray(legal.devices)), dtype=bool)
    for name, value in {**sizes, **levels}.items():
        if value is not None:
            agrees &= np.asarray(getattr(legal, name)) == value
    return np.flatnonzero(agrees)


def _too_fast(job: TrainingJob, scenario: Scenario, machines: str, least_s: float, step_tokens: float) -> InputError:
    message = (
        f"{job.name}: at the peak of {machines} the products of {step_tokens:,.0f} tokens alone take "
        f"{format_duration(least_s)}, which is longer than the measured step"
    )
    hint = "give global_batch as it is in that run, and under step_time the shape and count that it runs on"
    return _refused(job, scenario, "step-too-fast", message, hint)


def _no_layout(job: TrainingJob, scenario: Scenario, machines: str) -> InputError:
    message = f"{job.name}: no legal layout on {machines} is as step_time says and fits the memory"
    hint = "correct shape, count or layout under step_time, or leave the layout out"
    return _refused(job, scenario, "no-layout", message, hint)


def _refused(job: TrainingJob, scenario: Scenario, reference: str, message: str, hint: str) -> InputError:
    index = [one.name for one in scenario.training].index(job.name)
    place = scenario.places.get(f"training[{index}].step_time")
    return InputError(Problem(reference=reference, message=message, places=(place,) if place else (), hint=hint))
