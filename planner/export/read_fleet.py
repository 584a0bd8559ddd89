"""What a launch of a fleet is told of its allocation: its split, what comes to it, the memory it was promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.catalog.model import Catalog
from planner.estimate.engines import Limits, engine_limits
from planner.export.cells import above_zero, if_any, real, text, whole
from planner.export.launch import Bucket, PlannedMemory, ServingLayout
from planner.scenario.schema import ServingFleet

Document = Mapping[str, Any]
ONE_DEVICE = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "cp": 1}  # rates given: each offer is one device


def serving_fields(fleet: ServingFleet, workload: Document, row: Document, catalog: Catalog) -> dict[str, Any]:
    """Fields of a `ServingLaunch` beyond those of every launch.

    Raises
    ------
    KeyError, TypeError, ValueError
        The allocation lacks something, or has it in another form.
    """
    split, demand, point = row.get("layout") or ONE_DEVICE, workload["demand"], row.get("point") or {}
    engine = (row.get("tier") or {}).get("engine") or ""
    return {
        "layout": ServingLayout(**{name: whole(split[name]) for name in ONE_DEVICE}),
        "replicas": whole(row["replicas"]),
        "replicas_needed": whole(row["replicas_needed"]),
        "replicas_always": int(real(row["replicas_always"])),
        "devices_per_replica": whole(row.get("devices_per_replica", 1)),
        "role": str(row.get("role", "whole")),
        "engine": str(engine),
        "requests_per_s": real(point.get("requests_per_s") or row["planned_requests_per_s"] / row["replicas"]),
        "batch": if_any(row.get("batch")),
        "mean_input_tokens": real(demand.get("input_tokens") or 0.0),
        "mean_output_tokens": real(demand.get("output_tokens") or 0.0),
        "buckets": _buckets((workload.get("fleet") or {}).get("buckets") or [], row.get("routed_requests_per_s") or []),
        "memory": _memory(row.get("memory")),
        "limits": _limits(fleet, str(engine), row, catalog),
    }


def _buckets(buckets: list[Document], routed: list[Any]) -> tuple[Bucket, ...]:
    """Kinds of requests, with what comes of each; without a routing all of them come."""
    rates = routed or [bucket["peak_requests_per_s"] for bucket in buckets]
    return tuple(
        Bucket(
            name=text(bucket, "name"),
            input_tokens=if_any(bucket.get("input_tokens")),
            output_tokens=if_any(bucket.get("output_tokens")),
            peak_requests_per_s=real(bucket["peak_requests_per_s"]),
            routed_requests_per_s=real(rate),
        )
        for bucket, rate in zip(buckets, rates, strict=True)
    )


def _memory(memory: Document | None) -> PlannedMemory | None:
    """What the engine may fill; None where only rates were given."""
    if not memory:
        return None
    terms = memory["terms_bytes"]
    return PlannedMemory(
        usable_bytes=above_zero(memory["usable_bytes"]),
        workspace_bytes=real(terms.get("workspace", 0.0)) + real(terms.get("overhead", 0.0)),
    )


def _limits(fleet: ServingFleet, engine: str, row: Document, catalog: Catalog) -> Limits | None:
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
