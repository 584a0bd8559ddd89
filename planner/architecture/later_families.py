"""Families of 2025 without a preset, some of which name their sizes otherwise: what they call them is put as others do.

The counts of elements that the hub shows of their checkpoints confirm the rows: see tests/reading/test_models.py.
Learned values of an activation (Apertus' xIELU: four a layer) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from planner.architecture.config import Config
from planner.architecture.families import (
    FAMILIES,
    LAYER_KINDS,
    Family,
    Feed,
    attention_bias,
    deepseek_feeds,
    dense,
    experts_per_token,
    gemma3_window,
)

_LLAMA, _DEEPSEEK = FAMILIES["llama"], FAMILIES["deepseek_v3"]
_ATTENTION = (*LAYER_KINDS, "attention")


def _put(config: Config, **values: Any) -> None:
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
    first = config.count("moe_layer_start_index", most="layers", default=1, least=0)
    last = config.data.get("moe_layer_end_index")
    end = layers - 1 if last in (None, -1) else config.count("moe_layer_end_index", most="layers", least=0)
    step = config.count("moe_layer_interval", most="layers", default=1)
    return tuple(routed if first <= i <= end and (i + 1) % step == 0 else plain for i in range(layers))


def _ernie(config: Config, family: Family) -> Family:
    _put(config, num_experts_per_tok=config.data.get("moe_k"))
    if isinstance(config.data.get("moe_num_experts"), list):  # those for words, those for pictures
        config.fail("unknown-architecture", "experts for pictures beside those for words are not counted",
                    "moe_num_experts", "a job takes model: {parameters: 8B}")  # fmt: skip
    return _biased(config, family)


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
    _put(config, num_experts_per_tok=_of_all(config, "moe_topk"), shared_experts=_of_all(config, "num_shared_expert"),
         expert_width=_of_all(config, "moe_intermediate_size") or config.data.get("intermediate_size"))  # fmt: skip
    head_norm = "head" if config.flag("use_qk_norm", True) else ""
    return replace(attention_bias(config, family), head_norm=head_norm)


def _bailing(config: Config, family: Family) -> Family:
    """Ling: the first version has neither norms of heads nor values that balance the experts."""
    _put(config, n_routed_experts=config.data.get("num_experts"),
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
    kinds = config.kinds("layer_types", layers, ("mamba", *_ATTENTION))
    return tuple(kind == "mamba" for kind in kinds) if kinds else (False,) * layers


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
    _put(config, mamba_num_heads=data.get("mamba_n_heads"), ssm_state_size=data.get("mamba_d_state", 256),
         mamba_head_dim=None if size == "auto" else size, n_groups=data.get("mamba_n_groups", 1),
         use_conv_bias=data.get("mamba_conv_bias"), use_bias=data.get("mamba_proj_bias"))  # fmt: skip
    return attention_bias(config, family)


_BAILING = Family(title="Ling", feeds=deepseek_feeds, variant=_bailing)

LATER: Mapping[str, Family] = MappingProxyType(
    {
        "apertus": Family(title="Apertus", gated=False, head_norm="head", variant=attention_bias),
        "arcee": replace(_LLAMA, title="AFM", gated=False),
        "bailing_moe": _BAILING,
        "bailing_moe_v2": replace(_BAILING, title="Ling 2"),
        "dots1": Family(title="dots.llm1", head_norm="head", feeds=deepseek_feeds, variant=attention_bias),
        "ernie4_5": Family(title="Ernie 4.5", tied=True, head_size=128, variant=_biased),
        "ernie4_5_moe": Family(title="Ernie 4.5 MoE", tied=True, feeds=_ernie_feeds, variant=_ernie),
        "exaone4": Family(title="EXAONE 4", head_norm="head", window=_exaone4_window),
        "glm4_moe_lite": replace(_DEEPSEEK, title="GLM-4.7-Flash"),
        "granitemoehybrid": replace(_LLAMA, title="Granite 4", other="state-space", others=_granite_others,
                                    feeds=_granite_feeds, variant=_granite),
        "hunyuan_v1_dense": Family(title="Hunyuan", feeds=dense, variant=_hunyuan),
        "hunyuan_v1_moe": Family(title="Hunyuan A13B", feeds=_hunyuan_feeds, variant=_hunyuan),
        "internlm3": Family(title="InternLM3", variant=_biased),
        "mimo": Family(title="MiMo", qkv_bias=True),
    }
)  # fmt: skip
