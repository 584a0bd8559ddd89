"""The frontier document (`plan/frontier/v1`) as types, of which its JSON Schema is made."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from planner.plan.model.bought import Contract
from planner.plan.model.others import WorkloadInShort
from planner.plan.model.plan import CatalogUsed, Status

Over = Literal["deadline", "budget", "carbon"]
Against = Literal["cost", "time", "carbon"]
Unit = Literal["hours", "usd", "kg"]
Kind = Literal["training", "serving"]


_From = TypedDict("_From", {"from": float})


class FoundPoint(_From):
    """A point as the journal keeps it: its limit in s, micro-USD or mg."""

    cost_microusd: int
    cost_usd: float
    gap: float | None
    devices: int
    device_hours: float
    finish_hours: float | None
    """latest finish of a job, as predicted"""
    carbon_kg: float | None
    """null where carbon plays no part"""
    workloads: list[WorkloadInShort]
    contracts: list[Contract]
    """as in plan/result/v1"""


class FrontierPoint(FoundPoint):
    """One plan of the frontier; `from` is the tightest limit of the range at which it is the best, in sweep.unit."""

    status: Literal["optimal", "feasible"]
    """optimal: proven"""
    over: float
    """what the plan itself needs of the limit, in sweep.unit"""
    against: float
    """what was made least, in sweep.against_unit"""
    saved: float | None
    """what the limit's widening from the point before saves, in sweep.saved_unit"""
    here: bool
    """what the scenario's own limit allows"""


class Record(TypedDict, total=False):
    """What was found at a limit, as a line of the journal; `over`, `against` and `point` where there is a plan."""

    limit: float | None
    status: Status
    solves: int
    messages: list[str]
    warnings: list[str]
    over: float
    against: float
    point: FoundPoint


class SweepTold(TypedDict):
    """The limit that is swept, and what is made least under it."""

    over: Over
    unit: Unit
    low: float
    high: float | None
    against: Against
    against_unit: Unit
    workload: str | None
    saved_unit: str
    own: float | None
    """the scenario's own limit"""
    loosest: NotRequired[list[str]]
    """settings of the plan solve that asks at the loosest limit, all of them; frontiers of older versions have none"""


class Unchanging(TypedDict):
    """A workload that is the same in every point."""

    name: str
    kind: Kind
    cost_microusd: int


class SweepProvenance(TypedDict):
    """What the points were made with."""

    planner: str
    catalog: CatalogUsed
    solver: str
    gap: float
    seed: int
    threads: int
    columns: int
    solves: int
    """programs solved for these points, in this run or an earlier one"""


@with_config(ConfigDict(extra="forbid", strict=True))
class FrontierDocument(TypedDict):
    """Frontier of plan frontier: every Pareto point of a limit."""

    schema: Literal["plan/frontier/v1"]
    status: Status
    """optimal: every point of the range is there and proven; feasible: points are missing or not proven; others: no
    point"""
    complete: bool
    name: str
    title: str
    sweep: SweepTold
    points: list[FrontierPoint]
    """tightest limit first; none is as good as another in both objectives"""
    unchanging: list[Unchanging]
    """workloads that are the same in every point"""
    infeasible_below: float | None
    """below this value of the limit nothing meets every limit, proven; null: the range ended before"""
    messages: list[str]
    currency: Literal["USD"]
    provenance: SweepProvenance
    scenario: dict[str, object]
    scenario_file: str
    case: str | None
    sha256: str
    """over everything above, canonical JSON"""


class JobChosen(TypedDict):
    """What a plan does of a job, where its cost is its own and not a contract's."""

    device: str
    count: int
    devices: int
    finish_hours: float
    cost_microusd: int
    cost_usd: float


class JobPoint(JobChosen):
    """A way to run a job that nothing is both cheaper and sooner than."""

    offer: str
    finish_at_confidence_hours: float
    on_time: bool
    here: bool
    """what the plan does"""


class Tradeoff(TypedDict):
    """Cost against finish of one training job by itself."""

    workload: str
    jobs: int
    start_hours: float
    deadline_hours: float
    confidence: float
    points: list[JobPoint]
    """soonest first, each cheaper than those before"""
    chosen: JobChosen | None
