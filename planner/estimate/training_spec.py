"""A training job and its run in plain numbers and names: what everything that is estimated of them begins with."""

from __future__ import annotations

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How often a job fails, what it saves and what it costs to go on, in plain numbers."""

    mtbf_per_device_s: float = float("inf")  # of one device with its share of host and network
    restart_s: float = 0.0  # from a noticed failure to the next useful step
    detection_s: float = 0.0  # from a failure to its notice
    checkpoint_bandwidth_bytes_per_s: float = float("inf")  # of one host into storage
    checkpoint_every_s: float | None = None  # None: the interval that loses least
    asynchronous_checkpoint: bool = False  # only the copy into host memory stops the job
    host_copy_bytes_per_s: float = 10e9  # of one device into host memory; asynchronous checkpoints only
    devices_per_host: float = 8.0  # that share one writer
    straggler_sigma: float = 0.0  # spread of a device's step time, as a share of it
    scale_loss: float = 0.0  # share of the time that a run over many hosts loses, failures aside
    preemptions_per_s: float = 0.0  # of one shape (spot)
    devices_per_shape: float = 8.0  # that a preemption takes at once
    preemption_restart_s: float = 0.0
    preemption_warning_s: float = 0.0
    # of a job on groups of unlike shapes; None: they follow from the devices
    host_count: float | None = None
    spot_shapes: float | None = None  # shapes that may be taken away


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
