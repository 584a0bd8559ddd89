"""What the scenario inside a plan says: it is as its file wrote it, so that nothing is taken for granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


Asked = Mapping[str, object]


def currency_of(plan: PlanDocument) -> str:
    """The currency of every figure of a plan: what is written in others was converted when it was read."""
    return "USD"


def workloads_asked(plan: PlanDocument, kind: str) -> list[Asked]:
    """Training jobs or serving fleets as they are written; one alone may stand for a list of one."""
    found = plan["scenario"].get(kind)
    entries = found if isinstance(found, list) else [found]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def report_asked(plan: PlanDocument) -> Asked:
    """How budgets are to be reported."""
    found = plan["scenario"].get("report")
    return found if isinstance(found, Mapping) else {}
