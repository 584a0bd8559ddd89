"""Replicas that an autoscaled fleet adds level by level are launched as one set that grows and shrinks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from planner.export.shared import OnNode, Place, by_node
from planner.plan.parts import rows_of

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.workloads import Allocation, Workload


class Launched(NamedTuple):
    """An allocation, or several that are launched as one, with their sums."""

    row: Allocation
    replicas_always: int  # those of level 0; 0 of a training job
    on: OnNode | None = None  # a shared node; None: nodes of its own


def joined_levels(rows: Sequence[Allocation]) -> list[Launched]:
    """Allocations of one workload in the plan's order; those of a fleet alike in all but their level as one."""
    levelled = any("replicas" in row and row.get("level") for row in rows)
    kinds: dict[str, list[Allocation]] = {}
    for number, row in enumerate(rows):
        alike = (row["offer"], "replicas" in row and row["role"], row["layout"], row["funding"])
        kinds.setdefault(json.dumps(alike, sort_keys=True) if levelled else str(number), []).append(row)
    return [_launched(alike) for alike in kinds.values()]


def launched_of(workload: Workload, places: Mapping[Place, tuple[OnNode, ...]]) -> list[Launched]:
    """What is launched for a workload, in the plan's order: on shared nodes node by node, what comes and goes as one.

    Parameters
    ----------
    places
        Where rows on shared nodes stand.
    """
    found = joined_levels([row for row in rows_of(workload) if "shared" not in row])
    for number, row in enumerate(rows_of(workload)):
        if "replicas" in row and "shared" in row:
            nodes = places[workload["name"], number]
            found += [Launched(part, part["replicas"], on) for part, on in zip(by_node(row), nodes, strict=True)]
    return found


def _launched(rows: Sequence[Allocation]) -> Launched:
    replicas = [row for row in rows if "replicas" in row]
    if not replicas:  # a training job
        return Launched(rows[0], 0)
    always = sum(row["replicas"] for row in replicas if not row.get("level"))
    return Launched(replicas[0] if len(replicas) == 1 else _sum(replicas), always)


def _sum(rows: Sequence[ServingAllocation]) -> ServingAllocation:
    routed = zip(*(row["routed_requests_per_s"] for row in rows))
    return {
        **min(rows, key=lambda row: row.get("level", 0)),
        "count": sum(row["count"] for row in rows),
        "devices": sum(row["devices"] for row in rows),
        "replicas": sum(row["replicas"] for row in rows),
        "replicas_needed": sum(row["replicas_needed"] for row in rows),
        "planned_requests_per_s": sum(row["planned_requests_per_s"] for row in rows),
        "routed_requests_per_s": [sum(each) for each in routed],
    }
