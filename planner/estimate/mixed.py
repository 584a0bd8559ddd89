"""One training job on groups of unlike machines, composed from the equations.

A group is a number of shapes of one offer with a layout of its own; it runs as a job of its share of the global
batch would. The gradients are then reduced among the groups. Failures stop all groups at once: their rates add up,
their hosts write checkpoints together, and what size costs follows from all devices and hosts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations import mixed as eq
from planner.equations import rules
from planner.equations.communication import NETWORK_LATENCY_S
from planner.equations.recipes import state_recipe
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.run import trained_parameters
from planner.estimate.terms import Terms
from planner.estimate.training import training_time
from planner.estimate.training_analytic import stack_of_job
from planner.estimate.training_spec import RunSpec, TrainingSpec

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The network between groups in different zones, as the scenario gives it."""

    bytes_per_s_per_shape: float  # one way, of one shape to other zones
    latency_s: float
    usd_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What the groups of a job have to know of each other."""

    devices: int
    hosts: int
    shapes: int
    spot: bool
    zone: tuple[str, str, str]  # provider, region, zone ("" = anywhere in the region)
    network_bytes_per_s: float  # sustained, of all its devices together, to other nodes of its zone
    network_scale: float  # slowdown of the network with every doubling of the nodes that take part
    gradient_bytes: float  # of the whole model, as they go over the wire
    run: RunSpec | None


def one_zone(first: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    """Whether two groups can stand in one zone; an offer that names none can be had in any of its region."""
    return first[:2] == other[:2] and (first[2] == other[2] or not first[2] or not other[2])


def within_one_zone(zones: Sequence[tuple[str, str, str]]) -> bool:
    """Whether all groups can stand in one zone."""
    return all(one_zone(first, other) for i, first in enumerate(zones) for other in zones[i + 1 :])


def group_step_terms(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Terms:
    """Terms of one optimizer step of a group; the global batch of its layouts is its share.  [s]

    Parameters
    ----------
    arch
        The model.
    spec
        The job there; what fails, progress and a critical batch are left out, the ratio of step times counts.
    layout
        Layouts of the group; `global_batch` is its share.
    machine
        What the group runs on.
    """
    bare = replace(spec, run=None, progress_tokens=0.0, step_time_ratio=1.0, critical_batch_tokens=None)
    batch_tokens = rules.tokens_per_step(layout.as_floats().global_batch, spec.sequence_length)
    steps = rules.optimizer_steps(spec.tokens, spec.epochs, batch_tokens)
    time = training_time(arch, bare, layout, machine)
    return Terms({name: value * spec.step_time_ratio / steps for name, value in time.items()})


def gradient_bytes(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Values:
    """Gradients of the whole model on the wire, for each of some layouts.  [B]

    Parameters
    ----------
    arch
        The model.
    spec
        The job there; by the analytic tier its software and compression say how wide gradients go, else its recipe.
    layout
        Layouts of the group; their ZeRO stages may decide the software.
    machine
        What the group runs on; its family may decide the software.
    """
    size = np.shape(np.asarray(layout.devices))
    if spec.tier == "analytic" and not spec.measured_mfu:
        each = np.asarray(stack_of_job(arch, spec, layout, machine).reduce_bytes, dtype=np.float64)
    else:
        each = np.asarray(state_recipe(spec.optimizer, spec.precision, spec.framework).gradient)
    return np.broadcast_to(each * trained_parameters(arch, spec), size).astype(np.float64)


def network_bytes_per_s(machine: Machine, devices: int) -> float:
    """What all devices of a group sustain together to other nodes; nan when that is unknown.  [B/s]"""
    return float(np.asarray(machine.inter_node_bytes_per_s)) * float(np.asarray(machine.network_efficiency)) * devices


def synchronisation_s(groups: Sequence[GroupFacts], between: Between | None) -> float:
    """Reducing the gradients among groups in one step; infinite where a rate is unknown.  [s]"""
    near = within_one_zone([group.zone for group in groups])
    if not near and between is None:
        return math.inf
    nodes = sum(group.shapes for group in groups)
    rates = [_rate(group, nodes, None if near else between) for group in groups]
    if any(math.isnan(rate) for rate in rates):
        return math.inf
    latency = NETWORK_LATENCY_S if near or between is None else between.latency_s
    message = max(group.gradient_bytes for group in groups)
    return float(eq.groups_all_reduce_s(message, len(groups), min(rates), latency))


def _rate(group: GroupFacts, nodes: int, between: Between | None) -> float:
    own = group.network_bytes_per_s / (1.0 + group.network_scale * math.log2(max(nodes, 2) / 2.0))
    return own if between is None else min(own, between.bytes_per_s_per_shape * group.shapes)


def traffic_usd_per_step(groups: Sequence[GroupFacts], between: Between | None) -> list[float]:
    """What each group pays for the gradients that it sends to other zones in one step.  [USD]"""
    if between is None or within_one_zone([group.zone for group in groups]):
        return [0.0] * len(groups)
    message = max(group.gradient_bytes for group in groups)
    sent = float(eq.group_traffic_bytes(message, len(groups)))
    return [sent * between.usd_per_byte] * len(groups)


def steps_left(spec: TrainingSpec, batch: float) -> float:
    """Optimizer steps that are left, at a global batch.  [count]"""
    tokens = rules.tokens_per_step(batch, spec.sequence_length)
    return float(rules.optimizer_steps(spec.tokens, spec.epochs, tokens)) * spec.remaining_share


def large_batch_factor(spec: TrainingSpec, batch: float) -> float:
    """By how many more tokens a batch above the critical one takes.  [1]"""
    if spec.critical_batch_tokens is None:
        return 1.0
    tokens = rules.tokens_per_step(batch, spec.sequence_length)
    return float(rules.critical_batch_token_factor(tokens, spec.critical_batch_tokens))


def joined_run(groups: Sequence[GroupFacts]) -> RunSpec | None:
    """How a job on several groups fails, saves and restarts; None when nothing of it does.

    Rates of failure add up; shares that a device or a host loses are those of the group that loses most.
    """
    runs = [group.run for group in groups if group.run is not None]
    if not runs:
        return None
    devices = sum(group.devices for group in groups)
    rate = sum(group.devices / group.run.mtbf_per_device_s for group in groups if group.run is not None)
    taken = [group for group in groups if group.spot and group.run is not None and group.run.preemptions_per_s > 0]
    spot = taken[0].run if taken else None
    first = runs[0]
    return replace(
        first,
        mtbf_per_device_s=devices / rate if rate > 0 else math.inf,
        straggler_sigma=max(run.straggler_sigma for run in runs),
        scale_loss=max(run.scale_loss for run in runs),
        preemptions_per_s=spot.preemptions_per_s if spot else 0.0,
        preemption_restart_s=spot.preemption_restart_s if spot else 0.0,
        preemption_warning_s=spot.preemption_warning_s if spot else 0.0,
        host_count=float(sum(group.hosts for group in groups)),
        spot_shapes=float(sum(group.shapes for group in taken)),
    )
