"""The format in which a checkpoint holds its weights, as its own config says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALGORITHMS = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8_pb", "fp8-block"), ("fp8", "fp8"), ("w4a", "int4"), ("int4", "int4"),
    ("int8", "int8"), ("w8a", "int8"),
)  # fmt: skip


# where quantisers left their settings: transformers, llm-compressor before it, MLX before it
_KEYS = ("quantization_config", "compression_config", "quantization")


def settings_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The settings that a quantiser left in a model's config; None where there are none."""
    return next((config[key] for key in _KEYS if isinstance(config.get(key), Mapping)), None)


def format_of(quantised: Mapping[str, Any]) -> str:
    """The format of weights that the settings of a quantiser mean; "" when none of those planned."""
    method = str(quantised.get("quant_method") or "").lower()
    bits = quantised.get("bits", quantised.get("w_bit"))
    if method.rsplit("/", 1)[-1] in ("awq", "gptq", "auto-round") or (not method and bits):  # MLX names no method
        return {4: "int4", 8: "int8"}.get(bits, "") if isinstance(bits, int) else ""
    if method == "bitsandbytes" or "load_in_4bit" in quantised:
        return (
            "int4" if quantised.get("load_in_4bit") is True else "int8" if quantised.get("load_in_8bit") is True else ""
        )
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8-block" if quantised.get("weight_block_size") else "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method == "compressed-tensors":
        return _of_groups(quantised.get("config_groups"))
    if method == "modelopt_fp4":
        return "nvfp4"
    inner = quantised.get("quantization")
    named = str(quantised.get("quant_algo") or (inner.get("quant_algo") if isinstance(inner, Mapping) else "")).lower()
    return next((form for mark, form in _ALGORITHMS if mark in named), "")


def _of_groups(groups: Any) -> str:
    """The format of compressed tensors: that of the only kind of weights, "" when there are several."""
    found = set()
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        kind, bits = str(weights.get("type")), str(weights.get("num_bits"))
        four = "mxfp4" if str(weights.get("group_size")) == "32" else "nvfp4"  # which share a scale by 32 and by 16
        eight = "fp8-block" if weights.get("strategy") == "block" else "fp8"
        form = {("int", "4"): "int4", ("int", "8"): "int8", ("float", "8"): eight, ("float", "4"): four}
        found.add(form.get((kind, bits), ""))
    return found.pop() if len(found) == 1 else ""
