"""Replicas that an autoscaled fleet adds level by level are launched as one set that grows and shrinks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
SUMS = ("count", "devices", "replicas", "replicas_needed", "planned_requests_per_s")


def joined_levels(rows: Sequence[Row]) -> list[Row]:
    """Allocations of a fleet, those alike in all but their level as one.

    Parameters
    ----------
    rows
        Allocations of one workload in the plan's order.

    Returns
    -------
    As many or fewer; one that stands for several has their sums, and `replicas_always`: those of level 0.
    """
    kinds: dict[str, list[Row]] = {}
    for number, row in enumerate(rows):
        alike = (row["offer"], row.get("role"), row.get("layout"), row.get("funding"))
        levelled = any("level" in other and other["level"] for other in rows)
        key = json.dumps(alike, sort_keys=True) if levelled else str(number)
        kinds.setdefault(key, []).append(row)
    return [_joined(alike) for alike in kinds.values()]


def _joined(rows: Sequence[Row]) -> Row:
    first = min(rows, key=lambda row: row.get("level", 0))
    if "replicas" not in first:  # a training job
        return first
    always = sum(row["replicas"] for row in rows if not row.get("level", 0))
    if len(rows) == 1:
        return {**first, "replicas_always": always}
    routed = [row.get("routed_requests_per_s") or [] for row in rows]
    sums = {name: sum(row[name] for row in rows) for name in SUMS if name in first}
    return {**first, **sums, "replicas_always": always, "routed_requests_per_s": [sum(each) for each in zip(*routed)]}
