"""Parameters of encoders of pictures, and of what ties them to the text; every count is composed of EQ-PAR-*.

Sources: the model classes of transformers 5.23.0 (`models/*/modeling_*.py`), and the code beside the checkpoints of
Kimi K2.5, Molmo and Logics. Published counts of checkpoints confirm each: see tests/architecture/test_encoders.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.architecture.config import TEXT_CONFIGS, Config
from planner.architecture.encoders import equal_layers, matrix, norm, size_of_heads
from planner.architecture.sound import is_heard, sound_parts
from planner.equations import parameters as par

OF_PICTURES = "experts for pictures"  # which no word visits
_CHANNELS = 3  # of a picture
_VISION_KEYS = ("vision_config", "siglip_config", "audio_config")
_HEARD_AS = {"granite_speech": "encoder_config"}  # where the encoder of sound is no audio_config
_IN_CODE = ("logics", "molmo", "phi4mm")  # their code has what the file leaves out
_IN_PARTS = ("t5gemma",)  # told by their encoder and decoder, which are counted as a whole
_LOGICS_TOWERS = "convnext-1024,siglip2-384"
_TOWER_KEYS = ("mm_vision_tower", "vision_tower", "image_token_id", "embd_layer", "img_processor")
_OWN_SIZES = {"hidden_size", "hidden_dim", "d_model", "embed_dim", "num_layers", "num_hidden_layers"}  # of a model
_TEXT_ALONE = "the text model alone is counted when what tells of pictures and sound is taken out of a copy"


def vision_parts(outer: Config) -> dict[str, int]:
    """Parameters of the encoder of pictures and of what ties it to the text, by part; empty where there is none.

    Raises
    ------
    InputError
        The encoder is none that is counted, or its keys are missing or out of range.
    """
    data = outer.outer
    family = str(data.get("model_type") or "")
    found = [key for key in _VISION_KEYS if isinstance(data.get(key), Mapping) and family not in _IN_CODE]
    apart = next((key for key, part in data.items() if isinstance(part, Mapping) and _OWN_SIZES & part.keys()
                  and key not in (*TEXT_CONFIGS, *_VISION_KEYS)), "")  # fmt: skip
    if family in _HEARD_AS and isinstance(data.get(_HEARD_AS[family]), Mapping):
        found, apart = [_HEARD_AS[family]], ""
    if apart and family not in _IN_PARTS:
        outer.fail("unknown-architecture", f"its part '{apart}' is not counted", apart, _TEXT_ALONE)
        outer.check()
    if not found and family not in _IN_CODE:
        if any(key in data for key in _TOWER_KEYS):
            outer.fail("unknown-architecture", "its encoder of pictures has no shape in this file", "", _TEXT_ALONE)
            outer.check()
        return {}
    parts: dict[str, int] = {}
    for key in found or [""]:
        parts |= _parts_of(outer, family, key)
    outer.check()
    return parts


def _parts_of(outer: Config, family: str, key: str) -> dict[str, int]:
    """What one part of the config tells of, or of what has none the code."""
    heard = key in ("audio_config", *_HEARD_AS.values())
    counted = is_heard(family) and key == _HEARD_AS.get(family, "audio_config") if heard else family in _VISION
    if not counted:
        known = ", ".join(sorted(_VISION))
        message = f"the encoder of {'sound' if heard else 'pictures'} of '{family[:60]}' is not counted"
        outer.fail("unknown-architecture", message, key, f"{_TEXT_ALONE}; counted: those of {known}")
        outer.check()
    data = outer.outer
    config = Config(data[key] if key else data, outer.file, outer.text)
    config.inside, config.problems, config.outer = key, outer.problems, data
    text_width = outer.count("hidden_size", most="width")
    if heard:
        return sound_parts(family, config, data, text_width) or {}
    return _VISION[family](config, text_width)


def _gemma3_vision(config: Config, text_width: int) -> dict[str, int]:
    """SigLIP without its head; projected by one matrix behind a norm without bias."""
    width = config.count("hidden_size", most="width")
    return _siglip(config) | {"projector": matrix(width, text_width, bias=False) + norm(width, bias=False)}


def _siglip(config: Config) -> dict[str, int]:
    """SigLIP without its head."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    patch = config.count("patch_size", most="width")
    side = config.count("image_size", most="width", default=224) // max(patch, 1)
    if config.flag("vision_use_head", True):
        config.fail("unknown-architecture", "the head of SigLIP is not counted", "vision_use_head", _TEXT_ALONE)
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width) + matrix(side**2, width, bias=False),
        "picture encoder": _seen(config, "num_hidden_layers", "intermediate_size", width, heads) + norm(width),
    }


def _paligemma_vision(config: Config, text_width: int) -> dict[str, int]:
    """PaliGemma: SigLIP, projected by one matrix."""
    width = config.count("hidden_size", most="width")
    return _siglip(config) | {"projector": matrix(width, text_width)}


def _idefics3_vision(config: Config, text_width: int) -> dict[str, int]:
    """Idefics 3 and SmolVLM: SigLIP, of which a square of patches is shuffled together and projected."""
    sizes = {"hidden_size": 1152, "num_hidden_layers": 12, "intermediate_size": 3072, "num_attention_heads": 16}
    config.data = {**sizes, **config.data, "vision_use_head": False}
    merged = config.count("hidden_size", most="width")
    top = Config({"scale_factor": config.outer.get("scale_factor")}, config.file, config.text)
    top.problems = config.problems
    merged *= top.count("scale_factor", most="width", default=2) ** 2
    return _siglip(config) | {"projector": matrix(merged, text_width, bias=False)}


def _llava_vision(config: Config, text_width: int) -> dict[str, int]:
    """LLaVA: CLIP or SigLIP whole, projected by two matrices; from 1.6 on lines of pictures end."""
    kind = str(config.data.get("model_type") or "clip_vision_model")
    known = {"clip_vision_model": _clip, "pixtral": _pixtral, "siglip_vision_model": _siglip}
    if kind not in known:
        config.fail("unknown-architecture", f"the encoder of pictures '{kind[:60]}' is not counted", "model_type",
                    f"{_TEXT_ALONE}; counted: those of {', '.join(known)}")  # fmt: skip
        config.check()
    lines = text_width if config.outer.get("model_type") != "llava" else 0
    parts = known[kind](config)
    width = config.count("hidden_size", most="width", default=1024)
    return parts | {"projector": matrix(width, text_width) + matrix(text_width, text_width) + lines}


def _clip(config: Config) -> dict[str, int]:
    """CLIP: patches without a bias, a position more than there are patches, norms before and after."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    patch = config.count("patch_size", most="width")
    side = config.count("image_size", most="width") // max(patch, 1)
    return {
        "patches and positions": matrix(_CHANNELS * patch**2 + side**2 + 2, width, bias=False),
        "picture encoder": _seen(config, "num_hidden_layers", "intermediate_size", width, heads) + 2 * norm(width),
    }


def _internvl_vision(config: Config, text_width: int) -> dict[str, int]:
    """InternVL: InternViT with a scale after each block; a square of patches is projected by two matrices."""
    for key, other in (("attention_bias", "qkv_bias"), ("use_qk_norm", "qk_normalization")):  # as transformers says
        config.data = {**({other: config.data[key]} if key in config.data else {}), **config.data}
    for key in ("patch_size", "image_size"):
        pair = config.data.get(key)
        if isinstance(pair, list) and len(pair) == 2 and pair[0] == pair[1]:
            config.data = {**config.data, key: pair[0]}
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    patch = config.count("patch_size", most="width")
    side = config.count("image_size", most="width") // max(patch, 1)
    count = config.count("num_hidden_layers", most="layers")
    norm_bias = config.data.get("norm_type") != "rms_norm"
    layers = _seen(config, "num_hidden_layers", "intermediate_size", width, heads, norm_bias=norm_bias)
    layers += count * 2 * width  # scales
    layers -= 0 if config.flag("qkv_bias", True) else count * 3 * width
    layers += count * 2 * width if config.flag("qk_normalization", False) else 0
    share = config.outer.get("downsample_ratio", 0.5)
    if share not in (0.25, 0.5, 1.0):
        config.fail("out-of-range", f"'downsample_ratio' is {str(share)[:20]}; it must be 0.25, 0.5 or 1",
                    "downsample_ratio")  # fmt: skip
        config.check()
    merged = width * int(1 / share) ** 2
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width) + matrix(side**2 + 2, width, bias=False),
        "picture encoder": layers,
        "projector": norm(merged) + matrix(merged, text_width) + matrix(text_width, text_width),
    }


def _mllama_vision(config: Config, text_width: int) -> dict[str, int]:
    """Llama 3.2 Vision: an encoder of tiles, and the layers of the text that look at pictures, with the words for them.

    Those layers keep what they look at once a picture, and are left out where there is none: they are no part of the
    text model.
    """
    width = config.count("hidden_size", most="width")
    heads = config.count("attention_heads", most="heads", default=16)
    inner = config.count("intermediate_size", most="width")
    patch = config.count("patch_size", most="width", default=14)
    seen = (config.count("image_size", most="width") // max(patch, 1)) ** 2 + 1
    tiles = config.count("max_num_tiles", most="width", default=4)
    ratios = config.data.get("supported_aspect_ratios")
    ratio_rows = 1 + (len(ratios) if isinstance(ratios, list) else 8)
    gated = config.count("num_global_layers", most="layers", default=8)
    count = config.count("num_hidden_layers", most="layers") + gated
    bias_free = count * int(par.attention_parameters(width, heads, heads, size_of_heads(config, width, heads,
                            "attention_heads"), False, False))  # fmt: skip
    blocks = count * (int(par.mlp_parameters(width, inner, False, True)) + 2 * norm(width)) + 2 * gated
    tile_rows = ratio_rows * tiles * (seen + 2)  # of positions within tiles, and of tiles before and after
    text = Config(config.outer, config.file, config.text)
    text.problems = config.problems
    looking = len(text.indices("cross_attention_layers") or ())
    queries, pairs = (text.count(key, most="heads") for key in ("num_attention_heads", "num_key_value_heads"))
    size = size_of_heads(text, text_width, queries, "num_attention_heads")
    attends = int(par.attention_parameters(text_width, queries, pairs, size, False, False)) + 2 * size + 2
    feed = int(par.mlp_parameters(text_width, text.count("intermediate_size", most="width"), True, False))
    return {
        "patches and positions": matrix(_CHANNELS * patch**2 + seen + 1 + tile_rows, width, bias=False) + 3,
        "picture encoder": bias_free + blocks + 2 * norm(width),
        "projector": matrix(config.count("vision_output_dim", most="width"), text_width),
        "layers that look at pictures": looking * (attends + feed + 2 * norm(text_width, bias=False)),
        "words for pictures": matrix(8, text_width, bias=False),
    }


def _qwen_sizes(config: Config, text_width: int) -> tuple[int, int, int, int, int]:
    """Width, heads, values of a patch, width of merged patches, and width of what the text is given."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_heads", most="heads")
    patch = config.count("patch_size", most="width")
    frames = config.count("temporal_patch_size", most="tokens", default=2)
    merged = width * config.count("spatial_merge_size", most="width", default=2) ** 2
    out = config.count("out_hidden_size", most="width", default=text_width)
    return width, heads, _CHANNELS * frames * patch**2, merged, out


def _qwen3_vision(config: Config, text_width: int) -> dict[str, int]:
    """Qwen3-VL: a merger at the end and one for each layer that the text sees on its way."""
    width, heads, of_patch, merged, out = _qwen_sizes(config, text_width)
    seen = len(config.indices("deepstack_visual_indexes") or ())
    merger = matrix(merged, merged) + matrix(merged, out)
    positions = config.count("num_position_embeddings", most="tokens", default=2304)
    return {
        "patches and positions": matrix(of_patch, width) + matrix(positions, width, bias=False),
        "picture encoder": _seen(config, "depth", "intermediate_size", width, heads),
        "projector": merger + norm(width) + seen * (merger + norm(merged)),
    }


def _qwen25_vision(config: Config, text_width: int) -> dict[str, int]:
    """Qwen2.5-VL: gated layers with biases, norms without, no learned positions."""
    width, heads, of_patch, merged, out = _qwen_sizes(config, text_width)
    return {
        "patches and positions": matrix(of_patch, width, bias=False),
        "picture encoder": _seen(config, "depth", "intermediate_size", width, heads, norm_bias=False, gated=True),
        "projector": matrix(merged, merged) + matrix(merged, out) + norm(width, bias=False),
    }


def _glm4v_vision(config: Config, text_width: int) -> dict[str, int]:
    """GLM-4.1V and 4.5V: gated layers as wide as the text, without biases; patches are merged by a convolution."""
    width = config.count("hidden_size", most="width", default=1536)
    heads = config.count("num_heads", most="heads", default=12)
    patch = config.count("patch_size", most="width", default=14)
    side = config.count("image_size", most="width", default=336) // max(patch, 1)
    frames = config.count("temporal_patch_size", most="tokens", default=2)
    merge = config.count("spatial_merge_size", most="width", default=2)
    out = config.count("out_hidden_size", most="width", default=text_width)
    inner = config.count("intermediate_size", most="width", default=13696)
    count = config.count("depth", most="layers", default=24)
    size = size_of_heads(config, width, heads, "num_heads")
    layers = equal_layers(count, width, heads, size, out, biases=False, norm_bias=False, gated=True)
    layers += count * 3 * width if config.flag("attention_bias", False) else 0
    return {
        "patches and positions": matrix(_CHANNELS * frames * patch**2, width) + matrix(side**2, width, bias=False),
        "picture encoder": layers + 2 * norm(width, bias=False),  # behind the patches, and behind the layers
        "projector": matrix(merge**2 * width, out)
        + matrix(out, out, bias=False)
        + norm(out)
        + int(par.mlp_parameters(out, inner, True, False)),
    }


def _qwen2_vision(config: Config, text_width: int) -> dict[str, int]:
    """Qwen2-VL: its `hidden_size` is that of the text; no learned positions."""
    width = config.count("embed_dim", most="width", default=1280)
    heads = config.count("num_heads", most="heads", default=16)
    patch = config.count("patch_size", most="width", default=14)
    frames = config.count("temporal_patch_size", most="tokens", default=2)
    merged = width * config.count("spatial_merge_size", most="width", default=2) ** 2
    inner = width * config.count("mlp_ratio", most="experts", default=4)
    count = config.count("depth", most="layers", default=32)
    return {
        "patches": matrix(_CHANNELS * frames * patch**2, width, bias=False),
        "picture encoder": equal_layers(count, width, heads, size_of_heads(config, width, heads, "num_heads"), inner),
        "projector": matrix(merged, merged) + matrix(merged, text_width) + norm(width),
    }


def _phi4_vision(config: Config, text_width: int) -> dict[str, int]:
    """Phi-4 Multimodal: its code fixes SigLIP of 448 pixels and a conformer; two adapters of the text stand beside.

    Both encoders as the class of transformers 5.24.0 has them; with the text they are the published count.
    """
    adapts = [isinstance(config.data.get(f"{kind}_lora"), Mapping) for kind in ("vision", "speech")]
    if text_width != 3072 or not all(adapts):
        config.fail("unknown-architecture", "its encoder of pictures has no shape in this file", "", _TEXT_ALONE)
        config.check()
    heads, pairs = (config.count(key, most="heads") for key in ("num_attention_heads", "num_key_value_heads"))
    size = size_of_heads(config, text_width, heads, "num_attention_heads")
    inner, layers = (config.count(key, most="width") for key in ("intermediate_size", "num_hidden_layers"))
    sides = 4 * text_width + (2 * pairs + heads) * size + heads * size + 3 * inner  # of what a layer multiplies by
    ranks = {kind: config.part(f"{kind}_lora").count("r", most="width") for kind in ("vision", "speech")}
    return {
        "picture encoder": 441_550_016,
        "adapters for pictures": layers * ranks["vision"] * sides,
        "sound encoder": 466_432_256,
        "sound adapters": layers * ranks["speech"] * sides,
    }


def _pixtral(config: Config) -> dict[str, int]:
    """Pixtral: gated layers without biases, a norm before the first."""
    width = config.count("hidden_size", most="width", default=1024)
    heads = config.count("num_attention_heads", most="heads", default=16)
    size = config.count("head_dim", most="width", default=size_of_heads(config, width, heads, "num_attention_heads"))
    patch = config.count("patch_size", most="width", default=16)
    count = config.count("num_hidden_layers", most="layers", default=24)
    inner = config.count("intermediate_size", most="width", default=4096)
    return {
        "patches": matrix(_CHANNELS * patch**2, width, bias=False) + norm(width, bias=False),
        "picture encoder": equal_layers(count, width, heads, size, inner, biases=False, norm_bias=False, gated=True),
    }


def _mistral3_vision(config: Config, text_width: int) -> dict[str, int]:
    """Mistral 3: Pixtral, whose patches are merged, then projected twice."""
    parts, width = _pixtral(config), config.count("hidden_size", most="width", default=1024)
    config.data = {"spatial_merge_size": config.outer.get("spatial_merge_size"), **config.data}  # stands at the top
    merged = width * config.count("spatial_merge_size", most="width", default=2) ** 2
    bias = config.flag("multimodal_projector_bias", False)
    return parts | {
        "projector": norm(width, bias=False)
        + matrix(merged, width, bias=False)
        + matrix(width, text_width, bias=bias)
        + matrix(text_width, text_width, bias=bias),
    }


def _llama4_vision(config: Config, text_width: int) -> dict[str, int]:
    """Llama 4: positions with one of the whole, norms before and after; patches are shuffled together, then adapted."""
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    patch = config.count("patch_size", most="width")
    side = config.count("image_size", most="width") // max(patch, 1)
    into = config.count("projector_input_dim", most="width")
    out = config.count("projector_output_dim", most="width")
    inner = config.count("intermediate_size", most="width")
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width, bias=False)
        + matrix(side**2 + 2, width, bias=False),
        "picture encoder": _seen(config, "num_hidden_layers", "intermediate_size", width, heads) + 2 * norm(width),
        "projector": matrix(inner, into, bias=False)
        + matrix(into, out, bias=False)
        + matrix(config.count("vision_output_dim", most="width"), text_width, bias=False),
    }


def _kimi_vision(config: Config, text_width: int) -> dict[str, int]:
    """MoonViT of Kimi K2.5: learned positions in the plane, fixed in time; its own code puts `vt_` before sizes."""
    config.data = {key.removeprefix("vt_").removeprefix("init_"): value for key, value in config.data.items()}
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    patch = config.count("patch_size", most="width", default=14)
    height = config.count("pos_emb_height", most="width", default=64)
    across = config.count("pos_emb_width", most="width", default=64)
    merged = 4 * width  # two by two patches
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width) + matrix(height * across, width, bias=False),
        "picture encoder": _seen(config, "num_hidden_layers", "intermediate_size", width, heads) + norm(width),
        "projector": matrix(merged, merged) + matrix(merged, text_width) + norm(width),
    }


def _gemma4_vision(config: Config, text_width: int) -> dict[str, int]:
    """Gemma 4: gated layers without biases, four norms and norms of heads, positions in both directions.

    Buffers (the scale of each layer, clips and the standard of the pooler) are no parameters.
    """
    width = config.count("hidden_size", most="width")
    heads = config.count("num_attention_heads", most="heads")
    size = config.count("head_dim", most="width", default=64)
    count = config.count("num_hidden_layers", most="layers")
    inner = config.count("intermediate_size", most="width")
    patch = config.count("patch_size", most="width", default=16)
    positions = config.count("position_embedding_size", most="tokens", default=10_240)
    layers = equal_layers(count, width, heads, size, inner, biases=False, norm_bias=False, gated=True)
    return {
        "patches and positions": matrix(_CHANNELS * patch**2 + 2 * positions, width, bias=False),
        "picture encoder": layers + count * 2 * (norm(width, bias=False) + size),
        "projector": matrix(width, text_width, bias=False),
    }


def _gemma3n_vision(config: Config, text_width: int) -> dict[str, int]:
    """Gemma 3n: MobileNet-V5, whose file names it alone, as timm 1.0 makes it; words of its own for pictures."""
    named = config.data.get("architecture", "mobilenetv5_300m_enc")
    if named != "mobilenetv5_300m_enc":
        config.fail("unknown-architecture", f"its encoder of pictures, '{str(named)[:60]}', is not counted",
                    "architecture", _TEXT_ALONE)  # fmt: skip
    width = config.count("hidden_size", most="width", default=2048)
    words = config.count("vocab_size", most="width", default=128)
    return {
        "picture encoder": 294_126_912,
        "projector": matrix(words, width, bias=False) + 2 * width + matrix(width, text_width, bias=False),
    }


def _cohere2_vision(config: Config, text_width: int) -> dict[str, int]:
    """Command A Vision: SigLIP, of which a square of patches is shuffled together; a gate halves what it is made."""
    top = Config({key: config.outer.get(key) for key in ("downsample_factor", "alignment_intermediate_size")},
                 config.file, config.text)  # fmt: skip
    top.problems = config.problems
    merged = config.count("hidden_size", most="width") * top.count("downsample_factor", most="width", default=2) ** 2
    inner = top.count("alignment_intermediate_size", most="width", default=36_864)
    return _siglip(config) | {"projector": matrix(merged, inner) + matrix(inner // 2, text_width)}


def _ernie_vision(config: Config, text_width: int) -> dict[str, int]:
    """Ernie 4.5 VL: an encoder, two merges (a square, then two pictures), and experts that only pictures visit."""
    width = config.count("hidden_size", most="width", default=1280)
    heads = config.count("num_heads", most="heads", default=16)
    patch = config.count("patch_size", most="width", default=14)
    inner = config.count("intermediate_size", most="width", default=4 * width)
    count = config.count("depth", most="layers", default=32)
    merged = width * config.count("spatial_merge_size", most="width", default=2) ** 2
    merges = sum(matrix(times * merged, merged) + matrix(merged, merged) + norm(merged) for times in (1, 2))
    inside = config.outer.get("text_config")
    text = Config(inside if isinstance(inside, Mapping) else config.outer, config.file, config.text)
    text.problems = config.problems
    text.data = {key: value[1] if key.startswith("moe_") and isinstance(value, list) and len(value) == 2 else value
                 for key, value in text.data.items()}  # fmt: skip
    experts = text.count("moe_num_experts", most="experts", default=64)
    wide = text.count("moe_intermediate_size", most="width")
    layers = text.count("num_hidden_layers", most="layers")
    kinds = text.kinds("mlp_layer_types", layers, ("dense", "sparse"))
    routed = kinds.count("sparse") if kinds else layers - text.count("moe_layer_start_index", most="layers", default=1)
    of_a_layer = par.expert_parameters(text_width, wide, experts, True) + par.router_parameters(text_width, experts, 1)
    return {
        "patches": matrix(_CHANNELS * patch**2, width, bias=False),
        "picture encoder": equal_layers(count, width, heads, size_of_heads(config, width, heads, "num_heads"), inner)
        + norm(width),
        "projector": merges + matrix(merged, text_width) + norm(text_width, bias=False),
        OF_PICTURES: routed * int(of_a_layer),
    }


def _lfm2_vision(config: Config, text_width: int) -> dict[str, int]:
    """LFM2-VL: SigLIP 2 in the plane, of which a square of patches is normed, and projected by two matrices."""
    keys = ("downsample_factor", "projector_hidden_size", "projector_bias", "projector_use_layernorm")
    top = Config({key: config.outer.get(key) for key in keys}, config.file, config.text)
    top.problems = config.problems
    places = config.count("num_patches", most="tokens", default=256)
    patch = config.count("patch_size", most="width", default=16)
    side = patch * round(places**0.5)  # as many as of a square picture
    if (side // patch) ** 2 != places:
        config.fail("out-of-range", f"{places} patches are no square", "num_patches")
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "num_attention_heads": 12}
    config.data = {**sizes, **config.data, "patch_size": patch, "image_size": side}
    merged = config.count("hidden_size", most="width") * top.count("downsample_factor", most="width", default=2) ** 2
    inner, bias = top.count("projector_hidden_size", most="width", default=2560), top.flag("projector_bias", True)
    normed = norm(merged) if top.flag("projector_use_layernorm", True) else 0
    return _siglip(config) | {"projector": normed + matrix(merged, inner, bias=bias)
                              + matrix(inner, text_width, bias=bias)}  # fmt: skip


def _molmo_vision(config: Config, text_width: int) -> dict[str, int]:
    """Molmo: its code fixes CLIP ViT-L/14 at 336 pixels without the last layer; two layers are read side by side."""
    width, patch, pixels = 1024, 14, 336
    inner = config.count("intermediate_size", most="width", least=2) // 2  # as wide as the text's feed-forward part
    clip = equal_layers(23, width, 16, 64, 4 * width)
    seen = 2 * width
    pool = 3 * matrix(seen, width) + matrix(width, width)
    further = config.count("additional_vocab_size", most="width", default=128, least=0)
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width, bias=False)
        + matrix((pixels // patch) ** 2 + 2, width, bias=False),
        "picture encoder": clip + norm(width),
        "projector": pool + 2 * seen + 2 * matrix(width, inner, bias=False) + matrix(inner, text_width, bias=False),
        "words for pictures": matrix(further, text_width, bias=False),
    }


def _logics_vision(config: Config, text_width: int) -> dict[str, int]:
    """Logics: SigLIP without its last layer and head, beside the largest ConvNeXt of OpenCLIP, which its code names."""
    if config.data.get("mm_vision_tower") != _LOGICS_TOWERS:
        config.fail("unknown-architecture", f"its encoders of pictures are not '{_LOGICS_TOWERS}'", "mm_vision_tower",
                    _TEXT_ALONE)  # fmt: skip
    tower = config.part("siglip_config")
    width, patch = tower.count("hidden_size", most="width"), tower.count("patch_size", most="width")
    heads, inner = tower.count("num_attention_heads", most="heads"), tower.count("intermediate_size", most="width")
    layers = tower.count("num_hidden_layers", most="layers", least=2) - 1
    side = tower.count("image_size", most="width") // max(patch, 1)
    head_size = size_of_heads(tower, width, heads, "num_attention_heads")
    joined = config.count("mm_hidden_size", most="width")
    return {
        "patches and positions": matrix(_CHANNELS * patch**2, width) + matrix(side**2, width, bias=False),
        "picture encoder": equal_layers(layers, width, heads, head_size, inner) + norm(width),
        "second picture encoder": _convnext(depths=(3, 4, 30, 3), widths=(384, 768, 1536, 3072), out=1024),
        "projector": matrix(joined, text_width) + matrix(text_width, text_width),
        "end of a line of pictures": text_width,
    }


def _convnext(*, depths: tuple[int, ...], widths: tuple[int, ...], out: int) -> int:
    """ConvNeXt (Z. Liu et al., "A ConvNet for the 2020s," CVPR 2022): patches of 4, halved before each stage."""
    total = matrix(_CHANNELS * 4**2, widths[0]) + norm(widths[0])
    for index, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        if index:
            total += norm(widths[index - 1]) + matrix(4 * widths[index - 1], width)
        over_place = matrix(7 * 7, width)  # one kernel a channel
        total += depth * (over_place + norm(width) + int(par.mlp_parameters(width, 4 * width, False, True)) + width)
    return total + norm(widths[-1]) + matrix(widths[-1], out)


def _seen(config: Config, layers: str, inner: str, width: int, heads: int, *, norm_bias: bool = True,
          gated: bool = False) -> int:  # fmt: skip
    count, feed = config.count(layers, most="layers"), config.count(inner, most="width")
    head_size = size_of_heads(config, width, heads, layers)
    return equal_layers(count, width, heads, head_size, feed, norm_bias=norm_bias, gated=gated)


_VISION: Mapping[str, Callable[[Config, int], dict[str, int]]] = MappingProxyType(
    {
        "cohere2_vision": _cohere2_vision,
        "ernie4_5_moe_vl": _ernie_vision,
        "ernie4_5_vl_moe": _ernie_vision,
        "gemma3": _gemma3_vision,
        "gemma3n": _gemma3n_vision,
        "gemma4": _gemma4_vision,
        "kimi_k25": _kimi_vision,
        "kimi_vl": _kimi_vision,
        "lfm2_vl": _lfm2_vision,
        "idefics3": _idefics3_vision,
        "glm46v": _glm4v_vision,
        "glm4v": _glm4v_vision,
        "glm4v_moe": _glm4v_vision,
        "internvl": _internvl_vision,
        "internvl_chat": _internvl_vision,
        "llama4": _llama4_vision,
        "llava": _llava_vision,
        "llava_next": _llava_vision,
        "llava_next_video": _llava_vision,
        "llava_onevision": _llava_vision,
        "logics": _logics_vision,
        "mistral3": _mistral3_vision,
        "mllama": _mllama_vision,
        "molmo": _molmo_vision,
        "paligemma": _paligemma_vision,
        "phi4mm": _phi4_vision,
        "qwen2_5_omni_thinker": _qwen25_vision,
        "qwen2_5_vl": _qwen25_vision,
        "qwen2_vl": _qwen2_vision,
        "qwen3_5": _qwen3_vision,
        "qwen3_5_moe": _qwen3_vision,
        "qwen3_omni_moe_thinker": _qwen3_vision,
        "qwen3_vl": _qwen3_vision,
        "qwen3_vl_moe": _qwen3_vision,
        "shieldgemma2": _gemma3_vision,
        "smolvlm": _idefics3_vision,
    }
)
