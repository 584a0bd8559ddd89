"""A report: the plan with its budget, what its margins cost, what a sooner finish costs, and where figures are from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers import Plan
from planner.api.checking import looked_at
from planner.api.frontiers import tradeoffs
from planner.api.sessions import Session
from planner.api.taking import PlanLike, document_of
from planner.catalog.model import Catalog
from planner.deadline import Deadline, is_up
from planner.plan.plan_files import catalog_of_plan, question_of, read_frontier_document, scenario_of
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.candidates.search import Candidates
    from planner.plan.model.frontier_document import FrontierDocument
    from planner.report.model import ReportDocument, Saving

CHANGES_TRIED = 4  # of a plan, for what would make it cheaper: counted, so that a report is the same on any machine


def report(
    plan: PlanLike,
    catalog: Catalog | None = None,
    *,
    scenario: Scenario | None = None,
    frontier: FrontierDocument | None = None,
    margins: bool = False,
    each: bool = False,
    savings: bool = False,
    fiscal_year_start: str | None = None,
    contingency: float | None = None,
    allow_suspect: bool = False,
    known: Candidates | None = None,
    **options: Any,
) -> ReportDocument:
    """The report document (`plan/report/v1`) of a plan.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    catalog
        That the plan was made with; default as the plan says.
    scenario
        The scenario file of the plan as it is now, so that figures lead to its lines; default: read again.
    frontier
        A frontier document of the same question.
    margins
        Also solve without the margins, to tell what they cost together.
    each
        Also solve without each margin alone.
    savings
        Also tell what would make it cheaper, each solved again.
    fiscal_year_start, contingency
        Of the budget, in place of those of the scenario's `report` as it is now.
    known
        Ways that were listed for the plan already, by its check or its solve: they are not listed again.
    options
        Of the solver, as for `solve`; what is not begun when the time is up is left out.

    Raises
    ------
    InputError
        The budget cannot be made as it is asked for.
    """
    from planner.api.advising import advice, command
    from planner.api.asking import margins as costs_of_margins
    from planner.report.next_words import asking
    from planner.report.report_view import report_document

    catalog = catalog or catalog_of_plan(document_of(plan))
    document = document_of(plan)
    if not isinstance(plan, Plan) or plan.read_from:
        checked = looked_at(document, catalog)
        document, known = checked.shown()[0], checked.listed or known
    now = scenario or scenario_of(document)
    question = question_of(document, now)
    alone, costs = [], None
    limit = options["time_limit_s"] = Deadline.of(options.get("time_limit_s"))
    if question is not None and not question.uncertainty and not is_up(limit):
        alone = tradeoffs(question, catalog, plan=document, allow_suspect=allow_suspect)
    session = None
    if question is not None and (margins or savings) and not is_up(limit):
        session = Session(question, catalog, allow_suspect=allow_suspect, known=known, **options)
    if session is not None and margins and not is_up(limit):
        costs = costs_of_margins(session, plan=document, each=each)
    cheaper: list[Saving] = []
    if session is not None and savings and not is_up(limit):
        asked = asking(document)
        found = advice(session, document, most=CHANGES_TRIED).found
        cheaper = [{"text": text, "command": command(asked, setting)} for text, setting in found]
    kept = question.report if question is not None else None
    return report_document(
        document,
        catalog,
        margins=costs,
        frontier=None if frontier is None else read_frontier_document(frontier),
        tradeoffs=alone,
        savings=cheaper,
        fiscal_year_start=fiscal_year_start or (kept.fiscal_year_start if kept else None),
        contingency=kept.contingency if contingency is None and kept else contingency,
        places=question.places if question is not None and question is now else None,
    )
