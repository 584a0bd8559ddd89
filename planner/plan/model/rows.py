"""Rows of a plan: what is rented for a training job, how it is split, how long it takes and what it costs.

Numbers of all documents have their units and bounds from here.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, final

from pydantic import Field
from typing_extensions import TypedDict

Count = Annotated[int, Field(ge=0)]
Microusd = Annotated[int, Field(ge=0, description="integer micro-dollars")]
Usd = Annotated[float, Field(description="USD, for people; the micro-dollar figure beside it is exact")]


class Place(TypedDict):
    """What a row rents, where, and where its price is from."""

    offer: str
    provider: str
    region: str
    zone: str
    country: str
    device: str
    shape: str
    price_model: str
    price_microusd_per_hour: Microusd
    price_as_of: str
    price_status: str
    price_source: str
    count: Count
    "shapes"
    devices: Count
    devices_per_shape: Count


class Run(TypedDict):
    """One of the times in which a job that may pause runs."""

    start_hours: float
    end_hours: float
    jobs: Count


class Timing(TypedDict):
    """When a row runs, and who pays for its nodes."""

    start_hours: float
    "after the plan's begin"
    end_hours: float
    "when it is expected to be done; of a fleet the end of the horizon"
    funding: str
    "who pays for its nodes: the price model of its offer, or reserved: nodes of a pool, paid for under contracts"
    reserved_pool: str | None
    "the pool whose nodes it runs on; null: rented by the hour, or owned"
    runs: list[Run] | None
    "times in which a job that may pause runs; null: it does not pause"


class Energy(TypedDict):
    """Power that a row draws, rated where its owner says nothing, and its carbon.

    What follows from the machines of a row and its hours: columns of tables, classes of leaves and lines of the trace
    are made of these names.
    """

    power_w: float | None
    carbon_kg: float | None


class Memory(TypedDict):
    """Memory of one device."""

    needed_bytes: float
    usable_bytes: float
    free_bytes: float
    terms_bytes: dict[str, float]


class TrainingLayout(TypedDict):
    """How a training job is split over its devices."""

    dp: Count
    tp: Count
    pp: Count
    vpp: Count
    cp: Count
    ep: Count
    micro_batch: Count
    sharding: Literal["none", "zero-1", "zero-2", "zero-3"]
    recompute: Literal["none", "selective", "full"]
    global_batch_sequences: Count
    micro_batches: Count


class SteadyRun(TypedDict):
    """A run in which nothing fails and nothing is saved."""

    modelled: Literal[False]
    goodput: float
    "share of the wall time spent on steps that count"


class FailingRun(TypedDict):
    """Failures and checkpoints of a run."""

    modelled: Literal[True]
    goodput: float
    "share of the wall time spent on steps that count"
    checkpoint_bytes: float
    checkpoint_s: float
    "time that one checkpoint stops the job"
    checkpoint_every_s: float
    "computing time between checkpoints"
    mtbf_hours: float | None
    "of the job; null: nothing fails"
    expected_failures: float
    storage_bytes: float
    storage_usd: float | None
    "not part of the cost; null: no price was given"


RunFigures = Annotated[SteadyRun | FailingRun, Field(discriminator="modelled")]


class Work(TypedDict):
    """Model FLOPs of what is left to train, and the rate of them that a device reaches."""

    flop_per_token: float
    tokens: float
    flop_count: float
    flop_per_s_per_device: float


class Speed(TypedDict):
    """The share of the peak that a row sustains, and what the rule of thumb says of the same devices."""

    mfu: float
    mfu_source: str
    peak_flop_per_s: float
    work: Work
    "model FLOPs of what is left to train, and the rate of them that a device reaches"
    rule_hours: float
    "by the rule of thumb on the same devices"


class Spread(TypedDict):
    """A predicted figure over its error band."""

    p10: float
    p50: float
    p90: float
    at_confidence: float


class MeasuredError(TypedDict):
    """Measured over predicted, on rows that were not used to fit."""

    p10: float
    p50: float
    p90: float
    rows: Count
    sources: Count
    median_error: float
    mean_error: float
    p90_error: float
    margin: float
    "what the prediction is multiplied with to hold at the confidence; at least 1"


Tier = Literal["rule", "analytic", "measured"]
Tag = Literal["measured", "calibrated", "inherited", "unfitted", ""]


class RowBand(TypedDict):
    """How far the figures of a row may be off."""

    confidence: float
    "share of cases in which deadline and memory are to hold"
    tier: Tier
    family: str
    constants: str
    "id of the fitted constants; empty where none were used"
    inherited_from: str
    tag: Tag
    "measured: by the user; calibrated: on rows of this device; inherited: of its family; unfitted: of other families"
    time: MeasuredError | None
    "measured over predicted time, on rows that were not used to fit; null: measured, or not known"
    memory: MeasuredError | None
    "measured over predicted memory, on rows that were not used to fit; null: not known"
    hours: Spread
    "wall time over its band"
    cost_usd: Spread
    "cost over the band of the time"
    needed_bytes: Spread
    "memory of the fullest device over its band"


class Mix(TypedDict):
    """A group of a job that shares its batch among several offers."""

    name: str
    "the same on all rows of a mix"
    groups: Count
    share: float
    "of the batch"
    sequences: Count
    "of a step, of this group"
    batch_sequences: Count
    group_step_s: float
    "of this group for its share"
    compute_s: float
    "of the slowest group"
    synchronisation_s: float
    "reducing gradients among the groups, in a step"
    traffic_microusd: Microusd
    "of the cost: gradients sent to other zones"


class Switch(TypedDict):
    """A part of a job that begins on spot and ends on demand."""

    name: str
    "the same on both rows of a switch"
    part: Count
    "1 before the switch, 2 after it"
    parts: Count
    share: float
    "of the work, as predicted"
    share_at_confidence: float
    "of the work, at the confidence: what spot surely does before the switch, and the rest"
    switch_hours: float
    "after the start of the job"
    checkpoint_s: float
    "to save what the other machines go on from; of the hours of the first part"
    restart_s: float
    "until the job runs again; of the hours of the second part"


class OnNode(TypedDict):
    """Replicas of a row on one shared node, or jobs of one."""

    node: Count
    "number of the node among the shared ones of its offer, from 0"
    replicas: Count


class MixedRow(Place, Timing):
    """What a row of a training job tells without the catalog; speed and energy are added by who knows it."""

    jobs: Count
    "identical jobs on this layout; count and devices are of all of them"
    layout: TrainingLayout
    hours: float
    finish_hours: float
    deadline_hours: float
    cost_microusd: Microusd
    cost_usd: Usd
    memory: Memory
    time_terms_s: dict[str, float]
    binds: dict[str, float]
    "share of the time by resource, largest first"
    run: RunFigures
    "failures and checkpoints; without them the wall time is that of the steps"
    step_time_ratio: float | None
    "measured over predicted step time of the run under way; null: none on this device"
    error_band: RowBand
    "how far the figures of this row may be off"
    device_hours: float
    mix: NotRequired[Mix]
    "only of a row that is one of several groups of a job (mix_within_job)"
    switch: NotRequired[Switch]
    "only of a row that is one of the two parts of a job that changes machines (switch_within_job)"
    shared: NotRequired[list[OnNode]]
    (
        "nodes of fleets that its jobs stand on, each on `devices_per_shape` devices of one; its cost is what it bears "
        "of all shared nodes of the offer; left out: its nodes are its own"
    )


class SwitchedRow(MixedRow):
    """What a part of a switch tells without the catalog, and what a row of any job tells."""

    held_hours: float
    "how long it is planned to hold its machines: its run at the confidence asked for"
    software: NotRequired[list[str]]
    "formats of plan export of the programs that run it, those that it was predicted for first; none: code of one's own"
    billed_hours: float
    "what each machine is paid for: the run with boot and set-up, in whole increments, at least the minimum"


@final
class TrainingAllocation(SwitchedRow, Speed, Energy):
    """What is rented for a training job on one offer."""
