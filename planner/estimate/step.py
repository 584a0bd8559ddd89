"""One optimizer step by the analytic tier: every layer kind, every split, term by term.

All arguments are numbers or arrays of one shape: one job on many layouts, or many jobs with a layout each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.equations import step_time as eq
from planner.estimate.constants import StepConstants
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, Layout
from planner.estimate.machine import Group, Machine
from planner.estimate.terms import Terms
from planner.estimate.work import LayerWork, Work

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What the software does; numbers or arrays. Flags are 0 or 1, or a share between."""

    value_bytes: Any = 2.0  # of an activation on the wire
    low_precision: Any = 0.0  # linear products in fp8 or fp4
    eager: Any = 0.0  # attention stores its scores
    attention_rate: Any = 0.5  # best rate of the attention kernel, share of the 16-bit peak
    traffic: Any = 1.0  # of `layer_traffic_bytes`: less with compiled or fused stacks
    sequence_parallel: Any = 1.0
    tensor_hidden: Any = 0.0  # share of tensor-parallel communication that runs beside the products
    expert_hidden: Any = 0.0  # share of the expert exchange that does
    gradient_overlap: Any = 1.0  # reduction runs beside the last backward pass
    gather_overlap: Any = 1.0  # weights of a sharded optimizer are gathered beside the first forward pass
    gather_bytes: Any = 2.0  # of a weight on the wire
    reduce_bytes: Any = 2.0  # of a gradient on the wire
    host_share: Any = 1.0  # of `host_s`: 0 with CUDA graphs
    recompute_share: Any = 0.0  # share of the layer that a selective policy computes again
    imbalance: Any = 1.0  # routed tokens of the fullest rank over the mean
    optimizer_bytes: Any = 30.0
    hide_transfers: Any = 0.0
    exchange_bytes: Any = 2.0  # of a routed value, mean of dispatch and combination
    overhead: Any = 1.0  # device work of this software over that of a tuned one
    logit_bytes: Any = 16.0  # moved per logit by loss and its gradient
    expert_host: Any = 0.0  # host passes that routing adds to a layer's pass
    cast: Any = 1.0  # quantisation traffic of the recipe
    low_rate: Any = 1.0  # of the low-precision products of the recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    work: Work
    layout: Layout
    machine: Machine
    stack: Stack
    constants: StepConstants
    tokens: Values  # T of a micro-batch on one rank
    rate: Values  # sustained 16-bit FLOP/s
    low_rate: Values  # sustained FLOP/s of linear products
    bandwidth: Values  # sustained memory bandwidth
    wave: Values  # output elements at half rate
    norm_split: Values  # z
    expert_split: Values


def step_time(work: Work, layout: Layout, machine: Machine, stack: Stack, constants: StepConstants) -> Terms:
    """Seconds of one optimizer step."""
    ctx = _context(work, layout, machine, stack, constants)
    return _compose(ctx)


def _context(work: Work, layout: Layout, machine: Machine, stack: Stack, constants: StepConstants) -> _Context:
    lay = layout.as_floats()
    peak = np.asarray(machine.peak_flop_per_s, dtype=np.float64)
    low = np.where(np.asarray(stack.low_precision) > 0, constants.low_precision * np.asarray(stack.low_rate), 1.0) * machine.linear_flop_per_s
    return _Context(
        work=work,
        layout=lay,
        machine=machine,
        stack=stack,
        constants=constants,
        tokens=lay.micro_batch * np.asarray(work.sequence_length) / lay.cp,
        rate=peak * constants.gemm / stack.overhead,
        low_rate=low * constants.gemm / stack.overhead,
        bandwidth=np.asarray(machine.memory_bandwidth_bytes_per_s) * constants.memory / stack.overhead,
        wave=np.asarray(constants.wave) * eq.TILE_ELEMENTS * np.asarray(machine.multiprocessors, dtype=np.float64),
        norm_split=np.where(np.asarray(stack.sequence_parallel) > 0, lay.tp, 1.0),
        expert_split=lay.ep,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """Seconds of one layer, one micro-batch."""

    products_f: Values
    products_b: Values
    attention_f: Values
    attention_b: Values
    traffic_f: Values
    traffic_b: Values
    experts_f: Values
    experts_b: Values


def _product(ctx: _Context, rate: Values, m: Any, n: Any, k: Any) -> Values:
    """The slower of computing a product and moving its values."""
    compute = eq.matrix_product_s(m, n, k, rate, ctx.wave)
    move = eq.matrix_traffic_bytes(m, n, k) / ctx.bandwidth
    return np.where((np.asarray(n) > 0) & (np.asarray(k) > 0), np.maximum(compute, move), 0.0)


def _matrices(ctx: _Context, layer: LayerWork) -> list[tuple[Any, Any]]:
    """(columns, depth) of the forward products of a layer on one rank."""
    h, t = ctx.work.hidden, ctx.layout.tp
    up = layer.up_projections
    result = [
        (layer.qkv_width / t, h),
        (layer.query_rank + 0 * t, h),
        (layer.query_up / t, np.where(np.asarray(layer.query_rank) > 0, layer.query_rank, h)),
        (layer.kv_rank + 0 * t, h),
        (layer.kv_up / t, layer.kv_rank),
        (h, layer.output_width / t),
        (up * layer.mlp_width / t, h),
        (h, layer.mlp_width / t),
        (up * layer.shared_width / t, h),
        (h, layer.shared_width / t),
    ]
    return [(n, k) for n, k in result if np.any(np.asarray(n) > 0) and np.any(np.asarray(k) > 0)]


def _layer(ctx: _Context, layer: LayerWork) -> _Pass:
    forward = backward = np.asarray(0.0)
    m = ctx.tokens
    for n, k in _matrices(ctx, layer):
        forward = forward + _product(ctx, ctx.low_rate, m, n, k)
        backward = backward + _product(ctx, ctx.low_rate, m, k, n) + _product(ctx, ctx.low_rate, k, n, m)
    attention_f, attention_b = _attention(ctx, layer)
    experts_f, experts_b = _experts(ctx, layer)
    t = ctx.layout.tp
    routed = layer.experts_per_token * ctx.stack.imbalance
    width = (layer.mlp_width + layer.shared_width) / t
    traffic = eq.layer_traffic_bytes(
        m, ctx.work.hidden / ctx.norm_split, width, (layer.qkv_width + layer.query_up + layer.kv_up) / t, layer.up_projections
    )
    if np.any(np.asarray(layer.experts) > 0):
        moved = 8.0 * ctx.work.hidden + 4.0 * layer.up_projections * layer.expert_width
        traffic = traffic + m * routed * moved / np.where(_expert_tensor(ctx) > 1, t, 1.0)
    traffic_s = ctx.stack.traffic * traffic / ctx.bandwidth
    casts = _casts(ctx, layer)
    return _Pass(
        products_f=forward,
        products_b=backward,
        attention_f=attention_f,
        attention_b=attention_b,
        traffic_f=traffic_s + casts,
        traffic_b=traffic_s * eq.TRAFFIC_BACKWARD + casts,
        experts_f=experts_f,
        experts_b=experts_b,
    )


def _casts(ctx: _Context, layer: LayerWork) -> Values:
    """Quantising inputs: read 2 bytes, write 1 twice (rows and columns)."""
    low = np.asarray(ctx.stack.low_precision)
    if not np.any(low > 0):
        return np.asarray(0.0)
    t = ctx.layout.tp
    inputs = 2.0 * ctx.work.hidden + (layer.output_width + layer.mlp_width + layer.shared_width) / t
    inputs = inputs + layer.experts_per_token * (ctx.work.hidden + layer.expert_width)
    return low * ctx.stack.cast * 4.0 * ctx.tokens * inputs / ctx.bandwidth


def _attention(ctx: _Context, layer: LayerWork) -> tuple[Values, Values]:
    lay, stack, s = ctx.layout, ctx.stack, np.asarray(ctx.work.sequence_length, dtype=np.float64)
    heads, queries = layer.query_heads / lay.tp, s / lay.cp
    half = s / 2.0
    window = np.asarray(layer.window_tokens, dtype=np.float64)
    attended = np.where((window > 0) & (window < s), np.minimum(window, half), half)
    eager = np.asarray(stack.eager)
    share = eq.flash_rate_share(attended / lay.cp, np.maximum(layer.head_size, 1.0))  # a ring works block by block
    flash_rate = np.asarray(ctx.machine.peak_flop_per_s) * stack.attention_rate * ctx.constants.attention * share / stack.overhead
    size = (layer.head_size, layer.value_head_size)
    flash = eq.attention_core_s(lay.micro_batch, queries, attended, heads, *size, flash_rate)
    if not np.any(eager > 0):
        return flash, eq.FLASH_BACKWARD * flash
    # alignment: heads whose size is not a multiple of 8 leave the tensor cores
    aligned = np.where(np.mod(layer.head_size, 8.0) == 0, 1.0, 1.0 / 6.0)
    rate = ctx.rate * aligned * np.maximum(layer.head_size, 1.0) / (layer.head_size + eq.DEPTH_HALF)
    dense = eq.attention_core_s(lay.micro_batch, queries, s, heads, *size, rate)
    moved = eq.eager_softmax_bytes(lay.micro_batch, queries, s, heads) / ctx.bandwidth
    forward = np.where(eager > 0, dense + moved, flash)
    more = eq.EAGER_BACKWARD_BYTES_PER_SCORE / eq.EAGER_FORWARD_BYTES_PER_SCORE
    backward = np.where(eager > 0, eq.EAGER_BACKWARD * dense + more * moved, eq.FLASH_BACKWARD * flash)
    return forward, backward


def _expert_tensor(ctx: _Context) -> Values:
    lay = ctx.layout
    return np.where(np.mod(lay.dp * lay.cp, lay.ep) == 0, lay.tp, 1.0)


def _experts(ctx: _Context, layer: LayerWork) -> tuple[Values, Values]:
    experts = np.asarray(layer.experts, dtype=np.float64)
    if not np.any(experts > 0):
        return np.asarray(0.0), np.asarray(0.0)
    et = _expert_tensor(ctx)
    local = np.maximum(experts / ctx.layout.ep, 1e-9)
    # tokens that one rank's group routes, over the experts of the group
    tokens = ctx.tokens / np.where(et > 1, 1.0, np.where(ctx.norm_split > 1, ctx.norm_split, 1.0))
    rows = tokens * layer.experts_per_token * ctx.stack.imbalance / local
    rate = ctx.low_rate * ctx.constants.experts
    h, f, up = ctx.work.hidden, layer.expert_width / et, layer.up_projections
    wave = ctx.wave / local  # a grouped product fills the device with all of its experts
    one = [(up * f, h), (h, f)]
    forward = backward = np.asarray(0.0)
    for n, k in one:
        forward = forward + local * _grouped(ctx, rate, wave, rows, n, k)
        backward = backward + local * (_grouped(ctx, rate, wave, rows, k, n) + _grouped(ctx, rate, wave, k, n, rows))
    on = experts > 0
    return np.where(on, forward, 0.0), np.where(on, backward, 0.0)


def _grouped(ctx: _Context, rate: Values, wave: Values, m: Any, n: Any, k: Any) -> Values:
    compute = eq.matrix_product_s(m, n, k, rate, wave)
    return np.maximum(compute, eq.matrix_traffic_bytes(m, n, k) / ctx.bandwidth)


def _compose(ctx: _Context) -> Terms:
    work, lay, stack, con = ctx.work, ctx.layout, ctx.stack, ctx.constants
    zero = np.zeros(np.broadcast_shapes(np.shape(ctx.tokens), np.shape(ctx.rate), np.shape(lay.devices)))
    m = lay.micro_batches
    full = lay.recompute == RECOMPUTE_FULL
    selective = lay.recompute == RECOMPUTE_SELECTIVE
    sums = dict.fromkeys(
        ("products", "attention", "traffic", "experts", "recompute", "tensor", "context", "expert_exchange", "host"), zero
    )
    forward_compute = zero
    for layer in work.layers:
        one = _layer(ctx, layer)
        forward = one.products_f + one.attention_f + one.traffic_f + one.experts_f
        again = np.where(full, forward, np.where(selective, stack.recompute_share * forward + stack.eager * one.attention_f, 0.0))
        tensor = _tensor_parallel(ctx, layer, full)
        exchange = _exchange(ctx, layer, full)
        context = _context_parallel(ctx, layer, one)
        busy = forward + one.products_b + one.attention_b + one.traffic_b + one.experts_b + again
        passes = 3.0 + np.where(full, 1.0, 0.0)
        routing = np.where(np.asarray(layer.experts) > 0, stack.expert_host, 0.0)
        floor = passes * con.host_s * stack.host_share + passes * con.expert_host_s * routing
        n = layer.count
        host = np.hypot(busy, floor) - busy
        for name, value in (
            ("products", one.products_f + one.products_b),
            ("attention", one.attention_f + one.attention_b),
            ("traffic", one.traffic_f + one.traffic_b),
            ("experts", one.experts_f + one.experts_b),
            ("recompute", again),
            ("tensor", tensor),
            ("context", context),
            ("expert_exchange", exchange),
            ("host", host),
        ):
            sums[name] = sums[name] + n * value
        forward_compute = forward_compute + n * forward
    layers_s = sum(sums.values())
    head = _head(ctx)
    layer_mean = layers_s / np.maximum(work.layer_count, 1.0)
    p, v = lay.pp, lay.vpp
    mean_stage = (layers_s + head) / p
    fullest_first = np.ceil(work.layer_count / p) * layer_mean
    last = np.floor(work.layer_count / p) * layer_mean + head
    stage = np.where(p > 1, np.maximum(np.maximum(fullest_first, last), mean_stage), layers_s + head)
    terms = {name: m * value / p for name, value in sums.items()}
    terms["head"] = m * head / p
    terms["imbalance"] = m * (stage - mean_stage)
    terms["bubble"] = np.where(p > 1, (p - 1.0) / v * mean_stage, 0.0)
    terms["transfer"] = _transfer(ctx, m)
    terms["accumulation"] = _accumulation(ctx, m)
    terms["data"] = _data_parallel(ctx, m, layers_s / p, forward_compute / p)
    terms["optimizer"] = _optimizer(ctx)
    return Terms(terms)


def _head(ctx: _Context) -> Values:
    """Logits, loss and their gradients on the last stage."""
    v, h = ctx.work.vocab / ctx.layout.tp, ctx.work.hidden
    m = ctx.tokens
    products = _product(ctx, ctx.rate, m, v, h) + _product(ctx, ctx.rate, m, h, v) + _product(ctx, ctx.rate, h, v, m)
    return products + ctx.stack.logit_bytes * m * v / ctx.bandwidth


def _tensor_parallel(ctx: _Context, layer: LayerWork, full: Any) -> Values:
    t = ctx.layout.tp
    if np.all(t == 1):
        return np.asarray(0.0)
    message = ctx.tokens * ctx.work.hidden * ctx.stack.value_bytes
    one = Group(machine=ctx.machine, ranks=t, stride=1.0).all_reduce_s(message)
    passes = np.where(full, 6.0, 4.0)
    return passes * one * (1.0 - np.asarray(ctx.stack.tensor_hidden) * (1.0 - ctx.constants.contention))


def _exchange(ctx: _Context, layer: LayerWork, full: Any) -> Values:
    lay = ctx.layout
    if np.all(lay.ep == 1) or not np.any(np.asarray(layer.experts) > 0):
        return np.asarray(0.0)
    tokens = ctx.tokens / np.where(ctx.norm_split > 1, ctx.norm_split, 1.0)
    row = tokens * ctx.work.hidden * ctx.stack.exchange_bytes * ctx.stack.imbalance
    one = Group(machine=ctx.machine, ranks=lay.ep, stride=1.0).dispatch_s(row, layer.experts_per_token)
    passes = np.where(full, 6.0, 4.0)
    time = passes * one * (1.0 - np.asarray(ctx.stack.expert_hidden))
    return np.where(np.asarray(layer.experts) > 0, time, 0.0)


def _context_parallel(ctx: _Context, layer: LayerWork, one: _Pass) -> Values:
    lay = ctx.layout
    if np.all(lay.cp == 1):
        return np.asarray(0.0)
    blocks = ctx.tokens * layer.kv_heads / np.maximum(lay.tp, 1.0) * (layer.head_size + layer.value_head_size) * 2.0
    ring = (lay.cp - 1.0) * Group(machine=ctx.machine, ranks=lay.cp, stride=lay.tp).neighbour_s(blocks)
    forward = eq.exposed_s(ring, one.attention_f, ctx.constants.contention)
    backward = eq.exposed_s(2.0 * ring, one.attention_b, ctx.constants.contention)
    again = np.where(lay.recompute == RECOMPUTE_FULL, forward, 0.0)
    return np.where(lay.cp > 1, forward + backward + again, 0.0)


def _transfer(ctx: _Context, m: Values) -> Values:
    lay = ctx.layout
    if np.all(lay.pp == 1):
        return np.asarray(0.0)
    message = ctx.tokens * ctx.work.hidden * ctx.stack.value_bytes / lay.tp
    one = Group(machine=ctx.machine, ranks=lay.pp, stride=lay.devices / lay.pp).neighbour_s(message)
    exposed = 1.0 - np.asarray(ctx.stack.hide_transfers) * np.where(lay.vpp > 1, 1.0, 0.0)
    return np.where(lay.pp > 1, 2.0 * lay.vpp * one * exposed * m + 2.0 * (lay.pp - 1.0) * one, 0.0)


def _rank_parameters(ctx: _Context) -> tuple[Values, Values]:
    """Dense and expert parameters of the fuller end of a rank's pipeline."""
    lay, work = ctx.layout, ctx.work
    dense = expert = np.asarray(0.0)
    for layer in work.layers:
        dense = dense + layer.count * layer.parameters
        expert = expert + layer.count * layer.expert_parameters
    ends = work.table_parameters + work.head_parameters
    biggest_end = np.maximum(work.table_parameters, work.head_parameters)
    dense = np.where(lay.pp > 1, dense / lay.pp + biggest_end, dense + ends) / lay.tp
    return dense, expert / (lay.ep * _expert_tensor(ctx) * lay.pp)


def _shards(ctx: _Context) -> list[tuple[Group, Values]]:
    lay = ctx.layout
    dense, expert = _rank_parameters(ctx)
    result = [(Group(machine=ctx.machine, ranks=lay.dp * lay.cp, stride=lay.tp), dense)]
    if np.any(expert > 0):
        et = _expert_tensor(ctx)
        ranks = np.maximum(lay.dp * lay.cp * lay.tp / (lay.ep * et), 1.0)
        result.append((Group(machine=ctx.machine, ranks=ranks, stride=lay.ep * et), expert))
    return result


def _data_parallel(ctx: _Context, m: Values, stage_s: Values, forward_s: Values) -> Values:
    lay, stack, con = ctx.layout, ctx.stack, ctx.constants
    if np.all(lay.dp * lay.cp == 1):
        return np.asarray(0.0)
    gather = scatter = reduce = np.asarray(0.0)
    for group, parameters in _shards(ctx):
        units = np.where(lay.sharding == 3, ctx.work.layer_count / lay.pp, 1.0)  # a layer is gathered at a time
        gather = gather + units * group.all_gather_s(parameters * stack.gather_bytes / units)
        scatter = scatter + units * group.all_gather_s(parameters * stack.reduce_bytes / units)
        reduce = reduce + group.all_reduce_s(parameters * stack.reduce_bytes)
    backward_s = np.maximum(stage_s - forward_s, 0.0)
    grads = np.where(lay.sharding == 0, reduce, scatter)
    hide = np.asarray(stack.gradient_overlap) > 0
    once = np.where(hide, eq.exposed_s(grads, backward_s, con.contention), grads)
    weights = np.where(np.asarray(stack.gather_overlap) > 0, eq.exposed_s(gather, forward_s, con.contention), gather)
    once = once + np.where(lay.sharding >= 1, weights, 0.0)
    per_pass = m * (
        eq.exposed_s(gather, forward_s, con.contention) + eq.exposed_s(gather + scatter, backward_s, con.contention)
    )
    kept = lay.pp > 1  # a pipelined stage keeps its gathered weights for the whole step
    return np.where((lay.sharding == 3) & ~kept, per_pass, once)


def _accumulation(ctx: _Context, m: Values) -> Values:
    """Adding the gradients of every further micro-batch to their sum: read and write 4 bytes."""
    dense, expert = _rank_parameters(ctx)
    return np.maximum(m - 1.0, 0.0) * 8.0 * (dense + expert) / ctx.bandwidth


def _optimizer(ctx: _Context) -> Values:
    lay = ctx.layout
    total = np.asarray(0.0)
    for group, parameters in _shards(ctx):
        total = total + parameters / np.where(lay.sharding >= 1, group.ranks, 1.0)
    return eq.optimizer_step_s(total, ctx.stack.optimizer_bytes, ctx.bandwidth)
