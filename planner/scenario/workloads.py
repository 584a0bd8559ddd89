"""Workloads of a scenario: training jobs and serving fleets."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from planner.scenario.fields import (
    FIELD,
    ArrivalRate,
    BatchBound,
    BatchSize,
    Confidence,
    Count,
    CountOrZero,
    Duration,
    Epochs,
    Factor,
    FilePath,
    Hours,
    Length,
    Name,
    OneOrMany,
    Parameters,
    Pattern,
    PricePerTokens,
    Ratio,
    RequestsPerMinute,
    Share,
    ShareOrZero,
    Start,
    TokenRate,
    Tokens,
    refuse,
    written,
)
from planner.scenario.lengths import Lengths, lengths_branch
from planner.scenario.part import Part
from planner.scenario.runs import (
    Estimator,
    Failures,
    Lora,
    Recompute,
    Sharding,
    StepTime,
    failures_branch,
    step_time_branch,
)
from planner.scenario.terms import Data

if TYPE_CHECKING:
    from planner.traffic import Traffic
    from planner.traffic.rates import Rates

DEFAULT_CONFIDENCE = 0.9
DEFAULT_ESTIMATOR: Estimator = "analytic"
_API_PRICE = re.compile(r"\$(?P<usd>\d+(?:\.\d+)?) ?/ ?1(?P<many>[kMB]) (?:(?P<kind>input|output) )?tokens")
_MANY = {"k": 1e3, "M": 1e6, "B": 1e9}
Precision = Literal["fp32", "fp16", "bf16", "fp8"]
Optimizer = Literal[
    "adamw", "adam", "adamw-megatron", "adamw-fsdp", "adamw-deepspeed", "adamw-pure-bf16", "adamw-bf16-moments",
    "adamw-8bit", "adamw-8bit-no-master", "adafactor", "adafactor-momentum", "sgd", "sgd-momentum", "muon",
]  # fmt: skip
Framework = Literal["megatron", "fsdp", "deepspeed", "maxtext", "neuron", "pytorch", "jax", "tensorflow"]
Format = Literal["fp32", "fp16", "bf16", "fp8", "fp8-block", "int8", "int4", "q4_k_m", "mxfp4", "nvfp4"]


def _model_branch(value: object) -> object:
    """A bare text is short for {preset: text}."""
    return value if isinstance(value, Mapping | Part) else {"preset": value}


class ModelRef(Part):
    """What is trained or served: a preset by name, a config.json, or a bare number of parameters."""

    preset: Pattern | None = Field(None, description="name of a shipped preset")
    config: FilePath | None = Field(None, description="config.json or its folder, from the scenario file")
    parameters: Parameters | None = Field(None, description="coarse: only the size is known")

    @model_validator(mode="after")
    def _one_of_three(self, info: ValidationInfo) -> ModelRef:
        given = [key for key in ("preset", "config", "parameters") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "says nothing" if not given else f"gives {' and '.join(given)}"
            refuse("missing-field" if not given else "conflict", f"{FIELD} {what}; it wants one way to say what it is",
                   "write a preset's name, {config: path/to/config.json} or {parameters: 8B}")  # fmt: skip
        folder = (info.context or {}).get("folder")
        if self.config is not None and folder:
            self.__dict__["config"] = os.path.normpath(os.path.join(folder, self.config))  # noqa: PTH118
        return self


class Batch(Part):
    """Sequences or tokens of one optimizer step: a range; one value is a range of its own."""

    least: BatchBound = Field(alias="min")
    most: BatchBound = Field(alias="max")

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

    attention: Literal["flash", "eager"] = "flash"
    cross_entropy: Literal["standard", "fused", "chunked"] = "fused"
    allocator: Literal["default", "expandable", "variable"] = "default"


class TrainingJob(Part):
    """One training job: what is trained, on how much, by when."""

    name: Name
    model: Annotated[ModelRef, BeforeValidator(_model_branch)]
    estimator: Estimator | None = None
    confidence: Confidence | None = None
    tokens: Tokens
    epochs: Epochs = 1.0
    deadline_given_s: Duration | None = Field(None, alias="deadline", description="counted from the start")
    hours: Hours | None = Field(None, description="the deadline as a bare number of hours")
    start: Start | None = Field(None, description="a date, or a delay from the beginning of the plan")
    sequence_length: Length | None = None
    global_batch: Annotated[Batch | None, BeforeValidator(_batch_branch)] = None
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    recompute: OneOrMany[Recompute] = ("none", "selective", "full")
    sharding: OneOrMany[Sharding] = ("none", "zero-1", "zero-2", "zero-3")
    framework: Framework | None = None
    stack: Stack = Field(default_factory=Stack)
    mfu: Mapping[Pattern, Share] = Field(default_factory=dict, description="measured share of peak by device pattern")
    count: Count = 1
    critical_batch_tokens: Tokens | None = Field(None, alias="critical_batch")
    failures_given: Annotated[Failures | None, BeforeValidator(failures_branch)] = Field(None, alias="failures")
    checkpoint_every_s: Duration | None = Field(None, alias="checkpoint_every")
    lora: Lora | None = None
    offload: OneOrMany[Literal["optimizer", "activations"]] | None = None
    mix_within_job: bool = False
    progress_tokens: Tokens | None = Field(None, alias="progress", description="trained already, all epochs together")
    step_time: Annotated[StepTime | None, BeforeValidator(step_time_branch)] = None
    after: OneOrMany[Name] | None = None
    schedule: Literal["fixed", "elastic"] = "fixed"
    data: Data | None = None
    gradient_compression: Factor | None = None

    _start_s: float = PrivateAttr(0.0)
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
        return self.deadline_given_s if self.deadline_given_s is not None else (self.hours or 0.0) * 3600

    @property
    def start_s(self) -> float:
        """Start, counted from the beginning of the plan."""
        return self._start_s

    @property
    def failures(self) -> Failures | Literal["none"] | None:
        """What the scenario says of failures: rates, "none", or nothing."""
        given = self.failures_given
        return "none" if given is not None and not given.model_fields_set else given


class Slo(Part):
    """Latency targets: of the first token, and of the mean time between the others of a request."""

    ttft_p50_s: Duration | None = Field(None, alias="ttft_p50")
    ttft_p95_s: Duration | None = Field(None, alias="ttft_p95")
    ttft_p99_s: Duration | None = Field(None, alias="ttft_p99")
    tpot_p50_s: Duration | None = Field(None, alias="tpot_p50")
    tpot_p95_s: Duration | None = Field(None, alias="tpot_p95")
    tpot_p99_s: Duration | None = Field(None, alias="tpot_p99")

    @property
    def given_s(self) -> dict[str, float]:
        """The targets that are given, "ttft_p95" -> seconds."""
        values = {name.removesuffix("_s"): getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value is not None}


class Speculative(Part):
    """Speculative decoding."""

    length: Count
    acceptance: Share


class EngineLimits(Part):
    """Limits of the serving engine; what is not given is the engine's own default."""

    max_num_seqs: Count | None = None
    max_num_batched_tokens: Length | None = None
    memory_fraction: Share | None = Field(None, description="as the engine means it; else its own default")


class Autoscaling(Part):
    """How replicas come and go."""

    start_up_s: Duration = Field(alias="start_up")


def _disaggregated(value: object) -> object:
    """Auto, true or false, as text: one type inside."""
    if isinstance(value, bool):
        return str(value).lower()
    if value in ("auto", "true", "false"):
        return value
    refuse("not-one-of", f"{FIELD} is {written(value)}; it must be one of auto, true, false", "write auto")


class ServingFleet(Part):
    """One fleet: a model served at a rate."""

    name: Name
    model: Annotated[ModelRef | None, BeforeValidator(_model_branch)] = None
    estimator: Estimator | None = None
    confidence: Confidence | None = None
    weights: Format = "bf16"
    kv_cache: Format = "bf16"
    requests_per_minute: RequestsPerMinute | None = Field(None, alias="qpm", description="mean requests per minute")
    peak_factor_given: Factor | None = Field(
        None, alias="peak_factor", description="peak over mean; default 2, with a profile or trace what that shows"
    )
    target_load: Share = 0.8
    input_length: Annotated[Lengths | None, BeforeValidator(lengths_branch)] = Field(None, alias="input_tokens")
    output_length: Annotated[Lengths | None, BeforeValidator(lengths_branch)] = Field(None, alias="output_tokens")
    throughput_tokens_per_s_per_device: TokenRate | None = Field(
        None, alias="throughput", description="output tokens per second and device that you measured"
    )
    speed_tokens_per_s_per_user: TokenRate | None = Field(None, alias="speed")
    slo: Slo | None = None
    spare_replicas: CountOrZero = 0
    min_replicas: CountOrZero = 0
    availability: Share | None = None
    max_spot_share: ShareOrZero | None = None
    integer_slices: bool = False
    engine: Pattern | None = None
    limits: EngineLimits = Field(default_factory=lambda: EngineLimits.model_validate({}))
    prefix_cached: ShareOrZero | None = None
    speculative: Speculative | None = None
    disaggregated: Annotated[Literal["auto", "true", "false"], BeforeValidator(_disaggregated)] = "false"
    variability_given: Ratio | None = Field(
        None, alias="arrival_variability", description="c_a^2; default 1 (Poisson), with a trace what that shows"
    )
    load_profile: FilePath | None = None
    autoscaling: Autoscaling | None = None
    api_price: PricePerTokens | None = None
    trace: FilePath | None = None
    requests_per_s: ArrivalRate | None = Field(None, alias="requests")
    histogram: FilePath | None = None
    profile: FilePath | None = None

    _tier: Estimator = PrivateAttr(DEFAULT_ESTIMATOR)
    _confidence: float = PrivateAttr(DEFAULT_CONFIDENCE)

    @property
    def tier(self) -> Estimator:
        """The tier that predicts: a throughput that was measured wins, unless the rule is asked for."""
        if self._tier != "rule" and self.throughput_tokens_per_s_per_device is not None:
            return "measured"
        return DEFAULT_ESTIMATOR if self._tier == "measured" else self._tier

    @property
    def confidence_share(self) -> float:
        """Quantile of the error band at which the latency targets must hold."""
        return self._confidence

    @property
    def targets_s(self) -> dict[str, float]:
        """Latency targets that are given, "ttft_p95" -> seconds."""
        return self.slo.given_s if self.slo else {}

    @property
    def api_usd_per_token(self) -> tuple[float, str] | None:
        """Price of one token of an API, and which tokens it counts: input, output, or all."""
        match = _API_PRICE.fullmatch(self.api_price or "")
        if match is None:
            return None
        return float(match["usd"]) / _MANY[match["many"]], match["kind"] or "all"

    _traffic: Traffic | None = PrivateAttr(None)
    _rates: Rates | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _resolve(self, info: ValidationInfo) -> ServingFleet:
        folder = (info.context or {}).get("folder")
        for key in ("trace", "histogram", "profile", "load_profile"):
            path = getattr(self, key)
            if path is not None and folder:
                self.__dict__[key] = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118
        return self

    @property
    def traffic(self) -> Traffic:
        """What the fleet is asked for; its files are read when the scenario is loaded, else on first use."""
        from planner.scenario.demand import traffic_of

        self._traffic = self._traffic or traffic_of(self)
        return self._traffic

    @property
    def rates(self) -> Rates | None:
        """Measured rates of offers, in the order of the traffic's buckets; None without a `profile:`."""
        from planner.scenario.demand import rates_of

        self._rates = self._rates or rates_of(self)
        return self._rates

    @property
    def qpm(self) -> float:
        """Mean requests per minute."""
        return self.requests_per_minute if self.requests_per_minute is not None else self.traffic.requests_per_s * 60

    @property
    def peak_factor(self) -> float:
        """Planned peak over the mean rate."""
        return self.traffic.peak_factor

    @property
    def arrival_variability(self) -> float:
        """Squared variation of the gaps between arrivals; 1 = Poisson."""
        return self.traffic.arrival_variability

    @property
    def input_tokens(self) -> float:
        """Mean prompt tokens of a request."""
        return self.traffic.mean_input_tokens

    @property
    def output_tokens(self) -> float:
        """Mean generated tokens of a request."""
        return self.traffic.mean_output_tokens
