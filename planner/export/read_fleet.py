"""What a launch of a fleet is told of its allocation: its split, what comes to it, the memory it was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from planner.catalog.model import Catalog
from planner.estimate.engines import Limits, engine_limits
from planner.export.cells import above_zero, if_any, real, whole
from planner.export.launch import Bucket, PlannedMemory, ServingLayout
from planner.scenario.schema import ServingFleet

if TYPE_CHECKING:
    from planner.plan.model.fleet import Bucket as BucketTold
    from planner.plan.model.fleet import ServingAllocation
    from planner.plan.model.plan import ServingWorkload
    from planner.plan.model.rows import Memory


class ServingFields(TypedDict):
    """Fields of a `ServingLaunch` beyond those of every launch."""

    layout: ServingLayout
    replicas: int
    replicas_needed: int
    replicas_always: int
    devices_per_replica: int
    role: str
    engine: str
    requests_per_s: float
    batch: float | None
    mean_input_tokens: float
    mean_output_tokens: float
    buckets: tuple[Bucket, ...]
    memory: PlannedMemory | None
    limits: Limits | None


def serving_fields(
    fleet: ServingFleet, workload: ServingWorkload, row: ServingAllocation, always: int, catalog: Catalog
) -> ServingFields:
    """What a launch of a fleet is told of its allocation, of which `always` replicas run whatever the load.

    Parameters
    ----------
    fleet
        As the scenario in the plan says, defaults filled in.
    workload
        The fleet's part of the plan.
    row
        Its allocation, the part of one on a shared node, or the sum of several that are alike in all but their level.
    always
        Replicas that run whatever the load.
    catalog
        For the engine's limits on the row's device; they are None where the catalog lacks it.

    Raises
    ------
    ValueError, ZeroDivisionError
        A figure of the allocation is none that can be launched.
    """
    split, demand, point, engine = row["layout"], workload["demand"], row["point"], row["tier"]["engine"]
    rate = point["requests_per_s"] if point else 0.0
    return {
        "layout": ServingLayout(
            tp=whole(split["tp"]), pp=whole(split["pp"]), dp=whole(split["dp"]), ep=whole(split["ep"]),
            cp=whole(split["cp"]),
        ),
        "replicas": whole(row["replicas"]),
        "replicas_needed": int(real(row["replicas_needed"])),  # none where a shared node has but spares of the fleet
        "replicas_always": int(real(always)),
        "devices_per_replica": whole(row["devices_per_replica"]),
        "role": row["role"],
        "engine": engine,
        "requests_per_s": real(rate or row["planned_requests_per_s"] / row["replicas"]),
        "batch": if_any(row["batch"]),
        "mean_input_tokens": real(demand["input_tokens"] or 0.0),
        "mean_output_tokens": real(demand["output_tokens"] or 0.0),
        "buckets": _buckets(workload["fleet"]["buckets"], row["routed_requests_per_s"]),
        "memory": _memory(row["memory"]),
        "limits": _limits(fleet, engine, row, catalog),
    }  # fmt: skip


def _buckets(buckets: list[BucketTold], routed: list[float]) -> tuple[Bucket, ...]:
    """Kinds of requests, with what comes of each; without a routing all of them come."""
    rates = routed or [bucket["peak_requests_per_s"] or 0.0 for bucket in buckets]
    return tuple(
        Bucket(
            name=bucket["name"],
            input_tokens=if_any(bucket["input_tokens"]),
            output_tokens=if_any(bucket["output_tokens"]),
            peak_requests_per_s=real(bucket["peak_requests_per_s"] or 0.0),
            routed_requests_per_s=real(rate),
        )
        for bucket, rate in zip(buckets, rates, strict=True)
    )


def _memory(memory: Memory) -> PlannedMemory | None:
    """What the engine may fill; None where only rates were given."""
    terms = memory["terms_bytes"]
    if not terms:
        return None
    return PlannedMemory(
        usable_bytes=above_zero(memory["usable_bytes"]),
        workspace_bytes=real(terms.get("workspace", 0.0)) + real(terms.get("overhead", 0.0)),
        weights_bytes=real(terms.get("weights", 0.0)),
    )


def _limits(fleet: ServingFleet, engine: str, row: ServingAllocation, catalog: Catalog) -> Limits | None:
    """Sequences and tokens of a step of the engine on the row's device: given, or its own defaults there."""
    device = catalog.devices.get(row["device"])
    if device is None:
        return None
    return engine_limits(
        engine or fleet.engine,
        device,
        catalog.shapes.get(row["shape"]),
        max_num_seqs=fleet.limits.max_num_seqs,
        max_batched_tokens=fleet.limits.max_num_batched_tokens,
        memory_fraction=fleet.limits.memory_fraction,
    )
