"""What the sheets of a workbook stand on: each charge and each price once, and lines in the order of their sums."""

from __future__ import annotations

import re
from typing import Any

from planner.budget.model import Budget, BudgetLine
from planner.carriers import dataclass
from planner.plan.model.plan import PlanDocument
from planner.report.metered import metered_hours

MICRO = 1_000_000
PER_HOUR = "per node-hour"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_KINDS = ("training", "serving", "unused")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """A price of the workbook, which charges refer to."""

    item: str
    unit: str
    usd: float
    line: BudgetLine  # a budget line that has it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRow:
    """A charge of the workbook: nodes × hours × price × part."""

    line: BudgetLine  # the first budget line of the charge
    nodes: float
    hours: float
    price: int  # row of its price
    part: float
    workloads: tuple[str, ...]

    @property
    def usd(self) -> float:
        """What it costs in the plan."""
        return float(self.line["charge_microusd"]) / MICRO


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRows:
    """Everything that the money sheets show."""

    prices: list[PriceRow]
    charges: list[ChargeRow]
    lines: list[tuple[BudgetLine, int]]  # budget lines by kind and workload, each with its charge


def rows_of(budget: Budget) -> BookRows:
    """Prices, charges and lines of a budget."""
    prices: dict[tuple[str, str, float], PriceRow] = {}
    charges: dict[tuple[str, ...], ChargeRow] = {}
    bearers: dict[tuple[str, ...], list[str]] = {}
    for line in budget["lines"]:
        key = charge_key(line)
        bearers.setdefault(key, []).append(line["workload"])
        if key not in charges:
            charges[key] = _charge(line, prices)
    order = list(charges)
    named = [_with_workloads(charges[key], bearers[key]) for key in order]
    lines = sorted(budget["lines"], key=lambda line: (_KINDS.index(line["kind"]), line["workload"]))
    return BookRows(
        prices=list(prices.values()),
        charges=named,
        lines=[(line, order.index(charge_key(line))) for line in lines],
    )


def charge_key(line: BudgetLine) -> tuple[str, ...]:
    """What tells the charge of a line from others."""
    return line["source"], line["item"], line["payment"]


def _with_workloads(charge: ChargeRow, workloads: list[str]) -> ChargeRow:
    return ChargeRow(line=charge.line, nodes=charge.nodes, hours=charge.hours, price=charge.price, part=charge.part,
                     workloads=tuple(dict.fromkeys(name for name in workloads if name)))  # fmt: skip


def _charge(line: BudgetLine, prices: dict[tuple[str, str, float], PriceRow]) -> ChargeRow:
    metered, price = metered_hours(line), line["price_microusd_per_hour"]
    if metered is None or price is None:
        nodes, hours, part, unit, usd = 1.0, 1.0, 1.0, "in all", line["charge_microusd"] / MICRO
    else:
        nodes, hours, part, unit, usd = float(line["count"]), metered, line["part_of_price"], PER_HOUR, price / MICRO
    found = (line["item"], unit, usd)
    if found not in prices:
        prices[found] = PriceRow(item=line["item"], unit=unit, usd=usd, line=line)
    return ChargeRow(line=line, nodes=nodes, hours=hours, price=list(prices).index(found), part=part, workloads=())


def origin_of(plan: PlanDocument, line: BudgetLine) -> dict[str, str]:
    """Source, date and status of the price behind a line, as the plan tells them."""
    if line["category"] in ("egress", "storage"):
        return _transfer_origin(plan, line)
    if line["category"] == "traffic":
        return {"source": "scenario: hardware.assume_between_zones", "as_of": "", "status": "user"}
    row = at(plan, line["source"])
    return {name: str(row[f"price_{name}"]) for name in ("source", "as_of", "status")}


def _transfer_origin(plan: PlanDocument, line: BudgetLine) -> dict[str, str]:
    wanted = ("egress", "inter-region") if line["category"] == "egress" else ("storage",)
    for fact in plan["provenance"]["facts"]:
        if fact["subject"] == line["provider"] and fact["fact"] in wanted:
            return {"source": f"{fact['source']} ({fact['value']})", "as_of": fact["as_of"], "status": fact["status"]}
    return {"source": "scenario: training.data", "as_of": "", "status": "user"}


def at(document: object, path: str) -> Any:
    """What stands at a path of a document: "workloads[0].allocations[1]"."""
    value: Any = document
    for name, number in _STEP.findall(path):
        value = value[name] if name else value[int(number)]
    return value
