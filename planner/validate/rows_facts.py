"""The machine and the model of a measured row, and the FLOPs of its step as publishers count them.

A machine is the catalog's device, with the network that the row or its generation has. A model is that of a preset of
the same shape, else of the row's cells, else its size alone. Counts differ in which operations they have, and in how
much of attention.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from planner.architecture.config import CONFIG_LIMIT_BYTES, Config
from planner.architecture.from_config import build
from planner.architecture.load import PRESETS, coarse_model, list_presets
from planner.architecture.model import Architecture, attention_forward_flop_per_token
from planner.catalog.model import Catalog, Device
from planner.equations.flops import hardware_flop_per_token, model_flop_per_token
from planner.estimate.device_constants import CLOCK_EXPONENT
from planner.files import read_text
from planner.validate.rows import MeasuredRow

# One way, per device: what the vendor's reference system of the generation has (DGX-1 4 x 100 Gbit/s, DGX A100
# 8 x 200, DGX H100 and later 8 x 400; TPU: data-centre network per chip, JAX "How to Scale Your Model").
REFERENCE_NETWORK_BYTES_PER_S = {
    "volta": 6.25e9,
    "ampere": 25e9,
    "hopper": 50e9,
    "blackwell": 50e9,
    "tpu-v4": 6.25e9,
    "tpu-v5e": 3.125e9,
    "tpu-v5p": 6.25e9,
    "tpu-v6e": 12.5e9,
}
_OTHER_NETWORK_BYTES_PER_S = 25e9
_OMNI_PATH_BYTES_PER_S = 12.5e9
# Networks that rows name without a rate, of a node: GCP a3-highgpu-8g, 4 x 200 Gbit/s for devices; AWS trn1n.32xlarge,
# 1,600 Gbit/s (hardware/shapes)
_NAMED_NETWORKS = ((r"TCPX", 100e9), (r"trn1n", 200e9))

# Names as publishers write them; the catalog's aliases come first.
_DEVICES = (
    (r"GB300", "gb300-nvl72"),
    (r"GB200", "gb200-nvl72"),
    (r"GH200.*144", "gh200-144gb"),
    (r"GH200", "gh200-96gb"),
    (r"B300", "b300-sxm"),
    (r"B200", "b200-sxm"),
    (r"H200.*NVL", "h200-nvl"),
    (r"H200", "h200-sxm"),
    (r"H20[- ]?(3e|141)|H20.*141", "h20-3e-141gb"),
    (r"H20(?![0-9])", "h20-sxm-96gb"),
    (r"GB10(?!\d)|DGX.?Spark", "dgx-spark-gb10"),
    (r"H100.*PCIe", "h100-pcie-80gb"),
    (r"H100.*NVL", "h100-nvl-94gb"),
    (r"H100", "h100-sxm-80gb"),
    (r"H800.*PCIe", "h800-pcie-80gb"),
    (r"H800", "h800-sxm-80gb"),
    (r"A100.*PCIe.*40", "a100-pcie-40gb"),
    (r"A100.*PCIe", "a100-pcie-80gb"),
    (r"A100.*40", "a100-sxm-40gb"),
    (r"A100", "a100-sxm-80gb"),
    (r"A800.*PCIe", "a800-pcie-80gb"),
    (r"A800", "a800-sxm-80gb"),
    (r"V100S", "v100s-pcie-32gb"),
    (r"V100.*16", "v100-sxm2-16gb"),
    (r"V100", "v100-sxm3-32gb"),
    (r"B60.*Dual", "arc-pro-b60-dual"),
    (r"910[ -]?B", "ascend-910b-64gb"),
    (r"TPU-?v4", "tpu-v4"),
    (r"TPU-?v5e|^v5e-\d", "tpu-v5e"),
    (r"TPU-?v5p|^v5p-\d", "tpu-v5p"),
    (r"TPU-?v6e|^v6e-\d|Trillium", "tpu-v6e"),
    (r"TPU-?v?7|Ironwood", "tpu-v7x"),
)
# Parts that are sold under the name of a device but are not it: memory bandwidth and power, as their publishers say.
_VARIANTS = (
    (r"H100.*HBM2e", {"memory_bandwidth_bytes_per_s": 2.4e12, "power_share": 500.0 / 700.0}),
    (r"B200.*power", {"power_share": 750.0 / 1000.0}),
)
_SHORTEST_ALIAS = 4  # letters: 'T4' is inside too many names


def device_of(row: MeasuredRow, catalog: Catalog) -> Device | None:
    """The catalog's device of a row; None when no name fits."""
    name = row.accelerator or ""
    if found := catalog.aliases.get(name.lower()):
        return catalog.devices[found]
    for pattern, device in _DEVICES:
        if re.search(pattern, name, re.IGNORECASE) and device in catalog.devices:
            return catalog.devices[device]
    plain = _plain(re.sub(r"^(?=[2345]0[5-9]0)", "rtx", name.strip()))  # a GeForce card by its number alone
    inside = [(len(_plain(alias)), device) for alias, device in catalog.aliases.items() if _plain(alias) in plain]
    longest = max((pair for pair in inside if pair[0] >= _SHORTEST_ALIAS), default=None)
    return catalog.devices[longest[1]] if longest else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def slices_of(row: MeasuredRow) -> int:
    """TPU slices that the data-centre network joins; 1 when none are named."""
    found = re.search(r"(\d+)\s*slice", row.interconnect or "")
    return int(found[1]) if found else 1


def network_bytes_per_s(row: MeasuredRow, device: Device) -> float:
    """One device's share of the network between nodes  [B/s]."""
    text, per_node = row.interconnect or "", row.accel_per_node or 8
    if found := re.search(r"(\d+)\s*Gb(?:ps|/s|it/s)?[^,;]*per (?:GPU|device|chip)", text):
        return float(found[1]) * 1e9 / 8
    if found := re.search(r"(\d+)\s*Gb(?:ps|/s|it/s)?\s*(?:/|per )\s*node", text):
        return float(found[1]) * 1e9 / 8 / per_node
    if found := re.search(r"(\d+)x Omni-Path per node", text):
        return float(found[1]) * _OMNI_PATH_BYTES_PER_S / per_node
    for pattern, of_node in _NAMED_NETWORKS:
        if re.search(pattern, text):
            return of_node / per_node
    reference = REFERENCE_NETWORK_BYTES_PER_S.get(device.family, _OTHER_NETWORK_BYTES_PER_S)
    if found := re.search(r"(\d+)\s*x\s*(?:[A-Za-z]+\s*)?(\d+)\s*G", text):  # so many cards of a node
        return float(found[1]) * float(found[2]) * 1e9 / 8 / per_node
    if found := re.search(r"(\d+)\s*Gb|(?:\b(?:IB|InfiniBand|RoCE|EFA)\b\D*)(\d{2,4})\b", text):
        rate = float(found[1] or found[2]) * 1e9 / 8
        # a fabric's rate is that of a port, one for each device where its generation has as many; Ethernet is a node's
        return min(rate, reference) if re.search(r"\b(?:IB|InfiniBand|RoCE|NDR|HDR|EDR)\b", text) else rate / per_node
    return reference


def machine_of_row(row: MeasuredRow, device: Device) -> dict[str, float]:
    """Fields of `Machine`  [FLOP/s, B/s, B, count]."""
    variant = next((own for pattern, own in _VARIANTS if re.search(pattern, row.accelerator or "")), {})
    clock = variant.get("power_share", 1.0) ** CLOCK_EXPONENT
    peak = device.peak_flop_per_s.get("bf16") or device.peak_flop_per_s.get("fp16") or 0.0
    domain, node = _domains(row, device)
    link = device.scale_up
    bandwidth = variant.get("memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s or 0.0)
    return {
        "peak_flop_per_s": peak * clock,
        "linear_flop_per_s": device.peak_flop_per_s.get(low_precision(row, device), peak) * clock,
        "mfu": 1.0,
        "multiprocessors": float(device.multiprocessors or 0),
        "memory_bytes": float(device.memory_bytes),
        "memory_bandwidth_bytes_per_s": bandwidth,
        "pair_bytes_per_s": link.one_way_pair_bytes_per_s if link else 0.0,
        "all_bytes_per_s": link.one_way_bytes_per_s if link else 0.0,
        "scale_up_devices": domain,
        "node_devices": node,
        "host_bytes_per_s": device.host_link_bytes_per_s or _OTHER_NETWORK_BYTES_PER_S,
        "inter_node_bytes_per_s": network_bytes_per_s(row, device),
    }


def low_precision(row: MeasuredRow, device: Device) -> str:
    """fp8, fp4 or int8 where the linear products run in it on hardware that is faster in it; else ''.

    A device whose peak is no higher than in 16 bits (TPU v6e in fp8) emulates the format.
    """
    text = (row.precision or "").lower()
    named = next((name for name in ("fp8", "fp4", "int8") if name in text), "")
    name = "int8" if named == "int8" else row.precision_class or named
    if name not in ("fp8", "fp4", "int8"):
        return ""
    wide = device.peak_flop_per_s.get("bf16") or device.peak_flop_per_s.get("fp16") or 0.0
    return name if device.peak_flop_per_s.get(name, 0.0) > wide else ""


def _domains(row: MeasuredRow, device: Device) -> tuple[float, float]:
    """Devices of the fast domain, and of a node."""
    devices, per_node = float(row.n_accel or 8), float(row.accel_per_node or 8)
    if device.kind == "tpu":
        return devices / slices_of(row), devices / slices_of(row)
    most = float(device.scale_up.max_devices) if device.scale_up else 1.0
    return (most if most > per_node and most >= 16 and "nvl" in device.id else per_node), per_node


_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")


_HEAD_SIZE = 128
_WIDTH_PER_LAYER = 128  # of dense models from 1e9 to 1e12 parameters, where only the size is known
_NAMED_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*[bB]\b")


def architecture_of(row: MeasuredRow) -> Architecture:
    """What a row ran; without its layers (`layers` empty) where the table does not give them."""
    row = with_shape(row)
    if not (row.hidden and row.layers and row.heads):
        return coarse_model(max((parameters_of(row) or 0.0), 1.0))
    config = _like_preset(row) or _own_config(row)
    return _built(json.dumps(config, sort_keys=True))


def parameters_of(row: MeasuredRow) -> float | None:
    """Parameters that a token uses: as stated, else as the model's name says; None when neither does."""
    stated = row.active_params_b or row.n_params_b
    named = _NAMED_SIZE.search(row.model or "")
    if stated is None and named is None:
        return None
    return (stated if stated is not None else float(named[1] if named else 0.0)) * 1e9


def with_shape(row: MeasuredRow) -> MeasuredRow:
    """The row with the width, depth and heads that its size implies, where it leaves them out.

    P = 12 L h^2 + V h; heads of 128; a model of unknown width is 128 times as wide as deep. Of a model that uses some
    of its parameters only, experts or a hybrid of which nothing else is known, it is the shape of those that a token
    uses: what they compute is known, what the rest costs is in the band.
    """
    if row.layers and row.heads and row.hidden:
        return row
    size = row.active_params_b if row.is_moe and not row.n_experts else row.n_params_b
    if size is None or (row.is_moe and row.n_experts):
        return row
    if row.is_moe:
        row = replace(row, hidden=None, layers=None, heads=None)
    hidden = row.hidden or _width(size * 1e9)
    body = size * 1e9 - (row.vocab or 50257) * hidden
    layers = row.layers or max(round(body / (12.0 * hidden**2)), 1)
    found = replace(row, hidden=hidden, layers=layers, heads=row.heads or max(hidden // _HEAD_SIZE, 1))
    if row.hidden:
        return found
    return replace(found, heads=max(hidden // _HEAD_SIZE, 1), kv_heads=None, ffn_hidden=None, gated_mlp=0)


def _width(parameters: float) -> int:
    layers = float((parameters / (12.0 * _WIDTH_PER_LAYER**2)) ** (1.0 / 3.0))
    return max(round(layers), 1) * _WIDTH_PER_LAYER


@lru_cache(maxsize=4096)
def _built(text: str) -> Architecture:
    return build(Config(json.loads(text), "row", text), name="row", source="measured row")


def _own_config(row: MeasuredRow) -> dict[str, Any]:
    """A config in the words of Hugging Face; unstated sizes are those of GPT-2 and Llama."""
    hidden, heads = row.hidden or 0, row.heads or 1
    config: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": row.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": row.kv_heads or heads,
        "intermediate_size": row.ffn_hidden or 4 * hidden,
        "vocab_size": row.vocab or 50257,
        "max_position_embeddings": row.seq_len or 2048,
        "tie_word_embeddings": not row.gated_mlp,
        "model_type": "llama" if row.gated_mlp else "gpt2",
    }
    if hidden % heads:
        config["head_dim"] = max(round(hidden / heads), 1)
    if row.n_experts:
        config |= {"model_type": "mixtral", "num_local_experts": row.n_experts, "num_experts_per_tok": row.top_k or 1}
    elif not row.gated_mlp and (row.kv_heads or heads) != heads:
        config |= {"model_type": "nemotron", "head_dim": hidden // heads}
    return config


def _like_preset(row: MeasuredRow) -> dict[str, Any] | None:
    """The config of the mixture-of-experts preset with the same layers: heads wider than the model, latents, ends."""
    if not row.n_experts:
        return None
    for config in expert_configs():
        width = config.get("moe_intermediate_size") or config.get("intermediate_size")
        if (config.get("hidden_size"), config.get("num_attention_heads"), width) == (
            row.hidden,
            row.heads,
            row.ffn_hidden,
        ):
            key = next(name for name in _EXPERTS if config.get(name))
            own = {name: value for name, value in config.items() if name != "layer_types"}
            return own | {
                "num_hidden_layers": row.layers,
                key: row.n_experts,
                "num_experts_per_tok": row.top_k or config.get("num_experts_per_tok"),
                "vocab_size": row.vocab or config["vocab_size"],
            }
    return None


@lru_cache(maxsize=1)
def expert_configs() -> tuple[dict[str, Any], ...]:
    """Configs of the presets that route tokens to experts."""
    texts = (read_text(PRESETS / f"{name}.json", limit_bytes=CONFIG_LIMIT_BYTES) for name in list_presets())
    configs = (json.loads(text)["config"] for text in texts)
    whole = (config.get("text_config", config) for config in configs)
    return tuple(config for config in whole if any(config.get(name) for name in _EXPERTS))


_RECOMPUTE = {"none": 0, "selective": 1, "full": 2}


def counted_flop_per_step(row: MeasuredRow, architecture: Architecture) -> float | None:
    """FLOPs of one optimizer step in the row's `flops_convention` and `attention_flops`.

    Unstated conventions read as those of Megatron-LM since 2025 and MaxText: model FLOPs,
    attention counted causally. Under `hardware` the repeated forward passes that `recompute`
    names count too; what it says beyond none, selective and full counts as none.

    Returns
    -------
    [FLOP], or None when the batch or the sequence is unknown.
    """
    if row.tokens_per_step is None or row.seq_len is None:
        return None
    core = _attention(row, architecture, float(row.seq_len))
    head = float(architecture.vocab_size * architecture.hidden_size)
    if row.flops_convention == "hardware":
        again = _RECOMPUTE.get((row.recompute or "none").split(" ")[0], 0)
        flop = hardware_flop_per_token(architecture.matmul_parameters - head, head, core, again)
    else:
        flop = model_flop_per_token(architecture.matmul_parameters, core)
    return float(flop) * row.tokens_per_step


def _attention(row: MeasuredRow, architecture: Architecture, sequence_length: float) -> float:
    if row.attention_flops == "none":
        return 0.0
    causal = row.attention_flops != "full"
    return float(attention_forward_flop_per_token(architecture, sequence_length, causal=causal))


def counted_tflops_per_device(row: MeasuredRow, architecture: Architecture, step_time_s: float) -> float | None:
    """Throughput of a step in the row's conventions [1e12 FLOP/s per device]; None when it cannot be counted.

    Parameters
    ----------
    row
        Its conventions, batch, sequence and number of devices; nothing measured is read.
    architecture
        Shape of its model.
    step_time_s
        Of the step, predicted or measured.  [s]
    """
    flop = counted_flop_per_step(row, architecture)
    return None if flop is None or not row.n_accel else flop / step_time_s / row.n_accel / 1e12


def measured_tflops_per_device(row: MeasuredRow) -> float | None:
    """What the row publishes [1e12 FLOP/s per device]: as printed, else its utilisation times its peak."""
    if row.tflops_per_device is not None:
        return row.tflops_per_device
    if row.mfu_pct is None or row.mfu_peak_tflops is None:
        return None
    return row.mfu_pct / 100 * row.mfu_peak_tflops
