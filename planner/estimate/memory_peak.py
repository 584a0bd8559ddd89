"""What a rank holds for a moment: logits, gradients, gathered weights, placeholders, pools of other streams."""

from __future__ import annotations

import numpy as np

from planner.carriers import dataclass
from planner.equations import activations as act
from planner.equations import device_memory as dev
from planner.equations import layer_parts as part
from planner.equations import memory as mem
from planner.estimate.memory_ranks import Ranks, Stage, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What is alive at one moment beside the activations that wait."""

    live: Values  # layer that is computed again
    logits: Values
    gathered: Values
    gradients: Values


def peak_of_backward(ranks: Ranks, stage: Stage, live: Values) -> Peak:
    """What is held at the larger of two moments of the backward pass: the loss with the head, or inside a layer.

    Only FSDP's units are told apart by the moment; elsewhere a recomputed layer and gathered weights count in both.

    Parameters
    ----------
    ranks
        What the stages of the job have in common.
    stage
        The first or the last stage.
    live
        Activations of the layer that is computed again.  [B]

    Returns
    -------
    What is held, 0 of a model without layers.  [B]
    """
    nothing = np.asarray(0.0)
    if not ranks.groups:
        return Peak(live=nothing, logits=nothing, gathered=nothing, gradients=nothing)
    head, layer = _head_bytes(ranks, stage), _gradient_bytes(ranks)
    gathered = _gathered(ranks, stage)
    if not ranks.stack.end_units:
        at_head = head >= layer
        return Peak(
            live=live, logits=np.where(at_head, head, 0.0), gathered=gathered, gradients=np.where(at_head, 0.0, layer)
        )
    with_head = _gathered(ranks, stage, at_head=True)
    at_head = head + with_head >= layer + gathered + live
    return Peak(
        live=np.where(at_head, 0.0, live),
        logits=np.where(at_head, head, 0.0),
        gathered=np.where(at_head, with_head, gathered),
        gradients=np.where(at_head, 0.0, layer),
    )


def _head_bytes(ranks: Ranks, stage: Stage) -> Values:
    """Logits at their peak; each further predicted token has its own."""
    arch, lay, stack = ranks.arch, ranks.layout, ranks.stack
    tokens = ranks.tokens * lay.tp
    if stack.logit_chunk_tokens:
        tokens = np.minimum(tokens, stack.logit_chunk_tokens)
    gathered = np.where(lay.tp > 1, 1.0, 0.0) if stack.sequence_parallel else 0.0
    peak = part.loss_peak_bytes(tokens, arch.vocab_size, arch.hidden_size, lay.tp, stack.logit_bytes, gathered)
    return np.where(stage.has_head, peak * (1.0 + stack.predicted_tokens), 0.0)


def _gradient_bytes(ranks: Ranks) -> Values:
    """Gradients of activations inside the widest layer."""
    lay, scale = ranks.layout, ranks.stack.value_bytes / 2.0
    widest = max(group.gradient_values for group in ranks.groups)
    shards = lay.tp / ranks.stream_scale
    tokens = ranks.tokens * lay.tp
    return np.asarray(scale * part.layer_gradient_bytes(tokens, ranks.arch.hidden_size, widest, lay.tp, shards))


def _gathered(ranks: Ranks, stage: Stage, *, at_head: bool = False) -> Values:
    """ZeRO-3: two gathered layers and one layer's gradients, or the whole stage under a pipeline."""
    lay, stack = ranks.layout, ranks.stack
    gathering = (ranks.stage == 3) & (ranks.dense_shards > 1)
    if not ranks.groups or not np.any(gathering):
        return np.asarray(0.0)
    layer = np.asarray(0.0)
    for group in ranks.groups:
        own = group.split_parameters / lay.tp + group.replicated_parameters
        layer = np.maximum(layer, own + group.expert_parameters / ranks.expert_split)
    computed = stack.base_bytes if stack.adapter_rank else stack.value_bytes
    gradient = 0.0 if stack.adapter_rank else stack.recipe.gradient
    held = mem.gathered_layer_bytes(layer, computed, 0.0 if at_head else gradient)
    if stack.end_units:
        unit, head = _end_unit(ranks)
        held = held + dev.gathered_ends_bytes(unit, 0.0 if at_head or stack.adapter_rank else head, computed)
    if np.any(lay.pp > 1):
        whole = stage.dense if stage.expert is None else stage.dense + stage.expert
        held = np.where(lay.pp > 1, mem.gathered_stage_bytes(whole, computed, gradient), held)
    return np.where(gathering, held, 0.0)


def _end_unit(ranks: Ranks) -> tuple[Values, Values]:
    """Parameters of the unit that holds the head, and those of the head, on one tensor-parallel rank."""
    arch, t = ranks.arch, ranks.layout.tp
    table, head = float(arch.input_embedding_parameters), float(arch.output_head_parameters)
    unit = table + head if ranks.stack.end_units == 1 else head or table
    return np.asarray(unit / t), np.asarray((head or table) / t)


def side_pools(ranks: Ranks, stage: Stage) -> Values:
    """Pool that no activation gets: of the stream that reduces FSDP's units, and of logits between their copies."""
    lay, stack = ranks.layout, ranks.stack
    if not ranks.groups:
        return np.asarray(0.0)
    logits = np.asarray(0.0)
    if stack.pooled_logit_bytes:
        logits = np.asarray(
            act.logits_bytes(ranks.tokens * lay.tp, ranks.arch.vocab_size, lay.tp, stack.pooled_logit_bytes)
        )
    held = np.asarray(np.where(stage.has_head, logits, 0.0))
    if not stack.end_units or stack.adapter_rank:
        return held
    unit, _ = _end_unit(ranks)
    sharded = (ranks.stage == 3) & (ranks.dense_shards > 1) & (lay.pp == 1)
    return held + np.where(sharded, dev.side_pool_bytes(unit), 0.0)


def weight_gradients(ranks: Ranks, stage: Stage) -> Values:
    """Weight gradients outside the sum: placeholders of every shape, or the two largest that wait to be added."""
    stack, groups = ranks.stack, ranks.groups
    if not groups or stack.adapter_rank:
        return np.asarray(0.0)
    if stack.placeholders:
        return _placeholders(ranks, stage)
    widest = max(group.widest_matrix for group in groups)
    arguments = (ranks.arch.hidden_size, widest, ranks.layout.tp, stack.value_bytes)
    scratch = np.asarray(mem.weight_gradient_scratch_bytes(*arguments))
    if stack.recipe.gradient > stack.recipe.weight:
        return scratch
    return np.where(ranks.micro_batches > 1, scratch, 0.0)


def _placeholders(ranks: Ranks, stage: Stage) -> Values:
    matrices = max(group.attention_matrices for group in ranks.groups) + np.where(
        stage.has_head, float(ranks.arch.output_head_parameters or ranks.arch.input_embedding_parameters), 0.0
    )
    for size in {group.other_matrices for group in ranks.groups}:
        present = sum(n for group, n in zip(ranks.groups, stage.layers, strict=True) if group.other_matrices == size)
        matrices = matrices + np.where(present > 0, size, 0.0)
    return np.asarray(dev.weight_gradient_placeholder_bytes(matrices, ranks.layout.tp, ranks.stack.value_bytes))


def buckets_of(ranks: Ranks) -> Values:
    """Communication buckets of data parallelism; ZeRO-3 has gathered layers instead."""
    held = float(mem.gradient_bucket_bytes(ranks.stack.bucket_bytes, 1.0))
    return np.where((ranks.dense_shards > 1) & (ranks.stage < 3), held, 0.0)
