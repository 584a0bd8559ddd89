"""The budget of a plan, and what its margins cost, as types."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

Money = Annotated[int, Field(description="integer micro-dollars")]
Commitment = Literal["committed", "variable"]
Payment = Literal["by use", "up front", "instalments"]
WorkloadKind = Literal["training", "serving", "unused"]
MarginName = Literal["confidence", "peak_factor", "target_load", "spares"]


What = Literal["training", "serving", "unused", "committed", "variable", "up_front", "total", "contingency"]
Amount = Literal[
    "training_microusd", "serving_microusd", "unused_microusd", "committed_microusd", "variable_microusd",
    "up_front_microusd", "total_microusd", "contingency_microusd",
]  # fmt: skip
AMOUNTS: dict[What, Amount] = {
    "training": "training_microusd", "serving": "serving_microusd", "unused": "unused_microusd",
    "committed": "committed_microusd", "variable": "variable_microusd", "up_front": "up_front_microusd",
    "total": "total_microusd", "contingency": "contingency_microusd",
}  # fmt: skip


class Totals(TypedDict):
    """Money of a month, of a year or of all: whole, and by what it is for."""

    training_microusd: Money
    serving_microusd: Money
    unused_microusd: Money
    committed_microusd: Money
    variable_microusd: Money
    up_front_microusd: Money
    total_microusd: Money
    contingency_microusd: Money


class MonthRow(Totals):
    """A month, or that many hours where the plan has no date."""

    label: str
    "2026-12, or month 1 where the plan has no date"
    number: int
    start_hours: float
    end_hours: float
    start_date: str | None
    end_date: str | None
    fiscal_year: str | None
    after_horizon: bool


class FiscalYear(Totals):
    """Months of a fiscal year."""

    label: str
    "named by the calendar year in which it ends"
    first_month: str
    last_month: str


class Monthly(TypedDict):
    """Money by month."""

    months_microusd: list[Money]
    total_microusd: Money


class WorkloadMoney(Monthly):
    """What a workload bears."""

    workload: str
    kind: WorkloadKind


class ProviderMoney(Monthly):
    """What a provider is paid."""

    provider: str


class CategoryMoney(Monthly):
    """Money of a category."""

    category: str
    commitment: Commitment


class BudgetLine(Monthly):
    """What one workload bears of one charge."""

    workload: str
    kind: WorkloadKind
    provider: str
    place: str
    item: str
    category: str
    commitment: Commitment
    payment: Payment
    source: str
    "path in the plan"
    count: int
    hours: float
    price_microusd_per_hour: Money | None
    part_of_price: float
    charge_microusd: Annotated[int, Field(description="the whole charge, of which this workload bears `share`")]
    share: float
    month_hours: list[float]
    "hours of the charge that fall due in each month; what is due at once counts one"


class Beside(TypedDict):
    """Money that the plan tells of and does not count."""

    what: str
    source: str
    total_microusd: Money


class CaseMoney(TypedDict):
    """A case by month; null where it has no plan."""

    name: str
    probability: float
    months_microusd: list[Money] | None
    total_microusd: Money | None


class CasesMoney(TypedDict):
    """Every case, their mean by probability, and the dearest."""

    cases: list[CaseMoney]
    expected: Monthly | None
    "null: some case has no plan, whose cost nobody knows"
    worst: CaseMoney


class Budget(TypedDict):
    """When the money of a plan is due, and who bears it."""

    currency: str
    begin: str | None
    horizon_hours: float
    month_hours: float | None
    fiscal_year_start: str
    contingency: Annotated[float, Field(ge=0, le=1)]
    "share of the total, set aside beside it"
    months: list[MonthRow]
    "their totals add up to the plan's total"
    fiscal_years: list[FiscalYear]
    "empty where the plan has no date"
    totals: Totals
    by_workload: list[WorkloadMoney]
    by_provider: list[ProviderMoney]
    by_category: list[CategoryMoney]
    lines: list[BudgetLine]
    beside: list[Beside]
    "told by the plan and not counted in its total"
    cases: CasesMoney | None
    notes: list[str]


class MarginTaken(TypedDict):
    """A margin of the scenario, in words, and what it is set to without."""

    name: MarginName
    taken: str
    without: str


class MarginAlone(TypedDict):
    """What one margin costs, the others kept."""

    name: MarginName
    without_microusd: Money | None
    saves_microusd: Money | None


class MarginsCost(TypedDict):
    """What the margins cost: all together, and each alone; single ones do not add up."""

    taken: list[MarginTaken]
    cost_microusd: Money | None
    without_microusd: Money | None
    together_microusd: Money | None
    each: list[MarginAlone] | None
    notes: list[str]
