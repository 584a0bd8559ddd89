"""Memory of a training rank, composed from the equations; vectorised over layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from planner.architecture.model import Architecture
from planner.equations import device_memory as dev
from planner.equations import memory as mem
from planner.equations import pipeline
from planner.estimate.frameworks import kept_as, software_stage
from planner.estimate.layer_memory import LayerScalars, TokenBytes
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_NONE, Layout
from planner.estimate.memory_peak import buckets_of, peak_of_backward, side_pools, weight_gradients
from planner.estimate.memory_ranks import Ranks, Stage, Values, Where, leading_layers, ranks_of, stage_of, states_of
from planner.estimate.memory_stack import FRAGMENTATION_SHARE, MemoryStack, memory_stack
from planner.estimate.terms import Terms
from planner.estimate.training_spec import TrainingSpec

__all__ = ["FRAGMENTATION_SHARE", "fullest_stage", "host_bytes", "rank_memory"]

RANKS = ("max", "rank0", "last")  # of the fullest pipeline stage; of the first; of the last
ALIKE = ("gpu", "tpu", "neuron")  # families that stand for all: what their names begin with is what counts
SHARDED = 3  # the ZeRO stage that shards weights, too
_OFFLOADED_LAYERS = 2.0  # on the device while activations go to the host: one computed, one on its way


def fullest_stage(arch: Architecture, spec: TrainingSpec, layout: Layout, family: str | None = None) -> Terms:
    """Terms of the pipeline stage that needs the most: the first, the last, or one behind leading dense layers.

    Parameters
    ----------
    arch
        The model.
    spec
        The job.
    layout
        One layout or many, as arrays.
    family
        Of the device, which may decide the software, with the ZeRO stage; None: what the job names, on any.
    """

    def of(part: Layout, stack: MemoryStack) -> Terms:
        return rank_memory(arch, stack, spec.sequence_length, part)

    return _by_stack(spec, layout, family, of)


def _by_stack(
    spec: TrainingSpec, layout: Layout, family: str | None, of: Callable[[Layout, MemoryStack], Terms]
) -> Terms:
    """What each layout's software keeps: weights sharded in full are another program's business."""
    full = software_stage(layout.sharding, layout.devices) == SHARDED
    names = _kept_by(spec, family)
    if names[0] == names[1] or full.all() or not full.any():
        return of(layout, memory_stack(replace(spec, framework=names[int(full.all())])))
    every = Layout(**{field.name: np.broadcast_to(getattr(layout, field.name), full.shape) for field in fields(layout)})
    rows = [np.flatnonzero(~full), np.flatnonzero(full)]
    stacks = [memory_stack(replace(spec, framework=name)) for name in names]
    parts = [of(every.select(some), stack) for some, stack in zip(rows, stacks)]
    return Terms.concatenate(parts).select(np.argsort(np.concatenate(rows)))


def _kept_by(spec: TrainingSpec, family: str | None) -> tuple[str | None, str | None]:
    """Whose copies and buffers a job keeps on a device family, below ZeRO-3 and with it."""
    return kept_as(spec.framework, family, SHARDED - 1), kept_as(spec.framework, family, SHARDED)


def family_alike(spec: TrainingSpec, family: str) -> str:
    """One of few families on which a job takes the same memory as on that of a device.

    Parameters
    ----------
    spec
        The job.
    family
        Of the device.
    """
    kept = _kept_by(spec, family)
    return next(one for one in (*ALIKE, family) if _kept_by(spec, one) == kept)


def rank_memory(
    arch: Architecture, stack: MemoryStack, sequence_length: float, layout: Layout, rank: str = "max"
) -> Terms:
    """Bytes on one rank, term by term.

    Parameters
    ----------
    arch
        The model.
    stack
        What its software keeps.
    sequence_length
        [tokens]
    layout
        One layout or many, as arrays.
    rank
        rank0: of the first pipeline stage, last: of the last one, max: of the fullest.

    Returns
    -------
    Terms [B]. All but `fragmentation` are tensors, workspaces included.
    """
    ranks = ranks_of(arch, stack, sequence_length, layout)
    one_stage = bool(np.all(ranks.layout.pp == 1))
    first = _stage_terms(ranks, "first") if rank != "last" or one_stage else None
    if first is not None and (rank == "rank0" or one_stage):
        return first
    last = _stage_terms(ranks, "last")
    if first is None:
        return last
    fullest = _larger(first, last)
    return _larger(fullest, _stage_terms(ranks, "inner")) if leading_layers(ranks) else fullest


def _larger(one: Terms, other: Terms) -> Terms:
    larger = other.total > one.total
    total = np.where(larger, other.total, one.total)
    return Terms({name: np.where(larger, other[name], one[name]) for name in one}, total)


def host_bytes(arch: Architecture, spec: TrainingSpec, layout: Layout, family: str | None = None) -> Terms:
    """Host memory that offloading needs for one device: optimizer states, activations.  [B]

    Multiply by the devices of a node. Empty terms are 0.

    Parameters
    ----------
    arch
        The model.
    spec
        The job; `offload` says what goes to the host.
    layout
        One layout or many, as arrays.
    family
        Of the device, which may decide the software, with the ZeRO stage; None: what the job names, on any.
    """

    def of(part: Layout, stack: MemoryStack) -> Terms:
        ranks = ranks_of(arch, stack, spec.sequence_length, part)
        stage = stage_of(ranks, "first")
        zero = np.zeros(np.shape(ranks.tokens))
        optimizer = states_of(ranks, stage)["optimizer"] if "optimizer" in stack.offload else zero
        kept, _ = _activations(ranks, stage)
        moved = np.maximum(kept - _on_device(ranks, kept), 0.0) if "activations" in stack.offload else zero
        return Terms({"optimizer": optimizer, "activations": moved})

    return _by_stack(spec, layout, family, of)


def _stage_terms(ranks: Ranks, where: Where) -> Terms:
    stage, stack = stage_of(ranks, where), ranks.stack
    states = states_of(ranks, stage)
    if "optimizer" in stack.offload:
        states["optimizer"] = np.zeros_like(states["optimizer"])
    kept, live = _activations(ranks, stage)
    if "activations" in stack.offload:
        kept = _on_device(ranks, kept)
    peak = peak_of_backward(ranks, stage, live)
    dynamic = {
        "activations": kept + peak.live,
        "logits": peak.logits,
        "gathered": peak.gathered,
        "scratch": weight_gradients(ranks, stage) + peak.gradients,
    }
    if stack.frees_gradients:
        states, dynamic = _fullest_moment(ranks, stage, states, dynamic, kept)
    moving = dynamic["activations"] + dynamic["logits"] + dynamic["gathered"] + dynamic["scratch"]
    lost = np.asarray(mem.fragmentation_bytes(moving, stack.fragmentation_share))
    return Terms(
        {
            **states,
            **dynamic,
            "buckets": buckets_of(ranks),
            "libraries": np.asarray(stack.library_bytes),
            "fragmentation": lost + side_pools(ranks, stage),
        }
    )


def _fullest_moment(
    ranks: Ranks, stage: Stage, states: dict[str, Values], dynamic: dict[str, Values], kept: Values
) -> tuple[dict[str, Values], dict[str, Values]]:
    """The largest of three moments where gradients are freed after a step.

    At the loss all activations wait beside the logits, and no gradient is there; in the last layer's backward pass what
    is computed again takes the place of the logits; at the end all gradients are there, with the first layer, or with
    what the optimizer holds while it updates.
    """
    trained = states["gradients"] / max(ranks.stack.recipe.gradient, 1e-9)
    updating = trained * ranks.stack.update_bytes
    live = dynamic["activations"] - kept
    layer = live + dynamic["gathered"] + dynamic["scratch"]
    end = states["gradients"] + np.maximum(updating, layer)
    middle = kept + np.maximum(dynamic["logits"] + dynamic["gathered"], layer)
    late, at_loss = end > middle, dynamic["logits"] + dynamic["gathered"] > layer
    moved = {
        "activations": np.where(late, 0.0, kept + np.where(at_loss, 0.0, live)),
        "logits": np.where(late | ~at_loss, 0.0, dynamic["logits"]),
        "gathered": np.where(late, 0.0, dynamic["gathered"]),
        "scratch": np.where(late, np.maximum(updating, layer), np.where(at_loss, 0.0, dynamic["scratch"])),
    }
    return {**states, "gradients": np.where(late, states["gradients"], 0.0)}, moved


def _in_flight(ranks: Ranks, stage: Stage) -> Values:
    lay = ranks.layout
    if ranks.stack.schedule == "zero_bubble_2" and stage.where != "last":
        return np.asarray(pipeline.in_flight_zero_bubble(ranks.micro_batches, lay.pp, 1.0))
    return np.asarray(pipeline.in_flight_micro_batches(ranks.micro_batches, lay.pp, lay.vpp, stage.index))


def _activations(ranks: Ranks, stage: Stage) -> tuple[Values, Values]:
    """Bytes kept through the micro-batches in flight, and those of the layer that is recomputed."""
    lay = ranks.layout
    if not ranks.groups:
        return np.asarray(0.0), np.asarray(0.0)
    in_flight = _in_flight(ranks, stage)
    full, none = lay.recompute == RECOMPUTE_FULL, lay.recompute == RECOMPUTE_NONE
    per_sequence = lay.micro_batch / (lay.cp * lay.tp)
    kept = live = np.asarray(0.0)
    for group, n in zip(ranks.groups, stage.layers, strict=True):
        everything = _token_bytes(ranks, group, group.kept)
        chosen = everything if group.selective == group.kept else _token_bytes(ranks, group, group.selective)
        stored = np.where(full, group.input_bytes * ranks.stream_scale, np.where(none, everything, chosen))
        again = np.where(full, everything, np.where(none, 0.0, everything - chosen))
        if group.score_bytes:
            scores = per_sequence * group.score_bytes
            dropped = full | (~none & group.scores_recomputed)
            kept = kept + n * np.where(dropped, 0.0, scores)
            live = np.maximum(live, ranks.tokens * again + np.where(dropped, scores, 0.0))
        else:
            live = np.maximum(live, ranks.tokens * again)
        kept = kept + n * (ranks.tokens * stored)
    if ranks.stack.stage_outputs:
        tokens = ranks.tokens * ranks.stream_scale
        outputs = dev.stage_output_bytes(tokens, ranks.arch.hidden_size, 1.0, ranks.stack.value_bytes)
        kept = kept + np.where(lay.pp > 1, outputs, 0.0)
    return np.asarray(in_flight * kept), np.asarray(live)


def _token_bytes(ranks: Ranks, group: LayerScalars, token: TokenBytes) -> Values:
    """Activations of a token in a layer, times t: replicated heads and uneven experts included."""
    total = np.asarray(token.stream * ranks.stream_scale + token.split)
    if group.kv_heads and np.any(ranks.layout.tp > group.kv_heads):
        copies = np.maximum(ranks.layout.tp / group.kv_heads, 1.0) - 1.0
        total = total + group.kv_heads * group.kv_token_bytes_per_head * copies
    if token.routed:
        total = total + ranks.imbalance * token.routed
    return total


def _on_device(ranks: Ranks, kept: Values) -> Values:
    """What offloading leaves of stored activations: the layer in use and the one on its way."""
    layers = np.maximum(mem.layers_of_fullest_stage(ranks.arch.layer_count, ranks.layout.pp), 1.0)
    return np.asarray(kept * np.minimum(_OFFLOADED_LAYERS / layers, 1.0))
