"""Families whose layers differ from those of `families` in a part: hybrids, heads of several sizes, merged blocks.

Rows as in `families`; counts of transformers 5.24.0's own classes, or published ones, confirm each: see
tests/architecture/test_newest.py. Left out, each below 0.05 %: gates of one value a head (Step), norms within a
block (A.X), routes to experts that do nothing (LongCat).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
    every_other,
    experts_per_token,
    gemma3_window,
    no_feeds,
    no_other,
    qwen_linear,
)
from planner.architecture.further_families import FURTHER, LATER, put

Variant = Callable[[Config, Family], Family]
_AS_OTHERS = "a job takes model: {parameters: 8B}"


def _named(change: Variant = attention_bias, /, **names: str) -> Variant:
    """A variant whose config calls sizes otherwise: our name -> theirs."""

    def variant(config: Config, family: Family) -> Family:
        put(config, **{ours: config.data.get(theirs) for ours, theirs in names.items()})
        return change(config, family)

    return variant


def _chatglm(config: Config, family: Family) -> Family:
    """ChatGLM 2 to GLM-4: groups of keys where `multi_query_attention` is on."""
    data = config.data
    groups = data.get("multi_query_group_num") if config.flag("multi_query_attention", False) else None
    put(config, vocab_size=data.get("padded_vocab_size"), intermediate_size=data.get("ffn_hidden_size"),
        head_dim=data.get("kv_channels"), num_key_value_heads=groups)  # fmt: skip
    if not config.flag("rmsnorm", True):
        config.fail("unknown-architecture", "norms with a bias are not counted in this family", "rmsnorm", _AS_OTHERS)
    bias = config.flag("add_bias_linear", False)
    return replace(family, qkv_bias=config.flag("add_qkv_bias", False) or bias, output_bias=bias, mlp_bias=bias)


def _dbrx(config: Config, family: Family) -> Family:
    """DBRX: sizes of its experts stand in `ffn_config`, heads of keys in `attn_config`."""
    feed = config.data.get("ffn_config")
    feed = feed if isinstance(feed, Mapping) else {}
    put(config, num_local_experts=feed.get("moe_num_experts"), num_experts_per_tok=feed.get("moe_top_k"),
        intermediate_size=feed.get("ffn_hidden_size"))  # fmt: skip
    return family


def _grok_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Grok: experts in every layer; in the second one beside a dense part that every token goes through.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("num_local_experts", "num_experts", most="experts", default=8)
    width = config.count("intermediate_size", most="width")
    feed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("moe_intermediate_size", most="width", default=width),
        shared_width=width if config.flag("residual_moe", False) else 0,
    )
    return (feed,) * layers


def _minicpm_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """MiniCPM: dense, or with experts in every layer.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers, hidden
        Of the model.
    """
    feeds = every_layer_routes if config.count("num_experts", most="experts", default=0, least=0) else dense
    return feeds(config, layers, hidden)


_EXPERTS = {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts",
            "num_experts_per_tok": "num_experts_per_token", "first_k_dense_replace": "num_dense_layers"}  # fmt: skip


def _longcat(config: Config, family: Family) -> Family:
    """LongCat-Flash: of the experts that a token visits, those that do nothing are left out, by their share."""
    data = config.data
    put(config, intermediate_size=data.get("ffn_hidden_size"), moe_intermediate_size=data.get("expert_ffn_hidden_size"))
    experts = config.count("n_routed_experts", most="experts")
    idle = config.count("zero_expert_num", most="experts", default=0, least=0)
    visited = config.count("moe_topk", most="experts")
    put(config, num_experts_per_tok=max(round(visited * experts / (experts + idle)), 1))
    return attention_bias(config, family)


def _longcat_depth(config: Config) -> int:
    """LongCat-Flash: a block has attention and a dense part twice, and experts beside them once."""
    return 2 * config.count("num_layers", "num_hidden_layers", most="layers")


def _longcat_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """LongCat-Flash: every other layer has the experts of its block.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    width = config.count("intermediate_size", most="width")
    experts = config.count("n_routed_experts", most="experts")
    routed = Feed(experts=experts, experts_per_token=experts_per_token(config, experts), shared_width=width,
                  expert_width=config.count("moe_intermediate_size", most="width"), router_values=1)  # fmt: skip
    return tuple(Feed(width=width) if index % 2 else routed for index in range(layers))


def _told(*states: str) -> Callable[[Config, int], tuple[bool, ...]]:
    """Layers that `layer_types` calls one of these have the other attention; all that it calls full do not."""

    def others(config: Config, layers: int) -> tuple[bool, ...]:
        kinds = config.kinds("layer_types", layers, (*states, *LAYER_KINDS, "attention"))
        if kinds is None:
            config.conflict("missing-key", "'layer_types' must tell the kind of every layer")
            return no_other(config, layers)
        return tuple(kind in states for kind in kinds)

    return others


def _listed(config: Config, key: str, layers: int, other: Any, names: tuple[str, str]) -> None:
    """Puts `layer_types` by a list of marks, one a layer, of which `other` means the first of both names."""
    marks = config.data.get(key)
    if isinstance(marks, list) and len(marks) >= layers:  # some list the layers that guess ahead, too
        put(config, layer_types=[names[mark != other] for mark in marks[:layers]])


def _lfm2(config: Config, family: Family) -> Family:
    """LFM2: short convolutions between layers of attention; the width of its MLP is cut as Llama's was."""
    data = config.data
    layers = config.count("num_hidden_layers", most="layers")
    full = config.indices("full_attn_idxs")
    if full is not None:
        put(config, layer_types=["full_attention" if index in full else "conv" for index in range(layers)])
    if family.feeds is dense:
        width = config.count("block_ff_dim", "intermediate_size", most="width")
        if config.flag("block_auto_adjust_ff_dim", True):
            factor, multiple = data.get("block_ffn_dim_multiplier", 1.0), data.get("block_multiple_of", 256)
            factor = factor if isinstance(factor, int | float) and 0 < factor < 1000 else 1
            multiple = multiple if isinstance(multiple, int) and 0 < multiple <= MOST["width"] else 256
            width = multiple * math.ceil(int(factor * int(2 * width / 3)) / multiple)
        config.data = {**config.data, "intermediate_size": width}
    return replace(family, tied=config.flag("tie_embedding", True))


def _kimi_linear(config: Config, family: Family) -> Family:
    """Kimi Linear: layers of attention are counted from 1 in a part of its own."""
    part = config.part("linear_attn_config")
    layers = config.count("num_hidden_layers", most="layers")
    full = part.indices("full_attn_layers")
    if full is not None:
        put(config, layer_types=["full_attention" if index + 1 in full else LINEAR for index in range(layers)])
    put(config, linear_num_heads=part.data.get("num_heads"), linear_head_dim=part.data.get("head_dim"),
        linear_conv_kernel_dim=part.data.get("short_conv_kernel_size"))  # fmt: skip
    return _named(**_EXPERTS)(config, family)


def _minimax(config: Config, family: Family) -> Family:
    """MiniMax-01 and M1: layers of softmax attention are marked 1."""
    layers = config.count("num_hidden_layers", most="layers")
    _listed(config, "attn_type_list", layers, 0, (LINEAR, "full_attention"))
    return attention_bias(config, family)


def _swa_others(config: Config, layers: int) -> tuple[bool, ...]:
    """Layers with a window have heads of their own."""
    kinds = config.kinds("layer_types", layers, LAYER_KINDS)
    return tuple(kind != "full_attention" for kind in kinds) if kinds else no_other(config, layers)


def _mimo_v2(config: Config, family: Family) -> Family:
    """MiMo-V2: layers with a window are marked 1, those with experts, too."""
    layers = config.count("num_hidden_layers", most="layers")
    _listed(config, "hybrid_layer_pattern", layers, 1, ("sliding_attention", "full_attention"))
    routes = config.data.get("moe_layer_freq")
    if isinstance(routes, list):
        put(config, mlp_layer_types=["sparse" if each else "dense" for each in routes[:layers]])
        config.data = {key: value for key, value in config.data.items() if key != "moe_layer_freq"}
    put(config, sliding_window=config.data.get("sliding_window_size"), n_shared_experts=0)
    return attention_bias(config, family)


def _step(config: Config, family: Family) -> Family:
    """Step 3.5: what layers with a window have otherwise stands in a part of its own; lists go on with layers ahead."""
    data, layers = config.data, config.count("num_hidden_layers", most="layers")
    own = config.part("attention_other_setting").data
    routes = data.get("moe_layers_enum")
    if isinstance(routes, str):
        named = {int(each) for each in routes.replace(" ", "").split(",") if each.isdecimal() and len(each) < 6}
        put(config, mlp_layer_types=["sparse" if index in named else "dense" for index in range(layers)])
    if isinstance(data.get("layer_types"), list):
        config.data = {**config.data, "layer_types": data["layer_types"][:layers]}
    put(config, num_key_value_heads=data.get("num_attention_groups"), n_routed_experts=data.get("moe_num_experts"),
        num_experts_per_tok=data.get("moe_top_k"),
        shared_expert_intermediate_size=data.get("share_expert_dims") or data.get("share_expert_dim"),
        swa_num_attention_heads=own.get("num_attention_heads"), swa_head_dim=own.get("head_dim"),
        swa_num_key_value_heads=own.get("num_attention_groups"))  # fmt: skip
    return family


def _step_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Step 3.5: as DeepSeek V3, with a shared expert of its own width.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers, hidden
        Of the model.
    """
    shared = config.count("shared_expert_intermediate_size", most="width", default=0, least=0)
    feeds = deepseek_feeds(config, layers, hidden)
    return tuple(replace(feed, shared_width=shared) if feed.experts else feed for feed in feeds)


def _blocks(config: Config) -> list[tuple[int, int]]:
    """Nemotron-NAS: heads that share keys, and width of the feed-forward part, of each layer with attention.

    A layer whose attention was taken out adds its width to that of the layer before: as much is held and worked.
    """
    found: list[tuple[int, int]] = []
    hidden, blocks = config.count("hidden_size", most="width"), config.data.get("block_configs")
    if not isinstance(blocks, list) or not 0 < len(blocks) <= MOST["layers"]:
        config.fail("missing-key", "'block_configs' must tell the parts of every layer", "block_configs")
        return [(1, 1)]
    for block in blocks:
        parts = [block.get(key) if isinstance(block, Mapping) else None for key in ("attention", "ffn")]
        attention, feed = (part if isinstance(part, Mapping) else {"no_op": True} for part in parts)
        factor, group = feed.get("ffn_mult"), attention.get("n_heads_in_group")
        if any(part.get("replace_with_linear") for part in (attention, feed)):
            config.fail("unknown-architecture", "layers that a plain matrix stands in for are not counted",
                        "replace_with_linear", _AS_OTHERS)  # fmt: skip
        width = 0
        if not feed.get("no_op"):
            if not isinstance(factor, int | float) or not 0 < factor < 1000:
                config.fail("missing-key", "'ffn_mult' of a layer is missing or no factor", "ffn_mult")
                factor = 1
            width = 256 * math.ceil(int(2 * factor * hidden / 3) / 256)
        if not attention.get("no_op"):
            if isinstance(group, bool) or not isinstance(group, int) or not 0 < group <= MOST["heads"]:
                config.fail("missing-key", "'n_heads_in_group' of a layer is missing or no count", "n_heads_in_group")
                group = 1
            found.append((group, width))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + width)
        elif width:
            config.fail("unknown-layer-kind", "a first layer without attention is not counted", "block_configs")
    return found or [(1, 1)]


def _nas(config: Config, family: Family) -> Family:
    groups = {group for group, _ in _blocks(config)}
    heads = config.count("num_attention_heads", most="heads")
    if len(groups) > 1:
        config.fail("unknown-architecture", "heads of keys differ between layers, which is not counted",
                    "n_heads_in_group", _AS_OTHERS)  # fmt: skip
    config.data = {**config.data, "num_key_value_heads": max(heads // max(groups), 1)}
    return attention_bias(config, family)


def _nas_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Nemotron-NAS: a width of its own for each layer.

    Parameters
    ----------
    config
        Its blocks; what is wrong in them is noted there.
    layers, hidden
        Of the model; not looked at, since the blocks tell both.
    """
    return tuple(Feed(width=width) for _, width in _blocks(config))


def _bamba_others(config: Config, layers: int) -> tuple[bool, ...]:
    """Bamba: every layer is of Mamba-2, but for those named."""
    full = config.indices("attn_layer_indices") or frozenset()
    return tuple(index not in full for index in range(layers))


def _falcon_h1_depth(config: Config) -> int:
    """Falcon-H1: both mixers of a layer work side by side; here they are two layers, the second with the MLP."""
    return 2 * config.count("num_hidden_layers", most="layers")


def _every_second(config: Config, layers: int) -> tuple[bool, ...]:
    return tuple(index % 2 == 0 for index in range(layers))


def _falcon_h1_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Falcon-H1: an MLP after both mixers.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    width = config.count("intermediate_size", most="width")
    return tuple(Feed(width=width if index % 2 else 0) for index in range(layers))


def _mamba(config: Config, family: Family) -> Family:
    """Mamba-1: as wide inside as the file says, or so many times its hidden size; a rank may be "auto"."""
    rank = config.data.get("time_step_rank")
    config.data = {**config.data, "time_step_rank": None if rank == "auto" else rank}
    put(config, scan_width=config.data.get("intermediate_size"), scan_expand=config.data.get("expand"))
    return family


def _jamba(config: Config, family: Family) -> Family:
    """Jamba: Mamba-1 with norms of its steps, B and C, under names of its own."""
    data, rank = config.data, config.data.get("mamba_dt_rank")
    put(config, scan_expand=data.get("mamba_expand"), state_size=data.get("mamba_d_state"),
        conv_kernel=data.get("mamba_d_conv"), time_step_rank=None if rank == "auto" else rank,
        use_conv_bias=data.get("mamba_conv_bias"), use_bias=data.get("mamba_proj_bias"), scan_norms=True,
        num_key_value_heads=data.get("num_attention_heads"))  # fmt: skip
    return family


def _griffin(config: Config, family: Family) -> Family:
    """RecurrentGemma: an MLP of half the width that the file tells; keys and values of the queries have no bias."""
    width = config.count("intermediate_size", most="width")
    config.data = {**config.data, "intermediate_size": max(width // 2, 1)}
    return replace(family, qkv_bias=config.flag("attention_bias", False))


def _griffin_kinds(config: Config, layers: int) -> tuple[str, ...]:
    kinds = config.data.get("block_types", ["recurrent", "recurrent", "attention"])
    if not isinstance(kinds, list) or not kinds or not set(map(str, kinds)) <= {"recurrent", "attention"}:
        config.fail("unknown-layer-kind", "'block_types' must be a list of recurrent and attention", "block_types")
        return ("recurrent",) * layers
    return tuple(kinds[index % len(kinds)] for index in range(layers))


def _griffin_others(config: Config, layers: int) -> tuple[bool, ...]:
    return tuple(kind == "recurrent" for kind in _griffin_kinds(config, layers))


def _griffin_window(config: Config, layers: int) -> tuple[int, ...]:
    size = config.count("attention_window_size", most="tokens", default=2048)
    return tuple(size if kind == "attention" else 0 for kind in _griffin_kinds(config, layers))


def _period(config: Config, part: str, layers: int, every: int, first: int) -> tuple[bool, ...]:
    """Layers of one kind: one in so many, from an offset on."""
    period = config.count(f"{part}_layer_period", most="layers", default=every)
    offset = config.count(f"{part}_layer_offset", most="layers", default=first, least=0)
    if offset >= period:
        config.conflict("out-of-range", f"'{part}_layer_offset' {offset} is not below its period of {period}",
                        f"{part}_layer_offset")  # fmt: skip
    return tuple(index % period == offset for index in range(layers))


def _jamba_others(config: Config, layers: int) -> tuple[bool, ...]:
    return tuple(not full for full in _period(config, "attn", layers, 8, 4))


def _jamba_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Jamba: experts in every other layer, as wide as the MLP of the others.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    width = config.count("intermediate_size", most="width")
    experts = config.count("num_experts", "num_local_experts", most="experts", default=16)
    if experts == 1:
        return (Feed(width=width),) * layers
    put(config, num_experts_per_tok=2)
    routed = Feed(experts=experts, experts_per_token=experts_per_token(config, experts), expert_width=width)
    return tuple(routed if routes else Feed(width=width) for routes in _period(config, "expert", layers, 2, 1))


def _bailing_others(config: Config, layers: int) -> tuple[bool, ...]:
    """Ring-linear: the last layer of each whole group attends, and so do those that are left over."""
    group = config.count("layer_group_size", most="layers", default=1)
    return tuple((index + 1) % group != 0 and index < layers // group * group for index in range(layers))


_LLAMA, _QWEN3, _DEEPSEEK, _GLM4 = (FAMILIES[name] for name in ("llama", "qwen3_moe", "deepseek_v3", "glm4_moe"))
_STATES = LATER["granitemoehybrid"]
_LIKE_K_EXAONE = Family(title="K-EXAONE", head_norm="head", window=gemma3_window, feeds=deepseek_feeds,
                        defaults=(("sliding_window_pattern", 4),), variant=_named(**_EXPERTS))  # fmt: skip
_MINIMAX = Family(title="MiniMax-01 and M1", other="lightning", others=_told(LINEAR), feeds=every_layer_routes,
                  variant=_minimax)  # fmt: skip
_LFM2 = Family(title="LFM2", head_norm="head", other="convolution", others=_told("conv"), variant=_lfm2)
_STEP = Family(title="Step 3.5", head_norm="head", other="sliding", others=_swa_others, window=gemma3_window,
               feeds=_step_feeds, variant=_step)  # fmt: skip
_MAMBA = Family(title="Mamba", other="scan", others=every_other, feeds=no_feeds, tied=True, variant=_mamba)
_CHATGLM = Family(title="ChatGLM and GLM-4", variant=_chatglm)

NEWEST: Mapping[str, Family] = MappingProxyType(
    {
        "afmoe": Family(title="Trinity", norms=4, head_norm="head", output_gate=True, window=gemma3_window,
                        feeds=deepseek_feeds, defaults=(("sliding_window_pattern", 4),), variant=_named(**_EXPERTS)),
        "axk1": replace(_DEEPSEEK, title="A.X K1"),
        "bailing_moe_linear": replace(LATER["bailing_moe_v2"], title="Ring-linear", other="lightning",
                                      others=_bailing_others),
        "bamba": replace(_STATES, title="Bamba", others=_bamba_others, feeds=dense),
        "bitnet": replace(_LLAMA, title="BitNet", norms=3),
        "chatglm": _CHATGLM,
        "cwm": replace(_LLAMA, title="CWM", window=gemma3_window, defaults=(("sliding_window_pattern", 4),)),
        "dbrx": Family(title="DBRX", feeds=every_layer_routes, variant=_dbrx),
        "exaone_moe": _LIKE_K_EXAONE,
        "falcon_h1": replace(_STATES, title="Falcon-H1", depth=_falcon_h1_depth, others=_every_second,
                             feeds=_falcon_h1_feeds),
        "falcon_mamba": replace(_MAMBA, title="Falcon Mamba"),
        "flex_olmo": replace(FURTHER["olmoe"], title="FlexOlmo"),
        "glm": replace(FURTHER["glm4v_text"], title="GLM-4", norms=2),
        "grok-1": Family(title="Grok 1 and 2", norms=4, tied=True, feeds=_grok_feeds),
        "gpt-sw3": replace(FAMILIES["gpt2"], title="GPT-SW3"),
        "gpt_neo": replace(FAMILIES["gpt2"], title="GPT-Neo", qkv_bias=False,
                           variant=_named(lambda _, family: family, num_attention_heads="num_heads")),
        "granitemoeshared": replace(_STATES, title="Granite 3 MoE with a shared expert"),
        "helium": replace(_LLAMA, title="Helium"),
        "hy_v3": replace(_LIKE_K_EXAONE, title="Hy3", window=FAMILIES["mixtral"].window, defaults=()),
        "hyperclovax": replace(_LLAMA, title="HyperCLOVA X", variant=lambda config, family: replace(
            attention_bias(config, family), norms=4 if config.flag("use_post_norm", False) else 2)),
        "internlm": replace(LATER["internlm3"], title="InternLM"),
        "iquestcoder": replace(_LLAMA, title="IQuest-Coder"),
        "jais2": replace(_LLAMA, title="Jais 2", gated=False, layer_norm=True, qkv_bias=True, mlp_bias=True),
        "jamba": Family(title="Jamba", other="scan", others=_jamba_others, feeds=_jamba_feeds, variant=_jamba),
        "kimi_linear": replace(_DEEPSEEK, title="Kimi Linear", other="kda", others=_told(LINEAR),
                               variant=_kimi_linear),
        "lfm2": _LFM2,
        "lfm2_moe": replace(_LFM2, title="LFM2 MoE", feeds=deepseek_feeds,
                            variant=_named(_lfm2, **_EXPERTS)),
        "longcat_flash": replace(_DEEPSEEK, title="LongCat-Flash", depth=_longcat_depth, feeds=_longcat_feeds,
                                 variant=_longcat),
        "mamba": _MAMBA,
        "mimo_v2_flash": Family(title="MiMo-V2-Flash", values_apart=True, other="sliding", others=_swa_others,
                                window=gemma3_window, feeds=deepseek_feeds, variant=_mimo_v2),
        "minicpm": replace(_LLAMA, title="MiniCPM", tied=True, feeds=_minicpm_feeds),
        "minicpm3": replace(_DEEPSEEK, title="MiniCPM3", tied=True, feeds=dense),
        "minimax": _MINIMAX,
        "minimax_m1": _MINIMAX,
        "minimax_text_01": _MINIMAX,
        "mistral4": replace(_DEEPSEEK, title="Mistral Small 4"),
        "nemotron-nas": replace(_LLAMA, title="Nemotron-NAS", depth=lambda config: len(_blocks(config)),
                                feeds=_nas_feeds, variant=_nas),
        "olmo_hybrid": replace(FURTHER["olmo2"], title="OLMo Hybrid", others=qwen_linear),
        "orion": replace(_LLAMA, title="Orion", layer_norm=True),
        "phi4_multimodal": replace(FAMILIES["phi3"], title="Phi-4 Multimodal"),
        "phi4mm": replace(FAMILIES["phi3"], title="Phi-4 Multimodal"),
        "qwen2_5_omni_text": FAMILIES["qwen2"],
        "qwen3_omni_moe_text": _QWEN3,
        "recurrent_gemma": Family(title="RecurrentGemma", tied=True, output_bias=True, mlp_bias=True,
                                  other="recurrence", others=_griffin_others, window=_griffin_window,
                                  variant=_griffin),
        "sarvam_mla": replace(_DEEPSEEK, title="Sarvam"),
        "sarvam_moe": replace(_GLM4, title="Sarvam", variant=_named(_GLM4.variant, **_EXPERTS)),
        "solar_open": replace(_GLM4, title="Solar Open"),
        "step3_text": Family(title="Step3", attention="factorized", feeds=_step_feeds, variant=_step),
        "step3p5": _STEP,
        "xverse": replace(_LLAMA, title="XVERSE"),
        "youtu": replace(_DEEPSEEK, title="Youtu", tied=True, feeds=dense),
    }
)  # fmt: skip
