"""What one limit trades for: every plan that is best for some deadline, budget or amount of carbon.

The loosest question is enumerated once; the points are found in its columns (`sweep`). A point is
solved and checked as a plan of its own: replicas keep their targets on what they are sent, the
document is verified. Where several jobs run, whether two of them hold machines at the same time
depends on their deadlines; the joint limits are then built for each range of deadlines in which that
is the same, and what another range does better is left out at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.analysis.frontier.journal import Journal, question_key
from planner.analysis.frontier.sweep import TOO_CLOSE, Point, Trade, Value, best_under, columns_for, steps
from planner.analysis.tighten import solve_within_targets
from planner.candidates.holding import hold_times
from planner.candidates.program import FloatArray, Program
from planner.candidates.purchases import RUNS
from planner.candidates.search import Candidates, places_in_whole, program_of, select
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.deadline import TimeIsUp, is_up
from planner.optimize.options import SolverOptions
from planner.optimize.solve import Solution, optimize
from planner.optimize.status import uninterrupted
from planner.plan.document import build_document
from planner.plan.model.frontier_document import Against, Over, Record
from planner.plan.model.plan import PlanDocument
from planner.plan.parts import point_row
from planner.plan.rows.calendar import calendar_of
from planner.scenario.schema import Scenario

BROKEN_OFF = "broken off: points that are missing are looked for when it is run again"
HELD: dict[Over, Against] = {"deadline": "time", "budget": "cost", "carbon": "carbon"}  # what a limit holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A limit and its range, and what is made least under it."""

    over: Over
    against: Against
    low: Value  # s, micro-USD or mg
    high: Value | None  # None = no limit
    workload: str | None = None  # whose deadline; None = of all jobs, each counted from its own start
    most: int = 1000  # points to look for in this run

    @property
    def held(self) -> Against:
        """The objective that the limit holds."""
        return HELD[self.over]


Known = Callable[[Value | None], Record | None]  # what was found at a limit; None: not known
Keep = Callable[[Value | None, Record], None]
Beside = Callable[[int, Sweep, Known, Keep], Callable[[Value | None], Record]]  # of a range: waits for a point of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything a sweep needs from outside: the question at a deadline, the verifier, the options of the solver."""

    at_deadline: Callable[[float], Scenario]
    verified: Callable[[PlanDocument], None]  # raises PlanError
    options: SolverOptions


class Points:
    """Points of a sweep one by one, each by its range and its limit: in this process, or sent to another.

    Parameters
    ----------
    candidates
        Columns for every limit of the sweep.
    """

    def __init__(self, candidates: Candidates, sweep: Sweep, asked: Asked) -> None:
        self.candidates, self.sweep, self.asked = candidates, sweep, asked
        self.edges: list[Value] = [*_breaks(candidates, sweep), sweep.low]
        self._ready: tuple[int, Sweep, Candidates] | None = None  # of the range that was asked last

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made for a range."""
        return {**self.__dict__, "_ready": None}

    def ranges(self) -> Iterator[tuple[int, str, Sweep]]:
        """Ranges of the limit in which the same workloads run at the same time, loosest first: number, name, sweep."""
        high = self.sweep.high
        for number, low in enumerate(self.edges):
            name = f"range {number} of {self.edges}" if len(self.edges) > 1 else ""
            yield number, name, replace(self.sweep, high=high, low=low)
            high = low

    def __call__(self, number: int, limit: Value | None) -> Record:
        """The point at a limit of a range."""
        if self._ready is None or self._ready[0] != number:
            part = next(one for place, _, one in self.ranges() if place == number)
            self._ready = (number, part, prepared(self._columns(part), part))
        return solve_at(self._ready[2], self._ready[1], limit, self.asked)

    def _columns(self, part: Sweep) -> Candidates:
        if len(self.edges) == 1:
            return self.candidates
        assert part.high is not None
        return _under(moved(self.candidates, self.asked.at_deadline(_whole_s(part.high))))


def sweep_points(points: Points, journal: Journal, beside: Beside | None = None) -> list[Record]:
    """Records of all points, loosest limit first, then one of how it ended; those of the journal are not solved again.

    A record holds `limit`, `status`, `solves`, and for a point `over`, `against` and its `point`.

    Parameters
    ----------
    points
        Answers a limit of a range; its sweep says which limits, and how many points at most.
    journal
        What was found before; what is proven now is added.
    beside
        Has points answered elsewhere, several at a time; default: here, one after the other.

    Raises
    ------
    KeyboardInterrupt
        Broken off, by Ctrl-C or by the time limit, before anything was found; later the points so far are returned.
    PlanError
        The plan of a point does not hold.
    """
    found: list[Record] = []
    sweep, asked = points.sweep, points.asked
    try:
        for number, name, part in points.ranges():
            _in_range(points, number, part, journal, name, found, beside)
            if found and is_up(asked.options.get("time_limit_s")):
                raise TimeIsUp
            if len(found) >= sweep.most:
                break
    except KeyboardInterrupt:  # or the time limit: what was found is worth something
        if not found:
            raise
        found[-1] = {**found[-1], "messages": [*found[-1].get("messages", ()), BROKEN_OFF]}
    return found


def journal_key(candidates: Candidates, sweep: Sweep, version: str, options: SolverOptions) -> str:
    """What every point of a sweep depends on, its limit aside.

    Parameters
    ----------
    candidates
        All columns of the sweep, from the loosest question.
    sweep
        What is swept, against what, and of which job; its range counts only by what scenario and columns have of it.
    version
        Of the planner.
    options
        Solver, gap, seed and threads count, the time limit does not.
    """
    asked = {name: options[name] for name in ("solver", "gap", "seed", "threads")}
    scenario, about = candidates.scenario, [sweep.over, sweep.against, sweep.workload, "warnings"]  # what is kept
    parts = (version, scenario.resolved, candidates.catalog.digest, about, asked)
    return question_key(*parts, program=candidates.whole)


def _in_range(
    points: Points,
    number: int,
    sweep: Sweep,
    journal: Journal,
    name: str,
    found: list[Record],
    beside: Beside | None,
) -> None:
    """Add the records of one range to those found."""
    unproven: dict[Value | None, Record] = {}

    def known(limit: Value | None) -> Record | None:
        return unproven.get(limit) or journal.get(limit, name)

    def keep(limit: Value | None, record: Record) -> None:
        if record["status"] in ("optimal", "infeasible"):  # what is not proven is tried again
            journal.add(limit, record, name)
        else:
            unproven[limit] = record

    waited = None if beside is None else beside(number, sweep, known, keep)

    def at(limit: Value | None) -> Value | None:
        if len(found) >= sweep.most:
            return None
        record = known(limit)
        if record is None:
            if found and is_up(points.asked.options.get("time_limit_s")):
                raise TimeIsUp
            record = waited(limit) if waited is not None else points(number, limit)
            if waited is None:
                keep(limit, record)
        found.append({"limit": limit, **record})
        return record.get("over")

    for _ in steps(sweep.low, sweep.high, at):
        pass


def solve_at(candidates: Candidates, sweep: Sweep, limit: Value | None, asked: Asked) -> Record:
    """The point at a limit as a record of the journal.

    Parameters
    ----------
    candidates
        Columns that some point of the range may need, as `prepared` leaves them.
    sweep
        The range.
    limit
        What the held objective may be at most: s, micro-USD or mg; None = no limit.
    asked
        The scenario at a deadline, the verifier, and the options of the solver.

    Raises
    ------
    PlanError
        The plan of the point does not hold.
    KeyboardInterrupt
        The solver was broken off.
    """
    solves = 0

    def solve(program: Program, **given: Any) -> Solution:
        nonlocal solves
        solves += 1
        return uninterrupted(optimize(program, **given, **asked.options))

    def best(part: Candidates) -> Solution:
        answer = best_under(part.program, trade_of(part, sweep), limit, solve)
        return answer.solution if isinstance(answer, Point) else answer

    part, solution = solve_within_targets(candidates, best, prepare=lambda other: prepared(other, sweep))
    if not solution.has_plan:
        return {"status": solution.status.value, "solves": solves, "messages": list(solution.messages)}
    trade = trade_of(part, sweep)
    over, against = (trade.value(part.program, solution.units, name) for name in (sweep.held, sweep.against))
    if sweep.over == "deadline":
        part = _as_asked(part, asked.at_deadline(_whole_s(max(over, sweep.low))))
    document = build_document(part, solution)
    asked.verified(document)
    return {
        "status": solution.status.value,
        "solves": solves,
        "messages": [message for message in solution.messages if message == TOO_CLOSE],
        "warnings": document["warnings"],
        "over": over,
        "against": against,
        "point": point_row(part, solution, document, max(over, sweep.low)),
    }


def prepared(candidates: Candidates, sweep: Sweep) -> Candidates:
    """With the columns that some point may need, of all that were listed."""
    whole = select(candidates, np.arange(candidates.whole.column_count))
    punctual = select(candidates, np.flatnonzero(_punctual(whole, sweep)))
    kept = columns_for(punctual.program, trade_of(punctual, sweep))
    return select(candidates, np.flatnonzero(_punctual(whole, sweep))[kept])


def _punctual(candidates: Candidates, sweep: Sweep) -> NDArray[np.bool_]:
    """Columns that keep the deadlines that are not swept: ways may have been listed with more patience."""
    program, kept = candidates.program, np.ones(candidates.program.column_count, dtype=bool)
    for task in program.tasks:
        name = task.name.removeprefix(RUNS)
        question = candidates.questions.get(name)
        if isinstance(question, TrainingQuestion) and sweep.workload not in (None, name):
            part = slice(task.first, task.stop)
            kept[part] = deadline_s(candidates, name)[part] <= question.job.deadline_s
    return kept


def trade_of(candidates: Candidates, sweep: Sweep) -> Trade:
    """The trade of a sweep over the columns of `candidates.program`."""
    ends_s = deadline_s(candidates, sweep.workload) if sweep.over == "deadline" else candidates.program.finish_s
    return Trade(over=sweep.held, against=sweep.against, ends_s=np.asarray(ends_s, dtype=np.float64))


def deadline_s(candidates: Candidates, workload: str | None) -> FloatArray:
    """What a deadline must be at least for each column: its end at the confidence asked for, from its job's start.

    0 for columns that no swept deadline is about.  (columns,) [s]
    """
    program, least = candidates.program, np.zeros(candidates.program.column_count)
    held = hold_times(candidates.scenario, candidates.questions, candidates.tables)
    sizes = np.cumsum([0, *(len(table) for table in candidates.tables.values())])
    starts = dict(zip(candidates.tables, sizes.tolist()))
    starts_s = {job.name: job.start_s for job in candidates.scenario.training}
    for task in program.tasks:
        table = candidates.tables.get(task.name)
        if isinstance(table, TrainingTable) and workload in (None, task.name):
            part = slice(task.first, task.stop)
            rows = candidates.rows[part]
            way = starts[task.name] + rows
            begun = program.finish_s[part] - table.finish_s[rows] - held["wait_s"][way]  # a start that may be chosen
            least[part] = np.maximum(begun - starts_s[task.name], 0.0) + held["hold_s"][way]
        elif task.name.startswith(RUNS) and workload in (None, name := task.name.removeprefix(RUNS)):
            part = slice(task.first, task.stop)  # periods that a job which may pause runs in
            least[part] = program.finish_s[part] - starts_s[name]
    return least


def moved(candidates: Candidates, scenario: Scenario) -> Candidates:
    """The same columns under a scenario that differs in deadlines alone."""
    jobs = {job.name: job for job in scenario.training}
    questions = {
        name: replace(question, job=jobs[name], scenario=scenario)
        if isinstance(question, TrainingQuestion)
        else question
        for name, question in candidates.questions.items()
    }
    return replace(candidates, scenario=scenario, questions=questions)


def _as_asked(candidates: Candidates, scenario: Scenario) -> Candidates:
    """The same columns as the scenario asks for them: at an earlier deadline other workloads run at the same time."""
    part = moved(candidates, scenario)
    if part.calendar is not None:
        return part
    return select(_under(part), places_in_whole(part))


def _under(part: Candidates) -> Candidates:
    """With the limits of its scenario on every column."""
    asked = (part.scenario, part.catalog, part.tables, part.questions, part.pools)
    built = program_of(*asked, tie_share=part.tie_share, movable=part.movable)
    return replace(part, whole=built.program, whole_rows=built.rows, whole_shared=built.shared)


def _breaks(candidates: Candidates, sweep: Sweep) -> list[float]:
    """Deadlines above which a swept job begins to share its time with another workload, latest first.

    The window of a job that starts at s is [s, s + deadline): it reaches another start at deadlines above their
    distance. With a calendar, columns hold their machines period by period, whatever the deadlines.
    """
    if sweep.over != "deadline" or sweep.high is None or calendar_of(candidates) is not None:
        return []
    jobs = candidates.scenario.training
    swept = [job.start_s for job in jobs if sweep.workload in (None, job.name)]
    starts = [job.start_s for job in jobs]
    gaps = {later - start for start in swept for later in starts if sweep.low < later - start < sweep.high}
    return sorted(gaps, reverse=True)


def _whole_s(seconds: float) -> float:
    """A deadline in whole seconds, which a scenario can say exactly."""
    return float(np.ceil(seconds))


def front(records: Sequence[Record]) -> list[Record]:
    """Points of the records, tightest first, without those that another is no worse than in both objectives."""
    points = sorted((r for r in records if "point" in r), key=lambda r: (r["over"], r["against"]))
    kept: list[Record] = []
    for record in points:
        if not kept or record["against"] < kept[-1]["against"]:
            kept.append(record)
    return kept
