"""Mappings that jobs and fleets of a scenario are made of: the model, lengths, how a run goes, layouts that are fixed.

What is trained or served is a preset, a configuration, or a bare size. Lengths of prompts and answers are a number, a
mean with a percentile, or a histogram. Of a run: failures, and one that is already under way. `layout` of a workload is
one, or a choice of few, as a mapping or in words, "tp2 pp1 zero-3".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from planner.scenario.fields import (
    FIELD,
    Count,
    DataRate,
    Duration,
    FilePath,
    Latency,
    Many,
    OneOrMany,
    Parameters,
    Pattern,
    Share,
    ShareOrZero,
    Tokens,
    from_file,
    refuse,
    written,
)
from planner.scenario.money_fields import StoragePrice
from planner.traffic.model import HIGHEST_P95_OVER_MEAN, SHARE_TOLERANCE, LengthMoments


class Part(BaseModel):
    """A mapping of the scenario: strict, frozen, no unknown fields."""

    # validators are built on first use: as parts of the whole scenario, and not also each on its own
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)


_BARE_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?[bBmMT]")


def model_branch(value: object) -> object:
    """A bare text is short for {preset: text}; a size, "13b", for {parameters: 13b}."""
    if isinstance(value, Mapping | Part):
        return value
    return {"parameters": value} if isinstance(value, str) and _BARE_SIZE.fullmatch(value) else {"preset": value}


class ModelRef(Part):
    """What is trained or served: a preset by name, a config.json, or a bare number of parameters."""

    preset: Pattern | None = Field(None, description="name of a shipped preset, or of its model on Hugging Face")
    config: FilePath | None = Field(None, description="config.json or its folder, from the scenario file")
    parameters: Parameters | None = Field(None, description="coarse: only the size is known")

    @model_validator(mode="after")
    def _one_of_three(self, info: ValidationInfo) -> ModelRef:
        given = [key for key in ("preset", "config", "parameters") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "says nothing" if not given else f"gives {' and '.join(given)}"
            refuse("missing-field" if not given else "conflict", f"{FIELD} {what}; it wants one way to say what it is",
                   "write a preset's name, {config: path/to/config.json} or {parameters: 8B}")  # fmt: skip
        if self.config is not None:
            self.__dict__["config"] = from_file(self.config, info)
        return self


_RANGE = f"write a p95 of 1 to {HIGHEST_P95_OVER_MEAN:.2f} times the mean, or a histogram"


class Bucket(Part):
    """One class of a histogram of lengths."""

    tokens: Tokens = Field(description="tokens of this class")
    share: Share = Field(description="share of all requests; all classes add up to 1")


class Lengths(Part):
    """Tokens of a request: a mean, with a percentile, or a histogram."""

    mean: Tokens | None = Field(None, description="mean tokens")
    p95: Tokens | None = Field(
        None, description="95th percentile, 1 to 3.87 times the mean; lengths are log-normal then"
    )
    histogram: Many[Bucket] | None = Field(None, description="classes of lengths with their shares")

    @model_validator(mode="after")
    def _one_way(self) -> Lengths:
        if (self.mean is None) == (self.histogram is None):
            refuse("missing-field", f"{FIELD} wants a mean or a histogram", "write 1500 or {mean: 1500, p95: 4000}")
        if self.histogram is not None:
            self._whole(self.histogram)
        elif self.p95 is not None and not 1 <= self.p95 / (self.mean or 1) <= HIGHEST_P95_OVER_MEAN:
            refuse("out-of-range", f"{FIELD} has the mean {self.mean:g} and the p95 {self.p95:g}: no log-normal "
                   "distribution has both", _RANGE)  # fmt: skip
        return self

    def _whole(self, histogram: tuple[Bucket, ...]) -> None:
        if self.p95 is not None:
            refuse("conflict", f"{FIELD} has a histogram and a p95", "leave p95 out: the histogram says more")
        whole = sum(bucket.share for bucket in histogram)
        if abs(whole - 1) > SHARE_TOLERANCE:
            refuse("out-of-range", f"the shares of {FIELD} add up to {whole:.4g}; they must add up to 1",
                   "give every class its share of all requests")  # fmt: skip

    @property
    def moments(self) -> LengthMoments:
        """Mean and second moment: of one length, of a log-normal by mean and p95, or of the histogram."""
        if self.histogram is not None:
            return LengthMoments.histogram([(bucket.tokens, bucket.share) for bucket in self.histogram])
        mean = self.mean or 0.0
        return LengthMoments.constant(mean) if self.p95 is None else LengthMoments.lognormal(mean, self.p95)


def lengths_branch(value: object) -> object:
    """A bare number is a mean, a list a histogram."""
    if isinstance(value, list):
        return {"histogram": value}
    return value if isinstance(value, Mapping | Part) else {"mean": value}


Estimator = Literal["rule", "analytic", "measured"]
DEFAULT_CONFIDENCE = 0.9
DEFAULT_ESTIMATOR: Estimator = "analytic"
Recompute = Literal["none", "selective", "full"]
Sharding = Literal["none", "zero-1", "zero-2", "zero-3"]


class Failures(Part):
    """How often devices fail and what it costs to go on; what is not given takes its default."""

    mtbf_per_device_s: Duration | None = Field(
        None, alias="mtbf_per_device", description="mean time between failures of one device and its share of the host"
    )
    checkpoint_bandwidth_bytes_per_s: DataRate | None = Field(
        None, alias="checkpoint_bandwidth", description="of one host into storage; all hosts write at once"
    )
    restart_s: Latency | None = Field(None, alias="restart", description="from a noticed failure to useful steps")
    detection_s: Latency | None = Field(None, alias="detection", description="from a failure to its notice")
    checkpoint: Literal["sync", "async"] = Field("sync", description="async: only the copy to the host stops the job")
    stragglers: ShareOrZero | None = Field(None, description="spread of a device's step time, as a share of it")
    scale_loss: ShareOrZero | None = Field(
        None, description="share of the time that many hosts cost beyond failures: half of it on two, none on one"
    )
    checkpoints_kept: Count | None = Field(None, description="checkpoints that storage holds at once; left out: 2")
    storage_usd_per_gb_month: StoragePrice | None = Field(
        None, alias="storage_price", description="price of keeping checkpoints, added to the cost; left out: free"
    )


def failures_branch(value: object) -> object:
    """None, or a mapping of rates."""
    if value == "none":
        return {}
    if not isinstance(value, Mapping | Part):
        refuse("not-one-of", f"{FIELD} is {written(value)}; it must be none, or a mapping of rates",
               "write none or {mtbf_per_device: 50000 h, restart: 10 min}")  # fmt: skip
    return value


class GivenLayout(Part):
    """How a run under way is split; what is not given is taken to be the fastest that fits."""

    dp: Count | None = Field(None, description="data-parallel replicas")
    tp: Count | None = Field(None, description="tensor-parallel ranks")
    pp: Count | None = Field(None, description="pipeline stages")
    vpp: Count | None = Field(None, description="virtual stages of each pipeline rank")
    cp: Count | None = Field(None, description="context-parallel ranks")
    ep: Count | None = Field(None, description="expert-parallel ranks")
    micro_batch: Count | None = Field(None, description="sequences of one pass of a replica")
    sharding: Sharding | None = Field(None, description="ZeRO stage")
    recompute: Recompute | None = Field(None, description="recomputation policy")


class StepTime(Part):
    """Time of one optimizer step as measured, and where."""

    measured_s: Latency = Field(alias="measured", description="time of one optimizer step")
    shape: Pattern | None = Field(None, description="shape that it was measured on; else the one that is owned")
    count: Count | None = Field(None, description="shapes of the run; else all that are owned")
    layout: GivenLayout = Field(
        default_factory=lambda: GivenLayout.model_validate({}), description="how the measured run is split"
    )


def step_time_branch(value: object) -> object:
    """A bare time is short for {measured: time}."""
    return value if isinstance(value, Mapping | Part) else {"measured": value}


class Lora(Part):
    """Low-rank adapters instead of all weights."""

    rank: Count = Field(description="rank of the adapters")
    base: Literal["bf16", "fp16", "nf4", "int8"] = Field("bf16", description="format of the frozen weights")


SERVING_SIZES = ("tp", "pp", "dp", "ep", "cp")
TRAINING_SIZES = ("dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch")
_SIZE = re.compile(r"(dp|tp|pp|vpp|cp|ep|mb|micro_batch)[=:]?([1-9][0-9]{0,5})")
_STAGE = re.compile(r"(?:sharding[=:])?zero[-=:]?([0-3])")
_EXAMPLE = 'write {tp: 2, pp: 1}, or "tp2 pp1"'


class ReplicaPin(Part):
    """Sizes of a replica's layout; what is not given is free."""

    tp: OneOrMany[Count] | None = Field(None, description="tensor-parallel ranks; a list: choose")
    pp: OneOrMany[Count] | None = Field(None, description="pipeline stages; a list: choose")
    dp: OneOrMany[Count] | None = Field(None, description="attention data-parallel ranks, beside experts; or a list")
    ep: OneOrMany[Count] | None = Field(None, description="expert-parallel ranks; a list: choose")
    cp: OneOrMany[Count] | None = Field(None, description="tensor ranks that share out a cache's tokens; or a list")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """What is fixed."""
        return {name: getattr(self, name) for name in SERVING_SIZES if getattr(self, name) is not None}


class LayoutPin(Part):
    """Parts of a job's layout; what is not given is free."""

    dp: OneOrMany[Count] | None = Field(None, description="data-parallel replicas; a list: choose")
    tp: OneOrMany[Count] | None = Field(None, description="tensor-parallel ranks; a list: choose")
    pp: OneOrMany[Count] | None = Field(None, description="pipeline stages; a list: choose")
    vpp: OneOrMany[Count] | None = Field(None, description="virtual stages of each pipeline rank; a list: choose")
    cp: OneOrMany[Count] | None = Field(None, description="context-parallel ranks; a list: choose")
    ep: OneOrMany[Count] | None = Field(None, description="expert-parallel ranks; a list: choose")
    micro_batch: OneOrMany[Count] | None = Field(None, description="sequences of one pass of a replica; a list: choose")
    sharding: OneOrMany[Sharding] | None = Field(None, description="ZeRO stage, in place of the job's own list")
    recompute: OneOrMany[Recompute] | None = Field(None, description="recomputation, in place of the job's own list")

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Sizes that are fixed."""
        return {name: getattr(self, name) for name in TRAINING_SIZES if getattr(self, name) is not None}


def layout_branch(value: object) -> object:
    """A layout in words, "tp2 pp1 zero-3 mb4 full" or "tp=2,pp=1", is short for a mapping."""
    if value is None or isinstance(value, Mapping | Part):
        return value
    words = re.split(r"[\s,]+|(?<=\d)(?=[a-z])", value.strip(" ,").lower()) if isinstance(value, str) else []
    if not any(words):
        refuse("wrong-type", f"{FIELD} is {written(value)}, which is no layout", _EXAMPLE)
    found: dict[str, object] = {}
    for word in words:
        size, stage = _SIZE.fullmatch(word), _STAGE.fullmatch(word)
        kept = re.fullmatch(r"(?:recompute[=:])?(none|selective|full)", word)
        part: tuple[str, object]
        if size:
            part = ("micro_batch" if size[1] == "mb" else size[1], int(size[2]))
        elif stage:
            part = ("sharding", f"zero-{stage[1]}" if stage[1] != "0" else "none")
        elif kept:
            part = ("recompute", kept[1])
        else:
            refuse("wrong-type", f"{FIELD} has '{word[:40]}', which is no part of a layout", _EXAMPLE)
        if found.get(part[0], part[1]) != part[1]:  # the last one would count, and the first be lost
            both = f"{part[0]}: [{found[part[0]]}, {part[1]}]"
            refuse("wrong-type", f"{FIELD} has two values of {part[0]}", f"write one of them, or a list: {{{both}}}")
        found[part[0]] = part[1]
    return found
