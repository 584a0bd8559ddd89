"""Serving rows of which a figure counts in no error, and by which rule: what left_out.csv must say."""

from __future__ import annotations

from collections.abc import Sequence

from planner.validate.serving_points import NO_TRUST, UNTRUSTED, Point
from planner.validate.serving_rows import ServingRow

OUT_OF_MEMORY = "ran out of memory: counts in the memory fit alone"
ALL_AT_ONCE = "TTFT and TPOT: all requests are sent at once, so they are a queueing time and that of an unstated batch"
TAIL = "TTFT and TPOT: a 99th percentile under limits, and a median of a load that is not stated"
UNSTATED = "TTFT and TPOT: of a pile of requests, whose batch is not stated"
_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT"}


def left_out_of(rows: Sequence[ServingRow], points: Sequence[Point]) -> dict[str, str]:
    """Name of each row that has a figure without weight, and why.

    Parameters
    ----------
    rows, points
        The table, and its figures as `points_of` gives them.
    """
    reasons: dict[int, list[str]] = {i: list(_by_load(row)) for i, row in enumerate(rows)}
    for point in points:
        if point.left_out and point.left_out != UNTRUSTED:
            reasons[point.position].append(f"{_NAMES.get(point.metric, point.metric)}: {point.left_out}")
    return {rows[i].name: "; ".join(dict.fromkeys(own)) for i, own in reasons.items() if own}


def _by_load(row: ServingRow) -> Sequence[str]:
    if row.trust == NO_TRUST:
        return (f"trust C: {UNTRUSTED}",)
    if row.out_of_memory:
        return (OUT_OF_MEMORY,)
    if row.ttft_ms is None and row.tpot_ms is None:
        return ()
    return {"burst": (ALL_AT_ONCE,), "mlperf": (TAIL,), "offline": (UNSTATED,)}.get(row.load, ())
