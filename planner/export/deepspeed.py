"""`plan export deepspeed`: the configuration of DeepSpeed's engine, and the command that starts a script with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.export import file_text
from planner.export.file_text import Blank, Target, header_lines
from planner.export.launch import ExportFile, Launch, TrainingLaunch
from planner.export.trainer import (
    Command,
    checkpoint_notes,
    demand_launchable,
    run_folder,
    script,
    steps_between_checkpoints,
    training_notes,
    written_first,
)

TARGET = Target(
    name="DeepSpeed",
    version="0.19",
    read="2026-11-21",
    source="deepspeedai/DeepSpeed:docs/_pages/config-json.md@00376da, deepspeed/runtime/zero/config.py@1b88ac3",
)
BLANKS = (
    Blank(name="TRAIN_SCRIPT", meaning="your script, which calls deepspeed.initialize with --deepspeed_config"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints, seen by all nodes"),
)
_STAGES = {"none": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3}
_OPTIMIZERS = {
    **dict.fromkeys(("adamw", "adamw-deepspeed", "adamw-megatron", "adamw-fsdp", "adamw-pure-bf16"), "AdamW"),
    "adam": "Adam",
    "muon": "Muon",
    "sgd": "SGD",
    "sgd-momentum": "SGD",
    "adafactor": "Adafactor",
}


def files(launch: Launch) -> list[ExportFile]:
    """The configuration, and a script that starts training with it on each node.

    Raises
    ------
    NotExpressible
        DeepSpeed needs code of one's own for the layout, or has no setting for it.
    """
    assert isinstance(launch, TrainingLaunch)
    config = engine_config(launch)
    name = f"{launch.stem}.deepspeed.json"
    starter = f"{launch.stem}.deepspeed.sh"
    notes = tuple(_notes(launch))
    # JSON has no comments; DeepSpeed reads the keys that it knows and leaves others alone
    said = header_lines(launch, TARGET, (), [f"start it with {starter}", *notes])
    return [
        ExportFile(name=name, text=file_text.json({"_comment": said, **config})),
        ExportFile(
            name=starter, text=script(launch, _command(launch, f'"$(dirname "$0")"/{file_text.shell(name)}', (), notes))
        ),
    ]


def deepspeed_command(launch: TrainingLaunch) -> Command:
    """The command of a launch, which writes its configuration first.

    Raises
    ------
    NotExpressible
        DeepSpeed needs code of one's own for the layout, or has no setting for it.
    """
    written = written_first(file_text.json(engine_config(launch)), ".json")
    return _command(launch, '"$CONFIGURATION"', written, tuple(_notes(launch)))


def _command(launch: TrainingLaunch, path: str, before: tuple[str, ...], notes: tuple[str, ...]) -> Command:
    allocator = (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)
    return Command(
        target=TARGET,
        blanks=BLANKS,
        notes=notes,
        exports=allocator if launch.job.stack.allocator == "expandable" else (),
        before=before,
        program=('"$TRAIN_SCRIPT"',),
        options=(
            ("--deepspeed_config", path),
            ("--checkpoint-dir", run_folder(launch, "CHECKPOINT_DIR")),
            ("--sequence-length", str(launch.sequence_length)),
            ("--steps", str(launch.steps)),
            ("--save-interval", str(steps_between_checkpoints(launch))),
            *((("--gradient-checkpointing", launch.layout.recompute),) if launch.layout.recompute != "none" else ()),
        ),
    )


def engine_config(launch: TrainingLaunch) -> dict[str, Any]:
    """The configuration of the engine: batch, ZeRO, precision, optimizer, activation checkpointing.

    Raises
    ------
    NotExpressible
        DeepSpeed has no setting for it.
    """
    demand_launchable(launch, "deepspeed")
    layout = launch.layout
    config: dict[str, Any] = {
        "train_batch_size": layout.global_batch_sequences,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": layout.micro_batches,
        "gradient_clipping": 1.0,
        "steps_per_print": 10,
        "optimizer": _optimizer(launch),
        "zero_optimization": dict(_zero(launch)),
        **_precision(launch),
    }
    if layout.sharding != "none" and config["optimizer"]["type"] in ("SGD", "Adafactor"):
        config["zero_allow_untested_optimizer"] = True
    if layout.tp > 1:
        config["tensor_parallel"] = {"autotp_size": layout.tp}
    if layout.recompute != "none":
        config["activation_checkpointing"] = dict(_activations(launch))
    return config


def _optimizer(launch: TrainingLaunch) -> dict[str, Any]:
    name = launch.job.optimizer
    parameters: dict[str, Any] = {"lr": 3e-4}
    if name == "sgd-momentum":
        parameters["momentum"] = 0.9
    return {"type": _OPTIMIZERS[name], "params": parameters}


def _zero(launch: TrainingLaunch) -> Iterator[tuple[str, Any]]:
    stage = _STAGES[launch.layout.sharding]
    yield "stage", stage
    if stage:
        yield "overlap_comm", True
        yield "contiguous_gradients", True
        yield "reduce_scatter", True
    if "optimizer" in (launch.job.offload or ()):
        yield "offload_optimizer", {"device": "cpu", "pin_memory": True}
    if stage == 3:
        yield "stage3_gather_16bit_weights_on_model_save", True


def _precision(launch: TrainingLaunch) -> dict[str, Any]:
    precision = launch.job.precision
    if precision == "fp16":
        return {"fp16": {"enabled": True, "loss_scale": 0}}
    if precision == "fp32":
        return {"bf16": {"enabled": False}}
    pure = launch.job.optimizer == "adamw-pure-bf16"
    more = {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True} if pure else {}
    return {"bf16": {"enabled": True, **more}}


def _activations(launch: TrainingLaunch) -> Iterator[tuple[str, Any]]:
    yield "partition_activations", launch.layout.tp > 1
    yield "contiguous_memory_optimization", False
    yield "cpu_checkpointing", "activations" in (launch.job.offload or ())


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "deepspeed")
    yield from checkpoint_notes(launch, behind=False, keeps=False)
    yield "the model, its data and options such as --steps are your script's; the learning rate here is a placeholder"
    if launch.job.lora is not None:
        yield f"adapters of rank {launch.job.lora.rank} on a {launch.job.lora.base} base: your script makes them (PEFT)"
    if launch.layout.recompute != "none":
        kind = "each layer" if launch.layout.recompute == "full" else "the core of attention"
        yield f"the plan recomputes {kind}: your script turns that on, these settings say how it is kept"
