"""Answers to what is asked of and beside a plan, each a document and ways to read it.

What stands behind a plan, its report for others to read, plans and what sets them apart, every plan that is best for
some limit, what to reserve and what to rent, what came of a sweep, catalogs beside each other.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.answers.shown import Answer, Figure, Solved
from planner.brief import brief
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_bytes, write_text

if TYPE_CHECKING:
    from planner.analysis.compare.model import CompareDocument
    from planner.analysis.reserve.model import BreakEven, ReserveDocument, Term
    from planner.analysis.why.model import Answers
    from planner.plan.model.frontier_document import FrontierDocument, FrontierPoint
    from planner.plan.model.plan import PlanDocument
    from planner.report.model import ReportDocument
    from planner.sweeps.document import Point, SweepDocument


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


_FORMS = {".md": "md", ".csv": "csv", ".json": "json", ".txt": "table"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Answer):
    """A report document, and the forms that it is handed on in."""

    document: ReportDocument

    def render(self, form: str = "table", *, width: int = 100) -> str:
        """The text as table, md, csv or json."""
        from planner.report.report_view import render_report

        return render_report(self.document, form, width=width)

    def to_html(self) -> str:
        """One page that works offline."""
        from planner.report.html.pages import render_page

        return render_page(self.document).text

    def to_xlsx(self) -> bytes:
        """A workbook whose totals follow when a price is changed."""
        from planner.report.workbook import workbook

        return workbook(self.document)

    def write(self, path: StrPath) -> None:
        """A file in the form of its ending: .html, .xlsx, .md, .csv, .json or .txt.

        Raises
        ------
        UsageError
            There is no form of that ending.
        OutputError
            It cannot be written there.
        """
        ending = Path(path).suffix.lower()
        if ending == ".xlsx":
            write_bytes(path, self.to_xlsx())
        elif ending == ".html":
            write_text(path, self.to_html())
        elif ending in _FORMS:
            write_text(path, self.render(_FORMS[ending]))
        else:
            known = ", ".join([".html", ".xlsx", *_FORMS])
            raise UsageError.of("unknown-format", f"what form is {os.fspath(path)}?", hint=f"end it in {known}")

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return brief("Report", self.document["plan"]["name"])

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.report_view import terminal_blocks

        return blocks_html(terminal_blocks(self.document))


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CatalogTable(Sweep):
    """A sweep over scenarios and catalogs, each catalog held against the first."""

    @property
    def same(self) -> bool:
        """Whether every catalog decides the same for the same money in every scenario."""
        from planner.sweeps.document import beside

        return all(one.same for one in beside(self.document))

    def exceeds(self, share: float) -> bool:
        """Whether some plan costs more than that on the first catalog by more than a share, or is lost."""
        from planner.sweeps.document import beside

        return any(one.exceeds(share) for one in beside(self.document))

    def to_frame(self) -> Any:
        """One row a scenario and catalog, as a pandas DataFrame."""
        import pandas as pd

        from planner.sweeps.document import flat_comparison

        return pd.DataFrame(flat_comparison(self.document))

    def __str__(self) -> str:
        from planner.report.sweep_view import render_catalog_table

        return render_catalog_table(self.document, "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import blocks_html
        from planner.report.sweep_view import catalog_table_blocks

        return blocks_html(catalog_table_blocks(self.document))
