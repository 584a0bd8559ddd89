"""Models as their own files tell of them: config.json, the format that a quantiser left, adapters.

The params.json that Mistral and Meta lay beside their weights is told in the words of a config.json.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, TEXT_CONFIGS, THINKER, Config, parse_json
from planner.architecture.counted import counted_parts, why_counted
from planner.architecture.encoders import is_encoder, whole_parts
from planner.architecture.from_config import HIDDEN_KEYS, LAYER_KEYS, build, without_head
from planner.architecture.load import AHEAD, format_of, settings_of
from planner.architecture.model import Architecture
from planner.architecture.vision import OF_PICTURES, vision_parts
from planner.estimate.serving import weight_bytes_of_model
from planner.reading.jsonlines import head_document, head_keys, loads
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, fit
from planner.reading.request_log import name_of
from planner.reading.source import Source, refused

NEEDED = ("dim", "n_layers", "n_heads")
_SAME = ("head_dim", "vocab_size", "sliding_window", "max_position_embeddings", "rope_theta", "q_lora_rank",
         "qk_rope_head_dim", "qk_nope_head_dim", "kv_lora_rank", "v_head_dim")  # fmt: skip
_SEES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels", "patch_size",
         "image_size", "rope_theta")  # fmt: skip


def as_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json of the same shape; what `params` has not is left out, and missed where it is needed."""
    said = {
        "hidden_size": params.get("dim"), "num_hidden_layers": params.get("n_layers"),
        "num_attention_heads": params.get("n_heads"),
        "num_key_value_heads": params.get("n_kv_heads") or params.get("n_heads"),
        "intermediate_size": params.get("hidden_dim") or _feed_forward(params),
        "max_position_embeddings": params.get("max_seq_len"), "rms_norm_eps": params.get("norm_eps"),
        "tie_word_embeddings": params.get("tied_embeddings") is True,
    }  # fmt: skip
    text = said | {key: params[key] for key in _SAME if params.get(key) is not None}
    text = {"model_type": "llama" if "multiple_of" in params else "mistral"} | text
    moe = params.get("moe")
    if isinstance(moe, Mapping):
        text |= {"model_type": "mixtral", "num_local_experts": moe.get("num_experts"),
                 "num_experts_per_tok": moe.get("num_experts_per_tok")}  # fmt: skip
    if isinstance(moe, Mapping) and "kv_lora_rank" in params:
        text |= {"model_type": "deepseek_v3", "n_routed_experts": moe.get("num_experts"),
                 "moe_intermediate_size": moe.get("expert_hidden_dim"),
                 "n_shared_experts": moe.get("num_shared_experts", 0),
                 "first_k_dense_replace": moe.get("first_k_dense_replace", 0)}  # fmt: skip
        del text["num_local_experts"]
    config = {key: value for key, value in text.items() if value is not None}
    sees = params.get("vision_encoder")
    if isinstance(sees, Mapping):
        eye = {"model_type": "pixtral"} | {key: sees[key] for key in _SEES if key in sees}
        config = {"model_type": "mistral3", "text_config": config, "vision_config": eye,
                  "spatial_merge_size": sees.get("spatial_merge_size", 1),
                  "multimodal_projector_bias": sees.get("adapter_bias") is True}  # fmt: skip
    quantised = params.get("quantization")
    if isinstance(quantised, Mapping) and str(quantised.get("qformat_weight", "")).startswith("fp8"):
        config["quantization_config"] = {"quant_method": "fp8"}
    elif isinstance(quantised, Mapping):
        config["quantization_config"] = {"quant_method": "compressed-tensors"} | dict(quantised)
    return config


def _feed_forward(params: Mapping[str, Any]) -> int | None:
    """The width that Meta's code works out; None where it is not told how."""
    dim, multiple, factor = (params.get(key) for key in ("dim", "multiple_of", "ffn_dim_multiplier"))
    if not (isinstance(dim, int) and isinstance(multiple, int) and 0 < multiple <= 10**7 and 0 < dim <= 10**7):
        return None
    width = int(8 * dim / 3)
    if isinstance(factor, int | float) and 0 < factor < 1000:
        width = int(factor * width)
    return multiple * math.ceil(width / multiple)


_WIDTHS = (*HIDDEN_KEYS, "dim", "hidden_dim", *TEXT_CONFIGS)
_DEPTHS = (*LAYER_KEYS, "encoder_layers", *TEXT_CONFIGS)
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8"}
_WIDTH_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
_UNTOLD_AHEAD = ("qwen3_next",)  # whose checkpoints hold such layers, though the file does not say so


def _config_match(source: Source) -> Match:
    document = head_document(source)
    if document is None:
        keys = head_keys(source) if source.head_text.lstrip()[:1] == "{" else set()
        ceiling = 0.9
    else:
        keys = set(document) if isinstance(document, Mapping) else set()
        ceiling = 1.0
    if {"_class_name", "_diffusers_version"} <= keys:
        return Match(score=0.9, found=("_class_name, _diffusers_version",), tool="diffusers")
    if set(NEEDED) <= keys and "model_type" not in keys:
        return Match(score=0.95, found=NEEDED, tool="params.json of Mistral or Meta")
    if "weight_map" in keys or not keys & {"model_type", "architectures"}:
        return NOTHING
    marks = {
        "model_type or architectures": True,
        "a width (hidden_size)": bool(keys & set(_WIDTHS)),
        "layers (num_hidden_layers)": bool(keys & set(_DEPTHS)),
    }
    if {"model_type", "architectures"} <= keys and not all(marks.values()):
        return Match(score=0.7, found=("model_type", "architectures"), tool="transformers")  # its sizes stand in parts
    return fit(marks, tool="transformers", ceiling=ceiling)


def _config(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="model-config", title="configuration of a model", source=source.name, of="models")
    text = source.text(CONFIG_LIMIT_BYTES)
    _demand_counted(source, text)
    document = parse_json(text, source.name)
    if set(NEEDED) <= set(document) and "model_type" not in document:
        document = as_config(document)
        text = json.dumps(document, indent=1)
    version = document.get("transformers_version")
    reading.version = version[:40] if isinstance(version, str) else ""
    config = Config(document, source.name, text)
    reading.understood["family"] = config.model_type[:60]
    reading.taken = 1
    if is_encoder(config.model_type):
        vision_parts(config)
        parts = whole_parts(config)
        _show_parts(reading, parts)
        reading.note(
            "It is no decoder alone: its parameters are counted, but no fleet of it can be planned, as the equations "
            "of serving are of models that write token after token; a job takes model: {parameters: "
            f"{sum(parts.values()) / 1e6:.0f}M}}."
        )
        return reading
    if why := why_counted(config):
        parts = counted_parts(config)
        beside = vision_parts(config)
        for of in _seen_and_heard(beside):
            parts[of] = _seen_and_heard(beside)[of]
        _show_parts(reading, parts)
        parameters = f"; a job takes model: {{parameters: {sum(parts.values()) / 1e6:.0f}M}}"
        reading.note(f"No fleet of it can be planned, as no equation of serving here is of such layers ({why})"
                     f"{'' if 'experts' in parts else parameters}.")  # fmt: skip
        _tell_ahead(reading, config)
        return reading
    arch = build(config, name=_name(source, document, asked), source=source.name)
    beside = vision_parts(config)
    reading.show("parameters", arch.parameters + sum(beside.values()))
    if beside:
        reading.show("parameters of the text model", arch.parameters)
        for of in _seen_and_heard(beside):
            reading.show(f"parameters of the {of}", _seen_and_heard(beside)[of])
    if arch.active_parameters != arch.parameters:
        idle = beside.get(OF_PICTURES, 0)
        reading.show("active parameters", arch.active_parameters + sum(beside.values()) - idle)
    reading.show("layers", arch.layer_count)
    told = 0 if config.has("cross_attention_layers") else config.count(*LAYER_KEYS, most="layers", default=0)
    if told not in (0, arch.layer_count):
        reading.note(f"It counts its layers otherwise, as {told}; a plan counts a layer for each mixer, with the "
                     "feed-forward parts after it.")  # fmt: skip
    if config.spoken:
        speaks = ", ".join(config.spoken)[:200]
        reading.note(f"What makes sound of its words ({speaks}) is neither counted nor planned: its files are larger, "
                     "and a server that speaks holds it, too.")  # fmt: skip
    if isinstance(document.get("auto_map"), Mapping):
        reading.note("Its code comes with its weights: whether an engine runs it is not told here, so try it first.")
    if without_head(config):
        reading.note("Its class has no output head of words, and none is counted: it embeds or rates texts.")
    _tell_ahead(reading, config)
    reading.show("hidden size", arch.hidden_size)
    reading.show("longest context", arch.max_positions or None, "tokens")
    _piece(reading, document, arch, beside, text)
    return reading


def _tell_ahead(reading: Reading, config: Config) -> None:
    ahead = next((key for key in AHEAD if config.has(key)), None)
    if ahead and (layers := config.count(ahead, most="layers", default=0, least=0)):
        reading.note(f"Layers that guess tokens ahead ({ahead}: {layers}) are not counted: where the checkpoint holds "
                     "them, its files are larger.")  # fmt: skip
    elif config.model_type in _UNTOLD_AHEAD:
        reading.note("Layers that guess tokens ahead are not counted: the file does not tell of them, but the "
                     "checkpoint holds them, and its files are larger by about 2 %.")  # fmt: skip


def _demand_counted(source: Source, text: str) -> None:
    """Models that are not counted are refused by name, before numbers of theirs that JSON does not have."""
    try:
        document = loads(text)
    except ValueError:
        return  # said with its line by what reads it
    if isinstance(document, dict) and "_diffusers_version" in document:
        message = f"{source.name} is a part of a diffusion model, '{str(document.get('_class_name'))[:60]}'"
        raise refused(source, "unknown-architecture", message, "models that make pictures step by step are not planned")


def _name(source: Source, document: Mapping[str, Any], asked: Asked) -> str:
    """By the command line, by what the file says of itself, by its folder, by its own name."""
    if asked.name:
        return asked.name
    said = document.get("_name_or_path")
    path = PurePath(str(source.paths[0]))
    stem = re.sub(r"[._-]?config$", "", re.sub(r"(\.json)?(\.gz|\.zst)?$", "", path.name))
    folder = path.parent.name
    stem = "" if stem.startswith("params") else stem
    found = (PurePath(said).name if isinstance(said, str) else "") or stem or folder or "model"
    name = name_of(found)
    return name.removeprefix("requests-") if found[:1].isdigit() else name


def _show_parts(reading: Reading, parts: Mapping[str, int]) -> None:
    reading.show("parameters", sum(parts.values()))
    for part, count in parts.items():
        reading.show(f"parameters, {part}", count or None)


def _seen_and_heard(beside: Mapping[str, int]) -> dict[str, int]:
    """Parameters of the encoders of pictures and of sound, each with what ties it to the text; what there is."""
    heard = sum(count for part, count in beside.items() if part.startswith("sound"))
    both = {"picture encoder": sum(beside.values()) - heard, "sound encoder": heard}
    return {of: count for of, count in both.items() if count}


def _piece(reading: Reading, document: Mapping[str, Any], arch: Architecture, beside: Mapping[str, int],
           text: str) -> None:  # fmt: skip
    """A fleet of the model, with its config beside the scenario; the format of its weights where the file tells it."""
    thinker = document.get(THINKER)
    whole = thinker if isinstance(thinker, Mapping) else document
    inner = next((whole[key] for key in TEXT_CONFIGS if isinstance(whole.get(key), Mapping)), whole)
    quantised = settings_of(document) or settings_of(inner)
    stored = document.get("torch_dtype") or document.get("dtype") or inner.get("torch_dtype") or inner.get("dtype")
    weights = _DTYPES.get(str(stored).removeprefix("torch."), "")
    if isinstance(quantised, Mapping):
        method = str(quantised.get("quant_method") or "without a name")[:40]
        weights = format_of(quantised)
        reading.understood["quantization"] = method + (f", taken as {weights}" if weights else "")
        if not weights:
            reading.note(f"'{method}' is no format that is planned: say weights: of the fleet yourself.")
    elif weights:
        reading.understood["weights"] = f"stored as {stored}"
    elif stored is not None:
        reading.note(f"How its weights are stored, '{str(stored)[:40]}', is no format that is known: say weights: of "
                     "the fleet yourself.")  # fmt: skip
    if weights in _WIDTH_BYTES:
        count = arch.parameters + sum(beside.values())
        reading.show(f"weight bytes as {weights}", count * _WIDTH_BYTES[weights], "B")
    elif weights:
        reading.show(f"weight bytes of the text model, about, as {weights}", weight_bytes_of_model(arch, weights), "B")
        reading.note("What a quantiser leaves in 16 bit varies: headers of the weights give bytes exactly.")
    if beside:
        encoders = [f"the {of} is {count * 2 / 1e9:.3g} GB more" for of, count in _seen_and_heard(beside).items()]
        reading.note(f"A plan holds the text model; {' and '.join(encoders)} in bf16.")
    name = name_of(arch.name)
    card = f"{name}.config.json"
    fleet: dict[str, Any] = {"name": name, "model": {"config": card}}
    if weights:
        fleet["weights"] = weights
    kept = quantised.get("kv_cache_scheme") if isinstance(quantised, Mapping) else None
    if isinstance(kept, Mapping) and kept.get("num_bits") == 8:
        fleet["kv_cache"] = "fp8" if kept.get("type") == "float" else "int8"
        reading.understood["cache"] = f"kept in 8 bit, taken as {fleet['kv_cache']}"
    reading.pieces.append(Piece(what="card", name=card, text=text, says="the config, for model:"))
    reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]},
                                says=f"a fleet of {name}; its load is to be added"))  # fmt: skip


def _quant_match(source: Source) -> Match:
    document = head_document(source)
    inner = document.get("quantization") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and _plain_of_quantiser(document):
        return Match(score=0.9, found=("bits of weights, in groups",), tool=_plain_of_quantiser(document))
    if not isinstance(inner, Mapping):
        return NOTHING
    return fit({"quantization": True, "quant_algo": "quant_algo" in inner, "producer": "producer" in document},
               tool="ModelOpt")  # fmt: skip


def _plain_of_quantiser(document: Mapping[str, Any]) -> str:
    """What wrote quantize_config.json or quant_config.json, from before they stood in the model's config; else ""."""
    if {"bits", "group_size", "desc_act"} <= set(document):
        return "AutoGPTQ"
    return "AutoAWQ" if {"w_bit", "q_group_size", "zero_point"} <= set(document) else ""


def _quant(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="quant-config", title="format that a quantiser left", source=source.name, of="formats")
    document = parse_json(source.text(CONFIG_LIMIT_BYTES), source.name)
    inner = document.get("quantization")
    if tool := _plain_of_quantiser(document):
        reading.tool = tool
        inner = {"quant_algo": f"int{document.get('bits', document.get('w_bit'))}"}
    if not isinstance(inner, Mapping):
        raise refused(source, "bad-header", f"{source.name} has no quantization")
    producer = document.get("producer")
    if isinstance(producer, Mapping):
        reading.tool, reading.version = (str(producer.get(key) or "")[:40] for key in ("name", "version"))
    fleet: dict[str, Any] = {"name": name_of(asked.name or _name(source, {}, asked))}
    for key, said, label in (("weights", "quant_algo", "weights"), ("kv_cache", "kv_cache_quant_algo", "cache")):
        value = inner.get(said)
        if not isinstance(value, str):
            continue
        form = format_of({"quant_algo": value})
        reading.understood[label] = f"{value[:40]}, taken as {form}" if form else f"{value[:40]}, which is not planned"
        if form:
            fleet[key] = form
    kept = inner.get("exclude_modules")
    reading.show("modules left in 16 bit", len(kept) if isinstance(kept, list) else None)
    reading.taken = 1
    if len(fleet) > 1:
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"serving": [fleet]},
                                    says="formats of a fleet's weights and cache"))  # fmt: skip
    return reading


def _adapter_match(source: Source) -> Match:
    keys = head_keys(source) if source.head_text.lstrip()[:1] == "{" else set()
    return fit({name: name in keys for name in ("peft_type", "base_model_name_or_path", "target_modules")}, tool="PEFT")


def _adapter(source: Source, asked: Asked) -> Reading:
    reading = Reading(kind="adapter-config", title="configuration of an adapter", source=source.name, of="adapters")
    document = parse_json(source.text(CONFIG_LIMIT_BYTES), source.name)
    reading.taken = 1
    for label, key in (("method", "peft_type"), ("base model", "base_model_name_or_path"), ("task", "task_type")):
        if isinstance(document.get(key), str):
            reading.understood[label] = str(document[key])[:200]
    rank, targets = document.get("r"), document.get("target_modules")
    if isinstance(rank, int) and not isinstance(rank, bool) and 0 < rank < 1_000_000:
        reading.show("rank", rank)
    if isinstance(targets, list):
        reading.understood["adapted"] = ", ".join(str(each)[:60] for each in targets[:20])
    elif targets is not None:
        reading.understood["adapted"] = json.dumps(targets)[:200]
    reading.note("An adapter has the shapes of its base model: read that model's config.json for parameters.")
    return reading


KINDS = (
    Kind(name="model-config", title="configuration of a model",
         looks_for="model_type with a width and layers, or dim, n_layers and n_heads (params.json), as JSON",
         recognise=_config_match, read=_config),
    Kind(name="quant-config", title="format that a quantiser left",
         looks_for="quantization with quant_algo, or bits with a size of groups, as JSON",
         recognise=_quant_match, read=_quant),
    Kind(name="adapter-config", title="configuration of an adapter",
         looks_for="peft_type and base_model_name_or_path, as JSON", recognise=_adapter_match, read=_adapter),
)  # fmt: skip
