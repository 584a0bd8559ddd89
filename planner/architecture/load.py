"""Models by name, by config file, or by size alone."""

from __future__ import annotations

import difflib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.architecture.build import build
from planner.architecture.config import CONFIG_LIMIT_BYTES, Config, parse_json
from planner.architecture.model import Architecture, size_only
from planner.errors import InputError, Problem
from planner.files import read_text

PRESETS = Path(__file__).parent / "presets"


def load_model(ref: str | os.PathLike[str]) -> Architecture:
    """The architecture of a preset name, a `config.json`, or a folder that holds one.

    A name is looked up among the presets first; anything with a path separator, a `.json`
    ending, or that exists on disk is a path.
    """
    text = os.fspath(ref)
    if isinstance(ref, str) and text in list_presets():
        return _preset(text)
    if _is_path(text):
        return load_config(Path(text))
    raise _unknown_model(text)


def load_config(path: Path) -> Architecture:
    """The architecture of a Hugging Face `config.json`, or of a folder that holds one."""
    file = path / "config.json" if path.is_dir() else path
    text = read_text(file, limit_bytes=CONFIG_LIMIT_BYTES)
    name = file.parent.name if file.name == "config.json" and file.parent.name else file.stem
    return build(Config(parse_json(text, str(file)), str(file), text), name=name, source=str(file))


def coarse_model(parameters: float) -> Architecture:
    """A model of which only the size is known: no layers, so no attention, activations or cache."""
    if not 1 <= parameters <= 1e16:
        hint = "for example parameters: 8B"
        raise InputError.of("out-of-range", f"a model of {parameters} parameters is not possible", hint=hint)
    count = round(parameters)
    source = "the scenario: a parameter count only"
    return size_only(name=f"{count / 1e9:g}B", family="coarse", source=source, parameters=count)


@lru_cache(maxsize=1)
def list_presets() -> tuple[str, ...]:
    """Names of the shipped models, sorted; reads file names only."""
    return tuple(sorted(path.stem for path in PRESETS.iterdir() if path.suffix == ".json"))


def preset_summary() -> list[dict[str, Any]]:
    """One row a preset: name, family, counts and shape, all computed; for `plan models list`."""
    return [_summary(_preset(name)) for name in list_presets()]


def _summary(model: Architecture) -> dict[str, Any]:
    return {
        "name": model.name,
        "family": model.family,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "layers": model.layer_count,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_positions": model.max_positions,
        "source": model.source,
    }


@lru_cache(maxsize=256)
def _preset(name: str) -> Architecture:
    file = PRESETS / f"{name}.json"
    text = read_text(file, limit_bytes=CONFIG_LIMIT_BYTES)
    document = parse_json(text, file.name)
    return build(Config(document["config"], file.name, text), name=name, source=document["source"])


def _is_path(text: str) -> bool:
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    if any(separator in text for separator in separators) or text.endswith(".json"):
        return True
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):  # a name too long or with a null byte
        return False


def _unknown_model(name: str) -> InputError:
    own = "own model: {config: path/to/config.json}"
    near = suggestions(name, list_presets())
    hint = f"{', '.join(near)}  ·  {own}" if near else f"plan models list  ·  {own}"
    shown = name if len(name) <= 60 else name[:57] + "..."
    return InputError(Problem(reference="unknown-model", message=f"no model preset '{shown}'", hint=hint))


def suggestions(name: str, known: tuple[str, ...], most: int = 3) -> list[str]:
    """The nearest known names: those that begin with it, then the most alike."""
    low = name.lower()[:100]
    begins = [candidate for candidate in known if low and candidate.startswith(low)]
    alike = difflib.get_close_matches(low, known, n=most, cutoff=0.5)
    return list(dict.fromkeys([*begins[:most], *alike]))[:most]
