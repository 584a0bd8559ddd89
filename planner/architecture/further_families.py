"""Families without a preset, known by their config alone: rows as in `families`, held to published counts.

The counts of elements that the hub shows of their checkpoints confirm the rows: see tests/reading/test_models.py.
Granite's MoE and OLMo 3 are confirmed by their kin alone, from which they differ in routing and windows.
Biases of output heads (Phi, GPT-J) are left out: below 0.01 %.

Nemotron-H, whose config lists mixers and feed-forward parts one by one: two of them are a layer here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.architecture.config import MOST, Config
from planner.architecture.families import (
    FAMILIES,
    Family,
    Feed,
    attention_bias,
    deepseek_feeds,
    dense,
    every_layer_routes,
    every_layer_slides,
    experts_per_token,
    four_times,
    gemma3_window,
    qwen_moe_feeds,
)

_MIXERS, _FEEDS = "M*", "-E"  # state space and attention; dense and routed feed-forward
_BLOCK_KINDS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "mlp": "-", "moe": "E"}


def _blocks(config: Config) -> list[str]:
    """Nemotron-H: its parts in pairs, a mixer and the feed-forward part after it, where one is.

    The config counts each part as a layer of its own, with a norm before it; two of them are a layer here.
    """
    listed = config.data.get("layers_block_type")
    pattern = config.data.get("hybrid_override_pattern")
    if isinstance(listed, list) and all(isinstance(kind, str) for kind in listed):
        key, pattern = "layers_block_type", "".join(_BLOCK_KINDS.get(kind, "?") for kind in listed)
    else:
        key = "hybrid_override_pattern"
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MOST["layers"]:
        config.fail("missing-key", f"'{key}' must tell the kind of every layer", key)
        return []
    if strange := set(pattern) - {*_MIXERS, *_FEEDS}:
        message = f"'{key}' holds kinds of layers that are not counted: {', '.join(sorted(strange))[:40]}"
        config.fail("unknown-layer-kind", message, key, "counted: M (Mamba-2), * (attention), - (dense), E (experts)")
        return []
    pairs = re.findall(f"[{re.escape(_MIXERS)}][{_FEEDS}]?", pattern)
    if sum(map(len, pairs)) != len(pattern):
        message = f"'{key}' has a feed-forward layer that follows on no mixer, which is not counted"
        config.fail("unknown-layer-kind", message, key)
        return []
    return pairs


def _depth(config: Config) -> int:
    """Nemotron-H: pairs of a mixer and a feed-forward part."""
    named, pairs = config.data.get("num_hidden_layers"), _blocks(config)
    if pairs and named is not None and named != sum(map(len, pairs)):
        message = f"'num_hidden_layers' is {str(named)[:20]}, but {sum(map(len, pairs))} layers are listed"
        config.conflict("wrong-length", message, "num_hidden_layers")
    return len(pairs)


def _states(config: Config, layers: int) -> tuple[bool, ...]:
    """Nemotron-H: layers with Mamba-2."""
    return tuple(pair[0] == "M" for pair in _blocks(config))


def _feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Nemotron-H: dense, routed or none after each mixer.

    Parameters
    ----------
    config
        Its pattern of parts; what is wrong in it is noted there.
    layers, hidden
        Of the model; not looked at, since the pattern tells how many layers there are.
    """
    pairs = _blocks(config)
    kinds = {pair[1:] for pair in pairs}
    made = {"": Feed()}
    if "-" in kinds:
        made["-"] = Feed(width=config.count("intermediate_size", most="width"))
    if "E" in kinds:
        made["E"] = _experts(config)
    return tuple(made[pair[1:]] for pair in pairs)


def _experts(config: Config) -> Feed:
    if config.has("moe_latent_size"):
        config.fail("unknown-architecture", "experts behind a narrower projection are not counted", "moe_latent_size",
                    "a job takes model: {parameters: 8B}")  # fmt: skip
    experts = config.count("n_routed_experts", most="experts")
    shared = config.count("n_shared_experts", most="experts", default=1, least=0)
    return Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("moe_intermediate_size", most="width"),
        shared_width=config.count("moe_shared_expert_intermediate_size", most="width") if shared else 0,
        router_values=1,
    )


NEMOTRON_H = Family(
    title="Nemotron-H and Nemotron Nano 2 and 3",
    gated=False,
    head_size=128,
    other="state-space",
    others=_states,
    depth=_depth,
    feeds=_feeds,
    variant=attention_bias,
)


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
