"""`plan export maxtext`: training on slices of TPUs with MaxText, started on every host of each slice.

Sizes of a mesh are products: of what lies within a slice (ici) and of what lies between slices (dcn). Slices divide the
replicas, or the stages of a pipeline where they do not divide those; all else stays within a slice.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.estimate.software_models import maxtext_model
from planner.export.file_text import Blank, Target, shell
from planner.export.launch import ExportFile, Launch, TrainingLaunch, TrainingLayout
from planner.export.trainer import (
    Command,
    demand_launchable,
    kept_checkpoints,
    run_folder,
    saves_behind,
    script,
    steps_between_checkpoints,
    training_notes,
)

TARGET = Target(
    name="MaxText",
    version="0.2.5",
    read="2026-11-23",
    source="maxtext/configs/types.py, base.yml and models/ in the wheel",
)
BLANKS = (
    Blank(name="DATASET_FILES", meaning="pattern of the ArrayRecord files of the training data, read by Grain"),
    Blank(name="TOKENIZER", meaning="tokenizer: a Hugging Face name or folder"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of all output, gs://... that each host sees"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 3e-4"),
)
# what the policies keep: all products of matrices, those outside the MLP with attention's output, nothing
_POLICIES = {"none": "minimal", "selective": "save_dot_with_context_except_mlp", "full": "full"}
_AXES = ("data", "fsdp", "pipeline", "context", "tensor", "expert")


def files(launch: Launch) -> list[ExportFile]:
    """One script, to be started on each host of the slice.

    Raises
    ------
    NotExpressible
        MaxText does not run the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    return [ExportFile(name=f"{launch.stem}.maxtext.sh", text=script(launch, maxtext_command(launch)))]


def maxtext_command(launch: TrainingLaunch) -> Command:
    """The command of a launch.

    Raises
    ------
    NotExpressible
        MaxText does not run it.
    """
    demand_launchable(launch, "maxtext")
    folder = run_folder(launch, "CHECKPOINT_DIR")
    return Command(
        target=TARGET,
        blanks=BLANKS,
        notes=tuple(_notes(launch)),
        exports=(),
        starter="python3",
        program=("-m maxtext.trainers.pre_train.train",),
        options=(
            *((shell(f"{key}={value}"),) for key, value in settings(launch)),
            (f"base_output_directory={folder}",),
            ('grain_train_files="$DATASET_FILES"',),
            ('tokenizer_path="$TOKENIZER"',),
            ('learning_rate="$LEARNING_RATE"',),
        ),
    )


def settings(launch: TrainingLaunch) -> Iterator[tuple[str, object]]:
    """Settings of MaxText and their values, but for what the plan does not know.

    Parameters
    ----------
    launch
        A launch that MaxText runs.
    """
    job, layout = launch.job, launch.layout
    yield "run_name", launch.stem
    yield "model_name", maxtext_model(launch.model.arch)
    yield "hardware", "tpu"
    within, between = meshes(layout, launch.nodes_per_job)
    for axis, size in zip(_AXES, within, strict=True):
        yield f"ici_{axis}_parallelism", size
    for axis, size in zip(_AXES, between, strict=True):
        yield f"dcn_{axis}_parallelism", size
    yield "shard_optimizer_over_data", _flag(layout.sharding == "zero-1" and layout.dp > 1)
    yield from _batch(launch)
    yield "steps", launch.steps
    yield "max_target_length", launch.sequence_length
    yield "dtype", "float32" if job.precision == "fp32" else "bfloat16"
    yield "weight_dtype", "float32"
    yield "remat_policy", _POLICIES[layout.recompute]
    yield "opt_type", "sgd" if job.optimizer == "sgd" else "adamw"
    if job.optimizer == "adam":
        yield "adam_weight_decay", 0.0
    yield "optimizer_memory_host_offload", _flag("optimizer" in (job.offload or ()))
    yield "enable_dropout", _flag(False)
    yield "enable_checkpointing", _flag(launch.checkpoint_every_s is not None)
    yield "checkpoint_period", steps_between_checkpoints(launch)
    if saves_behind(launch):
        yield "async_checkpointing", _flag(True)
    if (kept := kept_checkpoints(launch)) is not None:
        yield "max_num_checkpoints_to_keep", kept
    yield "dataset_type", "grain"
    yield "tokenizer_type", "huggingface"


def mesh(layout: TrainingLayout) -> tuple[int, int, int, int, int, int]:
    """Sizes of data, fsdp, pipeline, context, tensor and expert, whose product is the devices.

    Parameters
    ----------
    layout
        Whose ep divides its dp: experts take ranks of dp, and the batch is split over them as well.
    """
    replicas = layout.dp // layout.ep
    sharded = layout.sharding == "zero-3"
    return (1 if sharded else replicas, replicas if sharded else 1, layout.pp, layout.cp, layout.tp, layout.ep)


def meshes(layout: TrainingLayout, slices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of the axes of `mesh` within a slice, and between slices; their products are those of `mesh`.

    Parameters
    ----------
    layout
        That slices can be joined in (`planner.estimate.software.joins_slices`).
    slices
        Of one job.
    """
    whole = mesh(layout)
    replicas = 1 if layout.sharding == "zero-3" else 0  # the axis of `mesh` that they are on
    crossed = replicas if whole[replicas] % slices == 0 else _AXES.index("pipeline")
    between = tuple(slices if axis == crossed else 1 for axis in range(len(_AXES)))
    return tuple(size // apart for size, apart in zip(whole, between, strict=True)), between


def _batch(launch: TrainingLaunch) -> Iterator[tuple[str, object]]:
    """Sequences of one forward pass, spread over all devices, and how many passes make a step."""
    layout = launch.layout
    passes = 1 if layout.pp > 1 else layout.micro_batches  # a pipeline takes all micro-batches of a step at once
    yield "per_device_batch_size", layout.global_batch_sequences / passes / layout.devices
    yield "gradient_accumulation_steps", passes
    if layout.pp > 1:
        assert launch.model.arch is not None
        yield "num_pipeline_microbatches", layout.micro_batches
        yield "num_layers_per_pipeline_stage", launch.model.arch.layer_count // (layout.pp * layout.vpp)


def _flag(on: bool) -> str:
    return str(on).lower()


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "maxtext")
    slices, shape = launch.nodes_per_job, launch.machine.shape_name
    if slices > 1:
        yield (
            f"one job on {slices} slices of {shape}: ask for them as one queued resource (--node-count {slices}) and "
            "start it on every host of all of them at once, as gcloud's --worker=all --node=all does; JobSet or XPK "
            f"(--num-slices {slices}) do both on GKE"
        )
    else:
        yield f"start it on every host of {shape} at once, as gcloud's --worker=all does"
    yield "it takes the model's settings from MaxText's own file, and pads the vocabulary as that says"
    if launch.layout.recompute == "none":
        yield "MaxText keeps the products of matrices, and computes what lies between them again"
    if launch.layout.pp > 1:
        yield "MaxText's pipeline keeps the inputs of all micro-batches of a step, the plan those of its stages alone"
