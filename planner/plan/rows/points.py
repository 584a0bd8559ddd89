"""A point of a frontier as a row: the plan's own document, cut down to what tells points apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from planner.candidates.search import Candidates
from planner.optimize.solve import Solution
from planner.plan.parts import rows_of

if TYPE_CHECKING:
    from planner.plan.model.frontier import FoundPoint, FrontierPoint, Unchanging
    from planner.plan.model.others import RowInShort, WorkloadInShort
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.workloads import Allocation, Workload


def point_row(candidates: Candidates, solution: Solution, document: PlanDocument, least: float) -> FoundPoint:
    """What a point is: its totals and, of every workload, what is rented.

    Parameters
    ----------
    least
        The tightest limit of the sweep at which this plan is the best: s, micro-USD or mg.
    """
    program, summary = candidates.program, document["summary"]
    used = solution.units > 0
    last_s = float(program.finish_s[used].max(initial=0.0))
    scenario = candidates.scenario  # where carbon plays no part, offers may be in places whose grid is unknown
    counted = "carbon" in scenario.objective or scenario.limits.carbon_g is not None
    carbon_mg = sum(int(u) * int(c) for u, c in zip(solution.units[used], program.carbon_mg[used]))
    cost, usd, devices, hours = (summary["cost_microusd"], summary["cost_usd"], summary["devices"],
                                 summary["device_hours"])  # fmt: skip
    assert cost is not None and usd is not None and devices is not None and hours is not None  # noqa: PT018
    return {
        "from": least,
        "cost_microusd": cost,
        "cost_usd": usd,
        "gap": summary["gap"],
        "devices": devices,
        "device_hours": hours,
        "finish_hours": last_s / 3600.0 if last_s else None,
        "carbon_kg": carbon_mg / 1e6 if counted else None,
        "workloads": [workload_row(workload) for workload in document["workloads"]],
        "contracts": [row.copy() for row in document["contracts"]],
    }


def workload_row(workload: Workload) -> WorkloadInShort:
    """One workload of a point."""
    rows = [_cell(row) for row in rows_of(workload)]
    finish = [row["finish_hours"] for row in rows if "finish_hours" in row]
    return {
        "name": workload["name"],
        "kind": workload["kind"],
        "cost_microusd": workload["cost_microusd"],
        "cost_usd": workload["cost_usd"],
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
        "allocations": rows,
    }


def _cell(row: Allocation) -> RowInShort:
    from planner.plan.model.others import RowInShort as Short

    known: Mapping[str, object] = row
    kept = {name: known[name] for name in Short.__annotations__ if name in known}
    return cast("RowInShort", kept | {"layout": dict(row["layout"])})


def unchanging(points: Sequence[FrontierPoint]) -> list[Unchanging]:
    """Workloads that every point runs in the same way."""
    if not points:
        return []
    return [
        {"name": workload["name"], "kind": workload["kind"], "cost_microusd": workload["cost_microusd"]}
        for number, workload in enumerate(points[0]["workloads"])
        if all(point["workloads"][number]["allocations"] == workload["allocations"] for point in points)
    ]
