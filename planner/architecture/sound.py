"""Parameters of encoders of sound, and of what ties them to the text; every count is composed of EQ-PAR-*.

Sources: the model classes of transformers 5.24.0 (`models/*/modeling_*.py`), which confirm each on no device: see
tests/architecture/test_sound.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.architecture.config import Config
from planner.architecture.encoders import equal_layers, matrix, norm, size_of_heads
from planner.equations import parameters as par

_WIDTH = ("d_model", "hidden_size")
_PATCH = 9  # of a convolution three by three


def sound_parts(family: str, config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int] | None:
    """Parameters of the encoder of sound and of what ties it to the text, by part; None of a family not counted.

    Parameters
    ----------
    family
        Of the whole model.
    config
        The part that tells of the encoder; what is wrong in it is noted there.
    outer
        The whole config.
    text_width
        Of the text model.  [values]
    """
    made = _SOUND.get(family)
    return made(config, outer, text_width) if made else None


def is_heard(family: str) -> bool:
    """Whether the encoder of sound of a family is counted."""
    return family in _SOUND


def _layers(config: Config, *, keys_biased: bool = False) -> int:
    """Whisper's layers, whose keys have no bias."""
    width = config.count(*_WIDTH, most="width")
    heads = config.count("encoder_attention_heads", "num_attention_heads", most="heads", default=20)
    count = config.count("encoder_layers", "num_hidden_layers", most="layers", default=32)
    inner = config.count("encoder_ffn_dim", "intermediate_size", most="width", default=4 * width)
    head_size = size_of_heads(config, width, heads, "encoder_attention_heads")
    return equal_layers(count, width, heads, head_size, inner) - (0 if keys_biased else count * width)


def _whisper_encoder(config: Config, *, learned: bool) -> int:
    """Two convolutions of width 3, positions, layers and a norm."""
    width = config.count(*_WIDTH, most="width")
    bands = config.count("num_mel_bins", most="width", default=128)
    positions = config.count("max_source_positions", most="tokens", default=1500)
    places = int(par.embedding_parameters(0, width, positions=positions)) if learned else 0
    return matrix(3 * bands, width) + matrix(3 * width, width) + places + _layers(config) + norm(width)


def _qwen2_audio(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    width = config.count(*_WIDTH, most="width")
    return {"sound encoder": _whisper_encoder(config, learned=True), "sound projector": matrix(width, text_width)}


def _voxtral(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    """Voxtral: four frames go into one word, as wide as the feed-forward part of a layer."""
    inner = config.count("encoder_ffn_dim", "intermediate_size", most="width", default=5120)
    projector = matrix(inner, text_width, bias=False) + matrix(text_width, text_width, bias=False)
    return {"sound encoder": _whisper_encoder(config, learned=True), "sound projector": projector}


def _flamingo(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    width, bias = config.count(*_WIDTH, most="width"), outer.get("projector_bias") is not False
    projector = matrix(width, text_width, bias=bias) + matrix(text_width, text_width, bias=bias)
    return {"sound encoder": _whisper_encoder(config, learned=True), "sound projector": projector}


def _omni(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    """Qwen2.5-Omni: positions are waves; two words begin and end what is heard."""
    width, out = config.count(*_WIDTH, most="width"), config.count("output_dim", most="width", default=text_width)
    projector = matrix(width, out) + matrix(2, out, bias=False)
    return {"sound encoder": _whisper_encoder(config, learned=False), "sound projector": projector}


def _omni_3(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    """Qwen3-Omni: three convolutions, each of which halves bands and frames; keys have a bias."""
    width, out = config.count(*_WIDTH, most="width"), config.count("output_dim", most="width", default=text_width)
    wide, bands = config.count("downsample_hidden_size", most="width", default=480), config.count(
        "num_mel_bins", most="width", default=128)  # fmt: skip
    for _ in range(3):
        bands = (bands + 1) // 2
    into = matrix(_PATCH, wide) + 2 * matrix(_PATCH * wide, wide) + matrix(wide * bands, width, bias=False)
    return {
        "sound encoder": into + _layers(config, keys_biased=True) + norm(width),
        "sound projector": matrix(width, width) + matrix(width, out),
    }


def _gemma(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    """Gemma 3n and 4: two convolutions, then layers of two feed-forward parts around attention and a convolution.

    Gemma 3n knows sounds by words of their own; Gemma 4 makes what is heard wider before it is told.
    """
    third = outer.get("model_type") == "gemma3n"
    width = config.count("hidden_size", most="width", default=1536 if third else 1024)
    count = config.count("conf_num_hidden_layers", "num_hidden_layers", most="layers", default=12)
    heads = config.count("conf_num_attention_heads", "num_attention_heads", most="heads", default=8)
    kernel = config.count("conf_conv_kernel_size", "conv_kernel_size", most="tokens", default=5)
    bands = config.count("input_feat_size", most="width", default=128)
    channels = config.data.get("sscp_conv_channel_size", config.data.get("subsampling_conv_channels", [128, 32]))
    if not isinstance(channels, list) or [type(each) for each in channels] != [int, int] or min(channels) < 1:
        config.fail("wrong-type", "channels of its two convolutions are told otherwise than by two numbers")
        channels = [1, 1]
    first, second = channels
    into = first * (_PATCH + 1) + second * (first * _PATCH + 1) + matrix(second * (bands // 4), width, bias=False)
    size = size_of_heads(config, width, heads, "num_attention_heads")
    layer = 24 * width * width + (9 + kernel) * width + size  # 16 feed forward, 5 attend, 3 around the convolution
    if third:
        words = config.count("vocab_size", most="width", default=128)
        tie = matrix(words, width, bias=False) + 2 * width + matrix(width, text_width, bias=False)
    else:
        out = config.count("output_proj_dims", most="width", default=1536)
        tie = matrix(width, out) + matrix(out, text_width, bias=False)
    return {"sound encoder": into + count * layer, "sound projector": tie}


def _granite(config: Config, outer: Mapping[str, object], text_width: int) -> dict[str, int]:
    """Granite Speech: conformers with a way out in letters between, and a Q-Former that asks for a few words a window.

    Its adapters of the text stand in a file of their own, and are not counted.
    """
    width = config.count("hidden_dim", most="width", default=1024)
    across = config.count("num_heads", most="heads", default=8) * config.count("dim_head", most="width", default=128)
    letters = config.count("output_dim", most="width", default=42)
    inner = width * config.count("feedforward_mult", most="width", default=4)
    wide = width * config.count("conv_expansion_factor", most="width", default=2)
    feed = norm(width) + matrix(width, inner) + matrix(inner, width)
    attention = norm(width) + matrix(width, 3 * across, bias=False) + matrix(across, width)
    attention += matrix(2 * config.count("max_pos_emb", most="tokens", default=512) + 1,
                        config.count("dim_head", most="width", default=128), bias=False)  # fmt: skip
    kernel = config.count("conv_kernel_size", most="tokens", default=15)
    around = norm(width) + matrix(width, 2 * wide) + kernel * wide + norm(wide) + matrix(wide, width)
    count = config.count("num_layers", most="layers", default=10)
    encodes = matrix(config.count("input_dim", most="width", default=160), width) + matrix(width, letters)
    encodes += matrix(letters, width) + count * (2 * feed + attention + around + norm(width))
    asks = outer.get("projector_config")
    top = Config(outer, config.file, config.text)
    former = Config(asks if isinstance(asks, Mapping) else {}, config.file, config.text)
    top.problems = former.problems = config.problems
    own = former.count("hidden_size", most="width", default=768)
    heard = former.count("encoder_hidden_size", most="width", default=1408)
    between = former.count("intermediate_size", most="width", default=3072)
    every = former.count("cross_attention_frequency", most="layers", default=2)
    layers = former.count("num_hidden_layers", most="layers", default=12)
    window = top.count("window_size", most="tokens", default=15)
    words = max(window // top.count("downsample_rate", most="tokens", default=5), 1)
    looks = 2 * matrix(own, own) + 2 * matrix(heard, own) + norm(own)
    layer = 4 * matrix(own, own) + norm(own) + matrix(own, between) + matrix(between, own) + norm(own)
    former_count = matrix(words, own, bias=False) + norm(own) + layers * layer + -(-layers // every) * looks
    return {"sound encoder": encodes, "sound projector": former_count + matrix(own, text_width)}


_SOUND: Mapping[str, Callable[[Config, Mapping[str, object], int], dict[str, int]]] = MappingProxyType(
    {
        "audioflamingo3": _flamingo,
        "gemma3n": _gemma,
        "gemma4": _gemma,
        "granite_speech": _granite,
        "qwen2_5_omni_thinker": _omni,
        "qwen2_audio": _qwen2_audio,
        "qwen3_omni_moe_thinker": _omni_3,
        "voxtral": _voxtral,
    }
)
