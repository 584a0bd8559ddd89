"""The figures of one allocation: what was chosen, what is predicted, what is known."""

from __future__ import annotations

from collections.abc import Iterator

from planner.report import accounting as rules
from planner.report.trace.row import Document, Piece, ruled, spaced, traced, unit_of

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
    "share_kept": "",
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


def allocation_rows(plan: Piece, workload: Piece, row: Piece, path: str, asked: str) -> Iterator[Document]:
    """Every figure of one allocation.

    Parameters
    ----------
    path
        Of the allocation in the report document.
    asked
        Where the scenario asks for the workload.
    """
    who = f"{workload['name']} on {row['offer']}"
    yield from _money(row, who, path)
    for key, unit in _CHOSEN.items():
        if key in row:
            yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.CHOSEN, row[key], unit)
    yield from _predicted(workload, row, who, path)
    for key, (unit, fact) in _KNOWN.items():
        if row.get(key) is not None:
            origin = _origin(plan, row, fact)
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "fact", value=row[key], unit=unit, **origin)
    for key in ("deadline_hours", "jobs"):
        if key in row:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "scenario", value=row[key], place=asked)
    yield from _terms(workload, row, who, path)


def _money(row: Piece, who: str, path: str) -> Iterator[Document]:
    """Price, cost, device-hours and what they emit."""
    told = {name: row[f"price_{name}"] for name in ("source", "as_of", "status")}
    price = row["price_microusd_per_hour"]
    yield traced(f"{who}: price of a node", f"{path}.price_microusd_per_hour", "fact", value=price,
                 unit="micro-USD/h", **told)  # fmt: skip
    for key in ("cost_microusd", "cost_usd"):
        yield ruled(f"{who}: {spaced(key)}", f"{path}.{key}", rules.COST, row[key], unit_of(key))
    yield ruled(f"{who}: device-hours", f"{path}.device_hours", rules.HOURS, row["device_hours"], "h")
    yield ruled(f"{who}: carbon", f"{path}.carbon_kg", rules.CARBON, row["carbon_kg"], "kg")


def _predicted(workload: Piece, row: Piece, who: str, path: str) -> Iterator[Document]:
    """What equations say of speed and load, and how far they may be off."""
    ids = _time_equations(workload, row)
    for key, unit in _PREDICTED.items():
        if key in row:
            source = row.get("mfu_source", "") if key in ("mfu", "hours") else ""
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=row[key], unit=unit, ids=ids,
                         source=source)  # fmt: skip
    for key, unit in _ERRS.items():
        if row.get(key) is not None:
            yield traced(f"{who}: {spaced(key)}", f"{path}.{key}", "equation", value=row[key], unit=unit,
                         ids="EQ-BAND-1", source=_band_source(row))  # fmt: skip


def _time_equations(workload: Piece, row: Piece) -> str:
    """Ids behind the time of a row: of the terms that are not zero, or else of all the workload."""
    terms = {**(row.get("time_terms_s") or {}), **(row.get("decode_terms_s") or {})}
    known = workload["term_sources"]["time"]
    found = dict.fromkeys(known[name]["equation"] for name, value in terms.items() if value and name in known)
    return " ".join(found or workload["equations"]) or rules.GIVEN


def _band_source(row: Piece) -> str:
    """What a band was measured on."""
    band = row.get("error_band") or {}
    time = band.get("time") or {}
    rows = f", {time['rows']} measured rows of {time['sources']} sources" if time else ""
    return f"{band['tier']} tier, {band['family']} {band['constants']}{rows}" if band else ""


def _origin(plan: Piece, row: Piece, fact: str) -> dict[str, str]:
    """Source, date and status of a fact of a row's device; what follows from its shape is derived."""
    for one in plan["provenance"]["facts"]:
        if fact and one["subject"] == row["device"] and one["fact"].startswith(fact):
            return {name: one[name] for name in ("source", "as_of", "status")}
    return {"source": f"catalog: {row['device']}, {row['shape']}", "as_of": "", "status": "derived"}


def _terms(workload: Piece, row: Piece, who: str, path: str) -> Iterator[Document]:
    """Each part of memory and time with the equation that gives it."""
    parts = {
        "memory": ("memory.terms_bytes", "B", row["memory"]["terms_bytes"]),
        "time": ("time_terms_s", "s", row.get("time_terms_s") or {}),
    }
    for kind, (below, unit, values) in parts.items():
        known = workload["term_sources"][kind]
        for name, value in values.items():
            found = known.get(name, {"equation": " ".join(workload["equations"]), "source": ""})
            yield traced(f"{who}: {kind} of {spaced(name)}", f"{path}.{below}.{name}", "equation", value=value,
                         unit=unit, ids=found["equation"], source=found["source"])  # fmt: skip
    ids = " ".join(dict.fromkeys(one["equation"] for one in workload["term_sources"]["memory"].values()))
    for name in ("needed_bytes", "usable_bytes", "free_bytes"):
        value = row["memory"][name]
        yield traced(f"{who}: memory {spaced(name)}", f"{path}.memory.{name}", "equation", value=value, unit="B",
                     ids=ids or rules.GIVEN)  # fmt: skip
