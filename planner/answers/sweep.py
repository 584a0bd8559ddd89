"""What came of a sweep, and ways to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers.answer import Solved
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.sweeps.model import Point, SweepDocument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Solved):
    """A sweep document and what it says.

    Its status is optimal when every question has its proven answer, feasible when some have, infeasible when there is
    a plan to none, stopped when nothing is known.

    Parameters
    ----------
    asked
        Questions that were answered now; the others were in the journal.
    broken
        Lines of the journal that did not hold, and were not believed.
    """

    document: SweepDocument
    asked: int = 0
    broken: int = 0

    @property
    def points(self) -> list[Point]:
        """Every question and what came of it, in the order of the questions."""
        return self.document["points"]

    def to_frame(self) -> Any:
        """One row a question, as a pandas DataFrame."""
        from planner.frames import pandas
        from planner.sweeps.document import flat_rows

        return pandas("to_frame").DataFrame(flat_rows(self.document))

    def __str__(self) -> str:
        from planner.report.sweep_view import render_sweep

        return render_sweep(self.document, "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.sweep_view import sweep_blocks

        return blocks_html(sweep_blocks(self.document))
