"""How much of each device plans can have that cost hardly more than the best: "0 to 64 H100 within 2 %".

With z the least cost and d a share, the fewest and the most devices of a kind over all plans that cost
at most (1 + d) z, each an integer program of its own. Nothing is maximised: with T no less than any
plan can have, an optional column t >= T - (devices of the kind) is made least, and the most is T - t.
The most is what the money allows, needed or not, no column beyond what it would need alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from planner.analysis.others.added import row_of, with_columns
from planner.candidates.program import IntArray, Program
from planner.candidates.prune import alone_units
from planner.carriers import dataclass
from planner.optimize.solve import Solution

WITHIN = "within the share"
TOLD_APART = 10**8  # a cost and what differs from it by this part of it are two to any solver


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The fewest and the most of something, each proven or None."""

    fewest: int | None
    most: int | None


def most_microusd(cost_microusd: int, share: float) -> int:
    """(1 + share) times a cost, the share read as the decimal number that it prints as.  [micro-USD]"""
    return int(cost_microusd * (1 + Fraction(repr(float(share)))))


def range_of(program: Program, amounts: IntArray, most: int, solve: Callable[..., Solution]) -> Range:
    """The fewest and the most of an amount over all plans of at most a cost.

    Parameters
    ----------
    amounts
        (columns,) of one unit of each column.
    most
        What plans may cost.  [micro-USD]
    solve
        As `planner.optimize.solve.optimize`.
    """
    return Range(
        fewest=_bracketed(lambda limit: _least(_paying(program, limit, amounts), solve), most),
        most=_bracketed(lambda limit: _most(_paying(program, limit, program.carbon_mg), amounts, solve), most),
    )


def _bracketed(value: Callable[[int], int | None], most: int) -> int | None:
    """A value at a limit on the cost; where no solver can tell the limit, that of a little less and of a little more.

    Both values are monotone in the limit: when the two are equal, so is the one between.
    """
    found = value(most)
    if found is not None:
        return found
    step = max(1, most // TOLD_APART)
    below, above = value(most - step), value(most + step)
    return below if below == above else None


def _paying(program: Program, most: int, weights: IntArray) -> Program:
    """The program with plans of at most a cost, and weights in the place of carbon."""
    paid = np.flatnonzero(program.cost_microusd)
    row = row_of(WITHIN, most, (paid, program.cost_microusd[paid]))
    return replace(program, rows=(*program.rows, row), carbon_mg=weights)


def _most(program: Program, amounts: IntArray, solve: Callable[..., Solution]) -> int | None:
    some = np.flatnonzero(amounts)
    total = int(sum(int(a) * int(u) for a, u in zip(amounts[some], _upper(program)[some])))
    if not total:
        return 0
    grown, slack = with_columns(program, "~short", [total])
    weights = np.zeros(grown.column_count, dtype=np.int64)
    weights[slack] = 1
    row = row_of("short of all", -total, (some, -amounts[some]), (slack, -1))
    least = _least(replace(grown, carbon_mg=weights, rows=(*grown.rows, row)), solve)
    return None if least is None else total - least


def _least(program: Program, solve: Callable[..., Solution]) -> int | None:
    """The least sum of what stands in the place of carbon; None when it was not proven."""
    solution = solve(replace(program, objective=("carbon",)), cost_only=True)
    if solution.status != "optimal":
        return None
    return sum(int(a) * int(u) for a, u in zip(program.carbon_mg, solution.units) if u)


def _upper(program: Program) -> IntArray:
    """Most units of each column worth considering."""
    upper = np.array(program.max_units, dtype=np.int64)
    for task in program.tasks:
        part = slice(task.first, task.stop)
        upper[part] = np.minimum(upper[part], alone_units(program, task))
    return upper
