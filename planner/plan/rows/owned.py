"""What capital, power and staff are of an hour of owned machines, and of what the plan spends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.candidates.search import Candidates
from planner.catalog.load import find_shape
from planner.estimate.ownership import hourly_of, split_microusd

if TYPE_CHECKING:
    from planner.plan.model.bought import OwnedHour
    from planner.plan.model.workloads import Workload


def owned_hours(candidates: Candidates, workloads: Sequence[Workload]) -> list[OwnedHour]:
    """A row for each group of owned machines whose price is given by its parts."""
    found: list[OwnedHour] = []
    for index, owned in enumerate(candidates.scenario.hardware.owned):
        if not owned.has_parts:
            continue
        hourly, shape = hourly_of(owned), find_shape(candidates.catalog, owned.shape)
        mine = f"owned:{index}:{shape.id}"
        rows = (row for workload in workloads for row in workload["allocations"] if row["offer"] == mine)
        cost = sum(row["cost_microusd"] for row in rows)
        capital, power, staff = split_microusd(cost, hourly)
        found.append(
            {
                "place": f"hardware.owned[{index}]",
                "shape": owned.shape,
                "offer": mine,
                "devices_per_shape": shape.devices,
                "bought_microusd": owned.capital.price_microusd if owned.capital else None,
                "residual_microusd": owned.capital.residual_microusd if owned.capital else None,
                "years": owned.capital.years if owned.capital else None,
                "power_w": owned.power.power_w if owned.power else None,
                "energy_microusd_per_kwh": owned.power.price_microusd_per_kwh if owned.power else None,
                "pue": owned.power.pue if owned.power else None,
                "capital_microusd_per_hour": hourly.capital_microusd,
                "power_microusd_per_hour": hourly.power_microusd,
                "staff_microusd_per_hour": hourly.staff_microusd,
                "price_microusd_per_hour": hourly.price_microusd,
                "price_usd_per_device_hour": hourly.price_microusd / shape.devices / 1e6,
                "cost_microusd": cost,
                "capital_microusd": capital,
                "power_microusd": power,
                "staff_microusd": staff,
            }
        )
    return found
