"""Large programs with supplies: a plan that gets better and a bound that rises, until they meet or the work is done.

1. The relaxation, with lines for columns wider than what is there (`arrays.tightened`) and of
   rounding (`arrays.rounded`).
2. The root of the whole program, tightened by the cuts of HiGHS, and a plan of the best few columns of every job.
3. Neighbourhoods of the plan (`neighbourhood`), ranked by the prices that the cuts give, again and again.
4. Columns that no better plan can use are closed by the best bound; where few are left the program goes to HiGHS
   whole, with the plan to start from.

The bound is the best of all these. Every step ends by a count (nodes, neighbourhoods without success, iterations of the
simplex method), so the same question gets the same answer with as many threads; a time limit only ends it earlier.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import field

import numpy as np

from planner.carriers import dataclass
from planner.optimize.arrays import JOINT, Mip, Reply, mip_of, reduced_of, relaxed, rounded, solved, tightened
from planner.optimize.model import Model
from planner.optimize.neighbourhood import Best, Search, first_plan, standing
from planner.optimize.status import Ending, FloatArray, IntArray, Outcome

FEW = 20_000  # open columns up to which the program goes to HiGHS whole
WORK = 400_000  # iterations of the simplex method after which no neighbourhood is begun
ROUNDS = 1  # of lines of rounding
FIRST_NODES, FIRST_SHARE = 1, 0.15  # of the first plan; of a time limit
ROOT_SHARE = 0.5  # of the time left, for the root and its cuts
WHOLE_NODES = 20_000  # of what is left, in one piece
PARTING_S = 2.0  # kept back of a time limit: solvers look at the clock now and then only
MARGIN = 1e-7  # relative, when columns are closed by a bound
Tell = Callable[[FloatArray, float], None]


def improve(
    model: Model,
    *,
    start: FloatArray | None = None,
    gap: float = 0.0,
    time_limit_s: float | None = None,
    threads: int = 1,
    seed: int = 0,
    better: Tell | None = None,
) -> Outcome:
    """Solve a model as described above.

    Parameters
    ----------
    model
        Whole variables and lines; jobs are lines of the family ``one``, pools and periods of the family ``limit``.
    start
        Values of all variables at a plan, if one is known.
    gap
        Relative gap at which to stop.
    threads
        Neighbourhoods solved side by side; the answer depends on how many.
    better
        Called with values and objective of every better point.

    Returns
    -------
    `optimal`, `gap`, `work` or `limit` (by the clock) with what is known, `infeasible`, or `error` where there is no
    relaxation; with the iterations that it took.
    """
    until = None if time_limit_s is None else time.monotonic() + time_limit_s
    whole = tightened(mip_of(model))
    base = relaxed(whole, seconds=time_limit_s)
    if base.infeasible:
        return Outcome(ending=Ending.INFEASIBLE)
    if base.multipliers is None:
        return Outcome(ending=Ending.LIMIT if base.late else Ending.ERROR, detail="the relaxation has no answer")
    best = Best(mip=whole, tell=better)
    best.offer(start)
    with ThreadPoolExecutor(max_workers=max(threads, 1)) as executor:
        work = _Work(mip=whole, base=base, best=best, gap=gap, until=until, threads=max(threads, 1), seed=seed)
        work.run(executor)
    return work.outcome()


@dataclass(slots=True, kw_only=True)
class _Work:
    """One call of `improve`."""

    mip: Mip
    base: Reply
    best: Best
    gap: float
    until: float | None
    threads: int
    seed: int
    bound: float = -math.inf
    infeasible: bool = False
    ended: bool = False  # nothing is left to prove
    late: bool = False  # the clock ended a step
    spent: int = 0  # iterations of the simplex method
    reduced: list[tuple[float, FloatArray]] = field(default_factory=list)  # bounds with reduced costs that go with them

    def run(self, executor: Executor) -> None:
        """All steps in order."""
        self._relaxed()
        order, tight = standing(self.mip, self.base)
        plain = self.best.mip  # without the lines of rounding: they are for bounds, and dear in neighbourhoods
        tight = tight[tight < len(plain.low)]
        search = Search(mip=plain, best=self.best, order=order, tight=tight, rng=np.random.default_rng(self.seed))
        if len(self.open()) > FEW:
            self._cut(search)
            self._search(executor, search)
        elif self.best.point is None:
            self._begin(search)
        if not self.done() and self._left() != 0.0 and (len(self.open()) <= FEW or self.spent < WORK):
            self._whole()

    def _relaxed(self) -> None:
        """The relaxation, with the lines of rounding that its points break."""
        reply: Reply | None = self.base
        for more in range(ROUNDS + 1):
            if reply is None or reply.multipliers is None or reply.point is None:
                return
            self.base = reply
            self._count(reply)
            self._prove(reply.bound, reduced_of(self.mip, reply.multipliers))
            mip = rounded(self.mip, reply.point) if more < ROUNDS and self._left() != 0.0 else None
            if mip is None:
                return
            reply = relaxed(mip, seconds=self._left())
            self.mip = self.mip if reply.multipliers is None else mip

    def _cut(self, search: Search) -> None:
        """The root, then a first plan by its prices."""
        columns, point = self.open(), self.best.point
        tight, again = self._root(columns, point)
        if again is not None and again.multipliers is not None:
            self._prove(again.bound, _spread(self.mip.count, columns, reduced_of(tight, again.multipliers), np.inf))
            search.rank(_spread(self.mip.count, columns, standing(tight, again)[0], np.inf))
        self._begin(search)

    def _root(self, columns: IntArray, point: FloatArray | None) -> tuple[Mip, Reply | None]:
        """The open columns tightened by the cuts of the root, and the relaxation of that."""
        part = self.mip.part(columns)
        given = None if point is None else point[columns]
        root = solved(part, start=given, seconds=self._share(ROOT_SHARE), nodes=1, gap=self.gap, take_cuts=True)
        self._count(root)
        self._raise(root.bound)
        if root.cuts is None or self.done():
            return part, None
        tight = part.with_lines(root.cuts.matrix, root.cuts.low, root.cuts.high, JOINT)
        again = relaxed(tight, seconds=self._left())
        self._count(again)
        return tight, again

    def _begin(self, search: Search) -> None:
        """A plan from the best columns of every job, in case it is better than the one to start from."""
        first = first_plan(search, seconds=self._share(FIRST_SHARE), nodes=FIRST_NODES)
        self._count(first)
        self.best.offer(first.point)

    def _search(self, executor: Executor, search: Search) -> None:
        """Neighbourhoods for the work that is left."""
        self.spent += search.run(executor, self.threads, until=self.until, done=self.done, most=WORK - self.spent)
        self.late |= search.late

    def _whole(self) -> None:
        """What is left, in one piece."""
        columns = self.open()
        given = None if self.best.point is None else self.best.point[columns]
        # one thread: HiGHS refuses another number of threads than its first run in a process had
        part = self.mip.part(columns)
        reply = solved(part, start=given, seconds=self._left(), nodes=WHOLE_NODES, gap=self.gap)
        self._count(reply)
        if reply.point is not None:
            self.best.offer(_spread(self.mip.count, columns, reply.point))
        if reply.infeasible:
            self.ended, self.infeasible = True, self.best.point is None
            self.bound = self.best.value
        self._raise(reply.bound)
        self.ended |= reply.optimal and self.gap == 0.0

    def _count(self, reply: Reply) -> None:
        self.spent, self.late = self.spent + reply.work, self.late or reply.late

    def open(self) -> IntArray:
        """Columns that a better plan may use, by every bound known; those of the plan stay."""
        kept = np.ones(self.mip.count, dtype=bool)
        point, value = self.best.point, self.best.value
        if point is not None:
            for bound, reduced in self.reduced:
                kept &= (reduced <= value - bound + MARGIN * max(abs(value), 1.0)) | (point > 0)
        return np.flatnonzero(kept)

    def done(self) -> bool:
        """Whether the gap is closed."""
        return self.ended or self.bound >= self.best.value * (1 - max(self.gap, 1e-9))

    def outcome(self) -> Outcome:
        """What is known at the end."""
        if self.infeasible:
            return Outcome(ending=Ending.INFEASIBLE)
        proven = self.ended or self.bound >= self.best.value * (1 - 1e-9)
        short = Ending.LIMIT if self.late else Ending.WORK
        ending = Ending.OPTIMAL if proven else Ending.GAP if self.done() else short
        found = self.best.point is not None
        return Outcome(
            ending=ending,
            values=self.best.point,
            objective=self.best.value if found else None,
            bound=self.bound if math.isfinite(self.bound) else None,
            work=self.spent,
        )

    def _prove(self, bound: float, reduced: FloatArray) -> None:
        self._raise(bound)
        self.reduced.append((bound, reduced))

    def _raise(self, bound: float) -> None:
        """Where columns were closed, the bound is of plans better than the best, so no more than that is known."""
        self.bound = max(self.bound, min(bound, self.best.value))

    def _left(self) -> float | None:
        return None if self.until is None else max(self.until - time.monotonic(), 0.0)

    def _share(self, share: float) -> float | None:
        left = self._left()
        return None if left is None else left * share


def _spread(count: int, columns: IntArray, values: FloatArray, others: float = 0.0) -> FloatArray:
    """Values of some variables among others."""
    whole = np.full(count, others)
    whole[columns] = values[: len(columns)]
    return whole
