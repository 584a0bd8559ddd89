"""What the ranks of a step say to each other, as far as compute does not hide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.equations import pipeline
from planner.equations import step_time as eq
from planner.estimate.layout import RECOMPUTE_FULL, shares_nothing
from planner.estimate.machine import Group
from planner.estimate.step_layer import NONE, Context, LayerPass, Values
from planner.estimate.work import LayerWork

_KEY_VALUE_BYTES = 2.0


def _row_bytes(ctx: Context) -> Values:
    """One hidden state on the wire."""
    return np.asarray(ctx.work.hidden * ctx.stack.value_bytes)


def _passes(ctx: Context) -> Values:
    """Exchanges per layer: two forward, two backward, two when the forward pass is repeated."""
    return np.where(ctx.layout.recompute == RECOMPUTE_FULL, 6.0, 4.0)


def tensor_parallel_s(ctx: Context, busy_s: Values) -> Values:
    """All-reduces (or gathers and scatters of the same volume) of hidden states in a layer of so much compute."""
    t = ctx.layout.tp
    if np.all(t == 1):
        return NONE
    one = Group(machine=ctx.machine, ranks=t, stride=1.0).all_reduce_s(ctx.tokens * _row_bytes(ctx))
    hidden = np.asarray(ctx.stack.tensor_hidden) * (1.0 - ctx.constants.contention)
    return _partly_hidden(_passes(ctx) * one, hidden, busy_s)


def _partly_hidden(communication_s: Values, share: Values, busy_s: Values) -> Values:
    """What is seen of communication, a share of which runs beside compute: no more of it than there is compute."""
    return np.asarray(np.maximum(communication_s * (1.0 - share), communication_s - busy_s))


def expert_exchange_s(ctx: Context, layer: LayerWork, busy_s: Values) -> Values:
    """Tokens to their experts and back in a layer of so much compute."""
    lay, experts = ctx.layout, np.asarray(layer.experts)
    if np.all(lay.ep == 1) or not np.any(experts > 0):
        return NONE
    rows = ctx.tokens / ctx.norm_split * ctx.stack.imbalance
    message = rows * ctx.work.hidden * ctx.stack.exchange_bytes
    one = Group(machine=ctx.machine, ranks=lay.ep, stride=1.0).dispatch_s(message, layer.experts_per_token)
    seen = _partly_hidden(_passes(ctx) * one, np.asarray(ctx.stack.expert_hidden), busy_s)
    return np.where(experts > 0, seen, 0.0)


def context_parallel_s(ctx: Context, layer: LayerWork, one: LayerPass) -> Values:
    """The ring of keys and values beside the attention core, or an exchange of heads.

    Parameters
    ----------
    ctx
        What the pieces of a step share.
    layer
        Sizes of a layer of its kind.
    one
        Compute of that layer; its attention core hides the ring.
    """
    c = ctx.layout.cp
    if np.all(c == 1):
        return NONE
    group = Group(machine=ctx.machine, ranks=c, stride=ctx.layout.tp)
    ring = _ring_s(ctx, layer, one, group)
    if np.any(np.asarray(ctx.stack.context_all_to_all) > 0):
        ring = np.where(np.asarray(ctx.stack.context_all_to_all) > 0, _heads_s(ctx, layer, group), ring)
    return np.where(c > 1, ring, 0.0)


def _ring_s(ctx: Context, layer: LayerWork, one: LayerPass, group: Group) -> Values:
    heads = layer.kv_heads * (layer.head_size + layer.value_head_size) / ctx.layout.tp
    ring = (ctx.layout.cp - 1.0) * group.neighbour_s(ctx.tokens * heads * _KEY_VALUE_BYTES)
    forward = eq.exposed_s(ring, one.attention_f, ctx.constants.contention)
    backward = eq.exposed_s(2.0 * ring, one.attention_b, ctx.constants.contention)
    return np.where(ctx.layout.recompute == RECOMPUTE_FULL, 2.0, 1.0) * forward + backward


def _heads_s(ctx: Context, layer: LayerWork, group: Group) -> Values:
    """Queries, keys, values and outputs change from tokens to heads and back, in each direction."""
    widths = layer.query_heads * layer.head_size + layer.kv_heads * (layer.head_size + layer.value_head_size)
    message = ctx.tokens * (widths + layer.output_width) * _KEY_VALUE_BYTES / ctx.layout.tp
    return 0.5 * _passes(ctx) * group.all_to_all_s(message)


def transfers_s(ctx: Context, stage_s: Values) -> Values:
    """Hidden states from stage to stage in a step.

    Each part of a stage sends its own, so that v parts send v times as much [1]. Interleaved parts send beside the
    compute of others, as long as there is any: on a slow network many parts cost more than the bubble they close.

    Parameters
    ----------
    ctx
        What the pieces of a step share.
    stage_s
        A micro-batch on a mean stage, forward and backward.  [s]

    References
    ----------
    [1] D. Narayanan et al., arXiv 2104.04473, sec. 2.2.2.
    """
    lay = ctx.layout
    if np.all(lay.pp == 1):
        return NONE
    message = pipeline.stage_transfer_bytes(ctx.tokens, ctx.work.hidden, lay.tp, ctx.stack.value_bytes)
    one = Group(machine=ctx.machine, ranks=lay.pp, stride=lay.devices / lay.pp).neighbour_s(message)
    hiding = np.asarray(ctx.stack.hide_transfers) * np.where(lay.vpp > 1, stage_s, 0.0)
    seen = eq.exposed_s(2.0 * one * lay.vpp, hiding)  # what copies take from compute is in the constants
    return np.where(lay.pp > 1, ctx.micro_batches * seen + 2.0 * one * (lay.pp - 1.0), 0.0)


def rank_parameters(ctx: Context) -> tuple[Values, Values]:
    """Dense and expert parameters of a rank, with the larger end of the model."""
    lay, work = ctx.layout, ctx.work
    dense = expert = NONE
    for layer in work.layers:
        dense = dense + layer.count * layer.parameters
        expert = expert + layer.count * layer.expert_parameters
    table, head = work.table_parameters, work.head_parameters
    dense = np.where(lay.pp > 1, dense / lay.pp + np.maximum(table, head), dense + table + head) / lay.tp
    return dense, expert / (lay.ep * ctx.expert_tensor * lay.pp)


def shards(ctx: Context) -> list[tuple[Group, Group, Values]]:
    """Per kind of weights: ranks that share them, ranks that hold equal shares, parameters of a rank."""
    lay = ctx.layout
    dense, expert = rank_parameters(ctx)
    result = [_groups(ctx, lay.dp * lay.cp, lay.tp, dense)]
    if np.any(expert > 0):
        split = lay.ep * ctx.expert_tensor
        ranks = np.maximum(lay.dp * lay.cp * lay.tp / split, 1.0)
        result.append(_groups(ctx, ranks, split, expert))
    return result


def _groups(ctx: Context, ranks: Values, stride: Values, parameters: Values) -> tuple[Group, Group, Values]:
    limit = np.asarray(ctx.stack.shard_ranks, dtype=np.float64)
    shared = np.where(limit > 0, np.minimum(ranks, np.maximum(limit / stride, 1.0)), ranks)
    inner = Group(machine=ctx.machine, ranks=shared, stride=stride)
    return inner, Group(machine=ctx.machine, ranks=ranks / shared, stride=stride * shared), parameters


def data_parallel_s(ctx: Context, volumes_s: Sequence[Values], forward_s: Values, backward_s: Values) -> Values:
    """Gradients reduced and weights gathered in a step, as far as compute does not hide them.  [s]

    Sharded weights are gathered for every micro-batch, except on a pipelined stage, which keeps them. Sharded gradients
    are scattered in every micro-batch, since nobody keeps them whole [1, 2]; on a pipelined stage they stay whole
    (`equations.memory.effective_sharding_stage`).

    Parameters
    ----------
    ctx
        What the pieces of a step share.
    volumes_s
        Times of gathering, scattering and reducing, and of reducing across copies, as the function of that name gives
        them.  [s]
    forward_s, backward_s
        Compute of one micro-batch on a stage, which hides them.  [s]

    References
    ----------
    [1] DeepSpeed, issue 2252 (2022): from ZeRO-2 on gradients are reduced after every backward pass.
    [2] Megatron-Core, Megatron-FSDP (2025): reduces in every backward pass with optim_grads, once a step with optim.
    """
    lay, contention = ctx.layout, ctx.constants.contention
    if shares_nothing(lay):
        return NONE
    gather, scatter, reduce, across = volumes_s
    gradients = np.where(lay.sharding == 0, reduce, scatter)
    # with interleaved stages the gradients of early chunks are reduced while the pipeline drains through the others
    draining = 1.0 + np.where(lay.vpp > 1, (lay.pp - 1.0) * (lay.vpp - 1.0) / lay.vpp, 0.0)
    once = _beside(ctx.stack.gradient_overlap, gradients, backward_s * draining, contention)
    once = once * np.where((lay.sharding == 2) & (lay.pp == 1), ctx.micro_batches, 1.0)
    weights = _beside(ctx.stack.gather_overlap, gather, forward_s, contention)
    once = once + np.where(lay.sharding >= 1, weights, 0.0)
    overlap = ctx.stack.gradient_overlap  # sharded weights come layer by layer, beside compute where anything does
    forward = _beside(overlap, gather, forward_s, contention)
    every = ctx.micro_batches * (forward + _beside(overlap, gather + scatter, backward_s, contention))
    return np.where((lay.sharding == 3) & (lay.pp == 1), every, once) + across


def _beside(overlap: Any, communication_s: Values, hiding_s: Values, contention: Any) -> Values:
    return np.where(np.asarray(overlap) > 0, eq.exposed_s(communication_s, hiding_s, contention), communication_s)


def volumes_s(ctx: Context) -> tuple[Values, Values, Values, Values]:
    """Times of gathering weights, scattering and reducing gradients, and reducing across copies."""
    gather = scatter = reduce = across = NONE
    if shares_nothing(ctx.layout):
        return gather, scatter, reduce, across
    trained = ctx.stack.trained * np.asarray(ctx.stack.reduce_bytes)
    # a sharded optimizer gathers what it updated; sharded weights are gathered whole, frozen ones too
    gathered = ctx.stack.gather_bytes * np.where(ctx.layout.sharding == 3, 1.0, ctx.stack.trained)
    # with weights sharded, a layer is gathered at a time
    units = np.where(ctx.layout.sharding == 3, np.maximum(ctx.work.layer_count / ctx.layout.pp, 1.0), 1.0)
    for group, copies, parameters in shards(ctx):
        there = np.where(parameters > 0, 1.0, 0.0)  # nothing to send, no latency either
        gather = gather + there * units * group.all_gather_s(parameters * gathered / units)
        scatter = scatter + there * units * group.all_gather_s(parameters * trained / units)
        reduce = reduce + there * group.all_reduce_s(parameters * trained)
        across = across + there * copies.all_reduce_s(parameters / group.ranks * trained)
    return gather, scatter, reduce, across


def optimizer_s(ctx: Context) -> Values:
    """The update of the parameters that a rank owns, on the device or on the host."""
    owned = NONE
    for group, _, parameters in shards(ctx):
        owned = owned + parameters * ctx.stack.trained / np.where(ctx.layout.sharding >= 1, group.ranks, 1.0)
    device = np.asarray(eq.optimizer_step_s(owned, ctx.stack.optimizer_bytes, ctx.bytes_per_s))
    if not np.any(np.asarray(ctx.stack.optimizer_offload) > 0):
        return device
    host = eq.host_optimizer_s(owned, ctx.machine.host_bytes_per_s)
    return np.where(np.asarray(ctx.stack.optimizer_offload) > 0, host, device)
