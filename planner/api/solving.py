"""From a scenario to a verified plan, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.answers import Plan, Rows
from planner.api.checking import allows_suspect, scenario_in
from planner.api.listing import enumerate_candidates
from planner.api.sessions import Session
from planner.api.taking import PlanLike, ScenarioLike, checked_limit
from planner.candidates.program import SHARE
from planner.catalog.model import Catalog
from planner.deadline import Deadline
from planner.errors import Problem
from planner.plan.plan_files import catalog_of_plan

if TYPE_CHECKING:
    from planner.analysis.others.other_plans import Previous
    from planner.plan.model.others import DecisionPlan, DeviceRange
    from planner.plan.model.plan import PlanDocument


def session(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    allow_suspect: bool = False,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    tie_tolerance: float = SHARE,
    workers: int = 1,
) -> Session:
    """A scenario with every way to run it listed once, to be solved, asked and changed.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    allow_suspect, solver, gap, time_limit_s, threads, seed, tie_tolerance, workers
        As for `solve`; a time limit is that of each call: of making the session, of each answer, of each change.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    """
    asked: dict[str, Any] = {"solver": solver, "gap": gap, "time_limit_s": time_limit_s, "threads": threads}
    asked |= {"tie_tolerance": tie_tolerance, "workers": workers}
    return Session(scenario, catalog, allow_suspect=allow_suspect, seed=seed, **asked)


def solve(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    solver: str = "highs",
    gap: float = 0.0,
    time_limit_s: float | Deadline | None = None,
    threads: int = 1,
    seed: int = 0,
    allow_suspect: bool = False,
    simulate: bool = False,
    previous: Previous | PlanLike | None = None,
    best: int = 0,
    within: float | None = None,
    tie_tolerance: float = SHARE,
    workers: int = 1,
) -> Plan:
    """The cheapest plan of a scenario, proven and verified.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    solver
        highs or cbc.
    gap
        Share of the cost within which a plan counts as proven.
    time_limit_s
        For everything: the best plan found by then is the answer, and says what was left out.  [s]
    threads, seed
        Of the solver.
    allow_suspect
        Use prices that look wrong, too.
    simulate
        Also run the chosen replicas of fleets in a simulation, with the same seed.
    previous
        A plan to stay with where that costs nothing, or `Previous`: where that costs little.
    best, within
        Also list that many of the best different decisions; and, for each device, the fewest and the most of it
        in plans that cost at most this share more than the cheapest.
    tie_tolerance
        Costs that differ by no more than this share, or a cent where that is more, are equal: fewer devices, more
        capacity or an earlier finish, more replicas, a plainer layout, dated prices and names decide. 0 tells all
        costs apart; at most 0.001.
    workers
        Processes of this machine that list workloads beside each other; the plan is the same.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    StoppedError
        No solver could be run.
    PlanError
        The verifier refuses the plan: a bug.
    """
    limit = Deadline.of(checked_limit(time_limit_s))
    asked: dict[str, Any] = {"solver": solver, "gap": gap, "time_limit_s": limit, "threads": threads}
    asked |= {"tie_tolerance": tie_tolerance, "workers": workers}
    one = Session(scenario, catalog, allow_suspect=allow_suspect, seed=seed, **asked)
    return one.solve(simulate=simulate, previous=previous, best=best, within=within)


def best_decisions(
    scenario: ScenarioLike, catalog: Catalog | None = None, *, count: int = 5, **options: Any
) -> list[DecisionPlan]:
    """The best plan of each of the `count` best different decisions: device, price model and place of each workload.

    Each decision gives up at least one choice of every one before it; options are those of `solve`.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    count
        How many are looked for; fewer are given where there are no more.
    **options
        As for `solve`, but for `best`.

    Raises
    ------
    UsageError
        The scenario may turn out in several ways (`uncertainty`).
    InputError, StoppedError, PlanError
        As `solve`.
    """
    document = solve(scenario, catalog, best=count, **options).document
    found = document["others"]["decisions"]
    return found["plans"] if found else []


def near_optimal(
    scenario: ScenarioLike, catalog: Catalog | None = None, *, within: float = 0.02, **options: Any
) -> list[DeviceRange]:
    """For each device the fewest and the most of it in plans that cost at most a share more than the cheapest.

    Each figure is proven, or None; options are those of `solve`.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    within
        That share, of the least cost.
    **options
        As for `solve`, but for `within`.

    Raises
    ------
    UsageError
        The scenario may turn out in several ways (`uncertainty`).
    InputError, StoppedError, PlanError
        As `solve`.
    """
    found = solve(scenario, catalog, within=within, **options).document["others"]["near_optimal"]
    return found["devices"] if found else []


def candidates_table(
    scenario: ScenarioLike, catalog: Catalog | None = None, *, every: bool = False, allow_suspect: bool = False
) -> Rows:
    """One row a candidate: where, how, memory, time, cost.

    Parameters
    ----------
    scenario
        A scenario, the path of its file, or the name of one that ships.
    catalog
        Default: the scenario's own, else the packaged one.
    every
        Also layouts that a faster one on the same machines dominates.
    allow_suspect
        Use prices that look wrong, too.

    Raises
    ------
    InputError
        The scenario names what the catalog or the presets do not have.
    """
    from planner.plan.rows.candidate_rows import candidate_rows

    listed = enumerate_candidates(scenario, catalog, allow_suspect=allow_suspect, every_layout=every)
    return Rows(candidate_rows(listed))


def solved_again(document: PlanDocument, catalog: Catalog | None = None) -> tuple[list[Problem], str, bool]:
    """What solving the scenario again says against a plan, in words what it came to, and whether that decides.

    Costs agree to a millionth or a cent (`planner.plan.proof.slack`).
    """
    from planner.analysis.again import differences

    made, others = document["provenance"], document.get("others")
    best = others["decisions"]["asked"] if others and others["decisions"] else 0
    within = others["near_optimal"]["share"] if others and others["near_optimal"] else None
    again = solve(
        scenario_in(document),
        catalog or catalog_of_plan(document),
        allow_suspect=allows_suspect(document),
        seed=made["seed"],
        threads=made["threads"],
        best=best,
        within=within,
    )
    return differences(document, again.document)
