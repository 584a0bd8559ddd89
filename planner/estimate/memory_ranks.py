"""Ranks of a training job and their share of the model, as arrays over layouts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations import memory as mem
from planner.estimate.layer_memory import LayerScalars, layer_scalars
from planner.estimate.layout import Layout, expert_tensor_degree
from planner.estimate.memory_stack import MemoryStack

Values = NDArray[np.float64]
Where = Literal["first", "inner", "last"]  # inner: the first stage behind dense layers that the model begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """What the stages of a job have in common."""

    arch: Architecture
    stack: MemoryStack
    groups: tuple[LayerScalars, ...]
    sequence_length: float
    layout: Layout  # floats
    micro_batches: Values
    tokens: Values  # per rank and micro-batch, over t: T / t
    stream_scale: Values | float  # t / z
    stage: Values  # ZeRO stage in effect
    dense_shards: Values
    expert_split: Values  # ep et
    expert_shards: Values
    imbalance: Values  # excess of routed tokens on the fullest rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of the pipeline; the only one counts as the first and the last."""

    where: Where
    index: Values  # from 0
    layers: tuple[Values, ...]  # of each group
    dense: Values  # parameters that dense sharding divides
    expert: Values | None  # and that expert sharding divides
    adapters: Values
    has_head: NDArray[np.bool_]


def ranks_of(arch: Architecture, stack: MemoryStack, sequence_length: float, layout: Layout) -> Ranks:
    """What all stages of a job share, once for all layouts.

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
    """
    lay = layout.as_floats()
    m = lay.micro_batches
    split = shards = excess = np.asarray(1.0)
    if arch.is_moe:
        et = expert_tensor_degree(lay.tp, lay.ep)
        split = lay.ep * et
        shards = np.asarray(mem.expert_shard_devices(lay.dp, lay.cp, lay.tp, lay.ep, et))
        excess = np.where(lay.ep > 1, stack.expert_imbalance - 1.0, 0.0)
    return Ranks(
        arch=arch,
        stack=stack,
        groups=layer_scalars(arch, stack, sequence_length),
        sequence_length=sequence_length,
        layout=lay,
        micro_batches=m,
        tokens=lay.micro_batch * (sequence_length / (lay.cp * lay.tp)),
        stream_scale=1.0 if stack.sequence_parallel else lay.tp,
        stage=np.asarray(mem.effective_sharding_stage(lay.sharding, lay.pp, m)),
        dense_shards=lay.dp * lay.cp,
        expert_split=split,
        expert_shards=shards,
        imbalance=excess,
    )


def stage_of(ranks: Ranks, where: Where) -> Stage:
    """Layers and parameters of a stage."""
    index, layers = _layers_of_stage(ranks, where)
    dense, expert = _stage_parameters(ranks, layers, where)
    adapters = np.asarray(0.0)
    for group, n in zip(ranks.groups, layers, strict=True):
        adapters = adapters + n * group.adapter_parameters / ranks.layout.tp
    head = np.asarray(ranks.layout.pp == 1) | (where == "last")
    return Stage(
        where=where, index=index, layers=tuple(layers), dense=dense, expert=expert, adapters=adapters, has_head=head
    )


def leading_layers(ranks: Ranks) -> int:
    """Dense layers with which a model with experts begins: no stage of theirs is the fullest.  [count]"""
    groups = ranks.groups
    leads = len(groups) > 1 and not groups[0].expert_parameters and groups[1].expert_parameters
    return int(groups[0].count) if leads else 0


def _layers_of_stage(ranks: Ranks, where: Where) -> tuple[Values, list[Values]]:
    """The stage's number and its layers of each group, in the model's order: ceil(L/p), on the last one floor(L/p)."""
    p, count, groups = ranks.layout.pp, float(ranks.arch.layer_count), ranks.groups
    last, fullest = where == "last", np.asarray(mem.layers_of_fullest_stage(count, p))
    on_stage = np.floor(count / p) if last else fullest
    index = np.asarray(p - 1.0 if last else np.zeros_like(p))
    begin = np.asarray(0.0)
    if where == "inner":
        index = np.ceil(leading_layers(ranks) / fullest)
        begin, on_stage = index * fullest, np.where(index < p - 1.0, fullest, 0.0)
    result, before = [], 0
    for group in reversed(groups) if last else groups:
        until = np.clip(begin + on_stage - before, 0.0, group.count)
        own = until - np.clip(begin - before, 0.0, group.count)
        result.append(own if len(groups) > 1 else on_stage)
        before += group.count
    result = result[::-1] if last else result
    if ranks.stack.predicted_tokens and result:  # its layers are of the last kind, on the last stage
        result[-1] = result[-1] + np.where((p == 1) | last, float(ranks.stack.predicted_tokens), 0.0)
    return index, result


def _stage_parameters(ranks: Ranks, layers: list[Values], where: Where) -> tuple[Values, Values | None]:
    """Parameters of the rank that dense sharding and expert sharding divide."""
    lay, groups = ranks.layout, ranks.groups
    if not groups:  # only the count is known: an even share, embeddings included
        return np.asarray(ranks.arch.parameters / (lay.tp * lay.pp)), None
    split, whole, expert = _ends_of_model(ranks, where)
    experts = None
    for group, n in zip(groups, layers, strict=True):
        split = split + n * group.split_parameters
        whole = whole + n * group.replicated_parameters
        if group.kv_heads and np.any(lay.tp > group.kv_heads):  # fewer key-value heads than ranks: replicated
            copies = np.maximum(lay.tp / group.kv_heads, 1.0) - 1.0
            split = split + n * (group.kv_heads * group.kv_parameters_per_head) * copies
        if group.expert_parameters:
            expert = expert + n * group.expert_parameters
            experts = expert
    dense = split / lay.tp + whole
    return dense, None if experts is None else experts / ranks.expert_split


def _ends_of_model(ranks: Ranks, where: Where) -> tuple[Values, Values, Values]:
    """Embedding and head on the stage: parameters that t splits, that it does not, and 0 for the experts."""
    arch, alone, last = ranks.arch, ranks.layout.pp == 1, where == "last"
    if where == "inner":
        nothing = np.zeros_like(ranks.layout.pp)
        return nothing, nothing, np.asarray(0.0)
    table, head = float(arch.input_embedding_parameters), float(arch.output_head_parameters)
    ends, position = float(arch.final_norm_parameters), float(arch.position_parameters)
    own = (head or table) if last else table  # tied: the last stage keeps its own copy of the table
    projections = 2.0 * arch.hidden_size**2 * ranks.stack.predicted_tokens  # of 2 h to h
    if projections and last:  # which looks the tokens up in a copy of the table
        own = own + table + projections
    split = np.where(alone, table + head + projections, own)
    return split, np.where(alone, position + ends, ends if last else position), np.asarray(0.0)


def _frozen_ends(ranks: Ranks, where: Where) -> Values:
    """Parameters of embedding and head on the stage, of one tensor-parallel rank."""
    if not ranks.groups:
        return np.asarray(0.0)
    split, whole, _ = _ends_of_model(ranks, where)
    return np.asarray(split / ranks.layout.tp + whole)


def states_of(ranks: Ranks, stage: Stage) -> dict[str, Values]:
    """Weights, gradients and optimizer state; with adapters of the frozen base and of the adapters.  [B]"""
    recipe, frozen = ranks.stack.recipe, ranks.stack.adapter_rank > 0
    result = {}
    for name, function, size in (
        ("weights", mem.weight_memory_bytes, recipe.weight),
        ("gradients", mem.gradient_memory_bytes, recipe.gradient),
        ("optimizer", mem.optimizer_memory_bytes, recipe.optimizer),
    ):
        own = (ranks.stack.base_bytes if name == "weights" else 0.0) if frozen else size
        total = function(stage.dense, own, ranks.dense_shards, ranks.stage)
        if frozen and name == "weights" and ranks.stack.table_bytes != own:
            ends = _frozen_ends(ranks, stage.where)
            total = total + function(ends, ranks.stack.table_bytes - own, ranks.dense_shards, ranks.stage)
        if stage.expert is not None:
            total = total + function(stage.expert, own, ranks.expert_shards, ranks.stage)
        if frozen:
            total = total + function(stage.adapters, size, ranks.dense_shards, ranks.stage)
        result[name] = np.asarray(total)
    return result
