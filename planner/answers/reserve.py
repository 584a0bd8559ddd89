"""What to reserve and what to rent, and ways to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers.answer import Solved
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.analysis.reserve.model import BreakEven, ReserveDocument, Term


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reserve(Solved):
    """A reserve document and what it says; optimal when the plan of every term is."""

    document: ReserveDocument

    @property
    def terms(self) -> list[Term]:
        """What each kind of commitment does for the scenario."""
        return self.document["terms"]

    @property
    def break_evens(self) -> list[BreakEven]:
        """Commitments that could be used, that which needs the least use first."""
        return self.document["break_evens"]

    def to_frame(self) -> Any:
        """One row a commitment, as a pandas DataFrame."""
        from planner.frames import pandas

        return pandas("to_frame").DataFrame(self.break_evens)

    def __str__(self) -> str:
        from planner.report.reserve_view import render_reserve

        return render_reserve(self.document, "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.reserve_view import reserve_blocks

        return blocks_html(reserve_blocks(self.document))
