"""The document of a sweep: what was asked, what came of it, and where the decision turns."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from planner.plan.model.plan import CatalogUsed, Status
from planner.sweeps.borders import Border, Standing
from planner.sweeps.question import Row


class AxisTold(TypedDict):
    """What was varied."""

    name: str
    values: list[str]


class Asked(TypedDict):
    """One question, as it would be on the command line of `plan solve`."""

    settings: list[str]
    prices: list[str]
    case: str | None
    catalog: str
    until: str
    seed: int | None
    scenario: NotRequired[str]
    "another than the session's"


class Point(Row):
    """A question and what came of it."""

    values: list[str]
    "on the axes, in their order; empty where there are none"
    question: Asked
    standing: NotRequired[Standing | None]
    "where days of prices are varied: the plan of the earliest day held on this one; null where there is none"


class Counted(TypedDict):
    """How the questions ended."""

    questions: int
    plans: int
    infeasible: int
    without_answer: int
    "refused, stopped, failed or lost: each row says why"


class SweepProvenance(TypedDict):
    """With what it was worked out."""

    planner: str
    catalog: CatalogUsed
    options: dict[str, object]


class SweepDocument(TypedDict):
    """A sweep; nothing in it tells where its questions were answered, or when."""

    schema: Literal["plan/sweep/v1"]
    status: Status
    name: str
    title: str
    axes: list[AxisTold]
    points: list[Point]
    "every question in its order; of a grid the last axis changes fastest"
    borders: list[Border]
    "between neighbours of the grid that are decided otherwise, both solved"
    halvings: int
    counted: Counted
    currency: Literal["USD"]
    provenance: SweepProvenance
    scenario: dict[str, object]
    scenario_file: str
    case: str | None
    sha256: str
    """over everything above, canonical JSON"""
