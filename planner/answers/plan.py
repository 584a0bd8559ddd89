"""The answer: a document that was verified, and ways to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from planner.answers.answer import Solved

if TYPE_CHECKING:
    from planner.plan.model.plan import PlanDocument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Solved):
    """A plan document and what it says."""

    document: dict[str, Any]

    @property
    def cost_usd(self) -> float | None:
        """Total cost, training plus serving over the horizon; None without a plan.  [USD]"""
        cost: float | None = self.document["summary"]["cost_usd"]
        return cost

    def to_frame(self) -> Any:
        """One row an allocation, as a pandas DataFrame."""
        import pandas as pd

        rows = [
            {"workload": workload["name"], **{key: value for key, value in row.items() if not isinstance(value, dict)}}
            for workload in self.document["workloads"]
            for row in workload["allocations"]
        ]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        from planner.report.plan import render_plan

        return render_plan(cast("PlanDocument", self.document), "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import plan_html

        return plan_html(cast("PlanDocument", self.document))
