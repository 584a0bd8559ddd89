"""Everything that a report shows, as one document: the plan, its budget, what margins cost, and where figures are from.

Views (html, xlsx, md, csv, json, the terminal) read this document alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.budget.document import budget_document
from planner.budget.model import MarginsCost
from planner.catalog.model import Catalog
from planner.errors import Place
from planner.plan.model.frontier import FrontierDocument, Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.report.model import ReportDocument, Reported, Saving
from planner.report.trace import trace_of


def report_document(
    plan: PlanDocument,
    catalog: Catalog,
    *,
    margins: MarginsCost | None = None,
    frontier: FrontierDocument | None = None,
    tradeoffs: Sequence[Tradeoff] = (),
    savings: Sequence[Saving] = (),
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
    places: Mapping[str, Place] | None = None,
) -> ReportDocument:
    """The report of a plan.

    Parameters
    ----------
    plan
        A plan document; one without a plan has no budget.
    catalog
        That it was made with.
    margins
        What its margins cost (`planner.budget.margins`).
    frontier
        A frontier document.
    tradeoffs
        Cost against finish of single jobs.
    savings
        What would make it cheaper.
    fiscal_year_start, contingency
        In place of those of the scenario's `report`.
    places
        Path in the scenario -> where it is written (`Scenario.places`); without, lines are told by their path.

    Raises
    ------
    InputError
        The scenario's `report`, or what is asked for in its place, cannot be used.
    """
    budget = budget_document(plan, catalog, fiscal_year_start=fiscal_year_start, contingency=contingency)
    report: Reported = {
        "schema": "plan/report/v1",
        "plan": plan.copy(),
        "budget": budget,
        "margins": margins,
        "frontier": frontier,
        "tradeoffs": list(tradeoffs),
        "savings": list(savings),
    }
    return {**report, "trace": trace_of(report, places)}
