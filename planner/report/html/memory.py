"""Memory per device: a stacked bar for each workload and device, against what is usable."""

from __future__ import annotations

from planner import units
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, Workload
from planner.plan.parts import rows_of
from planner.report import plan_words as words
from planner.report.blocks import Column, Grid
from planner.report.chart.model import Chart, bars, chart, rows_panel, stacked, ticks
from planner.report.chart.scale import linear

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
