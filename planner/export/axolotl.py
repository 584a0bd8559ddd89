"""`plan export axolotl`: Axolotl's fine-tuning from a configuration in YAML, started on every node by torchrun.

The configuration holds what the plan fixes; what the plan does not know comes on the command line, where Axolotl's
trainer lets any of its keys be given. DeepSpeed's settings stand within it, so that no other file is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.estimate.software import OLD_FAMILIES, UNMASTERED
from planner.export import file_text
from planner.export.file_text import Blank, Target, commented, header_lines
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
    written_first,
)
from planner.export.trl import MODEL, OPTIMIZERS, zero

TARGET = Target(
    name="Axolotl",
    version="0.19.0",
    read="2026-11-23",
    source="axolotl/utils/schemas and axolotl/cli/train.py in the wheel",
)
BLANKS = (
    Blank(name="DATASET", meaning="the data set: a name on the Hugging Face hub, or a folder"),
    Blank(name="DATASET_TYPE", meaning="how its samples are read: completion, chat_template, alpaca ..."),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints and of what was trained, seen by all nodes"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 2e-4"),
)
# a list of one data set, whatever characters its name has
_DATASETS = (
    r"""quoted() { local text="${1//\\/\\\\}"; printf '"%s"' "${text//\"/\\\"}"; }""",
    r"""DATASETS="[{\"path\": $(quoted "$DATASET"), \"type\": $(quoted "$DATASET_TYPE")}]""" + '"',
)


def files(launch: Launch) -> list[ExportFile]:
    """The configuration, and a script that starts it on each node with what the plan does not know.

    Raises
    ------
    NotExpressible
        Axolotl does not run the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    demand_launchable(launch, "axolotl")
    name, notes = f"{launch.stem}.axolotl.yaml", tuple(_notes(launch))
    head = commented(header_lines(launch, TARGET, (), [f"start it with {launch.stem}.axolotl.sh", *notes]))
    command = _command(launch, f'"$(dirname "$0")"/{file_text.shell(name)}', (), notes)
    return [
        ExportFile(name=name, text=head + file_text.yaml(configuration(launch))),
        ExportFile(name=f"{launch.stem}.axolotl.sh", text=script(launch, command)),
    ]


def axolotl_command(launch: TrainingLaunch) -> Command:
    """The command of a launch, which writes its configuration first.

    Raises
    ------
    NotExpressible
        Axolotl does not run it.
    """
    demand_launchable(launch, "axolotl")
    written = written_first(file_text.yaml(configuration(launch)), ".yaml")
    return _command(launch, '"$CONFIGURATION"', written, tuple(_notes(launch)))


def _command(launch: TrainingLaunch, path: str, before: tuple[str, ...], notes: tuple[str, ...]) -> Command:
    known = bool(launch.model.hf_id)
    allocator = (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)
    return Command(
        target=TARGET,
        blanks=BLANKS if known else (MODEL, *BLANKS),
        notes=notes,
        exports=allocator if launch.job.stack.allocator == "expandable" else (),
        before=(*before, *_DATASETS),
        program=("-m axolotl.cli.train", path),
        from_hub=True,
        options=(
            *(() if known else (("--base_model", '"$MODEL"'),)),
            ("--datasets", '"$DATASETS"'),
            ("--output_dir", run_folder(launch, "CHECKPOINT_DIR")),
            ("--learning_rate", '"$LEARNING_RATE"'),
        ),
    )


def configuration(launch: TrainingLaunch) -> dict[str, Any]:
    """Keys of Axolotl and their values, but for what the plan does not know.

    Parameters
    ----------
    launch
        A launch that Axolotl runs.
    """
    job, layout = launch.job, launch.layout
    save, kept = launch.checkpoint_every_s is not None, kept_checkpoints(launch)
    found: dict[str, Any] = {
        **({"base_model": launch.model.hf_id} if launch.model.hf_id else {}),
        **_adapters(launch),
        "sequence_len": launch.sequence_length,
        "sample_packing": True,  # every sequence is as long as planned
        "pad_to_sequence_len": True,
        "micro_batch_size": layout.micro_batch,
        "gradient_accumulation_steps": layout.micro_batches,
        "max_steps": launch.steps,
        "optimizer": OPTIMIZERS[job.optimizer],
        "bf16": job.precision == "bf16",
        "fp16": job.precision == "fp16",
        "attn_implementation": _attention(launch),
        "gradient_checkpointing": layout.recompute == "full",
        **(
            {} if job.stack.cross_entropy == "standard" else {"chunked_cross_entropy": True}
        ),  # its own holds all in fp32
        "save_strategy": "steps" if save else "no",
        **({"save_steps": steps_between_checkpoints(launch)} if save else {}),
        **({"save_total_limit": kept} if save and kept is not None else {}),
        "auto_resume_from_checkpoints": save,
        "val_set_size": 0.0,
        "logging_steps": 10,
    }
    if layout.sharding != "none":
        found["deepspeed"] = zero(launch)
    elif layout.dp > 1:
        found["ddp_find_unused_parameters"] = False
    return found


def _adapters(launch: TrainingLaunch) -> dict[str, Any]:
    """The frozen base in its format, and the adapters on all its matrices; nothing where all weights are trained."""
    lora = launch.job.lora
    if lora is None:
        return {}
    found: dict[str, Any] = {
        "adapter": "qlora" if lora.base == "nf4" else "lora",
        "load_in_4bit": lora.base == "nf4",
        "load_in_8bit": lora.base == "int8",
        "lora_r": lora.rank,
        "lora_alpha": 2 * lora.rank,
        "lora_target_linear": True,
    }
    if lora.base == "nf4":
        sixteen = "float16" if launch.job.precision == "fp16" else "bfloat16"
        storage = {"bnb_4bit_quant_storage": sixteen} if launch.layout.sharding == "zero-3" else {}  # shards floats
        found["bnb_config_kwargs"] = {"bnb_4bit_quant_type": "nf4", **storage}
    return found


def _attention(launch: TrainingLaunch) -> str:
    """FlashAttention keeps packed samples apart, on devices that it runs on."""
    if launch.job.stack.attention == "eager":
        return "eager"
    return "sdpa" if launch.machine.family in OLD_FAMILIES else "flash_attention_2"


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "axolotl")
    yield from checkpoint_notes(launch, behind=False, keeps=True)
    yield "warm-up, weight decay and dropout are Axolotl's own: set those of your recipe"
    if launch.job.lora is None and launch.layout.sharding == "none" and launch.job.optimizer not in UNMASTERED:
        yield (
            "without DeepSpeed Axolotl keeps no copy of the weights in 32 bits beside those in 16: less memory than "
            "planned, and small updates are rounded away"
        )
    if launch.job.lora is not None:
        yield "alpha is twice the rank: set that of your recipe"
    if launch.layout.sharding != "none":
        yield f"{launch.layout.sharding} is DeepSpeed's: install axolotl[deepspeed]"
