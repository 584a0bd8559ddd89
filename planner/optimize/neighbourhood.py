"""A better plan from a good one: some jobs are free to move, all others stay, and what that leaves is solved.

Which jobs are freed: those that use some lines that have a price, together with those that could use them
and do not. The lines are neighbours (a pool in some periods) or those that one job could use (all pools,
while it may run); or the jobs are a random handful of both kinds. As many are freed as can be settled in a
few nodes. Each keeps its present column and those that look best at the prices of the relaxation. Supplies,
fleets and flows are always free.

Which variables belong to one job, and which to one pool: connected through the lines that they share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from planner.carriers import dataclass
from planner.optimize.arrays import JOB, JOINT, Mip, Reply, reduced_of, solved
from planner.optimize.status import FloatArray, IntArray

MOST_COVERED = 1 / 3  # a joint line with more than this part of the columns of its jobs ties pools together


def group_of(mip: Mip) -> IntArray:
    """The job line of each variable, -1 without one."""
    rows = np.flatnonzero(mip.kinds == JOB)
    lines = mip.matrix[rows].tocoo()
    group = np.full(mip.count, -1, dtype=np.int64)
    group[lines.col] = rows[lines.row]
    return group


def label_of(mip: Mip) -> IntArray:
    """The pool of each variable: connected through the joint lines that cover small parts of their jobs."""
    group = group_of(mip)
    rows = np.flatnonzero(mip.kinds == JOINT)
    entries = mip.matrix[rows].tocoo()
    grouped = group[entries.col] >= 0
    pairs = np.unique(entries.row[grouped] * (len(mip.low) + 1) + group[entries.col[grouped]])
    sizes = np.bincount(group[group >= 0], minlength=len(mip.low))
    line, job = np.divmod(pairs, len(mip.low) + 1)
    could = np.bincount(line, weights=sizes[job], minlength=len(rows))
    do = np.bincount(entries.row[grouped], minlength=len(rows))
    local = do <= MOST_COVERED * np.maximum(could, 1.0)
    if not local.any():
        local = np.ones(len(rows), dtype=bool)
    kept = local[entries.row]
    links = sparse.csr_matrix(
        (np.ones(int(kept.sum())), (entries.row[kept], len(rows) + entries.col[kept])),
        shape=(len(rows) + mip.count,) * 2,
    )
    _, labels = sparse.csgraph.connected_components(links, directed=False)
    return np.asarray(labels[len(rows) :], dtype=np.int64)


BEST = 40  # columns that a free job keeps
FREE, LEAST, MOST = 28, 6, 90  # jobs that use the lines, and as many that do not: at first, at least, at most
NODES = 30  # of one neighbourhood
WAYS, ANY = 3, 2  # a window of a job, a range of lines, any jobs
STALE = 60  # neighbourhoods in a row without a better plan, after which there is little hope
WIDTHS = (6, 12, 24, 40)  # lines in a neighbourhood
GAIN = 1e-7  # relative


@dataclass(slots=True, kw_only=True)
class Best:
    """The best plan so far, told of as soon as it is found; used by several threads."""

    mip: Mip
    tell: Callable[[FloatArray, float], None] | None = None
    point: FloatArray | None = None
    value: float = np.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def offer(self, point: FloatArray | None) -> bool:
        """Keep a point if it is a better plan; whether it was."""
        if point is None:
            return False
        value = float(self.mip.cost @ point)
        with self._lock:
            if value >= self.value * (1 - GAIN) or not self.mip.holds(point):
                return False
            self.point, self.value = point, value
            if self.tell is not None:
                self.tell(point, value)
            return True


@dataclass(slots=True, kw_only=True)
class Search:
    """Neighbourhood after neighbourhood of one program."""

    mip: Mip
    best: Best
    order: FloatArray  # what a column seems to cost at the prices of the relaxation
    tight: IntArray  # lines that have a price
    rng: np.random.Generator
    sizes: list[float] = field(default_factory=lambda: [float(FREE)] * WAYS)  # jobs on either side, by way of choice
    late: bool = False  # the clock ended it
    group: IntArray = field(init=False)
    members: dict[int, IntArray] = field(init=False)  # columns of each job, best first

    def __post_init__(self) -> None:
        """What does not change from one neighbourhood to the next."""
        self.group = group_of(self.mip)
        self.rank(self.order)

    def rank(self, order: FloatArray) -> None:
        """Take up another order of columns."""
        self.order = order
        ranked = np.lexsort((self.order, self.group))
        ranked = ranked[self.group[ranked] >= 0]
        names, starts = np.unique(self.group[ranked], return_index=True)
        self.members = dict(zip(names.tolist(), np.split(ranked, starts[1:])))

    def run(
        self, executor: Executor, width: int, *, until: float | None, done: Callable[[], bool], most: float = np.inf
    ) -> int:
        """Solve neighbourhoods, `width` at a time, until little hope or no work is left; the iterations of it.

        Parameters
        ----------
        executor
            Solves what is tried side by side.
        width
            Neighbourhoods at a time; what is found depends on it.
        until
            Time of the monotonic clock at which to stop, which sets `late`; None = no limit.  [s]
        done
            Whether nothing is left to gain; asked before each round.
        most
            Iterations of the simplex method after which no round is begun.
        """
        stale = spent = 0
        while self.best.point is not None and stale < STALE and spent < most and not done():
            if until is not None and time.monotonic() >= until:
                self.late = True
                break
            point = self.best.point
            ways = self.rng.integers(WAYS, size=width).tolist() if len(self.tight) else [ANY] * width
            chosen = [self._jobs(way, point) for way in ways]
            replies = list(executor.map(partial(self._moved, point, until), chosen))
            better = [self.best.offer(found) for found, _ in replies]
            stale = 0 if any(better) else stale + width
            for way, (_, reply) in zip(ways, replies):  # as large as can be settled
                self.sizes[way] = min(max(self.sizes[way] * (1.1 if reply.optimal else 0.85), LEAST), MOST)
                spent, self.late = spent + reply.work, self.late or reply.late
        return spent

    def _jobs(self, way: int, point: FloatArray) -> IntArray:
        """The jobs to free: users of some lines, and others."""
        using, could = self._any(point) if way == ANY else self._users(self._range() if way else self._window(), point)
        chosen = [self.rng.permutation(each)[: int(self.sizes[way])] for each in (using, could)]
        return np.unique(np.concatenate(chosen))

    def _range(self) -> IntArray:
        """Neighbouring lines: a pool for some periods."""
        middle, wide = int(self.rng.choice(self.tight)), int(self.rng.choice(np.array(WIDTHS)))
        return self.tight[np.abs(self.tight - middle) <= wide // 2]

    def _window(self) -> IntArray:
        """Lines that a job could use: all pools, while it may run."""
        job = int(self.rng.choice(np.array(sorted(self.members))))
        touched = np.intersect1d(self.mip.matrix[:, self.members[job][:BEST]].nonzero()[0], self.tight)
        return touched if len(touched) else self._range()

    def _users(self, lines: IntArray, point: FloatArray) -> tuple[IntArray, IntArray]:
        """Jobs that use some of the lines, and jobs that would be good on them."""
        columns = np.unique(self.mip.matrix[lines].indices)
        columns = columns[self.group[columns] >= 0]
        using = np.unique(self.group[columns[point[columns] > 0]])
        promising = columns[np.argsort(self.order[columns], kind="stable")[: 12 * MOST]]
        return using, np.setdiff1d(self.group[promising], using)

    def _any(self, point: FloatArray) -> tuple[IntArray, IntArray]:
        """Jobs on lines that have a price, and the others."""
        chosen = np.flatnonzero((point > 0) & (self.group >= 0))
        touched = self.mip.matrix[self.tight]
        scarce = np.asarray(touched[:, chosen].getnnz(axis=0)).ravel() > 0
        return np.unique(self.group[chosen[scarce]]), np.unique(self.group[chosen[~scarce]])

    def columns_of(self, jobs: IntArray, point: FloatArray | None) -> IntArray:
        """The variables that are free when some jobs are."""
        loose = np.flatnonzero(self.group < 0)
        best = [self.members[job][:BEST] for job in jobs.tolist()]
        kept = [loose, *best]
        if point is not None:
            freed = np.isin(self.group, jobs)
            kept.append(np.flatnonzero(freed & (point > 0)))
        return np.unique(np.concatenate(kept))

    def _moved(self, point: FloatArray, until: float | None, jobs: IntArray) -> tuple[FloatArray | None, Reply]:
        """The plan with some jobs moved, and what the solver said of it."""
        columns = self.columns_of(jobs, point)
        left = None if until is None else until - time.monotonic()
        reply = solved(self.mip.part(columns, point), start=point[columns], seconds=left, nodes=NODES, gap=1e-4)
        return _placed(point, columns, reply), reply


def first_plan(search: Search, *, seconds: float | None, nodes: int | None) -> Reply:
    """The program with the best columns of every job only.

    Parameters
    ----------
    search
        Says which columns are the best of each job.
    seconds
        Time limit; None = none.  [s]
    nodes
        Most nodes of the search; None = no limit.

    Returns
    -------
    Its point, if there is one, is of all variables; its bound is of these columns alone.
    """
    columns = search.columns_of(np.array(sorted(search.members)), None)
    reply = solved(search.mip.part(columns), seconds=seconds, nodes=nodes, gap=1e-4)
    placed = _placed(np.zeros(search.mip.count), columns, reply)
    return replace(reply, point=placed)


def _placed(point: FloatArray, columns: IntArray, reply: Reply) -> FloatArray | None:
    if reply.point is None:
        return None
    whole = point.copy()
    whole[columns] = reply.point
    return whole


def standing(mip: Mip, reply: Reply) -> tuple[FloatArray, IntArray]:
    """How columns rank at the prices of a relaxation, and the joint lines that have a price.

    In blocks that the relaxation leaves idle its prices say little: many columns look free there that
    would have to buy all they need. They rank by what that costs, at the cheapest supply of each line.
    """
    assert reply.multipliers is not None
    assert reply.point is not None
    order = reduced_of(mip, reply.multipliers)
    tight = np.flatnonzero((mip.kinds == JOINT) & (np.abs(reply.multipliers) > 0))
    group, label = group_of(mip), label_of(mip)
    busy = np.unique(label[(reply.point > 1e-9) & (group >= 0)])
    idle = ~np.isin(label, busy) & (group >= 0)
    alone = mip.cost + mip.matrix.maximum(0).T @ _worth(mip)
    paid = reply.multipliers[np.maximum(group, 0)]
    order = np.where(idle, np.maximum(order, alone - paid), order)
    used = (mip.matrix[tight][:, np.flatnonzero(~idle)]).getnnz(axis=1) > 0
    return order, tight[used]


def _worth(mip: Mip) -> FloatArray:
    """The cheapest single supply of a unit of each joint line; 0 where nothing supplies it."""
    coo = mip.matrix.tocoo()
    gives: NDArray[np.bool_] = (coo.data < 0) & (mip.kinds[coo.row] == JOINT)
    worth = np.full(len(mip.low), np.inf)
    np.minimum.at(worth, coo.row[gives], mip.cost[coo.col[gives]] / -coo.data[gives])
    return np.where((mip.kinds == JOINT) & np.isfinite(worth), worth, 0.0)


__all__ = ["Best", "Search", "first_plan", "standing"]
