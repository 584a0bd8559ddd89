"""Serving: memory of a replica and the load it carries, over arrays of layouts and machines.

Tiers: `given_throughput_capacity` is the founding rule with a throughput that the user names (T0);
`serving_capacity` is the roofline at the batch that memory allows (T1), or a calibrated estimate
when it is handed fitted efficiencies. T0 with the throughput that T1 found is T1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture, LayerGroup
from planner.carriers import dataclass
from planner.equations.kv_cache import mean_resident_tokens
from planner.equations.memory import layers_of_fullest_stage
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_load import loaded_time_per_output_token_s, steady_state_requests_per_s
from planner.equations.serving_memory import (
    LOCAL_OVERHEAD_BYTES,
    activation_workspace_bytes,
    engine_overhead_bytes,
    exchange_buffer_bytes,
    free_fraction_kv_pool_bytes,
    kv_pool_bytes,
    largest_running_batch,
    local_buffer_bytes,
)
from planner.estimate.engines import Fraction
from planner.estimate.machine import Machine
from planner.estimate.serving_formats import ServingPeaks, StoredBytes, serving_peaks, stored_bytes
from planner.estimate.serving_step import (
    IDEAL,
    TEXTBOOK,
    Replica,
    ReplicaLayout,
    ServingConstants,
    ServingWork,
    sequence_cache_bytes,
)
from planner.estimate.serving_work import sequence_state_bytes
from planner.estimate.terms import Terms

__all__ = [
    "IDEAL",
    "TEXTBOOK",
    "Draft",
    "Replica",
    "ReplicaLayout",
    "ServingCapacity",
    "ServingConstants",
    "ServingMemory",
    "ServingPeaks",
    "ServingSpec",
    "can_make",
    "given_throughput_capacity",
    "kv_cache_bytes_of_token",
    "serving_capacity",
    "serving_memory",
    "serving_peaks",
    "weight_bytes_of_model",
]

PAGE_TOKENS = 16  # of vLLM's cache, its default; others use up to 128
DRAFT_VOCABULARY = 32_000  # words that heads of EAGLE-3 propose (draft_vocab_size of published ones; recalled)
GATHERED_RANKS = 8  # on which gathering all tokens takes no more than sending each to its eight experts
# that a rank may send at once by DeepEP's kernels for answers, whose buffers hold so many for every expert
# (sglang 0.5.23: srt/layers/moe/token_dispatcher/deepep.py, read on 2026-12-01)
FEW_TOKENS = 1024
MOST_A_STEP = 8.0  # tokens of a sequence, where a measurement may have had drafts of any kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What drafts tokens beside a model: a model of its own, or a further layer of it.

    Heads of EAGLE-3 are such a layer, a projection of three hidden states to one and a small head of their own; a layer
    of multi-token prediction has all experts of the model's others, a projection of two states and the model's head.
    Embeddings are the model's (Y. Li et al., "EAGLE-3," arXiv 2503.01840, sec. 3; DeepSeek-AI, arXiv 2412.19437,
    sec. 2.2).
    """

    weights: str
    arch: Architecture | None = None  # None: a further layer
    experts: bool = False  # of the further layer: all those of a layer; else as much as one token visits


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpec:
    """What is asked of one replica: formats, request shape, limits of the engine."""

    weights: str
    kv_cache: str
    input_tokens: FloatOrArray
    output_tokens: FloatOrArray
    max_num_seqs: FloatOrArray | None = None
    memory_fraction: FloatOrArray = 0.9
    fraction: Fraction = "of_device"  # what the fraction is of, as the engine means it
    page_tokens: int = PAGE_TOKENS
    resident_tokens: FloatOrArray | None = None  # mean length in the cache; None = of requests of equal length
    longest_tokens: FloatOrArray | None = None  # that must fit; None = of requests of equal length
    draft: Draft | None = None  # what takes memory beside the model
    workspace_share: FloatOrArray = 1.0  # of a full step's workspace: less where steps are made smaller
    sent_tokens: int = 0  # of a sequence in a step, where they are sent to whole experts; 0 = buffers are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory of the fullest device of a replica, and the sequences that fit."""

    terms: Terms  # bytes per device: weights, workspace, overhead, kv_cache of the planned batch
    usable_bytes: FloatOrArray  # what the engine fills, of one device
    kv_pool_bytes: FloatOrArray  # left for the cache; negative = missing before any sequence
    kv_bytes_per_sequence: FloatOrArray  # at the mean resident length, on one device
    max_sequences: FloatOrArray  # of the replica, by memory, whole
    batch: FloatOrArray  # planned: the smaller of memory and max_num_seqs; 0 = does not fit
    missing_bytes: FloatOrArray  # per device, until one longest request fits; 0 = fits

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """True where at least one longest request fits."""
        return as_float(self.missing_bytes) <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCapacity:
    """Sustained load of one replica and what limits it."""

    tier: str
    batch: FloatOrArray
    decode_step: Terms  # seconds of one step at the batch
    prefill: Terms  # seconds of one prompt's walk through all stages
    prefill_s: FloatOrArray  # engine time a prompt takes: the walk over the pipeline's depth
    tpot_s: FloatOrArray  # mean time per output token at full load
    requests_per_s: FloatOrArray  # per replica; nan where a link that it needs is unknown
    output_tokens_per_s: FloatOrArray
    binding: NDArray[np.str_]  # the component that takes most of a request's engine time
    batch_limit: NDArray[np.str_]  # memory | max_num_seqs
    error: tuple[tuple[str, float], ...]  # metric -> median relative error of this tier


def kv_cache_bytes_of_token(arch: Architecture, kv_cache: str, tokens: FloatOrArray = 1) -> FloatOrArray:
    """Cache of a sequence of `tokens`, whole model, one copy, no pages, without constant states.  [B]

    Parameters
    ----------
    arch
        The model; nan where only its size is known.
    kv_cache
        Format, a key of `serving_formats.CACHE_BYTES`.
    tokens
        Length of the sequence.  [tokens]
    """
    return as_float(sequence_cache_bytes(arch, kv_cache, tokens)) - as_float(sequence_state_bytes(arch))


def weight_bytes_of_model(arch: Architecture, weights: str) -> float:
    """Weights of the whole model in a format, scales included.  [B]"""
    stored = stored_bytes(arch, weights)
    common, experts = _layer_weight_bytes(arch, stored)
    return common + experts + stored.plain * float(_vocabulary(arch, 1))


def serving_memory(arch: Architecture, spec: ServingSpec, layout: ReplicaLayout, machine: Machine) -> ServingMemory:
    """Memory of the fullest device: weights, workspace, overhead, and cache of the planned batch.

    Parameters
    ----------
    arch
        The model.
    spec
        Formats, lengths of requests, and limits of the engine.
    layout
        How replicas lie on their devices.
    machine
        Only the memory of a device counts.
    """
    weights = _device_weight_bytes(arch, spec.weights, layout)
    weights = as_float(weights) + as_float(draft_weight_bytes(arch, spec.draft, layout))
    workspace = as_float(activation_workspace_bytes(arch.is_moe, machine.memory_bytes)) * spec.workspace_share
    overhead = as_float(engine_overhead_bytes(layout.tp))
    if spec.fraction == "local":
        weights = as_float(weights) - host_table_bytes(arch, spec.weights) / as_float(layout.tp)
        workspace, overhead = as_float(local_buffer_bytes(arch.vocab_size)), as_float(LOCAL_OVERHEAD_BYTES)
    mean_tokens, longest_tokens = spec.resident_tokens, spec.longest_tokens
    if mean_tokens is None:
        mean_tokens = mean_resident_tokens(spec.input_tokens, spec.output_tokens)
    if longest_tokens is None:
        longest_tokens = as_float(spec.input_tokens) + as_float(spec.output_tokens)
    mean_bytes = _device_cache_bytes(arch, spec, layout, mean_tokens)
    longest_bytes = _device_cache_bytes(arch, spec, layout, longest_tokens)
    free = partial(_cache_pool, spec, machine, weights, workspace)
    if spec.sent_tokens:
        overhead = overhead + _exchange_bytes(arch, spec, layout, lambda held: free(overhead + held), mean_bytes)
    pool = free(overhead)
    # Without layers the cache is unknown, not zero: only what is known to be missing counts.
    missing = np.maximum(np.where(np.isnan(longest_bytes), 0.0, longest_bytes) - pool, 0.0)
    fits = np.where(missing > 0, 0.0, 1.0)
    by_memory = fits * np.maximum(as_float(largest_running_batch(pool, mean_bytes)), 1.0) * as_float(layout.dp)
    batch = by_memory if spec.max_num_seqs is None else np.minimum(by_memory, spec.max_num_seqs)
    terms = Terms(
        {
            "weights": weights,
            "workspace": workspace,
            "overhead": overhead,
            "kv_cache": np.ceil(batch / as_float(layout.dp)) * mean_bytes,
        }
    )
    return ServingMemory(
        terms=terms,
        usable_bytes=(
            as_float(spec.memory_fraction) * as_float(machine.memory_bytes)
            if spec.fraction == "of_device"
            else pool + weights + workspace + overhead
        ),
        kv_pool_bytes=pool,
        kv_bytes_per_sequence=mean_bytes,
        max_sequences=by_memory,
        batch=batch,
        missing_bytes=missing,
    )


def sends_tokens(arch: Architecture, dp: FloatOrArray, ep: FloatOrArray) -> NDArray[np.bool_]:
    """Whether attention ranks send each token to its experts; else all are gathered on all ranks.

    Parameters
    ----------
    arch
        The model.
    dp, ep
        Attention ranks, and ranks that whole experts are spread over.  [count]
    """
    each = max((group.experts_per_token for group in arch.layers), default=0)
    return np.asarray((as_float(dp) > 1) & (as_float(ep) > max(GATHERED_RANKS, each)))


def _exchange_bytes(
    arch: Architecture,
    spec: ServingSpec,
    layout: ReplicaLayout,
    pool_beside: Callable[[FloatOrArray], NDArray[np.float64]],
    sequence_bytes: FloatOrArray,
) -> NDArray[np.float64]:
    """Buffers of the most tokens that both they and the cache of their sequences have room for, up to FEW_TOKENS.  [B]

    Steps of more tokens go by kernels whose buffers are taken to be those of FEW_TOKENS.
    """
    sends = sends_tokens(arch, layout.dp, layout.ep)
    experts = max((group.experts for group in arch.layers), default=0)
    if not (sends.any() and experts):
        return np.zeros(())

    def held(tokens: FloatOrArray) -> NDArray[np.float64]:
        return np.where(sends, exchange_buffer_bytes(tokens, arch.hidden_size, experts), 0.0)

    def room(tokens: FloatOrArray) -> NDArray[np.float64]:
        fitting = np.maximum(as_float(largest_running_batch(pool_beside(held(tokens)), sequence_bytes)), 1.0)
        if spec.max_num_seqs is not None:
            fitting = np.minimum(fitting, np.ceil(as_float(spec.max_num_seqs) / as_float(layout.dp)))
        return fitting * spec.sent_tokens

    low = np.full(np.shape(room(0.0)), float(spec.sent_tokens))
    high = np.maximum(np.minimum(room(0.0), FEW_TOKENS), low)
    for _ in range(11):  # halves 1,024 down to one
        middle = np.ceil((low + high) / 2)
        kept = room(middle) >= middle
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return held(low)


def host_table_bytes(arch: Architecture, weights: str) -> float:
    """The input embedding, which llama.cpp keeps in the host's memory unless the head needs it too.  [B]"""
    return 0.0 if arch.tied_embeddings else stored_bytes(arch, weights).plain * float(arch.input_embedding_parameters)


def _cache_pool(
    spec: ServingSpec,
    machine: Machine,
    weights: FloatOrArray,
    workspace: FloatOrArray,
    overhead: FloatOrArray,
) -> NDArray[np.float64]:
    """Room for the cache, by what the engine's fraction is of; negative = so much is missing.  [B]"""
    share, held = spec.memory_fraction, machine.memory_bytes
    if spec.fraction == "of_free":
        return as_float(free_fraction_kv_pool_bytes(share, held, weights, workspace, overhead))
    if spec.fraction == "static":  # weights and cache within the share, the rest beside it
        inside = as_float(kv_pool_bytes(share, held, weights, 0.0, 0.0))
        return np.minimum(inside, as_float(kv_pool_bytes(1.0, held, weights, workspace, overhead)))
    return as_float(kv_pool_bytes(share, held, weights, workspace, overhead))


def serving_capacity(
    arch: Architecture,
    spec: ServingSpec,
    layout: ReplicaLayout,
    machine: Machine,
    constants: ServingConstants = TEXTBOOK,
    *,
    peaks: ServingPeaks | None = None,
    memory: ServingMemory | None = None,
) -> ServingCapacity:
    """Load of a replica that keeps the batch full that memory allows.

    Parameters
    ----------
    arch
        The model.
    spec
        Formats, lengths of requests, and limits of the engine.
    layout
        How replicas lie on their devices.
    machine
        Rates of a device and of the links around it.
    constants
        Shares of the peaks that a step sustains, and its overheads.
    peaks
        Rates of linear, expert and attention products (`serving_peaks`); None: all three run at the peak of the
        machine.
    memory
        Of `serving_memory`, where it is known already; None: it is worked out.
    """
    memory = memory or serving_memory(arch, spec, layout, machine)
    if peaks is None:
        rate = machine.peak_flop_per_s
        peaks = ServingPeaks(linear=rate, expert=rate, attention=rate)
    replica = Replica(
        work=ServingWork.of(arch, spec.weights, spec.kv_cache),
        layout=layout,
        machine=machine,
        peaks=peaks,
        constants=constants,
    )
    batch = as_float(memory.batch)
    filled = np.maximum(batch, 1.0)
    decode = replica.decode_step(filled, mean_resident_tokens(spec.input_tokens, spec.output_tokens))
    prefill = replica.prefill(spec.input_tokens)
    prefill_s = as_float(prefill.total) / as_float(layout.pp)
    rate_full = steady_state_requests_per_s(prefill_s, decode.total, spec.output_tokens, filled)
    requests = np.where(batch == 0, 0.0, rate_full)
    return ServingCapacity(
        tier=constants.name,
        batch=batch,
        decode_step=decode,
        prefill=prefill,
        prefill_s=prefill_s,
        tpot_s=loaded_time_per_output_token_s(decode.total, prefill_s, rate_full),
        requests_per_s=requests,
        output_tokens_per_s=requests * as_float(spec.output_tokens),
        binding=_binding(decode, prefill_s, as_float(spec.output_tokens) / filled),
        batch_limit=np.where(batch < as_float(memory.max_sequences), "max_num_seqs", "memory"),
        error=constants.error,
    )


def given_throughput_capacity(
    throughput_tokens_per_s_per_device: FloatOrArray, layout: ReplicaLayout, output_tokens: FloatOrArray
) -> FloatOrArray:
    """Founding rule (T0): requests per second of one replica at a throughput that the user names.

    Parameters
    ----------
    throughput_tokens_per_s_per_device
        Sustained output tokens of a device, summed over all users.  [tokens/s]
    layout
        How replicas lie on their devices; only how many there are counts.
    output_tokens
        Mean answer.  [tokens]
    """
    tokens_per_s = as_float(throughput_tokens_per_s_per_device) * as_float(layout.devices)
    return tokens_per_s / as_float(output_tokens)


def can_make(
    throughput_tokens_per_s_per_device: FloatOrArray,
    arch: Architecture,
    weights: str,
    layout: ReplicaLayout,
    machine: Machine,
    batch: FloatOrArray,
) -> NDArray[np.bool_]:
    """Whether the sequences that fit on a replica can make a throughput, were only the weights to be read.

    Each step reads what one token needs of the weights once, stage after stage, and gives every sequence a token, or
    as many as are drafted: a replica with room for one sequence makes no thousand tokens a second, whatever was
    measured on another.

    Parameters
    ----------
    throughput_tokens_per_s_per_device
        Of a device, summed over all users.  [tokens/s]
    arch
        The model; of experts those of one token count.
    weights
        Their format.
    layout, machine
        How replicas lie, and on what.
    batch
        Sequences that fit on one.  [count]
    """
    used = arch.matmul_parameters / arch.parameters
    read_bytes = as_float(_device_weight_bytes(arch, weights, layout)) * used * as_float(layout.pp)
    step_s = read_bytes / machine.memory_bandwidth_bytes_per_s
    asked = as_float(throughput_tokens_per_s_per_device) * as_float(layout.devices)
    slow: NDArray[np.bool_] = np.asarray(asked * step_s > as_float(batch) * MOST_A_STEP)
    return ~slow  # what is unknown is believed


def _binding(decode: Terms, prefill_s: FloatOrArray, steps_per_request: FloatOrArray) -> NDArray[np.str_]:
    """Name of the largest share of a request's engine time."""
    shares = {name: as_float(value) * as_float(steps_per_request) for name, value in decode.items()}
    shares["prefill"] = as_float(prefill_s)
    names = np.array(list(shares))
    stacked = np.stack(np.broadcast_arrays(*shares.values()))
    chosen: NDArray[np.str_] = names[np.argmax(stacked, axis=0)]
    return chosen


def _device_weight_bytes(arch: Architecture, weights: str, layout: ReplicaLayout) -> FloatOrArray:
    """Weights of the fullest device: its share of the layers of the fullest stage, and a vocabulary table."""
    stored = stored_bytes(arch, weights)
    common, experts = _layer_weight_bytes(arch, stored)
    tp, layers = as_float(layout.tp), max(arch.layer_count, 1)
    stage_layers = as_float(layers_of_fullest_stage(layers, layout.pp))
    stage_experts = _expert_layer_share(arch, stage_layers)
    return (
        common * stage_layers / layers / tp
        + experts * stage_experts / as_float(layout.stage_devices)
        + stored.plain * as_float(_vocabulary(arch, layout.pp)) / tp
    )


def _layer_weight_bytes(arch: Architecture, stored: StoredBytes) -> tuple[float, float]:
    """Bytes of all layers without routed experts, and of the routed experts."""
    groups = arch.layers
    if not groups:
        return arch.parameters * stored.linear, 0.0
    linear = sum(group.count * (group.attention_parameters + group.mlp_parameters) for group in groups)
    plain = sum(group.count * (group.router_parameters + group.norm_parameters) for group in groups)
    matrices = sum(group.count * _expert_matrix_parameters(group, arch.hidden_size) for group in groups)
    biases = sum(group.count * group.expert_parameters for group in groups) - matrices
    return linear * stored.linear + plain * stored.plain, matrices * stored.expert + biases * stored.plain


def draft_weight_bytes(arch: Architecture, draft: Draft | None, layout: ReplicaLayout) -> FloatOrArray:
    """Weights on one device of what drafts, which lies whole on one stage; 0 where nothing drafts.  [B]

    Parameters
    ----------
    arch
        The model that is served.
    draft
        What drafts for it.
    layout
        How replicas lie on their devices.
    """
    if draft is None or not arch.layers:
        return as_float(0.0)
    stage = ReplicaLayout(devices=layout.stage_devices, tp=layout.tp, ep=layout.ep, cp=layout.cp)
    if draft.arch is not None:
        return _device_weight_bytes(draft.arch, draft.weights, stage)
    layer = further_layer(arch)
    stored, wide = stored_bytes(arch, draft.weights), arch.hidden_size
    if not draft.experts:
        head = 3 * wide**2 + min(DRAFT_VOCABULARY, arch.vocab_size) * wide
        return (layer.active_parameters + head) * stored.plain / as_float(layout.tp)
    common, experts = _layer_weight_bytes(replace(arch, layers=(layer,)), stored)
    return (common + 2 * wide**2 * stored.plain) / as_float(layout.tp) + experts / as_float(stage.stage_devices)


def further_layer(arch: Architecture) -> LayerGroup:
    """One more of the model's last layers: one that attends, as heads that draft do."""
    attends = [group for group in arch.layers if group.attention != "linear"]
    return replace((attends or list(arch.layers))[-1], count=1)


def _expert_matrix_parameters(group: LayerGroup, hidden_size: int) -> int:
    """Routed experts of one layer without their biases, which are not quantised."""
    return group.experts * (3 if group.gated else 2) * hidden_size * group.expert_width


def _expert_layer_share(arch: Architecture, stage_layers: FloatOrArray) -> FloatOrArray:
    """Share of all expert layers on the fullest stage.

    A few dense layers lead (DeepSeek, Kimi), so that later stages hold expert layers only; many
    dense layers alternate with the others (Llama 4), so that every stage has its part.
    """
    with_experts = sum(group.count for group in arch.layers if group.experts)
    if not with_experts:
        return as_float(stage_layers) * 0.0
    if with_experts >= 0.9 * arch.layer_count:
        return np.minimum(as_float(stage_layers) / with_experts, 1.0)
    return as_float(stage_layers) / arch.layer_count


def _vocabulary(arch: Architecture, pp: FloatOrArray) -> FloatOrArray:
    """Embedding and head parameters of the fullest stage: both on one stage, the larger on several."""
    if not arch.layers:  # coarse: counted with the layers
        return as_float(pp) * 0.0
    first = float(arch.input_embedding_parameters + arch.position_parameters)
    last = float(arch.output_head_parameters or arch.input_embedding_parameters)
    together = first + arch.output_head_parameters
    return np.where(as_float(pp) > 1, max(first, last), together)


def _device_cache_bytes(
    arch: Architecture, spec: ServingSpec, layout: ReplicaLayout, tokens: FloatOrArray
) -> FloatOrArray:
    """Cache of one sequence on one device of the fullest stage, that of a draft included.  [B]"""
    split = (layout.tp, spec.page_tokens, layout.cp)
    whole = sequence_cache_bytes(arch, spec.kv_cache, tokens, *split)
    layers = max(arch.layer_count, 1)
    own = as_float(whole) * as_float(layers_of_fullest_stage(layers, layout.pp)) / layers
    if spec.draft is None or not arch.layers:
        return own
    drafts = spec.draft.arch or replace(arch, layers=(further_layer(arch),))
    return own + as_float(sequence_cache_bytes(drafts, spec.kv_cache, tokens, *split))
