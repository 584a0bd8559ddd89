"""Rows on shared nodes as launches: one for each node, with the devices of it that its replicas take, or for each job.

On each node the largest have the first devices, so that every replica or job begins at a multiple of its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.carriers import dataclass
from planner.export.cells import whole
from planner.plan.parts import rows_of

if TYPE_CHECKING:
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import PlanDocument
    from planner.plan.model.rows import TrainingAllocation

Place = tuple[str, int]  # workload, and number of the row among its allocations


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNode:
    """Which devices of which shared node replicas take, or a job."""

    node: int  # number among those of its offer, from 0
    nodes: int  # that are shared there
    devices: tuple[int, ...]  # by number, from 0
    others: tuple[str, ...]  # workloads on the same node


def devices_on_nodes(document: PlanDocument) -> dict[Place, tuple[OnNode, ...]]:
    """Of each row on shared nodes where it stands, node by node; rows on nodes of their own are left out."""
    counts = {one["offer"]: whole(one["count"]) for one in document.get("shared_nodes", [])}
    there: dict[tuple[str, int], list[tuple[int, int, Place]]] = {}  # by node: devices of a replica, replicas, whose
    for workload in document["workloads"]:
        for number, row in enumerate(rows_of(workload)):
            if "shared" not in row:
                continue
            size = whole(row["devices_per_replica"] if "replicas" in row else row["devices_per_shape"])
            for one in row["shared"]:
                tenant = (size, whole(one["replicas"]), (workload["name"], number))
                there.setdefault((row["offer"], one["node"]), []).append(tenant)
    found: dict[Place, tuple[OnNode, ...]] = {}
    for (offer, node), tenants in sorted(there.items()):
        first = 0
        for size, replicas, place in sorted(tenants, key=lambda tenant: -tenant[0]):
            taken = tuple(range(first, first + size * replicas))
            first += size * replicas
            others = tuple(dict.fromkeys(name for _, _, (name, _) in tenants if name != place[0]))
            on = OnNode(node=node, nodes=counts.get(offer, 0), devices=taken, others=others)
            found[place] = (*found.get(place, ()), on)
    return found


def by_node(row: ServingAllocation) -> Iterator[ServingAllocation]:
    """A row on shared nodes as one row for each of them; spare replicas are on the last ones."""
    needed = row["replicas_needed"]
    for one in row["shared"]:
        here, part = one["replicas"], one["replicas"] / row["replicas"]
        mine = min(here, needed)
        needed -= mine
        yield {
            **row,
            "count": 1,
            "devices": here * row["devices_per_replica"],
            "replicas": here,
            "replicas_needed": mine,
            "planned_requests_per_s": row["planned_requests_per_s"] * part,
            "routed_requests_per_s": [rate * part for rate in row["routed_requests_per_s"]],
        }


def by_job(row: TrainingAllocation, nodes: Sequence[OnNode]) -> Iterator[tuple[TrainingAllocation, OnNode]]:
    """A row of jobs on shared nodes as one row for each job, with its devices."""
    size = whole(row["devices_per_shape"])
    for on in nodes:
        for first in range(0, len(on.devices), size):
            yield {**row, "jobs": 1, "count": 1, "devices": size}, replace(on, devices=on.devices[first : first + size])
