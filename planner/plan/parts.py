"""Parts of a plan document, whatever kind of workload they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.plan.model.workloads import Allocation, Workload


def rows_of(workload: Workload) -> Sequence[Allocation]:
    """The allocations of a workload of either kind, one type for all of them."""
    return workload["allocations"]


def most_devices(rows: Sequence[Allocation]) -> int:
    """Devices of some rows: of a job that changes machines the most that it holds at one time.  [count]"""
    held: dict[str, int] = {}
    total = 0
    for row in rows:
        if "switch" in row:
            held[row["switch"]["name"]] = max(held.get(row["switch"]["name"], 0), row["devices"])
        else:
            total += row["devices"]
    return total + sum(held.values())
