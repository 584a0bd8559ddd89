"""Configurations of trainers, a job as it is: Megatron, torchtitan, DeepSpeed, Axolotl, MaxText and others.

Scripts are looked through for arguments, never run: a name that the script itself sets is put in, no other.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from planner.architecture.load import preset_config, preset_of, preset_summary
from planner.errors import Problem
from planner.reading.benchmarks import stem_of
from planner.reading.engine_arguments import mapping
from planner.reading.jsonlines import head_document, loads
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading
from planner.reading.python_recipes import MARKS as RECIPES
from planner.reading.python_recipes import PYTHON, settings_of
from planner.reading.request_log import name_of
from planner.reading.source import Source, refused
from planner.yamlfile import BAD, parse_yaml

_LIMIT_BYTES = 1_000_000
_MOST = 1_000_000  # ranks, sequences
_MOST_TOKENS = 1e18
_DEEPEST = 8  # sections within sections
# tool -> marks in its files; each mark is a pattern of a line or an argument
_MARKS: Mapping[str, tuple[str, ...]] = {
    "Megatron-LM": (r"--num-layers\b", r"--(micro|global)-batch-size\b", r"--seq-length\b"),
    "torchtitan": (r"(?m)^\[parallelism\]", r"(?m)^\[training\]", r"(?m)^(local_batch_size|seq_len|flavor)\s*="),
    "Axolotl": (r"(?m)^base_model:", r"(?m)^(datasets|pretraining_dataset):", r"(?m)^(sequence_len|micro_batch_size):"),
    "accelerate": (r"(?m)^distributed_type:", r"(?m)^mixed_precision:", r"(?m)^num_processes:"),
    "MaxText": (r"(?m)\bper_device_batch_size\s*[:=]", r"(?m)\b(ici|dcn)_\w+_parallelism\s*[:=]",
                r"(?m)\bmax_target_length\s*[:=]"),
    "NeMo": (r"(?m)^trainer:", r"(?m)^model:", r"(?m)^[ \t]+(micro|global)_batch_size:",
             r"(?m)^[ \t]+tensor_model_parallel_size:"),
    "Megatron-LM, YAML": (r"(?m)^[ \t]*(micro|global)_batch_size:", r"(?m)^[ \t]*(seq_length|train_iters):",
                      r"(?m)^[ \t]*tensor_model_parallel_size:"),
    "torchtune": (r"(?m)^[ \t]+_component_:[ \t]*torchtune\.", r"(?m)^batch_size:", r"(?m)^model:"),
    "GPT-NeoX": (r"(?m)^[ \t]*\"?pipe[-_]parallel[-_]size\"?:", r"(?m)^[ \t]*\"?model[-_]parallel[-_]size\"?:",
                 r"(?m)^[ \t]*\"?num[-_]layers\"?:"),
    "LLaMA-Factory": (r"(?m)(^|--)model_name_or_path\b", r"(?m)(^|--)(stage|finetuning_type)\b",
                      r"(?m)(^|--)(cutoff_len|dataset|template)\b"),
    "Hugging Face Trainer": (r"(?m)(^|--)model_name_or_path\b", r"(?m)(^|--)per_device_train_batch_size\b",
                             r"(?m)(^|--)(dataset_name|max_length|max_seq_length|gradient_accumulation_steps)\b"),
}  # fmt: skip
_FRAMEWORKS = {"Megatron-LM": "megatron", "Megatron-LM, YAML": "megatron",
               "torchtitan": "torchtitan", "DeepSpeed": "deepspeed", "Axolotl": "axolotl",
               "MaxText": "maxtext", "accelerate": "fsdp", "NeMo": "megatron", "torchtune": "fsdp",
               "GPT-NeoX": "deepspeed", "LLaMA-Factory": "trl", "Hugging Face Trainer": "trl"}  # fmt: skip
# what is meant -> how trainers call it, dashes as underscores, sections and names with a point between
_NAMES: Mapping[str, tuple[str, ...]] = {
    "tp": ("tensor_model_parallel_size", "parallelism.tensor_parallel_degree", "tensor_parallel.autotp_size",
           "ici_tensor_parallelism", "tensor_parallel_size", "tensor_parallel_dim", "model_parallel_size",
           "training.tensor_parallel_degree", "parallelism_config_tp_size", "tensor_parallelism"),
    "pp": ("pipeline_model_parallel_size", "parallelism.pipeline_parallel_degree", "ici_pipeline_parallelism",
           "pipe_parallel_size", "experimental.pipeline_parallel_degree", "training.pipeline_parallel_degree",
           "pipeline_parallelism"),
    "vpp": ("virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank",
            "virtual_pipeline_parallelism"),
    "cp": ("context_parallel_size", "parallelism.context_parallel_degree", "ici_context_parallelism",
           "experimental.context_parallel_degree", "parallelism_config_cp_size", "context_parallelism"),
    "ep": ("expert_model_parallel_size", "parallelism.expert_parallel_degree", "ici_expert_parallelism",
           "expert_parallelism"),
    "micro_batch": ("micro_batch_size", "training.local_batch_size", "train_micro_batch_size_per_gpu",
                    "per_device_batch_size", "per_device_train_batch_size", "training.batch_size", "batch_size"),
    "sequence": ("seq_length", "training.seq_len", "sequence_len", "max_target_length", "encoder_seq_length",
                 "tokenizer.max_seq_len", "cutoff_len", "max_length", "max_seq_length", "model_max_length",
                 "block_size", "dataset.sequence_length", "dataset.seq_length"),
    "batch": ("global_batch_size", "training.global_batch_size", "train_batch_size"),
    "accumulated": ("gradient_accumulation_steps",),
    "steps": ("train_iters", "training.steps", "max_steps", "steps"),
    "samples": ("train_samples",),
    "epochs": ("num_epochs", "epochs", "num_train_epochs"),
    "devices": ("num_processes",),
}  # fmt: skip
# sections that names stand in
_INSIDE = ("", "model.", "trainer.", "trainer.strategy.", "train.", "data.", "model.config.", "deepspeed_config.",
           "parallelism_config.")  # fmt: skip
_LABELS = {"sequence": "tokens of a sequence", "batch": "sequences of a step", "steps": "steps",
           "samples": "sequences in all", "devices": "devices", "micro_batch": "sequences of a micro-batch",
           "accumulated": "micro-batches of a step"}  # fmt: skip
# what an optimizer is called -> its recipe; "" is the usual one
_OPTIMIZERS = (("8bit", "adamw-8bit"), ("adamw8bit", "adamw-8bit"), ("adafactor", "adafactor"), ("muon", "muon"),
               ("sgd", "sgd"), ("adam", ""))  # fmt: skip
_RAMPS = ("rampup_batch_size", "step_batch_size_schedule")
_AXIS = re.compile(r"(?:ici|dcn)_(\w+)_parallelism")
_ASSIGNED = re.compile(
    r"(?m)(?:^|[;&][ \t]*)[ \t]*(?:export[ \t]+|local[ \t]+)?([A-Za-z_]\w{0,60})="
    r"[\"']?(?:\$\{\w{1,60}:-)?(\$?\{?[\w.+/][\w.+/-]{0,200})"
)
# its value is a word, a name with what stands for it where it is not set, or what a shell works out
_ARGUMENT = re.compile(
    r"--([a-z][a-z0-9_-]{1,60})(?:[ \t=:]+[\"']?(\$?\{?[\w.+/][\w.+/-]{0,200}|\$\()(?::-([\w.+-]{1,60}))?)?"
)
_SCRIPTED = re.compile(r"--(?:model_name_or_path|per_device_train_batch_size)\b")
_SETTING = re.compile(r"(?m)(?:^|[ \t])([a-z][a-z0-9_]{2,60})=([\w.+-]{1,60})")


def _tool_of(source: Source) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The trainer of a file with its marks that are there and that are missing."""
    document = head_document(source)
    if document is not None:
        marks = {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                 "gradient_accumulation_steps", "gradient_clipping", "fp16", "bf16"}  # fmt: skip
        found = sorted(marks & set(document)) if isinstance(document, Mapping) else []
        if len(found) < 2 or not {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization"} & set(
            found
        ):
            return "", (), ("zero_optimization", "train_batch_size")
        return "DeepSpeed", tuple(found), ()
    if not source.is_text:
        return "", (), ()
    best: tuple[str, tuple[str, ...], tuple[str, ...]] = ("", (), ("arguments of a trainer",))
    if PYTHON.search(source.head_text) and (of_recipe := _marked(source.head_text, RECIPES))[1]:
        return of_recipe
    braces = source.head_text.lstrip()[:1] == "{"  # which GPT-NeoX alone puts around its YAML
    for tool, patterns in _MARKS.items():
        if braces and tool != "GPT-NeoX":
            continue
        there = tuple(pattern for pattern in patterns if re.search(pattern, source.head_text))
        if len(there) > len(best[1]):
            best = (tool, there, tuple(pattern for pattern in patterns if pattern not in there))
    return best


def _marked(text: str, marks: Mapping[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The trainer of which most marks are there, with those and the missing ones."""
    there = {
        tool: tuple(pattern for pattern in patterns if re.search(pattern, text)) for tool, patterns in marks.items()
    }
    best = max(there, key=lambda tool: len(there[tool]))
    return best, there[best], tuple(pattern for pattern in marks[best] if pattern not in there[best])


def _match(source: Source) -> Match:
    tool, found, missing = _tool_of(source)
    if not tool:
        return NOTHING
    score = 0.95 if tool == "DeepSpeed" else 0.95 * len(found) / (len(found) + len(missing))
    return Match(score=score, found=tuple(map(_readable, found)), missing=tuple(map(_readable, missing)), tool=tool)


def _readable(mark: str) -> str:
    """A mark as it stands in files, without what makes it a pattern."""
    plain = re.sub(r"\(\?m\)|\(\^\|--\)|\^|\\b|\[ \\t\][+*]|\\s\*|\[:=\]|\\?\"\?", "", mark)
    return re.sub(r"\\(.)", r"\1", re.sub(r"\\w[+*]", "…", plain).replace("[-_]", "_"))


def _read(source: Source, asked: Asked) -> Reading:
    tool = _tool_of(source)[0]
    reading = Reading(kind="train-config", title="configuration of a trainer", source=source.name, tool=tool,
                      of="settings")  # fmt: skip
    said = _settings(source, source.text(_LIMIT_BYTES), tool, reading)
    reading.taken = len(said)
    if not said:
        raise refused(source, "bad-header", f"{source.name} has no settings of a trainer", "name a whole configuration")
    facts = {role: value for role, names in _NAMES.items() if (value := _count(said, names)) is not None}
    if tool == "MaxText":
        _of_axes(said, facts)
    _of_nodes(said, facts)
    for role, value in facts.items():
        reading.show(_LABELS.get(role, role), value)
    _job(reading, said, facts, asked, source)
    return reading


def _settings(source: Source, text: str, tool: str, reading: Reading) -> dict[str, Any]:
    """Settings by name, those of sections with their section's name and a point before."""
    scripted = tool in ("LLaMA-Factory", "Hugging Face Trainer") and bool(_SCRIPTED.search(text))
    if tool == "Megatron-LM" or scripted or (tool == "MaxText" and "per_device_batch_size=" in text):
        reading.note("Conditions of a script are not weighed: arguments of all its branches count, the last of a name.")
        return _arguments(text, reading)
    try:
        if PYTHON.search(text) and tool in RECIPES and not text.lstrip().startswith(("#!", "[")):
            found, notes = settings_of(text, tool)
            for note in notes:
                reading.note(note)
            return found
        if tool == "torchtitan":
            return _flat(tomllib.loads(text))
        if tool == "DeepSpeed":
            return _flat(loads(text))
        problems: list[Problem] = []  # such as 10_000, which readers of YAML take for different things
        document = parse_yaml(text, source.name, problems=problems).data
        for problem in problems:
            reading.skipped.add(problem.reference, max(problem.places[0].line or 1, 1) if problem.places else 1)
        said = _flat(document)
        if tool == "Megatron-LM, YAML":  # in sections of anybody's: modules.pre_trainer.overrides.seq_length of Primus
            bare: dict[str, list[Any]] = {}
            for name, value in said.items():
                bare.setdefault(name.rpartition(".")[2], []).append(value)
            said = {name: values[0] for name, values in bare.items() if len(values) == 1} | said
        return said
    except (ValueError, RecursionError) as error:
        message = f"{source.name} is not whole: {str(error)[:200]}"
        raise refused(source, "bad-config", message, "see that line; or fetch it again") from None


def _plain(name: object) -> str:
    return str(name).replace("-", "_")


def _flat(document: Any, before: str = "", depth: int = 0) -> dict[str, Any]:
    """Settings and sections by name, and what sections hold by the names of both."""
    found: dict[str, Any] = {}
    for key, value in document.items() if isinstance(document, Mapping) else ():
        if value is None or value is BAD:
            continue
        name = f"{before}{_plain(key)}"
        found[name] = value
        if depth < _DEEPEST:
            found.update(_flat(value, f"{name}.", depth + 1))
    return found


def _arguments(text: str, reading: Reading) -> dict[str, Any]:
    """Arguments of a script, with the values of names that it sets; what stands behind # is no argument."""
    text = re.sub(r"(?m)(^|[ \t])#.*$", "", text)
    names = dict(_ASSIGNED.findall(text))
    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, value, default in [*((*each, "") for each in _SETTING.findall(text)), *_ARGUMENT.findall(text)]:
        for _ in range(_DEEPEST):  # a name may be set to another one
            if value.startswith("$"):
                value = names.get(value.strip("${}"), default)
        unknown.pop(name, None)
        if not value or value.startswith("$"):
            unknown[name] = value
        found[_plain(name)] = True if not value or value.startswith("$") else value
    wanted = {each for names_of in _NAMES.values() for each in names_of}
    if lost := [f"--{name}" for name in unknown if _plain(name) in wanted]:
        reading.note(f"Not known, as it is worked out or set elsewhere: {', '.join(lost[:12])}.")
    return found


def _value(said: Mapping[str, Any], name: str) -> Any:
    """What is said by a name, on top or in one of the usual sections."""
    return next((said[place + name] for place in _INSIDE if said.get(place + name) is not None), None)


def _count(said: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A whole number that is given under one of its names; None where it is left to the trainer."""
    for name in names:
        given = _value(said, name)
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            continue
        if 1 <= value <= _MOST_TOKENS and value.is_integer() and not isinstance(given, bool):
            return int(value)
    return None


def _of_axes(said: Mapping[str, Any], facts: dict[str, int]) -> None:
    """MaxText's axes: their product is the devices, each of which brings its share of each micro-batch."""
    sizes: dict[str, int] = {}
    for name in said:
        axis = _AXIS.fullmatch(name)
        if axis is None:
            continue
        count = _count(said, (name,))
        if count is None:
            return  # -1: as many as there are
        sizes[axis.group(1)] = sizes.get(axis.group(1), 1) * count
    facts |= {role: sizes[axis] for role, axis in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context")) if
              sizes.get(axis, 1) > 1}  # fmt: skip
    facts["devices"] = math.prod(sizes.values())
    try:
        each = float(said.get("per_device_batch_size", 0))  # a part of a sequence where several devices share it
    except (TypeError, ValueError, OverflowError):
        return
    if 0 < each <= _MOST and facts["devices"] <= _MOST:
        batch = each * facts["devices"] * facts.get("accumulated", 1)
        together = each * math.prod(facts.get(role, 1) for role in ("tp", "pp", "cp"))
        facts |= {role: int(value) for role, value in (("batch", batch), ("micro_batch", together)) if
                  value >= 1 and value.is_integer()}  # fmt: skip


def _of_nodes(said: Mapping[str, Any], facts: dict[str, int]) -> None:
    """Devices of nodes, and the sequences of a step that follow of them."""
    nodes, each = (
        _count(said, ("num_nodes", "nnodes")),
        _count(said, ("devices", "nproc_per_node", "num_gpus_per_node", "gpus_per_node")),
    )
    if nodes and each and "devices" not in facts:
        facts["devices"] = nodes * each
    layers, stage = _count(said, ("num_layers",)), _count(said, ("num_layers_per_virtual_pipeline_stage",))
    known = "pp" in facts or not any(name in said for name in _NAMES["pp"])  # as it may be set elsewhere
    if known and layers and stage and not layers % (stage * facts.get("pp", 1)):
        facts.setdefault("vpp", layers // (stage * facts.get("pp", 1)))
    split = math.prod(facts.get(role, 1) for role in ("tp", "pp", "cp"))
    apart = (_count(said, ("dp_shard_size",)) or 0) * (_count(said, ("dp_replicate_size",)) or 1)
    ranks = facts["devices"] // split if "devices" in facts else apart  # that read sequences of their own
    if "batch" not in facts and ranks and "micro_batch" in facts and "accumulated" in facts:
        facts["batch"] = facts["micro_batch"] * facts["accumulated"] * ranks


def _job(reading: Reading, said: Mapping[str, Any], facts: Mapping[str, int], asked: Asked, source: Source) -> None:
    tool = reading.tool
    job: dict[str, Any] = {"name": asked.name or name_of(stem_of(source)), "framework": _FRAMEWORKS.get(tool)}
    named = asked.model or _model(said)
    missing = []
    if named:
        job["model"] = named
    else:
        alike, given = (
            _of_shape(said),
            next((said[key] for key in _MODELS if isinstance(said.get(key), str) and said[key] != "default"), ""),
        )
        known = f"; its shape is that of {' or '.join(alike[:4])}" if alike else ""
        known = known or (f"; '{given[:80]}' is no preset" if given else "")
        missing.append(f"the model (--model{known})")
    sequence, batch = facts.get("sequence", 0), facts.get("batch", 0)
    if sequence:
        job["sequence_length"] = sequence
    if batch:
        job["global_batch"] = f"{batch} sequences"
    elif "accumulated" in facts:
        count = facts["accumulated"]
        reading.note(f"A step has {count} micro-batches of each device: global_batch follows of how many there are.")
    samples = facts.get("samples") or facts.get("steps", 0) * batch
    if samples and sequence and samples * sequence <= _MOST_TOKENS:
        job["tokens"] = f"{samples * sequence / 1e6:.6f}".rstrip("0").rstrip(".") + "M"
    else:
        missing.append("tokens")
    if facts.get("epochs", 1) > 1 and "tokens" not in job:  # steps are those of the whole run
        job["epochs"] = facts["epochs"]
    missing.append("by when (deadline: 30 days)")
    for key, value in (("precision", _precision(said)), ("sharding", _sharding(said, tool)),
                       ("recompute", _recompute(said)), ("optimizer", _optimizer(said, reading))):  # fmt: skip
        if value:
            job[key] = value
            reading.understood[key] = value
    if lora := _lora(said, reading):
        job["lora"] = lora
    split = any(facts.get(role, 1) > 1 for role in ("tp", "cp", "ep"))
    if (job["framework"] == "trl" and not lora) or (job["framework"] in ("trl", "axolotl") and split):
        # planned for adapters, and without tensors split: what lies below it is planned as itself
        job["framework"] = "deepspeed" if "deepspeed" in said and not split else "fsdp"
    if offload := _offload(said, reading):
        job["offload"] = offload
    layout = {key: facts[key] for key in ("tp", "pp", "vpp", "cp", "ep", "micro_batch")
              if 1 <= facts.get(key, 0) <= _MOST}  # fmt: skip
    if layout:
        job["layout"] = layout
    if any(_value(said, name) not in (None, False) for name in _RAMPS):
        reading.note("Not carried over: the batch grows at first; it is planned as the last one from the start on.")
    narrow = str(said.get("quantization") or "none").lower() if tool == "MaxText" else "none"
    if narrow != "none" and job.get("precision") != "fp8":
        reading.note(f"Not carried over: products in {narrow[:40]} (quantization); steps are planned in "
                     f"{job.get('precision', 'bf16')}, and are shorter.")  # fmt: skip
    if facts.get("devices", 0) > 1:
        reading.note(f"It runs on {facts['devices']:,} devices; a plan finds how many: limits.max_devices bounds them.")
    reading.note(f"The file does not give {', '.join(missing[:-1])}{' and ' if missing[1:] else ''}{missing[-1]}: "
                 "add that to the job.")  # fmt: skip
    if len(job) > 2:
        job = {key: value for key, value in job.items() if value is not None}
        pinned = " ".join(f"--set training.{job['name']}.{key}=null" for key in ("layout",) if key in job)
        if pinned:
            reading.note(f"Solved so, it is the job as it is; what would be better: plan solve SCENARIO {pinned} "
                         "--out better.plan.json, then plan compare the two plans.")  # fmt: skip
        fragment: dict[str, Any] = {"training": [job]}
        if tool == "MaxText" and str(said.get("hardware", "tpu")) == "tpu":  # its own default
            fragment["hardware"] = {"allow": ["tpu-*"]}
            reading.note("It runs on TPUs: hardware.allow, unless the scenario has one; MaxText runs on GPUs as well.")
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment=fragment,
                                    says=f"a job as {tool} runs it today"))  # fmt: skip


_MODELS = ("base_model", "model_name", "model_name_or_path", "model.hf_assets_path", "hf_assets_path", "model")


def _model(said: Mapping[str, Any]) -> str:
    """A preset that a name in the file speaks of, "" when none does."""
    for key in _MODELS:
        value = said.get(key)
        if isinstance(value, str) and (preset := preset_of(re.sub(r"\.ya?ml$", "", value[:200].rstrip("/")))):
            return preset
    flavour = "-".join(str(said.get(f"model.{key}")) for key in ("name", "flavor"))  # llama3-405B
    for text in (flavour, flavour.replace("llama3-", "llama3.1-", 1)):
        if preset := preset_of(text[:200]):
            return preset
    component = str(said.get("model._component_", "")).rsplit(".", 1)[-1].replace("_", "-")  # llama3_1_70b
    return preset_of(re.sub(r"(\d)-(\d)-", r"\1.\2-", component)[:200]) or ""


def _of_shape(said: Mapping[str, Any]) -> list[str]:
    """Presets with as many layers, of the same widths."""
    layers, width = _count(said, ("num_layers",)), _count(said, ("hidden_size",))
    heads, inner = _count(said, ("num_attention_heads",)), _count(said, ("ffn_hidden_size",))
    if layers is None or width is None:
        return []
    found = []
    for row in preset_summary():
        config = preset_config(row["name"])
        alike = (row["layers"], row["hidden_size"]) == (layers, width)
        alike = alike and heads in (None, *(config.get(key) for key in ("num_attention_heads", "n_head", "n_heads")))
        if alike and inner in (None, *(config.get(key) for key in ("intermediate_size", "n_inner", "ffn_dim"))):
            found.append(str(row["name"]))
    return found


def _on(said: Mapping[str, Any], *names: str) -> bool:
    return any(str(_value(said, name)).lower() in ("true", "yes", "1") for name in names)


def _precision(said: Mapping[str, Any]) -> str:
    mixed = " ".join(str(_value(said, name) or "").lower() for name in ("mixed_precision", "precision", "dtype"))
    made = f"{said.get('quantization')} {said.get('model.converters')}".lower()  # of MaxText and torchtitan
    converted = "fp8" in made or "float8" in made or _on(said, "float8.enable_float8_linear")
    if "fp8_format" in said or _on(said, "fp8") or "fp8" in mixed or converted:
        return "fp8"
    if _on(said, "bf16", "bf16.enabled") or "bf16" in mixed or "bfloat16" in mixed or said.get("bf16") == "auto":
        return "bf16"
    return "fp16" if _on(said, "fp16", "fp16.enabled") or re.search(r"fp16|\b16\b", mixed) else ""


def _sharding(said: Mapping[str, Any], tool: str) -> str:
    if tool in ("Megatron-LM", "Megatron-LM, YAML", "NeMo"):
        named = str(mapping(_value(said, "optim")).get("name") or "")
        if "use_distributed_optimizer" in said or "distributed" in named:
            return "zero-1"
        return "none" if named or tool == "Megatron-LM" else ""  # what its recipes leave out is not seen here
    if tool in ("DeepSpeed", "GPT-NeoX") or said.get("distributed_type") == "DEEPSPEED" or "deepspeed" in said:
        stage = _count(said, ("zero_optimization.stage", "zero_stage")) or _stage_of_name(said)
        return f"zero-{stage}" if stage in (1, 2, 3) else "" if "deepspeed" in said else "none"
    if tool == "torchtitan":
        sharded = said.get("parallelism.data_parallel_shard_degree", said.get("training.data_parallel_shard_degree"))
        return "none" if str(sharded) == "1" else "zero-3"
    if tool == "MaxText":
        shared = any(_count(said, (f"{side}_fsdp_parallelism",)) != 1 and f"{side}_fsdp_parallelism" in said
                     for side in ("ici", "dcn"))  # fmt: skip
        return "zero-3" if shared else ""
    if tool == "torchtune":
        return "zero-3"  # its distributed recipes wrap every layer in FSDP
    if said.get("distributed_type") in ("MULTI_GPU", "NO"):
        return "none"
    strategy = str(said.get("fsdp_config.fsdp_sharding_strategy") or said.get("fsdp_config.sharding_strategy") or "")
    reshard = next(
        (name for place in ("", "fsdp_") if (name := f"fsdp_config.{place}reshard_after_forward") in said), ""
    )
    if not strategy and reshard and "2" in (str(said.get("fsdp_version")), str(said.get("fsdp_config.fsdp_version"))):
        return "zero-3" if _on(said, reshard) else "zero-2"
    if not strategy:
        strategy = next((word for word in ("FULL_SHARD", "SHARD_GRAD_OP") if word in str(said.get("fsdp")).upper()), "")
    return {"FULL_SHARD": "zero-3", "1": "zero-3", "SHARD_GRAD_OP": "zero-2", "2": "zero-2", "NO_SHARD": "none",
            "3": "none"}.get(strategy, "")  # fmt: skip


def _stage_of_name(said: Mapping[str, Any]) -> int:
    """The stage that the name of a DeepSpeed file tells, as zero3.json or ds_z2_config.json; 0 where none does."""
    given = str(said.get("deepspeed") or said.get("deepspeed_config.deepspeed_config_file") or "")
    found = re.search(r"(?:zero|_z)_?(?:stage_?)?([123])", given.lower()[:300])
    return int(found.group(1)) if found else 0


def _recompute(said: Mapping[str, Any]) -> str:
    mode = str(said.get("activation_checkpoint.mode") or said.get("recompute_granularity")
               or _value(said, "activations_checkpoint_granularity") or "")  # fmt: skip
    if mode in ("none", "selective", "full"):
        return mode
    if said.get("remat_policy") == "full":
        return "full"
    if _on(said, "recompute_activations"):
        return "selective"
    checkpointed = ("fsdp_config.fsdp_activation_checkpointing", "fsdp_config.activation_checkpointing",
                    "gradient_checkpointing", "enable_activation_checkpointing", "checkpoint_activations")  # fmt: skip
    unsloth = str(said.get("gradient_checkpointing")).lower() in ("unsloth", "offload")
    return "full" if unsloth or _on(said, *checkpointed) else ""


def _optimizer(said: Mapping[str, Any], reading: Reading) -> str:
    """The recipe that an optimizer's name means; "" for the usual one, and for one that is not planned."""
    given = _value(said, "optimizer") or (said["optim"] if isinstance(said.get("optim"), str) else None)
    name = str(
        given if isinstance(given, str) else mapping(given).get("type") or mapping(given).get("_component_") or ""
    )
    plain = name.lower().rsplit(".", 1)[-1]
    found = next((recipe for mark, recipe in _OPTIMIZERS if mark in plain), None)
    if plain and found is None:
        reading.note(f"Not carried over: the optimizer '{plain[:40]}'; the job is planned with adamw.")
    return found or ""


def _lora(said: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Adapters of Axolotl, LLaMA-Factory and TRL, and of torchtune by the name of its model."""
    rank = _count(said, ("lora_r", "model.lora_rank", "lora_rank"))
    method = str(said.get("adapter") or said.get("finetuning_type") or "lora")
    if not rank or method not in ("lora", "qlora") or ("use_peft" in said and not _on(said, "use_peft")):
        return {}
    bits = _count(said, ("quantization_bit",))
    four = _on(said, "load_in_4bit") or said.get("adapter") == "qlora" or bits == 4
    base = "nf4" if four else "int8" if _on(said, "load_in_8bit") or bits == 8 else ""
    reading.understood["adapters"] = f"rank {rank}" + (f" on weights in {base}" if base else "")
    return {"rank": rank, **({"base": base} if base else {})}


def _offload(said: Mapping[str, Any], reading: Reading) -> list[str]:
    """What is kept in host memory; weights there are not planned."""
    device = [str(mapping(said.get(f"zero_optimization.offload_{part}")).get("device")
                  or said.get(f"deepspeed_config.offload_{part}_device") or "none")
              for part in ("optimizer", "param")]  # fmt: skip
    whole = _on(said, "fsdp_config.offload_params", "fsdp_config.fsdp_offload_params", "fsdp_cpu_offload")
    found = ["optimizer"] if device[0] != "none" or whole else []
    if _on(said, "activation_offloading", "enable_activation_offloading"):
        found.append("activations")
    if device[1] != "none" or whole:
        reading.note("Not carried over: weights in host memory; the plan keeps them on the devices.")
    return found


KINDS = (
    Kind(name="train-config", title="configuration of a trainer",
         looks_for="arguments of Megatron or MaxText, torchtitan's TOML, DeepSpeed's JSON, YAML of other trainers",
         recognise=_match, read=_read),
)  # fmt: skip
