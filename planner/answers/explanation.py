"""What stands behind a plan, to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.answers.answer import Answer
from planner.brief import brief
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.analysis.why.model import Answers
    from planner.plan.model.plan import PlanDocument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation(Answer):
    """A plan document, and what of it is to be explained.

    Parameters
    ----------
    workload
        Only this one; None: all.
    rejected
        Why the other ways were dropped, in place of the terms.
    answers
        To further questions, by what was asked: marginal_values, break_even, why_not.
    """

    document: PlanDocument
    workload: str | None = None
    rejected: bool = False
    answers: Answers | None = None

    def render(self, form: str = "table", *, width: int = 100, colour: bool = False) -> str:
        """The text as table, md, csv or json.

        Parameters
        ----------
        form
            ``table``, ``md``, ``csv`` or ``json``.
        width
            Of a table.  [characters]
        colour
            Of a table: with escape codes for a terminal.
        """
        from planner.report.explanation_view import render_explanation

        return render_explanation(
            self.document,
            form,
            workload=self.workload,
            rejected=self.rejected,
            answers=self.answers,
            width=width,
            colour=colour,
        )

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return brief("Explanation", self.document["name"], self.workload)

    def _repr_html_(self) -> str:
        from planner.report.explanation_view import explanation_blocks
        from planner.report.notebook import blocks_html

        asked = explanation_blocks(self.document, workload=self.workload, rejected=self.rejected, answers=self.answers)
        return blocks_html(asked)
