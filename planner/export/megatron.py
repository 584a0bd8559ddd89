"""Megatron-LM: the arguments of `pretrain_gpt.py` for a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.equations.recipes import state_recipe
from planner.estimate.frameworks import named_framework
from planner.estimate.layout import chunk_layers, equal_chunks
from planner.estimate.resolve import framework_of
from planner.estimate.software import OLD_FAMILIES, uneven_stages
from planner.export.header import Blank, Target
from planner.export.launch import Model, TrainingLaunch, TrainingLayout
from planner.export.megatron_model import FAMILIES, ROUTING, SIGMOID_ROUTERS, Option, model_options
from planner.export.quoting import shell
from planner.export.trainer import Command, run_folder
from planner.export.training import (
    checkpoint_notes,
    demand_launchable,
    saves_behind,
    steps_between_checkpoints,
    training_notes,
)

TARGET = Target(
    name="Megatron-LM",
    version="commit 000c4ac",
    read="2026-11-21",
    source="NVIDIA/Megatron-LM:megatron/training/arguments.py@000c4ac",
)
BLANKS = (
    Blank(name="MEGATRON_DIR", meaning="folder of the Megatron-LM checkout"),
    Blank(name="DATA_PATH", meaning="prefix of the tokenised data (tools/preprocess_data.py)"),
    Blank(name="TOKENIZER", meaning="tokenizer: a Hugging Face name or folder"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints, seen by all nodes"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 3e-4"),
)
_OPTIMIZERS: dict[str, tuple[Option, ...]] = {
    **dict.fromkeys(("adamw", "adam", "adamw-megatron", "adamw-fsdp", "adamw-deepspeed"), (("--optimizer", "adam"),)),
    "adamw-bf16-moments": (
        ("--optimizer", "adam"),
        ("--use-precision-aware-optimizer",),
        ("--exp-avg-dtype", "bf16"),
        ("--exp-avg-sq-dtype", "bf16"),
    ),
    "sgd": (("--optimizer", "sgd"), ("--sgd-momentum", "0")),
    "sgd-momentum": (("--optimizer", "sgd"), ("--sgd-momentum", "0.9")),
    "muon": (("--optimizer", "muon"),),
}
_NARROW_BYTES = 2.0  # of a gradient
# where rows in 8 bits scale blocks of 32; on Hopper they scale whole tensors; Megatron-LM by default does neither
_MXFP8 = ("b200-sxm", "b300-sxm", "gb200-nvl72", "gb300-nvl72")
_FSDP = {"zero-2": "optim_grads", "zero-3": "optim_grads_params"}
_BEHIND = "torch_dist"  # the one format that is written while training goes on (`save_checkpoint`)


def megatron_command(launch: TrainingLaunch) -> Command:
    """The command of a launch.

    Raises
    ------
    NotExpressible
        Megatron-LM has no options for it.
    """
    demand_launchable(launch, "torchrun")
    options = [
        *model_options(launch),
        *_parallel_options(launch),
        *_batch_options(launch),
        *_precision_options(launch),
        *_memory_options(launch),
        *_optimizer_options(launch),
    ]
    quoted = [tuple(shell(word) for word in option) for option in options]
    return Command(
        target=TARGET,
        blanks=BLANKS,
        notes=tuple(_notes(launch)),
        exports=tuple(_environment(launch)),
        program=('"$MEGATRON_DIR/pretrain_gpt.py"',),
        options=(*quoted, *_run_options(launch)),
    )


def _optimizer_options(launch: TrainingLaunch) -> tuple[Option, ...]:
    """Muon that shares out its states, layer by layer, is an optimizer of another name."""
    shared = launch.job.optimizer == "muon" and launch.layout.sharding == "zero-1"
    return (("--optimizer", "dist_muon"),) if shared else _OPTIMIZERS[launch.job.optimizer]


def _parallel_options(launch: TrainingLaunch) -> Iterator[Option]:
    layout = launch.layout
    yield ("--tensor-model-parallel-size", str(layout.tp))
    if layout.tp > 1:
        yield ("--sequence-parallel",)
    yield ("--pipeline-model-parallel-size", str(layout.pp))
    assert launch.model.arch is not None
    yield from _stages(layout, launch.model.arch.layer_count)
    yield ("--context-parallel-size", str(layout.cp))
    if launch.job.optimizer == "muon":  # which takes neither that optimizer nor what it overlaps
        return
    if layout.sharding == "zero-1" or (layout.sharding == "none" and _precision_aware(launch)):
        yield ("--use-distributed-optimizer",)
    if layout.sharding in _FSDP:
        yield ("--use-distributed-optimizer",)
        yield ("--use-megatron-fsdp",)
        yield ("--data-parallel-sharding-strategy", _FSDP[layout.sharding])
        yield ("--no-gradient-accumulation-fusion",)
    yield ("--overlap-grad-reduce",)
    if layout.sharding != "none":
        yield ("--overlap-param-gather",)


def _precision_aware(launch: TrainingLaunch) -> bool:
    """Whether the optimizer is the one that keeps moments in 16 bits, or the state on the host."""
    return launch.job.optimizer == "adamw-bf16-moments" or "optimizer" in (launch.job.offload or ())


def _stages(layout: TrainingLayout, layers: int) -> Iterator[Option]:
    """Chunks of a pipeline, or its first and last stage, where it does not divide the layers; no stage holds more than
    was planned.
    """
    ends = uneven_stages(layout.pp, layout.vpp, layers)
    assert ends is not None  # or it would have been refused
    chunked = layout.vpp > 1 and not equal_chunks(layers, layout.pp, layout.vpp)
    unlike = layout.vpp == 1 and (layers - sum(ends)) % max(layout.pp - 2, 1)  # stages between the ends
    if chunked or unlike:  # says how many each stage has
        yield ("--pipeline-model-parallel-layout", _laid_out(chunk_layers(layers, layout.pp, layout.vpp)))
        return
    if layout.vpp > 1:
        yield ("--num-virtual-stages-per-pipeline-rank", str(layout.vpp))
    if layers % (layout.pp * layout.vpp) and layout.vpp > 1:
        yield ("--account-for-embedding-in-pipeline-split",)
        yield ("--account-for-loss-in-pipeline-split",)
    elif layers % (layout.pp * layout.vpp):
        yield ("--decoder-first-pipeline-num-layers", str(ends[0]))
        if layout.pp > 2:
            yield ("--decoder-last-pipeline-num-layers", str(ends[1]))


def _laid_out(chunks: Sequence[int]) -> str:
    """Chunks as Megatron-LM writes them: E for the embedding, t for a layer, L for the loss, (tt|)*29 for 29 alike."""
    inner = [(size, len(list(alike))) for size, alike in groupby(chunks[1:-1])]
    middle = "".join(f"({'t' * size}|)*{many}" if many > 1 else f"{'t' * size}|" for size, many in inner)
    return f"E{'t' * chunks[0]}|{middle}{'t' * chunks[-1]}L"


def _batch_options(launch: TrainingLaunch) -> Iterator[Option]:
    layout = launch.layout
    yield ("--micro-batch-size", str(layout.micro_batch))
    yield ("--global-batch-size", str(layout.global_batch_sequences))
    yield ("--train-iters", str(launch.steps))


def _precision_options(launch: TrainingLaunch) -> Iterator[Option]:
    precision, stack = launch.job.precision, launch.job.stack
    if precision in ("bf16", "fp8"):
        yield ("--bf16",)
    given = framework_of(launch.job)
    kept = launch.software if given is None or named_framework(given) else given  # whose copies were planned
    recipe = state_recipe(launch.job.optimizer, precision, kept)
    if precision == "bf16" and recipe.gradient <= _NARROW_BYTES and launch.layout.sharding not in _FSDP:
        yield ("--grad-reduce-in-bf16",)  # as planned: by default buckets of gradients are of 32 bits
    if precision == "fp16":
        yield ("--fp16",)
    if precision == "fp8":
        yield ("--fp8-format", "hybrid")
        yield ("--fp8-recipe", "mxfp8" if launch.machine.device in _MXFP8 else "tensorwise")
    if launch.machine.family in OLD_FAMILIES:
        yield ("--transformer-impl", "local")
        yield ("--no-rope-fusion",)
    elif stack.attention == "eager":
        yield ("--attention-backend", "unfused")
    if stack.cross_entropy == "fused":
        yield ("--cross-entropy-loss-fusion",)


def _memory_options(launch: TrainingLaunch) -> Iterator[Option]:
    recompute = launch.layout.recompute
    if recompute != "none":
        yield ("--recompute-granularity", recompute)
    if recompute == "full":
        yield ("--recompute-method", "uniform")
        yield ("--recompute-num-layers", "1")
    if launch.job.offload and "optimizer" in launch.job.offload:
        yield ("--optimizer-cpu-offload",)
        if launch.job.optimizer != "adamw-bf16-moments":
            yield ("--use-precision-aware-optimizer",)


def _run_options(launch: TrainingLaunch) -> Iterator[tuple[str, ...]]:
    """Options whose values the plan does not know, and how often to save; shell words."""
    folder = run_folder(launch, "CHECKPOINT_DIR")
    yield ("--data-path", '"$DATA_PATH"')
    yield ("--split", "100,0,0")
    yield ("--eval-iters", "0")
    yield ("--tokenizer-type", "HuggingFaceTokenizer")
    yield ("--tokenizer-model", '"$TOKENIZER"')
    yield ("--lr", '"$LEARNING_RATE"')
    yield ("--lr-decay-style", "cosine")
    yield ("--attention-dropout", "0")
    yield ("--hidden-dropout", "0")
    yield ("--save", folder)
    yield ("--load", folder)
    yield ("--save-interval", str(steps_between_checkpoints(launch)))
    yield ("--ckpt-format", _checkpoint_format(launch))
    if saves_behind(launch) and _checkpoint_format(launch) == _BEHIND:
        yield ("--async-save",)
    yield ("--log-interval", "10")
    yield ("--log-throughput",)
    yield ("--exit-signal-handler",)


def _checkpoint_format(launch: TrainingLaunch) -> str:
    if launch.job.optimizer == "muon":  # each rank saves its own states; any other format is refused
        return "torch"
    return "fsdp_dtensor" if launch.layout.sharding in _FSDP else _BEHIND


def _environment(launch: TrainingLaunch) -> Iterator[tuple[str, str]]:
    """Megatron-LM asks for one queue where it overlaps by order, of AMD's devices too, and refuses that with FSDP; 8 is
    CUDA's default.
    """
    yield ("CUDA_DEVICE_MAX_CONNECTIONS", "8" if launch.layout.sharding in _FSDP else "1")
    if launch.job.stack.allocator == "expandable":
        yield ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, "torchrun")
    yield from checkpoint_notes(launch, behind=_checkpoint_format(launch) == _BEHIND, keeps=False)
    yield "learning-rate schedule, dropout and data split are placeholders: set those of your recipe"
    if launch.job.optimizer == "muon":
        yield "Megatron-LM's Muon overlaps no exchange of gradients or weights: steps may take longer than predicted"
    if launch.layout.sharding in _FSDP:
        yield f"{launch.layout.sharding} is Megatron-FSDP's {_FSDP[launch.layout.sharding]}"
    if launch.model.arch is not None and launch.model.arch.vocab_size % (128 * launch.layout.tp):
        yield "Megatron-LM pads the vocabulary to a multiple of 128 times the tensor-parallel size"
    if launch.machine.family in OLD_FAMILIES:
        yield "Transformer Engine does not run on these devices: Apex supplies the fused kernels of the local layers"
    if launch.model.arch is not None and launch.model.arch.is_moe and launch.model.arch.family not in SIGMOID_ROUTERS:
        yield "no loss keeps the experts evenly used, as the prediction counts on: give --moe-aux-loss-coeff, say 1e-3"
    yield from _untold(launch.model)


def _untold(model: Model) -> Iterator[str]:
    """What the config behind the sizes leaves out, and a published checkpoint may want."""
    assert model.arch is not None
    family, config = FAMILIES[model.arch.family], model.config or {}
    wanted = {"rms_norm_eps" if family.rms_norm else "layer_norm_epsilon": "--norm-epsilon"}
    if family.rotary:
        wanted |= {"rope_theta": "--rotary-base", "rope_scaling": "--use-rope-scaling"}
    wanted |= ROUTING.get(model.arch.family, {})
    missing = ", ".join(f"{key} ({option})" for key, option in wanted.items() if key not in config)
    if missing:
        yield f"this config of the model leaves out {missing}: to go on from a checkpoint, take them from there"
