"""Which of many evaluated layouts may be in a plan: the least recomputation that fits, on time, the fastest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.candidates.ties import plain_training, six_digits
from planner.estimate.layout import Layout
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.terms import Terms
from planner.estimate.training_memory import SHARDED

Rows = NDArray[np.int64]
MOST_SPLITS = 8  # of each count of shapes, with ZeRO-3 and below it, beside which finer sizes are tried
NEIGHBOURHOOD = 0.06  # relative, of times: finer sizes are tried beside layouts so much slower than the fastest
_SIMPLEST_LAST_TO_FIRST = ("micro_batch", "vpp", "sharding", "recompute", "ep", "cp", "tp", "pp")


def policy_runs(layout: Layout) -> Rows:
    """A number for each row that its neighbours share when they differ in recomputation alone.

    `enumerate_layouts` lists the levels of one layout next to each other, from the least, and one ZeRO stage of
    a layout after the other.
    """
    if not len(np.asarray(layout.recompute)):
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(np.diff(np.asarray(layout.recompute)) <= 0)])


def least_policies(layout: Layout, runs: Rows, fitting: Rows) -> Rows:
    """Of layouts that differ in their memory policy alone, those that none takes less time than and fits.

    More recomputation only adds time, and ZeRO-2 takes no less than ZeRO-1: no sum of terms says otherwise, in any
    tier. Of each layout and stage the least recomputation that fits is kept; ZeRO-2 where ZeRO-1 needs more of it.

    Parameters
    ----------
    layout
        (n,) in the order of `enumerate_layouts`.
    runs
        (n,) as `policy_runs` numbers them.
    fitting
        Ascending numbers of those that fit.
    """
    of = runs[fitting]
    first = np.ones(len(of), dtype=bool)
    first[1:] = of[1:] != of[:-1]
    kept = fitting[first]
    of, level, stage = runs[kept], np.asarray(layout.recompute)[kept], np.asarray(layout.sharding)[kept]
    idle = np.zeros(len(kept), dtype=bool)  # the run before is the same layout at ZeRO-1
    idle[1:] = (of[1:] == of[:-1] + 1) & (stage[1:] == 2) & (stage[:-1] == 1) & (level[1:] == level[:-1])
    return kept[~idle]


def nearest(layout: Layout, splits: Rows, rows: Rows, nodes: Rows, pace: NDArray[np.float64]) -> Rows:
    """The fastest micro-batch of each of the splits that come near the fastest of as many shapes.

    Parameters
    ----------
    layout
        Layouts of any machine.
    splits
        A number of the split of each of these.
    rows
        (m,) which of these fit a machine.
    nodes, pace
        (m,) shapes of each, and seconds for equally much.

    Returns
    -------
    Some of the rows.
    """
    if not len(rows):
        return rows
    least = np.full(int(nodes.max()) + 1, np.inf)
    np.fmin.at(least, nodes, pace)
    near = np.flatnonzero(pace <= least[nodes] * (1 + NEIGHBOURHOOD))
    full = np.asarray(layout.sharding)[rows] == SHARDED  # another program's business, which may be named
    near = near[np.lexsort((pace[near], full[near], nodes[near]))]
    near = near[np.sort(np.unique(splits[rows[near]], return_index=True)[1])]
    first = np.unique(2 * nodes[near] + full[near], return_index=True)[1]
    rank = np.arange(len(near)) - np.repeat(first, np.diff([*first, len(near)]))
    return np.asarray(rows[near[rank < MOST_SPLITS]])


def busy_s(time: Terms) -> NDArray[np.float64]:
    """Time of the optimizer steps alone, without failures and checkpoints.  [s]"""
    return np.asarray(sum(time[name] for name in time if name not in RUN_TERMS))


def fastest(
    layout: Layout,
    rows: Rows,
    nodes: Rows,
    finish_s: NDArray[np.float64],
    chosen: Rows,
    domain: Rows,
    *,
    every_degree: bool = False,
) -> Rows:
    """Of the chosen layouts the fastest of each count of nodes, and plainer ones of a time that is as good as equal.

    Of layouts of one time to ten digits the plainest, then the simplest. A plainer one of a later time that is the
    same to six digits stays beside it: it may be as cheap in a plan, and then it is the better (`candidates.ties`).

    Parameters
    ----------
    layout
        Layouts of any machine.
    rows
        (m,) numbers of those that there are times of.
    nodes
        (m,) shapes of each of these, or numbers that rise with them, those of each machine apart.
    finish_s
        (m,) time of each of these, finite where it is chosen.  [s]
    chosen
        Places among these m.
    domain
        (m,) devices that fast links join there.
    every_degree
        A plainer one stays whatever its time is.

    Returns
    -------
    Places among these m, by node count.
    """
    if not len(chosen):
        return chosen
    finish, rough = ten_digits(finish_s[chosen] / 3600.0), six_digits(finish_s[chosen] * 1e3)
    least = np.full(int(nodes[chosen].max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, nodes[chosen], rough)
    near = (rough == least[nodes[chosen]]) | every_degree
    ties, finish = chosen[near], finish[near]
    involved = plain_training(layout.select(rows[ties]), domain[ties])
    simplest = [np.asarray(getattr(layout, name))[rows[ties]] for name in _SIMPLEST_LAST_TO_FIRST]
    order = np.lexsort((*simplest, involved, finish, nodes[ties]))
    if not len(order):
        return order
    of, plain = np.cumsum(np.diff(nodes[ties][order], prepend=0) != 0), involved[order]
    # the plainest so far of as many shapes: each count begins below all before it
    lowest = np.minimum.accumulate(plain - of * (int(plain.max()) + 1))
    kept = np.ones(len(order), dtype=bool)
    kept[1:] = lowest[1:] < lowest[:-1]
    return np.asarray(ties[order[kept]])


def least_by(kind: Rows, values: NDArray[np.float64], kinds: int) -> NDArray[np.float64]:
    """The least value of each of so many kinds, infinite where there is none; one that is not known is never it."""
    least = np.full(kinds, np.inf)
    np.fmin.at(least, kind, values)
    return least


def ten_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to ten significant digits: hours that differ by less are one time, as in `money`."""
    exponent = np.floor(np.log10(np.maximum(values, 1e-300)))
    scale = 10.0 ** (9 - exponent)
    rounded: NDArray[np.float64] = np.rint(values * scale) / scale
    return rounded
