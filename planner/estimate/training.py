"""One training job on many layouts: what it needs in memory, how long it takes by the rule tier."""

from __future__ import annotations

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.estimate.blocks import in_blocks
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine
from planner.estimate.run import RunSpec, whole_run
from planner.estimate.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """A training job in plain numbers and names."""

    tokens: float  # of one epoch
    epochs: float = 1.0
    sequence_length: float
    precision: str = "bf16"  # fp32 | fp16 | bf16 | fp8
    optimizer: str = "adamw"  # planner.equations.memory.OPTIMIZERS
    attention: str = "flash"  # flash | eager
    cross_entropy: str = "fused"  # standard | fused | chunked
    allocator: str = "default"  # default | expandable | variable
    critical_batch_tokens: float | None = None
    framework: str | None = None  # megatron | fsdp | deepspeed | ...: which copies and buffers it keeps
    dropout: bool | None = None  # None: GPT blocks (ungated MLP) store dropout masks, others do not
    measured_mfu: bool = False  # the machine's mfu was measured on such a job: no penalty on top of it
    tier: str = "rule"  # rule | analytic | measured
    offload: tuple[str, ...] = ()  # optimizer, activations: what goes to host memory
    gradient_compression: float = 1.0  # factor by which data-parallel gradients shrink on the wire
    lora_rank: int | None = None  # None: all weights are trained
    lora_base: str = "bf16"  # bf16 | fp16 | nf4 | int8: format of the frozen weights
    run: RunSpec | None = None  # None: nothing fails and nothing is saved
    step_time_s: float | None = None  # as measured on the run under way
    step_time_ratio: float = 1.0  # measured over predicted step time of the run under way
    progress_tokens: float = 0.0  # trained already, of tokens x epochs
    confidence: float = 0.9  # quantile of the error band at which deadline and memory must hold

    @property
    def remaining_share(self) -> float:
        """Share of the tokens that is left to train."""
        return 1.0 - self.progress_tokens / (self.tokens * self.epochs)


def activations_known(arch: Architecture) -> bool:
    """False for a model of which only the parameter count is known: its activations are left out."""
    return bool(arch.layers)


def training_memory(arch: Architecture, spec: TrainingSpec, layout: Layout) -> Terms:
    """Bytes per device of the fullest rank: weights, gradients, optimizer, activations and the rest.

    The first and the last pipeline stage are evaluated, and the terms are those of the larger.
    For a model without layers (only a parameter count) activations, logits, gathered and scratch
    are unknown and come out as 0: see `activations_known`.
    """
    from planner.estimate.training_memory import fullest_stage

    return in_blocks(lambda part: fullest_stage(arch, spec, part), layout)


def training_time(arch: Architecture, spec: TrainingSpec, layout: Layout, machine: Machine) -> Terms:
    """Wall seconds of what is left of the run, term by term, by the tier that `spec.tier` names.

    * analytic: one optimizer step from matrix products to collectives, with the machine's fitted constants;
    * rule: 13.3 A100-hours per 1e9 tokens x 1e9 active parameters, scaled by sustained FLOP/s, and what each
      kind of split costs;
    * measured (`spec.measured_mfu`): the share of peak that the user measured, nothing on top of it.

    Failures and checkpoints of `spec.run` come on top, as terms of their own.
    """
    if spec.tier == "analytic" and not spec.measured_mfu:
        from planner.estimate.training_analytic import analytic_time

        return in_blocks(
            lambda part: whole_run(analytic_time(arch, spec, part, machine), arch, spec, part.devices), layout
        )
    from planner.estimate.training_time import rule_time

    return whole_run(rule_time(arch, spec, layout, machine), arch, spec, layout.devices)
