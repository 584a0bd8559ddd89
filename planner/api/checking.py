"""Whether a plan document holds, and what of it is proven, without asking a solver unless one is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.analysis.standing import Standing, as_proven, standing_of, unknown_standing
from planner.answers import Plan
from planner.api.taking import PlanLike, document_of
from planner.candidates.search import Candidates, enumerate_candidates
from planner.carriers import dataclass
from planner.checks.findings import gathered, problems_of
from planner.checks.verify import verify as _verify
from planner.errors import InputError, Place, PlanError, Problem
from planner.plan.plan_files import asks_the_same, catalog_of_plan, changed_keys, scenario_of
from planner.plan.proof import WITH_PLAN, tie_share_of
from planner.plan.references import check_references, load_model, loader_of
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.catalog.model import Catalog
    from planner.estimate.recall import Recall
    from planner.plan.model.plan import PlanDocument

LATER = "it is shown as far as it is proven; plan verify tells more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A plan document after a check: what contradicts it, and what is proven of it."""

    document: PlanDocument
    problems: list[Problem]  # errors; a warning alone: it holds, and is not proven
    standing: Standing
    unchecked: bool = False  # the problems are why nothing could be looked at
    listed: Candidates | None = None  # every way of its scenario, where the check came that far

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the document."""
        return not any(problem.severity == "error" for problem in self.problems)

    def shown(self) -> tuple[PlanDocument, list[Problem]]:
        """The document as far as it is proven, and a warning where that is less than it says."""
        if self.holds and self.standing.proven:
            return self.document, []
        standing = self.standing if self.holds else unknown_standing(self.document, self.unchecked)
        if not self.holds:
            standing = replace(standing, words=f"{standing.words}: {self.problems[0].message}", problems=self.problems)
        claims = self.document.get("status") in ("optimal", "infeasible") or not self.holds
        warning = Problem(reference="not-proven", message=standing.words, hint=LATER, severity="warning")
        return as_proven(self.document, standing), [warning] if claims else []


def verify(plan: PlanLike, catalog: Catalog | None = None) -> list[Problem]:
    """Every way in which a plan contradicts its scenario, its catalog or itself.

    Status, bound and gap are held against its certificate, worked out again over all columns of the scenario: no solver
    is asked. A plan that holds and is not proven gives one problem, ``not-proven``, whose severity is ``warning``.

    Parameters
    ----------
    plan
        A plan, its document or the path of its file.
    catalog
        That it was made with; default as the plan says.

    Raises
    ------
    InputError
        It is no plan; or something in it is missing, unknown or of another type: each with its path.
    """
    return check(document_of(plan), catalog).problems


def check(document: PlanDocument, catalog: Catalog | None = None, *, thorough: bool = True) -> Checked:
    """What contradicts a plan document, and what of it is proven: see `verify`.

    Parameters
    ----------
    thorough
        Also recompute the columns that the bound rests on by the verifier's own code, and simulate again.
    """
    catalog = catalog or catalog_of_plan(document)
    problems = _verified(document, catalog) or scenario_problems(document) or case_problems(document, catalog)
    if problems and not only_claims(document, problems):
        return Checked(document=document, problems=problems, standing=unknown_standing(document))
    scenario = scenario_in(document)
    allow_suspect = allows_suspect(document)
    try:
        check_references(scenario, catalog)
        asked: dict[str, Any] = {"allow_suspect": allow_suspect, "tie_share": tie_share_of(document)}
        asked["more_mixes"] = _mixes_in(document)
        listed = enumerate_candidates(scenario, catalog, loader_of(scenario), **asked)
    except InputError as error:
        return Checked(document=document, problems=list(error.problems), standing=unknown_standing(document))
    problems = [*problems, *_told(document, catalog, listed, thorough=thorough)]
    standing = standing_of(document, listed)
    certificate = document["certificate"]
    if thorough and standing.proven and certificate is not None and document["status"] == "optimal":
        from planner.analysis.supports import support_findings

        wrong = problems_of(support_findings(listed, certificate, loader_of(scenario)))
        standing = replace(standing, proven=not wrong, problems=wrong)
    if problems:  # the plan stands, what it says of its proof does not: what is proven is told all the same
        standing = replace(standing, proven=False, problems=[*problems, *standing.problems])
    return Checked(document=document, problems=standing.all_problems(), standing=standing, listed=listed)


def _mixes_in(document: PlanDocument) -> dict[str, Any]:
    """The mixes of classes of requests of each fleet's own."""
    fleets = [(one["name"], one["fleet"]) for one in document["workloads"] if one["kind"] == "serving"]
    told = {name: fleet.get("mixes", []) for name, fleet in fleets if fleet is not None}
    return {name: tuple(map(tuple, mixes)) for name, mixes in told.items() if mixes}


def _told(document: PlanDocument, catalog: Catalog, listed: Candidates, *, thorough: bool) -> Iterator[Problem]:
    """What contradicts the ways listed again, or the replicas simulated again."""
    from planner.analysis.listed import choice_findings, listing_findings

    yield from gathered(listing_findings(document, listed))
    yield from gathered(choice_findings(document, _searched(document, catalog, listed)))
    for case in (document["uncertainty"] or {"cases": []})["cases"]:
        if case["plan"] is not None:
            mine = _searched(case["plan"], catalog, listed)(scenario_in(case["plan"]))
            yield from gathered(listing_findings(case["plan"], mine))
    stated = document.get("simulation")
    if thorough and stated is not None:
        from planner.analysis.simulated import simulated_rows, simulation_findings

        again = simulated_rows(document, catalog, load_model, seed=stated[0]["seed"] if stated else 0)
        yield from gathered(simulation_findings(stated, again))


def _searched(document: PlanDocument, catalog: Catalog, listed: Candidates) -> Callable[[Scenario], Candidates]:
    """Every way of a scenario much like the one of a document."""
    chosen: dict[str, Any] = {"allow_suspect": allows_suspect(document), "tie_share": tie_share_of(document)}
    return lambda asked: enumerate_candidates(asked, catalog, loader_of(asked), known=listed, **chosen)


def only_claims(document: PlanDocument, problems: Sequence[Problem]) -> bool:
    """Whether all that is wrong with a plan is what it claims to be proven."""
    return document["status"] in WITH_PLAN and all(problem.reference == "wrong-proof" for problem in problems)


def allows_suspect(document: PlanDocument) -> bool:
    """Whether a plan was asked for with suspect prices allowed."""
    certificate = document["certificate"]
    return certificate is not None and certificate["allow_suspect"]


def scenario_in(document: PlanDocument) -> Scenario:
    """The scenario that a plan carries, read."""
    return parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])


def _verified(document: PlanDocument, catalog: Catalog, recall: Recall | None = None) -> list[Problem]:
    return _verify(document, catalog, load_model, recall)


def shown(document: PlanDocument, catalog: Catalog | None = None) -> tuple[PlanDocument, list[Problem]]:
    """A document that was read, as far as it is proven, with a warning where that is less than it says.

    Reports say "proven" of nothing else. What does not hold is shown as not proven, and refused by `plan verify`.
    """
    return looked_at(document, catalog).shown()


def looked_at(document: PlanDocument, catalog: Catalog | None = None) -> Checked:
    """A document that was read, after the check that showing it wants; where none is possible, why."""
    try:
        return check(document, catalog, thorough=False)
    except PlanError as error:
        unknown = unknown_standing(document, unchecked=True)
        return Checked(document=document, problems=list(error.problems), standing=unknown, unchecked=True)


def to_show(plan: PlanLike, catalog: Catalog | None = None) -> PlanDocument:
    """The document of a plan as far as it is proven: what was solved here is, a file or a document is checked."""
    document = document_of(plan)
    return document if isinstance(plan, Plan) and not plan.read_from else shown(document, catalog)[0]


def scenario_problems(document: Mapping[str, Any]) -> list[Problem]:
    """Where a plan's own copy of its scenario is not what its file says, with the same case and --set texts.

    None where the file is not here: the plan is as good as its copy.
    """
    now = scenario_of(document)
    if now is None or asks_the_same(document["scenario"], now.resolved):
        return []
    keys = ", ".join(changed_keys(document["scenario"], now.resolved))
    problem = Problem(
        reference="other-scenario",
        message=f"the scenario in the plan is not the one in its file, which differs in {keys}",
        places=(Place(file=document["scenario_file"]),),
        hint="the file was edited since, or the plan was changed: solve the scenario again",
    )
    return [problem]


def leaf_counts(document: PlanDocument) -> list[str]:
    """How many leaves of a document are worked out again, held against what they are from, or told and not checked."""
    from planner.checks.leaves import counts

    numbers = counts(document).items()
    return [", ".join(f"{number:,} {'leaf' if number == 1 else 'leaves'} {kind}" for kind, number in numbers)]


def case_problems(document: PlanDocument, catalog: Catalog, recall: Recall | None = None) -> list[Problem]:
    """What is wrong with the cases of an uncertain plan; nothing for any other.

    Parameters
    ----------
    recall
        What the estimates answered before, as `planner.checks.verify.verify` has it.
    """
    scenario = scenario_in(document)
    if not scenario.uncertainty and document.get("uncertainty") is None:
        return []
    from planner.checks.uncertain_cases import uncertainty_problems

    return uncertainty_problems(document, scenario, lambda plan: _verified(plan, catalog, recall))
