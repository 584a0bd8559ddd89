"""Megatron-LM: the arguments of `pretrain_gpt.py` for a launch."""

from __future__ import annotations

from collections.abc import Iterator

from planner.export.header import Blank, Target
from planner.export.launch import Model, NotExpressible, TrainingLaunch, TrainingLayout
from planner.export.megatron_model import FAMILIES, Option, model_options
from planner.export.quoting import shell
from planner.export.trainer import Command, run_folder
from planner.export.training import demand_launchable, steps_between_checkpoints, training_notes

TARGET = Target(
    name="Megatron-LM",
    version="commit 000c4ac",
    read="2026-11-21",
    source="NVIDIA/Megatron-LM:megatron/training/arguments.py@000c4ac",
)
SOFTWARE = ("megatron", "megatron-2022", "megatron-bridge", "megatron-bridge-graphs")
BLANKS = (
    Blank(name="MEGATRON_DIR", meaning="folder of the Megatron-LM checkout"),
    Blank(name="DATA_PATH", meaning="prefix of the tokenised data (tools/preprocess_data.py)"),
    Blank(name="TOKENIZER", meaning="tokenizer: a Hugging Face name or folder"),
    Blank(name="CHECKPOINT_DIR", meaning="folder of checkpoints, seen by all nodes"),
    Blank(name="LEARNING_RATE", meaning="peak learning rate, for example 3e-4"),
)
_OLD_FAMILIES = ("kepler", "maxwell", "pascal", "volta", "turing")  # which Transformer Engine does not run on
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
_FSDP = {"zero-2": "optim_grads", "zero-3": "optim_grads_params"}


def megatron_command(launch: TrainingLaunch) -> Command:
    """The command of a launch.

    Raises
    ------
    NotExpressible
        Megatron-LM has no options for it.
    """
    demand_launchable(launch)
    _demand_megatron(launch)
    options = [
        *model_options(launch),
        *_parallel_options(launch),
        *_batch_options(launch),
        *_precision_options(launch),
        *_memory_options(launch),
        *_OPTIMIZERS[launch.job.optimizer],
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


def _demand_megatron(launch: TrainingLaunch) -> None:
    """Refuse what Megatron-LM cannot do, each with its own reason."""
    job, layout = launch.job, launch.layout
    if job.lora is not None:
        raise NotExpressible("Megatron-LM's own script trains no adapters", "use deepspeed with a PEFT script")
    if job.optimizer not in _OPTIMIZERS:
        raise NotExpressible(f"Megatron-LM has no optimizer '{job.optimizer}'", "use deepspeed, or optimizer: adamw")
    if job.stack.cross_entropy == "chunked":
        raise NotExpressible("Megatron-LM has no chunked loss, so logits would take more memory than planned",
                             "plan with stack: {cross_entropy: fused}")  # fmt: skip
    if "optimizer" in (job.offload or ()) and _OPTIMIZERS[job.optimizer][0] != ("--optimizer", "adam"):
        raise NotExpressible("Megatron-LM offloads Adam only", "use deepspeed")
    if job.offload and "activations" in job.offload:
        raise NotExpressible("whole-model offload of activations is no option of Megatron-LM", "use deepspeed")
    if layout.sharding in _FSDP and layout.pp > 1:
        raise NotExpressible(f"{layout.sharding} with a pipeline: Megatron-FSDP was not seen to take both",
                             "plan with sharding: zero-1, or use torchtitan")  # fmt: skip
    if _precision_aware(launch) and layout.sharding == "none" and layout.dp * layout.cp > 1:
        raise NotExpressible("16-bit moments and an optimizer in host memory want the distributed optimizer",
                             "plan with sharding: zero-1")  # fmt: skip
    if job.optimizer == "muon" and layout.sharding != "none":
        raise NotExpressible("Muon is not sharded in Megatron-LM", "plan with sharding: none")
    if layout.vpp > 1 and layout.micro_batches % layout.pp:
        raise NotExpressible(
            f"the interleaved schedule wants micro-batches ({layout.micro_batches}) in multiples of pp ({layout.pp})",
            "solve again with another global_batch",
        )
    if layout.cp > 1 and launch.sequence_length % (2 * layout.cp):
        raise NotExpressible(f"a sequence of {launch.sequence_length} does not divide into {2 * layout.cp} parts",
                             "choose a sequence_length that does")  # fmt: skip


def _parallel_options(launch: TrainingLaunch) -> Iterator[Option]:
    layout = launch.layout
    yield ("--tensor-model-parallel-size", str(layout.tp))
    if layout.tp > 1:
        yield ("--sequence-parallel",)
    yield ("--pipeline-model-parallel-size", str(layout.pp))
    if layout.vpp > 1:
        yield ("--num-virtual-stages-per-pipeline-rank", str(layout.vpp))
    assert launch.model.arch is not None
    yield from _uneven_stages(layout, launch.model.arch.layer_count)
    yield ("--context-parallel-size", str(layout.cp))
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


def _uneven_stages(layout: TrainingLayout, layers: int) -> Iterator[Option]:
    """First and last stage of a pipeline that does not divide the layers; no stage holds more than was planned."""
    if layers % (layout.pp * layout.vpp) == 0:
        return
    fullest = -(-layers // layout.pp)
    for middle in (fullest, fullest - 1):
        rest = layers - max(layout.pp - 2, 0) * middle
        first, last = rest // 2, rest - rest // 2
        if layout.vpp == 1 and 1 <= first <= fullest and 1 <= last <= fullest and (middle or layout.pp == 2):
            yield ("--decoder-first-pipeline-num-layers", str(first))
            if layout.pp > 2:
                yield ("--decoder-last-pipeline-num-layers", str(last))
            return
    raise NotExpressible(
        f"{layers} layers do not divide over {layout.pp} stages of {layout.vpp} parts, nor with other ends",
        "use torchtitan, or plan with another pp",
    )


def _batch_options(launch: TrainingLaunch) -> Iterator[Option]:
    layout = launch.layout
    yield ("--micro-batch-size", str(layout.micro_batch))
    yield ("--global-batch-size", str(layout.global_batch_sequences))
    yield ("--train-iters", str(launch.steps))


def _precision_options(launch: TrainingLaunch) -> Iterator[Option]:
    precision, stack = launch.job.precision, launch.job.stack
    if precision in ("bf16", "fp8"):
        yield ("--bf16",)
    if precision == "fp16":
        yield ("--fp16",)
    if precision == "fp8":
        yield ("--fp8-format", "hybrid")
    if launch.machine.family in _OLD_FAMILIES:
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
    yield ("--log-interval", "10")
    yield ("--log-throughput",)
    yield ("--exit-signal-handler",)


def _checkpoint_format(launch: TrainingLaunch) -> str:
    if launch.job.optimizer == "muon":
        return "torch"
    return "fsdp_dtensor" if launch.layout.sharding in _FSDP else "torch_dist"


def _environment(launch: TrainingLaunch) -> Iterator[tuple[str, str]]:
    """Megatron-LM asks for one queue where it overlaps by order, and refuses that with FSDP; 8 is CUDA's default."""
    if launch.machine.vendor != "amd":
        yield ("CUDA_DEVICE_MAX_CONNECTIONS", "8" if launch.layout.sharding in _FSDP else "1")
    if launch.job.stack.allocator == "expandable":
        yield ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    yield from training_notes(launch, SOFTWARE)
    yield "learning-rate schedule, dropout and data split are placeholders: set those of your recipe"
    if launch.layout.sharding in _FSDP:
        yield f"{launch.layout.sharding} is Megatron-FSDP's {_FSDP[launch.layout.sharding]}"
    if launch.model.arch is not None and launch.model.arch.vocab_size % (128 * launch.layout.tp):
        yield "Megatron-LM pads the vocabulary to a multiple of 128 times the tensor-parallel size"
    if launch.machine.family in _OLD_FAMILIES:
        yield "Transformer Engine does not run on these devices: Apex supplies the fused kernels of the local layers"
    yield from _untold(launch.model)


def _untold(model: Model) -> Iterator[str]:
    """What the config behind the sizes leaves out, and a published checkpoint may want."""
    assert model.arch is not None
    family, config = FAMILIES[model.arch.family], model.config or {}
    wanted = {"rms_norm_eps" if family.rms_norm else "layer_norm_epsilon": "--norm-epsilon"}
    if family.rotary:
        wanted |= {"rope_theta": "--rotary-base", "rope_scaling": "--use-rope-scaling"}
    missing = ", ".join(f"{key} ({option})" for key, option in wanted.items() if key not in config)
    if missing:
        yield f"this config of the model leaves out {missing}: to go on from a checkpoint, take them from there"
