"""`plan export trl`: TRL's fine-tuning script with PEFT adapters, started on every node by torchrun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.export.file_text import Blank, Target, shell
from planner.export.launch import ExportFile, Launch, TrainingLaunch
from planner.export.trainer import (
    Command,
    checkpoint_notes,
    demand_launchable,
    kept_checkpoints,
    run_folder,
    script,
    steps_between_checkpoints,
    training_notes,
)

TARGET = Target(
    name="TRL",
    version="1.16.0",
    read="2026-11-23",
    source="trl/scripts/sft.py, trl/trainer/sft_config.py and model_config.py in the wheel; training_args.py of "
    "transformers 5.23.0",
)
BLANKS = (
    Blank(name="DATASET", meaning="the data set: a name on the Hugging Face hub, or a folder"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints and of the adapters, seen by all nodes"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 2e-4"),
)
MODEL = Blank(name="MODEL", meaning="the base model: a folder, or a repository of the Hugging Face hub")
OPTIMIZERS = {
    **dict.fromkeys(("adamw", "adamw-fsdp", "adamw-deepspeed", "adamw-megatron"), "adamw_torch_fused"),
    **dict.fromkeys(("adamw-8bit", "adamw-8bit-no-master"), "adamw_bnb_8bit"),
    "adamw-pure-bf16": "adamw_torch_fused",
    "adafactor": "adafactor",
    "sgd": "sgd",
}
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_STAGES = {"zero-1": 1, "zero-2": 2, "zero-3": 3}
RESUME = '${LAST:+--resume_from_checkpoint "$LAST"}'


def files(launch: Launch) -> list[ExportFile]:
    """One script, to be started on each node of a job.

    Raises
    ------
    NotExpressible
        TRL does not run the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    return [ExportFile(name=f"{launch.stem}.trl.sh", text=script(launch, trl_command(launch)))]


def trl_command(launch: TrainingLaunch) -> Command:
    """The command of a launch.

    Raises
    ------
    NotExpressible
        TRL does not run it.
    """
    demand_launchable(launch, "trl")
    allocator = (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)
    folder = run_folder(launch, "CHECKPOINT_DIR")
    known = bool(launch.model.hf_id)
    return Command(
        target=TARGET,
        blanks=BLANKS if known else (MODEL, *BLANKS),
        notes=tuple(_notes(launch)),
        exports=allocator if launch.job.stack.allocator == "expandable" else (),
        before=(_last_checkpoint(folder),),
        program=("-m trl.scripts.sft",),
        from_hub=True,
        options=(
            ("--model_name_or_path", shell(launch.model.hf_id) if known else '"$MODEL"'),
            *(tuple(shell(word) for word in option) for option in _options(launch)),
            ("--dataset_name", '"$DATASET"'),
            ("--output_dir", folder),
            ("--learning_rate", '"$LEARNING_RATE"'),
            (RESUME,),
        ),
    )


def _last_checkpoint(folder: str) -> str:
    """A line that finds the newest checkpoint of a folder, or nothing: TRL goes on only from one that it is told."""
    found = f"find {folder} -mindepth 1 -maxdepth 1 -name 'checkpoint-*' 2>/dev/null || true"
    return f'LAST="$({{ {found}; }} | sort -V | tail -n 1)"'


def _options(launch: TrainingLaunch) -> Iterator[tuple[str, ...]]:
    job, layout = launch.job, launch.layout
    yield from _model_options(launch)
    yield ("--per_device_train_batch_size", str(layout.micro_batch))
    yield ("--gradient_accumulation_steps", str(layout.micro_batches))
    yield ("--max_steps", str(launch.steps))
    yield ("--max_length", str(launch.sequence_length))
    yield ("--packing", "True")  # every sequence is as long as planned
    yield ("--packing_strategy", "wrapped")
    yield ("--bf16", str(job.precision == "bf16"))
    yield ("--fp16", str(job.precision == "fp16"))
    yield ("--optim", OPTIMIZERS[job.optimizer])
    yield ("--gradient_checkpointing", str(layout.recompute == "full"))
    if layout.sharding != "none":
        yield ("--deepspeed", json.dumps(zero(launch)))
    elif layout.dp > 1:
        yield ("--ddp_find_unused_parameters", "False")
    save = launch.checkpoint_every_s is not None
    yield ("--save_strategy", "steps" if save else "no")
    if save:
        yield ("--save_steps", str(steps_between_checkpoints(launch)))
    if save and (kept := kept_checkpoints(launch)) is not None:
        yield ("--save_total_limit", str(kept))
    yield ("--logging_steps", "10")
    yield ("--report_to", "none")


def _model_options(launch: TrainingLaunch) -> Iterator[tuple[str, ...]]:
    """The frozen base in its format, and the adapters on all its matrices."""
    lora = launch.job.lora
    assert lora is not None  # or it would have been refused
    sixteen = _DTYPES[lora.base if lora.base in _DTYPES else launch.job.precision]
    yield ("--dtype", sixteen)
    yield ("--attn_implementation", "eager" if launch.job.stack.attention == "eager" else "sdpa")
    if lora.base == "nf4":
        yield ("--load_in_4bit", "True")
        yield ("--bnb_4bit_quant_type", "nf4")
        if launch.layout.sharding == "zero-3":  # which shards parameters as floats
            yield ("--bnb_4bit_quant_storage", sixteen)
    if lora.base == "int8":
        yield ("--load_in_8bit", "True")
    yield ("--use_peft", "True")
    yield ("--lora_r", str(lora.rank))
    yield ("--lora_alpha", str(2 * lora.rank))
    yield ("--lora_target_modules", "all-linear")


def zero(launch: TrainingLaunch) -> dict[str, Any]:
    """DeepSpeed's settings; what is auto the trainer fills in from its own options."""
    stage = _STAGES[launch.layout.sharding]
    # Without it a trainer saves no weights of shards at the end, and Axolotl stops there
    whole = {"stage3_gather_16bit_weights_on_model_save": True} if stage == 3 else {}
    return {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": {"stage": stage, "overlap_comm": True, **whole},
    }


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "trl")
    yield from checkpoint_notes(launch, behind=False, keeps=True)
    yield "alpha is twice the rank, and dropout TRL's own: set those of your recipe"
    if launch.job.lora is not None and launch.job.lora.base in ("nf4", "int8"):
        yield "the base is quantised by bitsandbytes: install it beside TRL and PEFT"
    if launch.layout.sharding != "none":
        yield f"{launch.layout.sharding} is DeepSpeed's: install it beside TRL and PEFT"
