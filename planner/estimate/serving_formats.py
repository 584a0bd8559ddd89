"""What a weight or cache format weighs, and at which peak a device computes it.

Quantised checkpoints are mixed. 8-bit ones keep embeddings, head, router and norms at 16 bits.
4-bit ones of mixture-of-experts models quantise the experts only (as gpt-oss does); those of dense
models quantise all linear layers, and so does nvfp4 unless attention is latent (NVIDIA's checkpoints).
A device without the format's matrix units still saves the
storage, but computes at its 16-bit peak, or at fp32 where it has no 16-bit units (K80).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_memory import quantised_bytes_per_parameter

_SIXTEEN = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Storage of one value and the number formats that can compute with it, best first."""

    bits: float
    scale_bytes: float = 0.0
    group_values: float = 1.0  # values that share a scale; 0 = one output channel of the hidden width
    compute: tuple[str, ...] = _SIXTEEN
    experts_only: str = (
        ""  # moe: of a mixture-of-experts checkpoint only the experts; latent: of one with latent attention
    )
    plain_bits: float = 16.0  # of embeddings and head
    weight_only: bool = False  # products are of 16 bits everywhere: kernels unpack the weights on the way

    def bytes_per_parameter(self, hidden_size: int) -> float:
        """Bytes of one value with its share of the scale (none where the width is unknown)."""
        group = self.group_values or float(hidden_size) or float("inf")
        return float(quantised_bytes_per_parameter(self.bits, self.scale_bytes, group))


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "fp32": Format(bits=32, compute=("fp32",)),
        "fp16": Format(bits=16, compute=("fp16", "bf16", "fp32")),
        "bf16": Format(bits=16, compute=_SIXTEEN),
        "fp8": Format(bits=8, compute=("fp8", *_SIXTEEN)),
        "fp8-block": Format(bits=8, scale_bytes=4, group_values=128 * 128, compute=("fp8", *_SIXTEEN)),
        "int8": Format(bits=8, scale_bytes=2, group_values=0, compute=("int8", *_SIXTEEN)),
        "int4": Format(bits=4, scale_bytes=2, group_values=128, experts_only="moe", weight_only=True),
        # as Kimi K2 Thinking and later are published: compressed-tensors of the experts alone
        "int4-g32": Format(bits=4, scale_bytes=2, group_values=32, experts_only="moe", weight_only=True),
        # 4-bit blocks, half of two tensors of a layer and the head at 6.56 bits; ggml-org/llama.cpp, tools/quantize
        "q4_k_m": Format(bits=4.83, plain_bits=6.56),
        "q4_k_s": Format(bits=4.58, plain_bits=6.56),
        # what other files of Llama 3.1 8B weigh, less embedding and head; ggml-org/llama.cpp,
        # tools/quantize/README.md@311c2c9 and quantize.cpp (Q3_K_M: 3.74 GiB), read 2026-12-01
        "q2_k": Format(bits=2.94, plain_bits=6.56),
        "q3_k_s": Format(bits=3.44, plain_bits=6.56),
        "q3_k_m": Format(bits=3.85, plain_bits=6.56),
        "q3_k_l": Format(bits=4.19, plain_bits=6.56),
        "iq4_xs": Format(bits=4.32, plain_bits=6.56),
        "iq4_nl": Format(bits=4.55, plain_bits=6.56),
        "q5_k_s": Format(bits=5.50, plain_bits=6.56),
        "q5_k_m": Format(bits=5.65, plain_bits=6.56),
        "q6_k": Format(bits=6.56, plain_bits=6.56),
        # blocks of 32 values with a 16-bit scale, or a scale and a least value; ggml-org/ggml, src/ggml-common.h
        "q4_0": Format(bits=4, scale_bytes=2, group_values=32, plain_bits=6.56),
        "q4_1": Format(bits=4, scale_bytes=4, group_values=32, plain_bits=6.56),
        "q5_0": Format(bits=5, scale_bytes=2, group_values=32, plain_bits=6.56),
        "q5_1": Format(bits=5, scale_bytes=4, group_values=32, plain_bits=6.56),
        "q8_0": Format(bits=8, scale_bytes=2, group_values=32, plain_bits=8.5),
        # all weights, tables too, in groups of 32 with a 16-bit scale; mlc-ai/mlc-llm, docs/compilation (q4f16_1)
        "q4f16": Format(bits=4, scale_bytes=2, group_values=32, plain_bits=4.5),
        "mxfp4": Format(bits=4, scale_bytes=1, group_values=32, compute=("fp4", *_SIXTEEN), experts_only="moe"),
        "nvfp4": Format(bits=4, scale_bytes=1, group_values=16, compute=("fp4", *_SIXTEEN), experts_only="latent"),
    }
)

# Of llama.cpp's files alone
FILE_FORMATS = tuple(name for name in FORMATS if name.startswith(("q", "iq")) and name != "q4f16")

# The cache has no channel scales: 8-bit caches keep one scale a tensor, 4-bit ones a scale a block.
CACHE_BYTES: Mapping[str, float] = MappingProxyType(
    {
        name: FORMATS[name].bytes_per_parameter(128) if FORMATS[name].bits < 8 else FORMATS[name].bits / 8
        for name in FORMATS
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBytes:
    """Bytes per parameter of the three groups of a checkpoint."""

    linear: float  # attention, dense and shared feed-forward
    expert: float
    plain: float  # embeddings, head, router, norms


def stored_bytes(arch: Architecture, weights: str) -> StoredBytes:
    """What each group of a model's weights takes in a format."""
    chosen = FORMATS[weights]
    plain = max(chosen.bits, chosen.plain_bits) / 8
    quantised = chosen.bytes_per_parameter(arch.hidden_size)
    linear = 2.0 if _experts_only(chosen, arch) else quantised
    return StoredBytes(linear=linear, expert=quantised, plain=plain)


def _experts_only(chosen: Format, arch: Architecture) -> bool:
    """Whether a checkpoint of the model in this format keeps everything but its routed experts at 16 bits."""
    latent = any(group.attention == "mla" for group in arch.layers)
    return arch.is_moe and (chosen.experts_only == "moe" or (chosen.experts_only == "latent" and latent))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPeaks:
    """Dense peaks of one device for the three kinds of products in a step.  [FLOP/s]"""

    linear: FloatOrArray
    expert: FloatOrArray
    attention: FloatOrArray
    linear_unpacked: FloatOrArray = 0.0  # 1 where weights of the format are unpacked by kernels: no hardware takes them
    expert_unpacked: FloatOrArray = 0.0

    def shared(self, share: FloatOrArray) -> ServingPeaks:
        """Peaks of a share of the device (MIG, fractional instances)."""
        part = as_float(share)
        return replace(
            self,
            linear=as_float(self.linear) * part,
            expert=as_float(self.expert) * part,
            attention=as_float(self.attention) * part,
        )


def serving_peaks(
    arch: Architecture, weights: str, peak_flop_per_s: Mapping[str, float], *, narrow_sums: bool = False
) -> ServingPeaks:
    """Peaks at which a device computes a model in a format; nan where it has none that could.

    With `narrow_sums` an engine adds products up at 16 bits: consumer cards do that at twice their listed 16-bit rate,
    which is of sums at 32 bits; either way it is half of their rate of 8-bit integers.

    Parameters
    ----------
    arch
        The model.
    weights
        Format, a key of FORMATS.
    peak_flop_per_s
        Dense peaks of the device by number format; one that is not there is not supported.  [FLOP/s]
    narrow_sums
        Whether the engine adds products up at 16 bits.
    """
    if narrow_sums:
        sixteen = max(peak_flop_per_s.get(name, 0.0) for name in _SIXTEEN)
        fast = max(sixteen, peak_flop_per_s.get("int8", 0.0) / 2)
        peak_flop_per_s = {**peak_flop_per_s, **dict.fromkeys(_SIXTEEN, fast or float("nan"))}
    chosen = FORMATS[weights]
    plain = FORMATS["fp32"] if weights == "fp32" else FORMATS["bf16"]
    linear = plain if _experts_only(chosen, arch) else chosen
    return ServingPeaks(
        linear=_best(linear, peak_flop_per_s),
        expert=_best(chosen, peak_flop_per_s),
        attention=_best(plain, peak_flop_per_s),
        linear_unpacked=_unpacked(linear, peak_flop_per_s),
        expert_unpacked=_unpacked(chosen, peak_flop_per_s),
    )


def _unpacked(chosen: Format, peak_flop_per_s: Mapping[str, float]) -> float:
    narrow = chosen.compute[0] not in _SIXTEEN
    return float(chosen.weight_only or (narrow and not peak_flop_per_s.get(chosen.compute[0])))


def _best(chosen: Format, peak_flop_per_s: Mapping[str, float]) -> float:
    return next((peak for name in chosen.compute if (peak := peak_flop_per_s.get(name))), float("nan"))
