"""From a config and the row of its family to an Architecture; every count comes from EQ-PAR-*."""

from __future__ import annotations

import difflib
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.architecture.config import Config
from planner.architecture.counted import why_counted
from planner.architecture.encoders import is_encoder
from planner.architecture.families import FAMILIES, Family, Feed
from planner.architecture.further_families import FURTHER, LATER
from planner.architecture.model import SCAN, Architecture, LayerGroup
from planner.architecture.newest_families import NEWEST
from planner.carriers import dataclass
from planner.equations import kinds_of_attention as lin
from planner.equations import parameters as par
from planner.equations.kinds_of_attention import index_parameters

LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN_KEYS = ("hidden_size", "n_embd", "d_model", "n_embed")
HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads")
KV_HEAD_KEYS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
KNOWN: Mapping[str, Family] = MappingProxyType({**FAMILIES, **FURTHER, **LATER, **NEWEST})
# of a text model within another config: files leave out what the classes of transformers 4 say by themselves
_SHAPE_4096 = (("vocab_size", 32000), ("hidden_size", 4096), ("num_hidden_layers", 32), ("num_attention_heads", 32))
_INSIDE: Mapping[str, tuple[tuple[str, int], ...]] = MappingProxyType(
    {
        "llama": (*_SHAPE_4096, ("intermediate_size", 11008)),
        "qwen2": (("vocab_size", 151936), *_SHAPE_4096[1:], ("intermediate_size", 22016), ("num_key_value_heads", 32)),
        "mistral": (*_SHAPE_4096, ("intermediate_size", 14336), ("num_key_value_heads", 8)),
    }
)
POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attention:
    """Sizes and counts of the attention of every layer."""

    kind: str
    query_heads: int
    kv_heads: int
    head_size: int
    value_head_size: int
    kv_rank: int = 0
    query_rank: int = 0
    rope_size: int = 0
    index: tuple[int, int, int] = (0, 0, 0)  # heads, head size, tokens of a sparse attention
    output_gate: bool = False
    kernel_tokens: int = 0
    chunk_tokens: int = 0
    values_of_keys: bool = False
    weights: int  # matrices only
    parameters: int  # with biases, head norms, latent norms, sinks, convolution and decay


def build(config: Config, *, name: str, source: str) -> Architecture:
    """The architecture of a config; InputError with every problem found.

    Parameters
    ----------
    config
        Of the model; what its family leaves to the code is filled into it.
    name
        Of the architecture.
    source
        Where its counts come from, in words.

    Raises
    ------
    InputError
        Its family is not known, or numbers are missing, out of range or contradict each other.
    """
    family = family_of(config)
    for key, value in (*family.defaults, *(_INSIDE.get(config.model_type, ()) if config.inside else ())):
        if not config.has(key):
            config.data = {**config.data, key: value}
    family = family.variant(config, family)
    hidden = config.count(*HIDDEN_KEYS, most="width")
    layer_count = family.depth(config) if family.depth else config.count(*LAYER_KEYS, most="layers")
    vocab = config.count("vocab_size", most="width")
    positions = config.count(*POSITION_KEYS, most="tokens", default=0, least=0)
    tied = config.tied(family.tied) or without_head(config)
    table_width = config.count("word_embed_proj_dim", most="width", default=hidden)
    if family.position_extra is not None and not positions:
        config.fail("missing-key", f"'{POSITION_KEYS[0]}' is missing: this family learns its positions")
    others = family.others(config, layer_count)
    makers = {False: _attention, True: _OTHER[family.other]}
    by_kind = {kind: makers[kind](config, family, hidden) for kind in dict.fromkeys(others)}
    windows = family.window(config, layer_count)
    feeds = family.feeds(config, layer_count, hidden)
    config.check()
    layers = _groups(family, hidden, [by_kind[kind] for kind in others], windows, feeds)
    learned = positions + family.position_extra if family.position_extra is not None else 0
    return _assemble(
        name=name,
        family=config.model_type,
        source=source,
        hidden=hidden,
        vocab=vocab,
        tied=tied,
        positions=positions,
        learned=learned,
        table_width=table_width,
        norms=int(family.final_norm) + int(family.embedding_norm),
        norm_bias=family.layer_norm,
        layers=layers,
    )


def without_head(config: Config) -> bool:
    """Whether the class of the checkpoint has no output head of words: it embeds, or rates."""
    made = config.outer.get("architectures")
    name = str(made[0]) if isinstance(made, list) and made else ""
    if config.inside and not name.endswith("ForRetrieval"):  # ColPali and its kin
        return False
    base = name.endswith("Model") and not name.endswith("LMHeadModel")
    return base or name.endswith(("ForRetrieval", "ForSequenceClassification", "ForTokenClassification"))


def family_of(config: Config) -> Family:
    """The row of the config's model_type; InputError[unknown-architecture] by name otherwise."""
    model_type = config.model_type
    if model_type in KNOWN:
        return KNOWN[model_type]
    near = difflib.get_close_matches(model_type, KNOWN, n=3, cutoff=0.6)
    known = f"known: {', '.join(sorted(KNOWN))}"
    hint = f"{', '.join(near)}?  ·  {known}" if near else known
    hint += "  ·  a job takes model: {parameters: 8B}; plan read *.safetensors counts weights of any family"
    what = f"'{model_type[:60]}' is not known" if model_type else "'model_type' is missing"
    if is_encoder(model_type):
        what = f"'{model_type}' is or has an encoder, and decoders alone are planned"
        hint = f"plan read {shlex.quote(config.file)} counts its parameters"
    elif why := why_counted(config):
        what = f"'{model_type}' is counted and not planned: {why}"
        hint = f"plan read {shlex.quote(config.file)} counts its parameters; a job takes model: {{parameters: 8B}}"
    parts = [key for key, part in config.outer.items() if isinstance(part, Mapping) and "model_type" in part]
    if parts and not config.inside:
        hint = (
            f"its parts are told apart ({', '.join(parts)[:200]}): save the one of its text as a config.json  ·  {hint}"
        )
    config.problems.clear()
    config.fail("unknown-architecture", what, "model_type" if model_type else "", hint)
    config.check()
    raise AssertionError("unreachable")


def _attention(config: Config, family: Family, hidden: int) -> _Attention:
    heads = config.count(*HEAD_KEYS, most="heads")
    if family.attention == "mla":
        return _latent_attention(config, family, hidden, heads)
    if family.attention == "factorized":
        return _factorized_attention(config, family, hidden, heads)
    kv_heads = _kv_heads(config, heads)
    if heads % kv_heads:
        message = f"{heads} query heads cannot share {kv_heads} key-value heads evenly"
        config.conflict("heads-not-divisible", message, next((key for key in KV_HEAD_KEYS if config.has(key)), ""))
    head_size = _head_size(config, family, hidden, heads)
    value_size = config.count("v_head_dim", most="width", default=head_size) if family.values_apart else head_size
    wider = (value_size - head_size) * (heads + kv_heads) * hidden
    shape = (hidden, heads, kv_heads, head_size)
    extra = {"": 0, "head": 2 * head_size, "each": (heads + kv_heads) * head_size}[family.head_norm]
    biased = par.attention_parameters(*shape, qkv_bias=family.qkv_bias, output_bias=family.output_bias)
    gate = hidden * heads * head_size if family.output_gate else 0  # as wide as the queries
    gate_bias = heads * head_size if family.output_gate and family.qkv_bias else 0
    return _Attention(
        kind="gqa",
        query_heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        value_head_size=value_size,
        output_gate=family.output_gate,
        weights=int(par.attention_parameters(*shape)) + wider + gate,
        parameters=int(biased) + wider + gate + gate_bias + extra + (heads if family.sinks else 0),
    )


def _global_attention(config: Config, family: Family, hidden: int) -> _Attention:
    """Gemma 4: layers that see everything have wider heads and fewer of keys, whose projection gives the values too."""
    heads = config.count(*HEAD_KEYS, most="heads")
    shared = config.flag("attention_k_eq_v", False)
    own = ("num_global_key_value_heads",) if shared and config.has("num_global_key_value_heads") else KV_HEAD_KEYS
    kv_heads = config.count(*own, most="heads")
    size = config.count("global_head_dim", most="width", default=512)
    if heads % kv_heads:
        config.conflict("heads-not-divisible", f"{heads} query heads cannot share {kv_heads} key-value heads evenly",
                        own[0])  # fmt: skip
    unmade = hidden * kv_heads * size if shared else 0  # the projection of values that there is not
    weights = int(par.attention_parameters(hidden, heads, kv_heads, size)) - unmade
    return _Attention(
        kind="gqa",
        query_heads=heads,
        kv_heads=kv_heads,
        head_size=size,
        value_head_size=size,
        values_of_keys=shared,
        weights=weights,
        parameters=weights + 2 * size,
    )


def _state_space(config: Config, family: Family, hidden: int) -> _Attention:
    """Mamba-2 by itself, and the same layers of Nemotron-H and Granite 4 under names of their own."""
    hybrid = config.model_type in _HYBRIDS
    heads = config.count(*(("mamba_num_heads",) if hybrid else ("num_heads",)), most="heads", default=128)
    size = config.count(*(("mamba_head_dim",) if hybrid else ("head_dim",)), most="width", default=64)
    state = config.count(*(("ssm_state_size",) if hybrid else ("state_size",)), most="width", default=128)
    groups = config.count("n_groups", "mamba_n_groups", most="heads", default=8)
    kernel = config.count("conv_kernel", "mamba_d_conv", most="tokens", default=4)
    chunk = config.count("chunk_size", "mamba_chunk_size", most="tokens", default=128 if hybrid else 256)
    if heads % groups:
        config.conflict("heads-not-divisible", f"{heads} heads cannot share {groups} groups evenly", "n_groups")
    if not hybrid and heads * size != hidden * config.count("expand", most="width", default=2):
        message = f"{heads} heads of {size} are not as wide as 'expand' times the hidden size"
        config.conflict("heads-not-divisible", message, "num_heads")
    shape = (hidden, groups, heads, state, size)
    biases = (config.flag("use_conv_bias", True), config.flag("use_bias", False))
    return _Attention(
        kind="linear",
        query_heads=heads,
        kv_heads=groups,
        head_size=state,
        value_head_size=size,
        output_gate=True,
        kernel_tokens=kernel,
        chunk_tokens=chunk,
        weights=int(lin.state_space_matrix_parameters(*shape)),
        parameters=int(lin.state_space_parameters(*shape, kernel, *map(int, biases))),
    )


def _scan(config: Config, family: Family, hidden: int) -> _Attention:
    """Mamba-1: every channel is a head of one value, and all share what writes into their states and reads of them."""
    wide = hidden * config.count("scan_expand", most="width", default=2)
    channels = config.count("scan_width", most="width", default=wide)
    state = config.count("state_size", most="width", default=16)
    kernel = config.count("conv_kernel", most="tokens", default=4)
    rank = config.count("time_step_rank", most="width", default=-(-hidden // 16))
    biases = (config.flag("use_conv_bias", True), config.flag("use_bias", False))
    shape = (hidden, channels, state, rank)
    norms = rank + 2 * state if config.flag("scan_norms", False) else 0
    return _Attention(
        kind="linear",
        query_heads=channels,
        kv_heads=1,
        head_size=state,
        value_head_size=1,
        output_gate=True,
        kernel_tokens=kernel,
        chunk_tokens=SCAN,
        weights=int(lin.selective_scan_matrix_parameters(*shape)),
        parameters=int(lin.selective_scan_parameters(*shape, kernel, *map(int, biases))) + norms,
    )


def _recurrence(config: Config, family: Family, hidden: int) -> _Attention:
    """RecurrentGemma: a decayed value of each channel, whose gates are matrices as narrow as a head."""
    heads = config.count(*HEAD_KEYS, most="heads")
    width = config.count("lru_width", most="width", default=hidden)
    kernel = config.count("conv1d_width", most="tokens", default=4)
    if width % heads:
        config.conflict("heads-not-divisible", f"'lru_width' {width} is not a multiple of {heads} heads", "lru_width")
    weights = 3 * hidden * width + 2 * width * (width // heads)
    return _Attention(
        kind="linear",
        query_heads=width,
        kv_heads=1,
        head_size=1,
        value_head_size=1,
        output_gate=True,
        kernel_tokens=kernel,
        chunk_tokens=SCAN,
        weights=weights,
        parameters=weights + (6 + kernel) * width + hidden,
    )


def _linear_attention(config: Config, family: Family, hidden: int) -> _Attention:
    """Gated delta rule; defaults are those of the config classes of Qwen3-Next and Qwen3.5."""
    key_heads = config.count("linear_num_key_heads", most="heads", default=16)
    value_heads = config.count("linear_num_value_heads", most="heads", default=32)
    key_size = config.count("linear_key_head_dim", most="width", default=128)
    value_size = config.count("linear_value_head_dim", most="width", default=128)
    kernel = config.count("linear_conv_kernel_dim", most="tokens", default=4)
    if value_heads % key_heads:
        message = f"{value_heads} value heads cannot share {key_heads} key heads evenly"
        config.conflict("heads-not-divisible", message, "linear_num_key_heads")
    shape = (hidden, key_heads, value_heads, key_size, value_size)
    return _Attention(
        kind="linear",
        query_heads=value_heads,
        kv_heads=key_heads,
        head_size=key_size,
        value_head_size=value_size,
        output_gate=True,
        kernel_tokens=kernel,
        weights=int(lin.linear_attention_matrix_parameters(*shape)),
        parameters=int(lin.linear_attention_parameters(*shape, kernel)),
    )


def _kimi_delta(config: Config, family: Family, hidden: int) -> _Attention:
    """Kimi Delta Attention: a decay of every channel, made as the gate is, by two matrices as narrow as a head."""
    heads = config.count("linear_num_heads", most="heads", default=32)
    size = config.count("linear_head_dim", most="width", default=128)
    kernel = config.count("linear_conv_kernel_dim", most="tokens", default=4)
    shape, wide = (hidden, heads, heads, size, size), heads * size
    apart = 2 * size * (hidden + wide) - hidden * (wide + heads)  # in place of a gate and a decay of each head
    return _Attention(
        kind="linear",
        query_heads=heads,
        kv_heads=heads,
        head_size=size,
        value_head_size=size,
        output_gate=True,
        kernel_tokens=kernel,
        weights=int(lin.linear_attention_matrix_parameters(*shape)) + apart,
        parameters=int(lin.linear_attention_parameters(*shape, kernel)) + apart + wide - heads,
    )


def _lightning(config: Config, family: Family, hidden: int) -> _Attention:
    """Lightning attention: a decayed state without a convolution, its output normed and gated."""
    heads = config.count(*HEAD_KEYS, most="heads")
    size = _head_size(config, family, hidden, heads)
    weights = 5 * hidden * heads * size  # queries, keys, values, the gate and the output
    return _Attention(
        kind="linear",
        query_heads=heads,
        kv_heads=heads,
        head_size=size,
        value_head_size=size,
        output_gate=True,
        kernel_tokens=1,
        chunk_tokens=config.count("block_size", most="tokens", default=256),
        weights=weights,
        parameters=weights + heads * size + (2 * size if family.head_norm == "head" else 0),
    )


def _convolution(config: Config, family: Family, hidden: int) -> _Attention:
    """LFM2: a gated convolution over a few tokens keeps these alone, as a state of no keys."""
    heads = config.count(*HEAD_KEYS, most="heads")
    kernel = config.count("conv_L_cache", most="tokens", default=3)
    biases = 5 * hidden if config.flag("conv_bias", False) else 0
    return _Attention(
        kind="linear",
        query_heads=heads,
        kv_heads=_kv_heads(config, heads),
        head_size=0,
        value_head_size=max(hidden // heads, 1),
        output_gate=True,
        kernel_tokens=kernel,
        weights=4 * hidden * hidden,
        parameters=4 * hidden * hidden + kernel * hidden + biases,
    )


def _sliding(config: Config, family: Family, hidden: int) -> _Attention:
    """Layers with a window whose heads are told apart, by the keys of the others behind `swa_`."""
    own = {key.removeprefix("swa_"): value for key, value in config.data.items() if key.startswith("swa_") and value}
    config.data, kept = {**config.data, **own}, config.data
    made = _attention(config, family, hidden)
    config.data = kept
    return made


_HYBRIDS = ("nemotron_h", "granitemoehybrid", "granitemoeshared", "bamba", "falcon_h1")  # Mamba-2 beside attention
_OTHER: Mapping[str, Callable[[Config, Family, int], _Attention]] = MappingProxyType(
    {
        "delta": _linear_attention,
        "state-space": _state_space,
        "scan": _scan,
        "recurrence": _recurrence,
        "global": _global_attention,
        "kda": _kimi_delta,
        "lightning": _lightning,
        "convolution": _convolution,
        "sliding": _sliding,
    }
)


def _kv_heads(config: Config, heads: int) -> int:
    if config.model_type == "falcon" and not config.flag("new_decoder_architecture", False):
        return 1 if config.flag("multi_query", True) else heads  # as its class does, whatever num_kv_heads says
    grouped = config.part("attn_config")
    if grouped.has("kv_n_heads"):  # MPT
        return grouped.count("kv_n_heads", most="heads")
    return config.count(*KV_HEAD_KEYS, most="heads", default=heads)


def _head_size(config: Config, family: Family, hidden: int, heads: int) -> int:
    keys = ("head_dim", "attention_head_dim")
    if config.has(*keys) or family.head_size is not None:
        return config.count(*keys, most="width", default=family.head_size)
    if hidden % heads:
        message = f"hidden size {hidden} is not a multiple of {heads} heads, and 'head_dim' is missing"
        config.conflict("heads-not-divisible", message, next((key for key in HEAD_KEYS if config.has(key)), ""))
    return max(hidden // heads, 1)


def _factorized_attention(config: Config, family: Family, hidden: int, heads: int) -> _Attention:
    """Step3: queries of all heads are made of a narrower one that is normed, and share a head of keys and values."""
    size = _head_size(config, family, hidden, heads)
    rank = config.count("share_q_dim", most="width", default=size)
    weights = hidden * (rank + 2 * size) + rank * heads * size + heads * size * hidden
    return _Attention(
        kind="gqa",
        query_heads=heads,
        kv_heads=1,
        head_size=size,
        value_head_size=size,
        weights=weights,
        parameters=weights + rank,
    )


def _latent_attention(config: Config, family: Family, hidden: int, heads: int) -> _Attention:
    query_rank = config.count("q_lora_rank", most="width", default=0, least=0)
    kv_rank = config.count("kv_lora_rank", most="width")
    nope = config.count("qk_nope_head_dim", most="width")
    rope = config.count("qk_rope_head_dim", most="width")
    value = config.count("v_head_dim", most="width")
    index = _index(config)
    choosing = int(index_parameters(hidden, query_rank or hidden, *index[:2]))
    weights = int(par.mla_parameters(hidden, heads, query_rank, kv_rank, nope, rope, value)) + choosing
    biases = query_rank + kv_rank + rope + hidden if family.qkv_bias else 0
    return _Attention(
        kind="mla",
        query_heads=heads,
        kv_heads=1,
        head_size=nope + rope,
        value_head_size=value,
        kv_rank=kv_rank,
        query_rank=query_rank,
        rope_size=rope,
        index=index,
        weights=weights,
        parameters=weights + biases + int(par.norm_parameters(query_rank + kv_rank, 1)) + 2 * index[1],
    )


def _index(config: Config) -> tuple[int, int, int]:
    """Heads, head size and chosen tokens of a sparse attention; zeros of one that reads all."""
    if not config.has("index_topk"):
        return (0, 0, 0)
    heads = config.count("index_n_heads", most="heads")
    return (heads, config.count("index_head_dim", most="width"), config.count("index_topk", most="tokens"))


def _groups(
    family: Family, hidden: int, attentions: list[_Attention], windows: tuple[int, ...], feeds: tuple[Feed, ...]
) -> tuple[LayerGroup, ...]:
    """Equal layers counted together, in the order in which each kind first appears."""
    counts = Counter(zip(attentions, windows, feeds, strict=True))
    return tuple(_group(family, hidden, *kind, count) for kind, count in counts.items())


def _group(family: Family, hidden: int, attention: _Attention, window: int, feed: Feed, count: int) -> LayerGroup:
    gated, bias = family.gated, family.mlp_bias
    dense_width = feed.width + feed.shared_width
    mlp = int(par.mlp_parameters(hidden, dense_width, gated, bias)) if dense_width else 0
    mlp_weights = int(par.mlp_parameters(hidden, dense_width, gated)) if dense_width else 0
    routed = (hidden, feed.expert_width)
    gate = hidden if feed.shared_gate and feed.shared_width else 0
    norms = family.norms if dense_width or feed.experts else family.norms - 1  # none before what there is not
    router = int(par.router_parameters(hidden, feed.experts, feed.router_values)) + gate
    visited_weights = int(par.expert_parameters(*routed, feed.experts_per_token, gated))
    return LayerGroup(
        count=count,
        attention=attention.kind,
        query_heads=attention.query_heads,
        kv_heads=attention.kv_heads,
        head_size=attention.head_size,
        value_head_size=attention.value_head_size,
        kv_rank=attention.kv_rank,
        query_rank=attention.query_rank,
        rope_size=attention.rope_size,
        index_heads=attention.index[0],
        index_size=attention.index[1],
        index_tokens=attention.index[2],
        output_gate=attention.output_gate,
        kernel_tokens=attention.kernel_tokens,
        chunk_tokens=attention.chunk_tokens,
        values_of_keys=attention.values_of_keys,
        window_tokens=window,
        mlp="moe" if feed.experts else "dense",
        mlp_width=feed.width,
        gated=gated,
        experts=feed.experts,
        experts_per_token=feed.experts_per_token,
        expert_width=feed.expert_width,
        shared_expert_width=feed.shared_width,
        attention_parameters=attention.parameters,
        mlp_parameters=mlp,
        expert_parameters=int(par.expert_parameters(*routed, feed.experts, gated, bias)),
        active_expert_parameters=int(par.expert_parameters(*routed, feed.experts_per_token, gated, bias)),
        router_parameters=router,
        norm_parameters=int(par.norm_parameters(hidden, norms, family.layer_norm)),
        matmul_parameters=attention.weights
        + mlp_weights
        + visited_weights
        + int(par.router_parameters(hidden, feed.experts))
        + gate,
    )


def _assemble(
    *,
    name: str,
    family: str,
    source: str,
    hidden: int,
    vocab: int,
    tied: bool,
    positions: int,
    learned: int,
    table_width: int,
    norms: int,
    norm_bias: bool,
    layers: tuple[LayerGroup, ...],
) -> Architecture:
    """Sum the layers and the tables around them."""
    table = int(par.embedding_parameters(vocab, table_width))
    projections = 2 * table_width * hidden if table_width != hidden else 0  # OPT-350M: into and out of the layers
    position = int(par.embedding_parameters(0, hidden, positions=learned))
    head = 0 if tied else table
    norm = int(par.norm_parameters(hidden, norms, norm_bias))
    around = table + projections + position + head + norm
    return Architecture(
        name=name,
        family=family,
        source=source,
        hidden_size=hidden,
        vocab_size=vocab,
        tied_embeddings=tied,
        max_positions=positions,
        layers=layers,
        input_embedding_parameters=table + projections,
        position_parameters=position,
        output_head_parameters=head,
        final_norm_parameters=norm,
        parameters=around + sum(group.count * group.parameters for group in layers),
        active_parameters=around + sum(group.count * group.active_parameters for group in layers),
        matmul_parameters=table + projections + sum(group.count * group.matmul_parameters for group in layers),
    )
