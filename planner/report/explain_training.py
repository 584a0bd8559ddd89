"""Why one row of a training job is as it is: time and memory term by term, what binds, what is known of the error.

Every figure is a cell of the plan document; only shares are worked out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner import units
from planner.report import band_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Items, columns

Piece = Mapping[str, Any]
_LINES = 4  # resources that are named


def training_blocks(workload: Piece, row: Piece) -> list[Block]:
    """The blocks of one row: work and rate, time by term, memory by term, what binds, what is known of the error."""
    return [_rate(workload, row), time_terms(workload, row), memory_terms(workload, row), _binding(row), _known(row)]


def _rate(workload: Piece, row: Piece) -> Block:
    """From work per token to the wall clock."""
    work, demand = row.get("work"), workload["demand"]
    rate = f"{row['peak_flop_per_s'] / 1e12:,.4g} TFLOP/s peak × {100 * row['mfu']:.3g} % MFU, {row['mfu_source']}"
    if work is None:  # a plan of an earlier version
        return Grid(columns=columns("Work", ">", ""), rows=[["rate per device", "", rate]])
    per_job = row["device_hours"] / row["jobs"]
    left = " left" if demand.get("progress_tokens") else ""
    goodput = row["run"]["goodput"]
    rows = [
        ["work per token", f"{work['flop_per_token'] / 1e9:,.4g} GFLOP", "6 · P + 3 · attention forward  EQ-FLOP-7"],
        ["total", f"{work['flop_count']:.4g} FLOP", f"× {units.format_count(work['tokens'])} tokens{left}"],
        ["rate per device", f"{work['flop_per_s_per_device'] / 1e12:,.4g} TFLOP/s", rate],
        ["device-hours", f"{per_job:,.6g}", "of one job" if row["jobs"] > 1 else ""],
        ["wall clock", f"{row['hours']:,.5g} h", f"÷ {row['devices'] // row['jobs']:,} devices, goodput {goodput:.1%}"],
        *_at_confidence(row),
        ["rule of thumb", f"{row['rule_hours']:,.5g} h", "13.3 · tokens · size on the same devices  EQ-RULE-3"],
    ]
    return Grid(columns=columns("Work and rate", ">", ""), rows=rows)


def _at_confidence(row: Piece) -> list[list[str]]:
    band = row["error_band"]
    if not band["time"] or band["time"]["margin"] <= 1.0:
        return []
    name, margin = bands.percentile(band["confidence"]), band["time"]["margin"]
    return [
        [f"at {name}", f"{band['hours']['at_confidence']:,.5g} h", f"× {margin:.4g}, must meet the deadline  EQ-BAND-1"]
    ]


def time_terms(workload: Piece, row: Piece) -> Block:
    """Terms of the wall time, with equation and source."""
    sources = (workload.get("term_sources") or {}).get("time", {})
    return terms_grid("Time of the run", row["time_terms_s"], units.format_duration, sources)


def memory_terms(workload: Piece, row: Piece) -> Block:
    """Terms of the memory of the fullest device, against what is usable."""
    memory, band = row["memory"], row.get("error_band")
    sources = (workload.get("term_sources") or {}).get("memory", {})
    usable = units.format_bytes(memory["usable_bytes"])
    notes = []
    if band and band["memory"] and band["memory"]["margin"] > 1.0:
        needed = units.format_bytes(band["needed_bytes"]["at_confidence"])
        notes.append(f"{needed} at {bands.percentile(band['confidence'])}, which must fit  EQ-BAND-1")
    return terms_grid(
        f"Memory of the fullest device, {usable} usable", memory["terms_bytes"], units.format_bytes, sources, notes
    )


def terms_grid(
    title: str, terms: Mapping[str, float], show: Any, sources: Mapping[str, Piece], notes: list[str] | None = None
) -> Block:
    """Terms that are not zero with their share of the total, equation and source."""
    total = sum(terms.values())
    rows = [
        [
            words.spaced(name),
            show(value),
            f"{100 * value / total:.1f} %" if total else "",
            cited(sources.get(name)),
        ]
        for name, value in terms.items()
        if value
    ]
    heads = columns(title, ">", ">share", "")
    return Grid(columns=heads, rows=[*rows, ["total", show(total), "", ""]], notes=tuple(notes or ()))


def cited(source: Piece | None) -> str:
    """An equation and what it is from: "EQ-MEM-1 [Rajbhandari 2020]"."""
    if not source:
        return ""
    return f"{source['equation']} [{source['source']}]" if source["source"] else str(source["equation"])


def _binding(row: Piece) -> Block:
    """What the time is spent on, and how much of deadline, memory and shape is left."""
    items = []
    if isinstance(row.get("binds"), Mapping):
        shares = list(row["binds"].items())[:_LINES]
        items.append("time goes to " + ", ".join(f"{name} {100 * share:.3g} %" for name, share in shares))
    items += [*_deadline_slack(row), *_memory_slack(row)]
    if row["devices_per_shape"] > 1:
        items.append(f"devices come in shapes of {row['devices_per_shape']}")
    return Items(title="Binding", items=tuple(items))


def _deadline_slack(row: Piece) -> list[str]:
    band = row.get("error_band")
    late = band["hours"]["at_confidence"] - row["hours"] if band else 0.0
    slack_s = (row["deadline_hours"] - row["finish_hours"] - late) * 3600.0
    at = f" at {bands.percentile(band['confidence'])}" if band and late > 0 else ""
    return [f"deadline: {units.format_duration(max(slack_s, 0.0))} of slack{at}"]


def _memory_slack(row: Piece) -> list[str]:
    memory, band = row["memory"], row.get("error_band")
    needed = band["needed_bytes"]["at_confidence"] if band else memory["needed_bytes"]
    at = f" at {bands.percentile(band['confidence'])}" if band and needed > memory["needed_bytes"] else ""
    return [f"memory: {units.format_bytes(max(memory['usable_bytes'] - needed, 0.0))} free{at}"]


def _known(row: Piece) -> Block:
    """The error of the family behind the figures."""
    band = row.get("error_band")
    if not band:
        return Items(title="Known error", items=())
    items = [bands.known_from(band)]
    for what in ("time", "memory"):
        if known := band[what]:
            ratios = ", ".join(f"{name} {known[name]:.3g}" for name in ("p10", "p50", "p90"))
            items.append(f"{what}: measured over predicted {ratios}, on {known['rows']} rows that were not fitted to")
    return Items(title="Known error", items=tuple(items))
