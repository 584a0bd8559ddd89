"""What a workload asks for, in base units, as a plan tells it."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class TrainingDemand(TypedDict):
    """What a training job asks for."""

    tokens: float
    "of the whole run"
    epochs: float
    progress_tokens: float
    "done before the plan begins"
    sequence_length: int
    deadline_hours: float
    "after the start"
    start_hours: float
    "earliest, after the plan's begin"


class ServingDemand(TypedDict):
    """What a serving fleet asks for."""

    users: NotRequired[float]
    "at the peak; of a fleet whose users wait for each answer"
    think_time_s: NotRequired[float]
    "from an answer to the next request of the same user"
    requests_per_minute: float | None
    "mean; null: it follows from the users and from what serves them"
    peak_requests_per_s: float | None
    input_tokens: float | None
    "mean; null: not given"
    output_tokens: float | None
    "mean; null: not given"
    target_load: float
    "share of what replicas can do that they are planned to"
    spare_replicas: int
    targets_s: dict[str, float]
    "latency targets by name"
    arrival_variability: float
    "squared coefficient of variation of the time between requests"
