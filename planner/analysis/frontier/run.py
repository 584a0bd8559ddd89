"""A sweep from the question to the document: enumerate, look into the journal, solve what is missing.

Points are asked beside each other: which limits are worth asking while others are being answered. One walk goes from
the loosest limit down, each limit just below what the one before came to. Others begin in the middle of what is not
known yet: what such a walk comes to is a point of the frontier, so that the limit just below it is one that the first
walk asks, too. Answers are kept by their exact limit and the first walk alone is told: what a guess found out only
saves time, and never changes a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING

from planner import __version__
from planner.analysis.frontier.document import frontier_document
from planner.analysis.frontier.journal import Journal, Lines
from planner.analysis.frontier.points import Asked, Beside, Points, Sweep, journal_key, sweep_points
from planner.analysis.frontier.question import at_deadline, loosest, loosest_settings, own_limit
from planner.analysis.frontier.sweep import Value, next_limit
from planner.candidates.search import Candidates
from planner.carriers import dataclass
from planner.optimize.options import SolverOptions
from planner.plan.model.frontier_document import FrontierDocument
from planner.plan.model.plan import PlanDocument
from planner.plan.rows.calendar import calendar_of
from planner.scenario.schema import Scenario

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import Record


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


GUESSES = 4  # walks that are begun in the middle, for each answer that is worked on at a time
FINEST = 1e-3  # share of the first gap below which none is split any more


@dataclass(slots=True, kw_only=True)
class Ahead:
    """Limits of one range of a sweep, in the order in which they are worth asking.

    Parameters
    ----------
    low, high
        The range, as of a `Sweep`.
    known
        What was found at a limit; None: not known.
    beside
        How many answers are worked on at a time.
    """

    low: Value
    high: Value | None
    known: Callable[[Value | None], Record | None]
    beside: int
    asked: set[Value | None] = field(default_factory=set)  # that are being answered, or were
    guessed: list[Value] = field(default_factory=list)  # where walks begin besides the first
    widest: float = 0.0  # of the gaps seen

    def __iter__(self) -> Iterator[Value | None]:
        return self

    def __next__(self) -> Value | None:
        """The next limit to ask; it ends where only answers can tell which, and may then go on."""
        heads, bottom = self._heads()
        for head in heads:
            if head not in self.asked:
                self.asked.add(head)
                return head
        middle = self._guess(heads, bottom)
        if middle is None:
            raise StopIteration
        self.guessed.append(middle)
        self.asked.add(middle)
        return middle

    def _heads(self) -> tuple[list[Value | None], Value]:
        """Where each walk stands, the loosest first, and the limit under which nothing is left."""
        heads: dict[Value | None, None] = {}
        bottom = self.low
        for start in (self.high, *sorted(self.guessed, reverse=True)):
            limit = start
            while (record := self.known(limit)) is not None:
                reached = record.get("over")
                if reached is None or reached <= self.low:
                    if limit is not None and record["status"] == "infeasible":
                        bottom = max(bottom, limit)
                    break
                limit = next_limit(reached)
            else:
                heads[limit] = None
        return list(heads), bottom

    def _guess(self, heads: list[Value | None], bottom: Value) -> Value | None:
        """The middle of the widest gap below a walk that is under way; None: nothing is worth guessing."""
        if len(self.guessed) >= GUESSES * self.beside:
            return None
        known = [head for head in heads if head is not None]
        gaps = []
        for head in known:
            under = max([bottom, *(one for one in (*known, *self.guessed) if one < head)])
            gaps.append((head - under, head, under))
        if not gaps:
            return None
        width, head, under = max(gaps)
        self.widest = max(self.widest, float(width))
        whole = isinstance(head, int)
        middle: Value = (head + int(under)) // 2 if whole else (head + under) / 2
        if width < FINEST * self.widest or not under < middle < head or middle in self.asked:
            return None
        return middle
