"""From a scenario to a verified plan: enumerate, solve, put beside it what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.answers import Plan, Rows
from planner.api.checking import case_problems
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.catalog.model import Catalog
from planner.catalog.own_prices import OwnPrices, load_priced
from planner.errors import PlanError, UsageError
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import STOPS, uninterrupted
from planner.plan.beside import beside_plan, despite_ctrl_c
from planner.plan.certificate import certificate_problems
from planner.plan.document import build_document, resealed, with_simulation
from planner.plan.references import check_references, load_model, loader_of
from planner.plan.tighten import solve_within_targets
from planner.plan.verify import verify as _verify
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.others.other_plans import Previous, Staying

Document = dict[str, Any]


def catalog_of(
    scenario: Scenario,
    hardware: str | None = None,
    *,
    prices: Iterable[str] | None = None,
    price: Iterable[str] | None = None,
) -> Catalog:
    """The catalog to use: `hardware`, then the scenario's own, else the packaged one, at one's own prices.

    Parameters
    ----------
    hardware
        A folder or frozen file.
    prices
        Files of prices, or one ISO date: only prices of that day or earlier.
    price
        Prices of a device-hour: "h100-sxm=$2.50/h".
    """
    return load_priced(hardware or scenario.hardware.catalog, OwnPrices.of(prices, price))


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
    way = Way(catalog=catalog, options=options, allow_suspect=allow_suspect)
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
    problems += case_problems(document, catalog) if scenario.uncertainty else []
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
class Way:
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
    document: Document, listed: Candidates, way: Way, staying: Staying | None, best: int, within: float | None
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


def _solve_uncertain(scenario: Scenario, listed: Candidates, way: Way) -> Document:
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


def candidates_table(scenario: Scenario, catalog: Catalog, *, every: bool = False, allow_suspect: bool = False) -> Rows:
    """One row a candidate: where, how, memory, time, cost."""
    from planner.plan.rows.candidates import candidate_rows

    listed = enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect, every_layout=every)
    return Rows(candidate_rows(listed))
