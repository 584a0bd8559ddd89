"""Memory per device: a stacked bar for each workload and device, against what is usable."""

from __future__ import annotations

from typing import Any

from planner import units
from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, Workload
from planner.plan.parts import rows_of
from planner.report import plan_words as words
from planner.report.blocks import Column, Grid
from planner.report.html.figures import bars, key_of, labels, named, row_layout, ticks
from planner.report.html.parts import Figure

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


def memory_figure(document: PlanDocument) -> Figure | None:
    """The figure; None where no memory is predicted."""
    rows = memory_rows(document)[:_MOST_ROWS]
    if not rows:
        return None
    terms = _largest_terms(rows)
    traces = [_part(rows, terms, name, number) for number, name in enumerate([*terms, REST])]
    usable = [row["memory"]["usable_bytes"] for _, row in rows]
    texts = [f"usable {units.format_bytes(value)}" for value in usable]
    traces.append(ticks("usable memory", range(len(rows)), [value / _GB for value in usable], texts))
    most = max([*usable, *(row["memory"]["needed_bytes"] for _, row in rows)]) / _GB
    made, height = row_layout(
        len(rows),
        "GB per device",
        xaxis={"range": [0, most * 1.04]},
        annotations=labels([_label(workload, row) for workload, row in rows]),
    )
    return Figure(
        id="memory-figure",
        title=_TITLE,
        summary=f"Stacked bars of memory per device, {len(rows)} of them, each against the memory that is usable; "
        "the table below gives every part",
        traces=[trace for trace in traces if any(trace["x"])],
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _label(workload: Workload, row: Allocation) -> str:
    needed, usable = (row["memory"][name] for name in ("needed_bytes", "usable_bytes"))
    name = f"<b>{named(workload['name'])}</b> · {named(row['device'])}"
    return f"{name} · {units.format_bytes(needed)} of {units.format_bytes(usable)}"


def _largest_terms(rows: list[tuple[Workload, Allocation]]) -> list[str]:
    """Parts that take most of some device, largest first."""
    shares: dict[str, float] = {}
    for _, row in rows:
        memory = row["memory"]
        for name, size in memory["terms_bytes"].items():
            shares[name] = max(shares.get(name, 0.0), size / memory["usable_bytes"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    return [name for name in ranked if shares[name] >= 0.01][:_MOST_TERMS]


def _part(rows: list[tuple[Workload, Allocation]], terms: list[str], name: str, number: int) -> dict[str, Any]:
    sizes = [
        sum(size for term, size in row["memory"]["terms_bytes"].items() if term not in terms)
        if name == REST
        else row["memory"]["terms_bytes"].get(name, 0.0)
        for _, row in rows
    ]
    texts = [f"{words.spaced(name)} {units.format_bytes(size)}" for size in sizes]
    return bars(words.spaced(name), range(len(rows)), [size / _GB for size in sizes], texts, number)


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
