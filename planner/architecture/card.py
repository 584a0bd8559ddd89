"""What a model's own files say of it, word for word: for launch files, which repeat it to a trainer or a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, TEXT_CONFIGS, parse_json
from planner.architecture.load import PRESETS, is_hub_name, list_presets, of_hub, preset_of
from planner.architecture.stored import format_of, settings_of
from planner.carriers import dataclass
from planner.errors import InputError
from planner.files import read_text

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
