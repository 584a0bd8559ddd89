"""Plans beside each other, and ways to read what sets them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers.answer import Answer
from planner.brief import brief
from planner.carriers import dataclass

if TYPE_CHECKING:
    from planner.analysis.compare.model import CompareDocument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Answer):
    """A comparison document and what it says."""

    document: CompareDocument

    @property
    def same(self) -> bool:
        """Whether every side decides the same for the same money."""
        return self.document["summary"]["same"]

    @property
    def largest_increase(self) -> float | None:
        """The largest share by which a later total is over the first; None when some side has no plan."""
        return self.document["summary"]["largest_increase"]

    @property
    def of_one_time(self) -> bool:
        """Whether totals are of one time, so that a share of one is an increase of another."""
        from planner.analysis.compare.decision import of_one_time

        return all(map(of_one_time, self.document["comparisons"]))

    def exceeds(self, share: float) -> bool:
        """Whether a later total is over the first by more than a share, or is lost.

        Without a first total there is nothing to be over. A total that comes from nothing is over any share.
        """
        first, *others = self.document["sides"]
        if first["cost_microusd"] is None:
            return False
        most = (1 + share) * first["cost_microusd"]
        return any(side["cost_microusd"] is None or side["cost_microusd"] > most for side in others)

    def to_frame(self) -> Any:
        """One row a workload and comparison, as a pandas DataFrame."""
        from planner.analysis.compare.document import flat_rows
        from planner.frames import pandas

        return pandas("to_frame").DataFrame(flat_rows(self.document))

    def __str__(self) -> str:
        from planner.report.compare_view import render_comparison

        return render_comparison(self.document, "table")

    def __repr__(self) -> str:
        return brief("Comparison", " → ".join(side["name"] for side in self.document["sides"]))

    def _repr_html_(self) -> str:
        from planner.report.compare_view import comparison_blocks
        from planner.report.notebook import blocks_html

        return blocks_html(comparison_blocks(self.document))
