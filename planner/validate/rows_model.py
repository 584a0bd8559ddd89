"""The model of a measured row: that of a preset of the same shape, else of its cells, else its size alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, Config
from planner.architecture.from_config import build
from planner.architecture.load import PRESETS, coarse_model, list_presets
from planner.architecture.model import Architecture
from planner.files import read_text
from planner.validate.rows import MeasuredRow

_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")


_HEAD_SIZE = 128
_WIDTH_PER_LAYER = 128  # of dense models from 1e9 to 1e12 parameters, where only the size is known
_NAMED_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*[bB]\b")


def architecture_of(row: MeasuredRow) -> Architecture:
    """What a row ran; without its layers (`layers` empty) where the table does not give them."""
    row = with_shape(row)
    if not (row.hidden and row.layers and row.heads):
        return coarse_model(max((parameters_of(row) or 0.0), 1.0))
    config = _like_preset(row) or _own_config(row)
    return _built(json.dumps(config, sort_keys=True))


def parameters_of(row: MeasuredRow) -> float | None:
    """Parameters that a token uses: as stated, else as the model's name says; None when neither does."""
    stated = row.active_params_b or row.n_params_b
    named = _NAMED_SIZE.search(row.model or "")
    if stated is None and named is None:
        return None
    return (stated if stated is not None else float(named[1] if named else 0.0)) * 1e9


def with_shape(row: MeasuredRow) -> MeasuredRow:
    """The row with the width, depth and heads that its size implies, where it leaves them out.

    P = 12 L h^2 + V h; heads of 128; a model of unknown width is 128 times as wide as deep. Of a model that uses some
    of its parameters only, experts or a hybrid of which nothing else is known, it is the shape of those that a token
    uses: what they compute is known, what the rest costs is in the band.
    """
    if row.layers and row.heads and row.hidden:
        return row
    size = row.active_params_b if row.is_moe and not row.n_experts else row.n_params_b
    if size is None or (row.is_moe and row.n_experts):
        return row
    if row.is_moe:
        row = replace(row, hidden=None, layers=None, heads=None)
    hidden = row.hidden or _width(size * 1e9)
    body = size * 1e9 - (row.vocab or 50257) * hidden
    layers = row.layers or max(round(body / (12.0 * hidden**2)), 1)
    found = replace(row, hidden=hidden, layers=layers, heads=row.heads or max(hidden // _HEAD_SIZE, 1))
    if row.hidden:
        return found
    return replace(found, heads=max(hidden // _HEAD_SIZE, 1), kv_heads=None, ffn_hidden=None, gated_mlp=0)


def _width(parameters: float) -> int:
    layers = float((parameters / (12.0 * _WIDTH_PER_LAYER**2)) ** (1.0 / 3.0))
    return max(round(layers), 1) * _WIDTH_PER_LAYER


@lru_cache(maxsize=4096)
def _built(text: str) -> Architecture:
    return build(Config(json.loads(text), "row", text), name="row", source="measured row")


def _own_config(row: MeasuredRow) -> dict[str, Any]:
    """A config in the words of Hugging Face; unstated sizes are those of GPT-2 and Llama."""
    hidden, heads = row.hidden or 0, row.heads or 1
    config: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": row.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": row.kv_heads or heads,
        "intermediate_size": row.ffn_hidden or 4 * hidden,
        "vocab_size": row.vocab or 50257,
        "max_position_embeddings": row.seq_len or 2048,
        "tie_word_embeddings": not row.gated_mlp,
        "model_type": "llama" if row.gated_mlp else "gpt2",
    }
    if hidden % heads:
        config["head_dim"] = max(round(hidden / heads), 1)
    if row.n_experts:
        config |= {"model_type": "mixtral", "num_local_experts": row.n_experts, "num_experts_per_tok": row.top_k or 1}
    elif not row.gated_mlp and (row.kv_heads or heads) != heads:
        config |= {"model_type": "nemotron", "head_dim": hidden // heads}
    return config


def _like_preset(row: MeasuredRow) -> dict[str, Any] | None:
    """The config of the mixture-of-experts preset with the same layers: heads wider than the model, latents, ends."""
    if not row.n_experts:
        return None
    for config in expert_configs():
        width = config.get("moe_intermediate_size") or config.get("intermediate_size")
        if (config.get("hidden_size"), config.get("num_attention_heads"), width) == (
            row.hidden,
            row.heads,
            row.ffn_hidden,
        ):
            key = next(name for name in _EXPERTS if config.get(name))
            own = {name: value for name, value in config.items() if name != "layer_types"}
            return own | {
                "num_hidden_layers": row.layers,
                key: row.n_experts,
                "num_experts_per_tok": row.top_k or config.get("num_experts_per_tok"),
                "vocab_size": row.vocab or config["vocab_size"],
            }
    return None


@lru_cache(maxsize=1)
def expert_configs() -> tuple[dict[str, Any], ...]:
    """Configs of the presets that route tokens to experts."""
    texts = (read_text(PRESETS / f"{name}.json", limit_bytes=CONFIG_LIMIT_BYTES) for name in list_presets())
    configs = (json.loads(text)["config"] for text in texts)
    whole = (config.get("text_config", config) for config in configs)
    return tuple(config for config in whole if any(config.get(name) for name in _EXPERTS))
