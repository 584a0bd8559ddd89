"""A point of a frontier as a row: the plan's own document, cut down to what tells points apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from planner.candidates.search import Candidates
from planner.optimize.solve import Solution
from planner.plan.frontier.model import Cell, FoundPoint, FrontierPoint, PointWorkload, Unchanging


def point_row(candidates: Candidates, solution: Solution, document: Mapping[str, Any], least: float) -> FoundPoint:
    """What a point is: its totals and, of every workload, what is rented.

    Parameters
    ----------
    least
        The tightest limit of the sweep at which this plan is the best: s, micro-USD or mg.
    """
    program, summary = candidates.program, document["summary"]
    used = solution.units > 0
    jobs = [part for task in program.tasks if task.kind == "training" for part in range(task.first, task.stop)]
    finish = [float(program.finish_s[column]) for column in jobs if used[column]]
    scenario = candidates.scenario  # where carbon plays no part, offers may be in places whose grid is unknown
    counted = "carbon" in scenario.objective or scenario.limits.carbon_g is not None
    carbon_mg = sum(int(u) * int(c) for u, c in zip(solution.units[used], program.carbon_mg[used]))
    return {
        "from": least,
        "cost_microusd": summary["cost_microusd"],
        "cost_usd": summary["cost_usd"],
        "gap": summary["gap"],
        "devices": summary["devices"],
        "device_hours": summary["device_hours"],
        "finish_hours": max(finish) / 3600.0 if finish else None,
        "carbon_kg": carbon_mg / 1e6 if counted else None,
        "workloads": [workload_row(workload) for workload in document["workloads"]],
        "contracts": [dict(row) for row in document.get("contracts") or []],
    }


def workload_row(workload: Mapping[str, Any]) -> PointWorkload:
    """One workload of a point."""
    rows = [_cell(row) for row in workload["allocations"]]
    finish = [row["finish_hours"] for row in rows if row.get("finish_hours") is not None]
    return {
        "name": workload["name"],
        "kind": workload["kind"],
        "cost_microusd": workload["cost_microusd"],
        "cost_usd": workload["cost_usd"],
        "devices": sum(row["devices"] for row in rows),
        "finish_hours": max(finish, default=None),
        "allocations": rows,
    }


def _cell(row: Mapping[str, Any]) -> Cell:
    layout = row.get("layout") or {}
    kept = {name: row[name] for name in Cell.__annotations__ if name in row}
    kept["layout"] = {name: value for name, value in layout.items() if isinstance(value, int | float | str)}
    return cast("Cell", kept)


def unchanging(points: Sequence[FrontierPoint]) -> list[Unchanging]:
    """Workloads that every point runs in the same way."""
    if not points:
        return []
    return [
        {"name": workload["name"], "kind": workload["kind"], "cost_microusd": workload["cost_microusd"]}
        for number, workload in enumerate(points[0]["workloads"])
        if all(point["workloads"][number]["allocations"] == workload["allocations"] for point in points)
    ]
