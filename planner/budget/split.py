"""Money shared out in whole micro-dollars, nothing lost and nothing made.

A running total is rounded down at each step, so that parts add up to the whole exactly: the micro-dollar that a
fraction leaves is placed in the last part that has a share of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from planner.plan.rows.pools import parts_of


def by_time(cost_microusd: int, hours: Sequence[Fraction]) -> list[int]:
    """A cost spread evenly over time: one part for each stretch of it.  [micro-USD]

    Parameters
    ----------
    hours
        Length of each part; all zero puts everything into the first.  [h]

    Examples
    --------
    >>> by_time(100, [Fraction(1), Fraction(0), Fraction(2)])
    [33, 0, 67]
    """
    if not any(hours):
        return [cost_microusd, *([0] * (len(hours) - 1))]
    return parts_of(cost_microusd, hours)


def two_ways(amounts: Sequence[int], shares: Sequence[int]) -> list[list[int]]:
    """A table of whole numbers with given sums by row and by column, as near to proportional as that allows.

    Cell (i, j) is what the running totals A_i and S_j leave: floor(A_i S_j / T) - floor(A_i S_j-1 / T) -
    floor(A_i-1 S_j / T) + floor(A_i-1 S_j-1 / T); it is less than two micro-dollars away from a_i s_j / T.

    Parameters
    ----------
    amounts
        Sums of the rows.
    shares
        Sums of the columns; they add up to what the rows add up to.

    Examples
    --------
    >>> two_ways([50, 50, 1], [33, 68])
    [[16, 34], [16, 34], [1, 0]]
    """
    total = sum(amounts)
    down, across = [0, *accumulate(amounts)], [0, *accumulate(shares)]
    if not total:
        return [[0] * len(shares) for _ in amounts]
    corner = [[above * left // total for left in across] for above in down]
    return [
        [corner[i + 1][j + 1] - corner[i + 1][j] - corner[i][j + 1] + corner[i][j] for j in range(len(shares))]
        for i in range(len(amounts))
    ]


def weighed(parts: Sequence[Sequence[int]], weights: Sequence[Fraction]) -> list[int]:
    """Weighed sums of several rows, column by column, in whole micro-dollars that add up to the weighed total.

    Examples
    --------
    >>> weighed([[10, 11], [20, 20]], [Fraction(1, 2), Fraction(1, 2)])
    [15, 15]
    """
    columns = [sum((w * row[i] for row, w in zip(parts, weights)), start=Fraction(0)) for i in range(len(parts[0]))]
    ends = [0, *(int(end // 1) for end in accumulate(columns))]
    return [end - begin for begin, end in pairwise(ends)]
