"""Every plan that is best for some deadline, budget or amount of carbon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from planner.analysis.frontier.run import Ahead
from planner.answers import Frontier
from planner.api.taking import (
    PlanLike,
    ScenarioLike,
    catalog_of,
    checked_count,
    checked_limit,
    checked_share,
    document_of,
    scenario_of,
)
from planner.candidates.patience import endless
from planner.candidates.search import Candidates
from planner.candidates.search import enumerate_candidates as _enumerate
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.checks.verify import verify as _verify
from planner.deadline import MORE_TIME, Deadline
from planner.errors import PlanError, Problem, StoppedError
from planner.files import LineFile, StrPath
from planner.plan.references import check_references, load_model, loader_of
from planner.scenario.schema import Scenario
from planner.sweeps.answering import Processes, checked_workers
from planner.sweeps.question import Answered, Question, without_plan

if TYPE_CHECKING:
    from planner.analysis.frontier.points import Beside, Keep, Known, Points, Sweep
    from planner.optimize.options import SolverOptions
    from planner.plan.model.frontier_document import Record, Tradeoff
    from planner.plan.model.plan import PlanDocument
    from planner.sweeps.answering import Runner


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
    workers: int = 1,
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
    workers
        Processes of this machine that look for points beside each other; the document is the same.
    options
        Of the solver, as for `solve`; at the time limit the points found so far are the answer.

    Raises
    ------
    UsageError
        The scenario has nothing to trade in that way; more workers than can be.
    InputError, StoppedError, OutputError
        As `solve`; the journal is in use, or cannot be written.
    """
    from planner.analysis.frontier.journal import BEGINS
    from planner.analysis.frontier.question import sweep_of
    from planner.analysis.frontier.run import run_sweep

    workers, most = checked_workers(workers), checked_count(most, "most", 1)
    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    sweep = sweep_of(scenario, over=over, low=low, high=high, against=against, workload=workload, most=most)
    limit = Deadline.of(checked_limit(options.get("time_limit_s")))
    given = {"solver": "highs", "gap": 0.0, "threads": 1, "seed": 0, **options, "time_limit_s": limit}
    given |= {"gap": checked_share(given["gap"], "the gap", 1.0), "seed": checked_count(given["seed"], "the seed")}
    asked = cast("SolverOptions", {**given, "threads": checked_count(given["threads"], "threads", 1)})

    def enumerate_ways(question: Scenario, patience_s: float | None) -> Candidates:
        check_references(question, catalog)
        given: dict[str, Any] = {"allow_suspect": allow_suspect, "patience_s": patience_s}
        spent = endless if limit is None else lambda: float(limit.passed())
        found = _enumerate(question, catalog, loader_of(question), spent=spent, **given)
        if limit is not None and found.cut:
            raise StoppedError.of("time-limit", "the time limit ended the listing of ways to run", hint=MORE_TIME)
        return found

    with LineFile(journal, begins=BEGINS) if journal is not None else nullcontext() as lines:
        document = run_sweep(
            scenario,
            sweep,
            enumerate_ways=enumerate_ways,
            verified=_Verified(catalog),
            options=asked,
            lines=lines,
            elsewhere=partial(_beside, workers=workers) if workers > 1 else None,
        )
    return Frontier(document=document)


class _Verified:
    """Holds a plan against a catalog; it can be sent to another process."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __call__(self, document: PlanDocument) -> None:
        problems = _verify(document, self.catalog, load_model)
        if problems:
            raise PlanError(*problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PointAsked(Question):
    """A point as a question: its range, and its limit there."""

    part: int
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PointAnswered(Answered):
    """What was found at a limit, or which problems a plan has."""

    record: Record | None = None
    problems: tuple[Problem, ...] = ()


class _Answering:
    """Answers such questions; it goes to each worker once."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def __call__(self, question: Question) -> Answered:
        assert isinstance(question, _PointAsked)
        try:
            record = self._points(question.part, question.limit)
        except PlanError as error:
            return _PointAnswered(row=without_plan("failed", None), problems=error.problems)
        return _PointAnswered(row=without_plan(record["status"], None), record=record)


class _Beside:
    """Points of all ranges, several asked at a time; whoever waits for one keeps all that come meanwhile."""

    def __init__(self, runner: Runner, workers: int) -> None:
        self._runner, self._workers = runner, workers
        self._answers: Iterator[tuple[int, Answered]] = iter(())
        self._asked: list[tuple[_PointAsked, Keep]] = []
        self._now: tuple[int, Ahead, Keep] | None = None

    def __call__(self, part: int, sweep: Sweep, known: Known, keep: Keep) -> Callable[[float | None], Record]:
        """A range begins; what waits for a point of it."""
        self._now = (part, Ahead(low=sweep.low, high=sweep.high, known=known, beside=self._workers), keep)

        def waited(limit: float | None) -> Record:
            while (record := known(limit)) is None:
                self._hear()
            return record

        return waited

    def _hear(self) -> None:
        """Keep the next answer; where none is on its way, ask."""
        heard = next(self._answers, None)
        if heard is None:
            self._answers = iter(self._runner(self._questions()))
            heard = next(self._answers)  # the limit that is waited for is the first to be asked
        number, answered = heard
        question, keep = self._asked[number]
        if isinstance(answered, _PointAnswered) and answered.record is not None:
            keep(question.limit, answered.record)
            return
        if isinstance(answered, _PointAnswered):
            raise PlanError(*answered.problems)
        problem = answered.row["problem"]
        assert problem is not None
        hint = "run it again with fewer workers: what was found is in the journal, where there is one"
        raise StoppedError.of(problem["reference"], problem["message"], hint=hint)

    def _questions(self) -> Iterator[tuple[int, Question]]:
        while self._now is not None:
            part, ahead, keep = self._now
            try:
                limit = next(ahead)
            except StopIteration:
                return
            asked = _PointAsked(part=part, limit=limit)
            self._asked.append((asked, keep))
            yield len(self._asked) - 1, asked


@contextmanager
def _beside(points: Points, workers: int) -> Iterator[Beside]:
    """Processes of this machine that answer for points."""
    with Processes(_Answering(points), workers) as runner:
        yield _Beside(runner, workers)


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
    from planner.analysis.frontier.alone import PATIENCE, tradeoffs_of
    from planner.candidates.trained import each_job_alone

    scenario = scenario_of(scenario)
    catalog = catalog or catalog_of(scenario)
    check_references(scenario, catalog)
    loader = loader_of(scenario)
    found = each_job_alone(scenario, catalog, loader, allow_suspect=allow_suspect, patience=PATIENCE)
    return tradeoffs_of(found, None if plan is None else document_of(plan))
