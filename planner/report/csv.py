"""CSV: one row an allocation, base units in the column names, no cell that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from planner.plan.model.rows import Energy, Place
from planner.report.escape import csv_cell

if TYPE_CHECKING:
    from planner.plan.model.plan import Allocation, PlanDocument, Workload

Row = dict[str, object]
# fmt: off
_LAYOUT = (
    "dp", "tp", "pp", "vpp", "cp", "ep", "micro_batch", "micro_batches", "global_batch_sequences", "sharding",
    "recompute",
)
_PLAIN = (
    *Place.__annotations__, "jobs", "replicas", "replicas_needed", "devices_per_replica", "role", "funding",
    "reserved_pool",
)
_FIGURES = (
    "hours", "start_hours", "end_hours",
    "finish_hours", "deadline_hours", "load_at_peak", "planned_requests_per_s", "replica_requests_per_s",
    "batch", "tpot_s", "output_tokens_per_s_per_replica", "usd_per_million_output_tokens_mean",
    "usd_per_million_output_tokens_full", "binds", "mfu", "cost_microusd", "cost_usd", "device_hours",
    *Energy.__annotations__,
)
# fmt: on
_POINT: Final = ("requests_per_s", "sequences", "batch_limit", "prefill_share", "sized_by")
_LATENCIES = ("ttft", "tpot", "e2e")
_MEMORY: Final = ("needed_bytes", "usable_bytes", "free_bytes")
_KNOWN: Final = ("tier", "family", "constants", "confidence")
_SPREADS: Final = ("hours", "cost_usd", "needed_bytes")
_QUANTILES: Final = ("p10", "p50", "p90", "at_confidence")
PLAN_COLUMNS = (
    "plan", "case", "status", "workload", "kind", "model", *_PLAIN, *_LAYOUT, *_FIGURES,
    *(f"replica_at_peak_{name}" for name in _POINT), *(f"{name}_p95_s" for name in _LATENCIES), "constants", "tag",
    *(f"memory_{name}" for name in _MEMORY), *(f"band_{name}" for name in _KNOWN),
    *(f"{name}_{quantile}" for name in _SPREADS for quantile in _QUANTILES),
)  # fmt: skip


def columns_of(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Every key of the rows, in the order in which they appear."""
    return list(dict.fromkeys(key for row in rows for key in row))


def render(rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Rows as CSV with a header line; columns a row lacks stay empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([csv_cell(column) for column in columns])
    writer.writerows([csv_cell(row.get(column)) for column in columns] for row in rows)
    return buffer.getvalue()


def plan_rows(document: PlanDocument) -> list[Row]:
    """One flat row an allocation, a contract or a copy of data: costs add up to the total."""
    head = {"plan": document["name"], "case": document["case"], "status": document["status"]}
    rows = [_allocation(workload, row) for workload in document["workloads"] for row in workload["allocations"]]
    rows += [_bought(contract, "contract") for contract in document.get("contracts", [])]
    rows += [_bought(copy, "copy") | {"workload": copy["data"]} for copy in document.get("copies", [])]
    return [head | row for row in rows]


def _bought(row: Mapping[str, object], kind: str) -> Row:
    """What is bought ahead; no workload's alone."""
    flat = {name: row.get(name) for name in (*_PLAIN, *_FIGURES)}
    return flat | {"kind": kind, "price_model": row.get("kind", ""), "reserved_pool": row.get("pool")}


def _served(row: Allocation) -> Row:
    """What one replica does at its peak, and what predicts it; nothing for training."""
    if "point" not in row:
        return {}
    told: Row = {"constants": row["tier"]["constants"], "tag": row["tier"]["tag"]}
    point = row["point"]
    if point is None:
        return told
    figures = {f"replica_at_peak_{name}": point[name] for name in _POINT}
    return figures | {"ttft_p95_s": point["ttft_s"]["p95"], "tpot_p95_s": point["tpot_s"]["p95"],
                      "e2e_p95_s": point["e2e_s"]["p95"]} | told  # fmt: skip


def _allocation(workload: Workload, row: Allocation) -> Row:
    flat: Row = {"workload": workload["name"], "kind": workload["kind"], "model": workload["model"]}
    cells: Mapping[str, object] = row
    layout: Mapping[str, object] = row["layout"]
    flat |= {name: cells.get(name) for name in (*_PLAIN, *_FIGURES)}
    flat |= _served(row)
    if "mfu" in row:  # shares by resource: the largest names what binds
        flat["binds"] = next(iter(row["binds"]), "")
    flat |= {name: layout.get(name) for name in _LAYOUT}
    return flat | {f"memory_{name}": row["memory"][name] for name in _MEMORY} | _band(row)


def _band(row: Allocation) -> Row:
    """The error band of a row, flat; empty where there is none."""
    if "error_band" not in row:
        return {}
    band = row["error_band"]
    spreads = {f"{name}_{quantile}": band[name][quantile] for name in _SPREADS for quantile in _QUANTILES}
    known: Row = {f"band_{name}": band[name] for name in _KNOWN}
    return known | spreads


def render_plan(document: PlanDocument) -> str:
    """The allocations of a plan document as CSV."""
    return render(plan_rows(document), PLAN_COLUMNS)
