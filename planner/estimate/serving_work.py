"""What one model makes a serving engine read and compute: sizes as numbers, or as arrays with one element a replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture, LayerGroup, linear_context_tokens, state_bytes
from planner.carriers import dataclass
from planner.equations.kinds_of_attention import index_cache_bytes_per_token
from planner.equations.kv_cache import kv_cache_bytes_per_token, kv_share_of_rank, latent_cache_bytes_per_token
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving import attention_flop_per_context_token, layer_kernel_units
from planner.estimate.serving_formats import CACHE_BYTES, stored_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLayer:
    """One kind of layer; every field is a number or an array, of one layer. 0 switches a part off."""

    count: Any = 0.0
    linear_parameters: Any = 0.0  # attention projections, dense and shared feed-forward
    plain_parameters: Any = 0.0  # router: never quantised
    experts: Any = 1.0
    experts_per_token: Any = 0.0
    expert_parameters: Any = 0.0  # of one routed expert
    cache_bytes_per_token: Any = 0.0  # one copy
    cache_heads: Any = 1.0  # that tensor ranks can share out; 1 = every rank keeps all
    window_tokens: Any = 0.0
    state_bytes: Any = 0.0  # of a sequence of any length: read and written by each decode step
    decode_flop_per_pair: Any = 0.0  # attention of one query with one cached token
    prefill_flop_per_pair: Any = 0.0
    index_bytes_per_token: Any = 0.0  # of a sparse attention: read of every token, the cache of `window_tokens` only
    index_flop_per_pair: Any = 0.0  # of one query with one token of its context
    kernel_units: Any = 0.0

    @classmethod
    def of(cls, group: LayerGroup, kv_cache: str) -> ServingLayer:
        """The sizes of one group of an architecture.

        Linear attention works on its state as softmax attention would on a window of a constant size, and
        caches no token. Sparse attention works on the tokens that its index chooses as on a window, and on latents that
        are not expanded, for prompts too.
        """
        latent, linear = group.attention == "mla", group.attention == "linear"
        heads, sizes = group.query_heads, (group.head_size, group.value_head_size)
        absorbed = (group.kv_rank + group.rope_size, group.kv_rank) if latent else sizes
        sparse = group.index_tokens > 0
        return cls(
            count=float(group.count),
            linear_parameters=float(group.attention_parameters + group.mlp_parameters),
            plain_parameters=float(group.router_parameters),
            experts=float(max(group.experts, 1)),
            experts_per_token=float(group.experts_per_token),
            expert_parameters=float(group.expert_parameters) / max(group.experts, 1),
            cache_bytes_per_token=float(_attended_bytes_per_token(group, kv_cache)) / group.count,
            cache_heads=float(cache_heads(group)),
            window_tokens=linear_context_tokens(group) if linear else float(group.index_tokens or group.window_tokens),
            state_bytes=state_bytes(group),
            decode_flop_per_pair=float(attention_flop_per_context_token(heads, *absorbed)),
            prefill_flop_per_pair=float(attention_flop_per_context_token(heads, *(absorbed if sparse else sizes))),
            index_bytes_per_token=float(index_cache_bytes_per_token(1, group.index_size)),
            index_flop_per_pair=float(attention_flop_per_context_token(group.index_heads, group.index_size, 0)),
            kernel_units=float(
                layer_kernel_units(latent, group.mlp == "moe", group.shared_expert_width > 0, sparse, linear)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWork:
    """A model in a weight and a cache format; numbers or arrays."""

    hidden: Any
    head_parameters: Any  # of the output head, shared with the embedding or not
    linear_bytes: Any  # per parameter
    expert_bytes: Any
    plain_bytes: Any
    layers: tuple[ServingLayer, ...]

    @classmethod
    def of(cls, arch: Architecture, weights: str, kv_cache: str) -> ServingWork:
        """The sizes of one architecture; of a bare parameter count only its weights.

        Parameters
        ----------
        arch
            The model.
        weights
            Format, a key of `serving_formats.FORMATS`.
        kv_cache
            Format, a key of `serving_formats.CACHE_BYTES`.
        """
        stored = stored_bytes(arch, weights)
        groups = tuple(ServingLayer.of(group, kv_cache) for group in arch.layers)
        bare = ServingLayer(count=1.0, linear_parameters=float(arch.parameters))
        return cls(
            hidden=float(arch.hidden_size),
            head_parameters=float(arch.vocab_size) * arch.hidden_size if groups else 0.0,
            linear_bytes=stored.linear,
            expert_bytes=stored.expert,
            plain_bytes=stored.plain,
            layers=groups or (bare,),
        )

    @classmethod
    def stack(cls, works: Sequence[ServingWork]) -> ServingWork:
        """Several models side by side: element i of every array belongs to model i."""
        slots = max(len(work.layers) for work in works)
        padded = [work.layers + (ServingLayer(),) * (slots - len(work.layers)) for work in works]
        layers = tuple(
            ServingLayer(**{f.name: _column([getattr(row[i], f.name) for row in padded]) for f in fields(ServingLayer)})
            for i in range(slots)
        )
        return cls(layers=layers, **{name: _column([getattr(work, name) for work in works]) for name in _PLAIN})

    def take(self, index: NDArray[np.int64]) -> ServingWork:
        """Rows of a stack, in any order and as often as named; one model stays as it is."""
        layers = tuple(taken(layer, index) for layer in self.layers)
        return ServingWork(layers=layers, **{name: _rows(getattr(self, name), index) for name in _PLAIN})

    @property
    def layer_count(self) -> Any:
        """Layers of all kinds."""
        return sum(layer.count for layer in self.layers)

    @property
    def kernel_units(self) -> Any:
        """Units of ten kernels of one step."""
        return sum(layer.count * layer.kernel_units for layer in self.layers)


_PLAIN = ("hidden", "head_parameters", "linear_bytes", "expert_bytes", "plain_bytes")


def layer_cache_bytes_per_token(group: LayerGroup, kv_cache: str) -> Any:
    """Cache of one token in all layers of a group, one copy, the keys of an index included.  [B]"""
    index = index_cache_bytes_per_token(group.count, group.index_size) if group.index_size else 0.0
    return _attended_bytes_per_token(group, kv_cache) + index


def _attended_bytes_per_token(group: LayerGroup, kv_cache: str) -> Any:
    """What attention reads of one token in all layers of a group.  [B]"""
    width = CACHE_BYTES[kv_cache]
    if group.attention == "linear":
        return 0.0
    if group.attention == "mla":
        return latent_cache_bytes_per_token(group.count, group.kv_rank, group.rope_size, width)
    return kv_cache_bytes_per_token(group.count, group.kv_heads, group.head_size, group.value_head_size, width)


def cache_heads(group: LayerGroup) -> int:
    """Heads of cache or state that tensor ranks can share out; 1 = every rank keeps all.  [count]"""
    if group.attention == "linear":
        return group.query_heads
    return 1 if group.attention == "mla" else group.kv_heads


def sequence_state_bytes(arch: Architecture, tp: FloatOrArray = 1) -> FloatOrArray:
    """What layers with linear attention keep of one sequence of any length, the share of one tensor rank.  [B]"""
    return sum(
        (
            group.count * state_bytes(group) * as_float(kv_share_of_rank(cache_heads(group), tp))
            for group in arch.layers
            if group.attention == "linear"
        ),
        start=as_float(0.0),
    )


def taken(part: Any, index: NDArray[np.int64]) -> Any:
    """A frozen dataclass of numbers and arrays with the rows `index` of each array."""
    return type(part)(**{f.name: _rows(getattr(part, f.name), index) for f in fields(part)})


def _rows(value: Any, index: NDArray[np.int64]) -> Any:
    return value[index] if isinstance(value, np.ndarray) and value.ndim else value


def _column(values: Sequence[Any]) -> Any:
    return np.asarray(values, dtype=np.float64)
