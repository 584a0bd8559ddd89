"""Parameters of encoders of text and of sound, alone or with a decoder; every count is composed of EQ-PAR-*.

Sources: the model classes of transformers 5.23.0 (`models/*/modeling_*.py`), and the code beside the checkpoints of
Jina, Nomic and GTE. Published counts of checkpoints confirm each: see tests/architecture/test_encoders.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.architecture.config import Config
from planner.equations import parameters as par


def is_encoder(model_type: str) -> bool:
    """Whether a family is counted here as a whole, since it is no decoder alone."""
    return model_type in _WHOLE


def whole_parts(config: Config) -> dict[str, int]:
    """Parameters of an encoder, or of an encoder with a decoder, by part.

    Raises
    ------
    InputError
        Keys are missing or out of range.
    """
    parts = _WHOLE[config.model_type](config)
    config.check()
    return parts


def equal_layers(count: int, width: int, heads: int, head_size: int, inner: int, *, biases: bool = True,
                 norm_bias: bool = True, gated: bool = False, attentions: int = 1) -> int:  # fmt: skip
    """Equal layers of attention and a feed-forward block, a norm before each.

    Parameters
    ----------
    count
        Of the layers.
    width, heads, head_size, inner
        Sizes of a layer.
    biases, norm_bias
        Of the matrices, and of the norms.
    gated
        Whether the feed-forward block has a gate beside.
    attentions
        One, or two where a decoder looks at the encoder, too.
    """
    attention = par.attention_parameters(width, heads, heads, head_size, biases, biases)
    feed = par.mlp_parameters(width, inner, gated, biases)
    return count * int(attentions * attention + feed + par.norm_parameters(width, attentions + 1, norm_bias))


def matrix(rows: int, columns: int, *, bias: bool = True) -> int:
    """Parameters of a matrix, with a row of biases or without."""
    return int(par.embedding_parameters(rows + int(bias), columns))


def norm(width: int, *, bias: bool = True) -> int:
    """Parameters of a norm."""
    return int(par.norm_parameters(width, 1, bias))


def size_of_heads(config: Config, width: int, heads: int, key: str) -> int:
    """Width of a head; a mistake of the config where the heads do not divide the width.

    Parameters
    ----------
    config
        Is told of the mistake.
    width, heads
        Of a layer.
    key
        The heads' own.
    """
    if width % heads:
        config.conflict("heads-not-divisible", f"width {width} is not a multiple of {heads} heads", key)
    return max(width // heads, 1)


def _made_for(config: Config) -> str:
    """The class of the checkpoint."""
    made = config.outer.get("architectures")
    return str(made[0]) if isinstance(made, list) and made else ""


def _of_words(config: Config, vocab: int, width: int) -> int:
    """Biases of words, and their matrix where it is not that of the token table."""
    return vocab + (0 if config.flag("tie_word_embeddings", True) else matrix(vocab, width, bias=False))


def _bert(config: Config) -> dict[str, int]:
    """BERT and its kin: a pooler unless the head of the checkpoint leaves it out; the decoder of words is tied."""
    distil = config.model_type == "distilbert"
    width = config.count(*(("dim",) if distil else ("hidden_size",)), most="width")
    count = config.count(*(("n_layers",) if distil else ("num_hidden_layers",)), most="layers")
    heads = config.count(*(("n_heads",) if distil else ("num_attention_heads",)), most="heads")
    inner = config.count(*(("hidden_dim",) if distil else ("intermediate_size",)), most="width")
    vocab = config.count("vocab_size", most="width")
    positions = config.count("max_position_embeddings", most="tokens")
    family = config.model_type
    kinds = 0 if distil or family == "mpnet" else config.count("type_vocab_size", most="width", default=2, least=0)
    made_for = _made_for(config)
    words = made_for.endswith(("ForMaskedLM",) if family == "electra" else ("ForMaskedLM", "ForPreTraining"))
    pooled = not made_for.endswith(("ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering"))
    # RoBERTa classifies by a layer of its own, as large as the pooler that it leaves out; so do both heads of ELECTRA
    pooled &= not distil and (family != "electra" or made_for.endswith(("ForSequenceClassification", "ForPreTraining")))
    table = config.count("embedding_size", most="width", default=width) if family in ("albert", "electra") else width
    head_size = size_of_heads(config, width, heads, "num_attention_heads")
    placed = config.data.get("position_embedding_type", "absolute")
    layers = equal_layers(_different(config, count), width, heads, head_size, inner)
    if placed == "relative_key_query":  # a table of distances in each layer besides
        layers += count * matrix(2 * positions - 1, head_size, bias=False)
    elif placed in ("alibi", "rotary"):
        positions = 0
    elif placed != "absolute":
        config.fail("unknown-architecture", f"positions of kind {str(placed)[:40]} are not counted",
                    "position_embedding_type")  # fmt: skip
    if config.data.get("feed_forward_type", "original") == "geglu":  # Jina: a gate beside, both without a bias
        layers += count * (width * inner - inner)
    elif config.data.get("feed_forward_type", "original") != "original" or config.has("lora_adaptations"):
        config.fail("unknown-architecture", "its code adds to the layers of its family what is not counted",
                    "lora_adaptations" if config.has("lora_adaptations") else "feed_forward_type")  # fmt: skip
    return {
        "token table": matrix(vocab, table, bias=False),
        "positions and kinds": int(par.embedding_parameters(0, table, positions=positions + kinds)) + norm(table),
        "projection of words": matrix(table, width) if table != width or family == "albert" else 0,
        "encoder layers": layers + (matrix(32, heads, bias=False) if family == "mpnet" else 0),  # distances
        "pooler": matrix(width, width) if pooled else 0,
        "head of words": matrix(width, table) + norm(table) + _of_words(config, vocab, table) if words else 0,
    }


def _different(config: Config, layers: int) -> int:
    """Layers with weights of their own: ALBERT runs through few of them again and again."""
    if config.model_type != "albert":
        return layers
    groups = config.count("num_hidden_groups", most="layers", default=1)
    return groups * config.count("inner_group_num", most="layers", default=1)


def _deberta(config: Config) -> dict[str, int]:
    """DeBERTa 2 and 3: a table of distances that all layers share, no pooler unless it classifies."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    count = config.count("num_hidden_layers", most="layers")
    inner = config.count("intermediate_size", most="width")
    vocab = config.count("vocab_size", most="width")
    positions = config.count("max_position_embeddings", most="tokens", default=512)
    kinds = config.count("type_vocab_size", most="width", default=0, least=0)
    table = config.count("embedding_size", most="width", default=width)
    buckets = config.count("position_buckets", most="tokens", default=0, least=-1)
    kernel = config.count("conv_kernel_size", most="tokens", default=0, least=0)
    farthest = config.count("max_relative_positions", most="tokens", default=positions, least=-1)
    distances = 2 * (buckets if buckets > 0 else farthest if farthest > 0 else positions)
    relative = config.flag("relative_attention", False)
    normed = "layer_norm" in str(config.data.get("norm_rel_ebd", "none"))
    own = 0 if not relative or config.flag("share_att_key", False) else sum(
        kind in str(config.data.get("pos_att_type")) for kind in ("c2p", "p2c"))  # fmt: skip
    made_for = _made_for(config)
    layers = equal_layers(count, width, heads, size_of_heads(config, width, heads, "num_attention_heads"), inner)
    placed = positions if config.flag("position_biased_input", True) else 0
    return {
        "token table": matrix(vocab, table, bias=False) + (matrix(table, width, bias=False) if table != width else 0),
        "positions and kinds": int(par.embedding_parameters(0, table, positions=placed + kinds)) + norm(width),
        "distances": matrix(distances, width, bias=False) + (norm(width) if normed else 0) if relative else 0,
        "encoder layers": layers + count * own * matrix(width, width),
        "convolution": matrix(kernel * width, width) + norm(width) if kernel else 0,
        "pooler": matrix(width, width) if made_for.endswith("ForSequenceClassification") else 0,
        "head of words": matrix(width, table) + norm(table) + _of_words(config, vocab, table)
        if made_for.endswith("ForMaskedLM")
        else 0,
    }


def _nomic(config: Config) -> dict[str, int]:
    """Nomic Embed: BERT with gated layers and turned positions; biases where its own code has them.

    transformers' class names its sizes as BERT does, has no biases, and a head of words.
    """
    ours = not config.has("n_embd")
    width = config.count("n_embd", "hidden_size", most="width")
    heads = config.count("n_head", "num_attention_heads", most="heads")
    count = config.count("n_layer", "num_hidden_layers", most="layers")
    inner = config.count("n_inner", "intermediate_size", most="width")
    positions = config.count("n_positions", "max_position_embeddings", most="tokens")
    if config.count("num_experts", most="experts", default=0, least=0) > 1:
        config.fail("unknown-architecture", "experts of this family are not counted", "num_experts")
    gated = ours or str(config.data.get("activation_function")) in ("swiglu", "geglu", "glu")
    attention = par.attention_parameters(width, heads, heads, size_of_heads(config, width, heads, "n_head"),
                                         *2 * (config.flag("qkv_proj_bias", not ours),))  # fmt: skip
    feed = par.mlp_parameters(width, inner, gated, False) + inner * (1 + gated) * config.flag("mlp_fc1_bias", not ours)
    feed += width * config.flag("mlp_fc2_bias", not ours)
    kinds = config.count("type_vocab_size", most="width", default=2, least=0)
    turned = ours or bool(config.data.get("rotary_emb_fraction"))
    vocab = config.count("vocab_size", most="width")
    words = ours and _made_for(config).endswith("ForMaskedLM")
    return {
        "token table": matrix(vocab, width, bias=False),
        "positions and kinds": matrix(kinds + (0 if turned else positions), width, bias=False) + norm(width),
        "encoder layers": count * (int(attention + feed) + 2 * norm(width)),
        "head of words": matrix(width, width) + norm(width) + vocab if words else 0,
    }


def _gte(config: Config) -> dict[str, int]:
    """GTE 1.5 and multilingual: BERT with gates and turned positions; the way out of the gate has a bias."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    count = config.count("num_hidden_layers", most="layers")
    inner = config.count("intermediate_size", most="width")
    kinds = config.count("type_vocab_size", most="width", default=0, least=0)
    if config.data.get("position_embedding_type", "rope") != "rope":
        config.fail("unknown-architecture", "positions of this kind are not counted", "position_embedding_type")
    size = size_of_heads(config, width, heads, "num_attention_heads")
    layers = equal_layers(count, width, heads, size, inner, gated=True) - count * 2 * inner
    return {
        "token table": matrix(config.count("vocab_size", most="width"), width, bias=False),
        "positions and kinds": matrix(kinds, width, bias=False) + norm(width),
        "encoder layers": layers,
        "pooler": matrix(width, width) if _made_for(config).endswith("ForSequenceClassification") else 0,
    }


def _modernbert(config: Config) -> dict[str, int]:
    """ModernBERT: gated layers without biases unless asked for, no norm before the first, no learned positions."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    count = config.count("num_hidden_layers", most="layers")
    inner = config.count("intermediate_size", most="width")
    vocab = config.count("vocab_size", most="width")
    biased = [key for key in ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias") if config.flag(key, False)]
    if biased:
        config.fail("unknown-architecture", "its biases are not counted", biased[0])
    made_for = _made_for(config)
    words = made_for.endswith("ForMaskedLM")
    size = size_of_heads(config, width, heads, "num_attention_heads")
    layers = equal_layers(count, width, heads, size, inner, biases=False, norm_bias=False, gated=True)
    return {
        "token table": matrix(vocab, width, bias=False) + norm(width, bias=False),
        "encoder layers": layers - width + norm(width, bias=False),
        "head": matrix(width, width, bias=False) + norm(width, bias=False) if "For" in made_for else 0,
        "head of words": _of_words(config, vocab, width) - vocab * (not config.flag("decoder_bias", True))
        if words
        else 0,
    }


def _t5(config: Config) -> dict[str, int]:
    """T5: norms and projections without biases, a table of relative positions on each side."""
    width = config.count("d_model", most="width")
    heads = config.count("num_heads", most="heads")
    head_size = config.count("d_kv", most="width")
    inner = config.count("d_ff", most="width")
    count = config.count("num_layers", most="layers")
    decoders = config.count("num_decoder_layers", most="layers", default=count)
    buckets = config.count("relative_attention_num_buckets", most="tokens", default=32)
    gated = str(config.data.get("feed_forward_proj", "")).startswith("gated")
    vocab = config.count("vocab_size", most="width")
    tied = config.flag("tie_word_embeddings", config.model_type == "t5")
    shape = (width, heads, head_size, inner)
    table = matrix(vocab, width, bias=False)
    side = norm(width, bias=False) + matrix(buckets, heads, bias=False)
    encodes = equal_layers(count, *shape, biases=False, norm_bias=False, gated=gated) + side
    if _made_for(config).endswith("EncoderModel"):
        return {"token table": table, "encoder layers": encodes}
    return {
        "token table": table,
        "encoder layers": encodes,
        "decoder layers": equal_layers(decoders, *shape, biases=False, norm_bias=False, gated=gated, attentions=2)
        + side,
        "output head": 0 if tied else table,
    }


def _t5gemma(config: Config) -> dict[str, int]:
    """T5Gemma: two Gemma 2, each with a table of words; the decoder looks at the encoder between two norms more."""
    sides: dict[str, int] = {}
    tables: dict[str, int] = {}
    seen = 0  # width of what the decoder looks at
    for side in ("encoder", "decoder"):
        part = config.part(side)
        width = part.count("hidden_size", most="width", default=2304)
        heads = part.count("num_attention_heads", most="heads", default=8)
        pairs = part.count("num_key_value_heads", most="heads", default=4)
        size = part.count("head_dim", most="width", default=256)
        count = part.count("num_hidden_layers", most="layers", default=26)
        inner = part.count("intermediate_size", most="width", default=9216)
        attention = int(par.attention_parameters(width, heads, pairs, size))
        layer = attention + int(par.mlp_parameters(width, inner, True)) + 4 * norm(width, bias=False)
        if side == "decoder":  # keys and values of what the encoder gives
            layer += attention + 2 * pairs * size * (seen - width) + 2 * norm(width, bias=False)
        seen = width
        sides[f"{side} layers"] = count * layer + norm(width, bias=False)
        tables[side] = matrix(part.count("vocab_size", most="width", default=256_000), width, bias=False)
    head = 0 if config.flag("tie_word_embeddings", True) else tables["decoder"]
    return {"token tables": sum(tables.values()), **sides, "output head": head}


def _whisper(config: Config) -> dict[str, int]:
    """Whisper: two convolutions of width 3 before the encoder; keys have no bias."""
    width = config.count("d_model", most="width")
    bands = config.count("num_mel_bins", most="width", default=80)
    sides = {}
    for side, attentions in (("encoder", 1), ("decoder", 2)):
        count = config.count(f"{side}_layers", most="layers")
        heads = config.count(f"{side}_attention_heads", most="heads")
        inner = config.count(f"{side}_ffn_dim", most="width")
        head_size = size_of_heads(config, width, heads, f"{side}_attention_heads")
        sides[side] = equal_layers(count, width, heads, head_size, inner, attentions=attentions) + norm(width)
        sides[side] -= count * attentions * width  # the bias of keys
    heard = config.count("max_source_positions", most="tokens", default=1500)
    said = config.count("max_target_positions", most="tokens", default=448)
    return {
        "convolutions": matrix(3 * bands, width) + matrix(3 * width, width),
        "token table": matrix(config.count("vocab_size", most="width"), width, bias=False),
        "positions": int(par.embedding_parameters(0, width, positions=heard + said)),
        "encoder layers": sides["encoder"],
        "decoder layers": sides["decoder"],
    }


_WHOLE: Mapping[str, Callable[[Config], dict[str, int]]] = MappingProxyType(
    {
        "albert": _bert,
        "bert": _bert,
        "camembert": _bert,
        "deberta-v2": _deberta,
        "distilbert": _bert,
        "electra": _bert,
        "modernbert": _modernbert,
        "mpnet": _bert,
        "mt5": _t5,
        "new": _gte,
        "nomic_bert": _nomic,
        "roberta": _bert,
        "t5": _t5,
        "t5gemma": _t5gemma,
        "whisper": _whisper,
        "xlm-roberta": _bert,
    }
)
