"""The figures of one allocation: what was chosen, what is predicted, what is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.plan.model.plan import PlanDocument
from planner.plan.model.rows import Energy
from planner.plan.model.workloads import Allocation, TermSource, Workload
from planner.report import accounting as rules
from planner.report.model import TraceRow
from planner.report.trace.row import ruled, spaced, traced, unit_of

# how the cells of an allocation come about: kind and unit; those with an id of their own are traced one by one
_CHOSEN = {
    "count": "nodes",
    "devices": "devices",
    "replicas": "replicas",
    "layout": "",
    "level": "",
    "start_hours": "h",
    "end_hours": "h",
    "finish_hours": "h",
}
_PREDICTED = {
    "hours": "h",
    "binds": "",
    "mfu": "",
    "work": "",
    "rule_hours": "h",
    "run": "",
    "mix": "",
    "runs": "h",
    "load_at_peak": "",
    "replica_requests_per_s": "1/s",
    "planned_requests_per_s": "1/s",
    "bucket_requests_per_s": "1/s",
    "routed_requests_per_s": "1/s",
    "tpot_s": "s",
    "prefill_s": "s",
    "decode_terms_s": "s",
    "point": "",
    "batch": "sequences",
    "replicas_needed": "replicas",
    "tier": "",
    "output_tokens_per_s_per_replica": "tokens/s",
    "step_time_ratio": "",
    "mean_output_tokens": "tokens",
    "usd_per_million_output_tokens_mean": "USD",
    "usd_per_million_output_tokens_full": "USD",
}
_KNOWN = {  # unit, and the fact of a device behind it
    "peak_flop_per_s": ("FLOP/s", "peak_flop_per_s"),
    "power_w": ("W", "tdp_w"),
    "devices_per_shape": ("devices", ""),
    "devices_per_replica": ("devices", ""),
}
_ERRS = {"held_hours": "h", "error_band": ""}


def allocation_rows(
    plan: PlanDocument, workload: Workload, row: Allocation, path: str, asked: str
) -> Iterator[TraceRow]:
    """Every figure of one allocation.

    Parameters
    ----------
    path
        Of the allocation in the report document.
    asked
        Where the scenario asks for the workload.
    """
    who, cells = f"{workload['name']} on {row['offer']}", _cells(row)
    yield from _money(row, who, path)
    for key, unit in _CHOSEN.items():
        if key in cells:
            yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.CHOSEN, cells[key], unit)
    yield from _predicted(workload, row, who, path)
    for key, (unit, fact) in _KNOWN.items():
        if cells.get(key) is not None:
            origin = _origin(plan, row, fact)
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "fact", value=cells[key], unit=unit, **origin)
    for key in Energy.__annotations__:
        if cells.get(key) is not None and key not in (*_KNOWN, "carbon_kg"):
            yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.MACHINES, cells[key], unit_of(key))
    for key in ("deadline_hours", "jobs"):
        if key in cells:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "scenario", value=cells[key], place=asked)
    yield from _terms(workload, row, who, path)


def _cells(row: Allocation) -> Mapping[str, object]:
    return row


def _money(row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """Price, cost, device-hours and what they emit."""
    price = row["price_microusd_per_hour"]
    yield traced(f"{who}: price of a node", f"{path}.price_microusd_per_hour", "fact", value=price,
                 unit="micro-USD/h", source=row["price_source"], as_of=row["price_as_of"],
                 status=row["price_status"])  # fmt: skip
    for key in ("cost_microusd", "cost_usd"):
        yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.COST, row[key], unit_of(key))
    if "billed_hours" in row:
        hours = row["billed_hours"]
        yield traced(f"{who}: billed hours", f"{path}.billed_hours", "equation", value=hours, unit="h", ids="EQ-BILL-1")
    yield ruled(f"{who}: device-hours", f"{path}.device_hours", rules.HOURS, row["device_hours"], "h")
    yield ruled(f"{who}: carbon", f"{path}.carbon_kg", rules.CARBON, row["carbon_kg"], "kg")


def _predicted(workload: Workload, row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """What equations say of speed and load, and how far they may be off."""
    ids, cells = _time_equations(workload, row), _cells(row)
    for key, unit in _PREDICTED.items():
        if key in cells:
            source = str(cells.get("mfu_source", "")) if key in ("mfu", "hours") else ""
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=cells[key], unit=unit, ids=ids,
                         source=source)  # fmt: skip
    for key, unit in _ERRS.items():
        if cells.get(key) is not None:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=cells[key], unit=unit,
                         ids="EQ-BAND-1", source=_band_source(row))  # fmt: skip


def _time_equations(workload: Workload, row: Allocation) -> str:
    """Ids behind the time of a row: of the terms that are not zero, or else of all the workload."""
    terms = row["time_terms_s"] if "time_terms_s" in row else row["decode_terms_s"]
    known = workload["term_sources"]["time"]
    found = dict.fromkeys(known[name]["equation"] for name, value in terms.items() if value and name in known)
    return " ".join(found or workload["equations"]) or rules.GIVEN


def _band_source(row: Allocation) -> str:
    """What a band was measured on."""
    if "error_band" not in row:
        return ""
    band, time = row["error_band"], row["error_band"]["time"]
    rows = f", {time['rows']} measured rows of {time['sources']} sources" if time else ""
    return f"{band['tier']} tier, {band['family']} {band['constants']}{rows}"


def _origin(plan: PlanDocument, row: Allocation, fact: str) -> dict[str, str]:
    """Source, date and status of a fact of a row's device; what follows from its shape is derived."""
    for one in plan["provenance"]["facts"]:
        if fact and one["subject"] == row["device"] and one["fact"].startswith(fact):
            return {"source": one["source"], "as_of": one["as_of"], "status": one["status"]}
    return {"source": f"catalog: {row['device']}, {row['shape']}", "as_of": "", "status": "derived"}


def _terms(workload: Workload, row: Allocation, who: str, path: str) -> Iterator[TraceRow]:
    """Each part of memory and time with the equation that gives it."""
    sources = workload["term_sources"]
    parts = [("memory", "memory.terms_bytes", "B", row["memory"]["terms_bytes"], sources["memory"])]
    if "time_terms_s" in row:
        parts.append(("time", "time_terms_s", "s", row["time_terms_s"], sources["time"]))
    unknown: TermSource = {"equation": " ".join(workload["equations"]), "source": ""}
    for kind, below, unit, values, known in parts:
        for name, value in values.items():
            found = known.get(name, unknown)
            yield traced(f"{who}: {kind} of {spaced(name)}", f"{path}.{below}.{name}", "equation", value=value,
                         unit=unit, ids=found["equation"], source=found["source"])  # fmt: skip
    ids = " ".join(dict.fromkeys(one["equation"] for one in sources["memory"].values()))
    for size in ("needed_bytes", "usable_bytes", "free_bytes"):
        value = row["memory"][size]
        yield traced(f"{who}: memory {spaced(size)}", f"{path}.memory.{size}", "equation", value=value, unit="B",
                     ids=ids or rules.GIVEN)  # fmt: skip
