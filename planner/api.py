"""The library behind the command line: load, enumerate, optimise, verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.errors import PlanError, Problem, UsageError
from planner.files import LineFile, StrPath, read_package_text
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import STOPS, uninterrupted
from planner.plan.beside import beside_plan, despite_ctrl_c
from planner.plan.certificate import certificate_problems
from planner.plan.document import build_document, resealed, with_simulation
from planner.plan.plan import Plan
from planner.plan.references import check_references, load_model, loader_of
from planner.plan.tighten import solve_within_targets
from planner.plan.verify import verify as _verify
from planner.scenario.load import load_scenario, parse_scenario
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.frontier.document import Frontier
    from planner.plan.others.other_plans import Previous, Staying
    from planner.plan.why.asked import Asked

__all__ = [
    "Plan",
    "asked",
    "best_decisions",
    "break_even",
    "enumerate_candidates",
    "frontier",
    "frontier_schema",
    "load_catalog",
    "load_model",
    "load_scenario",
    "marginal_values",
    "near_optimal",
    "optimize",
    "plan_schema",
    "repairs",
    "solve",
    "verify",
    "why_not",
]

Document = dict[str, Any]


def catalog_of(scenario: Scenario, hardware: str | None = None) -> Catalog:
    """The catalog to use: `hardware`, then the scenario's own, else the packaged one."""
    return load_catalog(hardware or scenario.hardware.catalog)


def enumerate_candidates(
    scenario: Scenario, catalog: Catalog, *, allow_suspect: bool = False, every_layout: bool = False
) -> Candidates:
    """Every legal way to run every workload, with memory, time and cost; drops are in its ledgers."""
    check_references(scenario, catalog)
    return _enumerate(scenario, catalog, loader_of(scenario), allow_suspect=allow_suspect, every_layout=every_layout)


def solve(
    scenario: Scenario,
    catalog: Catalog | None = None,
    *,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
    simulate: bool = False,
    previous: Previous | None = None,
    best: int = 0,
    within: float | None = None,
) -> Plan:
    """The cheapest plan of a scenario, proven and verified.

    Parameters
    ----------
    simulate
        Also run the chosen replicas of fleets in a simulation, with the same seed.
    previous
        A plan to stay with where that costs little.
    best, within
        Also list that many of the best different decisions; and, for each device, the fewest and the most of it
        in plans that cost at most this share more than the cheapest.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    StoppedError
        No solver could be run.
    PlanError
        The verifier refuses the plan: a bug.
    """
    if scenario.uncertainty and (best or within is not None):
        hint = "leave uncertainty, or --best and --within, out"
        raise UsageError.of("not-together", "other plans are those of one future, not of several", hint=hint)
    catalog = catalog or catalog_of(scenario)
    listed = enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect)
    options: dict[str, Any] = {
        "solver": solver,
        "gap": gap,
        "time_limit_s": time_limit_s,
        "threads": threads,
        "seed": seed,
    }
    way = _Way(catalog=catalog, options=options, allow_suspect=allow_suspect)
    listed = way.mixed(listed)
    staying = _staying(scenario, previous, options)
    if staying is not None:
        document = way.planned(staying.ready(listed), staying.solved, listed=listed, prepare=staying.ready)
    elif scenario.uncertainty:
        document = _solve_uncertain(scenario, listed, way)
    else:
        document = way.planned(listed, way.solved, prepare=way.mixed)
    problems = despite_ctrl_c(
        lambda: _verify(document, catalog, load_model) + certificate_problems(document, listed.whole)
    )
    problems += _case_problems(document, catalog) if scenario.uncertainty else []
    if problems:
        raise PlanError(*problems)
    interrupted = STOPS["interrupt"] in document["warnings"]
    if (staying is not None or best or within is not None) and not interrupted:
        document = _with_others(document, listed, way, staying, best, within)
    if simulate:
        from planner.plan.simulated import simulated_rows

        document = with_simulation(document, simulated_rows(document, catalog, load_model, seed=seed))
    return Plan(document=document)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How one call of `solve` gets from candidates to a plan."""

    catalog: Catalog
    options: dict[str, Any]
    allow_suspect: bool

    def solved(self, candidates: Candidates) -> Solution:
        """The best plan of the columns as they are, proven as far as they are all."""
        solution = optimize(candidates.program, **self.options)
        if candidates.unlisted is None:
            return solution
        from planner.optimize.mixing import within_bound

        return within_bound(solution, candidates.unlisted)

    def mixed(self, candidates: Candidates) -> Candidates:
        """The ways with every mix of offers within a job that a best plan may use."""
        if not candidates.spaces or candidates.scenario.uncertainty:
            return candidates
        from planner.optimize.mixing import with_mixes_that_matter

        return with_mixes_that_matter(candidates, **self.options)

    def search(self, scenario: Scenario, *, patience_s: float | None = None) -> Candidates:
        """The ways of a scenario, those past its deadlines too when there is patience."""
        loader = loader_of(scenario)
        return _enumerate(scenario, self.catalog, loader, allow_suspect=self.allow_suspect, patience_s=patience_s)

    def planned(
        self,
        ready: Candidates,
        solve: Callable[[Candidates], Solution],
        *,
        listed: Candidates | None = None,
        prepare: Callable[[Candidates], Candidates] = lambda same: same,
    ) -> Document:
        """The plan document of candidates, given what solves them (and makes others ready for it)."""
        listed = listed or ready
        candidates, solution = solve_within_targets(ready, solve, prepare=prepare)
        options = self.options
        beside, solution = beside_plan(
            listed, candidates, solution, search=self.search, allow_suspect=self.allow_suspect, **options
        )
        told = {name: options[name] for name in ("seed", "threads", "gap")}
        return despite_ctrl_c(lambda: build_document(candidates, solution, **beside, **told))


def _staying(scenario: Scenario, previous: Previous | None, options: dict[str, Any]) -> Staying | None:
    """The way to solve that stays with a plan, when one is given."""
    if previous is None:
        return None
    from planner.plan.others.other_plans import Staying

    if scenario.uncertainty or scenario.objective[0] != "cost":
        hint = "leave --previous out, or solve the scenario without uncertainty and with cost first"
        raise UsageError.of(
            "not-together", "staying with a plan is weighed against the least cost of one future", hint=hint
        )
    if any(job.mix_within_job for job in scenario.training):
        hint = "leave --previous out, or mix_within_job"
        raise UsageError.of("not-together", "what a mix within a job changes is not counted yet", hint=hint)
    return Staying(previous=previous, options=options)


def _with_others(
    document: Document, listed: Candidates, way: _Way, staying: Staying | None, best: int, within: float | None
) -> Document:
    """The plan with what else could be done, under a new seal."""
    from planner.plan.others.other_plans import decisions_document, near_optimal_document, previous_document

    def verified(plan: Document) -> None:
        problems = _verify(plan, way.catalog, load_model)
        if problems:
            raise PlanError(*problems)

    others = {
        "decisions": decisions_document(listed, best, verified, way.options) if best else None,
        "near_optimal": near_optimal_document(listed, within, way.options) if within is not None else None,
        "previous": previous_document(staying, document) if staying is not None else None,
    }
    return resealed({**document, "others": others})


def best_decisions(
    scenario: Scenario, catalog: Catalog | None = None, *, count: int = 5, **options: Any
) -> list[Document]:
    """The best plan of each of the `count` best different decisions: device, price model and place of each workload.

    Each decision gives up at least one choice of every one before it; options are those of `solve`.
    """
    document = solve(scenario, catalog, best=count, **options).document
    plans: list[Document] = document["others"]["decisions"]["plans"]
    return plans


def near_optimal(
    scenario: Scenario, catalog: Catalog | None = None, *, within: float = 0.02, **options: Any
) -> list[Document]:
    """For each device the fewest and the most of it in plans that cost at most a share more than the cheapest.

    Each figure is proven, or None; options are those of `solve`.
    """
    found = solve(scenario, catalog, within=within, **options).document["others"]["near_optimal"]
    return found["devices"] if found else []


def _solve_uncertain(scenario: Scenario, listed: Candidates, way: _Way) -> Document:
    from planner.candidates.cases import Case
    from planner.plan.uncertain import solve_cases
    from planner.scenario.uncertain import cases_of

    first, *others = cases_of(scenario)
    cases = [Case(name=first.name, probability=first.probability, candidates=listed)]
    for other in others:
        found = enumerate_candidates(other.scenario, way.catalog, allow_suspect=way.allow_suspect)
        cases.append(Case(name=other.name, probability=other.probability, candidates=found))
    # one case alone is no answer: Ctrl-C ends them all
    return solve_cases(scenario, cases, way.planned, lambda asked: uninterrupted(way.solved(asked)), **way.options)


def frontier(
    scenario: Scenario,
    catalog: Catalog | None = None,
    *,
    over: str = "deadline",
    low: str | None = None,
    high: str | None = None,
    against: str | None = None,
    workload: str | None = None,
    journal: StrPath | None = None,
    allow_suspect: bool = False,
    most: int = 1000,
    **options: Any,
) -> Frontier:
    """Every plan that is best for some deadline, budget or amount of carbon, proven and verified.

    Parameters
    ----------
    over, low, high
        The limit that is swept, deadline, budget or carbon, from the tightest to the loosest: "7d", "60d".
    against
        What is made least under it: cost, time or carbon; default cost, under a budget time.
    workload
        The job whose deadline is swept; default all jobs, each from its own start.
    journal
        File of the points found so far: a run that was killed goes on from there.
    most
        Points to look for at most.
    options
        Of the solver, as for `solve`; the time limit is that of each program.

    Raises
    ------
    UsageError
        The scenario has nothing to trade in that way.
    InputError, StoppedError, OutputError
        As `solve`; the journal is in use, or cannot be written.
    """
    from planner.plan.frontier.journal import BEGINS
    from planner.plan.frontier.question import sweep_of
    from planner.plan.frontier.run import run_sweep

    catalog = catalog or catalog_of(scenario)
    sweep = sweep_of(scenario, over=over, low=low, high=high, against=against, workload=workload, most=most)
    asked = {"solver": "highs", "gap": 0.0, "time_limit_s": None, "threads": 1, "seed": 0, **options}

    def enumerate_ways(question: Scenario, patience_s: float | None) -> Candidates:
        check_references(question, catalog)
        return _enumerate(question, catalog, loader_of(question), allow_suspect=allow_suspect, patience_s=patience_s)

    def verified(document: Document) -> None:
        problems = _verify(document, catalog, load_model)
        if problems:
            raise PlanError(*problems)

    with LineFile(journal, begins=BEGINS) if journal is not None else nullcontext() as lines:
        return run_sweep(scenario, sweep, enumerate_ways=enumerate_ways, verified=verified, options=asked, lines=lines)


def verify(document: Document, catalog: Catalog | None = None) -> list[Problem]:
    """Every way in which a plan document contradicts its scenario, its catalog or itself.

    The certificate is checked as well, over all columns of the scenario, listed again: no solver is asked.
    """
    catalog = catalog or load_catalog()
    problems = _verify(document, catalog, load_model)
    if problems or not document.get("certificate"):
        return problems
    problems = _case_problems(document, catalog)
    if problems:
        return problems
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    allow_suspect = bool(document["certificate"].get("allow_suspect"))
    listed = enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect)
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


def _case_problems(document: Document, catalog: Catalog) -> list[Problem]:
    """What is wrong with the cases of an uncertain plan; nothing for any other."""
    scenario = parse_scenario(json.dumps(document["scenario"]), file=document["scenario_file"])
    if not scenario.uncertainty and document.get("uncertainty") is None:
        return []
    from planner.plan.checks.uncertain import uncertainty_problems

    return uncertainty_problems(document, scenario, lambda plan: _verify(plan, catalog, load_model))


def asked(scenario: Scenario, catalog: Catalog | None = None, *, allow_suspect: bool = False, **options: Any) -> Asked:
    """A scenario, solved, to ask what its limits are worth, what other devices cost, why not this one, what mends it.

    Parameters
    ----------
    options
        Of the solver, as for `solve`; a time limit is that of each program.
    """
    from planner.plan.why.asked import Asked

    way = _Way(catalog=catalog or catalog_of(scenario), options=options, allow_suspect=allow_suspect)
    listed = enumerate_candidates(scenario, way.catalog, allow_suspect=allow_suspect)
    candidates, solution = solve_within_targets(listed, way.solved)
    return Asked(candidates=candidates, solution=solution, catalog=way.catalog, search=way.search, options=options)


def marginal_values(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> list[Document]:
    """What one step more of every limit saves, each by solving again.  [micro-USD]"""
    return asked(scenario, catalog, **options).marginal_values()


def break_even(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> list[Document]:
    """What forcing each device that is not chosen costs, and the price at which it would be chosen."""
    return asked(scenario, catalog, **options).break_even()


def why_not(
    scenario: Scenario, device: str, catalog: Catalog | None = None, *, workload: str | None = None, **options: Any
) -> list[Document]:
    """Why a device is not in the plan: dearer by how much, or impossible and what came nearest."""
    return asked(scenario, catalog, **options).why_not(device, workload=workload)


def repairs(scenario: Scenario, catalog: Catalog | None = None, **options: Any) -> Document | None:
    """Conflict set and ways out of a scenario that nothing meets; None when there is a plan."""
    return asked(scenario, catalog, **options).repairs()


def plan_schema() -> Document:
    """JSON Schema of the plan document."""
    schema: Document = json.loads(read_package_text("plan/plan.schema.json"))
    return schema


def frontier_schema() -> Document:
    """JSON Schema of the frontier document."""
    schema: Document = json.loads(read_package_text("plan/frontier/frontier.schema.json"))
    return schema


def candidates_table(
    scenario: Scenario, catalog: Catalog, *, every: bool = False, allow_suspect: bool = False
) -> list[Document]:
    """One row a candidate: where, how, memory, time, cost."""
    from planner.plan.rows.candidates import candidate_rows

    return candidate_rows(enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect, every_layout=every))
