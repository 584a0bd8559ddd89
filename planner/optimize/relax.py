"""The linear relaxation: a lower bound that needs no trust, and what it rules out.

For any row multipliers y (a line's lower side if y > 0, its upper side if y < 0) and
d = c - A'y, every feasible x has

    c x = sum_r y_r (A x)_r + sum_v d_v x_v
        >= sum_r (y_r low_r or y_r high_r) + sum_v min(d_v * 0, d_v * upper_v) = L,

so L is a bound whatever solver made y, and c x - L is at least the sum over the variables
of excess_v(x_v) = d_v x_v (d_v >= 0) or -d_v (upper_v - x_v) (d_v < 0), all of them >= 0.
A plan of value at most Z therefore has sum excess <= Z - L: that closes columns and
shortens ranges (reduced-cost fixing), with a margin for rounding.
"""

from __future__ import annotations

import time

import numpy as np

from planner.carriers import dataclass
from planner.optimize.model import Model
from planner.optimize.process import linear_program
from planner.optimize.status import FloatArray, IntArray

MARGIN = 1e-8  # relative, on the scaled value


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Bound (scaled), reduced costs and multipliers; `support` = the columns of the LP's own choice."""

    bound: float
    multipliers: FloatArray  # of the lines: > 0 on the lower side, < 0 on the upper
    reduced: FloatArray
    upper: FloatArray
    support: IntArray
    point: FloatArray  # the LP's own
    size: float  # of the numbers summed, for the margin

    def slack(self, value: float) -> float:
        """How much excess a plan of at most this scaled value may have."""
        return value - self.bound + MARGIN * max(1.0, abs(value), self.size)

    def highest(self, value: float, count: int) -> FloatArray:
        """The most that each of the first `count` variables can be in such a plan."""
        reduced, upper = self.reduced[:count], self.upper[:count]
        room = max(self.slack(value), 0.0)
        # what is too small to divide by rules nothing out
        shortened = np.divide(room, reduced, out=upper.copy(), where=reduced * np.maximum(upper, 1.0) > room)
        return np.minimum(upper, np.floor(shortened))


def relax(model: Model, *, threads: int = 1, stop_at: float | None = None) -> Relaxation | None:
    """Solve the relaxation on arrays; None when it has no answer (the integer model then says why) or no time.

    Parameters
    ----------
    model
        Its variables need not be whole here.
    threads
        Of HiGHS.
    stop_at
        Time of the monotonic clock at which to give up; None = no limit.  [s]

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C.
    """
    left_s = None if stop_at is None else max(stop_at - time.monotonic(), 0.0)
    asked = model.line_count > 0 and left_s != 0
    answer = linear_program(model, threads=threads, time_limit_s=left_s) if asked else None
    return None if answer is None else weigh(model, *answer)


def weigh(model: Model, multipliers: FloatArray, point: FloatArray) -> Relaxation | None:
    """The bound that row multipliers prove, by our own arithmetic; None when they are not numbers.

    Parameters
    ----------
    model
        Its lines are weighed.
    multipliers
        Of its lines, (lines,); one that leans on a side that is not there counts as 0.
    point
        Of its variables, (variables,); taken over, not checked.
    """
    table = model.table()
    usable = np.where(multipliers > 0, np.isfinite(table.low), np.isfinite(table.high))
    y = np.where(usable, multipliers, 0.0)
    if not np.isfinite(y).all():
        return None
    weighed = np.repeat(y, np.diff(table.starts)) * table.coefficients
    reduced = model.objective - np.bincount(table.variables, weights=weighed, minlength=model.variable_count)
    sides = np.zeros(len(y))
    sides[y > 0] = y[y > 0] * table.low[y > 0]
    sides[y < 0] = y[y < 0] * table.high[y < 0]
    corners = np.minimum(reduced, 0.0) * model.upper
    return Relaxation(
        bound=float(sides.sum() + corners.sum()),
        multipliers=y,
        reduced=reduced,
        upper=model.upper,
        point=point,
        support=np.flatnonzero(point[: len(model.columns)] > 1e-9),
        size=float(np.abs(sides).sum() + np.abs(corners).sum()),
    )
