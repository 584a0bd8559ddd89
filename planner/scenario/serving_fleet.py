"""One fleet of a scenario: a model served at a rate, within latency targets; and what it is asked for.

A trace says everything. Else there is a rate, qpm or requests, or there are users who think, and lengths are numbers,
distributions or a histogram. The peak is peak_factor where the user gives it; else the busiest hour of the load profile
or what the trace shows; else twice the mean rate, or all the users there are. Arrivals are as bursty as
arrival_variability says; else as the trace shows; else Poisson.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field, replace
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from planner.architecture.load import load_model, predicts_ahead, stored_format
from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.errors import InputError, Problem
from planner.scenario.fields import (
    FIELD,
    ArrivalRate,
    Confidence,
    Count,
    CountOrZero,
    Factor,
    FilePath,
    Latency,
    Length,
    Name,
    OneOrMany,
    Pattern,
    Ratio,
    RequestsPerMinute,
    Share,
    ShareBelowAll,
    ShareOrZero,
    TokenRate,
    from_file,
    refuse,
    written,
)
from planner.scenario.money_fields import PricePerTokens
from planner.scenario.workload_parts import (
    DEFAULT_CONFIDENCE,
    DEFAULT_ESTIMATOR,
    Estimator,
    Lengths,
    ModelRef,
    Part,
    ReplicaPin,
    layout_branch,
    lengths_branch,
    model_branch,
)
from planner.traffic import LengthMoments, Traffic
from planner.traffic.request_trace import read_trace
from planner.traffic.tables import Histogram, Rates, read_histogram, read_load_profile, read_rates

DEFAULT_PEAK_FACTOR = 2.0
POISSON = 1.0
_UNKNOWN = LengthMoments.constant(0.0)
Result = TypeVar("Result")
_API_PRICE = re.compile(r"\$(?P<usd>\d+(?:\.\d+)?) ?/ ?1(?P<many>[kMB]) (?:(?P<kind>input|output) )?tokens")
_MANY = {"k": 1e3, "M": 1e6, "B": 1e9}
LOADING = (None, "vllm", "sglang", "trt-llm")  # engines that load what repositories hold; None = vllm
Format = Literal[
    "fp32", "fp16", "bf16", "fp8", "fp8-block", "int8", "int4", "int4-g32", "q2_k", "q3_k_s", "q3_k_m", "q3_k_l",
    "iq4_xs", "iq4_nl", "q4_0", "q4_1", "q4_k_s", "q4_k_m", "q4f16", "q5_0", "q5_1", "q5_k_s", "q5_k_m", "q6_k", "q8_0",
    "mxfp4", "nvfp4",
]  # fmt: skip


class Slo(Part):
    """Latency targets: of the first token, and of the mean time between the others of a request."""

    ttft_p50_s: Latency | None = Field(
        None, alias="ttft_p50", description="time to the first token that half of requests stay within"
    )
    ttft_p95_s: Latency | None = Field(
        None, alias="ttft_p95", description="time to the first token that 95 % of requests stay within"
    )
    ttft_p99_s: Latency | None = Field(
        None, alias="ttft_p99", description="time to the first token that 99 % of requests stay within"
    )
    tpot_p50_s: Latency | None = Field(
        None,
        alias="tpot_p50",
        description="mean time between the further tokens of a request that half of requests stay within",
    )
    tpot_p95_s: Latency | None = Field(
        None,
        alias="tpot_p95",
        description="mean time between the further tokens of a request that 95 % of requests stay within",
    )
    tpot_p99_s: Latency | None = Field(
        None,
        alias="tpot_p99",
        description="mean time between the further tokens of a request that 99 % of requests stay within",
    )
    spread: Factor = Field(
        3.0,
        description="so many times a target is what every class of a histogram keeps by itself at its own percentile",
    )

    @property
    def given_s(self) -> dict[str, float]:
        """The targets that are given, "ttft_p95" -> seconds."""
        values = {name: getattr(self, name) for name in type(self).model_fields if name.endswith("_s")}
        return {name.removesuffix("_s"): value for name, value in values.items() if value is not None}


class Speculative(Part):
    """Speculative decoding."""

    length: Count = Field(description="draft tokens proposed in one step")
    acceptance: Share = Field(description="share of draft tokens that the model accepts")
    model: Annotated[ModelRef | None, BeforeValidator(model_branch)] = Field(
        None,
        description="the draft model, in the format that it is published in; left out: one further layer of the model, "
        "as heads of EAGLE and layers of multi-token prediction are",
    )

    _draft: Architecture | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _has_layers(self) -> Speculative:
        if self.model is not None and self.model.parameters is not None:
            refuse("no-layers", f"{FIELD} names a draft model of which only the size is known, not what it caches",
                   "name a preset, such as llama-3.2-1b, or a config.json")  # fmt: skip
        return self

    @property
    def draft(self) -> Architecture | None:
        """The draft model; None where a further layer of the model drafts."""
        if self.model is not None and self._draft is None:
            self._draft = load_model(self.model.config or self.model.preset or "")
        return self._draft


class EngineLimits(Part):
    """Limits of the serving engine; what is not given is the engine's own default."""

    max_num_seqs: Count | None = Field(
        None,
        description="sequences at once, as the engine's option counts them: of vLLM and TensorRT-LLM those of each "
        "attention rank (dp); left out: its default for the device",
    )
    max_num_batched_tokens: Length | None = Field(
        None,
        description="tokens of one step, counted in the same way; left out: the engine's default for the device",
    )
    memory_fraction: Share | None = Field(None, description="as the engine means it; else its own default")


class Autoscaling(Part):
    """How replicas come and go."""

    start_up_s: Latency = Field(
        alias="start_up",
        description="from the wish for a replica until it serves; capacity is held that long ahead of the load",
    )


def _disaggregated(value: object) -> object:
    """Auto, true or false, as text: one type inside."""
    if isinstance(value, bool):
        return str(value).lower()
    if value in ("auto", "true", "false"):
        return value
    refuse("not-one-of", f"{FIELD} is {written(value)}; it must be one of auto, true, false", "write auto")


def _published_in(model: ModelRef) -> str:
    """The format of a model's repository; "" for 16 bits, or an unknown one, which is told later with its place."""
    try:
        return stored_format(model.preset, model.config)
    except InputError:
        return ""


class ServingFleet(Part):
    """One fleet: a model served at a rate."""

    name: Name = Field(description="what the fleet is called in the plan, in --set and in overrides")
    model: Annotated[ModelRef | None, BeforeValidator(model_branch)] = Field(
        None,
        description="a preset, {config: path/to/config.json} or {parameters: 8B}; not needed with a profile",
    )
    estimator: Estimator | None = Field(
        None, description="the tier that predicts this fleet; left out: that of the scenario"
    )
    confidence: Confidence | None = Field(
        None, description="end of the error band at which latency targets must hold; left out: that of the scenario"
    )
    weights: Format = Field(
        "bf16",
        description="storage format of the weights, and of the products where the device has such units; left out: "
        "bf16, or the other format that the model is published in, where the engine loads what repositories hold",
    )
    kv_cache: Format = Field("bf16", description="storage format of keys and values")
    requests_per_minute: RequestsPerMinute | None = Field(None, alias="qpm", description="mean requests per minute")
    users: Count | None = Field(
        None,
        description="people or agents, each of whom waits for an answer, thinks, and sends the next request",
    )
    think_time_s: Latency | None = Field(
        None, alias="think_time", description="mean time from an answer to the next request of the same user"
    )
    peak_factor_given: Factor | None = Field(
        None,
        alias="peak_factor",
        description="peak over mean; default 2, of users 1, with a profile or trace what that shows",
    )
    target_load: Share = Field(
        0.8, description="share of the load that fills a replica that may be planned; targets hold at what is planned"
    )
    input_length: Annotated[Lengths | None, BeforeValidator(lengths_branch)] = Field(
        None, alias="input_tokens", description="prompt tokens of a request: a number, {mean:, p95:} or a histogram"
    )
    output_length: Annotated[Lengths | None, BeforeValidator(lengths_branch)] = Field(
        None, alias="output_tokens", description="answer tokens of a request: a number, {mean:, p95:} or a histogram"
    )
    throughput_tokens_per_s_per_device: TokenRate | None = Field(
        None, alias="throughput", description="output tokens per second and device that you measured"
    )
    speed_tokens_per_s_per_user: TokenRate | None = Field(
        None, alias="speed", description="tokens per second of one user, for the rule of thumb printed beside the plan"
    )
    slo: Slo | None = Field(
        None, description="latency targets; without any, replicas are sized by memory and load alone"
    )
    spare_replicas: CountOrZero = Field(
        0, description="replicas beyond those that the load needs; availability takes their place"
    )
    min_replicas: CountOrZero = Field(0, description="fewest replicas, spares included, however small the load")
    availability: ShareBelowAll | None = Field(
        None,
        description="share of the time that enough replicas must be up; spares are counted from the devices' failures",
    )
    max_spot_share: ShareOrZero | None = Field(
        None,
        description="greatest share of the capacity that may stand on spot shapes; left out: none",
    )
    regions: OneOrMany[Pattern] = Field(
        ("*",),
        description="where it may stand, rented or owned, as hardware.regions: near users, or where data must stay",
    )
    integer_slices: bool = Field(
        False, description="whole shares of the traffic for each kind of replica, as routers without weights give them"
    )
    layout: Annotated[ReplicaPin | None, BeforeValidator(layout_branch)] = Field(
        None, description='what is fixed of a replica: {tp: 2, pp: 1}, or "tp2 pp1"; left out: the planner chooses'
    )
    engine: Pattern | None = Field(
        None, description="serving engine whose memory, limits and speed are predicted; left out: vllm"
    )
    limits: EngineLimits = Field(
        default_factory=lambda: EngineLimits.model_validate({}), description="limits of the engine that you run it with"
    )
    prefix_cached: ShareOrZero | None = Field(
        None, description="share of the prompt tokens found in the prefix cache: not computed again"
    )
    speculative: Speculative | None = Field(
        None, description="speculative decoding: a draft of several tokens checked in one step"
    )
    disaggregated: Annotated[Literal["auto", "true", "false"], BeforeValidator(_disaggregated)] = Field(
        "false", description="separate pools for prefill and decode: never, always, or where it costs less"
    )
    variability_given: Ratio | None = Field(
        None, alias="arrival_variability", description="c_a^2; default 1 (Poisson), with a trace what that shows"
    )
    load_profile: FilePath | None = Field(
        None, description="CSV with hour and weight: the load over a day or week, for the peak and for autoscaling"
    )
    autoscaling: Autoscaling | None = Field(None, description="let the number of replicas follow the load profile")
    api_price: PricePerTokens | None = Field(
        None, description='price of an API to print beside ours, such as "$0.90 /1M output tokens"'
    )
    trace: FilePath | None = Field(
        None, description="CSV with timestamp, input_tokens, output_tokens: in place of rate and lengths"
    )
    requests_per_s: ArrivalRate | None = Field(
        None, alias="requests", description="mean requests as a rate, in place of qpm"
    )
    histogram: FilePath | None = Field(
        None, description="CSV with input_bucket, output_bucket, fraction: in place of lengths"
    )
    profile: FilePath | None = Field(
        None, description="CSV with measured rates of offers: no model or catalog is needed then"
    )

    _tier: Estimator = PrivateAttr(DEFAULT_ESTIMATOR)
    _confidence: float = PrivateAttr(DEFAULT_CONFIDENCE)

    @property
    def tier(self) -> Estimator:
        """The tier that predicts: a throughput that was measured wins, unless the rule is asked for."""
        tier = self._tier  # each look at it takes a while
        if tier != "rule" and self.throughput_tokens_per_s_per_device is not None:
            return "measured"
        return DEFAULT_ESTIMATOR if tier == "measured" else tier

    @property
    def confidence_share(self) -> float:
        """Quantile of the error band at which the latency targets must hold."""
        return self._confidence

    @property
    def draft_format(self) -> str:
        """Format of what drafts: as a model is published, of a layer of the model's own its weights, else 16 bits."""
        named = self.speculative.model if self.speculative else None
        if named is not None:
            return _published_in(named) or "bf16"
        return self.weights if self.drafts_itself else "bf16"

    @property
    def drafts_itself(self) -> bool:
        """Whether tokens are drafted by a layer that the model's repository holds for it, as that of DeepSeek-V3."""
        own, drafts = self.model, self.speculative
        return bool(drafts and drafts.model is None and own and predicts_ahead(own.preset, own.config))

    @property
    def targets_s(self) -> dict[str, float]:
        """Latency targets that are given, "ttft_p95" -> seconds."""
        return self.slo.given_s if self.slo else {}

    @property
    def spread(self) -> float:
        """So many times a target is what each class of requests keeps; infinite where no classes are told apart."""
        return self.slo.spread if self.slo and self.traffic.classes else math.inf

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
        for key in ("trace", "histogram", "profile", "load_profile"):
            path = getattr(self, key)
            if path is not None:
                self.__dict__[key] = from_file(path, info)
        if "weights" not in self.model_fields_set and self.model is not None and self.engine in LOADING:
            self.__dict__["weights"] = _published_in(self.model) or self.weights
        return self

    @property
    def traffic(self) -> Traffic:
        """What the fleet is asked for; its files are read when the scenario is loaded, else on first use."""
        self._traffic = self._traffic or traffic_of(self)
        return self._traffic

    @property
    def rates(self) -> Rates | None:
        """Measured rates of offers, in the order of the traffic's buckets; None without a `profile:`."""
        self._rates = self._rates or rates_of(self)
        return self._rates

    @property
    def qpm(self) -> float:
        """Mean requests per minute; nan where users send them: it follows from what serves them."""
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


@dataclass(slots=True)
class Demand:
    """Traffic and measured rates of a fleet, and what is wrong with its files, by the key that names them."""

    traffic: Traffic | None = None
    rates: Rates | None = None
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def read(self, key: str, path: str | None, reader: Callable[[str], Result]) -> Result | None:
        """What a file holds; None, and its problems noted, when it cannot be read.

        Parameters
        ----------
        key
            Of the fleet, that names the file; problems are noted under it.
        path
            The file; None: none is named, and nothing is noted.
        reader
            Reads a file, and says what is wrong with it by `InputError`.
        """
        try:
            return reader(path) if path is not None else None
        except InputError as error:
            self.problems += [(key, problem) for problem in error.problems]
            return None


def read_demand(fleet: ServingFleet) -> Demand:
    """Read the files that a fleet names; every problem of all of them is kept."""
    demand = Demand()
    traffic = _traced(fleet, demand) if fleet.trace is not None else _described(fleet, demand)
    if traffic is None or demand.problems:
        return demand
    demand.rates = demand.read("profile", fleet.profile, lambda path: read_rates(path, traffic.buckets))
    demand.traffic = traffic
    return demand


def traffic_of(fleet: ServingFleet) -> Traffic:
    """The traffic of a fleet; `InputError` when a file of it cannot be read."""
    demand = _demanded(fleet)
    assert demand.traffic is not None
    return demand.traffic


def rates_of(fleet: ServingFleet) -> Rates | None:
    """The measured rates of a fleet, None when it names none; `InputError` when a file cannot be read."""
    return _demanded(fleet).rates if fleet.profile is not None else None


def _demanded(fleet: ServingFleet) -> Demand:
    demand = read_demand(fleet)
    if demand.problems:
        raise InputError(*(problem for _, problem in demand.problems))
    return demand


def _traced(fleet: ServingFleet, demand: Demand) -> Traffic | None:
    trace = demand.read("trace", fleet.trace, read_trace)
    return _as_given(fleet, trace.traffic()) if trace else None


def _as_given(fleet: ServingFleet, traffic: Traffic) -> Traffic:
    """What the user says of peak and burstiness wins."""
    peak, variability = fleet.peak_factor_given, fleet.variability_given
    return replace(
        traffic,
        peak_factor=traffic.peak_factor if peak is None else peak,
        arrival_variability=traffic.arrival_variability if variability is None else variability,
    )


def _described(fleet: ServingFleet, demand: Demand) -> Traffic | None:
    profile = demand.read("load_profile", fleet.load_profile, read_load_profile)
    histogram = demand.read("histogram", fleet.histogram, read_histogram)
    unnamed = histogram.unnamed() if histogram and fleet.profile is None else None
    demand.problems += [("histogram", unnamed)] if unnamed else []
    if demand.problems:
        return None
    lengths = _of_histogram(histogram) if histogram else _of_numbers(fleet)
    traffic = replace(
        lengths,
        requests_per_s=math.nan if fleet.users else fleet.requests_per_s or (fleet.requests_per_minute or 0.0) / 60,
        users=float(fleet.users or 0),
        think_s=math.inf if fleet.think_time_s is None else fleet.think_time_s,
        peak_factor=max(profile.weights) if profile else 1.0 if fleet.users else DEFAULT_PEAK_FACTOR,
        arrival_variability=POISSON,
        profile=profile.weights if profile else (),
        files=lengths.files + (((profile.file, profile.sha256),) if profile else ()),
    )
    return _as_given(fleet, traffic)


def _of_numbers(fleet: ServingFleet) -> Traffic:
    given, made = fleet.input_length, fleet.output_length
    apart = fleet.integer_slices or fleet.disaggregated != "false" or fleet.tier != "analytic"
    together = bool(fleet.targets_s) and not apart  # as `planner.estimate.serving_tiers.blended` has it
    lengths = (given.moments if given else _UNKNOWN, made.moments if made else _UNKNOWN)
    return Traffic.of_lengths(*lengths, requests_per_s=0.0, together=together)


def _of_histogram(histogram: Histogram) -> Traffic:
    return Traffic(
        buckets=histogram.buckets,
        input_tokens=histogram.input_tokens,
        output_tokens=histogram.output_tokens,
        input_second_moment=histogram.input_tokens**2,
        output_second_moment=histogram.output_tokens**2,
        share=histogram.share,
        requests_per_s=0.0,
        files=((histogram.file, histogram.sha256),),
        classes=True,
    )
