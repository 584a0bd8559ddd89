"""The model of a serving row: the preset of its name, one of the same shape, that of its cells, or a mere size."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from planner.architecture.build import build
from planner.architecture.config import Config
from planner.architecture.load import coarse_model, load_model, preset_config, preset_of
from planner.architecture.model import Architecture
from planner.validate.rows import MeasuredRow
from planner.validate.rows_model import expert_configs, parameters_of, with_shape
from planner.validate.serving_rows import ServingRow

_LONGEST = 131_072  # positions, of models whose own number plays no part
_UNGATED = 4  # a feed-forward of four times the width or more has two matrices, unless the size says three
_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
# Heads of the two latent families: DeepSeek-V3 (arXiv 2412.19437, sec. 4.2) and GLM-5 (config.json, recalled).
_LATENT_HEADS = ((128, {"qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536}),
                 (64, {"qk_nope_head_dim": 192, "v_head_dim": 256, "q_lora_rank": 2048}))  # fmt: skip


def serving_architecture(row: ServingRow) -> Architecture:
    """What a row served; without its layers where neither they nor a dense size are given."""
    config = _named_preset(row)
    if config is None and row.layers and row.hidden:
        config = _like_preset(row) or _own_config(row)
    if config is None:
        return coarse_model(max((parameters_of(_as_training(row)) or 0.0), 1.0))
    return _built(json.dumps(config, sort_keys=True))


@lru_cache(maxsize=1024)
def _built(text: str) -> Architecture:
    return build(Config(json.loads(text), "row", text), name="row", source="measured row")


def _as_training(row: ServingRow) -> MeasuredRow:
    """The cells that both kinds of rows have in common."""
    return MeasuredRow(
        model=row.model,
        n_params_b=row.n_params_b,
        n_active_params_b=row.n_active_params_b,
        layers=row.layers,
        hidden=row.hidden,
        heads=row.heads,
        kv_heads=row.kv_heads,
        ffn_hidden=row.ffn_hidden,
        vocab=row.vocab,
        n_experts=row.n_experts,
        top_k=row.top_k,
    )


def _named_preset(row: ServingRow) -> dict[str, Any] | None:
    """The config of the preset that the row's name speaks of, unless a cell contradicts it."""
    name = preset_of(row.model or "")
    if name is None:
        return None
    arch = load_model(name)
    experts = max((group.experts for group in arch.layers), default=0)
    stated = ((row.layers, arch.layer_count), (row.hidden, arch.hidden_size), (row.n_experts, experts))
    if any(cell and cell != own for cell, own in stated):
        return None
    return preset_config(name)


def _like_preset(row: ServingRow) -> dict[str, Any] | None:
    """The config of the mixture-of-experts preset of the same width, heads and experts, with the row's layers."""
    if not row.is_moe:
        return None
    for config in expert_configs():
        width = config.get("moe_intermediate_size") or config.get("intermediate_size")
        same = (config.get("hidden_size"), config.get("num_attention_heads"), width)
        if same != (row.hidden, row.heads, row.ffn_hidden):
            continue
        key = next(name for name in ("n_routed_experts", "num_experts", "num_local_experts") if config.get(name))
        own = {name: value for name, value in config.items() if name != "layer_types"}
        own |= {"num_hidden_layers": row.layers, key: row.n_experts}
        if config.get("model_type") == "llama4_text":  # Maverick routes in every second layer, Scout in each
            own["interleave_moe_layer_step"] = 2 if (row.n_experts or 0) > 64 else 1
        return own
    return None


def _own_config(row: ServingRow) -> dict[str, Any] | None:
    """A config in the words of Hugging Face; None where the shape is not known."""
    if row.is_moe and "MLA" in (row.arch_source or ""):
        return _latent(row)
    shaped = with_shape(_as_training(row))
    if not (shaped.hidden and shaped.layers and shaped.heads):
        return None
    hidden, heads = shaped.hidden, shaped.heads
    kv_heads = shaped.kv_heads or heads
    ffn = shaped.ffn_hidden or _UNGATED * hidden
    gated = ffn < _UNGATED * hidden or _three_matrices(row, ffn)
    config: dict[str, Any] = {
        "model_type": "llama" if gated else "gpt2" if kv_heads == heads else "nemotron",
        "hidden_size": hidden,
        "num_hidden_layers": shaped.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": row.head_dim or max(round(hidden / heads), 1),
        "intermediate_size": ffn,
        "vocab_size": row.vocab or 50257,
        "max_position_embeddings": 2048 if not gated and kv_heads == heads else _LONGEST,
    }
    if row.is_moe:
        experts = {"num_local_experts": row.n_experts, "num_experts_per_tok": row.top_k or 1}
        config |= {"model_type": "mixtral", **experts}
    elif not gated and kv_heads == heads:
        config["tie_word_embeddings"] = True
    return config


def _three_matrices(row: ServingRow, ffn: int) -> bool:
    """Whether the stated size is nearer to three feed-forward matrices a layer than to two."""
    hidden, layers, heads = row.hidden or 0, row.layers or 0, row.heads or 1
    if not (row.n_params_b and hidden and layers) or row.is_moe:
        return False
    size = row.head_dim or hidden / heads
    attention = 2 * hidden * size * (heads + (row.kv_heads or heads))
    rest = row.n_params_b * 1e9 - layers * attention - (row.vocab or 0) * hidden
    return rest / (layers * hidden * ffn) > 2.5


def _latent(row: ServingRow) -> dict[str, Any]:
    """A model with latent attention and no preset: three leading dense layers, one shared expert."""
    heads = row.heads or 128
    sizes = next((own for number, own in _LATENT_HEADS if number == heads), _LATENT_HEADS[0][1])
    return _LATENT | sizes | {
        "model_type": "deepseek_v3",
        "hidden_size": row.hidden,
        "num_hidden_layers": row.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 2 * (row.hidden or 0),
        "moe_intermediate_size": row.ffn_hidden,
        "n_routed_experts": row.n_experts,
        "num_experts_per_tok": row.top_k,
        "n_shared_experts": 1,
        "first_k_dense_replace": 3,
        "vocab_size": row.vocab,
        "max_position_embeddings": _LONGEST,
    }  # fmt: skip
