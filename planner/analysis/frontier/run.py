"""A sweep from the question to the document: enumerate, look into the journal, solve what is missing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from planner import __version__
from planner.analysis.frontier.document import frontier_document
from planner.analysis.frontier.journal import Journal, Lines
from planner.analysis.frontier.points import Asked, Beside, Points, Sweep, journal_key, sweep_points
from planner.analysis.frontier.question import at_deadline, loosest, loosest_settings, own_limit
from planner.candidates.search import Candidates
from planner.optimize.options import SolverOptions
from planner.plan.model.frontier_document import FrontierDocument
from planner.plan.model.plan import PlanDocument
from planner.plan.rows.calendar import calendar_of
from planner.scenario.schema import Scenario

Enumerate = Callable[[Scenario, float | None], Candidates]  # a scenario, and how late its jobs may end  [s]


def run_sweep(
    scenario: Scenario,
    sweep: Sweep,
    *,
    enumerate_ways: Enumerate,
    verified: Callable[[PlanDocument], None],
    options: SolverOptions,
    lines: Lines | None = None,
    elsewhere: Callable[[Points], AbstractContextManager[Beside | None]] | None = None,
) -> FrontierDocument:
    """All Pareto points of a sweep, as a frontier document.

    Parameters
    ----------
    enumerate_ways
        Lists the columns of a scenario; with seconds, also those of jobs that end that long after their start.
    verified
        Raises `PlanError` for a plan document that does not hold.
    options
        Of the solver: solver, gap, time_limit_s (of each program), threads, seed.
    lines
        The journal; points that it holds are not solved again.
    elsewhere
        Has points answered by others, several at a time; default: here, one after the other.
    """
    moved = at_deadline(scenario, sweep)
    candidates = _listed(scenario, sweep, moved, enumerate_ways)
    journal = Journal(journal_key(candidates, sweep, __version__, options), lines)
    asked = Asked(at_deadline=moved, verified=verified, options=options)
    points = Points(candidates, sweep, asked)
    with nullcontext() if elsewhere is None else elsewhere(points) as beside:
        records = sweep_points(points, journal, beside)
    own, loose = own_limit(scenario, sweep), [*scenario.settings, *loosest_settings(scenario, sweep)]
    return frontier_document(candidates, sweep, records, options, own, loose)


def _listed(
    scenario: Scenario, sweep: Sweep, moved: Callable[[float], Scenario], enumerate_ways: Enumerate
) -> Candidates:
    """Columns for every limit of the range, listed once.

    The tightest deadline tells up to how many nodes are worth trying, the loosest how late a way may end. With a
    calendar the columns stand for starts too, which the loosest deadline allows.
    """
    if sweep.over != "deadline":
        return enumerate_ways(loosest(scenario, sweep), None)
    assert sweep.high is not None
    listed = enumerate_ways(moved(sweep.low), sweep.high)
    return listed if calendar_of(listed) is None else enumerate_ways(moved(sweep.high), None)
