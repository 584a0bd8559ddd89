"""Parts of a plan document, whatever kind of workload they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.plan.model.workloads import Allocation, Workload


def rows_of(workload: Workload) -> Sequence[Allocation]:
    """The allocations of a workload of either kind, one type for all of them."""
    return workload["allocations"]
