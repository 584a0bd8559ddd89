"""Whether a plan document holds, without asking a solver."""

from __future__ import annotations

import json
from typing import Any

from planner.api.taking import PlanLike, document_of
from planner.candidates.search import Candidates, enumerate_candidates
from planner.catalog.model import Catalog
from planner.errors import Problem
from planner.plan.certificate import certificate_problems
from planner.plan.made_with import catalog_of_plan
from planner.plan.references import check_references, load_model, loader_of
from planner.plan.verify import verify as _verify
from planner.scenario.load import parse_scenario

Document = dict[str, Any]


def verify(plan: PlanLike, catalog: Catalog | None = None) -> list[Problem]:
    """Every way in which a plan contradicts its scenario, its catalog or itself.

    The certificate is checked as well, over all columns of the scenario, listed again: no solver is asked.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    catalog
        That it was made with; default as the plan says.
    """
    document = document_of(plan)
    catalog = catalog or catalog_of_plan(document)
    problems = _verify(document, catalog, load_model)
    if problems or not document.get("certificate"):
        return problems
    problems = case_problems(document, catalog)
    if problems:
        return problems
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    allow_suspect = bool(document["certificate"].get("allow_suspect"))
    check_references(scenario, catalog)
    listed = enumerate_candidates(scenario, catalog, loader_of(scenario), allow_suspect=allow_suspect)
    return certificate_problems(document, _with_stated_mixes(listed, document["certificate"]).whole)


def _with_stated_mixes(listed: Candidates, certificate: Document) -> Candidates:
    """The ways with the mixes that a plan says it found; as they are when it names what is not to be had."""
    named = certificate.get("mixes")
    if not named or not listed.spaces:
        return listed
    from planner.candidates.mixed_columns import with_named_mixes

    try:
        return with_named_mixes(listed, named)
    except (LookupError, TypeError, ValueError):  # then the columns differ, which the certificate is asked
        return listed


def case_problems(document: Document, catalog: Catalog) -> list[Problem]:
    """What is wrong with the cases of an uncertain plan; nothing for any other."""
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    if not scenario.uncertainty and document.get("uncertainty") is None:
        return []
    from planner.plan.checks.uncertain import uncertainty_problems

    return uncertainty_problems(document, scenario, lambda plan: _verify(plan, catalog, load_model))
