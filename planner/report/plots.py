"""The charts of a plan by name, as a script asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from planner.report.charts import Chart
from planner.report.html.cost_figures import job_figures
from planner.report.html.memory_figures import band_figure, memory_figure
from planner.report.html.time_figures import calendar_figure, latency_figure, timeline_figure

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import Tradeoff
    from planner.plan.model.plan import PlanDocument

DEADLINE = "deadline"
_BY_NAME: dict[str, Callable[[PlanDocument], Chart | None]] = {
    "schedule": lambda plan: calendar_figure(plan) if plan.get("schedule") else timeline_figure(plan),
    "latency": latency_figure,
    "memory": memory_figure,
    "bands": band_figure,
}
PLOTS = (DEADLINE, *_BY_NAME)


def plots_of(plan: PlanDocument, names: Sequence[str], tradeoffs: Sequence[Tradeoff]) -> list[Chart]:
    """The charts of those names that have something to show.

    Parameters
    ----------
    names
        Of `PLOTS`: deadline (cost against it), schedule, latency, memory, bands.
    tradeoffs
        Cost against finish of each job, for the first of them.
    """
    found: list[Chart | None] = []
    for name in names:
        found += job_figures(plan, tradeoffs) if name == DEADLINE else [_BY_NAME[name](plan)]
    return [chart for chart in found if chart]
