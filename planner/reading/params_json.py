"""The params.json that Mistral and Meta lay beside their weights, told in the words of a config.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NEEDED = ("dim", "n_layers", "n_heads")
_SAME = ("head_dim", "vocab_size", "sliding_window", "max_position_embeddings", "rope_theta", "q_lora_rank",
         "qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank", "v_head_dim")  # fmt: skip
_SEES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels", "patch_size",
         "image_size", "rope_theta")  # fmt: skip


def as_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json of the same shape; what `params` has not is left out, and missed where it is needed."""
    said = {
        "hidden_size": params.get("dim"), "num_hidden_layers": params.get("n_layers"),
        "num_attention_heads": params.get("n_heads"),
        "num_key_value_heads": params.get("n_kv_heads") or params.get("n_heads"),
        "intermediate_size": params.get("hidden_dim") or _feed_forward(params),
        "max_position_embeddings": params.get("max_seq_len"), "rms_norm_eps": params.get("norm_eps"),
        "tie_word_embeddings": params.get("tied_embeddings") is True,
    }  # fmt: skip
    text = said | {key: params[key] for key in _SAME if params.get(key) is not None}
    text = {"model_type": "llama" if "multiple_of" in params else "mistral"} | text
    moe = params.get("moe")
    if isinstance(moe, Mapping):
        text |= {"model_type": "mixtral", "num_local_experts": moe.get("num_experts"),
                 "num_experts_per_tok": moe.get("num_experts_per_tok")}  # fmt: skip
    if isinstance(moe, Mapping) and "kv_lora_rank" in params:
        text |= {"model_type": "deepseek_v3", "n_routed_experts": moe.get("num_experts"),
                 "moe_intermediate_size": moe.get("expert_hidden_dim"),
                 "n_shared_experts": moe.get("num_shared_experts", 0),
                 "first_k_dense_replace": moe.get("first_k_dense_replace", 0)}  # fmt: skip
        del text["num_local_experts"]
    config = {key: value for key, value in text.items() if value is not None}
    sees = params.get("vision_encoder")
    if isinstance(sees, Mapping):
        eye = {"model_type": "pixtral"} | {key: sees[key] for key in _SEES if key in sees}
        config = {"model_type": "mistral3", "text_config": config, "vision_config": eye,
                  "spatial_merge_size": sees.get("spatial_merge_size", 1),
                  "multimodal_projector_bias": sees.get("adapter_bias") is True}  # fmt: skip
    quantised = params.get("quantization")
    if isinstance(quantised, Mapping) and str(quantised.get("qformat_weight", "")).startswith("fp8"):
        config["quantization_config"] = {"quant_method": "fp8"}
    elif isinstance(quantised, Mapping):
        config["quantization_config"] = {"quant_method": "compressed-tensors"} | dict(quantised)
    return config


def _feed_forward(params: Mapping[str, Any]) -> int | None:
    """The width that Meta's code works out; None where it is not told how."""
    dim, multiple, factor = (params.get(key) for key in ("dim", "multiple_of", "ffn_dim_multiplier"))
    if not (isinstance(dim, int) and isinstance(multiple, int) and 0 < multiple <= 10**7 and 0 < dim <= 10**7):
        return None
    width = int(8 * dim / 3)
    if isinstance(factor, int | float) and 0 < factor < 1000:
        width = int(factor * width)
    return multiple * math.ceil(width / multiple)
