"""Workloads of a plan: what is asked for, what is rented for it, why, and what else there is."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, final

from pydantic import Field
from typing_extensions import TypedDict

from planner.estimate.demand import ServingDemand, TrainingDemand
from planner.plan.model.amounts import Count, Microusd, Usd
from planner.plan.model.fleet import FleetFigures, ServingAllocation, ServingLayout
from planner.plan.model.rows import Spread, TrainingAllocation, TrainingLayout


class AlternativeCells(TypedDict):
    """The cheapest way on another device for a workload alone, without its layout."""

    device: str
    offer: str
    count: Count
    devices: Count
    cost_microusd: Microusd
    cost_usd: Usd
    hours: float
    note: str
    replicas: NotRequired[Count]
    "of a fleet"
    tie: bool
    "the error bands leave open whether it is cheaper than what is chosen"


class TrainingAlternative(AlternativeCells):
    """The cheapest way on another device for a training job alone."""

    layout: TrainingLayout


class ServingAlternative(AlternativeCells):
    """The cheapest way on another device for a fleet alone."""

    layout: ServingLayout


Alternative = TrainingAlternative | ServingAlternative


class CrossCheck(TypedDict):
    """A rule of thumb, worked with the workload's own numbers."""

    rule: str
    equation: str
    value: float
    unit: str
    text: str


class WorkloadBand(TypedDict):
    """How far the figures of a workload may be off."""

    confidence: float
    tiers: list[str]
    families: list[str]
    hours: Spread
    "of the row that ends last"
    cost_usd: Spread
    "rows summed quantile by quantile: errors go together"


class UnderWay(TypedDict):
    """Where the step time of the run under way was measured."""

    device: str
    shape: str
    count: Count
    layout: TrainingLayout
    measured_step_s: float
    predicted_step_s: float
    ratio: float


class TermSource(TypedDict):
    """The equation of a term, and the first source that it names."""

    equation: str
    source: str


class TermSources(TypedDict):
    """Equation and source of each term of memory and time."""

    memory: dict[str, TermSource]
    time: dict[str, TermSource]


class WorkloadCells(TypedDict):
    """What workloads of every kind tell."""

    name: str
    model: str
    parameters: float
    active_parameters: float
    estimator: str
    count: Count
    cost_microusd: Microusd
    cost_usd: Usd
    because: list[str]
    cross_check: list[CrossCheck]
    equations: list[str]
    term_sources: TermSources
    "equation of each term, and the first source that it names"


@final
class TrainingWorkload(WorkloadCells):
    """A training job, or several identical ones."""

    kind: Literal["training"]
    demand: TrainingDemand
    "tokens and deadline of the workload"
    allocations: list[TrainingAllocation]
    alternatives: list[TrainingAlternative]
    error_band: WorkloadBand | None
    "how far the figures of this workload may be off; null: no plan"
    under_way: UnderWay | None
    fleet: None


@final
class ServingWorkload(WorkloadCells):
    """A serving fleet."""

    kind: Literal["serving"]
    demand: ServingDemand
    "request rates and latency targets of the workload"
    allocations: list[ServingAllocation]
    alternatives: list[ServingAlternative]
    error_band: None
    under_way: None
    fleet: FleetFigures
    "of a serving fleet: all its rows together"


Allocation = TrainingAllocation | ServingAllocation
Workload = Annotated[TrainingWorkload | ServingWorkload, Field(discriminator="kind")]
