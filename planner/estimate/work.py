"""What one model computes per token: sizes of its matrices, as numbers or as arrays with one element a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from planner.architecture.model import Architecture, LayerGroup, linear_context_tokens
from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """One kind of layer; every field is a number or an array. 0 switches a part off.

    The projections of linear attention are linear products like others; its core works linearly in the
    sequence, so it stands here as a sliding window in which softmax attention would work as much. Under
    context parallelism its keys and values count as sent round like others', which is more than its state.
    """

    count: Any = 0.0
    linear: Any = 0.0  # 1: linear attention, which stores no scores
    query_heads: Any = 0.0
    kv_heads: Any = 0.0
    head_size: Any = 0.0
    value_head_size: Any = 0.0
    qkv_width: Any = 0.0  # columns of the fused projection, gates included; 0 with MLA
    query_rank: Any = 0.0
    kv_rank: Any = 0.0  # MLA latent with its rope part
    query_up: Any = 0.0  # MLA: columns of the second query projection
    kv_up: Any = 0.0
    window_tokens: Any = 0.0
    mlp_width: Any = 0.0
    shared_width: Any = 0.0
    up_projections: Any = 2.0
    experts: Any = 0.0
    experts_per_token: Any = 0.0
    expert_width: Any = 0.0
    parameters: Any = 0.0  # without experts
    expert_parameters: Any = 0.0

    @property
    def output_width(self) -> Any:
        """Rows of the attention's output projection, a e_v."""
        return self.query_heads * self.value_head_size

    @classmethod
    def of(cls, group: LayerGroup) -> LayerWork:
        """The sizes of one group of an architecture."""
        mla, linear = group.attention == "mla", group.attention == "linear"
        queries = group.query_heads * group.head_size
        return cls(
            count=float(group.count),
            linear=float(linear),
            query_heads=float(group.query_heads),
            kv_heads=float(group.query_heads if mla else group.kv_heads),
            head_size=float(group.head_size),
            value_head_size=float(group.value_head_size),
            qkv_width=float(group.qkv_width),
            query_rank=float(group.query_rank) if mla else 0.0,
            kv_rank=float(group.kv_rank + group.rope_size) if mla else 0.0,
            query_up=float(queries) if mla else 0.0,
            kv_up=float(group.query_heads * (group.head_size - group.rope_size + group.value_head_size))
            if mla
            else 0.0,
            window_tokens=linear_context_tokens(group) if linear else float(group.window_tokens),
            mlp_width=float(group.mlp_width),
            shared_width=float(group.shared_expert_width),
            up_projections=2.0 if group.gated else 1.0,
            experts=float(group.experts),
            experts_per_token=float(group.experts_per_token),
            expert_width=float(group.expert_width),
            parameters=float(group.parameters - group.expert_parameters),
            expert_parameters=float(group.expert_parameters),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A model at a sequence length; numbers or arrays."""

    hidden: Any
    vocab: Any
    sequence_length: Any
    layer_count: Any
    table_parameters: Any  # of the input embedding, positions included
    head_parameters: Any  # of the output head, shared with the embedding or not
    layers: tuple[LayerWork, ...]

    @classmethod
    def of(cls, arch: Architecture, sequence_length: float) -> Work:
        """The sizes of one architecture."""
        tied = float(arch.vocab_size * arch.hidden_size) if arch.tied_embeddings else 0.0
        return cls(
            hidden=float(arch.hidden_size),
            vocab=float(arch.vocab_size),
            sequence_length=float(sequence_length),
            layer_count=float(arch.layer_count),
            table_parameters=float(arch.input_embedding_parameters + arch.position_parameters) - tied,
            head_parameters=float(arch.output_head_parameters) + tied,
            layers=merged([LayerWork.of(group) for group in arch.layers]),
        )

    @classmethod
    def stack(cls, works: Sequence[Work]) -> Work:
        """Several models side by side: element i of every array belongs to model i."""
        slots = max(len(work.layers) for work in works)
        padded = [work.layers + (LayerWork(),) * (slots - len(work.layers)) for work in works]
        columns = {name: _column([getattr(work, name) for work in works]) for name in _PLAIN}
        layers = tuple(
            LayerWork(**{f.name: _column([getattr(row[i], f.name) for row in padded]) for f in fields(LayerWork)})
            for i in range(slots)
        )
        return cls(layers=layers, **columns)


_PLAIN = ("hidden", "vocab", "sequence_length", "layer_count", "table_parameters", "head_parameters")


def _column(values: Sequence[Any]) -> Any:
    return np.asarray(values, dtype=np.float64)


def merged(layers: Sequence[LayerWork]) -> tuple[LayerWork, ...]:
    """Kinds that differ in nothing but their count, counted together."""
    names = [f.name for f in fields(LayerWork) if f.name != "count"]
    found: dict[tuple[float, ...], float] = {}
    for layer in layers:
        key = tuple(float(getattr(layer, name)) for name in names)
        found[key] = found.get(key, 0.0) + layer.count
    return tuple(LayerWork(count=count, **dict(zip(names, key, strict=True))) for key, count in found.items())
