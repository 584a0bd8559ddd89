"""Which variables belong to one job, and which to one pool: connected through the lines that they share."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from planner.optimize.arrays import JOB, JOINT, Mip
from planner.optimize.status import IntArray

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
