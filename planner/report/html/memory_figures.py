"""Figures of what may be tight: memory per device against what is usable, and the error bands of predictions."""

from __future__ import annotations

from collections.abc import Iterator

from planner import units
from planner.plan.model.plan import Allocation, PlanDocument, Workload
from planner.plan.parts import rows_of
from planner.report import plan_words as words
from planner.report.blocks import Column, Grid
from planner.report.certainty_words import banded
from planner.report.charts import Chart, Series, bars, chart, linear, marks, rows_axis, rows_panel, stacked, ticks

_GB = 1e9
_MOST_TERMS = 7  # parts that get a colour of their own; the rest is one part
_MOST_ROWS = 24
REST = "other"
_TITLE = "Memory of the fullest device"
_FEW = 5  # rows that stand side by side


def memory_rows(document: PlanDocument) -> list[tuple[Workload, Allocation]]:
    """Workloads and allocations whose memory is known, those that look alike once."""
    seen: dict[tuple[str, str, float, float], tuple[Workload, Allocation]] = {}
    for workload in document["workloads"]:
        for row in rows_of(workload):
            if row["memory"]["terms_bytes"]:
                key = (workload["name"], row["device"], row["memory"]["needed_bytes"], row["memory"]["usable_bytes"])
                seen.setdefault(key, (workload, row))
    return list(seen.values())


def memory_figure(document: PlanDocument) -> Chart | None:
    """The figure; None where no memory is predicted."""
    rows = memory_rows(document)[:_MOST_ROWS]
    if not rows:
        return None
    terms = _largest_terms(rows)
    names = [*terms, REST]
    sizes = [[_size_of(row, terms, name) for _, row in rows] for name in names]
    series = [
        bars(
            words.spaced(name),
            number,
            [
                (place, low, high, f"{words.spaced(name)} {units.format_bytes(sizes[number][place])}")
                for place, (low, high) in enumerate(spans)
                if high > low
            ],
        )
        for number, (name, spans) in enumerate(
            zip(names, stacked([[size / _GB for size in of_rows] for of_rows in sizes]))
        )
    ]
    usable = [row["memory"]["usable_bytes"] for _, row in rows]
    limits = [(place, size / _GB, f"usable {units.format_bytes(size)}") for place, size in enumerate(usable)]
    most = max([*usable, *(row["memory"]["needed_bytes"] for _, row in rows)]) / _GB
    return chart(
        id="memory-figure",
        title=_TITLE,
        summary=f"Stacked bars of memory per device, {len(rows)} of them, each against the memory that is usable; "
        "the table below gives every part",
        panels=[
            rows_panel(
                linear(0.0, most, "GB per device"),
                [*series, ticks("usable memory", limits)],
                [_label(*row) for row in rows],
            )
        ],
    )


def _label(workload: Workload, row: Allocation) -> tuple[str, str]:
    needed, usable = (units.format_bytes(row["memory"][name]) for name in ("needed_bytes", "usable_bytes"))
    return f"{workload['name']} · {row['device']}", f"{needed} of {usable}"


def _largest_terms(rows: list[tuple[Workload, Allocation]]) -> list[str]:
    """Parts that take most of some device, largest first."""
    shares: dict[str, float] = {}
    for _, row in rows:
        memory = row["memory"]
        for name, size in memory["terms_bytes"].items():
            shares[name] = max(shares.get(name, 0.0), size / memory["usable_bytes"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    return [name for name in ranked if shares[name] >= 0.01][:_MOST_TERMS]


def _size_of(row: Allocation, terms: list[str], name: str) -> float:
    """Memory of a part, or of all that have no colour of their own.  [B]"""
    known = row["memory"]["terms_bytes"]
    if name == REST:
        return sum(size for term, size in known.items() if term not in terms)
    return known.get(name, 0.0)


def memory_table(document: PlanDocument) -> Grid:
    """Every part of the memory of each device; a column a device where they are few, else a row."""
    rows = memory_rows(document)
    names = list(dict.fromkeys(name for _, row in rows for name, size in row["memory"]["terms_bytes"].items() if size))
    lines = [
        [words.spaced(name), *(_size(row["memory"]["terms_bytes"].get(name, 0.0)) for _, row in rows)] for name in names
    ]
    for total in ("needed_bytes", "usable_bytes", "free_bytes") if rows else ():
        lines.append([total.removesuffix("_bytes"), *(units.format_bytes(row["memory"][total]) for _, row in rows)])
    heads = [f"{workload['name']} · {row['device']}" for workload, row in rows]
    if len(rows) > _FEW:
        lines, heads = (
            [[head, *cells] for head, *cells in zip(heads, *(cells for _, *cells in lines))],
            [name for name, *_ in lines],
        )
    first = "Workload" if len(rows) > _FEW else "Part"
    return Grid(
        title=_TITLE,
        columns=(Column(head=first), *(Column(head=head, right=True) for head in heads)),
        rows=lines,
    )


def _size(value: float) -> str:
    return units.format_bytes(value) if value else "–"


_MOST_BANDS = 40


def band_figure(document: PlanDocument) -> Chart | None:
    """p10, median and p90 of measured over predicted; None where no band is known."""
    rows = list(dict.fromkeys(_banded(document)))[:_MOST_BANDS]
    if not rows:
        return None
    spans = [(100 * (low - 1), 100 * (middle - 1), 100 * (high - 1)) for _, low, middle, high in rows]
    axis = linear(
        min(0.0, *(low for low, _, _ in spans)),
        max(0.0, *(high for _, _, high in spans)),
        "measured against predicted, %",
    )
    ends = rows_axis(len(rows))
    series = [
        Series(name="", look="dots", paths=[((0.0, ends.low), (0.0, ends.high))]),
        bars("p10 to p90", 0, [(row, low, high, _told(low, high)) for row, (low, _, high) in enumerate(spans)], 0.15),
        marks("median", "diamond", [(row, at, f"median {at:+.1f} %") for row, (_, at, _) in enumerate(spans)]),
    ]
    labels = [(name, f"{low:+.0f} % to {high:+.0f} %") for (name, *_), (low, _, high) in zip(rows, spans)]
    return chart(
        id="band-figure",
        title="How far measurements lay from predictions",
        summary=f"Bars from the p10 to the p90 of measured over predicted, {len(rows)} of them; "
        "the table below gives what that means for this plan",
        panels=[rows_panel(axis, series, labels)],
    )


def _told(low: float, high: float) -> str:
    return f"{low:+.1f} % to {high:+.1f} %"


def _banded(document: PlanDocument) -> Iterator[tuple[str, float, float, float]]:
    """Each band of each row: of time and memory, and of the latencies of fleets."""
    for workload, row in banded(document):
        for name in ("time", "memory"):
            if band := row["error_band"][name]:
                yield _named(workload, row, name), band["p10"], band["p50"], band["p90"]
    for fleet in document["workloads"]:
        for replica in fleet["allocations"] if fleet["kind"] == "serving" else ():
            for latency, band in (("TTFT", replica["tier"]["ttft"]), ("TPOT", replica["tier"]["tpot"])):
                if band:
                    yield _named(fleet, replica, latency), band["p10"], band["p50"], band["p90"]


def _named(workload: Workload, row: Allocation, what: str) -> str:
    return f"{what} · {workload['name']} · {row['device']}"
