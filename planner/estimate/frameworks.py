"""Training software: what each does by default on each device family, and what it cannot do.

The one table of such facts. Kernels and overlap are the documented defaults of a release; where a
scenario or a measured row states otherwise, that counts. Rates are shares of a dense 16-bit peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.estimate.layout import Layout
from planner.estimate.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One generation of a stack; fields named as in `Stack` are its defaults there."""

    name: str
    attention: str  # kernel generation, a row of ATTENTION_RATES
    sharding: int  # ZeRO stage when nothing is stated
    stages: tuple[int, ...] = (0, 1, 2, 3)  # ZeRO stages that it has
    pipeline: bool = True
    accumulates: bool = True  # False: the batch of a device is one micro-batch
    accumulation: float = 1.0  # 0 with Megatron's gradient accumulation fusion, its default
    traffic: float = 1.0
    host_share: float = 1.0
    expert_host: float = 1.0
    tensor_hidden: float = 0.0
    expert_hidden: float = 0.0
    gradient_overlap: float = 1.0
    gather_overlap: float = 1.0
    reduce_bytes: float = 2.0
    sequence_parallel: float = 1.0
    hide_transfers: float = 1.0
    logit_bytes: float = 16.0
    recompute_share: float = 0.0  # of the forward pass that its selective policy repeats


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        # Korthikanti et al. 2022: stored scores, gradients reduced after the step
        Framework(name="megatron-2022", accumulation=0.0,
                  attention="eager", sharding=0, stages=(0, 1), gradient_overlap=0.0,
                  gather_overlap=0.0, sequence_parallel=0.0),
        # Megatron-LM with Transformer Engine, settings of its own examples; ZeRO-2 is its FSDP's optim_grads
        Framework(name="megatron", accumulation=0.0,
                  attention="fused", sharding=1, stages=(0, 1, 2), reduce_bytes=4.0, host_share=0.5),
        # Megatron-Bridge recipes: tensor-parallel overlap, fused permutation and quantisation, gradients reduced in 16
        # bits (grad_reduce_in_fp32 = False in NeMo's performance recipes)
        Framework(name="megatron-bridge", accumulation=0.0,
                  attention="fused", sharding=1, stages=(0, 1, 2), reduce_bytes=2.0,
                  host_share=0.25, tensor_hidden=0.6, expert_hidden=0.5, traffic=0.7),
        # the same since release 26.06: CUDA graphs over expert layers
        Framework(name="megatron-bridge-graphs", accumulation=0.0,
                  attention="fused", sharding=1, stages=(0, 1, 2), reduce_bytes=2.0,
                  host_share=0.25, expert_host=0.2, tensor_hidden=0.6, expert_hidden=0.5, traffic=0.7),
        Framework(name="megatron-deepspeed", attention="eager", sharding=1, gradient_overlap=0.0, gather_overlap=0.0,
                  sequence_parallel=0.0, hide_transfers=0.0),
        Framework(name="deepspeed", attention="flash2", sharding=3, gather_overlap=0.0),
        Framework(name="llm-foundry", attention="flash1", sharding=3, stages=(3,), pipeline=False),
        Framework(name="flash-attention", attention="flash1", sharding=0, stages=(0,), pipeline=False,
                  logit_bytes=8.0),
        # torchtitan: selective recomputation by operation keeps about half of a layer
        Framework(name="fsdp", attention="flash2", sharding=3, stages=(3,), reduce_bytes=4.0, host_share=0.7,
                  recompute_share=0.5),
        # Hugging Face Trainer: modules of transformers one by one, logits cast to 32 bits
        Framework(name="hf", attention="flash2", sharding=0, pipeline=False, traffic=1.2, logit_bytes=24.0),
        # torchtune: one recipe a device or FSDP2, modules of its own
        Framework(name="torchtune", attention="flash2", sharding=3, pipeline=False, reduce_bytes=4.0),
        # JAX on GPUs (PAX, MaxText of JAX-Toolbox): one compiled step
        Framework(name="jax", attention="fused", sharding=3, stages=(0, 1, 3), host_share=0.1, traffic=0.8),
        # software that nobody here knows: what all have in common, and a wider band
        Framework(name="common", attention="flash2", sharding=1),
        Framework(name="llm.c", attention="fused", sharding=1, stages=(0, 1), pipeline=False, host_share=0.1,
                  traffic=0.7, logit_bytes=8.0),
        Framework(name="maxtext", attention="splash", sharding=3, stages=(0, 1, 3), accumulates=False, host_share=0.0,
                  expert_host=0.0, traffic=0.6, tensor_hidden=0.6, recompute_share=0.5),
        Framework(name="neuron", attention="fused", sharding=1, stages=(0, 1), reduce_bytes=4.0, host_share=0.0,
                  expert_host=0.0),
    )
}  # fmt: skip

# Programs that a scenario may name: the row above that they are predicted by, and what of a device's list they need
COUNTS_AS = {"torchtitan": "fsdp", "trl": "hf", "axolotl": "hf"}
NEEDS = {"torchtitan": "fsdp", "trl": "pytorch", "axolotl": "pytorch"}

# Best rate of a kernel generation, forward and backward together. Forward alone: FlashAttention-2 73 % on the A100 and
# 35 % on the H100, FlashAttention-3 75 % on the H100 (Dao 2023; Shah et al. 2024); the backward pass runs slower.
# FlashAttention-2 computes with the instructions of the A100: its absolute rate on the B200 is that of the H100.
ATTENTION_RATES = {
    "flash1": {"volta": 0.25, "ampere": 0.35, "ada": 0.30, "hopper": 0.18, "blackwell": 0.15},
    "flash2": {"volta": 0.25, "ampere": 0.60, "ada": 0.55, "hopper": 0.35, "blackwell": 0.16},
    # FlashAttention-3 on the devices that it was made for (Shah et al. 2024, figures 5 and 6: forward 740, backward 550
    # TFLOP/s of 989); FlashAttention-4 (Together AI, March 2026: 71 % forward on the B200), its backward pass taken to
    # be slower by as much; elsewhere both are what FlashAttention-2 is
    "flash3": {"volta": 0.25, "ampere": 0.60, "ada": 0.55, "hopper": 0.60, "blackwell": 0.28},
    "flash4": {"volta": 0.25, "ampere": 0.60, "ada": 0.55, "hopper": 0.60, "blackwell": 0.57},
    "fused": {"volta": 0.25, "ampere": 0.55, "ada": 0.50, "hopper": 0.52, "blackwell": 0.45},
}
UNKNOWN_ATTENTION_RATE = 0.45

# Quantisation recipes: traffic and rate of products over per-tensor scales. Rates from pairs that differ in the recipe
# alone: mxfp8 against fp8 of Llama 3 on GB200 (0.93 to 0.95 end to end), rowwise against tensorwise of torchtitan.
RECIPES = {
    "tensorwise": (1.0, 1.0),
    "mxfp8": (1.6, 0.97),
    "rowwise": (1.6, 0.5),
    "blockwise128": (1.5, 0.95),
    "blockwise32": (1.6, 0.95),
    "nvfp4": (2.0, 1.0),
}
FP8_RECIPE, FP4_RECIPE = "tensorwise", "nvfp4"
LOW_EXCHANGE_BYTES = 1.5  # a routed value: dispatched in 8 bits, combined in 16
_SHARED = tuple({f.name for f in fields(Framework)} & {f.name for f in fields(Stack)})


def attention_rate(kernel: str, family: str) -> float:
    """Best rate of a kernel generation on a device family, share of the dense 16-bit peak."""
    return ATTENTION_RATES.get(kernel, {}).get(family, UNKNOWN_ATTENTION_RATE)


PART = "part"  # of a device, among fitted factors


def fitted_factors(name: str, fitted: Mapping[str, float], *, experts: bool) -> tuple[float, float]:
    """Factors on the device's work and on the host's, of a stack on a part.

    Parameters
    ----------
    name
        The framework.
    fitted
        By name: `megatron` and `part` (work), `megatron/experts` and `part/experts` (work of models with experts),
        `megatron/host` (launching). What is not there is 1.
    experts
        Whether the model routes tokens to experts, all weights trained.
    """
    work = fitted.get(name, 1.0) * fitted.get(PART, 1.0)
    if experts:
        work *= fitted.get(f"{name}/experts", 1.0) * fitted.get(f"{PART}/experts", 1.0)
    return work, fitted.get(f"{name}/host", 1.0)


def least_factor(fitted: Mapping[str, float]) -> float:
    """No stack works less than this share of a tuned one's work on a part of its family; at most 1."""
    names = {name.split("/")[0] for name in fitted} - {PART, "dispatch", "hybrid"}
    works = [fitted_factors(name, fitted, experts=experts)[0] for name in (*names, "") for experts in (False, True)]
    return min([1.0, *works])


def stack_defaults(
    framework: Framework, family: str, fitted: Mapping[str, float] | None = None, *, experts: bool = False
) -> dict[str, Any]:
    """Fields of `Stack` that a framework sets on a device family.

    Parameters
    ----------
    framework
        A row of FRAMEWORKS.
    family
        Of the device; it decides the rate of the attention kernel.
    fitted
        Factors as `fitted_factors` takes them; without any all are 1.
    experts
        Whether the model routes tokens to experts, all weights trained.
    """
    found: dict[str, Any] = {f.name: f.default for f in fields(Stack)}
    found |= {name: getattr(framework, name) for name in _SHARED}
    found["attention_rate"] = attention_rate(framework.attention, family)
    found["eager"] = 1.0 if framework.attention == "eager" else 0.0
    found["overhead"], host = fitted_factors(framework.name, fitted or {}, experts=experts)
    found["host_share"] *= host
    return found


def planned_framework(name: str | None, family: str, sharding: int) -> Framework:
    """What trains a job: as the scenario says, else the usual software of a device at a ZeRO stage.

    Parameters
    ----------
    name
        What the scenario names; None, and a name that says less than a row of FRAMEWORKS, leave it to the rest.
    family
        Of the device; those that begin with tpu or neuron have software of their own.
    sharding
        ZeRO stage, 0 to 3.
    """
    tpu = family.startswith("tpu")
    name = COUNTS_AS.get(name or "", name)
    if tpu and name == "jax":  # its row is that of JAX on GPUs, as rows of MaxText on GPUs are read
        name = "maxtext"
    if name in FRAMEWORKS:  # pytorch and tensorflow say less than a row of the table
        return FRAMEWORKS[name]
    if tpu:
        return FRAMEWORKS["maxtext"]
    if family.startswith("neuron"):
        return FRAMEWORKS["neuron"]
    return FRAMEWORKS["fsdp" if sharding == 3 else "megatron"]


def software_stage(sharding: Any, devices: Any) -> Any:
    """ZeRO stage that says which software is usual: one device has nothing to share, and PyTorch's own is usual there.

    Parameters
    ----------
    sharding
        ZeRO stage as planned, 0 to 3.
    devices
        Of one job.
    """
    return np.where(np.asarray(devices) == 1, 3, np.asarray(sharding))


def kept_as(name: str | None, family: str | None, sharding: int) -> str | None:
    """Whose copies and buffers a job keeps in memory: those of what its time is predicted by, if that is known.

    Parameters
    ----------
    name
        What the scenario names, if anything. A name that says less than a row of FRAMEWORKS is kept: the common stack.
    family
        Of the device; None: any, and nothing follows from it.
    sharding
        ZeRO stage, 0 to 3.
    """
    if family is None or (name and named_framework(name) is None):
        return name
    return planned_framework(name, family, sharding).name


def named_framework(name: str | None) -> Framework | None:
    """The row of what a scenario names; None of nothing, and of what says less than a row."""
    return FRAMEWORKS.get(COUNTS_AS.get(name or "", name or ""))


def runs_on(name: str | None, frameworks: Sequence[str]) -> bool:
    """Whether a device whose list is given runs what a scenario names; nothing runs anywhere."""
    return not name or NEEDS.get(name, name) in frameworks


def framework_can(framework: Framework, layout: Layout) -> Any:
    """Mask of the layouts that a framework offers: its ZeRO stages, and a pipeline or none.

    DeepSpeed's pipeline keeps whole gradients, so stages 2 and 3 exclude it, and stage 3 its tensor parallelism.
    """
    can = np.isin(np.asarray(layout.sharding), framework.stages) | (np.asarray(layout.devices) == 1)
    if not framework.pipeline:
        can = can & (np.asarray(layout.pp) == 1)
    if framework.name == "deepspeed":
        can = can & ((np.asarray(layout.pp) == 1) | (np.asarray(layout.sharding) < 2))
        can = can & ((np.asarray(layout.tp) == 1) | (np.asarray(layout.sharding) < 3))
    return can
