"""Every plan that is best for some limit, and ways to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers.answer import Solved
from planner.answers.figure import Figure
from planner.carriers import dataclass
from planner.errors import UsageError

if TYPE_CHECKING:
    from planner.plan.model.frontier import FrontierDocument, FrontierPoint


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Frontier(Solved):
    """A frontier document and what it says.

    Its status is optimal when it holds every point of the range, proven; feasible when some are not; infeasible,
    stopped or failed when there is none.
    """

    document: FrontierDocument

    @property
    def points(self) -> list[FrontierPoint]:
        """Every Pareto point, tightest limit first."""
        return self.document["points"]

    def to_frame(self) -> Any:
        """One row a point, as a pandas DataFrame."""
        from planner.analysis.frontier.document import flat_rows
        from planner.frames import pandas

        return pandas("to_frame").DataFrame(flat_rows(self.document))

    def plot(self) -> Figure:
        """The frontier as a drawing: `plot().write("frontier.svg")` keeps it.

        Raises
        ------
        UsageError
            There are fewer than two plans.
        """
        from planner.report.frontier_view import frontier_chart

        chart = frontier_chart(self.document)
        if chart is None:
            raise UsageError.of("nothing-to-draw", "a frontier of fewer than two plans has no figure", hint="print it")
        return Figure(charts=[chart])

    def __str__(self) -> str:
        from planner.report.frontier_view import render_frontier

        return render_frontier(self.document, "table", [])

    def _repr_html_(self) -> str:
        from planner.report.frontier_view import frontier_blocks
        from planner.report.notebook import blocks_html

        return blocks_html(frontier_blocks(self.document))
