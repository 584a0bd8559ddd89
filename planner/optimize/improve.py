"""Large programs with supplies: a plan that gets better and a bound that rises, until they meet or time is up.

1. The relaxation, with lines for columns wider than what is there (`arrays.tightened`).
2. A first plan: the best few columns of every job.
3. Side by side, on as many threads as there are: neighbourhoods of the plan are solved again and again
   (`neighbourhood`), and the root of the whole program is tightened by cuts, whose prices then let the
   program fall into blocks that are solved as such (`blocks`). Columns that no better plan can use are
   closed by the best bound; once few are left the program goes to HiGHS whole.

Without a time limit every step ends by a count (nodes, neighbourhoods without success), so the same
question gets the same answer; the last step then takes as long as the proof takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import field

import numpy as np

from planner.carriers import dataclass
from planner.optimize.arrays import JOINT, Mip, Reply, mip_of, reduced_of, relaxed, solved, tightened
from planner.optimize.blocks import bound_of, label_of
from planner.optimize.model import Model
from planner.optimize.neighbourhood import Best, Search, first_plan, standing
from planner.optimize.status import Ending, FloatArray, IntArray, Outcome

FEW = 12_000  # open columns up to which the program goes to HiGHS whole
FIRST_NODES, FIRST_SHARE = 1, 0.15  # of the first plan
ROOT_SHARE = 0.6  # of the time left, for the root and its cuts
SEARCH_SHARE = 0.5  # of the time left, for neighbourhoods where there is one thread
BLOCK_NODES = 20_000  # of one block, without a time limit
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
    better
        Called with values and objective of every better point.

    Returns
    -------
    `optimal`, `gap`, `limit` (with what is known), `infeasible`, or `error` where there is no relaxation.
    """
    until = None if time_limit_s is None else time.monotonic() + time_limit_s
    whole = tightened(mip_of(model))
    base = relaxed(whole, seconds=time_limit_s)
    if base.infeasible:
        return Outcome(ending=Ending.INFEASIBLE)
    if base.multipliers is None:
        late = until is not None and time.monotonic() >= until
        return Outcome(ending=Ending.LIMIT if late else Ending.ERROR, detail="the relaxation has no answer")
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
    reduced: list[tuple[float, FloatArray]] = field(default_factory=list)  # bounds with reduced costs that go with them

    def run(self, executor: Executor) -> None:
        """All steps in order."""
        assert self.base.multipliers is not None
        self._prove(self.base.bound, reduced_of(self.mip, self.base.multipliers))
        order, tight = standing(self.mip, self.base)
        search = Search(mip=self.mip, best=self.best, order=order, tight=tight, rng=np.random.default_rng(self.seed))
        if len(self.open()) > FEW:
            self._side_by_side(executor, search)
        elif self.best.point is None:
            self._begin(search)
        if not self.done() and self._left() != 0.0:
            self._whole()

    def _side_by_side(self, executor: Executor, search: Search) -> None:
        """Neighbourhoods and proof at once; with one thread one after the other."""
        if self.threads > 1:
            proof = executor.submit(self._proof)
            self._begin(search)
            search.run(executor, self.threads - 1, until=self.until, done=self.done)
            proof.result()
            return
        self._begin(search)
        left = self._left()
        half = None if left is None else time.monotonic() + left * SEARCH_SHARE
        search.run(executor, 1, until=half, done=self.done)
        self._proof()

    def _begin(self, search: Search) -> None:
        """A plan from the best columns of every job, in case it is better than the one to start from."""
        self.best.offer(first_plan(search, seconds=self._share(FIRST_SHARE), nodes=FIRST_NODES).point)

    def _proof(self) -> None:
        """The program at its root, tightened by cuts; then block by block at the prices that this gives."""
        columns, point = self.open(), self.best.point
        part = self.mip.part(columns)
        given = None if point is None else point[columns]
        seconds = self._share(ROOT_SHARE)
        root = solved(part, start=given, seconds=seconds, nodes=1, gap=self.gap, take_cuts=True)
        self._raise(root.bound)
        if root.cuts is None or self.done():
            return
        tight = part.with_lines(root.cuts.matrix, root.cuts.low, root.cuts.high, JOINT)
        again = relaxed(tight, seconds=self._left())
        if again.multipliers is None:
            return
        self._prove(again.bound, _spread(self.mip.count, columns, reduced_of(tight, again.multipliers)))
        nodes = BLOCK_NODES if self.until is None else None
        if not self.done():
            plan = self.best.point
            given = None if plan is None else plan[columns]
            label = label_of(part)
            found = bound_of(tight, label, again.multipliers, point=given, until=self.until, nodes=nodes)
            self._raise(found.bound)

    def _whole(self) -> None:
        """What is left, in one piece."""
        columns = self.open()
        given = None if self.best.point is None else self.best.point[columns]
        # one thread: HiGHS refuses another number of threads than its first run in a process had
        reply = solved(self.mip.part(columns), start=given, seconds=self._left(), gap=self.gap)
        if reply.point is not None:
            self.best.offer(_spread(self.mip.count, columns, reply.point))
        if reply.infeasible:
            self.ended, self.infeasible = True, self.best.point is None
            self.bound = self.best.value
        self._raise(reply.bound)
        self.ended |= reply.optimal and self.gap == 0.0

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
        ending = Ending.OPTIMAL if proven else Ending.GAP if self.done() else Ending.LIMIT
        found = self.best.point is not None
        return Outcome(
            ending=ending,
            values=self.best.point,
            objective=self.best.value if found else None,
            bound=self.bound if math.isfinite(self.bound) else None,
            detail="decomposed",
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


def _spread(count: int, columns: IntArray, values: FloatArray) -> FloatArray:
    """Values of some variables among zeros."""
    whole = np.zeros(count)
    whole[columns] = values[: len(columns)]
    return whole
