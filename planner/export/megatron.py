"""Megatron-LM: the arguments of `pretrain_gpt.py` for a launch, and `plan export torchrun`, a script with them.

Sizes are from the model's config.json, the rest goes by family. A family that Megatron's GPT model has no options for
(parallel attention, ALiBi, GeGLU, linear attention ...) is refused: a model that is nearly the right one would be
trained with the wrong weights. torchrun starts the script on every node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from planner.architecture.model import Architecture, LayerGroup
from planner.carriers import dataclass
from planner.equations.recipes import state_recipe
from planner.estimate.frameworks import named_framework
from planner.estimate.layout import chunk_layers, equal_chunks
from planner.estimate.resolve import framework_of
from planner.estimate.software import OLD_FAMILIES, uneven_stages
from planner.export.file_text import Blank, Target, shell
from planner.export.launch import ExportFile, Launch, Model, NotExpressible, TrainingLaunch, TrainingLayout
from planner.export.trainer import (
    Command,
    checkpoint_notes,
    demand_launchable,
    expert_tensor_size,
    run_folder,
    saves_behind,
    script,
    steps_between_checkpoints,
    training_notes,
)

Option = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a family fixes in code: classes of transformers 5.23.0, as planner/architecture/families.py names them."""

    rotary: bool = True  # else learned positions
    rms_norm: bool = True  # else LayerNorm
    activation: str = "--swiglu"  # "" = gelu
    biases: bool = False
    qkv_biases: bool = False
    qk_norm: bool = False
    latent: bool = False  # multi-latent attention
    further: tuple[Option, ...] = ()


_LLAMA = Family()
_LATENT = Family(qk_norm=True, latent=True)
FAMILIES = {
    "gpt2": Family(rotary=False, rms_norm=False, activation="", biases=True),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "phi3": _LLAMA,
    "qwen2": Family(qkv_biases=True),
    "qwen3": Family(qk_norm=True),
    "qwen3_moe": Family(qk_norm=True),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "kimi_k2": _LATENT,
    "nemotron": Family(
        rms_norm=False,
        activation="--squared-relu",
        further=(("--apply-layernorm-1p",), ("--rotary-percent", "0.5")),
    ),
}
SIGMOID_ROUTERS = ("deepseek_v3", "kimi_k2")  # which a bias of each expert keeps even, in place of a loss
_GROUPED = {
    "n_group": "--moe-router-num-groups",
    "topk_group": "--moe-router-group-topk",
    "routed_scaling_factor": "--moe-router-topk-scaling-factor",
}
_SOFTMAX_FIRST = {"norm_topk_prob": "--moe-router-pre-softmax where it is false"}
ROUTING = {  # what a config.json says of how tokens find their experts, by family
    "qwen3_moe": _SOFTMAX_FIRST,
    "deepseek_v2": {**_SOFTMAX_FIRST, **_GROUPED},
    **dict.fromkeys(SIGMOID_ROUTERS, _GROUPED),
}


def model_options(launch: TrainingLaunch) -> list[Option]:
    """Options that describe the model, in the order of Megatron's own groups.

    Raises
    ------
    NotExpressible
        Only the size is known, or the family has something that Megatron-LM has no option for.
    """
    model = launch.model
    if model.arch is None or model.config is None or not model.arch.layers:
        told = "its config.json is not readable here" if model.config_path else "only the size of the model is known"
        raise NotExpressible(told, "give the scenario a preset or {config: path/to/config.json}")
    arch, first = model.arch, model.arch.layers[0]
    family = FAMILIES[arch.family]
    positions = max(arch.max_positions, launch.sequence_length)
    options: list[Option] = [
        ("--num-layers", str(arch.layer_count)),
        ("--hidden-size", str(arch.hidden_size)),
        ("--ffn-hidden-size", str(_dense_width(arch))),
        ("--num-attention-heads", str(first.query_heads)),
        *_attention(first, launch.sequence_length),
        ("--seq-length", str(launch.sequence_length)),
        ("--max-position-embeddings", str(positions)),
        ("--vocab-size", str(arch.vocab_size)),
        ("--make-vocab-size-divisible-by", "128"),
        *_shape_of_layers(family, model.config),
    ]
    options += [] if arch.tied_embeddings else [("--untie-embeddings-and-output-weights",)]
    return options + list(_experts(model, arch, launch.layout))


def _dense_width(arch: Architecture) -> int:
    """Width of the dense MLP; of a model of experts alone, that of an expert."""
    return next((layer.mlp_width for layer in arch.layers if layer.mlp == "dense"), arch.layers[0].expert_width)


def _attention(layer: LayerGroup, sequence_length: int) -> Iterator[Option]:
    if layer.attention == "mla":
        yield ("--kv-lora-rank", str(layer.kv_rank))
        if layer.query_rank:
            yield ("--q-lora-rank", str(layer.query_rank))
        yield ("--qk-head-dim", str(layer.head_size - layer.rope_size))
        yield ("--qk-pos-emb-head-dim", str(layer.rope_size))
        yield ("--v-head-dim", str(layer.value_head_size))
        return
    yield ("--kv-channels", str(layer.head_size))
    if layer.kv_heads != layer.query_heads:
        yield ("--group-query-attention",)
        yield ("--num-query-groups", str(layer.kv_heads))
    if 0 < layer.window_tokens < sequence_length:
        yield ("--window-size", f"{layer.window_tokens - 1},0")


def _shape_of_layers(family: Family, config: Mapping[str, Any]) -> Iterator[Option]:
    yield ("--position-embedding-type", "rope" if family.rotary else "learned_absolute")
    base = config.get("rope_theta")
    if family.rotary and isinstance(base, int | float):
        yield ("--rotary-base", str(int(base)))
    yield from _rope_scaling(config.get("rope_scaling"), family.latent)
    yield ("--normalization", "RMSNorm" if family.rms_norm else "LayerNorm")
    epsilon = config.get("rms_norm_eps" if family.rms_norm else "layer_norm_epsilon")
    if isinstance(epsilon, int | float) and not isinstance(epsilon, bool):
        yield ("--norm-epsilon", repr(float(epsilon)))
    if family.activation:
        yield (family.activation,)
    if not family.biases:
        yield ("--disable-bias-linear",)
    if family.qkv_biases:
        yield ("--add-qkv-bias",)
    if family.latent:
        yield ("--multi-latent-attention",)
    if family.qk_norm:
        yield ("--qk-layernorm",)
    yield from family.further


def _rope_scaling(scaling: Any, latent: bool) -> Iterator[Option]:
    """Llama 3's own scaling of positions, YaRN for latent attention; any other is refused."""
    scaling = scaling if isinstance(scaling, Mapping) else {}
    kind = scaling.get("rope_type", scaling.get("type")) or "default"
    if kind == "default":
        if latent:  # whose default is YaRN, and whose fused kernel knows nothing else
            yield ("--rope-type", "rope")
            yield ("--no-rope-fusion",)
    elif kind == "llama3" and not latent:
        yield ("--use-rope-scaling",)
        yield ("--rope-scaling-factor", _number(scaling.get("factor", 8.0)))
    elif kind == "yarn" and latent:
        yield ("--rope-type", "yarn")
        yield ("--rotary-scaling-factor", _number(scaling.get("factor", 40.0)))
        yield ("--mscale", _number(scaling.get("mscale", 1.0)))
        yield ("--mscale-all-dim", _number(scaling.get("mscale_all_dim", 0.0)))
    else:
        raise NotExpressible(f"its positions are scaled by '{kind}', which is not exported")


def _number(value: Any, key: str = "rope_scaling") -> str:
    """A number of a config.json as an argument; anything else is a mistake of that file."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotExpressible(f"{key} of its config.json holds no number where one belongs", "mend that file")
    return repr(float(value))


def _experts(model: Model, arch: Architecture, layout: TrainingLayout) -> Iterator[Option]:
    routed = [layer for layer in arch.layers if layer.experts]
    if not routed:
        return
    layer = routed[0]
    yield ("--num-experts", str(layer.experts))
    yield ("--moe-ffn-hidden-size", str(layer.expert_width))
    yield ("--moe-router-topk", str(layer.experts_per_token))
    yield from _routed_layers(model, arch)
    if layer.shared_expert_width:
        yield ("--moe-shared-expert-intermediate-size", str(layer.shared_expert_width))
    yield from _routing(arch.family, model.config or {})
    yield ("--moe-grouped-gemm",)
    yield ("--moe-token-dispatcher-type", "alltoall")
    if layout.ep > 1:
        yield ("--expert-model-parallel-size", str(layout.ep))
        yield ("--expert-tensor-parallel-size", str(expert_tensor_size(layout)))


def _routing(family: str, config: Mapping[str, Any]) -> Iterator[Option]:
    """How tokens find their experts: a checkpoint was trained with just that, and means nothing with another."""
    if family in SIGMOID_ROUTERS:
        yield ("--moe-router-score-function", "sigmoid")
        yield ("--moe-router-enable-expert-bias",)
    known = {key: config.get(key) for key in ROUTING.get(family, ())}
    if known.get("norm_topk_prob") is False:
        yield ("--moe-router-pre-softmax",)
    groups, chosen, scale = (known.get(key) for key in _GROUPED)
    if isinstance(groups, int) and groups > 1 and isinstance(chosen, int):
        yield (_GROUPED["n_group"], str(int(groups)))
        yield (_GROUPED["topk_group"], str(int(chosen)))
    if scale not in (None, 1):
        yield (_GROUPED["routed_scaling_factor"], _number(scale, "routed_scaling_factor"))


def _routed_layers(model: Model, arch: Architecture) -> Iterator[Option]:
    """Which layers route: all, or all but the first few."""
    dense = sum(layer.count for layer in arch.layers if not layer.experts)
    if not dense:
        return
    assert model.config is not None
    if model.config.get("first_k_dense_replace") != dense:
        raise NotExpressible("dense layers lie between those with experts, which is not exported")
    yield ("--moe-layer-freq", f"([0]*{dense}+[1]*{arch.layer_count - dense})")


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


def files(launch: Launch) -> list[ExportFile]:
    """One script, to be started on each node of a job.

    Raises
    ------
    NotExpressible
        Megatron-LM has no options for the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    return [ExportFile(name=f"{launch.stem}.torchrun.sh", text=script(launch, megatron_command(launch)))]
