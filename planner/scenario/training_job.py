"""One training job of a scenario: what is trained, on how much, by when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from planner.scenario.fields import (
    FIELD,
    BatchBound,
    BatchSize,
    Confidence,
    Count,
    Deadline,
    Duration,
    Epochs,
    Factor,
    Hours,
    Length,
    Name,
    OneOrMany,
    Pattern,
    Share,
    Start,
    Tokens,
    refuse,
)
from planner.scenario.hardware_keys import Data
from planner.scenario.workload_parts import (
    DEFAULT_CONFIDENCE,
    DEFAULT_ESTIMATOR,
    Estimator,
    Failures,
    LayoutPin,
    Lora,
    ModelRef,
    Part,
    Recompute,
    Sharding,
    StepTime,
    failures_branch,
    layout_branch,
    model_branch,
    step_time_branch,
)

Precision = Literal["fp32", "fp16", "bf16", "fp8"]


Optimizer = Literal[
    "adamw", "adam", "adamw-megatron", "adamw-fsdp", "adamw-deepspeed", "adamw-pure-bf16", "adamw-bf16-moments",
    "adamw-8bit", "adamw-8bit-no-master", "adafactor", "adafactor-momentum", "sgd", "sgd-momentum", "muon",
]  # fmt: skip


Framework = Literal[
    "megatron", "fsdp", "torchtitan", "deepspeed", "trl", "axolotl", "maxtext", "neuron", "pytorch", "jax", "tensorflow"
]  # fmt: skip


class Batch(Part):
    """Sequences or tokens of one optimizer step: a range; one value is a range of its own."""

    least: BatchBound = Field(alias="min", description="least of one optimizer step")
    most: BatchBound = Field(alias="max", description="most of one optimizer step; the planner chooses in between")

    @model_validator(mode="after")
    def _ordered(self) -> Batch:
        if self.least[0] != self.most[0]:
            refuse("conflict", f"{FIELD} mixes tokens and sequences", "give both bounds in the same unit")
        if self.least[1] > self.most[1]:
            refuse("out-of-range", f"{FIELD} has a min above its max", "swap the two")
        return self

    def _amount(self, bound: BatchSize, unit: str) -> float | None:
        return bound[1] if bound[0] == unit else None

    @property
    def min_tokens(self) -> float | None:
        """Least tokens, when the batch is given in tokens."""
        return self._amount(self.least, "tokens")

    @property
    def max_tokens(self) -> float | None:
        """Most tokens, when the batch is given in tokens."""
        return self._amount(self.most, "tokens")

    @property
    def min_sequences(self) -> float | None:
        """Least sequences, when the batch is given in sequences."""
        return self._amount(self.least, "sequences")

    @property
    def max_sequences(self) -> float | None:
        """Most sequences, when the batch is given in sequences."""
        return self._amount(self.most, "sequences")


def _batch_branch(value: object) -> object:
    return value if isinstance(value, Mapping | Part) else {"min": value, "max": value}


class Stack(Part):
    """Software that decides how much memory a training step takes."""

    attention: Literal["flash", "eager"] = Field(
        "flash", description="flash keeps no attention scores; eager keeps them all"
    )
    cross_entropy: Literal["standard", "fused", "chunked"] = Field(
        "fused", description="how the loss holds its logits: whole, in one fused kernel, or in chunks of the sequence"
    )
    allocator: Literal["default", "expandable", "variable"] = Field(
        "default",
        description="memory lost to fragmentation: default 5 %, expandable segments 3 %, variable shapes 15 %",
    )


class TrainingJob(Part):
    """One training job: what is trained, on how much, by when."""

    name: Name = Field(description="what the job is called in the plan, in --set and in overrides")
    model: Annotated[ModelRef, BeforeValidator(model_branch)] = Field(
        description="what is trained: a preset (`plan models list`), {config: path/to/config.json} or {parameters: 8B}"
    )
    estimator: Estimator | None = Field(
        None, description="the tier that predicts this job; left out: that of the scenario"
    )
    confidence: Confidence | None = Field(
        None, description="end of the error band at which deadline and memory must hold; left out: that of the scenario"
    )
    tokens: Tokens = Field(description="tokens of one epoch")
    epochs: Epochs = Field(1.0, description="times that the tokens are gone through; time and cost grow with it")
    deadline_given: Deadline | None = Field(
        None, alias="deadline", description="counted from the start; or a date (wants begin, or a start by date)"
    )
    hours: Hours | None = Field(None, description="the deadline as a bare number of hours")
    start: Start | None = Field(None, description="a date, or a delay from the beginning of the plan")
    sequence_length: Length | None = Field(
        None, description="tokens of a sequence; left out: 4,096, or what the model can hold when that is less"
    )
    global_batch: Annotated[Batch | None, BeforeValidator(_batch_branch)] = Field(
        None,
        description="of one optimizer step, or {min:, max:} to choose; left out: what suits the compute of the run, "
        "at most 4M tokens (EQ-RULE-12), of adapters 128 sequences",
    )
    precision: Precision = Field(
        "bf16",
        description="format of the matrix products; it decides the device's peak rate and the bytes of the weights",
    )
    optimizer: Optimizer = Field(
        "adamw",
        description="recipe of the model states: bytes of weight, gradient and optimizer state of each parameter",
    )
    recompute: OneOrMany[Recompute] = Field(
        ("none", "selective", "full"),
        description="what the backward pass computes again to save memory; a list: choose",
    )
    sharding: OneOrMany[Sharding] = Field(
        ("none", "zero-1", "zero-2", "zero-3"),
        description="what data-parallel ranks share: optimizer (1), gradients too (2), weights too (3); a list: choose",
    )
    layout: Annotated[LayoutPin | None, BeforeValidator(layout_branch)] = Field(
        None, description='what is fixed of the layout: {tp: 2, pp: 1}, or "tp2 pp1"; left out: the planner chooses'
    )
    framework: Framework | None = Field(
        None,
        description="software that trains: its layouts, kernels and buffers; left out: the usual one (torchtitan of "
        "one GPU and with zero-3, else Megatron-LM; MaxText of TPUs)",
    )
    stack: Stack = Field(
        default_factory=lambda: Stack.model_validate({}),
        description="kernels and allocator, where they change the memory of a step",
    )
    mfu: Mapping[Pattern, Share] = Field(default_factory=dict, description="measured share of peak by device pattern")
    count: Count = Field(1, description="identical jobs of this kind, each planned alike")
    critical_batch_tokens: Tokens | None = Field(
        None,
        alias="critical_batch",
        description="batch above which tokens are inflated by 1 + batch / critical batch; left out: none are",
    )
    failures_given: Annotated[Failures | None, BeforeValidator(failures_branch)] = Field(
        None,
        alias="failures",
        description="rates, or none; left out: 50,000 h per device, checkpoints at 2 GB/s",
    )
    checkpoint_every_s: Duration | None = Field(
        None, alias="checkpoint_every", description="time between checkpoints; left out: the interval that loses least"
    )
    lora: Lora | None = Field(None, description="train low-rank adapters on frozen weights")
    offload: OneOrMany[Literal["optimizer", "activations"]] | None = Field(
        None, description="what is kept in host memory and fetched over the host link"
    )
    mix_within_job: bool = Field(
        False,
        description="let replica groups on different offers share the batch of this job, by an outer loop of one's "
        "own: no program that plan export writes for does that",
    )
    switch_within_job: bool = Field(
        True,
        description="let the job begin on spot and go on from a checkpoint on demand, where spot alone is late and "
        "that is cheaper",
    )
    progress_tokens: Tokens | None = Field(None, alias="progress", description="trained already, all epochs together")
    step_time: Annotated[StepTime | None, BeforeValidator(step_time_branch)] = Field(
        None,
        description="time of one step as measured on a run under way; all predictions of the job are scaled to it, "
        "and keep their band where machine or layout differ",
    )
    after: OneOrMany[Name] | None = Field(
        None, description="jobs that must be finished before this one starts (wants periods)"
    )
    schedule: Literal["fixed", "elastic"] = Field(
        "fixed",
        description="fixed runs through; elastic may, or pauses between periods, on the same machines (wants periods)",
    )
    regions: OneOrMany[Pattern] = Field(
        ("*",), description="where it may run, rented or owned, as hardware.regions: where its data must stay, say"
    )
    data: Data | None = Field(None, description="where the training data lie, and what moving them costs")
    gradient_compression: Factor | None = Field(
        None, description="factor by which data-parallel gradients shrink on the wire"
    )

    _start_s: float = PrivateAttr(0.0)
    _deadline_s: float = PrivateAttr(1.0)  # of a deadline by date, from the start
    _tier: Estimator = PrivateAttr(DEFAULT_ESTIMATOR)
    _errors: float | None = PrivateAttr(None)
    _confidence: float = PrivateAttr(DEFAULT_CONFIDENCE)

    @field_validator("progress_tokens")
    @classmethod
    def _some_left(cls, progress: float | None, info: ValidationInfo) -> float | None:
        whole = info.data.get("tokens", math.inf) * info.data.get("epochs", math.inf)
        if progress is not None and progress >= whole:
            refuse("out-of-range", f"{FIELD} is {progress:.6g} tokens; the job has {whole:.6g}, so nothing is left",
                   "leave the job out, or raise tokens or epochs")  # fmt: skip
        return progress

    @model_validator(mode="after")
    def _pinned(self) -> TrainingJob:
        """What the layout fixes of memory takes the place of the job's own lists."""
        for name in ("sharding", "recompute") if self.layout is not None else ():
            fixed, listed = getattr(self.layout, name), getattr(self, name)
            if fixed is None:
                continue
            if name in self.model_fields_set and not set(fixed) <= set(listed):
                text = f"'layout' has {name} {', '.join(fixed)}, '{name}' is {', '.join(listed)}"
                refuse("conflict", text, f"leave '{name}' out, or name it there too")
            self.__dict__[name] = tuple(fixed)
        return self

    @property
    def tier(self) -> Estimator:
        """The estimator asked for, by the job or by the whole scenario."""
        return self._tier

    @property
    def confidence_share(self) -> float:
        """Quantile of the error band at which deadline and memory must hold."""
        return self._confidence

    @property
    def errors_share(self) -> float | None:
        """Quantile of the error band to which predictions of time are taken to err; None: to none."""
        return self._errors

    @property
    def deadline_s(self) -> float:
        """Time from start to deadline."""
        given = self.deadline_given
        if isinstance(given, str):
            return self._deadline_s
        return given if given is not None else (self.hours or 0.0) * 3600

    @property
    def start_s(self) -> float:
        """Start, counted from the beginning of the plan."""
        return self._start_s

    @property
    def failures(self) -> Failures | Literal["none"] | None:
        """What the scenario says of failures: rates, "none", or nothing."""
        given = self.failures_given
        return "none" if given is not None and not given.model_fields_set else given
