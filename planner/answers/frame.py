"""The columns of `Plan.to_frame`: where each stands in a row of the plan document. No number is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Kind = Literal["training", "serving"]
Columns = dict[str, str]  # name -> path in the row

_WHERE: Columns = {
    name: name
    for name in ("offer", "provider", "region", "zone", "device", "shape", "price_model", "funding", "count", "devices")
}
_COST: Columns = {
    name: name
    for name in ("price_microusd_per_hour", "hours", "device_hours", "start_hours", "end_hours", "cost_microusd")
} | {"cost_usd": "cost_usd"}
_SPLIT: Columns = {name: f"layout.{name}" for name in ("dp", "tp", "pp", "cp", "ep")}
_MEMORY: Columns = {f"memory_{name}_bytes": f"memory.{name}_bytes" for name in ("needed", "usable", "free")}
_ENDS = ("p10", "p50", "p90")

_TRAINED: Columns = {
    "finish_hours": "finish_hours",
    "deadline_hours": "deadline_hours",
    **{f"hours_{end}": f"error_band.hours.{end}" for end in _ENDS},
    **{f"cost_usd_{end}": f"error_band.cost_usd.{end}" for end in _ENDS},
    **{f"memory_needed_bytes_{end}": f"error_band.needed_bytes.{end}" for end in _ENDS},
}
_SERVED: Columns = {
    "replicas": "replicas",
    "planned_requests_per_s": "planned_requests_per_s",
    "load_at_peak": "load_at_peak",
    **{f"ttft_{end}_s": f"point.ttft_s.{end}" for end in ("p50", "p95")},
    **{f"tpot_{end}_s": f"point.tpot_s.{end}" for end in ("p50", "p95")},
}
_BOTH: Columns = {"workload": "workload", "kind": "kind", **_WHERE, **_SPLIT, **_MEMORY, **_COST}

COLUMNS: Mapping[Kind | None, Columns] = {
    None: {**_BOTH, **_TRAINED, **_SERVED},
    "training": {
        **_BOTH,
        "jobs": "jobs",
        "vpp": "layout.vpp",
        **{
            name: f"layout.{name}"
            for name in ("micro_batch", "micro_batches", "global_batch_sequences", "sharding", "recompute")
        },
        **_TRAINED,
        "confidence": "error_band.confidence",
        "tier": "error_band.tier",
        "mfu": "mfu",
        "goodput": "run.goodput",
        "mix": "mix.name",
        "mix_share": "mix.share",
    },
    "serving": {
        **_BOTH,
        "role": "role",
        "level": "level",
        **_SERVED,
        "replicas_needed": "replicas_needed",
        "devices_per_replica": "devices_per_replica",
        "batch": "batch",
        "e2e_p95_s": "point.e2e_s.p95",
        "itl_p99_s": "point.itl_p99_s",
        "sized_by": "point.sized_by",
        # the error band of a latency: measured over predicted
        **{f"{name}_band_{end}": f"tier.{name}.{end}" for name in ("ttft", "tpot") for end in _ENDS},
        "confidence": "tier.confidence",
        "tier": "tier.tier",
        "output_tokens_per_s_per_replica": "output_tokens_per_s_per_replica",
        "usd_per_million_output_tokens_mean": "usd_per_million_output_tokens_mean",
        "usd_per_million_output_tokens_full": "usd_per_million_output_tokens_full",
    },
}


def rows_of(document: Mapping[str, Any], kind: Kind | None) -> Iterator[dict[str, Any]]:
    """One row for each thing that is rented, of one kind of workload or of all; what a row has not is None."""
    for workload in document["workloads"]:
        if kind in (None, workload["kind"]):
            for row in workload["allocations"]:
                told = {**row, "workload": workload["name"], "kind": workload["kind"]}
                yield {name: _at(told, path) for name, path in COLUMNS[kind].items()}


def _at(row: Any, path: str) -> Any:
    for key in path.split("."):
        row = row.get(key) if isinstance(row, Mapping) else None
    return row
