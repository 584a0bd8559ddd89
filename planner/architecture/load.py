"""Models by name, by config file, or by size alone; and what a model's own files say of it, word for word.

That is for launch files, which repeat it to a trainer or a server. Among it is the format in which a checkpoint holds
its weights, as its own config says it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, TEXT_CONFIGS, THINKER, Config, parse_json
from planner.architecture.from_config import build
from planner.architecture.model import Architecture, size_only
from planner.carriers import dataclass
from planner.errors import InputError, Problem
from planner.files import read_text

PRESETS = Path(__file__).parent / "presets"
# Of layers that predict tokens ahead: DeepSeek, GLM and kin; Qwen
AHEAD = ("num_nextn_predict_layers", "mtp_num_hidden_layers")


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


# Published under another name with the shape of a preset, and with no fewer positions: (pattern of the whole name, its
# preset); "" is of a shape that no preset has, under a name that reads like one. A name is looked up here as it is
# written and again without each of its endings, so a row of a longer name goes before that of a shorter one. What was
# pruned, searched for or stretched is no row of the shape that it came from (Nemotron Ultra, -1M, -262k).
_SAME_SHAPE = (
    # DeepSeek; Ollama's tags of R1 are the distilled ones, but 8b, which was two models
    (r"deepseek-r1-(distill-llama-)?70b", "llama-3.1-70b"),
    (r"deepseek-r1-distill-llama-8b", "llama-3.1-8b"),
    (r"deepseek-r1-(distill-qwen-)?(1\.5b|7b|14b|32b)", r"qwen2.5-\2"),
    (r"deepseek-r1-0528-qwen3-8b", "qwen3-8b"),
    (r"deepseek-(r1|r1-zero|v3\.1)(-671b)?|deepseek-v3-671b", "deepseek-v3"),
    (r"deepseek-v2\.5|deepseek-coder-v2(-236b)?", "deepseek-v2"),
    (r"deepseek-coder-v2-(lite|16b)", "deepseek-v2-lite"),
    # GLM, Kimi, MiniMax
    (r"glm-4\.7", "glm-4.6"),
    (r"glm-5(\.\d)?", "glm-5"),
    (r"kimi-k2-thinking|kimi-k2\.\d", "kimi-k2.5"),
    (r"minimax-m2(\.\d)?", "minimax-m2.5"),
    # Llama, and what was tuned from it
    (r"llama-3\.3-70b", "llama-3.1-70b"),
    (r"llama-3-([12])-(\d+b)", r"llama-3.\1-\2"),
    (r"llama-3-3-70b", "llama-3.1-70b"),
    (r"llama-4-(maverick|scout)(-17b-\d+e)?", r"llama-4-\1-text"),
    (r"llama-3\.1-nemotron-70b(-reward)?", "llama-3.1-70b"),
    (r"llama-3[.-]3-nemotron-super-49b-v1([.-]5)?", "llama-3.3-nemotron-super-49b"),
    (r"llama-3\.1-nemotron-nano-8b-v1", "llama-3.1-8b"),
    (r"llama-3\.1-tulu-3(\.1)?-(8b|70b|405b)", r"llama-3.1-\2"),
    (r"hermes-3-llama-3\.([12])-(3b|8b|70b|405b)", r"llama-3.\1-\2"),
    (r"hermes-4-(70b|405b)", r"llama-3.1-\1"),
    (r"(meta-)?llama-guard-2-8b|hermes-2-(pro|theta)-llama-3-8b", "llama-3-8b"),
    (r"llama-guard-3-8b", "llama-3.1-8b"),
    (r"vicuna-(7b|13b)(-v1\.5)?", r"llama-2-\1"),
    (r"vicuna-7b-v1\.[13]", "llama-7b"),
    (r"vicuna-33b(-v1\.3)?", "llama-33b"),
    (r"tinyllama(-1\.1b(-.*)?)?", "tinyllama-1.1b"),
    # Mistral; 7B lost its window with v0.2, Small 3 became longer with 3.1
    (r"mistral-7b-instruct-(v0\.[23])", r"mistral-7b-\1"),
    (r"zephyr-7b-(alpha|beta)|openhermes-2\.5-mistral-7b", "mistral-7b"),
    (r"nous-hermes-2-mixtral-8x7b", "mixtral-8x7b"),
    (r"mistral-nemo", "mistral-nemo-12b"),
    (r"mistral-small-instruct-2409|codestral-22b", "mistral-small-22b"),
    (r"mistral-small-(3-)?24b", "mistral-small-24b-2501"),
    (r"mistral-small-3\.1-24b|devstral-small-(2505|2507)", "mistral-small-3.2-24b"),
    (r"ministral-8b-2512", ""),
    (r"mistral-large-(instruct-)?(2407|2411)", "mistral-large-123b"),
    # Qwen; Instruct of 2.5 is a quarter as long as its base, and 2507 six times as long as Qwen 3
    (r"qwen3-(4b|30b-a3b|235b-a22b)-(instruct|thinking)-2507", r"qwen3-\1-2507"),
    (r"qwen3-coder-30b(-a3b)?", "qwen3-30b-a3b-2507"),
    (r"qwen3-coder-480b", "qwen3-coder-480b-a35b"),
    (r"qwen3-30b", "qwen3-30b-a3b"),
    (r"qwen3-235b", "qwen3-235b-a22b"),
    (r"qwen3\.6-35b-a3b", "qwen3.5-35b-a3b"),
    (r"qwen3\.8-27b", "qwen3.5-27b"),
    (r"qwen3-vl-32b", "qwen3-32b"),
    (r"qwen2\.5-coder-(0\.5b|3b)", r"qwen2.5-\1"),
    (r"qwen2\.5-coder-(1\.5b|7b|14b|32b)", r"qwen2.5-\1-instruct"),
    (r"qwq-32b-preview", "qwen2.5-32b-instruct"),
    (r"qwq-32b", "qwen2.5-32b"),
    # Google, Microsoft, OpenAI
    (r"(?:gemma-1\.1|codegemma|codegemma-1\.1)-(2b|7b)", r"gemma-\1"),
    (r"shieldgemma-(2b|9b|27b)", r"gemma-2-\1"),
    (r"medgemma-(4b|27b)(-text)?", r"gemma-3-\1"),
    (r"phi-3-mini-4k", "phi-3-mini"),
    (r"phi-3-mini-128k", "phi-3.5-mini"),
    (r"phi-3-medium-4k", "phi-3-medium"),
    (r"phi-4-mini-reasoning", "phi-4-mini"),
    (r"phi-4-14b", "phi-4"),
    (r"gpt-oss-safeguard-(20b|120b)", r"gpt-oss-\1"),
    (r"gpt-2|gpt-?2-(small|124m)", "gpt2"),
    (r"gpt-2-(medium|large|xl)", r"gpt2-\1"),
    (r"gpt-?3-175b", "gpt3-175b"),
    # the others
    (r"gpt-?j(-6b)?", "gpt-j-6b"),
    (r"bloom|bloomz(-176b)?", "bloom-176b"),
    (r"bloomz-7b1(-mt)?", "bloom-7b1"),
    (r"c4ai-command-r-v01", "command-r-35b"),
    (r"olmo-2-1124-(7b|13b)", r"olmo-2-\1"),
    (r"yi-1\.5-(6b|34b)", r"yi-\1"),
    (r"internlm2([.-]5)?(-chat)?-7b", "internlm2.5-7b"),
    (r"stablelm-3b-4e1t|stablelm-zephyr-3b", "stablelm-3b"),
    (r"granite-?3\.[123](-dense)?-8b", "granite-3.1-8b"),
    # llama-bench's words for what a file holds (ggml-org/llama.cpp, src/llama-model.cpp: names of families and sizes)
    (r"llama-([13]b)", r"llama-3.2-\1"),
    (r"llama-(8b|70b|405b)", r"llama-3.1-\1"),
    (r"llama-13b", "llama-2-13b"),
    (r"qwen2-(1\.5b|14b|32b)", r"qwen2.5-\1"),
    (r"qwen3moe-30b\.a3b", "qwen3-30b-a3b"),
    (r"qwen3moe-235b\.a22b", "qwen3-235b-a22b"),
    (r"qwen3next-80b\.a3b", "qwen3-next-80b-a3b"),
    (r"qwen35-(\d+b)", r"qwen3.5-\1"),
    (r"qwen35moe-35b\.a3b", "qwen3.5-35b-a3b"),
    (r"phi-?3-3b", "phi-3-mini"),
    (r"glm4moe-106b\.a12b", "glm-4.5-air"),
    (r"glm4moe-355b\.a32b", "glm-4.5"),
    (r"deepseek2-16b", "deepseek-v2-lite"),
    (r"deepseek2-236b", "deepseek-v2"),
    (r"deepseek2-671b", "deepseek-v3"),
)
# What follows the name of a shape and does not change it: the format of its numbers, and who made it; tuning and dates.
_FORMS = (
    r"fp8|fp4|fp4-v2|nvfp4|nvfp4-v2|mxfp4|mxfp4-moe|bf16|fp16|f16|int[48]|[48]bit|nf4|w\d+a\d+|\d+g|g\d+|awq|gptq|bnb|unsloth|"
    r"autoround|inc|hqq|mlx|exl[23]|\d(\.\d+)?bpw|ov|qat|kv|dynamic|static|block|quantized|flashhead|gguf|i1|"
    r"(ud-)?i?q\d(-[01ksml]|-x+s|-xl|-nl)*"
)
_TUNING = (
    r"99|99\.9|edge|interactive|latest|instruct|chat|hf|it|pt|base|sft|dpo|thinking|preview|exp|speciale|terminus|turbo|"
    r"deduped|v0\.\d|\d{4}"
)
_ENDING = re.compile(rf"[-.]({_FORMS}|{_TUNING})$")


@lru_cache(maxsize=4096)
def preset_of(name: str) -> str | None:
    """The preset that a published model name speaks of, whoever published it and in which format; None when none does.

    No file is read: what presets call their models is found by the same rules, which a test holds.

    Examples
    --------
    >>> preset_of("zai-org/GLM-4.5-Air-FP8"), preset_of("Qwen/Qwen3-235B-A22B-Instruct-2507"), preset_of("my-model")
    ('glm-4.5-air', 'qwen3-235b-a22b-2507', None)
    """
    known, text = list_presets(), _plain(name)
    while text:
        if text in known:
            return text
        for pattern, preset in _SAME_SHAPE:
            if found := re.fullmatch(pattern, text):
                return named if (named := found.expand(preset)) in known else None
        ending = _ENDING.search(text)
        text = text[: ending.start()] if ending else ""
    return None


def _plain(name: str) -> str:
    """A published name without its publisher, as presets are written."""
    plain = re.sub(r"[\s_:]+(?:-[\s_:]+)?", "-", name.lower().rsplit("/", 1)[-1])
    plain = re.sub(r"(?<=\d-k-)(s|m|l)(mall|edium|arge)$", r"\1", plain)
    return re.sub(r"^(?:meta-)?(llama|gemma|phi|olmo)-?(?=\d)", r"\1-", plain)


def of_same_shape(name: str) -> str:
    """The preset by whose shape a model of another name is planned; "" where the name is that of a preset, or of none.

    Examples
    --------
    >>> of_same_shape("Llama-3.3-70B-Instruct"), of_same_shape("qwen3:32b"), of_same_shape("Qwen/Qwen3-32B")
    ('llama-3.1-70b', '', '')
    """
    found, plain = preset_of(name), _plain(name)
    return "" if found is None or plain in (found, _plain(_card_of_preset(found)["hf_id"])) else found


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
    if _ENCODERS.search(name.lower()):
        hint = (
            "an encoder, and models here write token by token: a decoder of its size with output_tokens: 1, such as "
            "qwen3-0.6b, or {parameters: 568M} with a measured throughput"
        )
    shown = name if len(name) <= 60 else name[:57] + "..."
    return InputError(Problem(reference="unknown-model", message=f"no model preset '{shown}'", hint=hint))


# families of models that embed or rank: no preset is one of them
_ENCODERS = re.compile(
    r"(?:^|[-_/])(?:bge|e5|gte|[a-z]*minilm|mpnet|[a-z]*bert[a-z]*|nomic|jina|rerank[a-z]*)(?:[-_]|$)"
)


def suggestions(name: str, known: tuple[str, ...], most: int = 3) -> list[str]:
    """The nearest known names: those that begin with it, those that it begins with, then the most alike.

    Parameters
    ----------
    name
        What was asked for; taken in small letters, and no more of it than 100 characters.
    known
        Names to choose from.
    most
        How many are given at most.  [count]
    """
    low = name.lower()[:100].replace("_", "-")
    begins = [candidate for candidate in known if low and candidate.startswith(low)]
    within = sorted((one for one in known if low.startswith(f"{one}-")), key=len, reverse=True)
    alike = difflib.get_close_matches(low, known, n=most, cutoff=0.6)
    return list(dict.fromkeys([*begins[:most], *within, *alike]))[:most]


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
        four = "int4-g32" if quantised.get("group_size", quantised.get("q_group_size")) == 32 else "int4"
        return {4: four, 8: "int8"}.get(bits, "") if isinstance(bits, int) else ""
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
        fine = str(weights.get("group_size")) == "32"
        four = "mxfp4" if fine else "nvfp4"  # which share a scale by 32 and by 16
        eight = "fp8-block" if weights.get("strategy") == "block" else "fp8"
        form = {
            ("int", "4"): "int4-g32" if fine else "int4",
            ("int", "8"): "int8",
            ("float", "8"): eight,
            ("float", "4"): four,
        }
        found.add(form.get((kind, bits), ""))
    return found.pop() if len(found) == 1 else ""


# "Qwen/Qwen3-32B-FP8", "Qwen/Qwen2.5-72B-Instruct-AWQ"; weights before a cache ("NVFP4-KV-FP8"), and
# what states its width before what does not ("GPTQ-Int8")
_SAID = (
    ("mxfp4", "mxfp4"), ("nvfp4", "nvfp4|fp4"), ("fp8", "fp8"), ("int8", r"int8|w8a\d+|8bit"),
    ("int4", r"int4|w4a\d+|4bit|awq|gptq|nf4"),
)  # fmt: skip
# whose FP8 is of blocks of 128 x 128 (Qwen3-235B-A22B-FP8: vllm-project/vllm issue 17569, read on 2026-11-27)
_OF_BLOCKS = "qwen/qwen3"


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
        return replace(preset_card(found), hf_id=name, checkpoint=_checkpoint(_card_of_preset(found), name))
    if name not in list_presets():
        alike = preset_of(name)
        if alike is None:
            raise InputError.of("unknown-model", f"no model preset '{name[:60]}'", hint="plan models list")
        known, plain = _card_of_preset(alike), name.lower().replace(":", "-")
        repositories = (known["hf_id"], *known.get("checkpoint", {}).get("repositories", ()))
        own = next((one for one in repositories if one.rpartition("/")[2].lower() == plain), "")
        return replace(preset_card(alike), hf_id=own, checkpoint=_checkpoint(known, own or name))
    document = _card_of_preset(name)
    published = document["hf_id"] if "/" in document["hf_id"] else ""  # "(GPT-3)": its weights are not to be had
    checkpoint = _checkpoint(document, published)
    return ModelCard(hf_id=published, config=_text_part(document["config"]), checkpoint=checkpoint)


def _card_of_preset(name: str) -> dict[str, Any]:
    return parse_json(_text_of_preset(name), f"{name}.json")


@lru_cache(maxsize=64)  # asked of each model some dozen times a question
def _text_of_preset(name: str) -> str:
    return read_text(PRESETS / f"{name}.json", limit_bytes=CONFIG_LIMIT_BYTES)


def _checkpoint(preset: Mapping[str, Any], repository: str) -> str:
    """What is known of a repository with the shape of a preset: a fact of the preset, else what its name says."""
    stored = preset.get("checkpoint")
    if stored is not None and repository in stored["repositories"]:
        return str(stored["weights"])
    low = repository.lower()
    named = next((form for form, said in _SAID if re.search(rf"[-_.]({said})(?![a-z0-9])", low)), "")
    return "fp8-block" if named == "fp8" and low.startswith(_OF_BLOCKS) else named


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
    return _card_of(preset, config).checkpoint


def predicts_ahead(preset: str | None, config: str | None) -> bool:
    """Whether a model's repository holds layers that predict tokens ahead: engines draft with those.

    Parameters
    ----------
    preset, config
        As of `stored_format`.

    Examples
    --------
    >>> predicts_ahead("deepseek-v3", None), predicts_ahead("llama-3.1-8b", None), predicts_ahead(None, None)
    (True, False, False)
    """
    try:
        return (preset or config) is not None and holds_layers_ahead(_card_of(preset, config).config)
    except InputError:  # told with its place where the model is loaded
        return False


def holds_layers_ahead(config: Mapping[str, Any]) -> bool:
    """Whether a `config.json` tells of layers that predict tokens ahead."""
    return any(config.get(key) for key in AHEAD)


def _card_of(preset: str | None, config: str | None) -> ModelCard:
    return preset_card(preset) if preset is not None else config_card(str(config))


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
    thinker = config.get(THINKER)
    config = {**config, **thinker} if isinstance(thinker, Mapping) else config
    inside = next((config[key] for key in TEXT_CONFIGS if isinstance(config.get(key), Mapping)), None)
    return {**config, **inside} if inside is not None else config
