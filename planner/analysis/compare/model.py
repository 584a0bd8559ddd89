"""The comparison document (`plan/compare/v1`) as types, of which its JSON Schema is made."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from planner.plan.model.plan import CatalogUsed, Status
from planner.plan.model.rows import Count, OnNode, Spread

Price = Annotated[float, Field(gt=0)]
Kind = Literal["training", "serving"]
Level = Literal["what", "where", "how", "cost", "none"]
Verdict = Literal["single", "together", "unknown", "none"]
Changed = Literal["added", "removed", "decision", "place", "layout", "cost", "nothing"]


class CatalogTold(TypedDict):
    """Which catalog a plan was made with; empty texts where it does not say."""

    name: str
    as_of: str
    sha256: str


class SideTold(TypedDict):
    """One of the plans that are compared."""

    name: str
    kind: Literal["plan", "scenario", "catalog"]
    scenario: str
    case: str | None
    status: Status
    reason: str
    "why there is no plan; empty where there is one"
    cost_microusd: int | None
    cost_usd: float | None
    cost_band: Spread | None
    "as of the plan"
    horizon_hours: float | None
    devices: Count | None
    planner: str
    solver: str
    catalog: CatalogTold
    sha256: str
    warnings: list[str]


class SideRow(TypedDict):
    """What one plan rents on one offer, in short; plans of older versions say less."""

    offer: str
    provider: str
    region: str
    zone: str
    device: str
    shape: str
    price_model: str
    funding: NotRequired[str]
    devices_per_shape: Count
    count: Count
    devices: Count
    jobs: NotRequired[Count]
    replicas: NotRequired[Count]
    replicas_needed: NotRequired[Count]
    shared: NotRequired[list[OnNode]]
    role: NotRequired[str]
    hours: NotRequired[float]
    finish_hours: NotRequired[float | None]
    deadline_hours: NotRequired[float | None]
    load_at_peak: NotRequired[float | None]
    price_microusd_per_hour: NotRequired[int]
    cost_microusd: int
    cost_usd: NotRequired[float]
    layout: dict[str, int | float | str]


class WorkloadSide(TypedDict):
    """One workload of one plan; without rows where it has no plan."""

    rows: list[SideRow]
    devices: Count
    finish_hours: float | None
    load_at_peak: float | None
    cost_microusd: int | None
    cost_usd: float | None


class Amounts(TypedDict):
    """Old, new and difference of an amount; the difference is null where one of them is."""

    old_usd: float | None
    new_usd: float | None
    difference_microusd: int | None
    difference_usd: float | None
    difference: float | None
    "share of the old amount"


class WorkloadRow(Amounts):
    """A workload of either plan."""

    name: str
    kind: Kind
    sign: Literal["+", "-", "~", " "]
    changed: Changed
    "the first of these that differs"
    old: WorkloadSide | None
    new: WorkloadSide | None


class MoneyRow(Amounts):
    """A part of the total, or the total."""

    part: Literal["training", "serving", "contracts", "copies", "cases", "total"]
    "cases: what is expected of several futures, less the plan as written"


class Bought(TypedDict):
    """A contract or a copy of data."""

    kind: str | None
    offer: str | None
    provider: str | None
    region: str | None
    price_model: str | None
    count: Count | None
    hours: float | None
    start_hours: float | None
    end_hours: float | None
    data: str | None
    cost_microusd: int | None
    cost_usd: float | None


class BoughtRow(Bought):
    """What only one plan buys ahead."""

    sign: Literal["+", "-"]


class OwnedRow(TypedDict):
    """Owned machines that are used otherwise: shapes of each in either plan."""

    offer: str
    old: Count
    new: Count


class KeyRow(TypedDict):
    """A key of the scenario that differs; null where it is not stated."""

    key: str
    old: object
    new: object


class TextPair(TypedDict):
    """A text of either plan."""

    old: str
    new: str
    same: bool


class CasePair(TypedDict):
    """The named case of either plan."""

    old: str | None
    new: str | None
    same: bool


class SettingsPair(TypedDict):
    """What --set said for either plan."""

    old: list[str]
    new: list[str]
    same: bool


class FactRow(TypedDict):
    """A fact or price that differs, and that a plan uses."""

    kind: str
    id: str
    field: str
    old: str | int | float | None
    new: str | int | float | None
    change: float | None
    "share of the old value"
    old_source: str
    new_source: str


class CatalogCounts(TypedDict):
    """How many things of the catalog differ; null where one catalog is not at hand."""

    facts: Count | None
    prices: Count | None
    offers_added: Count | None
    offers_removed: Count | None
    flagged: Count | None
    cleared: Count | None


class CatalogPair(CatalogCounts):
    """What differs between the catalogs."""

    same: bool
    old: CatalogUsed
    new: CatalogUsed
    known: bool
    "both catalogs are at hand"
    touching: list[FactRow]


class Inputs(TypedDict):
    """What the plans were made from, where it differs."""

    scenario: list[KeyRow]
    settings: SettingsPair
    case: CasePair
    catalog: CatalogPair
    planner: TextPair
    solver: TextPair
    modelling: TextPair


class Horizons(TypedDict):
    """Of either plan."""

    old: float | None
    new: float | None


class Said(TypedDict):
    """What a change does: which decision it leads to, of which workloads, and what it costs."""

    decision: Literal["new", "old", "same", "other", "unknown"]
    workloads: list[str]
    problem: str
    cost_usd: float | None
    moved_usd: float | None


class FlipRow(TypedDict):
    """The price at which the decision flips back."""

    price_usd_per_hour: Price
    price_usd_per_device_hour: Price
    holds: Literal["above", "below"]
    proven: bool


class ChangeCells(TypedDict):
    """One thing that is another one in the new plan, and what it does."""

    number: Count
    group: str
    name: str
    id: str
    field: str
    unit: str
    devices_per_shape: Count | None
    alone: Said | None
    "the old question with it; null: not tried, or it does nothing"
    without: Said | None
    "the new question without it; null: not tried, or it does nothing"
    break_even: FlipRow | None


class PriceRow(ChangeCells):
    """An offer at another price, in USD an hour of a shape."""

    kind: Literal["price"]
    old: float
    new: float


class AddedRow(ChangeCells):
    """An offer that came, at its price."""

    kind: Literal["added"]
    old: None
    new: float


class RemovedRow(ChangeCells):
    """An offer that went, at its price."""

    kind: Literal["removed"]
    old: float
    new: None


class OtherRow(ChangeCells):
    """Terms of an offer, a fact, a table of the catalog, or a key of the scenario."""

    kind: Literal["terms", "fact", "table", "scenario"]
    old: object
    new: object


ChangeRow = Annotated[PriceRow | AddedRow | RemovedRow | OtherRow, Field(discriminator="kind")]


class Decided(TypedDict):
    """What a decision rents for a workload on an offer."""

    workload: str
    offer: str
    device: str
    count: Count


class OfferFlip(TypedDict):
    """An offer's price, and the one at which the runner-up would win."""

    offer: str
    price_usd_per_hour: float
    break_even_usd_per_hour: float | None
    devices_per_shape: Count


class RunnerUp(TypedDict):
    """The best plan of the new question with another decision."""

    cost_usd: float
    dearer_usd: float
    decides: list[Decided]
    share: float | None
    "of today's prices, at which its offers would win"
    prices: list[OfferFlip]
    proven: bool


class Resolved(TypedDict):
    """What it took to find the cause."""

    solves: Count
    listings: Count
    unusable: Count
    not_dearer: Count


class Again(TypedDict):
    """A plan that costs something else than its question solved again."""

    name: str
    plan_usd: float
    again_usd: float | None


class CauseFound(TypedDict):
    """What moved the decision, or the money."""

    looked_for: Literal[True]
    reason: Literal[""]
    level: Level
    verdict: Verdict
    proven: bool
    changes: Count
    groups: Count
    resolved: Resolved
    sides: list[Again]
    found: list[ChangeRow]
    others: list[ChangeRow]
    runner_up: RunnerUp | None


class CauseNotSought(TypedDict):
    """Why no cause was looked for."""

    looked_for: Literal[False]
    reason: str


class Compared(TypedDict):
    """One plan beside the first."""

    old: str
    new: str
    same: bool
    inputs: Inputs
    workloads: list[WorkloadRow]
    contracts: list[BoughtRow]
    copies: list[BoughtRow]
    owned: list[OwnedRow]
    money: list[MoneyRow]
    horizon_hours: Horizons
    cause: CauseFound | CauseNotSought


class CompareSummary(TypedDict):
    """Whether anything differs at all."""

    same: bool
    largest_increase: float | None
    currency: str


@with_config(ConfigDict(extra="forbid", strict=True))
class CompareDocument(TypedDict):
    """Comparison of plan compare: plans held against the first."""

    schema: Literal["plan/compare/v1"]
    summary: CompareSummary
    sides: Annotated[list[SideTold], Field(min_length=2)]
    comparisons: Annotated[list[Compared], Field(min_length=1)]
