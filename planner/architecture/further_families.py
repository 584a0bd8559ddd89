"""Families without a preset, known by their config alone: rows as in `families`, held to published counts.

The counts of elements that the hub shows of their checkpoints confirm the rows: see tests/reading/test_models.py.
Granite's MoE and OLMo 3 are confirmed by their kin alone, from which they differ in routing and windows.
Biases of output heads (Phi, GPT-J) are left out: below 0.01 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.architecture.config import Config
from planner.architecture.families import (
    FAMILIES,
    Family,
    deepseek_feeds,
    dense,
    every_layer_routes,
    every_layer_slides,
    four_times,
    gemma3_window,
    qwen_moe_feeds,
)
from planner.architecture.nemotron_h import NEMOTRON_H


def _bigcode(config: Config, family: Family) -> Family:
    """StarCoder: one head of keys and values unless `multi_query` is off."""
    if config.flag("multi_query", True):
        config.data = {**config.data, "num_key_value_heads": 1}
    return family


def _starcoder2(config: Config, family: Family) -> Family:
    bias = config.flag("use_bias", True)
    return replace(family, qkv_bias=bias, output_bias=bias, mlp_bias=bias)


def _stablelm(config: Config, family: Family) -> Family:
    """With `use_parallel_residual` the second norm is left out."""
    norms = 1 if config.flag("use_parallel_residual", False) else 2
    return replace(family, norms=norms, qkv_bias=config.flag("use_qkv_bias", False))


def _internlm2(config: Config, family: Family) -> Family:
    bias = config.flag("bias", True)
    return replace(family, qkv_bias=bias, output_bias=bias)


def _phi(config: Config, family: Family) -> Family:
    """Norms of heads in the middle of Phi-1.5's kin are as wide as a head, with biases: not seen in a checkpoint."""
    if config.flag("qk_layernorm", False):
        config.fail("unknown-architecture", "norms of heads are not counted in this family", "qk_layernorm",
                    "a job takes model: {parameters: 8B}")  # fmt: skip
    return family


def _mllama_depth(config: Config) -> int:
    """Llama 3.2 Vision: layers that look at pictures are no part of the text model."""
    layers, looking = config.count("num_hidden_layers", most="layers"), config.indices("cross_attention_layers") or ()
    if len(looking) >= layers:
        config.fail("out-of-range", "every layer looks at pictures", "cross_attention_layers")
    return max(layers - len(looking), 1)


def _glm_seeing(config: Config, family: Family) -> Family:
    """Queries, keys and values have biases unless the config says otherwise."""
    return replace(family, qkv_bias=config.flag("attention_bias", True))


_LLAMA, _QWEN2, _COHERE, _GLM4 = (FAMILIES[name] for name in ("llama", "qwen2", "cohere", "glm4_moe"))
_OLMO2 = replace(_LLAMA, title="OLMo 2", head_norm="each")
_BIASED = Family(title="Phi-1 and Phi-2", gated=False, layer_norm=True, norms=1, qkv_bias=True, output_bias=True,
                 mlp_bias=True, variant=_phi)  # fmt: skip

FURTHER: Mapping[str, Family] = MappingProxyType(
    {
        "baichuan": Family(title="Baichuan"),
        "cohere2": replace(_COHERE, title="Command R7B", window=gemma3_window,
                           defaults=(("sliding_window_pattern", 4),)),
        "deepseek": replace(_LLAMA, title="DeepSeek MoE", feeds=deepseek_feeds),
        "exaone": Family(title="Exaone 3"),
        "glm4": replace(_GLM4, title="GLM-4-0414", norms=4, feeds=dense),
        "gpt_bigcode": replace(FAMILIES["gpt2"], title="StarCoder", variant=_bigcode),
        "gptj": replace(_BIASED, title="GPT-J", qkv_bias=False, output_bias=False, feeds=four_times),
        "granite": replace(_LLAMA, title="Granite 3"),
        "glm4v_moe_text": replace(_GLM4, title="GLM-4.5V", feeds=deepseek_feeds, variant=_glm_seeing),
        "glm4v_text": replace(_GLM4, title="GLM-4.1V", norms=4, feeds=dense, variant=_glm_seeing),
        "granitemoe": replace(_LLAMA, title="Granite 3 MoE", feeds=every_layer_routes),
        "internlm2": Family(title="InternLM2", variant=_internlm2),
        "ministral3": replace(FAMILIES["mistral"], title="Ministral 3"),
        "mllama_text_model": replace(_LLAMA, title="Llama 3.2 Vision", depth=_mllama_depth),
        "nemotron_h": NEMOTRON_H,
        "olmo": replace(_LLAMA, title="OLMo", norms=0, final_norm=False),
        "olmo2": _OLMO2,
        "olmo3": replace(_OLMO2, title="OLMo 3", window=gemma3_window, defaults=(("sliding_window_pattern", 4),)),
        "olmoe": replace(_OLMO2, title="OLMoE", feeds=every_layer_routes),
        "phi": _BIASED,
        "phimoe": replace(_LLAMA, title="Phi-3.5 MoE", layer_norm=True, feeds=every_layer_routes),
        "qwen2_5_vl": replace(_QWEN2, title="Qwen 2.5 VL"),
        "qwen2_moe": replace(_QWEN2, title="Qwen 2 MoE", feeds=qwen_moe_feeds),
        "qwen2_vl": replace(_QWEN2, title="Qwen 2 VL"),
        "qwen2_vl_text": replace(_QWEN2, title="Qwen 2 VL"),
        "seed_oss": replace(_GLM4, title="Seed-OSS", feeds=dense),
        "smollm3": replace(_LLAMA, title="SmolLM 3", tied=True),
        "stablelm": Family(title="StableLM", layer_norm=True, variant=_stablelm),
        "starcoder2": Family(title="StarCoder 2", gated=False, layer_norm=True, tied=True, window=every_layer_slides,
                             variant=_starcoder2),
    }
)  # fmt: skip
