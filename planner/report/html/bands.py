"""How far predictions may be off: the band that the validation showed, around what is predicted."""

from __future__ import annotations

from collections.abc import Iterator

from planner.plan.model.plan import PlanDocument
from planner.plan.model.workloads import Allocation, Workload
from planner.report.band_words import banded
from planner.report.chart.model import Chart, Series, bars, chart, marks, rows_panel
from planner.report.chart.scale import linear, rows_axis

_MOST_ROWS = 40


def band_figure(document: PlanDocument) -> Chart | None:
    """p10, median and p90 of measured over predicted; None where no band is known."""
    rows = list(dict.fromkeys(_rows(document)))[:_MOST_ROWS]
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
    return f"{what} · {workload['name']} · {row['device']}"
