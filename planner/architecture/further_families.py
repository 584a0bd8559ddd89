"""Families without a preset, known by their config alone: rows as in `families`, held to published counts.

The counts of elements that the hub shows of their checkpoints confirm the rows: see tests/reading/test_models.py.
Granite's MoE and OLMo 3 are confirmed by their kin alone, from which they differ in routing and windows. Biases of
output heads (Phi, GPT-J; below 0.01 %) and learned values of an activation (Apertus' xIELU: four a layer) are left out.
Nemotron-H's config lists mixers and feed-forward parts one by one: two of them are a layer here. Families of 2025, of
which some name their sizes otherwise, come last: what they call them is put as others do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from planner.architecture.config import MOST, Config
from planner.architecture.families import (
    FAMILIES,
    LAYER_KINDS,
    LINEAR,
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


_LIKE_LLAMA, _DEEPSEEK = FAMILIES["llama"], FAMILIES["deepseek_v3"]
ATTENTION = (*LAYER_KINDS, "attention")
STATES = ("mamba", "mamba2", LINEAR)  # what layers of Mamba-2 are called


def put(config: Config, **values: Any) -> None:
    """Values under the names that the others use, where the config does not have them by those."""
    given = {key: value for key, value in values.items() if value is not None and not config.has(key)}
    config.data = {**config.data, **given}


def _of_all(config: Config, key: str) -> Any:
    """A value that may be listed for each layer, where all of them are the same."""
    value = config.data.get(key)
    if not isinstance(value, list):
        return value
    if not value or any(each != value[0] for each in value):
        config.fail("unknown-architecture", f"'{key}' differs between layers, which is not counted", key,
                    "a job takes model: {parameters: 8B}")  # fmt: skip
        return 1
    return value[0]


def _biased(config: Config, family: Family) -> Family:
    """`use_bias` or `bias` of all projections but those of queries, which `qkv_bias` sets where it is given."""
    bias = config.flag("use_bias", config.flag("bias", False))
    qkv = config.flag("qkv_bias", config.flag("use_qkv_bias", bias))
    return replace(family, qkv_bias=qkv, output_bias=bias, mlp_bias=bias)


def _ernie_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Ernie 4.5: layers from a first to a last one route, every so many-th; the others are dense.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("moe_num_experts", most="experts")
    width = config.count("moe_intermediate_size", most="width")
    routed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=width,
        shared_width=width * config.count("moe_num_shared_experts", most="experts", default=0, least=0),
        router_values=1,
    )
    plain = Feed(width=config.count("intermediate_size", most="width"))
    if kinds := config.kinds("mlp_layer_types", layers, ("dense", "sparse")):
        return tuple(routed if kind == "sparse" else plain for kind in kinds)
    first = config.count("moe_layer_start_index", most="layers", default=1, least=0)
    last = config.data.get("moe_layer_end_index")
    end = layers - 1 if last in (None, -1) else config.count("moe_layer_end_index", most="layers", least=0)
    step = config.count("moe_layer_interval", most="layers", default=1)
    return tuple(routed if first <= i <= end and (i + 1) % step == 0 else plain for i in range(layers))


def _ernie(config: Config, family: Family) -> Family:
    put(config, num_experts_per_tok=config.data.get("moe_k"))
    if isinstance(config.data.get("moe_num_experts"), list):  # those for words, those for pictures
        config.fail("unknown-architecture", "experts for pictures beside those for words are not counted",
                    "moe_num_experts", "a job takes model: {parameters: 8B}")  # fmt: skip
    return _biased(config, family)


def _ernie_seeing(config: Config, family: Family) -> Family:
    """Ernie 4.5 VL: of sizes that are listed the first are those of words; experts for pictures are counted there."""
    firsts = {key: value[0] for key, value in config.data.items() if key.startswith("moe_") and isinstance(value, list)
              and value}  # fmt: skip
    config.data = {**config.data, **firsts}
    return _ernie(config, family)


def _hunyuan_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Hunyuan A13B: every layer routes, with shared experts as wide as those that are chosen.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("num_experts", most="experts")
    width = config.count("expert_width", most="width")
    shared = config.count("shared_experts", most="experts", default=0, least=0)
    visited = experts_per_token(config, experts)
    return (Feed(experts=experts, experts_per_token=visited, expert_width=width, shared_width=width * shared),) * layers


def _hunyuan(config: Config, family: Family) -> Family:
    """Its sizes are listed by layer; heads have norms unless the config says otherwise."""
    put(config, num_experts_per_tok=_of_all(config, "moe_topk"), shared_experts=_of_all(config, "num_shared_expert"),
         expert_width=_of_all(config, "moe_intermediate_size") or config.data.get("intermediate_size"))  # fmt: skip
    head_norm = "head" if config.flag("use_qk_norm", True) else ""
    return replace(attention_bias(config, family), head_norm=head_norm)


def _bailing(config: Config, family: Family) -> Family:
    """Ling: the first version has neither norms of heads nor values that balance the experts."""
    put(config, n_routed_experts=config.data.get("num_experts"),
         n_shared_experts=config.data.get("num_shared_experts"))  # fmt: skip
    balanced = config.flag("moe_router_enable_expert_bias", config.flag("use_qk_norm", False))
    head_norm = "head" if config.flag("use_qk_norm", False) else ""
    return replace(_biased(config, family), head_norm=head_norm, feeds=_ling_feeds if balanced else _plain_ling_feeds)


def _ling_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Ling 2: as DeepSeek V3.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers, hidden
        Of the model.
    """
    return deepseek_feeds(config, layers, hidden)


def _plain_ling_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Ling 1: no value for each expert.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers, hidden
        Of the model.
    """
    return tuple(replace(feed, router_values=0) for feed in deepseek_feeds(config, layers, hidden))


def _exaone4_window(config: Config, layers: int) -> tuple[int, ...]:
    """EXAONE 4: windows in a pattern of letters (LLLG), but for the last layer, which sees all; none without a size."""
    if not config.has("sliding_window"):
        return (0,) * layers
    if config.has("layer_types"):
        return gemma3_window(config, layers)
    size, pattern = config.count("sliding_window", most="tokens"), config.data.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:
        kinds = [pattern[i % len(pattern)] for i in range(layers)]
        return tuple(size if kind == "L" and i < layers - 1 else 0 for i, kind in enumerate(kinds))
    return gemma3_window(config, layers)


def _granite_others(config: Config, layers: int) -> tuple[bool, ...]:
    kinds = config.kinds("layer_types", layers, (*STATES, *ATTENTION))
    return tuple(kind in STATES for kind in kinds) if kinds else (False,) * layers


def _granite_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Granite 4: an MLP for all tokens in every layer, in larger ones beside experts.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    keys = ("shared_intermediate_size", "intermediate_size")
    shared = config.count(*keys, most="width")
    experts = config.count("num_local_experts", most="experts", default=0, least=0)
    if not experts:
        return (Feed(width=shared),) * layers
    width, visited = config.count("intermediate_size", most="width"), experts_per_token(config, experts)
    feed = Feed(experts=experts, experts_per_token=visited, expert_width=width, shared_width=shared)
    return (feed,) * layers


def _granite(config: Config, family: Family) -> Family:
    """Granite 4: the names of its Mamba-2 layers put as Mamba-2's own."""
    data, size = config.data, config.data.get("mamba_d_head")
    put(config, mamba_num_heads=data.get("mamba_n_heads"), ssm_state_size=data.get("mamba_d_state", 256),
         mamba_head_dim=None if size == "auto" else size, n_groups=data.get("mamba_n_groups", 1),
         use_conv_bias=data.get("mamba_conv_bias"), use_bias=data.get("mamba_proj_bias"))  # fmt: skip
    return attention_bias(config, family)


_BAILING = Family(title="Ling", feeds=deepseek_feeds, variant=_bailing)

LATER: Mapping[str, Family] = MappingProxyType(
    {
        "apertus": Family(title="Apertus", gated=False, head_norm="head", variant=attention_bias),
        "arcee": replace(_LIKE_LLAMA, title="AFM", gated=False),
        "bailing_moe": _BAILING,
        "bailing_moe_v2": replace(_BAILING, title="Ling 2"),
        "dots1": Family(title="dots.llm1", head_norm="head", feeds=deepseek_feeds, variant=attention_bias),
        "ernie4_5": Family(title="Ernie 4.5", tied=True, head_size=128, variant=_biased),
        "ernie4_5_moe": Family(title="Ernie 4.5 MoE", tied=True, feeds=_ernie_feeds, variant=_ernie),
        "ernie4_5_moe_vl": Family(title="Ernie 4.5 VL", tied=True, feeds=_ernie_feeds, variant=_ernie_seeing),
        "ernie4_5_vl_moe_text": Family(title="Ernie 4.5 VL", tied=True, feeds=_ernie_feeds, variant=_ernie_seeing),
        "exaone4": Family(title="EXAONE 4", head_norm="head", window=_exaone4_window),
        "glm4_moe_lite": replace(_DEEPSEEK, title="GLM-4.7-Flash"),
        "granitemoehybrid": replace(_LIKE_LLAMA, title="Granite 4", other="state-space", others=_granite_others,
                                    feeds=_granite_feeds, variant=_granite),
        "hunyuan_v1_dense": Family(title="Hunyuan", feeds=dense, variant=_hunyuan),
        "hunyuan_v1_moe": Family(title="Hunyuan A13B", feeds=_hunyuan_feeds, variant=_hunyuan),
        "internlm3": Family(title="InternLM3", variant=_biased),
        "mimo": Family(title="MiMo", qkv_bias=True),
    }
)  # fmt: skip
