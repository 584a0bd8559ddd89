"""The layout and the software of a measured row; what it does not state is its framework's documented default."""

from __future__ import annotations

import re
from typing import Any

from planner.catalog.model import Device
from planner.equations.activations import EXPERT_IMBALANCE
from planner.estimate.frameworks import (
    ATTENTION_RATES,
    FP4_RECIPE,
    FP8_RECIPE,
    FRAMEWORKS,
    LOW_EXCHANGE_BYTES,
    RECIPES,
    Framework,
    attention_rate,
    stack_defaults,
)
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_NONE, RECOMPUTE_SELECTIVE
from planner.estimate.run import adapter_parameters
from planner.estimate.training_analytic import LORA_GATHER_BYTES, NF4_BYTES
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import architecture_of, low_precision, slices_of

# Words of a cell, without spaces and dashes, and what they mean; the first that it holds decides.
_SHARDING = (
    ("gradop", 2), ("fsdp", 3), ("hsdp", 3), ("fullshard", 3), ("hybridshard", 3), ("infinity", 3),
    *((f"{word}{stage}", stage) for word in ("zero", "stage") for stage in range(4)),
    ("distopt", 1), ("distributedopt", 1), ("none", 0), ("noshard", 0), ("ddp", 0), ("replicat", 0),
)  # fmt: skip
_NOT = ("none", "no", "false", "off", "0")
_HOST = ("cpu", "host", "true", "yes")  # something goes there
# A step of these holds answers that are generated, or a model beside the one that is trained
_BEYOND_A_STEP = ("ppo", "grpo", "rlhf", "dpo", "orpo", "kto", "rloo", "reinforce", "distill", "reward")
_MOVED = {"activations": ("activation",), "optimizer": ("optimizer",), "parameters": ("param", "weight")}
_UNFUSED = ("eager", "no_flash", "none", "math", "naive", "unfused")
_NARROW = ("16", "half", "fp8", "fp4", "int8", "float8", "8bit", "8-bit", "4bit", "4-bit", "nf4", "mixed", "amp", "mx")
_KERNELS = {"fa2": "flash2", "flashattention2": "flash2", "fa3": "flash3", "flashattention3": "flash3",
            "fa4": "flash4", "flashattention4": "flash4"}  # fmt: skip
_FRAMEWORKS = (
    ("trainer + deepspeed", "deepspeed"),
    ("trainer", "hf"),
    ("bridge", "megatron-bridge"),
    ("nemo", "megatron-bridge"),
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("deepspeed", "deepspeed"),
    ("foundry", "llm-foundry"),
    ("flash-attention", "flash-attention"),
    ("llm.c", "llm.c"),
    ("titan", "fsdp"),
    ("fsdp", "fsdp"),
    ("maxtext", "maxtext"),
    ("neuron", "neuron"),
    ("torchtune", "torchtune"),
    ("transformers", "hf"),
    ("pax", "jax"),
    ("jax", "jax"),
    ("megatron", "megatron"),
)
_ALL_RECOMPUTED = re.compile(r"(?:(?:gradient|activation)?[ _]?checkpointing|true|yes|on|1|all|enabled|uniform)")
_NOT_RECOMPUTED = re.compile(r"(?:none|no|false|off|0|disabled)\b")
_GRAPHS_SINCE = (26, 6)  # Megatron-Bridge release
_NATURAL_IMBALANCE = 1.3
_EVEN_ROUTING, _NATURAL_ROUTING = (
    ("forced", "balanced", "uniform", "tokendrop"),
    ("natural", "random", "dropless", "real"),
)
_ASYNC_TENSOR_HIDDEN = 0.6
_FUSED_LOGIT_BYTES = 8.0  # fused or chunked cross entropy: no 32-bit copy of the logits
_GRAPHS_HOST = 0.2  # of the host time where CUDA graphs are stated
_UNCOMPILED_TRAFFIC = 1.3  # norms, activation functions and residuals as kernels of their own
_MOST_TOKENS = 16384  # of a micro-batch whose size is not stated
_REDUCE_BYTES = {"fsdp_mixed": 4.0, "fsdp_pure": 2.0}
# share of a layer that MaxText's policies save, so that it is not computed again
_SAVED_QKV, _SAVED_OUTPUT = 0.15, 0.10
_CONTEXT, _ELEMENTWISE = 0.10, 0.05  # the attention core; norms and activation functions
_ADAPTER_RANK = 16  # of an unstated adapter
_BRIDGE_ADAPTERS = 0.2  # share of the linear layers with adapters: NeMo's performance recipes target linear_qkv alone
_DETERMINISTIC = 0.8  # rate of attention whose backward pass adds in a fixed order
# hidden states of a layer that go to the host and back, in widths of the stream: inputs; projections of attention
_OFFLOADED_INPUT, _OFFLOADED_PROJECTIONS = 1.0, 2.5


def framework_of(row: MeasuredRow) -> Framework:
    """The stack of a row."""
    text = (row.framework or "").lower()
    name = next((name for pattern, name in _FRAMEWORKS if pattern in text), "")
    if name == "megatron-bridge" and _has_graphs(row):
        name = "megatron-bridge-graphs"
    if name == "megatron" and (row.year or 2025) <= 2022:
        name = "megatron-2022"
    if name == "maxtext" and "TPU" not in (row.accelerator or "").upper():
        name = "jax"
    return FRAMEWORKS[name or "common"]


def imbalance_of(row: MeasuredRow) -> float:
    """Tokens of the fullest expert rank over the mean, by how a row routes them."""
    text = (row.moe_routing or "").lower()
    if any(word in text for word in _NATURAL_ROUTING):
        return _NATURAL_IMBALANCE
    return 1.0 if any(word in text for word in _EVEN_ROUTING) else EXPERT_IMBALANCE


def _has_graphs(row: MeasuredRow) -> bool:
    """CUDA graphs over expert layers: since a release, and with an even load, for a graph's shapes are fixed."""
    if row.is_moe and imbalance_of(row) != 1.0:
        return False
    release = re.search(r"(\d\d)\.(\d\d)", row.software_release or "")
    return release is None or (int(release[1]), int(release[2])) >= _GRAPHS_SINCE


def recompute_of(row: MeasuredRow) -> tuple[int, float]:
    """Level, and the share of a layer's forward pass that a selective policy repeats.

    Unstated counts as none: of the policies that fit, it is the fastest, and published runs fitted.
    """
    text, framework = (row.recompute or "").lower(), framework_of(row)
    if not text and _torchtune_adapters(row):
        return RECOMPUTE_FULL, 1.0
    if text.startswith("full") or _ALL_RECOMPUTED.fullmatch(text):
        return RECOMPUTE_FULL, 1.0
    if not text or _NOT_RECOMPUTED.match(text):
        return RECOMPUTE_NONE, 0.0
    if framework.name in ("maxtext", "jax"):
        return RECOMPUTE_SELECTIVE, _repeated_by_policy(text)
    return RECOMPUTE_SELECTIVE, framework.recompute_share


def _repeated_by_policy(text: str) -> float:
    """Share of a layer's forward pass that a policy of MaxText repeats; what it keeps or brings back is not.

    `minimal` keeps the outputs of all projections, `minimal_flash` (`minimal_with_context`) that of attention as well:
    norms and activation functions are repeated (src/MaxText/layers/decoders.py, get_remat_policy).
    """
    if "minimal" in text:
        context = "flash" in text or "context" in text
        return _ELEMENTWISE + (0.0 if context else _CONTEXT)
    dots = "save_dot" in text  # of attention: all but those of the feed-forward part
    kept = _SAVED_QKV * (dots or "q,k,v" in text or "qkv" in text) + _SAVED_OUTPUT * (dots or "out" in text)
    return 1.0 - kept - _CONTEXT * ("context" in text)


def _plain(text: str | None) -> str:
    return re.sub(r"[\s_-]", "", (text or "").lower())


def sharding_of(row: MeasuredRow) -> int | None:
    """The stage of ZeRO that a row states; None where it states none that is known."""
    text = _plain(row.sharding)
    return next((stage for word, stage in _SHARDING if word in text), None)


def unread_cell(row: MeasuredRow) -> str:
    """Which cell says something that no prediction knows, and would take for something else; "" where none does."""
    if row.sharding and sharding_of(row) is None:
        return f"sharding '{row.sharding}' is not known: none, distopt, zero1 to zero3, fsdp"
    offload, task, precision = _plain(row.offload), _plain(row.task), (row.precision or "").lower()
    if offload not in ("", *_NOT) and not offloaded_of(row):
        return f"offload '{row.offload}' is not known: none, activations, optimizer, parameters"
    if any(word in task for word in _BEYOND_A_STEP):
        return f"a step of task '{row.task}' holds more than passes and an update: what it generates is not known"
    narrow = row.precision_class or precision
    if narrow and not any(word in narrow for word in _NARROW):
        return f"products in precision '{row.precision or narrow}' are not predicted: bf16, fp16, fp8, int8, fp4"
    return ""


def sizes_of(row: MeasuredRow) -> dict[str, float]:
    """What `TrainingFamily.validity` holds the range of, as far as a row states it."""
    sizes = {
        "devices": float(row.n_accel or 1),
        "parameters": (row.n_params_b or 0.0) * 1e9,
        "sequence_length": float(row.seq_len or 0),
        **{name: float(getattr(row, name) or 1) for name in ("pp", "cp", "ep")},
    }
    return {name: size for name, size in sizes.items() if size}


def layout_of(row: MeasuredRow) -> dict[str, float]:
    """Fields of `Layout`."""
    devices = float(row.n_accel or 8)
    tp, pp, cp = float(row.tp or 1), float(row.pp or 1), float(row.cp or 1)
    dp = float(row.dp or max(devices / (tp * pp * cp), 1.0))
    framework = framework_of(row)
    stated = sharding_of(row)
    micro_batch = _micro_batch(row, framework, dp)
    return {
        "devices": devices,
        "dp": dp,
        "tp": tp,
        "pp": pp,
        "vpp": float(row.vpp or 1),
        "cp": cp,
        "ep": float(row.ep or 1),
        "micro_batch": micro_batch,
        "sharding": float(framework.sharding if stated is None else stated),
        "recompute": float(recompute_of(row)[0]),
        "global_batch": float(row.global_batch or dp * micro_batch),
    }


def _micro_batch(row: MeasuredRow, framework: Framework, dp: float) -> float:
    """Sequences of a pass: as stated, else the largest that a device usually holds."""
    if not framework.accumulates and row.global_batch:
        return row.global_batch / dp
    if row.micro_batch:
        return float(row.micro_batch)
    share = int((row.global_batch or dp) / dp)
    return float(max(1, min(16, share, _MOST_TOKENS // (row.seq_len or 2048))))


def stack_of(row: MeasuredRow, device: Device, overheads: dict[str, float] | None = None) -> dict[str, Any]:
    """Fields of `Stack`.

    Parameters
    ----------
    row
        As it was run; nothing measured is read.
    device
        Of the row: formats and attention kernels go by it.
    overheads
        Fitted factors of stacks, as `stack_defaults` takes them; None = all 1.
    """
    framework = framework_of(row)
    stack = stack_defaults(framework, device.family, overheads)
    stack["recompute_share"] = recompute_of(row)[1]
    stack["imbalance"] = imbalance_of(row)
    stack["shard_ranks"] = stack_shards(row)
    stack |= _precision(row, device) | _attention(row, framework, device)
    if row.compiled == 0 and not fused_kernels(row):
        stack["traffic"] *= _UNCOMPILED_TRAFFIC
    if row.loss == "fused" or chunked_loss(row):
        stack["logit_bytes"] = min(stack["logit_bytes"], _FUSED_LOGIT_BYTES)
    if row.cuda_graphs:
        stack |= {"host_share": stack["host_share"] * _GRAPHS_HOST, "expert_host": stack["expert_host"] * _GRAPHS_HOST}
    if row.sequence_parallel is not None:
        stack["sequence_parallel"] = float(row.sequence_parallel)
    stack["reduce_bytes"] = _REDUCE_BYTES.get(row.states_recipe or "", stack["reduce_bytes"])
    stack |= _offload(row) | _trained(row)
    return stack | _overlap(row, stack)


def _offload(row: MeasuredRow) -> dict[str, float]:
    """What goes to the host and back, by the words of the columns `offload`, `recompute` and `sharding`."""
    recompute, said = (row.recompute or "").lower(), offloaded_of(row)
    states = 0.0
    if "activations" in said or "offload" in recompute:
        projections = "q,k,v" in recompute or "qkv" in recompute
        states = _OFFLOADED_INPUT + _OFFLOADED_PROJECTIONS * projections
    return {
        "optimizer_offload": float("optimizer" in said),
        "weight_offload": float("parameters" in said),
        "activation_offload": states,
    }


def offloaded_of(row: MeasuredRow) -> frozenset[str]:
    """What of activations, optimizer and parameters a row keeps in the host's memory, by `offload` and `sharding`.

    A host that is named without what goes there has the optimizer's states: ZeRO-Offload's own default.
    """
    text, sharding = _plain(row.offload), _plain(row.sharding)
    found = {name for name, words in _MOVED.items() if any(word in text for word in words)}
    if "offload" in sharding or "infinity" in sharding:
        found |= {name for name, words in _MOVED.items() if any(word in sharding for word in words)} or {"optimizer"}
    return frozenset(found or ({"optimizer"} if any(word in text for word in _HOST) else ()))


def _trained(row: MeasuredRow) -> dict[str, float]:
    """Adapters on frozen weights: no weight gradients of the base, and only adapters are reduced and updated."""
    if not row.adapters:
        return {}
    arch = architecture_of(row)
    four_bits = row.adapters == "qlora"
    return {
        "trained": adapter_parameters(arch, _ADAPTER_RANK) / arch.parameters,
        "weight_gradients": 0.0,
        "adapters": _BRIDGE_ADAPTERS if "megatron" in framework_of(row).name else 1.0,
        "adapter_rank": float(_ADAPTER_RANK),
        "adapter_fused": float(fused_kernels(row) or row.compiled == 1 or "megatron" in framework_of(row).name),
        "dequantise_bytes": NF4_BYTES if four_bits else 0.0,
        "gather_bytes": LORA_GATHER_BYTES["nf4" if four_bits else "bf16"],
    }


def fused_kernels(row: MeasuredRow) -> bool:
    """Whether an eager trainer runs fused norms, adapters and loss (fms-acceleration's "foak", Liger)."""
    if no_fused_kernels(row):
        return False
    return "foak" in (row.software_release or "").lower() or row.loss == "fused"


def no_fused_kernels(row: MeasuredRow) -> bool:
    """Models of which fms-acceleration's kernels replace no norm and no adapter, at most the loss.

    plugins/fused-ops-and-kernels, models/gpt_bigcode.py; its rows read the same memory with the kernels and without.
    """
    return "gpt_bigcode" in (row.model or "").lower()


def chunked_loss(row: MeasuredRow) -> bool:
    """Whether the loss is computed chunk by chunk: as stated, else torchtune's default for adapters."""
    return row.loss == "chunked" or (row.loss_kind is None and _torchtune_adapters(row))


def _torchtune_adapters(row: MeasuredRow) -> bool:
    """Recipes for adapters on one device checkpoint activations and chunk the loss, unless overridden.

    pytorch/torchtune, recipes/configs/llama3_1/8B_lora_single_device.yaml and 8B_qlora_single_device.yaml.
    """
    return bool(row.adapters) and framework_of(row).name == "torchtune" and row.n_accel == 1


def stack_shards(row: MeasuredRow) -> float:
    """Devices that share one copy of the weights: a slice, where several are joined; 0 for all."""
    slices = slices_of(row)
    return (row.n_accel or 1) / slices if slices > 1 else 0.0


def _precision(row: MeasuredRow, device: Device) -> dict[str, float]:
    low = low_precision(row, device)
    wire = {"gather_bytes": 1.0} if low and _gathers_in_fp8(row) else {}
    cast, rate = RECIPES.get(row.fp8_recipe or "", RECIPES[FP4_RECIPE if low == "fp4" else FP8_RECIPE])
    exchange = LOW_EXCHANGE_BYTES if low else 2.0
    if row.kind == "hybrid":  # state-space layers and the last ones stay in 16 bits: which, the table does not say
        return {"low_precision": 0.0, "exchange_bytes": exchange}
    return {"low_precision": float(bool(low)), "cast": cast, "low_rate": rate, "exchange_bytes": exchange} | wire


def _gathers_in_fp8(row: MeasuredRow) -> bool:
    """torchtitan's float8 recipe gathers weights in 8 bits with one scale a tensor, which other recipes cannot."""
    return framework_of(row).name == "fsdp" and row.fp8_recipe in (None, "tensorwise")


def _attention(row: MeasuredRow, framework: Framework, device: Device) -> dict[str, float]:
    named = (row.attention_kernel or "").lower()
    named = _KERNELS.get(_plain(named), named)
    eager = is_unfused(named) or (framework.attention == "eager" and not named)
    kernel = "flash1" if framework.attention == "eager" else framework.attention
    if named in ATTENTION_RATES:
        kernel = named
    rate = attention_rate(kernel, device.family)
    return {"eager": float(eager), "attention_rate": rate * (_DETERMINISTIC if row.deterministic else 1.0)}


def is_unfused(kernel: str) -> bool:
    """Whether a cell of `attention_kernel` names one that stores the scores."""
    return kernel.lower() in _UNFUSED


def _overlap(row: MeasuredRow, stack: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    if row.async_tp:
        found["tensor_hidden"] = _ASYNC_TENSOR_HIDDEN
    if (row.comm_overlap or "").startswith("off"):
        found |= dict.fromkeys(("tensor_hidden", "expert_hidden", "gradient_overlap", "gather_overlap"), 0.0)
    if "cp_alltoall" in (row.comm_overlap or ""):
        found["context_all_to_all"] = 1.0
    if row.comm_overlap == "no_bucketing":
        found["gradient_overlap"] = 0.0
    if row.comm_overlap == "fp8_allgather":
        found["gather_bytes"] = 1.0
    return found
