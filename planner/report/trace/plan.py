"""The figures of a plan: totals, workloads, what is bought ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from planner.plan.model.bought import Contract
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import rows_of
from planner.report import accounting as rules
from planner.report.model import TraceRow
from planner.report.trace.allocation import allocation_rows
from planner.report.trace.row import Places, asked_at, ruled, spaced, traced, unit_of, where

Total = Literal[
    "cost_microusd", "cost_usd", "training_usd", "serving_usd", "unused_usd", "devices", "device_hours",
    "bound_microusd", "bound_usd", "gap", "margins",
]  # fmt: skip
_BAND = "EQ-BAND-1"
_TOTALS: dict[Total, str] = {
    "cost_microusd": rules.SUM,
    "cost_usd": rules.SUM,
    "training_usd": rules.SUM,
    "serving_usd": rules.SUM,
    "unused_usd": rules.SUM,
    "devices": rules.SUM,
    "device_hours": rules.HOURS,
    "bound_microusd": rules.PROVEN,
    "bound_usd": rules.PROVEN,
    "gap": rules.PROVEN,
    "margins": rules.SOLVED,
}


def summary_rows(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Totals, horizon and limits."""
    summary = plan["summary"]
    for name, rule in _TOTALS.items():
        if name in summary:
            yield ruled(f"total: {spaced(name)}", f"plan.summary.{name}", rule, summary[name], unit_of(name))
    yield traced("total: error band", "plan.summary.cost_band", "equation", ids=_BAND, unit="USD")
    given = "horizon" in plan["scenario"]
    yield traced(
        "horizon",
        "plan.summary.horizon_hours",
        "scenario" if given else "assumption",
        value=summary["horizon_hours"],
        unit="h",
        place=where(places, "horizon") if given else "",
    )
    for number, limit in enumerate(plan["limits"]):
        yield traced(f"limit: {limit['label'] or limit['name']}", f"plan.limits[{number}]", "scenario",
                     value=limit["bound"], unit=limit["unit"], place=where(places, limit["name"]))  # fmt: skip


def workload_rows(plan: PlanDocument, number: int, places: Places | None) -> Iterator[TraceRow]:
    """One workload and all its allocations.

    Parameters
    ----------
    plan
        The plan.
    number
        Of the workload in it, from zero.
    places
        Path in the scenario -> where it is written; None = a line is told by its path in the plan.
    """
    workload = plan["workloads"][number]
    path, name, ids = f"plan.workloads[{number}]", workload["name"], " ".join(workload["equations"])
    for key in ("cost_microusd", "cost_usd"):
        yield ruled(f"{name}: {spaced(key)}", f"{path}.{key}", rules.SUM, workload[key], unit_of(key))
    for size in ("parameters", "active_parameters"):
        source = f"architecture of {workload['model']}"
        yield traced(f"{name}: {spaced(size)}", f"{path}.{size}", "fact", value=workload[size], source=source,
                     status="derived")  # fmt: skip
    asked = asked_at(plan, workload, places)
    for given in ("demand", "count"):
        yield traced(f"{name}: {spaced(given)}", f"{path}.{given}", "scenario", value=workload[given], place=asked)
    yield traced(f"{name}: error band", f"{path}.error_band", "equation", ids=_BAND)
    for key in ("fleet", "alternatives", "cross_check", "under_way"):
        yield traced(f"{name}: {spaced(key)}", f"{path}.{key}", "equation", ids=ids)
    for place, row in enumerate(rows_of(workload)):
        yield from allocation_rows(plan, workload, row, f"{path}.allocations[{place}]", asked)


def bought_rows(plan: PlanDocument, places: Places | None) -> Iterator[TraceRow]:
    """Contracts, copies of data, the schedule, what is owned, what may happen."""
    for number, contract in enumerate(plan.get("contracts") or ()):
        yield from _contract(contract, f"plan.contracts[{number}]")
    for number, copy in enumerate(plan.get("copies") or ()):
        path, cost = f"plan.copies[{number}]", copy["cost_microusd"]
        yield ruled(f"copy of {copy['data']}", path, rules.COST, cost, "micro-USD")
    for number, owned in enumerate(plan.get("owned") or ()):
        place = where(places, "hardware.owned")
        yield traced(f"owned {owned['shape']}", f"plan.owned[{number}]", "scenario", place=place)
    for number, hour in enumerate(plan.get("owned_hours") or ()):
        path = f"plan.owned_hours[{number}]"
        yield traced(f"an hour of {hour['shape']}", path, "equation", ids="EQ-OWN-1 EQ-OWN-2", unit="micro-USD/h",
                     value=hour["price_microusd_per_hour"], place=where(places, hour["place"]))  # fmt: skip
    parts = {
        "schedule": rules.CHOSEN,
        "schedule.shares": rules.SHARED,
        "spend": rules.SUM,
        "uncertainty": rules.EXPECTED,
    }
    for part, rule in parts.items():
        if plan.get(part.partition(".")[0]):
            yield ruled(part.replace(".", ": "), f"plan.{part}", rule)


def _contract(contract: Contract, path: str) -> Iterator[TraceRow]:
    who = f"contract {contract['offer']}"
    price = contract["price_microusd_per_hour"]
    yield traced(f"{who}: price of a node", f"{path}.price_microusd_per_hour", "fact", value=price,
                 unit="micro-USD/h", source=contract["price_source"], as_of=contract["price_as_of"],
                 status=contract["price_status"])  # fmt: skip
    yield ruled(f"{who}: nodes and time", path, rules.CHOSEN, contract["count"], "nodes")
    for key in ("cost_microusd", "fee_microusd", "full_microusd", "prorated_microusd"):
        yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.COST, contract[key], "micro-USD")
