"""How far predictions may be off: the band that the validation showed, around what is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, Workload
from planner.report.band_words import banded
from planner.report.html.figures import COLOURS, QUIET, key_of, labels, named, row_layout, upright
from planner.report.html.parts import Figure

_MOST_ROWS = 40


def band_figure(document: PlanDocument) -> Figure | None:
    """p10, median and p90 of measured over predicted; None where no band is known."""
    rows = list(dict.fromkeys(_rows(document)))[:_MOST_ROWS]
    if not rows:
        return None
    spans = [(100 * (low - 1), 100 * (middle - 1), 100 * (high - 1)) for _, low, middle, high in rows]
    traces: list[dict[str, Any]] = [
        {
            "type": "bar", "orientation": "h", "name": "p10 to p90", "y": list(range(len(rows))), "width": 0.3,
            "base": [low for low, _, _ in spans], "x": [high - low for low, _, high in spans],
            "marker": {"color": COLOURS[0], "opacity": 0.55, "line": {"width": 0}},
            "customdata": [f"{low:+.1f} % to {high:+.1f} %" for low, _, high in spans],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "markers", "name": "median", "y": list(range(len(rows))),
            "x": [middle for _, middle, _ in spans],
            "marker": {"symbol": "diamond", "size": 10, "color": COLOURS[1]},
            "customdata": [f"median {middle:+.1f} %" for _, middle, _ in spans],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
    ]  # fmt: skip
    texts = [f"{name} · {low:+.0f} % to {high:+.0f} %" for (name, *_), (low, _, high) in zip(rows, spans)]
    made, height = row_layout(
        len(rows),
        "measured against predicted, %",
        annotations=labels(texts),
        shapes=[upright(0.0, QUIET, "dot")],
    )  # fmt: skip
    return Figure(
        id="band-figure",
        title="How far measurements lay from predictions",
        summary=f"Bars from the p10 to the p90 of measured over predicted, {len(rows)} of them; "
        "the table below gives what that means for this plan",
        traces=traces,
        layout=made,
        height=height,
        key=key_of(traces),
    )


def _rows(document: PlanDocument) -> Iterator[tuple[str, float, float, float]]:
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
    return f"<b>{named(workload['name'])}</b> · {named(row['device'])} · {what}"
