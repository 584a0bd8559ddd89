"""Parameters of decoders whose layers no equation here is of: they are counted, and not planned.

Layers that share weights or caches (Zamba, Gemma 3n, the small ones of Gemma 4), that attend to a compressed past
(DeepSeek V4) and states of other kinds (RWKV).
Sources: the model classes of transformers 5.24.0 (`models/*/modeling_*.py`), and for RWKV-5 to 7 the code beside their
checkpoints. Published counts of checkpoints, or the classes on no device, confirm each: see
tests/architecture/test_counted.py. Gemma's checkpoints hold keys and values of layers that use those of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.architecture.config import Config
from planner.architecture.encoders import matrix, norm
from planner.equations import kinds_of_attention as lin
from planner.equations import parameters as par

_OTHER_STATE, _SHARED = "its layers keep a state of another kind", "its layers share weights or caches"
_COMPRESSED = "its layers attend to a compressed past"
_SLIDES, _SPARSE, _HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
_BY_RATIO = {0: _SLIDES, 4: _SPARSE, 128: _HEAVY}  # as the first files of DeepSeek V4 tell them
_OF_A_LAYER = 256  # values that a layer of Gemma is given of a word, where the file does not say


def why_counted(config: Config) -> str:
    """Why a decoder is counted and not planned, in words; "" of all others."""
    family = config.model_type
    if family == "gemma4_text":
        apart = _least_zero(config, "hidden_size_per_layer_input", _OF_A_LAYER)
        return _SHARED if apart or _least_zero(config, "num_kv_shared_layers", 0) else ""
    return _COUNTED[family][1] if family in _COUNTED else ""


def counted_parts(config: Config) -> dict[str, int]:
    """Parameters of a decoder that is counted and not planned, by part.

    Raises
    ------
    InputError
        Keys are missing or out of range.
    """
    parts = _COUNTED[config.model_type][0](config)
    config.check()
    return parts


def _least_zero(config: Config, key: str, default: int) -> int:
    """A number that may be nought; what is no number is told where it is counted."""
    value = config.data.get(key, default)
    return value if isinstance(value, int) else default


def _plain(rows: int, columns: int) -> int:
    return matrix(rows, columns, bias=False)


def _gain(width: int) -> int:
    return norm(width, bias=False)


def _out(config: Config, table: int, tied: bool) -> int:
    """The output head, none where it is the table of words."""
    return 0 if config.tied(tied) else table


def _widths(config: Config, layers: int, default: int) -> list[int]:
    """Of the feed-forward part of each layer: one for all, or listed."""
    told = config.data.get("intermediate_size", default)
    if not isinstance(told, list):
        return [config.count("intermediate_size", most="width", default=default)] * layers
    if len(told) != layers or any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in told):
        config.fail("wrong-length", f"'intermediate_size' must be one width, or {layers}", "intermediate_size")
    return [each for each in told if isinstance(each, int)]


def _of_each_layer(config: Config, width: int, layers: int, vocab: int) -> tuple[int, int]:
    """What Gemma gives each layer of a word by itself: of the whole model, and of each layer."""
    size = config.count("hidden_size_per_layer_input", most="width", default=_OF_A_LAYER, least=0)
    if not size:
        return 0, 0
    words = config.count("vocab_size_per_layer_input", most="width", default=vocab)
    return _plain(words + width, layers * size) + _gain(size), 2 * _plain(width, size) + _gain(width)


def _gemma3n(config: Config) -> dict[str, int]:
    """Gemma 3n: several streams that predict and correct each other, and a narrow way beside attention."""
    width = config.count("hidden_size", most="width", default=2048)
    layers = config.count("num_hidden_layers", most="layers", default=35)
    heads = config.count("num_attention_heads", most="heads", default=8)
    pairs = config.count("num_key_value_heads", most="heads", default=2)
    size = config.count("head_dim", most="width", default=256)
    vocab = config.count("vocab_size", most="width", default=262_400)
    streams = config.count("altup_num_inputs", most="heads", default=4)
    rank = config.count("laurel_rank", most="width", default=64)
    around, of_a_layer = _of_each_layer(config, width, layers, 262_144)
    of_a_layer += int(par.attention_parameters(width, heads, pairs, size)) + 2 * size + 4 * _gain(width)
    of_a_layer += _plain(width, streams) + 2 * _gain(width) + streams**2 + streams**3  # route, scale, mixing
    of_a_layer += 2 * _plain(width, rank) + _gain(width)
    feeds = sum(int(par.mlp_parameters(width, inner, True)) for inner in _widths(config, layers, 16_384))
    return {
        "token table": _plain(vocab, width),
        "tables of each layer": around,
        "streams": 2 * (streams - 1) * _plain(width, width),
        "layers": layers * of_a_layer + feeds + _gain(width),
    }


def _gemma4(config: Config) -> dict[str, int]:
    """Gemma 4 E2B and E4B: as the larger ones, with words for each layer; those that share a cache may be twice as
    wide."""
    width = config.count("hidden_size", most="width")
    layers = config.count("num_hidden_layers", most="layers")
    heads = config.count("num_attention_heads", most="heads")
    vocab = config.count("vocab_size", most="width", default=262_144)
    inner = config.count("intermediate_size", most="width")
    sharing = config.count("num_kv_shared_layers", most="layers", default=0, least=0)
    wide = 2 if config.flag("use_double_wide_mlp", False) else 1
    if config.flag("enable_moe_block", False) or config.flag("attention_k_eq_v", False) or sharing > layers:
        config.fail("unknown-architecture", "experts or keys for values beside words of each layer are not counted",
                    "enable_moe_block", "plan read *.safetensors counts headers of its weights exactly")  # fmt: skip
    kinds = config.kinds("layer_types", layers, ("sliding_attention", "full_attention"))
    sees_all = [kind == "full_attention" for kind in kinds] if kinds else [(i + 1) % 6 == 0 for i in range(layers)]
    pairs, attention = config.count("num_key_value_heads", most="heads"), 0
    for key, default, count in (("head_dim", 256, layers - sum(sees_all)), ("global_head_dim", 512, sum(sees_all))):
        size = config.count(key, most="width", default=default)
        attention += count * (int(par.attention_parameters(width, heads, pairs, size)) + 2 * size)
    around, of_a_layer = _of_each_layer(config, width, layers, vocab)
    feeds = (layers - sharing) * int(par.mlp_parameters(width, inner, True))
    feeds += sharing * int(par.mlp_parameters(width, wide * inner, True))
    table = _plain(vocab, width)
    return {
        "token table": table,
        "tables of each layer": around,
        "layers": attention + feeds + layers * (of_a_layer + 4 * _gain(width)) + _gain(width),
        "output head": _out(config, table, True),
    }


def _hybrid_layers(config: Config, layers: int, standing: set[int]) -> int:
    """Layers of Zamba with attention besides: listed by kind or by number, else where its class puts them."""
    kinds = config.kinds("layers_block_type", layers, ("mamba", "linear_attention", "hybrid"))
    if kinds:
        return kinds.count("hybrid")
    return len(config.indices("hybrid_layer_ids") or {each for each in standing if each < layers})


def _zamba(config: Config) -> dict[str, int]:
    """Zamba: Mamba-1, and one block of attention that several layers go through, beside the words themselves."""
    width = config.count("hidden_size", most="width", default=3712)
    layers = config.count("num_hidden_layers", most="layers", default=76)
    vocab = config.count("vocab_size", most="width", default=32_000)
    channels = width * config.count("mamba_expand", most="width", default=2)
    rank = config.data.get("mamba_dt_rank", "auto")
    rank = -(-width // 16) if rank == "auto" else config.count("mamba_dt_rank", most="width", default=-(-width // 16))
    scan = lin.selective_scan_parameters(
        width, channels, config.count("mamba_d_state", most="width", default=16), rank,
        config.count("mamba_d_conv", most="tokens", default=4), int(config.flag("mamba_conv_bias", True)),
        int(config.flag("mamba_proj_bias", False)))  # fmt: skip
    period = config.count("attn_layer_period", most="layers", default=6)
    first = config.count("attn_layer_offset", most="layers", default=4, least=0)
    standing = {2, *(at + 3 for at in range(max(layers - 3, 0)) if at % period == first)}
    hybrid = _hybrid_layers(config, layers, standing)
    table = _plain(vocab, width)
    return {
        "token table": table,
        "layers": layers * (int(scan) + _gain(width)) + hybrid * _plain(width, width) + _gain(width),
        "shared block": _shared_block(config, width),
        "output head": _out(config, table, True),
    }


def _shared_block(config: Config, width: int) -> int:
    """Attention over what a layer is given and the words beside it, and an MLP."""
    heads = config.count("num_attention_heads", most="heads", default=32)
    both = config.count("attention_hidden_size", most="width", default=2 * width)
    size = config.count("attention_head_dim", most="width", default=max(2 * width // heads, 1))
    pairs = config.count("num_key_value_heads", most="heads", default=heads)
    inner = config.count("intermediate_size", most="width", default=4 * width)
    attention = _plain(both + width, heads * size) + 2 * _plain(both, pairs * size)
    return attention + int(par.mlp_parameters(width, inner, True)) + _gain(both) + _gain(width)


def _zamba2(config: Config) -> dict[str, int]:
    """Zamba 2: Mamba-2, and blocks that take turns, which narrow matrices adapt to each layer that goes through."""
    width = config.count("hidden_size", most="width", default=2560)
    layers = config.count("num_hidden_layers", most="layers", default=54)
    vocab = config.count("vocab_size", most="width", default=32_000)
    inner = config.count("intermediate_size", most="width", default=4 * width)
    heads = config.count("n_mamba_heads", most="heads", default=8)
    wide = width * config.count("mamba_expand", most="width", default=2)
    if wide % heads:
        config.conflict("heads-not-divisible", f"width {wide} is not a multiple of {heads} heads", "n_mamba_heads")
    size = max(wide // heads, 1)  # whatever mamba_headdim says: the class has its channels by mamba_expand
    if config.flag("add_bias_linear", False):
        config.fail("unknown-architecture", "biases of all projections are not counted", "add_bias_linear")
    layer = lin.state_space_parameters(
        width, config.count("mamba_ngroups", most="heads", default=1), heads,
        config.count("mamba_d_state", most="width", default=64), size,
        config.count("mamba_d_conv", most="tokens", default=4), int(config.flag("use_conv_bias", True)))  # fmt: skip
    hybrid = _hybrid_layers(config, layers, {6, 12, 18, 24, 30, 36, 42, 47, 51})
    rank = config.count("adapter_rank", most="width", default=128)
    adapter = _plain(width + 2 * inner, rank)
    if config.flag("use_shared_attention_adapter", False):
        both = config.count("attention_hidden_size", most="width", default=2 * width)
        adapter += 3 * _plain(2 * both, rank)
    blocks = config.count("num_mem_blocks", most="layers", default=1)
    table = _plain(vocab, width)
    return {
        "token table": table,
        "layers": layers * (int(layer) + _gain(width)) + hybrid * _plain(width, width) + _gain(width),
        "shared blocks": min(blocks, hybrid) * _shared_block(config, width) + hybrid * adapter,
        "output head": _out(config, table, True),
    }


def _rwkv(config: Config) -> dict[str, int]:
    """RWKV 4 to 6: a state of each channel or head, mixed with the token before; three matrices feed forward."""
    kind = config.model_type
    if config.has("architecture_version"):
        config.fail("unknown-architecture", "another version of RWKV under the name of the fourth is not counted",
                    "architecture_version")  # fmt: skip
    width = config.count("hidden_size", "n_embd", most="width")
    layers = config.count("num_hidden_layers", "n_layer", most="layers")
    vocab = config.count("vocab_size", most="width")
    across = config.count("attention_hidden_size", most="width", default=width)
    first = kind == "rwkv"
    inner = config.count("intermediate_size", most="width", default=4 * width if first else width * 7 // 2 // 32 * 32)
    square = _plain(width, across)
    # receptance, key, value, output with three mixes; then a gate, its mix and a norm of what the heads give besides
    attention = 4 * square + 2 * across + 3 * width
    attention += 0 if first else square + norm(across) + width
    if kind == "rwkv6":  # six mixes, of which five depend on the token, as the decay does
        mix, decay = (64, 128) if width == 4096 else (32, 64)
        attention += 2 * width + 2 * _plain(width, 5 * mix) + _plain(width + across, decay)
    feed = 2 * _plain(width, inner) + _plain(width, width) + 2 * width
    table = _plain(vocab, width)
    return {
        "token table": table,
        "layers": layers * (attention + feed + 2 * norm(width)) + 2 * norm(width),
        "output head": _out(config, table, False),
    }


def _rwkv7(config: Config) -> dict[str, int]:
    """RWKV 7, as flash-linear-attention has it: decay, rate, value and gate are made by narrow matrices."""
    width = config.count("hidden_size", most="width")
    layers = config.count("num_hidden_layers", most="layers")
    vocab = config.count("vocab_size", most="width")
    inner = config.count("intermediate_size", most="width", default=4 * width)
    ranks = {key: config.count(f"{key}_low_rank_dim", most="width") for key in ("decay", "a", "v", "gate")}
    # receptance, key, value, output; six mixes, two of keys, a bonus; a norm of what the heads give
    attention = 4 * _plain(width, width) + 9 * width + norm(width)
    attention += 2 * _plain(width, sum(ranks.values())) + 3 * width  # all but the gate with a bias
    feed = 2 * _plain(width, inner) + width
    first = 2 * _plain(width, ranks["v"]) + width  # of the value: the first layer has none
    table = _plain(vocab, width)
    before = norm(width) if config.flag("norm_first", True) else 0  # in the first layer
    return {
        "token table": table,
        "layers": layers * (attention + feed + 2 * norm(width)) - first + before + norm(width),
        "output head": _out(config, table, False),
    }


def _kinds_of_past(config: Config, layers: int) -> list[str]:
    """How each layer of DeepSeek V4 sees the past: told by words or ratios, else as its class has it."""
    ratios = config.data.get("compress_ratios")
    if isinstance(ratios, list) and not config.has("layer_types"):  # some list the layers that guess ahead, too
        kinds = [_BY_RATIO.get(each, "") if isinstance(each, int) else "" for each in ratios[:layers]]
        if len(kinds) < layers or "" in kinds:
            config.fail("unknown-layer-kind", f"'compress_ratios' must be 0, 4 or 128 for each of {layers} layers",
                        "compress_ratios")  # fmt: skip
        return kinds
    told = config.kinds("layer_types", layers, (_SLIDES, _SPARSE, _HEAVY))
    return list(told) if told else [_SPARSE if at > 2 and at % 2 else _HEAVY for at in range(layers)]


def _deepseek4(config: Config) -> dict[str, int]:
    """DeepSeek V4: keys that are values, of one head, gated sums of them over many tokens, and several streams."""
    width = config.count("hidden_size", most="width")
    layers = config.count("num_hidden_layers", most="layers")
    heads = config.count("num_attention_heads", most="heads")
    size = config.count("head_dim", most="width", default=512)
    rank = config.count("q_lora_rank", most="width", default=1024)
    groups = config.count("o_groups", most="heads", default=8)
    out = groups * config.count("o_lora_rank", most="width", default=1024)
    streams = config.count("hc_mult", most="heads", default=4)
    choosers, narrow = (config.count("index_n_heads", most="heads", default=64),
                        config.count("index_head_dim", most="width", default=128))  # fmt: skip
    inner = config.count("moe_intermediate_size", most="width")
    experts = config.count("n_routed_experts", most="experts")
    shared = config.count("n_shared_experts", most="experts", default=1, least=0)
    if heads * size % groups:
        config.conflict("heads-not-divisible", f"{heads} heads are not divided into {groups} groups", "o_groups")
    attention = _plain(width + heads * size, rank) + _gain(rank) + _plain(width, size) + _gain(size) + heads
    attention += _plain(heads * size // groups + width, out)
    index = _plain(4 + 2 * width, 2 * narrow) + _gain(narrow) + _plain(rank, choosers * narrow)
    past = {
        _SLIDES: 0,
        _SPARSE: _plain(4 + 2 * width, 2 * size) + _gain(size) + index + _plain(width, choosers),
        _HEAVY: _plain(128 + 2 * width, size) + _gain(size),
    }
    mixing = (2 + streams) * streams
    around = 2 * (_gain(width) + _plain(mixing, streams * width) + mixing + 3)
    expert, table = int(par.expert_parameters(width, inner, 1, True)), _plain(
        config.count("vocab_size", most="width"), width)  # fmt: skip
    return {
        "token table": table,
        "attention": layers * (attention + around) + sum(past.get(kind, 0) for kind in _kinds_of_past(config, layers)),
        "experts": layers * ((experts + shared) * expert + int(par.router_parameters(width, experts, 0))),
        "streams": _plain(streams, streams * width) + streams + 1 + _gain(width),
        "output head": _out(config, table, False),
    }


_COUNTED: Mapping[str, tuple[Callable[[Config], dict[str, int]], str]] = MappingProxyType(
    {
        "deepseek_v4": (_deepseek4, _COMPRESSED),
        "gemma3n": (_gemma3n, _SHARED),
        "gemma3n_text": (_gemma3n, _SHARED),
        "gemma4_text": (_gemma4, _SHARED),
        "rwkv": (_rwkv, _OTHER_STATE),
        "rwkv5": (_rwkv, _OTHER_STATE),
        "rwkv6": (_rwkv, _OTHER_STATE),
        "rwkv7": (_rwkv7, _OTHER_STATE),
        "zamba": (_zamba, _SHARED),
        "zamba2": (_zamba2, _SHARED),
    }
)
