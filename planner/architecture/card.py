"""What a model's own files say of it, word for word: for launch files, which repeat it to a trainer or a server.

Among it the format in which a checkpoint holds its weights, as its own config says it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, TEXT_CONFIGS, parse_json
from planner.architecture.load import PRESETS, is_hub_name, list_presets, of_hub, preset_of
from planner.carriers import dataclass
from planner.errors import InputError
from planner.files import read_text

_ALGORITHMS = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8_pb", "fp8-block"), ("fp8", "fp8"), ("w4a", "int4"), ("int4", "int4"),
    ("int8", "int8"), ("w8a", "int8"),
)  # fmt: skip


# where quantisers left their settings: transformers, llm-compressor before it, MLX before it
_KEYS = ("quantization_config", "compression_config", "quantization")


def settings_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The settings that a quantiser left in a model's config; None where there are none."""
    return next((config[key] for key in _KEYS if isinstance(config.get(key), Mapping)), None)


def format_of(quantised: Mapping[str, Any]) -> str:
    """The format of weights that the settings of a quantiser mean; "" when none of those planned."""
    method = str(quantised.get("quant_method") or "").lower()
    bits = quantised.get("bits", quantised.get("w_bit"))
    if method.rsplit("/", 1)[-1] in ("awq", "gptq", "auto-round") or (not method and bits):  # MLX names no method
        return {4: "int4", 8: "int8"}.get(bits, "") if isinstance(bits, int) else ""
    if method == "bitsandbytes" or "load_in_4bit" in quantised:
        return (
            "int4" if quantised.get("load_in_4bit") is True else "int8" if quantised.get("load_in_8bit") is True else ""
        )
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8-block" if quantised.get("weight_block_size") else "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method == "compressed-tensors":
        return _of_groups(quantised.get("config_groups"))
    if method == "modelopt_fp4":
        return "nvfp4"
    inner = quantised.get("quantization")
    named = str(quantised.get("quant_algo") or (inner.get("quant_algo") if isinstance(inner, Mapping) else "")).lower()
    return next((form for mark, form in _ALGORITHMS if mark in named), "")


def _of_groups(groups: Any) -> str:
    """The format of compressed tensors: that of the only kind of weights, "" when there are several."""
    found = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        kind, bits = str(weights.get("type")), str(weights.get("num_bits"))
        four = "mxfp4" if str(weights.get("group_size")) == "32" else "nvfp4"  # which share a scale by 32 and by 16
        eight = "fp8-block" if weights.get("strategy") == "block" else "fp8"
        form = {("int", "4"): "int4", ("int", "8"): "int8", ("float", "8"): eight, ("float", "4"): four}
        found.add(form.get((kind, bits), ""))
    return found.pop() if len(found) == 1 else ""


_SAID = re.compile(r"[-_](fp8|mxfp4|nvfp4)(?![a-z0-9])", re.IGNORECASE)  # "Qwen/Qwen3-32B-FP8"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """A `config.json`, and the repository that it came from."""

    hf_id: str  # "" unknown
    config: Mapping[str, Any]  # the text model's part
    checkpoint: str  # format of the weights in that repository; "" 16 bits, as most are, or unknown


def preset_card(name: str) -> ModelCard:
    """The card of a shipped model, or of one by its name on Hugging Face, which is then what is launched.

    Raises
    ------
    InputError
        There is no such preset, and no config of it in the local cache of the hub.
    """
    if name not in list_presets() and is_hub_name(name):
        found = of_hub(name)
        if not isinstance(found, str):
            return replace(config_card(str(found)), hf_id=name)
        return replace(preset_card(found), hf_id=name, checkpoint=_checkpoint(_preset(found), name))
    if name not in list_presets():
        alike = preset_of(name)
        if alike is None:
            raise InputError.of("unknown-model", f"no model preset '{name[:60]}'", hint="plan models list")
        known, plain = _preset(alike), name.lower().replace(":", "-")
        repositories = (known["hf_id"], *known.get("checkpoint", {}).get("repositories", ()))
        own = next((one for one in repositories if one.rpartition("/")[2].lower() == plain), "")
        return replace(preset_card(alike), hf_id=own, checkpoint=_checkpoint(known, own or name))
    document = _preset(name)
    published = document["hf_id"] if "/" in document["hf_id"] else ""  # "(GPT-3)": its weights are not to be had
    checkpoint = _checkpoint(document, published)
    return ModelCard(hf_id=published, config=_text_part(document["config"]), checkpoint=checkpoint)


def _preset(name: str) -> dict[str, Any]:
    return parse_json(read_text(PRESETS / f"{name}.json", limit_bytes=CONFIG_LIMIT_BYTES), f"{name}.json")


def _checkpoint(preset: Mapping[str, Any], repository: str) -> str:
    """What is known of a repository with the shape of a preset: a fact of the preset, else what its name says."""
    stored = preset.get("checkpoint")
    if stored is not None and repository in stored["repositories"]:
        return str(stored["weights"])
    said = _SAID.search(repository)
    return said[1].lower() if said else ""


def stored_format(preset: str | None, config: str | None) -> str:
    """The format of the weights in a model's repository; "" 16 bits, as most are, or unknown.

    Parameters
    ----------
    preset
        Name of a shipped preset, or of its model on Hugging Face.
    config
        In its place a `config.json`, or its folder.

    Examples
    --------
    >>> stored_format("deepseek-v3", None), stored_format("llama-3.1-8b", None), stored_format(None, None)
    ('fp8-block', '', '')
    """
    if preset is None and config is None:
        return ""
    return (preset_card(preset) if preset is not None else config_card(str(config))).checkpoint


def config_card(path: str) -> ModelCard:
    """The card of a `config.json`, or of a folder that holds one.

    Raises
    ------
    InputError
        There is no such file, or it is not JSON.
    """
    file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
    document = parse_json(read_text(file, limit_bytes=CONFIG_LIMIT_BYTES), str(file))
    named, text = document.get("_name_or_path"), _text_part(document)
    quantised = settings_of(text)
    checkpoint = format_of(quantised) if quantised is not None else ""
    return ModelCard(hf_id=named if isinstance(named, str) else "", config=text, checkpoint=checkpoint)


def _text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config of the language model, that of a multimodal one over what stands around it."""
    inside = next((config[key] for key in TEXT_CONFIGS if isinstance(config.get(key), Mapping)), None)
    return {**config, **inside} if inside is not None else config
