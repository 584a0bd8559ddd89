"""The plan document, as `plan solve -o json` prints it, and its workloads.

Of a workload: what is asked for, what is rented for it, why, and what else there is.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, final

from pydantic import Field
from typing_extensions import TypedDict

from planner.estimate.demand import ServingDemand, TrainingDemand
from planner.plan.model.bought import Bought, OwnedHour, SharedNodesRow
from planner.plan.model.fleet import FleetFigures, ServingAllocation, ServingLayout
from planner.plan.model.others import (
    Certificate,
    Elsewhere,
    Infeasible,
    Limit,
    Named,
    Others,
    Plain,
    Rejected,
    Simulated,
    SingleKind,
)
from planner.plan.model.rows import Count, Microusd, Spread, TrainingAllocation, TrainingLayout, Usd


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


Status = Literal["optimal", "feasible", "infeasible", "stopped", "failed"]
TieCriterion = Literal["devices", "pipelined", "capacity", "finish", "replicas", "plain", "undated", "bought", "offers"]
Untold = Literal["", "devices", "pipelined", "capacity", "finish", "replicas", "plain", "undated", "bought", "offers"]


class Margins(TypedDict):
    """What it costs that deadlines and memory hold at the confidence asked for."""

    confidence: float
    median_cost_microusd: Microusd
    median_cost_usd: float
    margins_microusd: int
    margins_usd: float


class Summary(TypedDict):
    """Totals of a plan; null without one."""

    cost_microusd: Microusd | None
    cost_usd: Usd | None
    bound_microusd: Annotated[int, Field(description="integer micro-dollars")] | None
    bound_usd: Usd | None
    gap: float | None
    training_usd: float | None
    serving_usd: float | None
    "its own rows and its share of what is bought ahead, as those of training, which bears the copies of its data, too"
    unused_usd: NotRequired[float]
    "of what is bought ahead and no workload of this plan uses, where there is some: the three add up to the cost"
    horizon_hours: float
    devices: Count | None
    device_hours: float | None
    objective: list[str]
    cost_band: Spread | None
    "of the total: all rows summed quantile by quantile"
    margins: Margins | None
    (
        "what it costs that deadlines and memory hold at the confidence asked for and not just at the median; "
        "null: not known"
    )


class CatalogUsed(TypedDict):
    """The catalog that a plan was made with."""

    name: str
    as_of: str
    sha256: str
    own_prices: NotRequired[list[str]]
    "flags of prices on top of the files, as --price h100-sxm=$2.50/h; verify repeats them"
    hardware: NotRequired[str]
    "the folder or frozen file that was named in place of the scenario's own, or of the one that ships"


class Fact(TypedDict):
    """A fact behind the chosen rows."""

    subject: str
    fact: str
    value: str
    source: str
    as_of: str
    status: str


class TieRow(TypedDict):
    """A workload of which other ways are as cheap."""

    workload: str
    others: Count
    "ways to run all of it alike that are as cheap, and within every limit"
    by: list[TieCriterion]
    "what decided between them, most important first"


class Ties(TypedDict):
    """Which of several equally cheap plans this one is."""

    tolerance: Annotated[float, Field(ge=0, le=1e-3)]
    "of the cost, within which costs are equal; one cent at least, where it is above 0"
    rows: list[TieRow]
    untold: Untold
    "the first criterion by which plans of equal cost were not told apart, for lack of time; empty: by all"


class Provenance(TypedDict):
    """What a plan was made with."""

    planner: str
    catalog: CatalogUsed
    prices_as_of: str
    solver: str
    modelling: str
    seed: int
    threads: int
    gap_asked: float
    solver_gap: float | None
    "how close to the best the solver says the plan is"
    columns: Count
    columns_pruned: Count
    facts: list[Fact]


class Risk(TypedDict):
    """The risk that is weighed."""

    level: float
    weight: float


class CaseRow(TypedDict):
    """One of the things that may happen, and its plan."""

    name: str
    probability: float
    cost_microusd: Microusd | None
    cost_usd: float | None
    known_beforehand_usd: float | None
    contracts_of_written_usd: float | None
    plan: PlanDocument | None
    "null: the plan that holds this one"


class Uncertainty(TypedDict):
    """What is decided before it is known what happens."""

    cases: list[CaseRow]
    expected_usd: float | None
    bound_usd: float | None
    risk: Risk | None
    at_risk_usd: float | None
    perfect_information_usd: float | None
    stochastic_solution_usd: float | None


class PlanDocument(Bought):
    """A plan, as `plan solve -o json` prints it."""

    schema: Literal["plan/result/v1"]
    status: Status
    name: str
    title: str
    summary: Summary
    workloads: list[Workload]
    limits: list[Limit]
    single_kind: SingleKind | None
    named: NotRequired[list[Named]]
    "owned machines, devices and providers that the scenario names: used, or why not"
    rejected: dict[str, Rejected]
    certificate: Certificate | None
    uncertainty: Uncertainty | None
    infeasible: Infeasible | None
    assumed: list[str]
    warnings: list[str]
    notes: list[str]
    provenance: Provenance
    scenario: dict[str, object]
    "the scenario as resolved: includes, overrides and --set applied"
    scenario_file: str
    elsewhere: NotRequired[list[Elsewhere]]
    "what is rented by the hour, at the prices of large clouds and of marketplaces that were left out"
    owned_hours: NotRequired[list[OwnedHour]]
    "owned hardware whose price is given by its parts: what capital, power and staff are of its cost"
    shared_nodes: NotRequired[list[SharedNodesRow]]
    "nodes on which replicas of several fleets stand"
    settings: NotRequired[list[str]]
    "the --set texts that made this scenario of its file"
    ties: NotRequired[Ties]
    "of a plan that is asked for by its cost: which of several equally cheap ones it is"
    plain: NotRequired[Plain]
    "the cheapest plan, which the certificate is of, where plainer layouts are preferred"
    case: str | None
    sha256: str
    "over everything above, canonical JSON"
    simulation: NotRequired[list[Simulated]]
    "replicas of fleets in a seeded simulation, when that was asked for"
    others: NotRequired[Others]
    "what else could be done, when that was asked for: each figure is a proven solve"
