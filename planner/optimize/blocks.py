"""A bound from the parts that a program falls into when jobs may be run more or less than once.

Lines of jobs (one plan each), and lines that tie everything to everything, get prices; what is left
falls into blocks that share no line: a pool with its nodes reserved and on demand, and every way to run
a job on it. For any prices y of the linking lines

    least cost >= sum y side(y) + sum over the blocks of min { (c - A'y) x : x whole, lines of the block },

and each of these small programs is solved as such, or stopped at the bound that is proven of it. That
beats the linear relaxation, since a pool with half a job on it, spread over many starts, is no longer
free. Within a block a job is still run at most once, which its own line says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from planner.carriers import dataclass
from planner.optimize.arrays import JOB, JOINT, Mip, reduced_of, relaxed, sides_of, solved
from planner.optimize.status import FloatArray, IntArray

MOST_COVERED = 1 / 3  # a joint line with more than this part of the columns of its jobs ties blocks together
NEGLIGIBLE = 1e-9  # of the largest cost
LEAST_S = 0.05  # for a block; with less it is left at its relaxation


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Variables that share lines, and these lines."""

    columns: IntArray
    mip: Mip


def group_of(mip: Mip) -> IntArray:
    """The job line of each variable, -1 without one."""
    rows = np.flatnonzero(mip.kinds == JOB)
    lines = mip.matrix[rows].tocoo()
    group = np.full(mip.count, -1, dtype=np.int64)
    group[lines.col] = rows[lines.row]
    return group


def label_of(mip: Mip) -> IntArray:
    """The block of each variable: connected through the joint lines that cover small parts of their jobs."""
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


def linking(mip: Mip, label: IntArray) -> IntArray:
    """Lines that reach into more than one block, and those of jobs."""
    coo = mip.matrix.tocoo()
    first = np.full(len(mip.low), np.iinfo(np.int64).max)
    last = np.full(len(mip.low), -1, dtype=np.int64)
    np.minimum.at(first, coo.row, label[coo.col])
    np.maximum.at(last, coo.row, label[coo.col])
    return np.flatnonzero((first < last) | (mip.kinds == JOB))


def blocks_of(mip: Mip, label: IntArray, links: IntArray, reduced: FloatArray) -> Iterator[Block]:
    """Variables that share lines of their own, with the costs given and a line for every job within."""
    inner = np.ones(len(mip.low), dtype=bool)
    inner[links] = False  # nor those of jobs: all of them are links
    rows = np.flatnonzero(inner | (mip.kinds == JOB))
    low = np.where(mip.kinds == JOB, 0.0, mip.low)
    priced = Mip(
        cost=reduced,
        upper=mip.upper,
        integer=mip.integer,
        matrix=mip.matrix[rows],
        low=low[rows],
        high=mip.high[rows],
        kinds=mip.kinds[rows],
    )
    limited = np.zeros(mip.count, dtype=bool)
    limited[mip.matrix[np.flatnonzero(inner)].indices] = True
    order = np.argsort(label, kind="stable")
    for columns in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if limited[columns].any():
            yield Block(columns=columns, mip=priced.part(columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A proven bound, and whether every block was solved to its end."""

    bound: float
    exact: bool
    blocks: int
    hard: int  # blocks that had to be solved


def bound_of(
    mip: Mip,
    label: IntArray,
    multipliers: FloatArray,
    *,
    point: FloatArray | None = None,
    until: float | None = None,
    nodes: int | None = None,
) -> Bounded:
    """The bound that the multipliers of the linking lines prove, with every block solved as far as time allows.

    Parameters
    ----------
    label
        The block of each variable (`label_of`); lines that reach into several blocks are linking, whatever they are.
    multipliers
        Of all lines; only those of the linking ones are used.
    point
        A plan for the blocks to start from.
    until
        When to stop (`time.monotonic`).
    nodes
        Most nodes of a block.
    """
    links = linking(mip, label)
    prices = np.zeros(len(mip.low))
    prices[links] = multipliers[links]
    reduced = reduced_of(mip, prices)
    blocks = list(blocks_of(mip, label, links, reduced))
    alone = np.ones(mip.count, dtype=bool)
    for block in blocks:
        alone[block.columns] = False
    total = sides_of(mip, prices) + float((np.minimum(reduced, 0.0) * mip.upper)[alone].sum())
    values, hard = [], []
    for block in blocks:
        value, settled = _relaxation(block.mip)
        values.append(value)
        if not settled:
            hard.append(len(values) - 1)
    hard.sort(key=lambda number: blocks[number].mip.count)
    exact = True
    for place, number in enumerate(hard):
        seconds = None if until is None else max(until - time.monotonic(), 0.0) / (len(hard) - place)
        if seconds is not None and seconds <= LEAST_S:
            exact = False
            break
        start = None if point is None else point[blocks[number].columns]
        reply = solved(blocks[number].mip, start=start, seconds=seconds, nodes=nodes)
        values[number] = max(values[number], reply.bound)
        exact &= reply.optimal
    return Bounded(bound=total + sum(values), exact=exact, blocks=len(blocks), hard=len(hard))


def _relaxation(mip: Mip) -> tuple[float, bool]:
    """The bound of a block's relaxation, and whether nothing better can be proven: taking nothing is best."""
    idle = bool((mip.low <= 0).all() and (mip.high >= 0).all())
    if idle and (mip.cost >= 0).all():
        return 0.0, True
    reply = relaxed(mip)
    if reply.multipliers is None:
        return float((np.minimum(mip.cost, 0.0) * mip.upper).sum()), False
    size = max(float(np.abs(mip.cost).max(initial=0.0)), 1.0)
    return reply.bound, idle and reply.bound >= -NEGLIGIBLE * size
