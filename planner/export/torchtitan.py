"""`plan export torchtitan`: a job file in TOML, and the script that starts it.

torchtitan 0.2.2 is the last release that reads TOML; 0.3 wants a Python module in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.architecture.model import Architecture
from planner.estimate.software_models import Flavor, titan_flavor
from planner.export import file_text
from planner.export.file_text import Blank, Target, commented, header_lines
from planner.export.launch import ExportFile, Launch, TrainingLaunch
from planner.export.trainer import (
    Command,
    checkpoint_notes,
    demand_launchable,
    expert_tensor_size,
    kept_checkpoints,
    run_folder,
    saves_behind,
    script,
    steps_between_checkpoints,
    training_notes,
)

TARGET = Target(
    name="torchtitan",
    version="0.2.2",
    read="2026-11-21",
    source="pytorch/torchtitan:torchtitan/config/job_config.py@v0.2.2",
)
BLANKS = (
    Blank(name="DATASET_PATH", meaning="folder or name of the data set, for the loader named by DATASET"),
    Blank(name="DATASET", meaning="name of a registered data set, for example c4"),
    Blank(name="HF_ASSETS", meaning="folder of the tokenizer (scripts/download_hf_assets.py)"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints, seen by all nodes"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 3e-4"),
)
LEAST_KEPT = 2  # the last one may be half-written when the one before it goes
_OPTIMIZERS = {"adamw": "AdamW", "adamw-fsdp": "AdamW", "adam": "Adam", "adamw-pure-bf16": "AdamW"}


def files(launch: Launch) -> list[ExportFile]:
    """The job file, and a script that starts it on each node with what the plan does not know.

    Raises
    ------
    NotExpressible
        torchtitan has no model, no option or no sharding for the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    config = job_config(launch)
    name = f"{launch.stem}.torchtitan.toml"
    notes = tuple(_notes(launch))
    toml = commented(header_lines(launch, TARGET, (), [f"start it with {launch.stem}.torchtitan.sh", *notes]))
    command = _command(launch, (("--job.config_file", f'"$(dirname "$0")"/{file_text.shell(name)}'),), notes)
    return [
        ExportFile(name=name, text=toml + "\n" + file_text.toml(config)),
        ExportFile(name=f"{launch.stem}.torchtitan.sh", text=script(launch, command)),
    ]


def torchtitan_command(launch: TrainingLaunch) -> Command:
    """The same job with every setting on the command line, for a launcher that has no job file beside it.

    Raises
    ------
    NotExpressible
        As `files`.
    """
    settings = tuple(_argument(key, value) for key, value in _flat(job_config(launch)) if value is not False)
    return _command(launch, settings, tuple(_notes(launch)))


def _command(launch: TrainingLaunch, settings: tuple[tuple[str, ...], ...], notes: tuple[str, ...]) -> Command:
    blanks = (
        ("--training.dataset", '"$DATASET"'),
        ("--training.dataset_path", '"$DATASET_PATH"'),
        ("--model.hf_assets_path", '"$HF_ASSETS"'),
        ("--checkpoint.folder", run_folder(launch, "CHECKPOINT_DIR")),
        ("--optimizer.lr", '"$LEARNING_RATE"'),
    )
    allocator = (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)
    return Command(
        target=TARGET,
        blanks=BLANKS,
        notes=notes,
        exports=allocator if launch.job.stack.allocator == "expandable" else (),
        program=("-m torchtitan.train",),
        options=(*settings, *blanks),
    )


def job_config(launch: TrainingLaunch) -> dict[str, Any]:
    """The job as torchtitan's sections and fields.

    Raises
    ------
    NotExpressible
        torchtitan has no model, no option or no sharding for the launch.
    """
    demand_launchable(launch, "torchtitan")
    flavor = titan_flavor(launch.model.arch)
    assert flavor is not None  # or it would have been refused
    layout, save = launch.layout, launch.checkpoint_every_s is not None
    recompute: dict[str, Any] = {"mode": layout.recompute}
    if layout.recompute == "selective":
        recompute["selective_ac_option"] = "op"
    config: dict[str, Any] = {
        "job": {"description": f"{launch.workload} of plan {launch.origin.plan_name}"},
        "model": {"name": flavor.name, "flavor": flavor.flavor},
        "optimizer": {"name": _OPTIMIZERS[launch.job.optimizer]},
        "training": _training(launch),
        "parallelism": dict(_parallelism(launch, flavor)),
        "checkpoint": {"enable": save, "interval": steps_between_checkpoints(launch), **_checkpoints(launch)},
        "activation_checkpoint": recompute,
    }
    if components := _compiled(launch):
        config["compile"] = {"enable": True, "components": components}
    if launch.job.precision == "fp8":
        config["model"]["converters"] = ["quantize.linear.float8"]
        config["quantize"] = {"linear": {"float8": {"recipe_name": "tensorwise"}}}
    return config


def _compiled(launch: TrainingLaunch) -> list[str]:
    """What torch.compile is to make: a fused loss, and products in fp8, which scale their inputs one by one without."""
    model = ["model"] if launch.job.precision == "fp8" else []
    return [*model, "loss"] if launch.job.stack.cross_entropy == "fused" else model


def _checkpoints(launch: TrainingLaunch) -> dict[str, Any]:
    """How checkpoints are written and how many stay, where the scenario says so."""
    kept = kept_checkpoints(launch)
    written = {"async_mode": "async"} if saves_behind(launch) else {}
    return written if kept is None or kept < LEAST_KEPT else {**written, "keep_latest_k": kept}


def _training(launch: TrainingLaunch) -> dict[str, Any]:
    layout, job = launch.layout, launch.job
    # a pipeline takes all micro-batches of a step at once and cuts them up itself
    local = layout.micro_batch * (layout.micro_batches if layout.pp > 1 else 1)
    return {
        "local_batch_size": local,
        "global_batch_size": layout.global_batch_sequences,
        "seq_len": launch.sequence_length,
        "steps": launch.steps,
        "dtype": "bfloat16" if job.optimizer == "adamw-pure-bf16" else "float32",
        "mixed_precision_param": "float32" if job.precision == "fp32" else "bfloat16",
        "mixed_precision_reduce": "float32",
        "enable_cpu_offload": bool(job.offload),
    }


def _parallelism(launch: TrainingLaunch, flavor: Flavor) -> Iterator[tuple[str, Any]]:
    layout = launch.layout
    replicated = layout.sharding == "none"
    yield "data_parallel_replicate_degree", layout.dp if replicated else 1
    yield "data_parallel_shard_degree", 1 if replicated else layout.dp
    policies = {"zero-2": "never", "zero-3": "always" if layout.pp > 1 else "default"}  # whose default is never there
    yield "fsdp_reshard_after_forward", policies.get(layout.sharding, "default")
    yield "tensor_parallel_degree", layout.tp
    yield "context_parallel_degree", layout.cp
    yield "expert_parallel_degree", layout.ep
    if layout.ep > 1:
        yield "expert_tensor_parallel_degree", expert_tensor_size(layout)
    yield "pipeline_parallel_degree", layout.pp
    if layout.pp > 1:
        yield "pipeline_parallel_schedule", "Interleaved1F1B" if layout.vpp > 1 else "1F1B"
        yield "pipeline_parallel_microbatch_size", layout.micro_batch
        if layout.vpp > 2:  # 1 and 2 are what the two schedules take by themselves
            yield "pipeline_parallel_layers_per_stage", -(-flavor.layers // (layout.pp * layout.vpp))
        yield "pipeline_parallel_first_stage_less_layers", 0
        yield "pipeline_parallel_last_stage_less_layers", 0


def _flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


def _argument(key: str, value: Any) -> tuple[str, ...]:
    """A setting as torchtitan's command line takes it: a switch for true; false is the default of all and left out."""
    if value is True:
        return (f"--{key}",)
    return f"--{key}", file_text.shell(",".join(map(str, value)) if isinstance(value, list) else str(value))


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "torchtitan")
    yield from checkpoint_notes(launch, behind=True, keeps=(kept_checkpoints(launch) or LEAST_KEPT) >= LEAST_KEPT)
    yield "0.2.2 is the last torchtitan that reads job files in TOML"
    if launch.layout.sharding == "zero-2":
        yield "zero-2 is fsdp_reshard_after_forward never: parameters stay whole between forward and backward"
    if launch.job.offload:
        yield "enable_cpu_offload keeps weights and gradients on the host, too: steps take longer than planned"
    if launch.job.stack.cross_entropy == "chunked":
        yield "the plan counts on a chunked loss: without one the logits of a micro-batch take more memory"
    arch: Architecture | None = launch.model.arch
    if arch is not None and launch.layout.pp > 1 and arch.layer_count % launch.layout.pp:
        yield "its layers do not divide over the stages: torchtitan makes its own uneven cut"
