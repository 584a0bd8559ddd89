"""One optimizer step by the analytic tier: every layer kind and every split, term by term.

All arguments hold numbers or arrays of one shape: one job on many layouts, or many jobs with a
layout each. Terms are seconds of a step and add up to it.
"""

from __future__ import annotations

import numpy as np

from planner.equations import step_time as eq
from planner.equations.memory import layers_of_fullest_stage
from planner.estimate import step_exchange as exchange
from planner.estimate.constants import StepConstants
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, Layout
from planner.estimate.machine import Machine
from planner.estimate.stack import Stack
from planner.estimate.step_distinct import Ways, distinct, one_of_each, spread
from planner.estimate.step_layer import NONE, Context, LayerPass, Values, context_of, head_s, layer_pass
from planner.estimate.terms import Terms
from planner.estimate.work import LayerWork, Work

LAYER_TERMS = (
    *("products", "attention", "elementwise", "experts", "recompute"),
    *("tensor_parallel", "expert_parallel", "context_parallel", "offload", "host"),
)
STEP_TERMS = (
    *LAYER_TERMS,
    *("head", "uneven_stages", "pipeline_bubble", "pipeline_transfer", "accumulation", "data_parallel", "optimizer"),
)


def step_time(
    work: Work, layout: Layout, machine: Machine, stack: Stack, constants: StepConstants, ways: Ways | None = None
) -> Terms:
    """Seconds of one optimizer step.

    Parameters
    ----------
    work
        Sizes of the model and the sequence length.
    layout
        How the job is split.
    machine
        Vendor rates of devices and links; `constants` says what share of them is sustained.
    stack
        What the software does.
    constants
        Fitted shares of the device family.
    ways
        Which layouts are the same in a part of the step; None: told from the layouts where machines are all the same.

    Returns
    -------
    Terms named in STEP_TERMS.  [s]
    """
    ctx = context_of(work, layout, machine, stack, constants)
    few, which = distinct(ctx) if ways is None else one_of_each(ctx, ways.layer)
    ranks, who = (ctx, None) if ways is None else one_of_each(ctx, ways.exchange)
    shared, shared_forward = _all_layers(few)
    layers = {name: spread(value, which) for name, value in shared.items()}
    layers_s = spread(sum(shared.values(), NONE), which)
    forward, head = spread(shared_forward, which), spread(head_s(few), which)
    p, m = ctx.layout.pp, ctx.micro_batches
    stage, mean = _stages(ctx, layers_s, head)
    terms = {name: m * value / p for name, value in layers.items()}
    terms["head"] = m * head / p
    terms["uneven_stages"] = m * (stage - mean)
    terms["pipeline_bubble"] = np.where(p > 1, (p - 1.0) / ctx.layout.vpp * mean * ctx.stack.bubble, 0.0)
    terms["pipeline_transfer"] = exchange.transfers_s(ctx, mean)
    terms["accumulation"] = np.asarray(eq.accumulation_s(spread(_held(ranks), who), m, ctx.bytes_per_s))
    backward = np.maximum(layers_s - forward, 0.0)
    volumes = tuple(spread(one, who) for one in exchange.volumes_s(ranks))
    terms["data_parallel"] = exchange.data_parallel_s(ctx, volumes, forward / p, backward / p)
    terms["optimizer"] = spread(exchange.optimizer_s(ranks), who)
    return Terms(terms)


def step_seconds(
    work: Work, layout: Layout, machine: Machine, stack: Stack, constants: StepConstants, ways: Ways
) -> Values:
    """The sum of the terms of `step_time` but for rounding, in a third of the time.

    Parameters
    ----------
    work
        Sizes of the model and the sequence length.
    layout
        How the job is split.
    machine
        Vendor rates of devices and links; `constants` says what share of them is sustained.
    stack
        What the software does.
    constants
        Fitted shares of the device family.
    ways
        Which layouts are the same in a part of the step.
    """
    ctx = context_of(work, layout, machine, stack, constants)
    (few, which), (ranks, who) = one_of_each(ctx, ways.layer), one_of_each(ctx, ways.exchange)
    shared, shared_forward = _all_layers(few)
    shared_s, shared_head = sum(shared.values(), NONE), head_s(few)
    layers_s, forward, head = (spread(one, which) for one in (shared_s, shared_forward, shared_head))
    p, m = ctx.layout.pp, ctx.micro_batches
    stage, mean = _stages(ctx, layers_s, head)
    bubble = np.where(p > 1, (p - 1.0) / ctx.layout.vpp * mean * ctx.stack.bubble, 0.0)
    accumulation = eq.accumulation_s(spread(_held(ranks), who), m, ctx.bytes_per_s)
    backward = np.maximum(layers_s - forward, 0.0)
    volumes = tuple(spread(one, who) for one in exchange.volumes_s(ranks))
    exchanged = exchange.data_parallel_s(ctx, volumes, forward / p, backward / p)
    whole = m * stage + bubble + exchange.transfers_s(ctx, mean) + accumulation + exchanged
    return np.asarray(whole + spread(exchange.optimizer_s(ranks), who))


def _all_layers(ctx: Context) -> tuple[dict[str, Values], Values]:
    """Terms of one micro-batch in all layers, and its forward compute."""
    sums = dict.fromkeys(LAYER_TERMS, NONE)
    forward = NONE
    for layer in ctx.work.layers:
        one = layer_pass(ctx, layer)
        forward = forward + layer.count * one.forward
        for name, value in _layer_terms(ctx, layer, one).items():
            sums[name] = sums[name] + layer.count * value
    return sums, forward


def _layer_terms(ctx: Context, layer: LayerWork, one: LayerPass) -> dict[str, Values]:
    """Terms of one layer, one micro-batch."""
    again = _repeated(ctx, one)
    busy = one.forward + one.backward + again
    return {
        "products": one.products_f + one.products_b,
        "attention": one.attention_f + one.attention_b,
        "elementwise": one.traffic_f + one.traffic_b,
        "experts": one.experts_f + one.experts_b,
        "recompute": again,
        "tensor_parallel": exchange.tensor_parallel_s(ctx, busy),
        "expert_parallel": exchange.expert_exchange_s(ctx, layer, busy),
        "context_parallel": exchange.context_parallel_s(ctx, layer, one),
        "offload": _offload(ctx, layer, busy),
        "host": eq.launch_bound_s(busy, _host_s(ctx, layer)) - busy,
    }


def _repeated(ctx: Context, one: LayerPass) -> Values:
    """Forward compute that recomputation repeats; selective repeats the scores that eager attention stores."""
    level, stack = ctx.layout.recompute, ctx.stack
    some = stack.recompute_share * one.forward + stack.eager * one.attention_f
    return np.where(level == RECOMPUTE_FULL, one.forward, np.where(level == RECOMPUTE_SELECTIVE, some, 0.0))


def _host_s(ctx: Context, layer: LayerWork) -> Values:
    """Launching the kernels of a layer: one pass forward, two backward, one more when all is repeated."""
    passes = 3.0 + np.where(ctx.layout.recompute == RECOMPUTE_FULL, 1.0, 0.0)
    routing = np.where(np.asarray(layer.experts) > 0, ctx.stack.expert_host, 0.0)
    one = ctx.constants.host_s * ctx.stack.host_share + ctx.constants.expert_host_s * routing
    return np.asarray(passes * one)


def _offload(ctx: Context, layer: LayerWork, busy: Values) -> Values:
    """Layer inputs to the host and back, and unpacking of frozen weights."""
    stack = ctx.stack
    asked = (stack.activation_offload, stack.weight_offload, stack.dequantise_bytes)
    if not any(np.any(np.asarray(share) > 0) for share in asked):
        return NONE
    moved = 2.0 * ctx.tokens * ctx.work.hidden * stack.value_bytes / ctx.norm_split * stack.activation_offload
    ranks = np.where(ctx.layout.sharding == 3, ctx.layout.dp, 1.0)  # each brings its shard
    held = (layer.parameters + layer.expert_parameters / ctx.layout.ep) / ctx.layout.tp / ranks
    moved = moved + 2.0 * held * stack.gather_bytes * stack.weight_offload
    host = np.where(moved > 0, ctx.machine.host_bytes_per_s, 1.0)  # what is not moved asks for no link to the host
    link = eq.exposed_s(moved / host, busy, ctx.constants.contention)
    weights = (layer.parameters + layer.expert_parameters / ctx.layout.ep) / ctx.layout.tp
    return np.asarray(link + 2.0 * weights * stack.dequantise_bytes / ctx.bytes_per_s)


def _stages(ctx: Context, layers_s: Values, head: Values) -> tuple[Values, Values]:
    """Seconds of a micro-batch on the slowest stage and on the mean one."""
    p, count = ctx.layout.pp, np.maximum(ctx.work.layer_count, 1.0)
    one = layers_s / count
    mean = (layers_s + head) / p
    first, last = layers_of_fullest_stage(count, p) * one, np.floor(count / p) * one + head
    return np.where(p > 1, np.maximum(np.maximum(first, last), mean), mean), mean


def _held(ctx: Context) -> Values:
    """Gradients that are summed up; from ZeRO-2 on they are scattered first without a pipeline, and a shard is kept."""
    held, scattered = NONE, (ctx.layout.sharding >= 2) & (ctx.layout.pp == 1)
    for group, _, parameters in exchange.shards(ctx):
        held = held + parameters / np.where(scattered, group.ranks, 1.0)
    return np.asarray(held * ctx.stack.trained * ctx.stack.accumulation)
