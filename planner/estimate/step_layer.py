"""Compute of one layer of one micro-batch on one rank, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations import step_time as eq
from planner.estimate.constants import StepConstants
from planner.estimate.layout import Layout, expert_tensor_degree
from planner.estimate.machine import Machine
from planner.estimate.stack import Stack
from planner.estimate.work import LayerWork, Work

Values = NDArray[np.float64]
NONE = np.asarray(0.0)
_BACKWARD_SCORES = eq.EAGER_BACKWARD_BYTES_PER_SCORE / eq.EAGER_FORWARD_BYTES_PER_SCORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that the pieces of a step share; rates are sustained ones."""

    work: Work
    layout: Layout  # floats
    machine: Machine
    stack: Stack
    constants: StepConstants
    micro_batches: Values  # m of a rank in a step
    tokens: Values  # T of a micro-batch on one rank
    flop_per_s: Values  # 16-bit products
    linear_flop_per_s: Values  # linear products, in the precision of the job
    bytes_per_s: Values  # memory
    wave_elements: Values  # output elements at which half of the time is lost to unfilled waves
    norm_split: Values  # z: t under sequence parallelism, else 1
    expert_tensor: Values  # how tensor parallelism splits one expert


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPass:
    """Seconds of one layer, one micro-batch; f forward, b backward."""

    products_f: Values
    products_b: Values
    attention_f: Values
    attention_b: Values
    traffic_f: Values
    traffic_b: Values
    experts_f: Values
    experts_b: Values

    @property
    def forward(self) -> Values:
        """Forward compute."""
        return self.products_f + self.attention_f + self.traffic_f + self.experts_f

    @property
    def backward(self) -> Values:
        """Backward compute, nothing repeated."""
        return self.products_b + self.attention_b + self.traffic_b + self.experts_b


def context_of(work: Work, layout: Layout, machine: Machine, stack: Stack, constants: StepConstants) -> Context:
    """Sustained rates and shares that follow from what is asked.

    Parameters
    ----------
    work
        Sizes of the model and the sequence length.
    layout
        How the job is split.
    machine
        Vendor rates of devices and links.
    stack
        What the software does.
    constants
        Fitted shares of the device family.
    """
    lay = layout.as_floats()
    low = np.where(np.asarray(stack.low_precision) > 0, constants.low_precision * np.asarray(stack.low_rate), 1.0)
    share = constants.gemm / np.asarray(stack.overhead)
    bandwidth = np.asarray(machine.memory_bandwidth_bytes_per_s, dtype=np.float64)
    multiprocessors = np.asarray(machine.multiprocessors, dtype=np.float64)
    return Context(
        work=work,
        layout=lay,
        machine=machine,
        stack=stack,
        constants=constants,
        micro_batches=lay.micro_batches,
        tokens=lay.micro_batch * np.asarray(work.sequence_length) / lay.cp,
        flop_per_s=np.asarray(machine.peak_flop_per_s, dtype=np.float64) * share,
        linear_flop_per_s=low * machine.linear_flop_per_s * share,
        bytes_per_s=bandwidth * constants.memory / stack.overhead,
        wave_elements=np.asarray(constants.wave) * eq.TILE_ELEMENTS * multiprocessors,
        norm_split=np.where(np.asarray(stack.sequence_parallel) > 0, lay.tp, 1.0),
        expert_tensor=expert_tensor_degree(lay.tp, lay.ep),
    )


def layer_pass(ctx: Context, layer: LayerWork) -> LayerPass:
    """Compute of one layer of a kind."""
    products_f, products_b = _linear(ctx, layer)
    attention_f, attention_b = _attention(ctx, layer)
    experts_f, experts_b = _experts(ctx, layer)
    traffic, casts = _traffic(ctx, layer), _casts(ctx, layer)
    return LayerPass(
        products_f=products_f,
        products_b=products_b,
        attention_f=attention_f,
        attention_b=attention_b,
        traffic_f=traffic + casts,
        traffic_b=traffic * eq.TRAFFIC_BACKWARD + casts,
        experts_f=experts_f,
        experts_b=experts_b,
    )


def product_s(ctx: Context, rate: Values, m: Any, n: Any, k: Any) -> Values:
    """The slower of computing a product and moving its values.

    Parameters
    ----------
    ctx
        Bandwidth of memory, and what unfilled waves lose.
    rate
        That large products sustain.  [FLOP/s]
    m, n, k
        An m x k matrix times a k x n one.  [count]
    """
    compute = eq.matrix_product_s(m, n, k, rate, ctx.wave_elements)
    return np.asarray(np.maximum(compute, eq.matrix_traffic_bytes(m, n, k) / ctx.bytes_per_s))


def head_s(ctx: Context) -> Values:
    """Logits, loss and their gradients."""
    m, v, h = ctx.tokens, ctx.work.vocab / ctx.layout.tp, ctx.work.hidden
    rate = ctx.flop_per_s
    products = product_s(ctx, rate, m, v, h) + product_s(ctx, rate, m, h, v)
    weight_gradient = product_s(ctx, rate, h, v, m) * ctx.stack.weight_gradients
    return np.asarray(products + weight_gradient + ctx.stack.logit_bytes * m * v / ctx.bytes_per_s)


def _matrices(ctx: Context, layer: LayerWork) -> list[tuple[Any, Any]]:
    """(columns, depth) of the forward products of a layer on one rank; those of size 0 left out."""
    h, t, up = ctx.work.hidden, ctx.layout.tp, layer.up_projections
    query_depth = np.where(np.asarray(layer.query_rank) > 0, layer.query_rank, h)
    every = [
        (layer.qkv_width / t, h),
        (layer.query_rank, h),
        (layer.query_up / t, query_depth),
        (layer.kv_rank, h),
        (layer.kv_up / t, layer.kv_rank),
        (h, layer.output_width / t),
        (up * layer.mlp_width / t, h),
        (h, layer.mlp_width / t),
        (up * layer.shared_width / t, h),
        (h, layer.shared_width / t),
    ]
    return [(n, k) for n, k in every if np.any(np.asarray(n) > 0) and np.any(np.asarray(k) > 0)]


def _linear(ctx: Context, layer: LayerWork) -> tuple[Values, Values]:
    """Linear products: forward; input and weight gradients backward."""
    forward = backward = NONE
    m, rate, gradients = ctx.tokens, ctx.linear_flop_per_s, ctx.stack.weight_gradients
    for n, k in _matrices(ctx, layer):
        there = np.where((np.asarray(n) > 0) & (np.asarray(k) > 0), 1.0, 0.0)
        forward = forward + there * product_s(ctx, rate, m, n, k)
        weights = product_s(ctx, rate, k, n, m) * gradients
        backward = backward + there * (product_s(ctx, rate, m, k, n) + weights)
    if np.any(np.asarray(ctx.stack.adapters) > 0):
        beside_f, beside_b = _adapter_products(ctx, layer)
        forward, backward = forward + beside_f, backward + beside_b
    return forward, backward


def _adapter_products(ctx: Context, layer: LayerWork) -> tuple[Values, Values]:
    """Down to the rank and up again beside each linear product, with the gradients of both; in 16 bits.

    What they move is in `_adapters`, so that only their arithmetic counts here. A product of few columns is split along
    its depth to fill the device: no waves.
    """
    forward = backward = NONE
    m, r, rate = ctx.tokens, np.asarray(ctx.stack.adapter_rank, dtype=np.float64), ctx.flop_per_s
    for n, k in _matrices(ctx, layer):
        there = np.where((np.asarray(n) > 0) & (np.asarray(k) > 0) & (r > 0), ctx.stack.adapters, 0.0)
        down, up = eq.matrix_product_s(m, r, k, rate), eq.matrix_product_s(m, n, r, rate)
        gradients = eq.matrix_product_s(m, r, n, rate) + eq.matrix_product_s(m, k, r, rate)
        gradients = gradients + eq.matrix_product_s(r, n, m, rate) + eq.matrix_product_s(k, r, m, rate)
        forward, backward = forward + there * (down + up), backward + there * gradients
    return forward, backward


def _attention(ctx: Context, layer: LayerWork) -> tuple[Values, Values]:
    """The attention core; a fused kernel, or products with stored scores."""
    lay, stack = ctx.layout, ctx.stack
    s = np.asarray(ctx.work.sequence_length, dtype=np.float64)
    heads, queries = layer.query_heads / lay.tp, s / lay.cp
    window = np.asarray(layer.window_tokens, dtype=np.float64)
    attended = np.where(window > 0, np.minimum(window, s / 2.0), s / 2.0)
    size = np.maximum(layer.head_size, 1.0)
    share = eq.flash_rate_share(attended / lay.cp, size)  # a ring works block by block
    peak = np.asarray(ctx.machine.peak_flop_per_s) * stack.attention_rate / stack.overhead
    rate = peak * ctx.constants.attention * share
    flash = eq.attention_core_s(lay.micro_batch, queries, attended, heads, size, layer.value_head_size, rate)
    if not np.any(np.asarray(stack.eager) > 0):
        return np.asarray(flash), np.asarray(eq.FLASH_BACKWARD * flash)
    forward, backward = _eager(ctx, layer, heads, queries, s)
    eager = (np.asarray(stack.eager) > 0) & (np.asarray(layer.linear) == 0)
    return np.where(eager, forward, flash), np.where(eager, backward, eq.FLASH_BACKWARD * flash)


def _eager(ctx: Context, layer: LayerWork, heads: Any, queries: Any, s: Values) -> tuple[Values, Values]:
    """Masked scores are computed too, written, and read again."""
    size = np.maximum(layer.head_size, 1.0)
    rate = ctx.flop_per_s * eq.misaligned_rate_share(size) * size / (size + eq.DEPTH_HALF)
    products = eq.attention_core_s(ctx.layout.micro_batch, queries, s, heads, size, layer.value_head_size, rate)
    moved = eq.eager_softmax_bytes(ctx.layout.micro_batch, queries, s, heads) / ctx.bytes_per_s
    backward = eq.EAGER_BACKWARD * products + _BACKWARD_SCORES * moved
    return np.asarray(products + moved), np.asarray(backward)


def _traffic(ctx: Context, layer: LayerWork) -> Values:
    """Norms, residuals, rotations, activation functions; permuting routed tokens."""
    t, h = ctx.layout.tp, ctx.work.hidden
    width = (layer.mlp_width + layer.shared_width) / t
    qkv = (layer.qkv_width + layer.query_up + layer.kv_up) / t
    moved = eq.layer_traffic_bytes(ctx.tokens, h / ctx.norm_split, width, qkv, layer.up_projections)
    if np.any(np.asarray(layer.experts) > 0):
        row = 8.0 * h + 4.0 * layer.up_projections * layer.expert_width
        moved = moved + ctx.tokens * _routed(ctx, layer) * row / np.maximum(ctx.expert_tensor, ctx.norm_split)
    moved = ctx.stack.traffic * moved
    if np.any(np.asarray(ctx.stack.adapters) > 0):
        moved = moved + _adapters(ctx, layer)
    return np.asarray(moved / ctx.bytes_per_s)


def _adapters(ctx: Context, layer: LayerWork) -> Values:
    """Low-rank adapters: inputs are read again, outputs written and added to those of the frozen product.

    Without fused kernels an input is read twice (dropout, product) and an output moved four times.
    """
    inputs = outputs = NONE
    for n, k in _matrices(ctx, layer):
        there = np.where((np.asarray(n) > 0) & (np.asarray(k) > 0), 1.0, 0.0)
        inputs, outputs = inputs + there * k, outputs + there * n
    fused = np.asarray(ctx.stack.adapter_fused)
    return np.asarray(ctx.stack.adapters * 2.0 * ctx.tokens * ((2.0 - fused) * inputs + (4.0 - 2.0 * fused) * outputs))


def _routed(ctx: Context, layer: LayerWork) -> Any:
    """Experts per token, on the fullest rank."""
    return layer.experts_per_token * ctx.stack.imbalance


def _casts(ctx: Context, layer: LayerWork) -> Values:
    low = np.asarray(ctx.stack.low_precision)
    if not np.any(low > 0):
        return NONE
    wide = 2.0 * ctx.work.hidden + (layer.output_width + layer.mlp_width + layer.shared_width) / ctx.layout.tp
    apart = np.where(ctx.expert_tensor > 1, 1.0, ctx.norm_split)  # of experts that are not cut each rank has its tokens
    wide = wide + layer.experts_per_token * (ctx.work.hidden + layer.expert_width / ctx.expert_tensor) / apart
    return np.asarray(low * ctx.stack.cast * eq.quantisation_bytes(ctx.tokens, wide) / ctx.bytes_per_s)


def _experts(ctx: Context, layer: LayerWork) -> tuple[Values, Values]:
    """Grouped products of the experts that a rank holds."""
    experts = np.asarray(layer.experts, dtype=np.float64)
    if not np.any(experts > 0):
        return NONE, NONE
    here = np.maximum(experts / ctx.layout.ep, 1e-9)
    tokens = ctx.tokens / np.where(ctx.expert_tensor > 1, 1.0, ctx.norm_split)
    rows = tokens * _routed(ctx, layer) / here
    h, f = ctx.work.hidden, layer.expert_width / ctx.expert_tensor
    forward = backward = NONE
    for n, k in ((layer.up_projections * f, h), (h, f)):
        forward = forward + here * _grouped(ctx, here, rows, n, k)
        weights = _grouped(ctx, here, k, n, rows) * ctx.stack.weight_gradients
        backward = backward + here * (_grouped(ctx, here, rows, k, n) + weights)
    there = experts > 0
    return np.where(there, forward, 0.0), np.where(there, backward, 0.0)


def _grouped(ctx: Context, here: Values, m: Any, n: Any, k: Any) -> Values:
    """One expert's product; all experts of a rank fill the device together."""
    rate = ctx.linear_flop_per_s * ctx.constants.experts
    compute = eq.matrix_product_s(m, n, k, rate, ctx.wave_elements / here)
    return np.asarray(np.maximum(compute, eq.matrix_traffic_bytes(m, n, k) / ctx.bytes_per_s))
