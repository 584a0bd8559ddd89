"""What arguments of serving engines say of a fleet, by whatever name an engine calls it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from planner.architecture.load import list_presets, preset_of, preset_summary
from planner.carriers import dataclass
from planner.catalog.load import load_catalog
from planner.estimate.engines import engine_rules
from planner.reading.inventory import device_of
from planner.reading.kinds import Asked, Reading
from planner.reading.request_log import name_of
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_setup import serving_engine, weight_format

_MOST = 100_000  # replicas, ranks, sequences
_MOST_WORDS = 2_000
# what is meant -> what engines call it: vLLM, SGLang, TensorRT-LLM, TGI, llama.cpp, Helm values
_NAMES: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "model-path", "model-id", "m", "hf-repo", "hf", "modelurl"),
    "tp": ("tensor-parallel-size", "tp-size", "tp", "tensor-parallel", "num-shard", "tensorparallelsize",
           "tensor-parallel-degree"),
    "pp": ("pipeline-parallel-size", "pp-size", "pp", "pipelineparallelsize"),
    "dp": ("data-parallel-size", "dp-size", "dp", "attn-dp-size", "dataparallelsize"),
    "ep": ("ep-size", "ep", "expert-parallel-size", "moe-expert-parallel-size"),
    "cp": ("decode-context-parallel-size", "dcp-size", "dcp"),
    "max_num_seqs": ("max-num-seqs", "max-running-requests", "max-batch-size", "parallel", "np", "n-parallel",
                     "maxnumseqs"),
    "max_num_batched_tokens": ("max-num-batched-tokens", "chunked-prefill-size", "max-num-tokens",
                               "maxnumbatchedtokens"),
    "memory_fraction": ("gpu-memory-utilization", "mem-fraction-static", "kv-cache-config.free-gpu-memory-fraction",
                        "free-gpu-memory-fraction", "kv-cache-free-gpu-mem-fraction", "gpumemoryutilization",
                        "kv-cache-free-gpu-memory-fraction"),
    "kv_cache": ("kv-cache-dtype", "kv-cache-config.dtype"),
    "weights": ("quantization", "q", "quantize", "dtype"),
}  # fmt: skip
_TOGETHER = ("enable-expert-parallel", "enable-ep", "ep-moe", "enable-ep-moe")
_ATTENTION = ("enable-dp-attention", "enable-attention-dp")
# what a plan asks of the load, or does not decide
_LONGEST = "the longest request is that of the load"
_CACHED = "its gain is prefix_cached, which a log tells"
_DRAFTED = "speculative wants the share of drafts that is accepted"
_SAID_OTHERWISE = {
    **dict.fromkeys(("max-model-len", "context-length", "maxmodellen", "max-seq-len"), _LONGEST),
    **dict.fromkeys(("enable-prefix-caching", "enableprefixcaching"), _CACHED),
    **dict.fromkeys(("speculative-config", "speculative-algorithm", "speculative-config.decoding-type"), _DRAFTED),
}
# names, addresses and files: of how it is run, not of what
PLUMBING = {
    "served-model-name", "host", "port", "disaggregation-mode", "extra-engine-args", "extra-llm-api-options",
    "extraargs", "trust-remote-code", "nnodes", "node-rank", "master-addr", "master-port", "headless", "dist-init-addr",
    "data-parallel-address", "enable-metrics", "is-prefill-worker", "is-decode-worker",
}  # fmt: skip
_STORED = {"deepseek-v3": "fp8-block"}  # preset -> format of its published checkpoint (its config.json)
# names of the environment that an engine takes as arguments, by what stands before the argument's name
_FROM_ENVIRONMENT = re.compile(r"(?:LLAMA_ARG_|OPTION_|NIM_|HF_)?(?=MODEL_ID$|NUM_SHARD$|QUANTIZE$|HF_REPO$|N_PARALLEL$"
                               r"|TENSOR_PARALLEL_(?:SIZE|DEGREE)$|MAX_BATCH_SIZE$)")  # fmt: skip
_TAKES_ENVIRONMENT = re.compile(r"text-generation-inference|llama\.cpp|llama-server|djl|/nim/")
# what files of llama.cpp have at the end of their names
_OF_A_FILE = re.compile(r"(?i)(?:[-.](?:i?q\d\w*|b?f16|f32|gguf))+$|(?:-\d{5}-of-\d{5})?\.gguf$")
_DEFAULT = re.compile(r"\$\{(\w+):?-([^{}$]*)\}")  # ${NAME:-value}
_KNOWN = {name for names in _NAMES.values() for name in names}
_RANKS = ("tp", "pp", "dp", "ep", "cp")


def mapping(value: Any) -> Mapping[str, Any]:
    """A mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """A list, or an empty one."""
    return list(value) if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A text of one line, or an empty one."""
    return " ".join(value.split())[:300] if isinstance(value, str) else ""


def whole(value: Any, *, least: int = 1) -> int | None:
    """A whole number, also written as text; None for what is none or out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if least <= number <= _MOST and number.is_integer() else None


@dataclass(slots=True, kw_only=True)
class Engine:
    """A group of equal engines: how many, each of how many devices, and what its arguments say."""

    title: str
    line: int
    role: str = ""  # prefill, decode; "" = both
    graph: str = ""  # what it is a part of
    model: str = ""
    engine: str = ""
    replicas: int | None = None
    devices: int | None = None  # of one replica
    device: str = ""  # as a label names it
    said: Mapping[str, Any] = field(default_factory=dict)

    def number(self, role: str) -> int | None:
        """A count by any of its names."""
        return next((found for name in _NAMES[role] if (found := whole(self.said.get(name)))), None)

    def word(self, role: str) -> str:
        """A text by any of its names, in small letters; "" for none."""
        found = next((self.said[name] for name in _NAMES[role] if isinstance(self.said.get(name), str)), "")
        return str(found).lower()[:80]

    def share(self, role: str) -> float | None:
        """A share of one by any of its names."""
        for name in _NAMES[role]:
            value = self.said.get(name)
            try:
                number = float(value) if isinstance(value, str | float | int) and not isinstance(value, bool) else 0.0
            except (ValueError, OverflowError):
                continue
            if 0 < number < 1:
                return number
        return None

    def said_of_it(self) -> str:
        """In one line: how many of which engine, of which model."""
        count = "so many × " if self.replicas is None else f"{self.replicas} × "
        devices = f"{self.devices} devices" if self.devices and self.devices > 1 else "1 device" if self.devices else ""
        of = f" of {self.model}" if self.model else ""
        return " ".join(f"{count}{devices} {self.engine}{of} {self.role}".split())


def engine_of(
    title: str, containers: Sequence[Mapping[str, Any]], *, replicas: int | None, line: int,
    settings: Mapping[str, Any] | None = None, model: str = "", engine: str = "", role: str = "", nodes: int = 1,
    devices: int | None = None, device: str = "",
) -> Engine:  # fmt: skip
    """A group of engines of its containers: what stands later wins over what stands before.

    Parameters
    ----------
    title
        What the file calls the group; 80 characters are kept.
    containers
        Of one replica, each a mapping with image, command, args, env and resources as far as the file has them.
    replicas
        Equal engines; None: the file does not say how many.  [count]
    line
        Of the file.
    settings
        Said apart from arguments, which win over it; names in letters of either size, with _ or -.
    model
        Where neither arguments nor settings name one; a path within a container counts as none.
    engine
        As the file calls it; empty or unknown: told by image and command.
    role
        prefill or decode; empty: told by the arguments, else both.
    nodes
        Machines of one replica, each with the devices that are said.  [count]
    devices
        Of one machine, where no container asks for some; None: not said.  [count]
    device
        As a label names it; empty: none does.
    """
    said = {_plain(key): value for key, value in (settings or {}).items()}
    image, named, stored, held = "", "", "", devices
    for container in containers:
        environment = _environment(container.get("env"))
        words = [*_words(container.get("command"), environment), *_words(container.get("args"), environment)]
        words += _words(environment.get("VLLM_ADDITIONAL_ARGS"), environment)
        if _TAKES_ENVIRONMENT.search(text_of(container.get("image"))):
            said |= {_plain(name[called.end():]): value for name, value in environment.items()
                     if (called := _FROM_ENVIRONMENT.match(name))}  # fmt: skip
        named = _positional(words) or named
        stored = environment.get("STORAGE_URI", "") or stored  # where KServe fetches what it mounts
        said.update(_arguments(words))
        image = f"{text_of(container.get('image'))} {' '.join(words[:4])}".strip() or image
        held = _asked_devices(container.get("resources")) or held
    found = Engine(title=title[:80], line=line, role=role or _role_of(said), replicas=replicas, device=device,
                   said=said, engine=_engine(engine, image), devices=held * nodes if held else None)  # fmt: skip
    wanted = [value for name in _NAMES["model"] if isinstance(value := said.get(name), str)]
    served = text_of(said.get("served-model-name"))
    others = (stored if stored.startswith("hf://") else "", served if preset_of(served) else "")
    found.model = next((name for each in (*wanted, named, model, *others) if (name := _model_name(each))), "")
    return found


def _plain(name: Any) -> str:
    return str(name)[:80].lower().replace("_", "-")


def _environment(value: Any) -> dict[str, str]:
    """Names that a container sets itself: a list of name and value, a mapping, or lines NAME=VALUE."""
    if isinstance(value, Mapping):
        return {str(key): str(each) for key, each in value.items() if isinstance(each, str | int | float)}
    found: dict[str, str] = {}
    for each in listed(value):
        if isinstance(each, Mapping) and isinstance(each.get("value"), str | int | float):
            found[str(each.get("name"))] = str(each["value"])
        elif isinstance(each, str) and "=" in each:
            name, _, text = each.partition("=")
            found[name] = text
    return found


def _words(value: Any, environment: Mapping[str, str]) -> list[str]:
    """Words of a command: a list as it stands, a script split as a shell would; names of the environment put in."""
    found: list[str] = []
    for each in [value] if isinstance(value, str) else listed(value):
        if not isinstance(each, str | int | float) or isinstance(each, bool):
            continue
        text = _DEFAULT.sub(lambda it: environment.get(it[1]) or it[2], str(each)[:20_000])
        text = re.sub(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))", lambda it: environment.get(it[1] or it[2] or it[3], it[0]),
                      text)  # fmt: skip
        script = isinstance(value, str) or re.search(r"\s--?\w", text)
        found += _split(text) if script else [text]
        if len(found) > _MOST_WORDS:
            break
    return found[:_MOST_WORDS]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError:
        return text.split()


def _arguments(words: Sequence[str]) -> dict[str, Any]:
    """Arguments by their names without dashes; one without a value is True, what a variable holds is left out."""
    found: dict[str, Any] = {}
    for at, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        of_python = name == "m" and at and "python" in words[at - 1]
        if not (re.match(r"--[A-Za-z]", word) or (word[:1] == "-" and _plain(name) in _KNOWN)) or of_python:
            continue
        after = words[at + 1] if at + 1 < len(words) else None
        if not equals and after is not None and not re.match(r"--?[A-Za-z]", after):
            value = after
        found[_plain(name)] = value if value and "$" not in value else None if "$" in value else True
    return found


def _positional(words: Sequence[str]) -> str:
    """The model behind `vllm serve`; "" where none stands."""
    after = next((words[at + 1] for at, word in enumerate(words[:-1])
                  if word in ("serve", "trtllm-serve") and words[at + 1] != "serve"), "")  # fmt: skip
    return "" if after.startswith("-") else after


def _role_of(said: Mapping[str, Any]) -> str:
    mode = str(said.get("disaggregation-mode") or "")
    transfer = said.get("kv-transfer-config")
    if isinstance(transfer, str) and not mode:
        try:
            mode = {"kv_producer": "prefill", "kv_consumer": "decode"}.get(json.loads(transfer).get("kv_role"), "")
        except (ValueError, AttributeError, TypeError, RecursionError):
            mode = ""
    return mode if mode in ("prefill", "decode") else ""


def _asked_devices(resources: Any) -> int | None:
    """Devices that a container asks for."""
    for part in ("limits", "requests"):
        for name, count in mapping(mapping(resources).get(part)).items():
            if re.fullmatch(r"(?:[\w.-]+/)?(?:gpu|tpu|gaudi|neuron)", str(name)[:80]) and whole(count):
                return whole(count)
    return None


def _engine(named: str, image: str) -> str:
    """The engine by what a file calls it, else by image and command."""
    for text in (named, image):
        found = serving_engine(ServingRow(engine=text[:300])) if text else ""
        if found and engine_rules(found):
            return found
    if "llama-server" in image:
        return "llama.cpp"
    return "tgi" if re.search("text-generation-(?:inference|launcher)", image) else ""


def _model_name(text: str) -> str:
    """The name of a model without scheme; "" for a path of a container."""
    text = re.sub(r"^(hf|s3|gs|oci|https?|pvc\+hf|modelscope)://(huggingface\.co/)?", "", text.strip().strip('"'))
    if "{{" in text or text.startswith(("/", ".", "pvc:")) or text in ("", "None"):
        return ""
    return text[:120]


def fleets_of(engines: Sequence[Engine], reading: Reading, asked: Asked) -> list[tuple[dict[str, Any], str]]:
    """Fleets with the device of each: pools of one model and graph are one fleet, every other group is its own.

    Parameters
    ----------
    engines
        Groups of the file; devices that are not said are filled in by what the arguments use.
    reading
        Takes notes of what is not carried over or not known.
    asked
        Its name, model and accelerator win over those of the file.
    """
    found: list[tuple[dict[str, Any], str]] = []
    for pools in _together(engines):
        fleet, device = _fleet(pools, reading, asked)
        names = {str(other["name"]) for other, _ in found}
        name = str(fleet["name"])
        fleet["name"] = next(
            each for n in range(1, len(names) + 3) if (each := name if n == 1 else f"{name}-{n}") not in names
        )
        found.append((fleet, device))
    return found


def _together(engines: Sequence[Engine]) -> Iterator[list[Engine]]:
    split: dict[tuple[str, str], list[Engine]] = {}
    for engine in engines:
        if engine.role:
            split.setdefault((engine.graph, engine.model), []).append(engine)
    for engine in engines:
        pools = split.get((engine.graph, engine.model), []) if engine.role else []
        if {each.role for each in pools} == {"prefill", "decode"}:
            if engine is pools[0]:
                yield pools
        else:
            yield [engine]


def _fleet(pools: list[Engine], reading: Reading, asked: Asked) -> tuple[dict[str, Any], str]:
    first = pools[0]
    title = first.graph or (first.model.rsplit("/", 1)[-1] if len(pools) > 1 else first.title) or first.title
    fleet: dict[str, Any] = {"name": asked.name or name_of(title)}
    model = asked.model or first.model
    if model:
        fleet["model"] = _model(model, reading)
    else:
        reading.note(f"{first.title}: the file names no model: --model, or model: of the fleet.")
    weights = _weights(first, model)
    if weights:
        fleet["weights"] = weights
    elif model:
        reading.note(f"{first.title}: no format of the weights is said: taken as 16 bit; weights: says otherwise.")
    main = next((engine for engine in pools if engine.role == "decode"), first)  # answers hold the cache and the batch
    if (cache := main.word("kv_cache")).startswith("fp8"):
        fleet["kv_cache"] = "fp8"
    elif cache and cache not in ("auto", "bfloat16", "float16"):
        reading.note(f"{main.title}: a cache in '{cache}' is not planned.")
    if first.engine and engine_rules(first.engine):
        fleet["engine"] = first.engine
    else:
        reading.note(f"{first.title}: its engine {first.engine or 'is not told'}: the fleet is planned as on vllm.")
    limits = {key: value for key in ("max_num_seqs", "max_num_batched_tokens") if (value := main.number(key))}
    if (share := main.share("memory_fraction")) is not None:
        limits["memory_fraction"] = share  # type: ignore[assignment]
    if limits:
        fleet["limits"] = limits
    said = [(engine.number("max_num_seqs"), engine.number("max_num_batched_tokens"), engine.share("memory_fraction"),
             engine.word("kv_cache")) for engine in pools]  # fmt: skip
    if len(set(said)) > 1:
        reading.note(f"The limits or caches of the pools differ: those of {main.title} are taken for both.")
    replicas = _layout(pools, fleet, reading)
    if replicas:
        fleet["min_replicas"] = replicas
    if len(pools) > 1:
        fleet["disaggregated"] = "true"
    _not_carried(pools, reading)
    return fleet, _device(asked.accelerator or first.device, reading)


def _model(name: str, reading: Reading) -> str:
    preset = name if name in list_presets() else preset_of(_OF_A_FILE.sub("", name))
    if preset is None:
        reading.note(
            f"'{name}' is no model that ships: plan read its config.json, or have it in the local cache of the hub."
        )
    return preset or name


def _weights(engine: Engine, model: str) -> str:
    """The format that arguments or the model's name say; "" when neither does."""
    said = engine.word("weights")
    found = weight_format(ServingRow(model=model, weight_precision=said, engine=engine.engine))
    if found != "bf16" or re.search("bf16|bfloat16", f"{said} {model.lower()}"):
        return found
    return _STORED.get(preset_of(model) or "", "") if model else ""


def _layout(pools: Sequence[Engine], fleet: dict[str, Any], reading: Reading) -> int:
    """Put the ranks of the pools into a fleet; replicas of all, those counted that share a port."""
    ranks: dict[str, list[int]] = {}
    replicas = 0
    for engine in pools:
        sizes, copies = _ranks(engine, reading)
        replicas += (engine.replicas or 0) * copies
        for name, size in sizes.items():
            ranks.setdefault(name, []).append(size)
    layout = {name: found[0] if len(set(found)) == 1 else sorted(set(found)) for name, found in ranks.items()}
    if any(isinstance(size, list) for size in layout.values()):
        reading.note(
            "The pools are split in different ways: the layout lists both sizes, and a plan chooses for each pool."
        )
    if layout:
        fleet["layout"] = layout
    return replicas


def _ranks(engine: Engine, reading: Reading) -> tuple[dict[str, int], int]:
    """Ranks of one replica in the words of a plan, and replicas that one engine runs behind its port."""
    said = {name: engine.number(name) for name in _RANKS}
    unset = any(name in engine.said and engine.said[name] is None for name in _NAMES["tp"])
    if said["tp"] is None and ((engine.devices or 1) > 1 or unset) and not said["dp"]:
        count = f"{engine.devices} devices" if engine.devices else "devices"
        reading.note(f"{engine.title}: how {count} share the model is not said: the layout is free.")
        return {}, 1
    tp, pp, dp, ep = said["tp"] or 1, said["pp"] or 1, said["dp"] or 1, said["ep"] or 1
    copies = 1
    attention = (
        any(engine.said.get(name) in (True, "true", "True") for name in _ATTENTION) or "attn-dp-size" in engine.said
    )
    if attention and engine.engine != "vllm":  # ranks of attention are counted among those of tensors there
        dp = dp if dp > 1 else tp
        tp = max(tp // dp, 1)
    elif engine.engine == "vllm" and any(engine.said.get(name) for name in _TOGETHER):
        ep = tp * dp
    elif engine.engine != "vllm" or not _has_experts(engine.model):  # whose experts all ranks of vLLM share
        copies, dp = dp, 1
    used = tp * pp * dp * copies
    if engine.devices and used != engine.devices:
        reading.note(f"{engine.title}: its arguments use {used} devices, {engine.devices} are asked for.")
    engine.devices = engine.devices or used
    sizes = {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "cp": said["cp"] or 1}
    if ep not in (1, tp * dp):
        reading.note(f"{engine.title}: experts over {ep} of {tp * dp} ranks are not planned: left free.")
        del sizes["ep"]
    return {name: size for name, size in sizes.items() if name in ("tp", "pp") or size > 1}, copies


def _has_experts(model: str) -> bool:
    """Whether a model is known to be a mixture of experts."""
    preset = preset_of(model) if model else None
    return any(row["name"] == preset and row["active_parameters"] < row["parameters"] for row in preset_summary())


def _not_carried(pools: Iterable[Engine], reading: Reading) -> None:
    others: dict[str, None] = {}
    for engine in pools:
        unset = [name for name, value in engine.said.items() if value is None and name not in PLUMBING]
        if unset:
            reading.note(f"{engine.title}: {', '.join(unset[:10])}: a variable that the file does not set; left out.")
        for name, value in engine.said.items():
            if name in _SAID_OTHERWISE and value is not False:
                reading.note(f"Not carried over: {name}; {_SAID_OTHERWISE[name]}.")
            elif value is not None and name not in _KNOWN | PLUMBING | {*_TOGETHER, *_ATTENTION}:
                others[name] = None
    if others:
        more = f" and {len(others) - 30} more" if len(others) > 30 else ""
        reading.note(f"Not carried over: {', '.join(list(others)[:30])}{more}.")


@lru_cache(maxsize=256)
def _known_device(name: str) -> str:
    """Device of the catalog by its own name, or by that of a machine that has it; "" for none."""
    catalog = load_catalog()
    machine = next((shape.device for shape in catalog.shapes.values() if shape.name.lower() == name.lower()), "")
    # Google's label of an A100 without a size is that of the one with 40 GB; the other's says 80
    return machine or device_of(name, 40e9 if name.lower() == "nvidia-tesla-a100" else None)


def _device(name: str, reading: Reading) -> str:
    found = _known_device(name[:120]) if name else ""
    if name and not found:
        reading.note(f"'{name[:80]}' is no device of the catalog: plan catalog list shows them.")
    return found
