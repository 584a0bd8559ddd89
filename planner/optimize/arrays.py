"""Mixed-integer programs as sparse arrays, cut into parts and run by HiGHS without a modelling layer.

For what is solved many times on the way to an answer: relaxations, blocks, neighbourhoods. What is
found here is only proposed; the answer is checked in exact integers by the caller.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from planner.carriers import dataclass
from planner.optimize import highs
from planner.optimize.model import Model
from planner.optimize.status import FloatArray, IntArray

NO_PLANS = (  # of HiGHS: what looks for plans at the root, and starts over
    "mip_heuristic_run_rins", "mip_heuristic_run_rens", "mip_heuristic_run_root_reduced_cost", "mip_allow_restart",
)  # fmt: skip
BLOCKING = ("limit",)  # families of lines that tie columns of one block together
MOST_WIDTHS, BROKEN = 8, 1e-4  # divisors of rounding, the commonest first; by how much a line must be broken
ROUND = 1e-6  # what a line may be broken by, relative to its size
Kinds = NDArray[np.int8]
JOB, JOINT, OTHER = 0, 1, 2  # one plan of a job; a joint limit; anything else


@dataclass(frozen=True, slots=True, kw_only=True)
class Mip:
    """min cost x, low <= A x <= high, 0 <= x <= upper, some of x whole."""

    cost: FloatArray  # (n,)
    upper: FloatArray  # (n,)
    integer: NDArray[np.bool_]  # (n,)
    matrix: Any  # (lines, n) scipy csr
    low: FloatArray  # (lines,)
    high: FloatArray  # (lines,)
    kinds: Kinds  # (lines,) JOB, JOINT or OTHER

    @property
    def count(self) -> int:
        """Number of variables."""
        return len(self.cost)

    def part(self, columns: IntArray, point: FloatArray | None = None) -> Mip:
        """Some of the variables; the others stay at a point (0 without one). Lines that touch none go."""
        inside = self.matrix[:, columns]
        rows = np.flatnonzero(np.diff(inside.indptr))
        low, high = self.low[rows], self.high[rows]
        if point is not None:
            rest = point.copy()
            rest[columns] = 0.0
            used = (self.matrix @ rest)[rows]
            low, high = low - used, high - used
        return Mip(
            cost=self.cost[columns],
            upper=self.upper[columns],
            integer=self.integer[columns],
            matrix=inside[rows],
            low=low,
            high=high,
            kinds=self.kinds[rows],
        )

    def with_lines(self, matrix: Any, low: FloatArray, high: FloatArray, kind: int) -> Mip:
        """The same with more lines of one kind.

        Parameters
        ----------
        matrix
            Coefficients, (lines, n).
        low, high
            Sides of each line, (lines,); -inf or inf = none.
        kind
            JOB, JOINT or OTHER, of all these lines.
        """
        return replace(
            self,
            matrix=sparse.vstack([self.matrix, matrix], format="csr"),
            low=np.concatenate([self.low, low]),
            high=np.concatenate([self.high, high]),
            kinds=np.concatenate([self.kinds, np.full(len(low), kind, dtype=np.int8)]),
        )

    def holds(self, point: FloatArray) -> bool:
        """Whether a point whose whole variables are whole meets every line and bound, up to rounding."""
        room = ROUND * np.maximum(1.0, abs(self.matrix) @ np.abs(point))
        used = self.matrix @ point
        within = bool(((point >= -ROUND) & (point <= self.upper + ROUND)).all())
        return within and bool(((used >= self.low - room) & (used <= self.high + room)).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Lines that every whole point meets."""

    matrix: Any
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What HiGHS came to. `bound` is proven; `point` is rounded where it must be whole."""

    optimal: bool = False
    infeasible: bool = False
    bound: float = -math.inf
    point: FloatArray | None = None
    value: float = math.inf
    multipliers: FloatArray | None = None
    cuts: Cuts | None = None
    work: int = 0  # iterations of the simplex method
    late: bool = False  # ended by the clock


def mip_of(model: Model) -> Mip:
    """The arrays of a model."""
    table = model.table()
    shape = (model.line_count, model.variable_count)
    codes = {"one": JOB, **dict.fromkeys(BLOCKING, JOINT)}
    # a copy: arrays that came over the wire are read-only, and scipy sorts the entries of a line in place
    matrix = sparse.csr_matrix((table.coefficients, table.variables, table.starts), shape=shape, copy=True)
    matrix.sum_duplicates()
    return Mip(
        cost=np.asarray(model.objective, dtype=np.float64),
        upper=np.asarray(model.upper, dtype=np.float64),
        integer=np.asarray(model.integer, dtype=bool),
        matrix=matrix,
        low=np.asarray(table.low, dtype=np.float64),
        high=np.asarray(table.high, dtype=np.float64),
        kinds=np.array([codes.get(kind, OTHER) for kind in table.kinds], dtype=np.int8),
    )


def tightened(mip: Mip) -> Mip:
    """The same with what a line says of columns that are wider than its own bound.

    Of sum a x <= b + sum s y, b >= 0, x whole, y >= 0: where m >= 1 units of columns with a > b are
    used, sum over them of (a - b) x = sum a x - m b <= sum a x - b <= sum s y; where none is, 0 <= sum s y.
    So sum (a - b)+ x <= sum s y. A relaxation would run a job of 32 nodes half on 16 nodes that are
    there anyway; this line makes it pay for the 16 that are missing.
    """
    rows = np.flatnonzero((mip.kinds == JOINT) & np.isfinite(mip.high) & (mip.high > 0) & ~np.isfinite(mip.low))
    lines = mip.matrix[rows].tocoo()
    bound = mip.high[rows][lines.row]
    values = np.where(lines.data > 0, np.maximum(lines.data - bound, 0.0), lines.data)
    wide = np.bincount(lines.row[values > 0], minlength=len(rows)) > 0
    supplied = np.bincount(lines.row[values < 0], minlength=len(rows)) > 0
    whole = np.bincount(lines.row[(values > 0) & ~mip.integer[lines.col]], minlength=len(rows)) == 0
    good = wide & supplied & whole
    if not good.any():
        return mip
    kept = (values != 0) & good[lines.row]
    number = np.cumsum(good) - 1
    entries = (values[kept], (number[lines.row[kept]], lines.col[kept]))
    matrix = sparse.csr_matrix(entries, shape=(int(good.sum()), mip.count))
    return mip.with_lines(matrix, np.full(matrix.shape[0], -np.inf), np.zeros(matrix.shape[0]), JOINT)


def rounded(mip: Mip, point: FloatArray) -> Mip | None:
    """The same with lines of mixed-integer rounding that a point breaks; None where it breaks none.

    Of sum a x <= b, x whole and >= 0, follows for every d > 0 with f = b/d - floor(b/d) > 0

        sum (floor(a/d) + max(a/d - floor(a/d) - f, 0) / (1 - f)) x <= floor(b/d),

    where what need not be whole counts min(a, 0) / (d (1 - f)) (Nemhauser and Wolsey, Math. Programming 46, 1990).
    The divisors are the widths of columns: on 7 nodes that are there anyway, one job of 4 fits and no second one.
    """
    rows = np.flatnonzero((mip.kinds == JOINT) & np.isfinite(mip.high) & (mip.high > 0) & ~np.isfinite(mip.low))
    lines = mip.matrix[rows].tocoo()
    whole = mip.integer[lines.col]
    widths, often = np.unique(lines.data[(lines.data > 1) & whole], return_counts=True)
    added = False
    for width in widths[np.argsort(-often, kind="stable")][:MOST_WIDTHS]:
        side = mip.high[rows] / width
        part = side - np.floor(side)
        share = lines.data / width
        f = part[lines.row]
        up = np.floor(share) + np.maximum(share - np.floor(share) - f, 0.0) / (1.0 - f)
        values = np.where(whole, up, np.minimum(share, 0.0) / (1.0 - f))
        matrix = sparse.csr_matrix((values, (lines.row, lines.col)), shape=(len(rows), mip.count))
        broken = np.flatnonzero((part > ROUND) & (matrix @ point > np.floor(side) + BROKEN))
        if len(broken):
            none = np.full(len(broken), -np.inf)
            mip = mip.with_lines(matrix[broken], none, np.floor(side)[broken], JOINT)
            added = True
    return mip if added else None


def relaxed(mip: Mip, *, seconds: float | None = None) -> Reply:
    """The linear relaxation: bound by the multipliers' own arithmetic, point and multipliers."""
    import highspy

    solver = _solver(mip, seconds=seconds)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return Reply(infeasible=True)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return Reply(late=solver.getModelStatus() == highspy.HighsModelStatus.kTimeLimit)
    found = solver.getSolution()
    multipliers = np.array(found.row_dual)
    there = np.where(multipliers > 0, np.isfinite(mip.low), np.isfinite(mip.high))
    multipliers = np.where(there, multipliers, 0.0)  # tiny ones of the wrong sign
    bound = floor_of(mip, multipliers, reduced_of(mip, multipliers))
    point = np.array(found.col_value)
    value, work = float(mip.cost @ point), int(solver.getInfo().simplex_iteration_count)
    return Reply(optimal=True, bound=bound, point=point, value=value, multipliers=multipliers, work=work)


def reduced_of(mip: Mip, multipliers: FloatArray) -> FloatArray:
    """Costs less what the lines charge at their multipliers."""
    return np.asarray(mip.cost - mip.matrix.T @ multipliers, dtype=np.float64)


def sides_of(mip: Mip, multipliers: FloatArray) -> float:
    """What the lines themselves are worth; -inf when a multiplier leans on a side that is not there."""
    used = np.where(multipliers > 0, mip.low, np.where(multipliers < 0, mip.high, 0.0))
    return float((multipliers * used)[multipliers != 0].sum())


def floor_of(mip: Mip, multipliers: FloatArray, reduced: FloatArray) -> float:
    """The bound that multipliers prove, whoever found them.

    Parameters
    ----------
    mip
        The program.
    multipliers
        Of its lines, (lines,): > 0 on the low side, < 0 on the high one.
    reduced
        `reduced_of` the same multipliers, (n,).

    Returns
    -------
    No point has a lower cost; -inf when a multiplier leans on a side that is not there.
    """
    return sides_of(mip, multipliers) + float((np.minimum(reduced, 0.0) * mip.upper).sum())


def solved(
    mip: Mip,
    *,
    start: FloatArray | None = None,
    seconds: float | None = None,
    nodes: int | None = None,
    gap: float = 0.0,
    threads: int = 1,
    take_cuts: bool = False,
) -> Reply:
    """The program itself, as far as seconds, nodes and the gap allow.

    Parameters
    ----------
    mip
        The program.
    start
        A point to start from, (n,); None = none is known.
    seconds
        Time limit; None = none.  [s]
    nodes
        Most nodes of the search; None = no limit.
    gap
        Relative gap at which to stop.
    threads
        Of HiGHS.
    take_cuts
        The reply has the cuts of the root; presolve and heuristics are off then.
    """
    import highspy

    solver = _solver(mip, seconds=seconds, whole=True, threads=threads)
    solver.setOptionValue("mip_rel_gap", gap)
    if nodes is not None:
        solver.setOptionValue("mip_max_nodes", nodes)
    pool: list[Cuts] = []
    if take_cuts:  # they speak of the variables that the solver sees
        solver.setOptionValue("presolve", "off")
        solver.setOptionValue("mip_heuristic_effort", 0.0)
        for name in NO_PLANS:
            solver.setOptionValue(name, False)
        solver.cbMipGetCutPool.subscribe(lambda event: pool.append(_cuts(event.data_out)))
    if start is not None:
        given = highspy.HighsSolution()
        given.col_value = start
        given.value_valid = True
        solver.setSolution(given)
    solver.run()
    said, info = solver.getModelStatus(), solver.getInfo()
    work = max(int(info.simplex_iteration_count), 0)
    if said == highspy.HighsModelStatus.kInfeasible:
        return Reply(infeasible=True, work=work)
    bound = float(info.mip_dual_bound)
    optimal, late = said == highspy.HighsModelStatus.kOptimal, said == highspy.HighsModelStatus.kTimeLimit
    cuts = pool[-1] if pool else None
    if info.primal_solution_status != 2:
        return Reply(bound=bound if math.isfinite(bound) else -math.inf, cuts=cuts, work=work, late=late)
    point = np.array(solver.getSolution().col_value)
    point[mip.integer] = np.rint(point[mip.integer])
    value = float(mip.cost @ point)
    return Reply(optimal=optimal, bound=min(bound, value), point=point, value=value, cuts=cuts, work=work, late=late)


def _cuts(out: Any) -> Cuts:
    """Cuts as a callback tells of them."""
    count, values = int(out.cutpool_num_cut), np.array(out.cutpool_value)
    starts = np.append(np.array(out.cutpool_start)[:count], len(values))
    matrix = sparse.csr_matrix((values, np.array(out.cutpool_index), starts), shape=(count, int(out.cutpool_num_col)))
    low, high = np.array(out.cutpool_lower, dtype=np.float64), np.array(out.cutpool_upper, dtype=np.float64)
    return Cuts(matrix=matrix, low=np.where(low < -1e20, -np.inf, low), high=np.where(high > 1e20, np.inf, high))


def _solver(mip: Mip, *, seconds: float | None, whole: bool = False, threads: int = 1) -> Any:
    matrix = mip.matrix.tocsr()
    lines = highs.Lines(starts=matrix.indptr, variables=matrix.indices, values=matrix.data, low=mip.low, high=mip.high)
    time_limit_s = None if seconds is None else max(seconds, 0.01)
    integer = mip.integer if whole else None
    return highs.program(mip.cost, mip.upper, lines, integer=integer, threads=threads, time_limit_s=time_limit_s)
