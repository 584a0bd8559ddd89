"""What each family fixes in code rather than in its config: one row a family, small functions for the odd ones.

Sources: the model classes of transformers 5.23.0 (`models/*/configuration_*.py` and `modeling_*.py`), for MPT
mosaicml/llm-foundry@8c8dd48, and for Molmo and Logics the code beside their checkpoints. A count that the published
checkpoints confirm is the proof of each row: see tests/architecture/ (test_architecture_counts.py, test_hybrids.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.architecture.config import Config
from planner.carriers import dataclass

SLIDING = ("sliding_attention", "chunked_attention")
LAYER_KINDS = ("full_attention", *SLIDING)
LINEAR = "linear_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The feed-forward part of one layer kind."""

    width: int = 0  # dense MLP, 0 when the layer routes
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_width: int = 0
    shared_gate: bool = False  # the shared expert's output is weighted by a value of its own for each token
    router_values: int = 0  # kept beside the router matrix, per expert


Others = Callable[[Config, int], tuple[bool, ...]]  # layers -> whether each has the other attention of the family
Window = Callable[[Config, int], tuple[int, ...]]  # layers -> window of each
Feeds = Callable[[Config, int, int], tuple[Feed, ...]]  # layers, hidden size -> feed of each


def no_window(config: Config, layers: int) -> tuple[int, ...]:
    """Every layer attends to everything before it."""
    return (0,) * layers


def no_other(config: Config, layers: int) -> tuple[bool, ...]:
    """Every layer has the same attention."""
    return (False,) * layers


def every_other(config: Config, layers: int) -> tuple[bool, ...]:
    """Mamba-2: no layer compares tokens."""
    return (True,) * layers


def qwen_linear(config: Config, layers: int) -> tuple[bool, ...]:
    """Qwen3-Next and Qwen3.5: `layer_types`, else all but every n-th layer."""
    if kinds := config.kinds("layer_types", layers, ("full_attention", LINEAR)):
        return tuple(kind == LINEAR for kind in kinds)
    every = config.count("full_attention_interval", most="layers", default=4)
    return tuple((index + 1) % every != 0 for index in range(layers))


def gemma4_global(config: Config, layers: int) -> tuple[bool, ...]:
    """Gemma 4: layers without a window; every sixth one where the config does not say."""
    if kinds := config.kinds("layer_types", layers, LAYER_KINDS):
        return tuple(kind not in SLIDING for kind in kinds)
    return tuple((index + 1) % 6 == 0 for index in range(layers))


def no_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Mamba-2: the mixer is the whole layer.

    Parameters
    ----------
    config
        Of the model; not looked at.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    return (Feed(),) * layers


def gemma4_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Gemma 4: dense, or experts with a dense block beside them that every token goes through.

    Parameters
    ----------
    config
        Of the model; what is wrong in it, or not counted, is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    for key in ("hidden_size_per_layer_input", "num_kv_shared_layers"):
        if config.count(key, most="width", default=256 if key.startswith("hidden") else 0, least=0):
            what = "embeddings of each layer" if key.startswith("hidden") else "keys and values of other layers"
            config.fail("unknown-architecture", f"'{key}' is above 0: {what} are counted by plan read, and not planned",
                        key, "a job takes model: {parameters: 8B}")  # fmt: skip
    width = config.count("intermediate_size", most="width")
    if not config.flag("enable_moe_block", False):
        return (Feed(width=width),) * layers
    experts = config.count("num_experts", most="experts")
    feed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("moe_intermediate_size", most="width"),
        shared_width=width,
        router_values=1,
    )
    return (feed,) * layers


def _windows(
    config: Config, layers: int, slides: Callable[[int], bool], *keys: str, default: int = 0
) -> tuple[int, ...]:
    """`layer_types` where the config has it, else the family's own pattern."""
    size = config.count(*(keys or ("sliding_window",)), most="tokens", default=default)
    if kinds := config.kinds("layer_types", layers, LAYER_KINDS):
        return tuple(size if kind in SLIDING else 0 for kind in kinds)
    return tuple(size if slides(index) else 0 for index in range(layers))


def every_layer_slides(config: Config, layers: int) -> tuple[int, ...]:
    """Mistral and Phi-3: one window for all layers, none when the key is absent or null."""
    return _windows(config, layers, lambda _: True)


def even_layers_slide(config: Config, layers: int) -> tuple[int, ...]:
    """Gemma 2 and gpt-oss: sliding and full layers alternate, sliding first."""
    default = 128 if config.model_type == "gpt_oss" else 4096  # defaults of the two config classes
    return _windows(config, layers, lambda index: index % 2 == 0, default=default)


def gemma3_window(config: Config, layers: int) -> tuple[int, ...]:
    """Gemma 3 and 4: every sixth layer is full."""
    pattern = config.count("sliding_window_pattern", "_sliding_window_pattern", most="layers", default=6)
    default = 512 if config.model_type == "gemma4_text" else 4096  # defaults of the two config classes
    return _windows(config, layers, lambda index: (index + 1) % pattern != 0, default=default)


def qwen_window(config: Config, layers: int) -> tuple[int, ...]:
    """Qwen 2 and 3: off unless `use_sliding_window`, then for the layers after the first ones."""
    if not config.flag("use_sliding_window", False):
        return no_window(config, layers)
    first = config.count("max_window_layers", most="layers", default=28, least=0)
    return _windows(config, layers, lambda index: index >= first)


def llama4_window(config: Config, layers: int) -> tuple[int, ...]:
    """Llama 4: rotary layers see their chunk only; every fourth layer has no rotary part and sees all.

    A chunk is taken as a window: the most a layer holds is the same, the mean it sees is at most half.
    """
    every = config.count("no_rope_layer_interval", most="layers", default=4)
    return _windows(config, layers, lambda index: (index + 1) % every != 0, "attention_chunk_size", default=8192)


def dense(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Every layer has the same MLP.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    return (Feed(width=config.count("intermediate_size", most="width")),) * layers


def four_times(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Older GPT-like models: four times the hidden size unless another width is given.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Hidden size of the model.
    """
    width = config.count("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", most="width", default=4 * hidden)
    return (Feed(width=width),) * layers


def qwen1_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Qwen 1 and Molmo: `intermediate_size` is of both gated matrices together.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    both = config.count("intermediate_size", most="width", least=2)
    if both % 2:
        config.conflict("out-of-range", f"{both} is no width of two equal matrices", "intermediate_size")
    return (Feed(width=both // 2),) * layers


def mpt_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """MPT: hidden size times the expansion ratio.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there. An `intermediate_size` that it gives wins.
    layers
        How many there are.  [count]
    hidden
        Hidden size of the model.
    """
    ratio = config.count("expansion_ratio", most="experts", default=4)
    return (Feed(width=config.count("intermediate_size", most="width", default=ratio * hidden)),) * layers


def experts_per_token(config: Config, experts: int) -> int:
    """Experts a token visits, never more than there are."""
    visited = config.count("num_experts_per_tok", "experts_per_token", "top_k_experts", most="experts")
    if visited > experts:
        config.conflict(
            "out-of-range", f"a token visits {visited} experts but the layer has {experts}", "num_experts_per_tok"
        )
    return visited


def every_layer_routes(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Mixtral, MiniMax M2 and gpt-oss: no dense layer; an expert has `intermediate_size`.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("num_local_experts", "num_experts", most="experts")
    feed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("intermediate_size", most="width"),
        router_values=1 if config.model_type in ("gpt_oss", "minimax_m2") else 0,
    )
    return (feed,) * layers


def qwen_moe_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Qwen 3 MoE and later: every `decoder_sparse_step`-th layer routes, but for those named as dense.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("num_experts", "num_local_experts", most="experts")
    routed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=config.count("moe_intermediate_size", most="width"),
        shared_width=config.count("shared_expert_intermediate_size", most="width", default=0, least=0),
        shared_gate=config.model_type != "qwen3_moe",
    )
    step = config.count("decoder_sparse_step", most="layers", default=1)
    dense_layers = config.indices("mlp_only_layers") or frozenset()
    routes = [(index + 1) % step == 0 and index not in dense_layers for index in range(layers)]
    return _mixed(config, routes, routed, "intermediate_size")


def deepseek_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """DeepSeek V2, V3 and Kimi K2: the first layers are dense, the others route and share.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there. Without `n_routed_experts` every layer is dense.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    if not config.has("n_routed_experts"):
        return dense(config, layers, hidden)
    experts = config.count("n_routed_experts", most="experts")
    width = config.count("moe_intermediate_size", most="width")
    routed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=width,
        shared_width=width * config.count("n_shared_experts", most="experts", default=0, least=0),
        router_values=0
        if config.model_type in ("deepseek", "deepseek_v2")
        else 1,  # V3 balances with a value per expert
    )
    first = config.count("first_k_dense_replace", most="layers", default=0, least=0)
    if first > layers:
        config.conflict("out-of-range", f"{first} dense layers of {layers} layers", "first_k_dense_replace")
    step = config.count("moe_layer_freq", most="layers", default=1)
    return _mixed(config, [i >= first and i % step == 0 for i in range(layers)], routed, "intermediate_size")


def llama4_feeds(config: Config, layers: int, hidden: int) -> tuple[Feed, ...]:
    """Llama 4: every n-th layer routes, with one shared expert; dense layers have a width of their own.

    Parameters
    ----------
    config
        Of the model; what is wrong in it is noted there. `moe_layers` names the layers that route where it is given.
    layers
        How many there are.  [count]
    hidden
        Of the model; not looked at.
    """
    experts = config.count("num_local_experts", most="experts")
    width = config.count("intermediate_size", most="width")
    routed = Feed(
        experts=experts,
        experts_per_token=experts_per_token(config, experts),
        expert_width=width,
        shared_width=width,
    )
    step = config.count("interleave_moe_layer_step", most="layers", default=1)
    named = config.indices("moe_layers")
    routes = [index in named if named is not None else (index + 1) % step == 0 for index in range(layers)]
    return _mixed(config, routes, routed, "intermediate_size_mlp")


def _mixed(config: Config, routes: list[bool], routed: Feed, dense_key: str) -> tuple[Feed, ...]:
    """Routed and dense layers, told by `mlp_layer_types` where it is there; a dense width only where it is needed."""
    if kinds := config.kinds("mlp_layer_types", len(routes), ("dense", "sparse")):
        routes = [kind == "sparse" for kind in kinds]
    if all(routes):
        return (routed,) * len(routes)
    plain = Feed(width=config.count(dense_key, most="width"))
    return tuple(routed if route else plain for route in routes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A row: what the code of the family fixes. Flags may be changed by the config through `variant`."""

    title: str
    attention: str = "gqa"  # gqa | mla | factorized (queries made in two steps, of one head of keys)
    gated: bool = True
    layer_norm: bool = False  # norms have a bias
    norms: int = 2  # full-width norms of a layer; one less where it has no feed-forward part
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_norm: str = ""  # "" | head: one norm for all heads | each: one per head
    sinks: bool = False  # one learned attention sink per query head
    output_gate: bool = False  # the query projection also gives a gate for the output of attention
    values_apart: bool = False  # heads of values have a size of their own, v_head_dim
    other: str = "delta"  # what attention `others` have: a key of what from_config makes
    others: Others = no_other
    depth: Callable[[Config], int] | None = None  # where layers are told by a pattern, not by their number
    tied: bool = False
    position_extra: int | None = None  # learned positions, with so many rows beyond the maximum
    embedding_norm: bool = False
    final_norm: bool = True
    head_size: int | None = None  # default when the config does not say; else hidden / heads
    window: Window = no_window
    feeds: Feeds = dense
    defaults: tuple[tuple[str, int], ...] = ()  # keys that published configs leave to the class
    variant: Callable[[Config, Family], Family] = lambda _, family: family


def attention_bias(config: Config, family: Family) -> Family:
    """`attention_bias` sets all four projections, `mlp_bias` the MLP (Llama and its kin)."""
    bias = config.flag("attention_bias", family.qkv_bias)
    return replace(family, qkv_bias=bias, output_bias=bias, mlp_bias=config.flag("mlp_bias", family.mlp_bias))


def _falcon(config: Config, family: Family) -> Family:
    """Parallel blocks share one norm, but the new decoder has one for each branch."""
    parallel, new = config.flag("parallel_attn", True), config.flag("new_decoder_architecture", False)
    default = 2 if new or not parallel else 1
    norms = config.count("num_ln_in_parallel_attn", most="experts", default=default) if new else default
    bias = config.flag("bias", False)
    return replace(family, norms=norms, qkv_bias=bias, output_bias=bias, mlp_bias=bias)


def _mpt(config: Config, family: Family) -> Family:
    """`no_bias` also takes the bias off the norms; without ALiBi positions are learned."""
    bias = not config.flag("no_bias", True)
    alibi = config.part("attn_config").flag("alibi", config.flag("alibi", True))
    extra = None if alibi else 0
    return replace(family, layer_norm=bias, qkv_bias=bias, output_bias=bias, mlp_bias=bias, position_extra=extra)


def _opt(config: Config, family: Family) -> Family:
    bias = config.flag("enable_bias", True)
    final = config.flag("do_layer_norm_before", True) and not config.flag("_remove_final_layer_norm", False)
    return replace(family, qkv_bias=bias, output_bias=bias, mlp_bias=bias, final_norm=final)


def _glm4_moe(config: Config, family: Family) -> Family:
    """GLM-4.5: biases of queries, keys and values only; the large one has norms of heads."""
    head_norm = "head" if config.flag("use_qk_norm", False) else ""
    return replace(family, qkv_bias=config.flag("attention_bias", False), head_norm=head_norm)


def _cohere(config: Config, family: Family) -> Family:
    head_norm = "each" if config.flag("use_qk_norm", False) else ""
    return replace(attention_bias(config, family), head_norm=head_norm)


def _gemma4(config: Config, family: Family) -> Family:
    """With experts: two norms more after the blocks, one before the experts, and the scale of the router's input."""
    return replace(attention_bias(config, family), norms=8 if config.flag("enable_moe_block", False) else 4)


def _molmo(config: Config, family: Family) -> Family:
    """As the code of the released checkpoints: norms over all heads where asked for, tied by a key of its own."""
    head_norm = "each" if config.flag("attention_layer_norm", False) else ""
    tied = config.flag("weight_tying", False)
    return replace(family, head_norm=head_norm, qkv_bias=config.flag("qkv_bias", False), tied=tied)


def _qwen_hybrid(config: Config, family: Family) -> Family:
    """Full attention is gated unless the config says otherwise."""
    return replace(attention_bias(config, family), output_gate=config.flag("attn_output_gate", True))


_GPT = Family(
    title="GPT-2 and GPT-3",
    gated=False,
    layer_norm=True,
    qkv_bias=True,
    output_bias=True,
    mlp_bias=True,
    tied=True,
    feeds=four_times,
)
_LLAMA = Family(title="Llama 1 to 3", variant=attention_bias)
_GEMMA = Family(title="Gemma 1", tied=True, head_size=256, variant=attention_bias)
_DEEPSEEK = Family(title="DeepSeek V2", attention="mla", feeds=deepseek_feeds, variant=attention_bias)
_QWEN3 = Family(title="Qwen 3", head_norm="head", head_size=128, window=qwen_window, variant=attention_bias)
_QWEN35 = Family(title="Qwen 3.5", head_norm="head", head_size=256, others=qwen_linear, variant=_qwen_hybrid)
_QWEN35_MOE = replace(_QWEN35, title="Qwen 3.5 MoE", feeds=qwen_moe_feeds)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "bloom": replace(_GPT, title="BLOOM", embedding_norm=True),
        "cohere": Family(title="Command R", norms=1, tied=True, variant=_cohere),
        "deepseek_v2": _DEEPSEEK,
        "deepseek_v3": replace(_DEEPSEEK, title="DeepSeek V3 and R1"),
        "deepseek_v32": replace(_DEEPSEEK, title="DeepSeek V3.2"),
        "falcon": Family(title="Falcon", gated=False, layer_norm=True, tied=True, feeds=four_times, variant=_falcon),
        "gemma": _GEMMA,
        "gemma2": replace(_GEMMA, title="Gemma 2", norms=4, window=even_layers_slide),
        "gemma3_text": replace(
            _GEMMA,
            title="Gemma 3",
            norms=4,
            head_norm="head",
            window=gemma3_window,
            defaults=(("vocab_size", 262208), ("num_attention_heads", 8), ("num_key_value_heads", 4)),
        ),
        "gemma4_text": replace(
            _GEMMA,
            title="Gemma 4",
            head_norm="head",
            other="global",
            others=gemma4_global,
            window=gemma3_window,
            feeds=gemma4_feeds,
            variant=_gemma4,
        ),
        "glm4_moe": Family(title="GLM-4.5 to 4.7", feeds=deepseek_feeds, variant=_glm4_moe),
        "glm_moe_dsa": replace(_DEEPSEEK, title="GLM-5"),
        "gpt2": replace(_GPT, position_extra=0),
        "gpt_neox": replace(_GPT, title="GPT-NeoX and Pythia", tied=False, variant=attention_bias),
        "gpt_oss": Family(
            title="gpt-oss",
            head_size=64,
            qkv_bias=True,
            mlp_bias=True,
            sinks=True,
            window=even_layers_slide,
            feeds=every_layer_routes,
            variant=attention_bias,
        ),
        "kimi_k2": replace(_DEEPSEEK, title="Kimi K2"),
        "llama": _LLAMA,
        "llama4_text": replace(_LLAMA, title="Llama 4", head_size=128, window=llama4_window, feeds=llama4_feeds),
        "logics": replace(_QWEN3, title="Logics"),
        "mamba2": Family(title="Mamba-2", other="state-space", others=every_other, feeds=no_feeds),
        "minimax_m2": Family(title="MiniMax M2", head_norm="each", feeds=every_layer_routes),
        "mistral": Family(title="Mistral", window=every_layer_slides),
        "mixtral": Family(title="Mixtral", window=every_layer_slides, feeds=every_layer_routes),
        "molmo": Family(title="Molmo", feeds=qwen1_feeds, variant=_molmo),
        "mpt": Family(title="MPT", gated=False, tied=True, feeds=mpt_feeds, variant=_mpt),
        "nemotron": Family(title="Nemotron 3 and 4", gated=False, layer_norm=True, variant=attention_bias),
        "opt": replace(_GPT, title="OPT", position_extra=2, variant=_opt),
        "phi3": Family(title="Phi-3", window=every_layer_slides),
        "qwen": Family(title="Qwen 1", qkv_bias=True, feeds=qwen1_feeds),
        "qwen2": Family(title="Qwen 2 and 2.5", qkv_bias=True, window=qwen_window),
        "qwen2_5_vl_text": Family(title="Qwen 2.5 VL", qkv_bias=True, window=qwen_window),
        "qwen3": _QWEN3,
        "qwen3_5_moe_text": _QWEN35_MOE,
        "qwen3_5_text": _QWEN35,
        "qwen3_moe": replace(_QWEN3, title="Qwen 3 MoE", head_size=None, feeds=qwen_moe_feeds),
        "qwen3_next": replace(_QWEN35_MOE, title="Qwen3-Next"),
        "qwen3_vl_moe_text": replace(_QWEN3, title="Qwen3-VL MoE", feeds=qwen_moe_feeds),
        "qwen3_vl_text": replace(_QWEN3, title="Qwen3-VL"),
    }
)
