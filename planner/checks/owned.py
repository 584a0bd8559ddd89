"""Whether a plan says rightly what capital, power and staff are of the cost of owned machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from planner.catalog.load import find_shape
from planner.catalog.model import Catalog
from planner.checks.exact import exact_hourly
from planner.checks.findings import Finding, cell_findings
from planner.scenario.owned import Owned
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


def owned_hour_findings(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Finding]:
    """A row for each group of owned machines whose price has parts, in a plan that runs something; no other.

    Parameters
    ----------
    document
        A plan, with rows or without.
    scenario
        The one that the plan carries, read: what it owns.
    catalog
        The shapes of what is owned.
    """
    has_plan = document["status"] in ("optimal", "feasible")
    due = list(_due(document, scenario, catalog)) if has_plan else []
    stated = document.get("owned_hours", [])
    if len(stated) != len(due):
        yield Finding("wrong-total", f"{len(stated)} rows of what an owned hour costs, {len(due)} have parts")
        return
    for row, cells in zip(stated, due):
        yield from cell_findings("wrong-total", str(cells["place"]), row, cells)


def _given(owned: Owned) -> Mapping[str, object]:
    """What the scenario says that an hour is made of."""
    bought, drawn = owned.capital, owned.power
    return {
        "bought_microusd": None if bought is None else bought.price_microusd,
        "residual_microusd": None if bought is None else bought.residual_microusd,
        "years": None if bought is None else bought.years,
        "power_w": None if drawn is None else drawn.power_w,
        "energy_microusd_per_kwh": None if drawn is None else drawn.price_microusd_per_kwh,
        "pue": None if drawn is None else drawn.pue,
    }


def _due(document: PlanDocument, scenario: Scenario, catalog: Catalog) -> Iterator[Mapping[str, object]]:
    for index, owned in enumerate(scenario.hardware.owned):
        if owned.price_microusd_per_hour is not None:
            continue
        hour, shape = exact_hourly(owned), find_shape(catalog, owned.shape)
        offer = f"owned:{index}:{shape.id}"
        rows = [row for workload in document["workloads"] for row in workload["allocations"] if row["offer"] == offer]
        cost = sum(row["cost_microusd"] for row in rows)
        capital, others = (
            round(Fraction(cost) * part / hour.price) if hour.price else 0
            for part in (hour.capital, hour.capital + hour.power)
        )
        yield {
            "place": f"hardware.owned[{index}]",
            "shape": owned.shape,
            "offer": offer,
            "devices_per_shape": shape.devices,
            **_given(owned),
            "capital_microusd_per_hour": hour.capital,
            "power_microusd_per_hour": hour.power,
            "staff_microusd_per_hour": hour.staff,
            "price_microusd_per_hour": hour.price,
            "price_usd_per_device_hour": hour.price / shape.devices / 1e6,
            "cost_microusd": cost,
            "capital_microusd": capital,
            "power_microusd": others - capital,
            "staff_microusd": cost - others,
        }
