"""One forward step of a serving replica, by component: decode steps and prefill.

A replica of `devices` runs `pp` pipeline stages; a stage runs `tp` tensor-parallel ranks for each of
`dp = devices / (tp pp)` attention ranks, which share out the sequences and hold copies of the
non-expert weights. Experts are spread over all devices of a stage, whole ones or a part of each. With
a pipeline each of `pp` micro-batches walks all stages, so a step is one walk of a micro-batch on the
devices of one stage.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations.communication import (
    all_to_all_s,
    hierarchical_all_reduce_s,
    point_to_point_s,
    ring_all_reduce_s,
)
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
    def ranks(self) -> FloatOrArray:
        """Attention ranks, each of which has prompts and sequences of its own.  [count]"""
        ...

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
    layer of it for multi-token prediction. A draft model of its own takes a step of itself.
    """

    length: FloatOrArray
    acceptance: FloatOrArray
    draft_share: FloatOrArray = 0.03
    draft: ServingWork | None = None  # of a model of its own

    @property
    def tokens_per_step(self) -> FloatOrArray:
        """Tokens that a step yields for one sequence."""
        return accepted_tokens_per_step(self.length, self.acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Ranks that exchange activations, and their links."""

    ranks: NDArray[np.float64]
    inside: NDArray[np.float64]  # that share a fast domain: neighbours
    link: NDArray[np.float64]  # of a device to the others inside  [B/s]
    across: NDArray[np.float64] | None  # to the whole group; None where each lies in one domain  [B/s]
    latency_s: NDArray[np.float64]  # of one collective: none alone, between nodes twice that inside one (not fitted)

    def all_reduce_s(self, payload: FloatOrArray) -> NDArray[np.float64]:
        """All-reduce inside the fast domain; across domains each device reduces its part over its own link.  [s]"""
        if self.across is None:
            return as_float(ring_all_reduce_s(payload, self.inside, self.link))
        domains = self.ranks / self.inside
        return as_float(hierarchical_all_reduce_s(payload, self.inside, domains, self.link, self.across))

    def all_to_all_s(self, payload: FloatOrArray) -> NDArray[np.float64]:
        """All-to-all: what leaves the fast domain goes over each device's own link, while the rest goes inside.  [s]"""
        time = as_float(all_to_all_s(as_float(payload) * self.inside / self.ranks, self.inside, self.link))
        if self.across is not None:
            time = np.maximum(time, as_float(payload) * (1 - self.inside / self.ranks) / self.across)
        return time


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A model in a format, laid out on a machine, at given constants; fields may hold arrays.

    What depends neither on the batch nor on the prompt is worked out once.
    """

    work: ServingWork
    layout: ReplicaLayout
    machine: Machine
    peaks: ServingPeaks
    constants: ServingConstants
    speculation: Speculation | None = None

    @property
    def ranks(self) -> FloatOrArray:
        """Attention ranks.  [count]"""
        return self._dp

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
        return as_float(sum(self._decode_terms(sequences, context_tokens).values()))

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
        return Terms(self._decode_terms(sequences, context_tokens))

    def _decode_terms(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> dict[str, FloatOrArray]:
        batch = np.maximum(as_float(sequences) / as_float(self.layout.pp), 1.0)
        drafted = 0.0 if self.speculation is None else as_float(self.speculation.length)
        tokens = batch * (1.0 + drafted)
        with np.errstate(divide="ignore"):
            terms = {
                "linear": self._linear(tokens, self._dp, reads=True),
                "experts": self._experts(tokens, reads=True),
                "attention": self._decode_attention(batch, tokens, context_tokens),
                "collectives": self._collectives(tokens, self._dp, latency=True),
                "pipeline": self._pipeline(tokens, self._dp, latency=True),
                "launch": self._launch(batch),
            }
        if self._draft is not None:
            terms["draft"] = drafted * self._draft.forward_s(batch, context_tokens)
        elif self.speculation is not None:
            terms["draft"] = sum(terms.values()) * drafted * as_float(self.speculation.draft_share)
        return terms

    @cached_property
    def _draft(self) -> Replica | None:
        """The draft model on the ranks of one stage, at the peak of plain formats; None without one of its own."""
        if self.speculation is None or self.speculation.draft is None:
            return None
        plain = self.peaks.attention
        peaks = ServingPeaks(linear=plain, expert=plain, attention=plain)
        layout = replace(self.layout, devices=self.layout.stage_devices, pp=1, ep=1)
        return replace(self, work=self.speculation.draft, layout=layout, peaks=peaks, speculation=None)

    def forward_s(self, sequences: FloatOrArray, context_tokens: FloatOrArray) -> FloatOrArray:
        """A decode step without what the engine's scheduler takes of it.  [s]"""
        own, mine = self.constants, np.maximum(as_float(sequences), 1.0) / self._dp
        return as_float(self.step_s(sequences, context_tokens)) - own.step_s - own.sequence_s * mine

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
        """Time of one prompt on an idle engine: weights are read, kernels launched, one attention rank has it.  [s]"""
        return self._prompt(tokens, cached_tokens, 1.0, alone=True)

    def _prompt(
        self, tokens: FloatOrArray, cached_tokens: FloatOrArray, prompts: FloatOrArray, *, alone: bool
    ) -> Terms:
        cached = as_float(cached_tokens)
        new = np.maximum(as_float(tokens) - cached, 1.0)
        share, ranks = self.constants.prompt_compute, as_float(1.0) if alone else self._dp
        with np.errstate(divide="ignore"):
            terms = {
                "linear": self._linear(new, ranks, reads=alone, head_tokens=1.0 * alone, share=share),
                "experts": self._experts(new, reads=alone, share=share),
                "attention": self._prefill_attention(as_float(tokens), cached, ranks),
                "collectives": self._collectives(new, ranks, latency=alone),
                "pipeline": self._pipeline(new, ranks, latency=alone),
            }
        unbatched = as_float(self.work.kernel_units) * as_float(self.constants.prompt_unit_s)
        unbatched = unbatched + as_float(self.constants.prompt_step_s)
        terms["launch"] = unbatched / as_float(prompts) + (self._launch(1.0) if alone else 0.0)
        if self._draft is not None:  # which reads the prompt, too
            terms["draft"] = self._draft._prompt(tokens, cached_tokens, prompts, alone=alone).total
        return Terms(terms)

    @cached_property
    def _dp(self) -> NDArray[np.float64]:
        return as_float(self.layout.dp)

    @cached_property
    def _stage_devices(self) -> NDArray[np.float64]:
        return as_float(self.layout.stage_devices)

    @cached_property
    def _narrow(self) -> tuple[FloatOrArray, FloatOrArray, FloatOrArray]:
        """What linear products, those of experts and of attention keep of a narrow format's peak."""
        peaks, share = self.peaks, self.constants.low_precision
        linear, expert, attention = (
            narrow_format_share(peak, peaks.attention, share) for peak in (peaks.linear, peaks.expert, peaks.attention)
        )
        return linear, expert, attention

    def _time(
        self, read_bytes: FloatOrArray, flop_count: FloatOrArray, peak: FloatOrArray, read: Any, compute: Any
    ) -> FloatOrArray:
        bandwidth = self.machine.memory_bandwidth_bytes_per_s
        return kernel_group_time_s(read_bytes, flop_count, bandwidth, peak, read, compute)

    def _kept(self, unpacked: FloatOrArray) -> FloatOrArray:
        """Share that products keep where kernels unpack the weights."""
        return np.where(as_float(unpacked) > 0, self.constants.unpack, 1.0) if np.any(unpacked) else 1.0

    def _launch(self, batch: FloatOrArray) -> FloatOrArray:
        own, mine = self.constants, as_float(batch) / self._dp  # each attention rank has its scheduler
        fixed = launch_time_s(self._kernel_units, mine, own.kernel_unit_s, own.sequence_s, own.sequence_unit_s)
        return as_float(fixed) + as_float(own.step_s)

    @cached_property
    def _kernel_units(self) -> NDArray[np.float64]:
        return as_float(self.work.kernel_units)

    @cached_property
    def _linear_parameters(self) -> tuple[Any, Any]:
        """Of products in the format of the weights, and of those in a plain one."""
        work = self.work
        linear = sum(layer.count * layer.linear_parameters for layer in work.layers)
        return linear, sum(layer.count * layer.plain_parameters for layer in work.layers)

    @cached_property
    def _linear_bytes(self) -> FloatOrArray:
        """Weights that a rank reads, the head among them.  [B]"""
        work, (linear, plain) = self.work, self._linear_parameters
        read_bytes = linear * work.linear_bytes + (plain + work.head_parameters) * work.plain_bytes
        return as_float(read_bytes / as_float(self.layout.tp))

    @cached_property
    def _linear_kept(self) -> FloatOrArray:
        return self._kept(self.peaks.linear_unpacked)

    def _linear(
        self,
        tokens: FloatOrArray,
        ranks: FloatOrArray,
        *,
        reads: bool,
        head_tokens: FloatOrArray | None = None,
        share: FloatOrArray = 1.0,
    ) -> FloatOrArray:
        """Projections, dense and shared feed-forward, router on some attention ranks; the head, of all unless told."""
        linear, plain = self._linear_parameters
        rows, kept = as_float(tokens), self._linear_kept
        top = self.work.head_parameters
        flop_count = 2 * ((linear + plain) * rows + top * (rows if head_tokens is None else head_tokens))
        return self._time(
            self._linear_bytes if reads else 0.0,
            flop_count / self._devices_of(ranks),
            self.peaks.linear,
            as_float(self.constants.bandwidth) * kept,
            as_float(self.constants.compute) * share * kept * self._narrow[0],
        )

    @cached_property
    def _expert_kept(self) -> tuple[FloatOrArray, FloatOrArray]:
        """Share that products of experts keep, and how much more than their share of them the busiest rank has."""
        return self._kept(self.peaks.expert_unpacked), as_float(expert_imbalance(self.layout.ep))

    def _experts(self, tokens: FloatOrArray, *, reads: bool, share: FloatOrArray = 1.0) -> FloatOrArray:
        """Routed experts: the distinct ones a batch touches are read, k of them computed per token."""
        if not self._has_experts:
            return as_float(0.0)
        read_bytes, flop_count = as_float(0.0), as_float(0.0)
        spread = 1 + (as_float(tokens) - 1) * (1 - as_float(self.constants.routing_skew))
        for layer in self.work.layers:
            each = layer.count * layer.expert_parameters
            if reads:
                touched = as_float(distinct_experts(layer.experts, layer.experts_per_token, spread))
                read_bytes = read_bytes + each * touched * self.work.expert_bytes
            flop_count = flop_count + 2 * each * layer.experts_per_token * as_float(tokens)
        own, stage, (kept, imbalance) = self.constants, self._stage_devices, self._expert_kept
        compute = own.compute if own.expert_compute is None else own.expert_compute
        return self._time(
            read_bytes / stage,
            flop_count * imbalance / stage,
            self.peaks.expert,
            as_float(own.bandwidth if own.expert_bandwidth is None else own.expert_bandwidth) * kept,
            as_float(compute) * share * kept * self._narrow[1],
        )

    @cached_property
    def _has_experts(self) -> bool:
        return any(np.any(layer.expert_parameters) for layer in self.work.layers)

    def _decode_attention(
        self, batch: FloatOrArray, tokens: FloatOrArray, context_tokens: FloatOrArray
    ) -> FloatOrArray:
        """Reads the cache of every sequence, and computes with it for every token; states are written back."""
        if self._of_context.get("context") is not context_tokens:  # one at a time: loads differ, contexts seldom
            self._of_context.update(context=context_tokens, sums=self._attended(context_tokens))
        cache, flop_count = self._of_context["sums"]
        own = as_float(batch) / self._dp
        shared = as_float(tokens) / self._stage_devices
        return self._attention_time(own * cache, flop_count * shared)

    @cached_property
    def _of_context(self) -> dict[str, Any]:
        return {}

    def _attended(self, context_tokens: FloatOrArray) -> tuple[FloatOrArray, FloatOrArray]:
        """What a rank reads for one sequence, and what attention computes for one token.  [B], [FLOP]"""
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
        return cache, flop_count

    def _attention_time(self, read_bytes: FloatOrArray, flop_count: FloatOrArray) -> FloatOrArray:
        own = self.constants
        read = own.bandwidth if own.cache_bandwidth is None else own.cache_bandwidth
        compute = own.compute if own.attention_compute is None else own.attention_compute
        return self._time(read_bytes, flop_count, self.peaks.attention, read, as_float(compute) * self._narrow[2])

    def _prefill_attention(self, prompt: FloatOrArray, cached: FloatOrArray, ranks: FloatOrArray) -> FloatOrArray:
        flop_count = as_float(0.0)
        for layer in self.work.layers:
            pairs = as_float(causal_pair_count(prompt, layer.window_tokens))
            pairs = pairs - as_float(causal_pair_count(cached, layer.window_tokens))
            flop_count = flop_count + layer.count * layer.prefill_flop_per_pair * pairs
            if np.any(layer.index_flop_per_pair):
                whole = as_float(causal_pair_count(prompt)) - as_float(causal_pair_count(cached))
                flop_count = flop_count + layer.count * layer.index_flop_per_pair * whole
        return self._attention_time(0.0, flop_count / self._devices_of(ranks))

    def _collectives(self, tokens: FloatOrArray, ranks: FloatOrArray, *, latency: bool) -> FloatOrArray:
        """An all-reduce after attention and one after the feed-forward part of each layer.

        Tensor ranks hold the same tokens: expert-parallel or not, they compute their share and add up. Attention ranks
        hold other tokens and wait for each other at the experts. Where these are spread over them they take two
        all-to-alls; where each is cut over all devices of the stage, every device needs the tokens of all: they are
        gathered, and the sums scattered, as much as an all-reduce of them all. Ranks that share out the tokens of a
        cache gather the queries and add up what each has found.
        """
        stage, experts, tensor, cache = self._groups
        payload = self._payload(tokens, ranks)
        reduce_s = stage.latency_s * latency + stage.all_reduce_s(payload)
        gathered_s = reduce_s
        if tensor is not None:
            reduce_s = np.where(self._gathers, tensor.latency_s * latency + tensor.all_reduce_s(payload), reduce_s)
            all_s = 2 * (stage.latency_s * latency) + stage.all_reduce_s(payload * ranks)
            gathered_s = np.where(self._gathers, all_s, reduce_s)
        attention_s = reduce_s
        if cache is not None:
            attention_s = attention_s + 2 * (cache.latency_s * latency) + cache.all_reduce_s(payload)
        total = as_float(0.0)
        for layer, spread in zip(self.work.layers, self._spread):
            joined_s: FloatOrArray = np.where(as_float(layer.experts_per_token) > 0, gathered_s, reduce_s)
            if spread is not None:
                exchange_s = experts.latency_s * latency + experts.all_to_all_s(payload * layer.experts_per_token)
                joined_s = np.where(spread, 2 * exchange_s, joined_s)
            total = total + layer.count * (attention_s + joined_s)
        return total

    @cached_property
    def _groups(self) -> tuple[_Group, _Group, _Group | None, _Group | None]:
        """The devices of a stage, ranks that share out experts, tensor ranks, and those that share a cache's tokens.

        Tensor ranks are told apart where each attention rank reduces among its own and experts are cut over all.
        """
        cp = as_float(self.layout.cp)
        cache = self._group(cp) if np.any(cp > 1) else None
        tensor = self._group(as_float(self.layout.tp)) if np.any(self._gathers) else None
        return self._group(self._stage_devices), self._group(as_float(self.layout.ep)), tensor, cache

    @cached_property
    def _gathers(self) -> NDArray[np.bool_]:
        """Whether experts are cut over attention ranks that hold other tokens."""
        return (as_float(self.layout.ep) <= 1) & (self._dp > 1)

    @cached_property
    def _spread(self) -> list[NDArray[np.bool_] | None]:
        """Whether experts of each kind of layer lie with attention ranks that hold other tokens; None: nowhere."""
        apart = (as_float(self.layout.ep) > 1) & (self._dp > 1)
        each = [apart & (as_float(layer.experts_per_token) > 0) for layer in self.work.layers]
        return [spread if np.any(spread) else None for spread in each]

    def _group(self, ranks: NDArray[np.float64]) -> _Group:
        inside = np.minimum(ranks, as_float(self.machine.scale_up_devices))
        across = self._link(ranks) if np.any(ranks > inside) else None
        return _Group(
            ranks=ranks, inside=inside, link=self._link(inside), across=across, latency_s=self._latency_s(ranks)
        )

    def _payload(self, tokens: FloatOrArray, ranks: FloatOrArray) -> FloatOrArray:
        """Activations of the tokens of one of the attention ranks that have them.  [B]"""
        return as_float(as_float(tokens) / ranks * self.work.hidden * ACTIVATION_BYTES)

    def _devices_of(self, ranks: FloatOrArray) -> FloatOrArray:
        """Devices of some attention ranks of a stage: a token stays on those of its own, but for its experts."""
        return as_float(self.layout.tp) * ranks

    def _pipeline(self, tokens: FloatOrArray, ranks: FloatOrArray, *, latency: bool) -> FloatOrArray:
        """Hops of the activations from stage to stage, at the slowest link that the replica spans."""
        if self._hop is None:
            return as_float(0.0)
        hops, link, latency_s = self._hop
        return hops * as_float(point_to_point_s(self._payload(tokens, ranks), link, latency_s * latency))

    @cached_property
    def _hop(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """Hops of a walk, their link and its latency; None where no replica has a second stage."""
        devices, hops = as_float(self.layout.devices), as_float(self.layout.pp) - 1
        if not np.any(hops):
            return None
        link = np.minimum(self._link(devices), self.machine.pair_bytes_per_s)
        return hops, np.where(hops > 0, link, np.inf), self._latency_s(devices)

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

    def _latency_s(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        node, size = np.maximum(self.machine.scale_up_devices, self.machine.node_devices), ranks
        return as_float(self.constants.collective_s) * np.where(size > node, 2.0, 1.0) * (size > 1)
