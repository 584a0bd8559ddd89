"""The report document (`plan/report/v1`) as types, of which its JSON Schema is made."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, WithJsonSchema, with_config
from typing_extensions import TypedDict

from planner.budget.model import Budget, MarginsCost
from planner.plan.model.frontier_document import FrontierDocument, Tradeoff
from planner.plan.model.plan import PlanDocument

# documents inside a report: their own schemas say the rest
PLAN = {"type": "object", "properties": {"schema": {"const": "plan/result/v1"}}, "required": ["schema"]}
FRONTIER = {"type": "object", "properties": {"schema": {"const": "plan/frontier/v1"}}, "required": ["schema"]}
TraceKind = Literal["equation", "fact", "scenario", "assumption"]


class TraceRow(TypedDict):
    """Where a figure is from."""

    figure: str
    path: str
    "place in this document; what lies below it is covered"
    value: int | float | str | bool | None
    unit: str
    kind: TraceKind
    id: str
    "equations (EQ-...) or rules of money and choice (ACC-..., OPT-...)"
    source: str
    as_of: str
    status: str
    place: str
    "file:line of the scenario, or a path in the plan"


class Saving(TypedDict):
    """A change that would make the plan cheaper, solved before it is said."""

    text: str
    command: str


class Reported(TypedDict):
    """What is reported, without where it is from."""

    schema: Literal["plan/report/v1"]
    plan: Annotated[PlanDocument, WithJsonSchema(PLAN)]
    "a plan document: plan schema plan"
    budget: Budget | None
    margins: MarginsCost | None
    "what the margins cost: all together, and each alone; single ones do not add up"
    frontier: Annotated[FrontierDocument, WithJsonSchema(FRONTIER)] | None
    "a frontier document: plan schema frontier"
    tradeoffs: list[Tradeoff]
    "cost against finish of a training job alone"
    savings: list[Saving]
    "what would make it cheaper, the most worth first; empty where that was not asked, too"


@with_config(ConfigDict(extra="forbid", strict=True))
class ReportDocument(Reported):
    """A plan, its budget, and where every figure is from."""

    trace: list[TraceRow]
