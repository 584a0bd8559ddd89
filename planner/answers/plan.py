"""The answer: a document that was verified, and ways to read it, to ask it and to hand it on."""

from __future__ import annotations

import os
from dataclasses import field
from typing import TYPE_CHECKING, Any

from planner.answers.answer import Solved
from planner.answers.figure import Figure
from planner.answers.frame import COLUMNS, Kind, rows_of
from planner.carriers import dataclass
from planner.errors import UsageError
from planner.files import StrPath, write_text

if TYPE_CHECKING:
    from planner.answers.comparison import Comparison
    from planner.answers.explanation import Explanation
    from planner.answers.report import Report
    from planner.catalog.model import Catalog
    from planner.errors import Problem
    from planner.export import Export
    from planner.plan.model.plan import PlanDocument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Solved):
    """A plan document and what it says.

    Parameters
    ----------
    read_from
        The file that it was read from; empty: it was solved here. What comes from a file is shown as far as it is
        proven, whatever it says itself.
    """

    document: PlanDocument

    read_from: str = field(default="", compare=False)

    @classmethod
    def read(cls, path: StrPath) -> Plan:
        """The plan of a file that `plan solve` or `write` wrote; whether it holds, `verify` says.

        Raises
        ------
        InputError
            The file is no plan.
        """
        from planner.plan.reading import read_plan

        return cls(document=read_plan(path), read_from=os.fspath(path))

    def write(self, path: StrPath) -> None:
        """The plan as a file, whole or not at all.

        Raises
        ------
        OutputError
            It cannot be written there.
        """
        write_text(path, self.to_json())

    @property
    def cost_usd(self) -> float | None:
        """Total cost, training plus serving over the horizon; None without a plan.  [USD]"""
        return self.document["summary"]["cost_usd"]

    def verify(self, catalog: Catalog | None = None) -> list[Problem]:
        """Every way in which the plan contradicts its scenario, its catalog or itself: `planner.verify`."""
        from planner.api.checking import verify

        return verify(self, catalog)

    def explain(self, workload: str | None = None, *, rejected: bool = False) -> Explanation:
        """What stands behind the plan, term by term: `planner.explain`."""
        from planner.api.explaining import explain

        return explain(self, workload, rejected=rejected)

    def report(self, catalog: Catalog | None = None, **asked: Any) -> Report:
        """The plan with its budget and its sources, to show or to write as a page, a workbook or a comment.

        Parameters
        ----------
        asked
            As `planner.api.report` takes them: margins, each, frontier, fiscal_year_start, contingency and others.
        """
        from planner.answers.report import Report
        from planner.api.reporting import report

        return Report(document=report(self, catalog, **asked))

    def plot(self, *names: str, catalog: Catalog | None = None) -> Figure:
        """Drawings of the plan: `plan.plot("memory")` in a notebook, `plan.plot().write("plan.svg")` as a file.

        Parameters
        ----------
        names
            ``"deadline"`` (cost against the finish of each job alone), ``"schedule"``, ``"latency"``, ``"memory"``,
            ``"bands"`` (how far measurements lay from predictions); none: all that the plan has.
        catalog
            That the plan was made with; default as the plan says.

        Raises
        ------
        UsageError
            There is no drawing of that name, or the plan has nothing to draw under it.
        """
        from planner.report.plots import DEADLINE, PLOTS, plots_of

        if unknown := [name for name in names if name not in PLOTS]:
            raise UsageError.of(
                "unknown-plot", f"there is no drawing {unknown[0]!r}", hint=f"there are {', '.join(PLOTS)}"
            )
        wanted = names or PLOTS
        tradeoffs = self.report(catalog).document["tradeoffs"] if DEADLINE in wanted else []
        charts = plots_of(self._to_show(), wanted, tradeoffs)
        if not charts:
            raise UsageError.of(
                "nothing-to-draw", f"the plan has nothing to draw for {', '.join(wanted)}", hint="print it"
            )
        return Figure(charts=charts)

    def export(self, form: str, catalog: Catalog | None = None, *, workload: str | None = None) -> Export:
        """Files that launch the plan: `planner.export_plan`; `export("slurm").write("launch")` writes them.

        Parameters
        ----------
        form
            Name of the program that they are for: torchrun, slurm, vllm, kubernetes and others.
        catalog
            That the plan was made with; default as the plan says.
        workload
            Only this one; None: all.

        Raises
        ------
        UsageError
            There is no such format or workload.
        InfeasibleError, StoppedError
            There is no plan in it.
        InputError
            It is not a whole plan.
        """
        from planner.api.exporting import export_plan

        return export_plan(self, form, catalog, workload=workload)

    def compare(self, *others: Any, **asked: Any) -> Comparison:
        """What sets other plans, scenarios or files of either apart from this plan: `planner.compare`."""
        from planner.api.comparing import compare

        return compare(self, *others, **asked)

    def to_frame(self, kind: Kind | None = None) -> Any:
        """One row for each thing that is rented, as a pandas DataFrame.

        Parameters
        ----------
        kind
            ``"training"`` or ``"serving"``: those rows alone, with all that is known of them. Left out: all rows, with
            where they are, layout (dp, tp, pp, cp, ep), memory, time, cost and latency; what a kind has not is empty.

        Raises
        ------
        ValueError
            There is no such kind.
        """
        from planner.frames import pandas

        if kind not in COLUMNS:
            raise ValueError(f"kind is 'training', 'serving' or left out, not {kind!r}")
        return pandas("to_frame").DataFrame(list(rows_of(self.document, kind)), columns=list(COLUMNS[kind]))

    def __str__(self) -> str:
        from planner.report.plan import render_plan

        return render_plan(self._to_show(), "table")

    def _repr_html_(self) -> str:
        from planner.report.notebook import plan_html

        return plan_html(self._to_show())

    def _to_show(self) -> PlanDocument:
        """The document, as far as it is proven where it is from a file."""
        from planner.api.checking import to_show

        return to_show(self)
