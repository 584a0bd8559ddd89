"""Time of a training run by the analytic tier: one optimizer step, term by term, times the steps.

The software is the scenario's framework, else what usually trains on the device at the layout's ZeRO
stage: the one place where a job becomes a `Stack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.equations import rules
from planner.equations.activations import EXPERT_IMBALANCE
from planner.estimate.constants import NAMES as CONSTANTS
from planner.estimate.constants import StepConstants
from planner.estimate.frameworks import (
    FP8_RECIPE,
    LOW_EXCHANGE_BYTES,
    RECIPES,
    planned_framework,
    software_stage,
    stack_defaults,
)
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.run import trained_parameters
from planner.estimate.stack import Stack
from planner.estimate.step import step_seconds, step_time
from planner.estimate.step_distinct import Index, Ways
from planner.estimate.terms import Terms, Values
from planner.estimate.training_spec import TrainingSpec
from planner.estimate.work import Work

NF4_BYTES = 2.5  # read in half a byte, written in two
LORA_GATHER_BYTES = {"bf16": 2.0, "fp16": 2.0, "int8": 1.0, "nf4": 0.53}  # of a frozen weight, scales included


def analytic_time(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Terms:
    """Wall seconds of a run, term by term.

    Parameters
    ----------
    arch
        The model; its layers must be known.
    spec
        The job.
    layout
        How it is split: one layout or many.
    machine
        Vendor rates with the constants of the device family.

    Returns
    -------
    Terms of `planner.estimate.step.STEP_TERMS` and `large_batch`.  [s]

    Raises
    ------
    ValueError
        The model has no layers.
    """
    return _run(arch, spec, layout, machine, stack_of_job(arch, spec, layout, machine), None)


def analytic_times(
    arch: Architecture, spec: TrainingSpec, layout: Layout, machines: Sequence[Machine], of: Index, ways: Ways
) -> Terms:
    """The same of layouts on several machines, which are `machines[of]`.

    Parameters
    ----------
    arch
        The model; its layers must be known.
    spec
        The job.
    layout
        How it is split, arrays (n,).
    machines
        Vendor rates with the constants of each family.
    of
        Which machine each layout is on, (n,).
    ways
        Which layouts, each on its machine, are the same in a part of a step.

    Raises
    ------
    ValueError
        The model has no layers.
    """
    return _run(arch, spec, layout, *_columns(arch, spec, layout, machines, of), ways)


def analytic_steps(
    arch: Architecture, spec: TrainingSpec, layout: Layout, machines: Sequence[Machine], of: Index, ways: Ways
) -> Values:
    """Seconds of one optimizer step of layouts on several machines, but for rounding.

    Parameters
    ----------
    arch
        The model; its layers must be known.
    spec
        The job.
    layout
        How it is split, arrays (n,).
    machines
        Vendor rates with the constants of each family.
    of
        Which machine each layout is on, (n,).
    ways
        Which layouts, each on its machine, are the same in a part of a step.
    """
    machine, stack = _columns(arch, spec, layout, machines, of)
    work = Work.of(arch, spec.sequence_length)
    with np.errstate(invalid="ignore", divide="ignore"):
        return step_seconds(work, layout, machine, stack, machine.constants, ways)


def runs_of_steps(spec: TrainingSpec, global_batch: Any, step_s: Values) -> Values:
    """Seconds of all optimizer steps of a run.

    Parameters
    ----------
    spec
        The job, from its first token on.
    global_batch
        Sequences of a step of each layout.  [count]
    step_s
        Time of one step of each.  [s]
    """
    batch_tokens = rules.tokens_per_step(np.asarray(global_batch, dtype=np.float64), spec.sequence_length)
    found = rules.optimizer_steps(spec.tokens, spec.epochs, batch_tokens) * step_s
    if spec.critical_batch_tokens is not None:
        found = found * rules.critical_batch_token_factor(batch_tokens, spec.critical_batch_tokens)
    return np.asarray(found)


def _columns(
    arch: Architecture, spec: TrainingSpec, layout: Layout, machines: Sequence[Machine], of: Index
) -> tuple[Machine, Stack]:
    """Machines and software of each layout."""
    stages = np.minimum(np.asarray(software_stage(layout.sharding, layout.devices), dtype=np.int64), 3)
    known: dict[object, list[dict[str, Any]]] = {}
    for one in machines:
        if (one.family, one.overheads) not in known:
            known[one.family, one.overheads] = [_fields(arch, spec, one, stage) for stage in range(4)]
    each = [found for one in machines for found in known[one.family, one.overheads]]
    software = {name: column([one[name] for one in each], 4 * of + stages) for name in each[0]}
    names = [f.name for f in fields(Machine) if f.name not in ("constants", "family", "overheads")]
    rates = {name: column([getattr(one, name) for one in machines], of) for name in names}
    fitted = {name: column([getattr(one.constants, name) for one in machines], of) for name in CONSTANTS}
    return Machine(**rates, constants=StepConstants(**fitted)), Stack(**software)


def column(values: Sequence[Any], of: Index) -> Any:
    """The value of each element, `values[of]`; a number where all are the same."""
    first = values[0]
    if all(value == first for value in values):
        return first
    return np.array(values, dtype=np.float64)[of]


def _run(
    arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine, stack: Stack, ways: Ways | None
) -> Terms:
    if not arch.layers:
        raise ValueError("the analytic tier needs the layers of a model")
    work = Work.of(arch, spec.sequence_length)
    with np.errstate(invalid="ignore", divide="ignore"):
        step = step_time(work, layout, machine, stack, machine.constants, ways)
    batch_tokens = rules.tokens_per_step(layout.as_floats().global_batch, spec.sequence_length)
    steps = rules.optimizer_steps(spec.tokens, spec.epochs, batch_tokens)
    terms = {name: np.asarray(steps * value) for name, value in step.items()}
    inflation = np.asarray(0.0)
    if spec.critical_batch_tokens is not None:
        inflation = np.asarray(rules.critical_batch_token_factor(batch_tokens, spec.critical_batch_tokens)) - 1.0
    terms["large_batch"] = np.asarray(steps * step.total * inflation) if np.any(inflation) else np.asarray(0.0)
    return Terms(terms)


def stack_of_job(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Stack:
    """What the software of a job does, per layout: weights sharded in full are another stack's business.

    Parameters
    ----------
    arch
        The model.
    spec
        The job.
    layout
        How it is split: one layout or many.
    machine
        Its family, and the factors that were fitted of software on it.
    """
    sharding = software_stage(layout.sharding, layout.devices)
    stages = sorted({min(int(stage), 3) for stage in np.unique(sharding)})
    groups = [_fields(arch, spec, machine, stage) for stage in stages]
    chosen = groups[0]
    for stage, group in zip(stages[1:], groups[1:], strict=True):
        chosen = {name: _where(sharding == stage, group[name], chosen[name]) for name in chosen}
    return Stack(**chosen)


def _where(which: Any, new: Any, old: Any) -> Any:
    """One of two values by layout; a number where both are the same."""
    if np.ndim(new) == 0 and np.ndim(old) == 0 and new == old:
        return new
    return np.where(which, new, old)


def _fields(arch: Architecture, spec: TrainingSpec, machine: Machine, stage: int) -> dict[str, Any]:
    framework = planned_framework(spec.framework, machine.family, stage)
    experts = arch.is_moe and spec.lora_rank is None
    found = stack_defaults(framework, machine.family, dict(machine.overheads), experts=experts)
    found["imbalance"] = EXPERT_IMBALANCE if arch.is_moe else 1.0
    if spec.attention == "eager":
        found["eager"] = 1.0
    found["reduce_bytes"] = found["reduce_bytes"] / spec.gradient_compression
    return found | _precision(spec) | _offloading(spec) | _adapters(arch, spec, framework.name)


def _precision(spec: TrainingSpec) -> dict[str, float]:
    if spec.precision == "fp32":
        return {"value_bytes": 4.0, "exchange_bytes": 4.0, "gather_bytes": 4.0, "reduce_bytes": 4.0}
    if spec.precision != "fp8":
        return {}
    cast, rate = RECIPES[FP8_RECIPE]
    return {"low_precision": 1.0, "cast": cast, "low_rate": rate, "exchange_bytes": LOW_EXCHANGE_BYTES}


def _offloading(spec: TrainingSpec) -> dict[str, float]:
    return {
        "optimizer_offload": float("optimizer" in spec.offload),
        "activation_offload": float("activations" in spec.offload),
    }


def _adapters(arch: Architecture, spec: TrainingSpec, framework: str) -> dict[str, float]:
    """LoRA: frozen weights need no gradients, and only adapters are reduced and updated."""
    if spec.lora_rank is None:
        return {}

    return {
        "trained": trained_parameters(arch, spec) / arch.parameters,
        "weight_gradients": 0.0,
        "adapters": 1.0,
        "adapter_rank": float(spec.lora_rank),
        "adapter_fused": float(framework != "hf"),
        "dequantise_bytes": NF4_BYTES if spec.lora_base == "nf4" else 0.0,
        "gather_bytes": LORA_GATHER_BYTES[spec.lora_base],
    }
