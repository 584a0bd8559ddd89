"""Rows of a serving fleet, and its figures over all rows."""

from __future__ import annotations

from typing import Literal, NotRequired, final

from typing_extensions import TypedDict

from planner.plan.model.rows import Count, Energy, MeasuredError, Memory, Microusd, OnNode, Place, Timing, Usd

Role = Literal["whole", "prefill", "decode"]


class ServingLayout(TypedDict):
    """How a replica is split over its devices."""

    tp: Count
    pp: Count
    dp: Count
    ep: Count
    cp: Count


class ServingTier(TypedDict):
    """What predicts a row, with the error that it showed."""

    tier: str
    engine: str
    family: str
    constants: str
    tag: str
    inherited_from: str
    confidence: float
    tpot: MeasuredError | None
    ttft: MeasuredError | None
    throughput: MeasuredError | None
    "of a rate: measured over predicted"


class Percentiles(TypedDict):
    """A latency; null: not finite."""

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


class Target(TypedDict):
    """A latency target, and what is predicted for it."""

    name: str
    target_s: float
    predicted_s: float | None
    at_confidence_s: float | None
    margin: float | None
    "share of the target that is left at the confidence asked for"


class ClassTarget(TypedDict):
    """A target of one class of requests at its own percentile."""

    name: str
    at_confidence_s: float | None
    most_s: float
    "what the spread allows"


class ClassServed(TypedDict):
    """One class of requests beside the others of a replica."""

    name: str
    targets: list[ClassTarget]


class Latencies(TypedDict):
    """Latencies of one replica under its load."""

    ttft_s: Percentiles
    "time to the first token"
    tpot_s: Percentiles
    "mean time per output token of a request"
    e2e_s: Percentiles
    "whole request"
    itl_p99_s: float | None
    "between single tokens"
    classes: NotRequired[list[ClassServed]]
    "each class of a histogram at its own percentiles"


class Point(Latencies):
    """One replica at the peak that is planned for it, spares lost."""

    users: NotRequired[float]
    "of one replica"
    requests_per_s: float
    "of one replica"
    input_tokens: float
    output_tokens: float
    output_tokens_per_s: float
    batch_limit: float
    batch_limit_by: Literal["memory", "max_num_seqs"]
    sequences: float
    "mean running"
    prefill_share: float
    "of the engine's time"
    slot_wait_s: float | None
    prefill_s: float
    decode_step_s: float
    decode_terms_s: dict[str, float]
    binds: str
    targets: list[Target]
    capacity_requests_per_s: float
    "of this mix, within every target"
    sized_by: str
    "what stops a higher rate: a target, memory or max_num_seqs"


class Loads(TypedDict):
    """What a replica can take, what is sent to all of them, and how full that makes them."""

    bucket_requests_per_s: list[float]
    "what one replica takes of each bucket alone, within the latency targets"
    routed_requests_per_s: list[float]
    "peak requests of each bucket that are sent here"
    replica_requests_per_s: float
    "what one replica can sustain"
    planned_requests_per_s: float
    "share of the peak demand routed here"
    load_at_peak: float
    output_tokens_per_s_per_replica: float | None
    mean_output_tokens: float | None
    "of the requests that are sent here"


class Users(TypedDict):
    """Users of a row, where they wait for each answer, think, and send the next request."""

    users: NotRequired[float]
    "at the peak, whose requests are sent here"
    replica_users: NotRequired[float]
    "most that one replica serves within the latency targets"


class TokenPrices(TypedDict):
    """Cost of a million output tokens, at mean and at full load; null: lengths are not known, or contracts pay."""

    usd_per_million_output_tokens_mean: float | None
    usd_per_million_output_tokens_full: float | None


class Predicted(TypedDict):
    """What one replica does at its share of the peak."""

    tpot_s: float | None
    prefill_s: float | None
    decode_terms_s: dict[str, float]
    binds: str
    point: Point | None
    "one replica at the peak that is planned for it, spares lost; null where no latency is predicted"


class OwnMix(TypedDict):
    """Which of the fleet's own mixes replicas serve."""

    class_mix: NotRequired[Count]
    "number of the fleet's own mix of classes of requests, from 0; left out: all as they come, or one of them alone"


class OnShared(TypedDict):
    """Where the replicas of a row stand, if others use their nodes too."""

    shared: NotRequired[list[OnNode]]
    (
        "nodes that it shares with others; its count is of these, its devices are its own, and its cost is what it "
        "bears of all shared nodes of the offer; left out: its nodes are its own"
    )


class ServingCells(Loads, Users, TokenPrices, Predicted, Energy, OwnMix, OnShared):
    """What a row of a fleet tells beside where and when."""

    layout: ServingLayout
    devices_per_replica: Count
    replicas: Count
    replicas_needed: Count
    "without spares"
    batch: float | None
    hours: float
    cost_microusd: Microusd
    cost_usd: Usd
    memory: Memory
    device_hours: float
    tier: ServingTier
    "what predicts this row, with the error that it showed"
    role: Role
    "what its replicas do of a request"
    level: NotRequired[Count]
    "of load, from which its replicas run; 0 = always"


@final
class ServingAllocation(Place, Timing, ServingCells):
    """What is rented for a serving fleet on one offer."""


class Bucket(TypedDict):
    """A class of requests; null: its lengths are not known."""

    name: str
    input_tokens: float | None
    output_tokens: float | None
    share: float
    peak_requests_per_s: float | None
    "null: users send them, and there is no plan that says how fast they are answered"


class OnSpot(TypedDict):
    """Replicas that are lost when spot shapes are taken away."""

    replicas: Count
    interruptions_per_s: float
    "of one shape"
    away_s: float
    "from the loss of a shape until its replicas run again"


class Availability(TypedDict):
    """How often a fleet has the replicas that it needs: all are taken to be as frail as the frailest kind."""

    asked: float | None
    replica: float
    "share of the time in which one replica is up"
    repair_s: float
    time_within_spares: float
    "share of the time in which no more replicas are down than there are spares"
    spot: NotRequired[OnSpot]
    "where some stand on spot shapes that are taken away"


class ApiPrice(TypedDict):
    """An API's price for the same requests."""

    price: str
    usd_per_request: float
    usd_per_million_output_tokens: float
    cost_usd: float
    break_even_requests_per_s: float | None
    "null: contracts pay for the fleet"


class Level(TypedDict):
    """A level of load."""

    users: NotRequired[float]
    requests_per_s: float | None
    "null: users send them"
    hours: float
    hours_at_least: float


class UsersServed(TypedDict):
    """Users of a fleet at its peak."""

    users: float
    think_time_s: float
    "mean, from an answer to the next request of the same user"
    response_s: float
    "mean, from a request to its last token, as predicted"
    requests_per_s: float
    "that follow: users / (think time + response time)"


class FleetFigures(TokenPrices):
    """A serving fleet: all its rows together."""

    buckets: list[Bucket]
    spare_replicas: Count
    availability: Availability | None
    api: ApiPrice | None
    "an API's price for the same requests"
    mixes: NotRequired[list[list[float]]]
    "of classes of requests that replicas may serve, of each class the part of what comes of it, the largest 1"
    users: NotRequired[UsersServed]
    "where users send the requests, and there is a plan"
    levels: list[Level]
    "of load, least first, that an autoscaled fleet is scaled to; empty: all replicas always run"
