"""What a model is made of: counts, work and cache per token; for `plan models show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.architecture.model import (
    Architecture,
    LayerGroup,
    attention_forward_flop_per_token,
    state_bytes,
    training_flop_per_token,
)
from planner.equations.flops import linear_forward_flop_per_token
from planner.estimate.serving import kv_cache_bytes_of_token, weight_bytes_of_model
from planner.estimate.serving_formats import CACHE_BYTES, FORMATS

if TYPE_CHECKING:
    from planner.memory.model import LayerFacts, ModelFacts

CACHE_FORMATS = ("bf16", "fp8", "int8", "nvfp4")
_EQUATIONS = (
    "EQ-PAR-1", "EQ-PAR-3", "EQ-PAR-7", "EQ-FLOP-1", "EQ-FLOP-3", "EQ-FLOP-4", "EQ-FLOP-7", "EQ-KV-1", "EQ-SRV-1",
)  # fmt: skip
_OF_LINEAR = ("EQ-PAR-12", "EQ-FLOP-16", "EQ-KV-5", "EQ-KV-7")
_OF_STATE_SPACE = ("EQ-PAR-15", "EQ-FLOP-17", "EQ-KV-5", "EQ-KV-7")


def model_facts(arch: Architecture, sequence_length: int) -> ModelFacts:
    """Counts, FLOPs per token at a sequence length, cache per token and weights by format."""
    attention = float(attention_forward_flop_per_token(arch, sequence_length))
    return {
        "schema": "plan/model/v1",
        "name": arch.name,
        "family": arch.family,
        "source": arch.source,
        "parameters": arch.parameters,
        "active_parameters": arch.active_parameters,
        "matmul_parameters": arch.matmul_parameters,
        "hidden_size": arch.hidden_size,
        "vocab_size": arch.vocab_size,
        "max_positions": arch.max_positions,
        "tied_embeddings": arch.tied_embeddings,
        "parts": _parts(arch),
        "layers": [_layer(group) for group in arch.layers],
        "sequence_length": sequence_length,
        "forward_flop_per_token": float(linear_forward_flop_per_token(arch.matmul_parameters)) + attention,
        "training_flop_per_token": float(training_flop_per_token(arch, sequence_length)),
        "kv_bytes_per_token": {name: _cache(arch, name) for name in CACHE_FORMATS if name in CACHE_BYTES},
        "state_bytes": sum(group.count * state_bytes(group) for group in arch.layers),
        "weight_bytes": {name: float(weight_bytes_of_model(arch, name)) for name in FORMATS},
        "equations": [*_EQUATIONS, *_equations_of_states(arch)],
    }


def _equations_of_states(arch: Architecture) -> tuple[str, ...]:
    """Those of layers that keep a state: no shipped model mixes the two rules."""
    chunks = [group.chunk_tokens for group in arch.layers if group.attention == "linear"]
    return (_OF_STATE_SPACE if any(chunks) else _OF_LINEAR) if chunks else ()


def _cache(arch: Architecture, kv_cache: str) -> float | None:
    """Cache of one more token in every layer, windows not yet full."""
    value = float(kv_cache_bytes_of_token(arch, kv_cache, 1))
    return None if value != value else value


def _parts(arch: Architecture) -> dict[str, int]:
    def over_layers(name: str) -> int:
        return sum(group.count * int(getattr(group, name)) for group in arch.layers)

    return {
        "attention": over_layers("attention_parameters"),
        "dense and shared feed-forward": over_layers("mlp_parameters"),
        "routed experts": over_layers("expert_parameters"),
        "routers": over_layers("router_parameters"),
        "norms": over_layers("norm_parameters") + arch.final_norm_parameters,
        "input embedding": arch.input_embedding_parameters,
        "positions": arch.position_parameters,
        "output head": arch.output_head_parameters,
    }


def _layer(group: LayerGroup) -> LayerFacts:
    return {
        "count": group.count,
        "attention": group.attention,
        "query_heads": group.query_heads,
        "kv_heads": group.kv_heads,
        "head_size": group.head_size,
        "window_tokens": group.window_tokens,
        "mlp": group.mlp,
        "mlp_width": group.mlp_width,
        "experts": group.experts,
        "experts_per_token": group.experts_per_token,
        "expert_width": group.expert_width,
        "parameters": group.parameters,
        "active_parameters": group.active_parameters,
    }
