"""Models by name, by config file, or by size alone."""

from __future__ import annotations

import difflib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, Config, parse_json
from planner.architecture.from_config import build
from planner.architecture.model import Architecture, size_only
from planner.errors import InputError, Problem
from planner.files import read_text

PRESETS = Path(__file__).parent / "presets"


def load_model(ref: str | os.PathLike[str]) -> Architecture:
    """The architecture of a preset name, a model on Hugging Face, a `config.json`, or a folder that holds one.

    A name is looked up among the presets first; anything with a path separator, a `.json` ending, or that exists on
    disk is a path. What looks like ORGANISATION/MODEL and is no path is the preset of that model, else its
    `config.json` in the local cache of the hub: nothing is fetched. Without its publisher, or as "llama3.1:70b", a
    published name is the preset of its shape.
    """
    text = os.fspath(ref)
    if isinstance(ref, str) and text in list_presets():
        return _preset(text)
    if isinstance(ref, str) and is_hub_name(text):
        found = of_hub(text)
        return _preset(found) if isinstance(found, str) else load_config(found)
    if _is_path(text):
        return load_config(Path(text))
    alike = preset_of(text)
    if alike is None:
        raise _unknown_model(text)
    return _preset(alike)


def is_hub_name(text: str) -> bool:
    """Whether a text is ORGANISATION/MODEL and no path that is there."""
    return bool(_HUB.fullmatch(text)) and not Path(text).exists()


def of_hub(name: str) -> str | Path:
    """Name of the preset of a model on Hugging Face, else its config in the local cache of the hub.

    Raises
    ------
    InputError
        It is neither.
    """
    preset = preset_of(name)
    if preset is not None:
        return preset
    folder = hub_cache() / f"models--{name.replace('/', '--')}" / "snapshots"
    found = sorted(folder.glob("*/config.json")) if folder.is_dir() else []
    if found:
        main = folder.parent / "refs" / "main"  # of several revisions that are kept, the one that the hub shows
        now = read_text(main, limit_bytes=1000).strip() if main.is_file() else ""
        return next((each for each in found if each.parent.name == now), found[-1])
    known = _published()
    near = suggestions(name.rpartition("/")[2].lower(), tuple(sorted({*known, *list_presets()})))
    presets = [known.get(one, one) for one in near]
    hint = f"{', '.join(dict.fromkeys(presets))}  ·  " if presets else ""
    message = f"'{name[:60]}' is no preset, and its config is not in the local cache of the hub"
    raise InputError(
        Problem(reference="unknown-model", message=message, hint=f"{hint}own model: {{config: path/to/config.json}}")
    )


def hub_cache() -> Path:
    """Where the hub keeps what was downloaded: its own environment variables, else its default."""
    home = os.environ.get("HF_HOME") or str(Path.home() / ".cache" / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or str(Path(home) / "hub"))


_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,60}/[A-Za-z0-9][\w.-]{0,90}")


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


# Released under other names with the shape of a preset: patterns of the whole name.
_SAME_SHAPE = (
    (r"deepseek-r1-distill-llama-(8b|70b)", r"llama-3.1-\1"),
    (r"deepseek-r1-distill-qwen-([\d.]+b)", r"qwen2.5-\1"),
    (r"deepseek-(r1|r1-zero|v3\.1)", "deepseek-v3"),
    (r"glm-4\.7", "glm-4.6"),
    (r"glm-5(\.\d)?", "glm-5"),
    (r"kimi-k2(\.\d)?", "kimi-k2"),
    (r"llama-3\.3-70b", "llama-3.1-70b"),
    (r"minimax-m2(\.\d)?", "minimax-m2.5"),
    (r"llama-4-(maverick|scout)(-17b-\d+e)?", r"llama-4-\1-text"),
    (r"codellama-(7b|13b)", r"llama-2-\1"),
    (r"qwen3-vl-32b", "qwen3-32b"),
    (r"qwq-32b", "qwen2.5-32b"),
)
# What follows the name of a shape and does not change it: tuning, dates, formats.
_TUNED = re.compile(
    r"(-(99|99\.9|edge|interactive|instruct|chat|hf|it|base|thinking|preview|exp|speciale|terminus|turbo|v0\.\d|\d{4}|fp8|fp4|nvfp4|mxfp4|bf16|fp16|int[48]"
    r"|w[48]a\d+|awq|gptq|kv|dynamic|quantized|flashhead|gguf|q\d_\w+))+$"
)


@lru_cache(maxsize=4096)
def preset_of(name: str) -> str | None:
    """The preset that a published model name speaks of, whoever published it and in which format; None when none does.

    Examples
    --------
    >>> preset_of("zai-org/GLM-4.5-Air-FP8"), preset_of("Qwen/Qwen3-235B-A22B-Instruct-2507"), preset_of("my-model")
    ('glm-4.5-air', 'qwen3-235b-a22b', None)
    """
    plain = _plain(name)
    bare = _TUNED.sub("", plain)
    known = list_presets()
    for text in (plain, bare):
        if text in known or text in _published():
            return text if text in known else _published()[text]
    found = next(
        (re.sub(pattern, preset, bare) for pattern, preset in _SAME_SHAPE if re.fullmatch(pattern, bare)), None
    )
    return found if found in known else None


def _plain(name: str) -> str:
    """A published name without its publisher, as presets are written."""
    plain = re.sub(r"[\s_:]+", "-", name.lower().rsplit("/", 1)[-1])
    return re.sub(r"^(meta-)?(llama)-?(?=\d)", "llama-", plain)


def of_same_shape(name: str) -> str:
    """The preset by whose shape a model of another name is planned; "" where the name is that of a preset, or of none.

    Examples
    --------
    >>> of_same_shape("Llama-3.3-70B-Instruct"), of_same_shape("qwen3:32b"), of_same_shape("Qwen/Qwen3-32B")
    ('llama-3.1-70b', '', '')
    """
    found, plain = preset_of(name), _plain(name)
    return "" if found is None or plain == found or _published().get(plain) == found else found


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


@lru_cache(maxsize=1)
def _published() -> dict[str, str]:
    """Presets by the name under which their model is published, without its publisher, in small letters."""
    ids = {name: str(_document(name)[1]["hf_id"]) for name in list_presets()}
    return {published.lower().rsplit("/", 1)[-1]: name for name, published in ids.items()}


def preset_config(name: str) -> dict[str, Any]:
    """The config of a preset, in the words of Hugging Face."""
    config: dict[str, Any] = _document(name)[1]["config"]
    return config


@lru_cache(maxsize=256)
def _preset(name: str) -> Architecture:
    text, document = _document(name)
    return build(Config(document["config"], f"{name}.json", text), name=name, source=document["source"])


def _document(name: str) -> tuple[str, dict[str, Any]]:
    file = PRESETS / f"{name}.json"
    text = read_text(file, limit_bytes=CONFIG_LIMIT_BYTES)
    return text, parse_json(text, file.name)


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
    """The nearest known names: those that begin with it, then the most alike.

    Parameters
    ----------
    name
        What was asked for; taken in small letters, and no more of it than 100 characters.
    known
        Names to choose from.
    most
        How many are given at most.  [count]
    """
    low = name.lower()[:100]
    begins = [candidate for candidate in known if low and candidate.startswith(low)]
    alike = difflib.get_close_matches(low, known, n=most, cutoff=0.5)
    return list(dict.fromkeys([*begins[:most], *alike]))[:most]
