"""The layout and the software of a measured row; what it does not state is its framework's documented default."""

from __future__ import annotations

import re
from typing import Any

from planner.catalog.model import Device
from planner.equations.activations import EXPERT_IMBALANCE
from planner.estimate.frameworks import (
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
from planner.validate.rows import MeasuredRow
from planner.validate.rows_machine import low_precision, slices_of

_SHARDING = {"none": 0, "zero0": 0, "zero1": 1, "distopt": 1, "zero2": 2, "zero3": 3, "fsdp": 3}
_FRAMEWORKS = (
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
)
_GRAPHS_SINCE = (26, 6)  # Megatron-Bridge release
_EVEN_ROUTING = ("forced_balanced", "tokendrop")
_IMBALANCE = {"forced_balanced": 1.0, "tokendrop": 1.0, "natural": 1.3}
_ASYNC_TENSOR_HIDDEN = 0.6
_UNCOMPILED_TRAFFIC = 1.3  # norms, activation functions and residuals as kernels of their own
_MOST_TOKENS = 16384  # of a micro-batch whose size is not stated
_REDUCE_BYTES = {"fsdp_mixed": 4.0, "fsdp_pure": 2.0}
# share of a layer that MaxText's policies save, so that it is not computed again
_SAVED_QKV, _SAVED_OUTPUT = 0.15, 0.10


def framework_of(row: MeasuredRow) -> Framework:
    """The stack of a row."""
    text = (row.framework or "").lower()
    name = next((name for pattern, name in _FRAMEWORKS if pattern in text), "")
    if name == "megatron-bridge" and _has_graphs(row):
        name = "megatron-bridge-graphs"
    if not name:
        name = "megatron-2022" if "megatron" in text and (row.year or 2025) <= 2022 else "megatron"
    return FRAMEWORKS[name]


def _has_graphs(row: MeasuredRow) -> bool:
    """CUDA graphs over expert layers: since a release, and with an even load, for a graph's shapes are fixed."""
    if row.is_moe and row.moe_routing not in _EVEN_ROUTING:
        return False
    release = re.search(r"(\d\d)\.(\d\d)", row.software_release or "")
    return release is None or (int(release[1]), int(release[2])) >= _GRAPHS_SINCE


def recompute_of(row: MeasuredRow) -> tuple[int, float]:
    """Level, and the share of a layer's forward pass that a selective policy repeats.

    Unstated counts as none: of the policies that fit, it is the fastest, and published runs fitted.
    """
    text, framework = (row.recompute or "").lower(), framework_of(row)
    if text.startswith("full"):
        return RECOMPUTE_FULL, 1.0
    if not text or text.startswith("none"):
        return RECOMPUTE_NONE, 0.0
    if framework.name == "maxtext":
        saved = _SAVED_QKV * ("q,k,v" in text or "qkv" in text) + _SAVED_OUTPUT * ("out" in text)
        return RECOMPUTE_SELECTIVE, 1.0 - saved
    return RECOMPUTE_SELECTIVE, framework.recompute_share


def layout_of(row: MeasuredRow) -> dict[str, float]:
    """Fields of `Layout`."""
    devices = float(row.n_accel or 8)
    tp, pp, cp = float(row.tp or 1), float(row.pp or 1), float(row.cp or 1)
    dp = float(row.dp or max(devices / (tp * pp * cp), 1.0))
    framework = framework_of(row)
    stated = (stage for name, stage in _SHARDING.items() if (row.sharding or "").startswith(name))
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
        "sharding": float(next(stated, framework.sharding)),
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
    """Fields of `Stack`."""
    framework = framework_of(row)
    stack = stack_defaults(framework, device.family, overheads)
    stack["recompute_share"] = recompute_of(row)[1]
    stack["imbalance"] = _IMBALANCE.get(row.moe_routing or "", EXPERT_IMBALANCE)
    stack["shard_ranks"] = stack_shards(row)
    stack |= _precision(row, device) | _attention(row, framework, device)
    if row.compiled == 0:
        stack["traffic"] *= _UNCOMPILED_TRAFFIC
    if row.sequence_parallel is not None:
        stack["sequence_parallel"] = float(row.sequence_parallel)
    stack["reduce_bytes"] = _REDUCE_BYTES.get(row.states_recipe or "", stack["reduce_bytes"])
    return stack | _overlap(row, stack)


def stack_shards(row: MeasuredRow) -> float:
    """Devices that share one copy of the weights: a slice, where several are joined; 0 for all."""
    slices = slices_of(row)
    return (row.n_accel or 1) / slices if slices > 1 else 0.0


def _precision(row: MeasuredRow, device: Device) -> dict[str, float]:
    low = low_precision(row, device)
    wire = {"gather_bytes": 1.0} if low and _gathers_in_fp8(row) else {}
    cast, rate = RECIPES.get(row.fp8_recipe or "", RECIPES[FP4_RECIPE if low == "fp4" else FP8_RECIPE])
    exchange = LOW_EXCHANGE_BYTES if low else 2.0
    return {"low_precision": float(bool(low)), "cast": cast, "low_rate": rate, "exchange_bytes": exchange} | wire


def _gathers_in_fp8(row: MeasuredRow) -> bool:
    """torchtitan's float8 recipe gathers weights in 8 bits with one scale a tensor, which other recipes cannot."""
    return framework_of(row).name == "fsdp" and row.fp8_recipe in (None, "tensorwise")


def _attention(row: MeasuredRow, framework: Framework, device: Device) -> dict[str, float]:
    eager = row.attention_kernel == "eager" or (framework.attention == "eager" and row.attention_kernel is None)
    kernel = "flash1" if framework.attention == "eager" else framework.attention
    return {"eager": float(eager), "attention_rate": attention_rate(kernel, device.family)}


def _overlap(row: MeasuredRow, stack: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    if row.async_tp:
        found["tensor_hidden"] = _ASYNC_TENSOR_HIDDEN
    if row.comm_overlap == "off":
        found |= dict.fromkeys(("tensor_hidden", "expert_hidden", "gradient_overlap", "gather_overlap"), 0.0)
    if row.comm_overlap == "no_bucketing":
        found["gradient_overlap"] = 0.0
    if row.comm_overlap == "fp8_allgather":
        found["gather_bytes"] = 1.0
    return found
