"""Configurations of trainers, a job as it is: Megatron, torchtitan, DeepSpeed, Axolotl, MaxText, accelerate.

Scripts are looked through for arguments, never run: a name that the script itself sets is put in, no other.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from planner.architecture.load import preset_of
from planner.errors import Problem
from planner.reading.benchmarks import stem_of
from planner.reading.jsonlines import head_document, loads
from planner.reading.kinds import NOTHING, Asked, Kind, Match
from planner.reading.reading import Piece, Reading
from planner.reading.request_log import name_of
from planner.reading.source import Source, refused
from planner.yamlfile import BAD, parse_yaml

_LIMIT_BYTES = 1_000_000
_MOST = 1_000_000  # ranks, sequences
_MOST_TOKENS = 1e18
# tool -> marks in its files; each mark is a pattern of a line or an argument
_MARKS: Mapping[str, tuple[str, ...]] = {
    "Megatron-LM": (r"--num-layers\b", r"--(micro|global)-batch-size\b", r"--seq-length\b"),
    "torchtitan": (r"(?m)^\[parallelism\]", r"(?m)^\[training\]", r"(?m)^(local_batch_size|seq_len|flavor)\s*="),
    "Axolotl": (r"(?m)^base_model:", r"(?m)^(datasets|pretraining_dataset):", r"(?m)^(sequence_len|micro_batch_size):"),
    "accelerate": (r"(?m)^distributed_type:", r"(?m)^mixed_precision:", r"(?m)^num_processes:"),
    "MaxText": (r"(?m)\bper_device_batch_size\s*[:=]", r"(?m)\b(ici|dcn)_\w+_parallelism\s*[:=]",
                r"(?m)\bmax_target_length\s*[:=]"),
}  # fmt: skip
_FRAMEWORKS = {"Megatron-LM": "megatron", "torchtitan": "torchtitan", "DeepSpeed": "deepspeed", "Axolotl": "axolotl",
               "MaxText": "maxtext", "accelerate": "fsdp"}  # fmt: skip
# what is meant -> how trainers call it, sections and names with a point between
_NAMES: Mapping[str, tuple[str, ...]] = {
    "tp": ("tensor-model-parallel-size", "parallelism.tensor_parallel_degree", "tensor_parallel.autotp_size",
           "ici_tensor_parallelism", "tensor_parallel_size"),
    "pp": ("pipeline-model-parallel-size", "parallelism.pipeline_parallel_degree", "ici_pipeline_parallelism"),
    "cp": ("context-parallel-size", "parallelism.context_parallel_degree", "context_parallel_size",
           "ici_context_parallelism"),
    "ep": ("expert-model-parallel-size", "parallelism.expert_parallel_degree", "ici_expert_parallelism"),
    "micro_batch": ("micro-batch-size", "training.local_batch_size", "train_micro_batch_size_per_gpu",
                    "micro_batch_size", "per_device_batch_size"),
    "sequence": ("seq-length", "training.seq_len", "sequence_len", "max_target_length"),
    "batch": ("global-batch-size", "training.global_batch_size", "train_batch_size"),
    "steps": ("train-iters", "training.steps", "max_steps", "steps"),
    "samples": ("train-samples",),
    "devices": ("num_processes",),
}  # fmt: skip
_ASSIGNED = re.compile(
    r"(?m)^[ \t]*(?:export[ \t]+)?([A-Z_][A-Z0-9_]{0,60})=\"?(?:\$\{[A-Z0-9_]{1,60}:-)?([\w.+-]{1,60})"
)
_ARGUMENT = re.compile(r"--([a-z][a-z0-9_-]{1,60})(?:[ \t=]+\"?(\$?\{?[\w.+][\w.+-]{0,60}))?")
_SETTING = re.compile(r"(?:^|[ \t])([a-z][a-z0-9_]{2,60})=([\w.+-]{1,60})")


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
    if not source.is_text or source.head_text.lstrip()[:1] == "{":
        return "", (), ()
    best: tuple[str, tuple[str, ...], tuple[str, ...]] = ("", (), ("arguments of a trainer",))
    for tool, patterns in _MARKS.items():
        there = tuple(pattern for pattern in patterns if re.search(pattern, source.head_text))
        if len(there) > len(best[1]):
            best = (tool, there, tuple(pattern for pattern in patterns if pattern not in there))
    return best


def _match(source: Source) -> Match:
    tool, found, missing = _tool_of(source)
    if not tool:
        return NOTHING
    score = 0.95 if tool == "DeepSpeed" else 0.95 * len(found) / (len(found) + len(missing))
    return Match(score=score, found=found, missing=missing, tool=tool)


def _read(source: Source, asked: Asked) -> Reading:
    tool = _tool_of(source)[0]
    reading = Reading(kind="train-config", title="configuration of a trainer", source=source.name, tool=tool,
                      of="settings")  # fmt: skip
    said = _settings(source, source.text(_LIMIT_BYTES), tool, reading)
    reading.taken = len(said)
    if not said:
        raise refused(source, "bad-header", f"{source.name} has no settings of a trainer", "name a whole configuration")
    facts = {role: value for role, names in _NAMES.items() if (value := _count(said, names)) is not None}
    labels = {"sequence": "tokens of a sequence", "batch": "sequences of a step", "steps": "steps",
              "samples": "sequences in all",
              "devices": "devices", "micro_batch": "sequences of a micro-batch"}  # fmt: skip
    for role, value in facts.items():
        reading.show(labels.get(role, role), value)
    _job(reading, said, facts, asked, source)
    return reading


def _settings(source: Source, text: str, tool: str, reading: Reading) -> dict[str, Any]:
    """Settings by name, those of sections with their section's name and a point before."""
    if tool == "Megatron-LM" or (tool == "MaxText" and "per_device_batch_size=" in text):
        reading.note("Conditions of a script are not weighed: arguments of all its branches count, the last of a name.")
        return _arguments(text)
    try:
        if tool == "torchtitan":
            return _flat(tomllib.loads(text))
        if tool == "DeepSpeed":
            return _flat(loads(text))
        problems: list[Problem] = []  # such as 10_000, which readers of YAML take for different things
        document = parse_yaml(text, source.name, problems=problems).data
        for problem in problems:
            reading.skipped.add(problem.reference, max(problem.places[0].line or 1, 1) if problem.places else 1)
        return _flat(document)
    except (ValueError, RecursionError) as error:
        message = f"{source.name} is not whole: {str(error)[:200]}"
        raise refused(source, "bad-config", message, "see that line; or fetch it again") from None


def _flat(document: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in document.items() if isinstance(document, Mapping) else ():
        if isinstance(value, Mapping):
            found.update({f"{key}.{inner}": each for inner, each in value.items() if not isinstance(each, list)})
        if value is not None and value is not BAD:
            found[str(key)] = value
    return found


def _arguments(text: str) -> dict[str, Any]:
    """Arguments of a script, with the values of names that it sets; what stands behind # is no argument."""
    text = re.sub(r"(?m)(^|[ \t])#.*$", "", text)
    names = dict(_ASSIGNED.findall(text))
    found: dict[str, Any] = {}
    for name, value in [*_SETTING.findall(text), *_ARGUMENT.findall(text)]:
        if value.startswith("$"):
            value = names.get(value.strip("${}"), "")
        found[name] = value or True
    return found


def _count(said: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A whole number that is given under one of its names; None where it is left to the trainer."""
    for name in names:
        try:
            value = float(said[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 1 <= value <= _MOST_TOKENS and value.is_integer() and not isinstance(said[name], bool):
            return int(value)
    return None


def _job(reading: Reading, said: Mapping[str, Any], facts: Mapping[str, int], asked: Asked, source: Source) -> None:
    tool = reading.tool
    job: dict[str, Any] = {"name": asked.name or name_of(stem_of(source)), "framework": _FRAMEWORKS.get(tool)}
    named = asked.model or _model(said)
    missing = []
    if named:
        job["model"] = named
    else:
        missing.append("the model (--model)")
    sequence, batch = facts.get("sequence", 0), facts.get("batch", 0)
    if sequence:
        job["sequence_length"] = sequence
    if batch:
        job["global_batch"] = f"{batch} sequences"
    samples = facts.get("samples") or facts.get("steps", 0) * batch
    if samples and sequence and samples * sequence <= _MOST_TOKENS:
        job["tokens"] = f"{samples * sequence / 1e6:.6f}".rstrip("0").rstrip(".") + "M"
    else:
        missing.append("tokens")
    for key, value in (("precision", _precision(said)), ("sharding", _sharding(said, tool)),
                       ("recompute", _recompute(said))):  # fmt: skip
        if value:
            job[key] = value
            reading.understood[key] = value
    layout = {key: facts[key] for key in ("tp", "pp", "cp", "ep", "micro_batch") if 1 <= facts.get(key, 0) <= _MOST}
    if layout:
        job["layout"] = layout
    if missing:
        reading.note(f"The file does not give {' and '.join(missing)}: add that to the job.")
    if len(job) > 2:
        job = {key: value for key, value in job.items() if value is not None}
        reading.pieces.append(Piece(what="scenario", name="scenario.yaml", fragment={"training": [job]},
                                    says=f"a job as {tool} runs it today"))  # fmt: skip


def _model(said: Mapping[str, Any]) -> str:
    """A preset that a name in the file speaks of, "" when none does."""
    for key in ("base_model", "model_name", "model.hf_assets_path"):
        value = said.get(key)
        if isinstance(value, str) and (preset := preset_of(value[:200])):
            return preset
    return ""


def _on(said: Mapping[str, Any], *names: str) -> bool:
    return any(str(said.get(name)).lower() in ("true", "yes", "1") for name in names)


def _precision(said: Mapping[str, Any]) -> str:
    mixed = str(said.get("mixed_precision", "")).lower()
    if "fp8-format" in said or _on(said, "fp8") or mixed == "fp8":
        return "fp8"
    if _on(said, "bf16", "bf16.enabled") or mixed == "bf16" or str(said.get("dtype")) == "bfloat16":
        return "bf16"
    return "fp16" if _on(said, "fp16", "fp16.enabled") or mixed == "fp16" else ""


def _sharding(said: Mapping[str, Any], tool: str) -> str:
    if tool == "Megatron-LM":
        return "zero-1" if "use-distributed-optimizer" in said else "none"
    if tool == "DeepSpeed":
        stage = _count(said, ("zero_optimization.stage",))
        return f"zero-{stage}" if stage in (1, 2, 3) else "none"
    if tool == "torchtitan":
        return "none" if str(said.get("parallelism.data_parallel_shard_degree")) == "1" else "zero-3"
    strategy = str(said.get("fsdp_config.fsdp_sharding_strategy") or said.get("fsdp_config.sharding_strategy") or "")
    return {"FULL_SHARD": "zero-3", "1": "zero-3", "SHARD_GRAD_OP": "zero-2", "2": "zero-2", "NO_SHARD": "none",
            "3": "none"}.get(strategy, "")  # fmt: skip


def _recompute(said: Mapping[str, Any]) -> str:
    mode = str(said.get("activation_checkpoint.mode") or said.get("recompute-granularity") or "")
    if mode in ("none", "selective", "full"):
        return mode
    if said.get("remat_policy") == "full":
        return "full"
    checkpointed = ("fsdp_config.fsdp_activation_checkpointing", "fsdp_config.activation_checkpointing",
                    "gradient_checkpointing")  # fmt: skip
    return "full" if _on(said, *checkpointed) else ""


KINDS = (
    Kind(name="train-config", title="configuration of a trainer",
         looks_for="arguments of Megatron or MaxText, torchtitan's TOML, DeepSpeed's JSON, Axolotl or accelerate",
         recognise=_match, read=_read),
)  # fmt: skip
