"""Keys of a training job that say how its run goes: failures, and the run that is already under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from planner.scenario.fields import (
    FIELD,
    Count,
    DataRate,
    Duration,
    Latency,
    Pattern,
    ShareOrZero,
    refuse,
    written,
)
from planner.scenario.money import StoragePrice
from planner.scenario.part import Part

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
