"""One forward step of a serving replica, by component: decode steps and prefill.

A replica of `devices` runs `pp` pipeline stages; a stage runs `tp` tensor-parallel ranks for each of
`dp = devices / (tp pp)` attention ranks, which share out the sequences and hold copies of the
non-expert weights. Experts are spread over all devices of a stage. With a pipeline each of `pp`
micro-batches walks all stages, so a step is one walk of a micro-batch on the devices of one stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations.communication import all_to_all_s, point_to_point_s, ring_all_reduce_s
from planner.equations.kv_cache import kv_share_of_rank, resident_tokens
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving import (
    accepted_tokens_per_step,
    causal_pair_count,
    distinct_experts,
    expert_imbalance,
    group_bandwidth_bytes_per_s,
    kernel_group_time_s,
    launch_time_s,
    narrow_format_share,
)
from planner.estimate.machine import Machine
from planner.estimate.serving_constants import IDEAL, TEXTBOOK, ServingConstants
from planner.estimate.serving_formats import ServingPeaks
from planner.estimate.serving_work import (
    ServingWork,
    cache_heads,
    layer_cache_bytes_per_token,
    sequence_state_bytes,
    taken,
)
from planner.estimate.terms import Terms

__all__ = [
    "IDEAL",
    "TEXTBOOK",
    "Replica",
    "ReplicaLayout",
    "ServingConstants",
    "ServingWork",
    "Speculation",
    "StepTimes",
    "sequence_cache_bytes",
]

ACTIVATION_BYTES = 2.0  # between ranks activations travel at 16 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLayout:
    """How one model copy lies on its devices; arrays or scalars that broadcast."""

    devices: FloatOrArray
    tp: FloatOrArray = 1
    pp: FloatOrArray = 1
    ep: FloatOrArray = 1  # expert-parallel ranks inside a stage; 1 = experts are cut like other weights
    cp: FloatOrArray = 1  # tensor ranks that share out the tokens of a cache instead of copying it

    @property
    def dp(self) -> FloatOrArray:
        """Attention data-parallel ranks: what tensor and pipeline leave."""
        return as_float(self.devices) / (as_float(self.tp) * as_float(self.pp))

    @property
    def stage_devices(self) -> FloatOrArray:
        """Devices of one pipeline stage."""
        return as_float(self.devices) / as_float(self.pp)


def sequence_cache_bytes(
    arch: Architecture,
    kv_cache: str,
    tokens: FloatOrArray,
    tp: FloatOrArray = 1,
    page_tokens: FloatOrArray = 1,
    cp: FloatOrArray = 1,
) -> FloatOrArray:
    """Cache and constant state of one sequence, the share of one tensor rank; nan without layers.  [B]

    Parameters
    ----------
    arch
        The model.
    kv_cache
        Format, a key of `serving_formats.CACHE_BYTES`.
    tokens
        Length of the sequence.  [tokens]
    tp
        Tensor ranks; 1 = the cache is whole.  [count]
    page_tokens
        Tokens of a page, of which a layer keeps whole ones; 1 = no rounding.  [tokens]
    cp
        Tensor ranks that share out the tokens of a cache instead of copying it.  [count]
    """
    if not arch.layers:
        return as_float(tokens) * np.nan
    cache = sum(
        (
            as_float(layer_cache_bytes_per_token(group, kv_cache))
            * as_float(resident_tokens(tokens, group.window_tokens, page_tokens))
            * as_float(kv_share_of_rank(cache_heads(group), tp, cp))
            for group in arch.layers
        ),
        start=as_float(0.0),
    )
    return cache + as_float(sequence_state_bytes(arch, tp))


class StepTimes(Protocol):
    """What a model of the load needs to know of a replica; numbers or arrays, one element a replica."""

    @property
    def request_s(self) -> FloatOrArray:
        """Time that a request spends outside the engine.  [s]"""
        ...

    def step_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """One decode step of the engine.  [s]"""
        ...

    def token_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """Mean time per output token of a sequence, no prefill in between.  [s]"""
        ...

    def prefill_s(self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> FloatOrArray:
        """Engine time that a prompt takes from decoding.  [s]"""
        ...

    def prefill_alone_s(self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> FloatOrArray:
        """First token of a prompt on an idle engine.  [s]"""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: a draft of `length` tokens, each accepted with probability `acceptance`.

    `draft_share` is what drafting one token costs, as a share of a decode step of the model: about one
    layer of it for multi-token prediction.
    """

    length: FloatOrArray
    acceptance: FloatOrArray
    draft_share: FloatOrArray = 0.03

    @property
    def tokens_per_step(self) -> FloatOrArray:
        """Tokens that a step yields for one sequence."""
        return accepted_tokens_per_step(self.length, self.acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A model in a format, laid out on a machine, at given constants; fields may hold arrays."""

    work: ServingWork
    layout: ReplicaLayout
    machine: Machine
    peaks: ServingPeaks
    constants: ServingConstants
    speculation: Speculation | None = None

    @property
    def request_s(self) -> FloatOrArray:
        """Time that a request spends outside the engine.  [s]"""
        return self.constants.request_s

    def take(self, index: NDArray[np.int64]) -> Replica:
        """The replicas of these rows, in any order and as often as named."""
        return replace(
            self,
            work=self.work.take(index),
            layout=taken(self.layout, index),
            machine=taken(self.machine, index),
            peaks=taken(self.peaks, index),
            constants=taken(self.constants, index),
        )

    def step_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """One decode step of the engine; with speculation it drafts, and verifies the draft.  [s]"""
        return self.decode_step(sequences, context_tokens).total

    def token_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """Mean time per output token of one sequence, without prefill in between.  [s]"""
        step = as_float(self.step_s(sequences, context_tokens))
        return step if self.speculation is None else step / as_float(self.speculation.tokens_per_step)

    def prefill_s(
        self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0, prompts: FloatOrArray = 1
    ) -> FloatOrArray:
        """Engine time that a prompt takes from decoding, one of `prompts` in its step.  [s]

        Parameters
        ----------
        input_tokens
            The whole prompt.  [tokens]
        cached_tokens
            Of it, found in the prefix cache.  [tokens]
        prompts
            That share the step, and its fixed cost.  [count]
        """
        return as_float(self.prefill(input_tokens, cached_tokens, prompts).total) / as_float(self.layout.pp)

    def prefill_alone_s(self, input_tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> FloatOrArray:
        """First token of a prompt on an idle engine.  [s]"""
        return self.first_token(input_tokens, cached_tokens).total

    def decode_step(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> Terms:
        """Time of one decode step of a batch at a mean context, by component.  [s]"""
        batch = np.maximum(as_float(sequences) / as_float(self.layout.pp), 1.0)
        drafted = 0.0 if self.speculation is None else as_float(self.speculation.length)
        tokens = batch * (1.0 + drafted)
        with np.errstate(divide="ignore"):
            terms = {
                "linear": self._linear(tokens, reads=True, head=True),
                "experts": self._experts(tokens, reads=True),
                "attention": self._decode_attention(batch, tokens, context_tokens),
                "collectives": self._collectives(tokens, self.constants.collective_s),
                "pipeline": self._pipeline(tokens, self.constants.collective_s),
                "launch": self._launch(batch),
            }
        if self.speculation is not None:
            terms["draft"] = sum(terms.values()) * drafted * as_float(self.speculation.draft_share)
        return Terms(terms)

    def prefill(self, tokens: FloatOrArray, cached_tokens: FloatOrArray = 0, prompts: FloatOrArray = 1) -> Terms:
        """Engine time that one prompt adds to a step of `prompts`, as one walk through all stages.  [s]

        Parameters
        ----------
        tokens
            The whole prompt.  [tokens]
        cached_tokens
            Of it, found in the prefix cache.  [tokens]
        prompts
            That share the step, and its fixed cost.  [count]
        """
        return self._prompt(tokens, cached_tokens, as_float(prompts), alone=False)

    def first_token(self, tokens: FloatOrArray, cached_tokens: FloatOrArray = 0) -> Terms:
        """Time of one prompt on an idle engine: with the weights read, and every kernel launched.  [s]"""
        return self._prompt(tokens, cached_tokens, 1.0, alone=True)

    def _prompt(
        self, tokens: FloatOrArray, cached_tokens: FloatOrArray, prompts: FloatOrArray, *, alone: bool
    ) -> Terms:
        cached = as_float(cached_tokens)
        new = np.maximum(as_float(tokens) - cached, 1.0)
        latency = as_float(self.constants.collective_s) * alone
        share = self.constants.prompt_compute
        with np.errstate(divide="ignore"):
            terms = {
                "linear": self._linear(new, reads=alone, head=alone, head_tokens=1.0, share=share),
                "experts": self._experts(new, reads=alone, share=share),
                "attention": self._prefill_attention(as_float(tokens), cached),
                "collectives": self._collectives(new, latency),
                "pipeline": self._pipeline(new, latency),
            }
        unbatched = as_float(self.work.kernel_units) * as_float(self.constants.prompt_unit_s)
        unbatched = unbatched + as_float(self.constants.prompt_step_s)
        terms["launch"] = unbatched / as_float(prompts) + (self._launch(1.0) if alone else 0.0)
        return Terms(terms)

    def _time(
        self, read_bytes: FloatOrArray, flop_count: FloatOrArray, peak: FloatOrArray, read: Any, compute: Any
    ) -> FloatOrArray:
        own = self.constants
        share = own.compute if compute is None else compute
        return kernel_group_time_s(
            read_bytes,
            flop_count,
            self.machine.memory_bandwidth_bytes_per_s,
            peak,
            own.bandwidth if read is None else read,
            as_float(share) * narrow_format_share(peak, self.peaks.attention, own.low_precision),
        )

    def _kept(self, unpacked: FloatOrArray) -> FloatOrArray:
        """Share that products keep where kernels unpack the weights."""
        return np.where(as_float(unpacked) > 0, self.constants.unpack, 1.0) if np.any(unpacked) else 1.0

    def _launch(self, batch: FloatOrArray) -> FloatOrArray:
        own, mine = self.constants, as_float(batch) / as_float(self.layout.dp)  # each attention rank has its scheduler
        fixed = as_float(
            launch_time_s(self.work.kernel_units, mine, own.kernel_unit_s, own.sequence_s, own.sequence_unit_s)
        )
        return fixed + as_float(own.step_s)

    def _linear(
        self,
        tokens: FloatOrArray,
        *,
        reads: bool,
        head: bool,
        head_tokens: FloatOrArray | None = None,
        share: FloatOrArray = 1.0,
    ) -> FloatOrArray:
        """Attention projections, dense and shared feed-forward, router; the head when it runs."""
        work = self.work
        linear = sum(layer.count * layer.linear_parameters for layer in work.layers)
        plain = sum(layer.count * layer.plain_parameters for layer in work.layers)
        top = work.head_parameters * head
        read_bytes = (linear * work.linear_bytes + (plain + top) * work.plain_bytes) / as_float(self.layout.tp)
        rows = as_float(tokens)
        flop_count = 2 * ((linear + plain) * rows + top * (rows if head_tokens is None else head_tokens))
        return self._time(
            read_bytes * reads,
            flop_count / as_float(self.layout.stage_devices),
            self.peaks.linear,
            as_float(self.constants.bandwidth) * self._kept(self.peaks.linear_unpacked),
            as_float(self.constants.compute) * share * self._kept(self.peaks.linear_unpacked),
        )

    def _experts(self, tokens: FloatOrArray, *, reads: bool, share: FloatOrArray = 1.0) -> FloatOrArray:
        """Routed experts: the distinct ones a batch touches are read, k of them computed per token."""
        read_bytes, flop_count = as_float(0.0), as_float(0.0)
        spread = 1 + (as_float(tokens) - 1) * (1 - as_float(self.constants.routing_skew))
        for layer in self.work.layers:
            touched = as_float(distinct_experts(layer.experts, layer.experts_per_token, spread))
            each = layer.count * layer.expert_parameters
            read_bytes = read_bytes + each * touched * self.work.expert_bytes * reads
            flop_count = flop_count + 2 * each * layer.experts_per_token * as_float(tokens)
        stage = as_float(self.layout.stage_devices)
        imbalance = as_float(expert_imbalance(self.layout.ep))
        own, kept = self.constants, self._kept(self.peaks.expert_unpacked)
        return self._time(
            read_bytes / stage,
            flop_count * imbalance / stage,
            self.peaks.expert,
            as_float(own.bandwidth if own.expert_bandwidth is None else own.expert_bandwidth) * kept,
            as_float(own.compute if own.expert_compute is None else own.expert_compute) * share * kept,
        )

    def _decode_attention(
        self, batch: FloatOrArray, tokens: FloatOrArray, context_tokens: FloatOrArray
    ) -> FloatOrArray:
        """Reads the cache of every sequence, and computes with it for every token; states are written back."""
        cache, flop_count = as_float(0.0), as_float(0.0)
        for layer in self.work.layers:
            seen = as_float(resident_tokens(context_tokens, layer.window_tokens))
            share = as_float(kv_share_of_rank(layer.cache_heads, self.layout.tp, self.layout.cp))
            cache = cache + layer.count * layer.cache_bytes_per_token * seen * share
            cache = cache + layer.count * 2 * layer.state_bytes * share
            flop_count = flop_count + layer.count * layer.decode_flop_per_pair * seen
            if np.any(layer.index_flop_per_pair):  # every tensor rank keeps the whole index
                cache = cache + layer.count * layer.index_bytes_per_token * as_float(context_tokens)
                flop_count = flop_count + layer.count * layer.index_flop_per_pair * as_float(context_tokens)
        own = as_float(batch) / as_float(self.layout.dp)
        shared = as_float(tokens) / as_float(self.layout.stage_devices)
        limits = self.constants
        return self._time(
            own * cache,
            flop_count * shared,
            self.peaks.attention,
            limits.cache_bandwidth,
            limits.attention_compute,
        )

    def _prefill_attention(self, prompt: FloatOrArray, cached: FloatOrArray) -> FloatOrArray:
        flop_count = as_float(0.0)
        for layer in self.work.layers:
            pairs = as_float(causal_pair_count(prompt, layer.window_tokens))
            pairs = pairs - as_float(causal_pair_count(cached, layer.window_tokens))
            flop_count = flop_count + layer.count * layer.prefill_flop_per_pair * pairs
            if np.any(layer.index_flop_per_pair):
                whole = as_float(causal_pair_count(prompt)) - as_float(causal_pair_count(cached))
                flop_count = flop_count + layer.count * layer.index_flop_per_pair * whole
        share = flop_count / as_float(self.layout.stage_devices)
        return self._time(0.0, share, self.peaks.attention, None, self.constants.attention_compute)

    def _collectives(self, tokens: FloatOrArray, latency_s: FloatOrArray) -> FloatOrArray:
        """An all-reduce after attention and one after the feed-forward part of each layer.

        Tensor ranks hold the same tokens: expert-parallel or not, they compute their share and add up. Between
        attention ranks, which hold other tokens and wait for each other, experts take two all-to-alls. Ranks that share
        out the tokens of a cache gather the queries and add up what each has found.
        """
        ranks, ep, cp = as_float(self.layout.stage_devices), as_float(self.layout.ep), as_float(self.layout.cp)
        payload = as_float(tokens) / as_float(self.layout.dp) * self.work.hidden * ACTIVATION_BYTES
        reduce_s = self._latency(ranks, latency_s) + self._all_reduce(payload, ranks)
        attention_s = reduce_s
        if np.any(cp > 1):
            attention_s = attention_s + 2 * self._latency(cp, latency_s) + self._all_reduce(payload, cp)
        total = as_float(0.0)
        for layer in self.work.layers:
            sent = payload * layer.experts_per_token
            exchange_s = self._latency(ep, latency_s) + self._all_to_all(sent, ep)
            spread = (ep > 1) & (as_float(self.layout.dp) > 1) & (as_float(layer.experts_per_token) > 0)
            total = total + layer.count * (attention_s + np.where(spread, 2 * exchange_s, reduce_s))
        return total

    def _all_reduce(self, payload: FloatOrArray, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """All-reduce inside the fast domain; across domains each device reduces its part over its own link.  [s]"""
        inside = self._members(ranks)
        time = as_float(ring_all_reduce_s(payload, inside, self._link(inside)))
        if np.any(ranks > inside):
            domains = ranks / inside
            part = as_float(ring_all_reduce_s(as_float(payload) / inside, domains, self._link(ranks)))
            time = time + np.where(domains > 1, part, 0.0)
        return time

    def _all_to_all(self, payload: FloatOrArray, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """All-to-all: what leaves the fast domain goes over each device's own link, while the rest goes inside.  [s]"""
        inside = self._members(ranks)
        time = as_float(all_to_all_s(as_float(payload) * inside / ranks, inside, self._link(inside)))
        if np.any(ranks > inside):
            time = np.maximum(time, as_float(payload) * (1 - inside / ranks) / self._link(ranks))
        return time

    def _members(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ranks of a group that share a fast domain: neighbours.  [count]"""
        return np.minimum(ranks, as_float(self.machine.scale_up_devices))

    def _pipeline(self, tokens: FloatOrArray, latency_s: FloatOrArray) -> FloatOrArray:
        """Hops of the activations from stage to stage, at the slowest link that the replica spans."""
        devices, hops = as_float(self.layout.devices), as_float(self.layout.pp) - 1
        link = np.minimum(self._link(devices), self.machine.pair_bytes_per_s)
        payload = as_float(tokens) / as_float(self.layout.dp) * self.work.hidden * ACTIVATION_BYTES
        hop_s = point_to_point_s(payload, np.where(hops > 0, link, np.inf), self._latency(devices, latency_s))
        return hops * as_float(hop_s)

    def _link(self, ranks: FloatOrArray) -> NDArray[np.float64]:
        """Sustained one-way rate of one device to the rest of its group.  [B/s]"""
        machine = self.machine
        rate = group_bandwidth_bytes_per_s(
            ranks,
            machine.pair_bytes_per_s,
            machine.all_bytes_per_s,
            machine.scale_up_devices,
            machine.host_bytes_per_s,
            machine.node_devices,
            machine.inter_node_bytes_per_s,
        )
        own = self.constants
        if own.pcie is None or not np.any(machine.pcie):
            return as_float(rate) * as_float(own.link)
        on_bus = (as_float(machine.pcie) > 0) & (as_float(ranks) <= as_float(machine.node_devices))
        return as_float(rate) * np.where(on_bus, own.pcie, own.link)

    def _latency(self, ranks: FloatOrArray, latency_s: FloatOrArray) -> NDArray[np.float64]:
        """Fixed cost of a collective: none alone, between nodes taken as twice that inside one (not fitted)."""
        node = np.maximum(self.machine.scale_up_devices, self.machine.node_devices)
        size = as_float(ranks)
        return as_float(latency_s) * np.where(size > node, 2.0, 1.0) * (size > 1)
