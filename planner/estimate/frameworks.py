"""What training software does by default, per generation: kernels, overlap, formats on the wire.

Rows of a table, one a stack. The documented defaults stand here; a scenario or a row may state otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One stack of training software."""

    name: str
    attention: str  # kernel generation, a key of `attention_rate`
    sharding: int  # ZeRO stage when nothing is stated
    traffic: float = 1.0  # of the counted elementwise traffic: fused kernels and compilers save some
    host_share: float = 1.0  # of the host time of a layer's pass
    tensor_hidden: float = 0.0
    expert_hidden: float = 0.0
    gradient_overlap: float = 1.0
    gather_overlap: float = 1.0
    reduce_bytes: float = 2.0
    sequence_parallel: float = 1.0
    hide_transfers: float = 1.0
    logit_bytes: float = 16.0
    selective_share: float = 0.0  # of a layer's forward pass that its selective policy computes again


FRAMEWORKS = {
    "megatron-2021": Framework(
        name="megatron-2021", attention="eager", sharding=0, gradient_overlap=0.0, gather_overlap=0.0,
        sequence_parallel=0.0, hide_transfers=0.0,
    ),
    "megatron": Framework(
        name="megatron", attention="fused", sharding=1, reduce_bytes=4.0, host_share=0.5, expert_hidden=0.0,
    ),
    "megatron-bridge": Framework(
        name="megatron-bridge", attention="fused", sharding=1, reduce_bytes=4.0, host_share=0.25,
        tensor_hidden=0.6, expert_hidden=0.3,
    ),
    "megatron-deepspeed": Framework(
        name="megatron-deepspeed", attention="eager", sharding=1, gradient_overlap=0.0, gather_overlap=0.0,
        sequence_parallel=0.0, hide_transfers=0.0,
    ),
    "llm-foundry": Framework(name="llm-foundry", attention="flash1", sharding=3, reduce_bytes=2.0),
    "flash-attention": Framework(name="flash-attention", attention="flash1", sharding=0, logit_bytes=8.0),
    "fsdp": Framework(name="fsdp", attention="flash2", sharding=3, reduce_bytes=4.0, selective_share=0.5, host_share=0.7),
    "llm.c": Framework(name="llm.c", attention="fused", sharding=1, host_share=0.1, traffic=0.7, logit_bytes=8.0),
    "maxtext": Framework(name="maxtext", attention="splash", sharding=3, host_share=0.0, traffic=0.6),
    "neuron": Framework(name="neuron", attention="fused", sharding=1, reduce_bytes=4.0, host_share=0.0),
}  # fmt: skip

# Best rate of an attention kernel, forward and backward together, as a share of the dense 16-bit peak.
_RATES = {
    "flash1": {"volta": 0.25, "ampere": 0.35, "hopper": 0.18, "blackwell": 0.15},
    "flash2": {"ampere": 0.60, "hopper": 0.35, "blackwell": 0.25},
    "fused": {"ampere": 0.55, "hopper": 0.52, "blackwell": 0.45},
    "splash": {},
}


def attention_rate(kernel: str, family: str) -> float:
    """Rate of a kernel generation on a device family."""
    return _RATES.get(kernel, {}).get(family, 0.45)
