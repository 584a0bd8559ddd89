"""Why one row of a training job is as it is: time and memory term by term, what binds, what is known of the error.

Every figure is a cell of the plan document; only shares are worked out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner import units
from planner.plan.model.rows import TrainingAllocation
from planner.plan.model.workloads import Allocation, TermSource, TrainingWorkload, Workload
from planner.report import band_words as bands
from planner.report import plan_words as words
from planner.report.blocks import Block, Grid, Items, columns

_LINES = 4  # resources that are named


def training_blocks(workload: TrainingWorkload, row: TrainingAllocation) -> list[Block]:
    """The blocks of one row: work and rate, time by term, memory by term, what binds, what is known of the error."""
    return [_rate(workload, row), time_terms(workload, row), memory_terms(workload, row), _binding(row), _known(row)]


def _rate(workload: TrainingWorkload, row: TrainingAllocation) -> Block:
    """From work per token to the wall clock."""
    work, demand = row["work"], workload["demand"]
    rate = f"{_four(row['peak_flop_per_s'] / 1e12)} TFLOP/s peak × {100 * row['mfu']:.3g} % MFU, {row['mfu_source']}"
    per_job = row["device_hours"] / row["jobs"]
    left = " left" if demand["progress_tokens"] else ""
    goodput = row["run"]["goodput"]
    rows = [
        ["work per token", f"{_four(work['flop_per_token'] / 1e9)} GFLOP", "6 · P + 3 · attention forward  EQ-FLOP-7"],
        ["total", f"{work['flop_count']:.4g} FLOP", f"× {units.format_count(work['tokens'])} tokens{left}"],
        ["rate per device", f"{_four(work['flop_per_s_per_device'] / 1e12)} TFLOP/s", rate],
        ["device-hours", units.format_number(per_job, 6, apart=True), "of one job" if row["jobs"] > 1 else ""],
        ["wall clock", _hours(row["hours"]), f"÷ {row['devices'] // row['jobs']:,} devices, goodput {goodput:.1%}"],
        *_at_confidence(row),
        ["rule of thumb", _hours(row["rule_hours"]), "13.3 · tokens · size on the same devices  EQ-RULE-3"],
    ]
    return Grid(columns=columns("Work and rate", ">", ""), rows=rows)


def _four(value: float) -> str:
    return units.format_number(value, 4, apart=True)


def _hours(value: float) -> str:
    return f"{units.format_number(value, 5, apart=True)} h"


def _at_confidence(row: TrainingAllocation) -> list[list[str]]:
    band = row["error_band"]
    if not band["time"] or band["time"]["margin"] <= 1.0:
        return []
    name, margin = units.format_percentile(band["confidence"]), band["time"]["margin"]
    if "switch" in row:  # the first part ends by the clock, the second bears what both may be off
        late = f"{_hours(row['start_hours'] + band['hours']['at_confidence'])} after the start of the plan"
        told = "ends at the switch, however much is done" if row["switch"]["part"] == 1 else f"done {late}  EQ-REL-15"
        return [[f"at {name}", _hours(band["hours"]["at_confidence"]), told]]
    return [
        [f"at {name}", _hours(band["hours"]["at_confidence"]), f"× {margin:.4g}, must meet the deadline  EQ-BAND-1"]
    ]


def time_terms(workload: TrainingWorkload, row: TrainingAllocation) -> Block:
    """Terms of the wall time, with equation and source."""
    sources = workload["term_sources"]["time"]
    return terms_grid("Time of the run", row["time_terms_s"], units.format_duration, sources)


def memory_terms(workload: Workload, row: Allocation) -> Block:
    """Terms of the memory of the fullest device, against what is usable."""
    memory = row["memory"]
    sources = workload["term_sources"]["memory"]
    usable = units.format_bytes(memory["usable_bytes"])
    notes = []
    if "error_band" in row and (known := row["error_band"]["memory"]) and known["margin"] > 1.0:
        band = row["error_band"]
        needed = units.format_bytes(band["needed_bytes"]["at_confidence"])
        notes.append(f"{needed} at {units.format_percentile(band['confidence'])}, which must fit  EQ-BAND-1")
    return terms_grid(
        f"Memory of the fullest device, {usable} usable", memory["terms_bytes"], units.format_bytes, sources, notes
    )


def terms_grid(
    title: str,
    terms: Mapping[str, float],
    show: Callable[[float], str],
    sources: Mapping[str, TermSource],
    notes: list[str] | None = None,
) -> Block:
    """Terms that are not zero with their share of the total, equation and source.

    Parameters
    ----------
    title
        Head of the first column.
    terms
        By name, all in one unit.
    show
        A term for people, with its unit.
    sources
        Equation of each term, by its name; the cell is empty where there is none.
    notes
        Lines below the table; None = none.
    """
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


def cited(source: TermSource | None) -> str:
    """An equation and what it is from: "EQ-MEM-1 [Rajbhandari 2020]"."""
    if not source:
        return ""
    return f"{source['equation']} [{source['source']}]" if source["source"] else source["equation"]


def _binding(row: TrainingAllocation) -> Block:
    """What the time is spent on, and how much of deadline, memory and shape is left."""
    items = []
    shares = list(row["binds"].items())[:_LINES]
    items.append("time goes to " + ", ".join(f"{name} {100 * share:.3g} %" for name, share in shares))
    items += [*_deadline_slack(row), *_memory_slack(row)]
    if row["devices_per_shape"] > 1:
        many = row["devices_per_shape"]
        part = f"{many} devices of a node that fleets run on too, its own for all of the plan"
        items.append(part if "shared" in row else f"devices come in shapes of {many}")
    return Items(title="Binding", items=tuple(items))


def _deadline_slack(row: TrainingAllocation) -> list[str]:
    if "switch" in row and row["switch"]["part"] == 1:
        return ["the switch: what is not done by then is done on demand"]
    band = row["error_band"]
    late = bands.late_hours(row)
    slack_s = (row["deadline_hours"] - late) * 3600.0
    at = f" at {units.format_percentile(band['confidence'])}" if late > row["finish_hours"] else ""
    return [f"deadline: {units.format_duration(max(slack_s, 0.0))} of slack{at}"]


def _memory_slack(row: TrainingAllocation) -> list[str]:
    memory, band = row["memory"], row["error_band"]
    needed = band["needed_bytes"]["at_confidence"]
    at = f" at {units.format_percentile(band['confidence'])}" if needed > memory["needed_bytes"] else ""
    return [f"memory: {units.format_bytes(max(memory['usable_bytes'] - needed, 0.0))} free{at}"]


def _known(row: TrainingAllocation) -> Block:
    """The error of the family behind the figures."""
    band = row["error_band"]
    items = [bands.known_from(row)]
    for what in ("time", "memory"):
        if known := band[what]:
            ratios = ", ".join(f"{name} {known[name]:.3g}" for name in ("p10", "p50", "p90"))
            items.append(f"{what}: measured over predicted {ratios}, on {known['rows']} rows that were not fitted to")
    return Items(title="Known error", items=tuple(items))
