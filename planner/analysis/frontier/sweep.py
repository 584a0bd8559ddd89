"""Every Pareto point of two objectives of a program, by the ε-constraint method.

One objective is *held* at or below a limit, the other is made least under it, and among the plans
that have both the least the first by the tie rule is taken: no plan is as good in one and better in
the other, so every point is truly Pareto. The next limit lies just below what the held objective
came to: the next integer for money and carbon, the next number for a time (times are compared with
columns, so that nothing lies between). No point is stepped over, and the sweep ends when nothing is
left below, which is proven, or when the lowest limit asked for is reached.

Time is held by leaving out columns that end later: the physics of a column does not depend on when
it has to be done, so a sweep over deadlines enumerates once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import FloatArray, IntArray, Program, Row
from planner.candidates.prune import prune
from planner.carriers import dataclass
from planner.optimize.criteria import value_of
from planner.optimize.solve import Solution

Value = int | float  # micro-dollars, milligrams, or seconds
Solve = Callable[..., Solution]  # as `planner.optimize.solve.optimize`, options bound
HELD = "held by the sweep"
# where no solver can tell a limit from the next integer below it, the next one that it can tell
TOLD_APART = 10**8
TOO_CLOSE = "points that are less than a hundred-millionth apart were not told apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """Which two of cost, time and carbon are traded; `time` is the latest of `ends_s` in use."""

    over: str  # held at ever smaller values: cost | time | carbon
    against: str  # least under that
    ends_s: FloatArray  # (columns,) what a deadline is compared with; 0 where none is

    def value(self, program: Program, units: IntArray, name: str) -> Value:
        """An objective of a plan: micro-USD, s, or mg.

        Parameters
        ----------
        program
            One whose columns are those of `ends_s`.
        units
            The plan: how many of each column, (columns,).
        name
            cost, time or carbon.
        """
        return value_of(self.timed(program), units, name)

    def timed(self, program: Program) -> Program:
        """The program with its times replaced by those of the trade, when time is one of the two."""
        return replace(program, finish_s=self.ends_s) if "time" in (self.over, self.against) else program


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One plan of the sweep: what it was asked, what both objectives came to, how many programs were solved."""

    limit: Value | None
    over: Value
    against: Value
    solution: Solution
    solves: int


def steps(low: Value, high: Value | None, at: Callable[[Value | None], Value | None]) -> Iterator[Value | None]:
    """Limits from the loosest on.

    Parameters
    ----------
    low
        The tightest limit worth asking: it ends when the held objective comes to that or less.
    high
        The first limit; None = no limit.
    at
        What the held objective came to under a limit; None = nothing is left. Asked once for each limit.
    """
    limit = high
    while True:
        yield limit
        reached = at(limit)
        if reached is None or reached <= low:
            return
        limit = next_limit(reached)


def next_limit(reached: Value) -> Value:
    """The loosest limit that is tighter than what the held objective came to."""
    return reached - 1 if isinstance(reached, int) else math.nextafter(reached, -math.inf)


def best_under(program: Program, trade: Trade, limit: Value | None, solve: Solve) -> Point | Solution:
    """The Pareto point at a limit of the held objective, or the solution that says why there is none.

    Parameters
    ----------
    program
        Its own objective is replaced by those of the trade; its joint limits hold.
    trade
        Which objective is held, and which is made least.
    limit
        What the held objective may be at most: s, micro-USD or mg; None = no limit.
    solve
        `optimize` with its options; it is asked up to three times.
    """
    found = _least(program, trade, limit, solve)
    if _untold(found) and isinstance(limit, int):
        found = _least(program, trade, limit - max(1, limit // TOLD_APART), solve)
        found = replace(found, messages=(*found.messages, TOO_CLOSE))
    if not found.has_plan:
        return found
    over, against = (trade.value(program, found.units, name) for name in (trade.over, trade.against))
    timed = "time" in (trade.over, trade.against) and bool((trade.ends_s != program.finish_s).any())
    if not timed or found.status != "optimal":
        return Point(limit=limit, over=over, against=against, solution=found, solves=1)
    # both are at their best; the tie rule speaks of when jobs finish, not of the deadline's margins
    time_s, linear = (over, trade.against) if trade.over == "time" else (against, trade.over)
    settled = solve(replace(program, objective=(linear,), most_tie_microusd=0), columns=trade.ends_s <= time_s)
    chosen = settled if settled.has_plan else found
    return Point(limit=limit, over=over, against=against, solution=chosen, solves=2)


def _untold(found: Solution) -> bool:
    """Whether answers were refused on the way to one that is none, or that is not proven."""
    if found.status == "feasible":
        return found.stopped_by == "solver-failure"
    return found.status == "failed" or (
        found.status == "infeasible" and any("refused" in message for message in found.messages)
    )


def _least(program: Program, trade: Trade, limit: Value | None, solve: Solve) -> Solution:
    rows, columns = _held(program, trade, trade.over, limit)
    rows = (*program.rows, *rows)
    # to the micro-dollar: a point a little dearer would hide those next to it
    asked = replace(program, rows=rows, objective=(trade.against, trade.over), most_tie_microusd=0)
    return solve(trade.timed(asked), columns=columns)


def columns_for(program: Program, trade: Trade) -> IntArray:
    """Columns that some point may need: those not dominated in both objectives and every joint limit."""
    every = np.arange(program.column_count)
    held = trade.ends_s if trade.over == "time" else _weights(program, trade.over)
    rank = np.unique(held, return_inverse=True)[1].astype(np.int64) + 1
    pareto = Row(name=HELD, label=HELD, bound=-1, columns=every, coefficients=rank)
    asked = replace(program, rows=(*program.rows, pareto), objective=(trade.against, trade.over))
    return prune(trade.timed(asked))


def _held(
    program: Program, trade: Trade, name: str, limit: Value | None
) -> tuple[tuple[Row, ...], NDArray[np.bool_] | None]:
    """An objective held at or below a value: a row, or the columns that may be used."""
    if limit is None:
        return (), None
    if name == "time":
        return (), np.asarray(trade.ends_s <= limit)
    weights = _weights(program, name)
    used = np.flatnonzero(weights)
    return (Row(name=HELD, label=HELD, bound=int(limit), columns=used, coefficients=weights[used]),), None


def _weights(program: Program, name: str) -> IntArray:
    return program.cost_microusd if name == "cost" else program.carbon_mg
