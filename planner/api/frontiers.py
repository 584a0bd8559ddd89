"""Every plan that is best for some deadline, budget or amount of carbon."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

from planner.answers import Frontier
from planner.api.taking import PlanLike, ScenarioLike, catalog_of, document_of, scenario_of
from planner.candidates.patience import endless
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.catalog.model import Catalog
from planner.deadline import MORE_TIME, Deadline
from planner.errors import PlanError, StoppedError
from planner.files import LineFile, StrPath
from planner.plan.references import check_references, load_model, loader_of
from planner.plan.verify import verify as _verify
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.optimize.options import SolverOptions
    from planner.plan.frontier.model import Tradeoff
    from planner.plan.model.plan import PlanDocument


def frontier(
    scenario: ScenarioLike,
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
        Of the solver, as for `solve`; at the time limit the points found so far are the answer.

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

    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    sweep = sweep_of(scenario, over=over, low=low, high=high, against=against, workload=workload, most=most)
    limit = Deadline.of(options.get("time_limit_s"))
    asked = cast(
        "SolverOptions", {"solver": "highs", "gap": 0.0, "threads": 1, "seed": 0, **options, "time_limit_s": limit}
    )

    def enumerate_ways(question: Scenario, patience_s: float | None) -> Candidates:
        check_references(question, catalog)
        given: dict[str, Any] = {"allow_suspect": allow_suspect, "patience_s": patience_s}
        spent = endless if limit is None else lambda: float(limit.passed())
        found = _enumerate(question, catalog, loader_of(question), spent=spent, **given)
        if limit is not None and found.cut:
            raise StoppedError.of("time-limit", "the time limit ended the listing of ways to run", hint=MORE_TIME)
        return found

    def verified(document: PlanDocument) -> None:
        problems = _verify(document, catalog, load_model)
        if problems:
            raise PlanError(*problems)

    with LineFile(journal, begins=BEGINS) if journal is not None else nullcontext() as lines:
        document = run_sweep(
            scenario, sweep, enumerate_ways=enumerate_ways, verified=verified, options=asked, lines=lines
        )
    return Frontier(document=document)


def tradeoffs(
    scenario: ScenarioLike,
    catalog: Catalog | None = None,
    *,
    plan: PlanLike | None = None,
    allow_suspect: bool = False,
) -> list[Tradeoff]:
    """Cost against finish of each training job by itself, also past its deadline: instant, since nothing is solved.

    Parameters
    ----------
    plan
        A plan of the scenario, whose choice is marked.
    """
    from planner.candidates.trained import each_job_alone
    from planner.plan.frontier.alone import PATIENCE, tradeoffs_of

    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    check_references(scenario, catalog)
    loader = loader_of(scenario)
    found = each_job_alone(scenario, catalog, loader, allow_suspect=allow_suspect, patience=PATIENCE)
    return tradeoffs_of(found, None if plan is None else document_of(plan))
