"""Every plan that is best for some limit, and ways to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers.answer import Solved
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.plan.frontier.model import FrontierDocument, FrontierPoint


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
        from planner.frames import pandas
        from planner.plan.frontier.document import flat_rows

        return pandas("to_frame").DataFrame(flat_rows(self.document))

    def plot(self) -> Any:
        """The frontier as a plotly figure."""
        from planner.plan.frontier.figure import figure_of

        return figure_of(self.document)

    def __str__(self) -> str:
        from planner.report.frontier import render_frontier

        return render_frontier(self.document, "table", [])

    def _repr_html_(self) -> str:
        from planner.report.frontier import frontier_blocks
        from planner.report.notebook import blocks_html

        return blocks_html(frontier_blocks(self.document))
