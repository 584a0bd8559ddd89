"""Rows of measurements as inputs of the estimators, and what they predict for them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from planner.architecture.build import build
from planner.architecture.config import CONFIG_LIMIT_BYTES, Config
from planner.architecture.load import PRESETS, coarse_model, list_presets
from planner.architecture.model import Architecture
from planner.catalog.model import Catalog, Device
from planner.estimate.constants import StepConstants
from planner.estimate.frameworks import FRAMEWORKS, Framework, attention_rate
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, Layout
from planner.estimate.machine import Machine
from planner.estimate.step import Stack, step_time
from planner.estimate.work import Work
from planner.files import read_text
from planner.validate.rows import MeasuredRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the model says about one row; None where it says nothing."""

    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None
    peak_memory_bytes: float | None = None
    skipped: str | None = None
    family: str = ""
    terms: dict[str, float]


# ---------------------------------------------------------------- the model


@lru_cache(maxsize=1)
def _preset_configs() -> tuple[tuple[str, dict[str, Any]], ...]:
    texts = [(name, read_text(PRESETS / f"{name}.json", limit_bytes=CONFIG_LIMIT_BYTES)) for name in list_presets()]
    return tuple((name, json.loads(text)["config"]) for name, text in texts)


def architecture_of(row: MeasuredRow) -> Architecture:
    """The shape of a row's model: that of a preset with the same layers, else of its cells, else its size alone."""
    if not (row.hidden and row.layers and row.heads):
        return coarse_model(max((row.n_active_params_b or row.n_params_b or 0.0) * 1e9, 1.0))
    return _architecture(
        row.hidden, row.layers, row.heads, row.kv_heads or row.heads, row.ffn_hidden or 4 * row.hidden,
        1 if row.gated_mlp else 0, row.vocab or 50257, row.n_experts or 0, row.top_k or 0, row.seq_len or 2048,
        row.n_params_b or 0.0,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _architecture(
    hidden: int, layers: int, heads: int, kv: int, ffn: int, gated: int, vocab: int, experts: int, top_k: int, seq: int,
    billions: float,
) -> Architecture:  # fmt: skip
    config = _like_preset(hidden, layers, heads, ffn, experts, vocab)
    if config is None:
        config = {
            "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": ffn, "vocab_size": vocab,
            "max_position_embeddings": seq, "tie_word_embeddings": not gated,
        }  # fmt: skip
        if hidden % heads:
            config["head_dim"] = max(round(hidden / heads), 1)
        if experts:
            config |= {"model_type": "mixtral", "num_local_experts": experts, "num_experts_per_tok": top_k}
        elif gated:
            config |= {"model_type": "llama"}
        elif kv != heads:
            config |= {"model_type": "nemotron", "head_dim": hidden // heads}
        else:
            config |= {"model_type": "gpt2"}
    text = json.dumps(config)
    return build(Config(config, "row", text), name="row", source="row")


def _like_preset(hidden: int, layers: int, heads: int, ffn: int, experts: int, vocab: int) -> dict[str, Any] | None:
    for _, config in _preset_configs():
        config = config.get("text_config", config)
        width = config.get("moe_intermediate_size") or config.get("intermediate_size")
        found = config.get("n_routed_experts") or config.get("num_experts") or config.get("num_local_experts") or 0
        if bool(found) != bool(experts) or not experts:
            continue
        if (config.get("hidden_size"), config.get("num_attention_heads"), width) == (hidden, heads, ffn):
            key = next(k for k in ("n_routed_experts", "num_experts", "num_local_experts") if config.get(k))
            own = dict(config)
            own |= {"num_hidden_layers": layers, key: experts, "vocab_size": vocab}
            own.pop("layer_types", None)
            return own
    return None


# ---------------------------------------------------------------- the machine

_NETWORK = {  # bytes/s of one device's share, one way: what the vendor's reference system has
    "volta": 12.5e9 / 2, "ampere": 25e9, "hopper": 50e9, "blackwell": 50e9,
    "tpu-v4": 6.25e9, "tpu-v5e": 3.125e9, "tpu-v5p": 6.25e9, "tpu-v6e": 12.5e9,
}  # fmt: skip
_MULTIPROCESSORS = {"volta": 80, "ampere": 108, "hopper": 132, "blackwell": 148}
_DEVICES = (
    (r"GB200", "gb200-nvl72"), (r"GB300", "gb300-nvl72"), (r"B200", "b200-sxm"), (r"B300", "b300-sxm"),
    (r"H200", "h200-sxm"), (r"H100.*PCIe", "h100-pcie-80gb"), (r"H100", "h100-sxm-80gb"), (r"H800", "h100-sxm-80gb"),
    (r"A100.*40GB", "a100-sxm-40gb"), (r"A100", "a100-sxm-80gb"), (r"V100.*16GB", "v100-sxm2-16gb"),
    (r"V100", "v100-sxm3-32gb"), (r"TPU-?v4", "tpu-v4"), (r"TPU-?v5e", "tpu-v5e"), (r"TPU-?v5p", "tpu-v5p"),
    (r"TPU-?v6e", "tpu-v6e"),
)  # fmt: skip


def device_of(row: MeasuredRow, catalog: Catalog) -> Device | None:
    for pattern, name in _DEVICES:
        if re.search(pattern, row.accelerator or ""):
            return catalog.devices[name]
    return None


def network_of(row: MeasuredRow, device: Device) -> float:
    """Network share of one device  [B/s]."""
    text = row.interconnect or ""
    per_node = row.accel_per_node or 8
    if m := re.search(r"(\d+)\s*(?:Gbps|Gb/s)(?: RDMA)? per GPU", text):
        return float(m[1]) * 1e9 / 8
    if m := re.search(r"(\d+)\s*(?:Gbps/node|Gb/s per node)", text):
        return float(m[1]) * 1e9 / 8 / per_node
    if m := re.search(r"(\d+)x Omni-Path per node", text):
        return float(m[1]) * 12.5e9 / per_node
    return _NETWORK.get(device.family, 25e9)


def _slices(row: MeasuredRow) -> int:
    m = re.search(r"(\d+) slices?\b|(\d+) slice\(s\)", row.interconnect or "")
    return int(m[1] or m[2]) if m else 1


def machine_of_row(row: MeasuredRow, device: Device) -> dict[str, float]:
    n = row.n_accel or 8
    tpu = device.kind == "tpu"
    low = row.precision_class in ("fp8", "fp4") and not tpu
    peak = device.peak_flop_per_s.get("bf16") or device.peak_flop_per_s["fp16"]
    linear = device.peak_flop_per_s.get(row.precision_class or "", peak) if low else peak
    bandwidth = device.memory_bandwidth_bytes_per_s or 0.0
    power = 1.0
    if "HBM2e" in (row.accelerator or ""):
        bandwidth, power = 2.4e12, (500.0 / 700.0)
    if "power-limited" in (row.accelerator or ""):
        power = 750.0 / 1000.0
    clock = power ** (1.0 / 2.0)
    domain = n / _slices(row) if tpu else (device.scale_up.max_devices if device.scale_up else 1)
    node = domain if tpu else (row.accel_per_node or 8)
    if not tpu and domain < 16:
        domain = node
    return dict(
        peak_flop_per_s=peak * clock, mfu=1.0, linear_flop_per_s=linear * clock,
        multiprocessors=float(_MULTIPROCESSORS.get(device.family, 0)),
        memory_bytes=float(device.memory_bytes), memory_bandwidth_bytes_per_s=bandwidth,
        pair_bytes_per_s=device.scale_up.one_way_pair_bytes_per_s if device.scale_up else 0.0,
        all_bytes_per_s=device.scale_up.one_way_bytes_per_s if device.scale_up else 0.0,
        scale_up_devices=float(domain), node_devices=float(node),
        host_bytes_per_s=device.host_link_bytes_per_s or 25e9, inter_node_bytes_per_s=network_of(row, device),
    )  # fmt: skip


# ---------------------------------------------------------------- the layout and the software

_SHARDING = {"none": 0, "zero0": 0, "zero1": 1, "distopt": 1, "zero2": 2, "zero3": 3, "fsdp": 3}


def framework_of(row: MeasuredRow) -> Framework:
    text = (row.framework or "").lower()
    for pattern, name in (
        ("bridge", "megatron-bridge"), ("megatron-deepspeed", "megatron-deepspeed"), ("foundry", "llm-foundry"),
        ("flash-attention", "flash-attention"), ("llm.c", "llm.c"), ("titan", "fsdp"), ("fsdp", "fsdp"),
        ("maxtext", "maxtext"), ("neuron", "neuron"),
    ):  # fmt: skip
        if pattern in text:
            return FRAMEWORKS[name]
    if "megatron" in text:
        return FRAMEWORKS["megatron-2021" if (row.year or 2025) <= 2022 else "megatron"]
    return FRAMEWORKS["megatron"]


def recompute_of(row: MeasuredRow) -> tuple[int, float]:
    """Level, and the share of a layer's forward pass that is computed again."""
    text = (row.recompute or "").lower()
    fw = framework_of(row)
    if text.startswith("full"):
        return RECOMPUTE_FULL, 1.0
    if text.startswith("custom") or text.startswith("offload"):
        return RECOMPUTE_SELECTIVE, 0.5
    if text.startswith("selective"):
        return RECOMPUTE_SELECTIVE, fw.selective_share
    return RECOMPUTE_NONE, 0.0


def layout_of(row: MeasuredRow) -> dict[str, float]:
    n = float(row.n_accel or 8)
    tp, pp, cp = float(row.tp or 1), float(row.pp or 1), float(row.cp or 1)
    dp = float(row.dp or max(n / (tp * pp * cp), 1))
    fw = framework_of(row)
    stage = next((v for k, v in _SHARDING.items() if (row.sharding or "").startswith(k)), fw.sharding)
    mb, gb = row.micro_batch, row.global_batch
    if mb is None:
        mb = max(1, min(16, int((gb or dp) / dp), int(16384 / (row.seq_len or 2048))))
    if gb is None:
        gb = int(dp * mb)
    return dict(
        devices=n, dp=dp, tp=tp, pp=pp, vpp=float(row.vpp or 1), cp=cp, ep=float(row.ep or 1), micro_batch=float(mb),
        sharding=float(stage), recompute=float(recompute_of(row)[0]), global_batch=float(gb),
    )  # fmt: skip


_RECIPES = {"tensorwise": (1.0, 1.0), "mxfp8": (1.6, 0.97), "rowwise": (1.6, 0.6), "blockwise128": (1.5, 0.95), "blockwise32": (1.6, 0.95), "nvfp4": (2.0, 1.0)}


def _expert_host(row: MeasuredRow) -> float:
    m = re.search(r"(\d\d)\.(\d\d)", row.software_release or "")
    return 0.2 if m and (int(m[1]), int(m[2])) >= (26, 6) else 1.0


def stack_of(row: MeasuredRow, device: Device) -> dict[str, float]:
    fw = framework_of(row)
    kernel = fw.attention
    eager = 1.0 if (row.attention_kernel == "eager" or (kernel == "eager" and row.attention_kernel is None)) else 0.0
    if row.attention_kernel == "flash" and kernel == "eager":
        kernel = "flash1"
    low = row.precision_class in ("fp8", "fp4") and device.kind != "tpu"
    sp = fw.sequence_parallel if row.sequence_parallel is None else float(row.sequence_parallel)
    hidden = fw.tensor_hidden
    if row.async_tp:
        hidden = 0.6
    if row.comm_overlap == "off":
        hidden = 0.0
    overlap = 0.0 if row.comm_overlap in ("off", "no_bucketing") else fw.gradient_overlap
    traffic = fw.traffic * (1.3 if row.compiled == 0 else 1.0)
    return dict(
        value_bytes=2.0, low_precision=float(low), eager=eager, attention_rate=attention_rate(kernel, device.family),
        traffic=traffic, sequence_parallel=sp, tensor_hidden=hidden, expert_hidden=fw.expert_hidden,
        gradient_overlap=overlap, gather_overlap=0.0 if row.comm_overlap == "off" else fw.gather_overlap,
        gather_bytes=1.0 if row.comm_overlap == "fp8_allgather" else 2.0,
        reduce_bytes={"fsdp_mixed": 4.0, "fsdp_pure": 2.0}.get(row.states_recipe or "", fw.reduce_bytes),
        host_share=fw.host_share, recompute_share=recompute_of(row)[1],
        imbalance={"forced_balanced": 1.0, "tokendrop": 1.0, "natural": 1.3}.get(row.moe_routing or "", 1.1),
        hide_transfers=fw.hide_transfers, exchange_bytes=1.5 if low else 2.0,
        logit_bytes=fw.logit_bytes, expert_host=_expert_host(row), cast=_RECIPES.get(row.fp8_recipe or '', (1.0, 1.0))[0], low_rate=_RECIPES.get(row.fp8_recipe or '', (1.0, 1.0))[1],
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows side by side."""

    work: Work
    layout: Layout
    machine: Machine
    stack: Stack
    family: tuple[str, ...]

    def predict(self, constants: StepConstants) -> Any:
        """Terms of one step of every row."""
        own = Machine(
            **{
                f.name: getattr(self.machine, f.name)
                for f in fields(Machine)
                if f.name not in ("link_efficiency", "network_efficiency")
            },
            link_efficiency=constants.link,
            network_efficiency=constants.network,
        )
        with np.errstate(all="ignore"):
            return step_time(self.work, self.layout, own, self.stack, constants)


def batch_of(rows: Sequence[MeasuredRow], catalog: Catalog) -> Batch:
    """Rows whose model has layers, as arrays."""
    devices = [device_of(row, catalog) for row in rows]

    def columns(cls: Any, dicts: Any) -> Any:
        return cls(**{k: np.array([d[k] for d in dicts], dtype=float) for k in dicts[0]})

    return Batch(
        work=Work.stack([Work.of(architecture_of(row), float(row.seq_len or 2048)) for row in rows]),
        layout=columns(Layout, [layout_of(row) for row in rows]),
        machine=columns(Machine, [machine_of_row(row, d) for row, d in zip(rows, devices)]),
        stack=columns(Stack, [stack_of(row, d) for row, d in zip(rows, devices)]),
        family=tuple(d.family for d in devices),
    )
