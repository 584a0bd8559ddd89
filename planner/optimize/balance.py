"""The routing of several buckets that loads all columns as evenly as can be: a small linear program.

    min t   with  whole_b + prefill_b = 1  and  whole_b + decode_b = 1   for every bucket b
            and   sum_b D_b x_kb / room_kb <= t                           for every column k,

where x_kb is the share of bucket b on column k, and whole_b, prefill_b, decode_b are its sums
over the columns of a role. t <= 1 when the columns carry the demand. The multipliers of the first
two lines, divided by D_b, are the prices of a request's prefill and decode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from planner.candidates.program import DECODE, PREFILL, WHOLE, IntArray
from planner.carriers import dataclass
from planner.optimize import highs
from planner.optimize.status import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """Shares of each bucket by (column, bucket); prices of a request of each bucket."""

    routed: bool
    flows: dict[tuple[int, int], float] = field(default_factory=dict)
    prefill: tuple[float, ...] = ()
    decode: tuple[float, ...] = ()


def balance(room: FloatArray, demand: FloatArray, role: IntArray, columns: Sequence[int]) -> Balanced:
    """The even routing.

    Parameters
    ----------
    room
        (columns, buckets): rate of all units of a column on each bucket alone.  [micro-requests/s]
    demand
        Of each bucket.  [micro-requests/s]
    role
        WHOLE, PREFILL or DECODE of each column.
    columns
        Names of the columns in the result.
    """
    unserved = _unserved(room, demand, role)
    if unserved is not None:
        return unserved
    wanted = np.flatnonzero(demand > 0)
    split = bool((role != WHOLE).any())
    if not len(wanted):
        return Balanced(routed=True, prefill=(0.0,) * len(demand), decode=(0.0,) * len(demand))
    if len(columns) == 1:
        here = room[0, wanted]
        prices = np.zeros(len(demand))
        prices[wanted] = 1.0 / here
        flows = {(columns[0], int(bucket)): 1.0 for bucket in wanted}
        return Balanced(routed=True, flows=flows, prefill=tuple(prices), decode=(0.0,) * len(demand))
    return _solve(room, demand, role, columns, wanted, split)


def _unserved(room: FloatArray, demand: FloatArray, role: IntArray) -> Balanced | None:
    """Prices of a bucket that nothing can serve."""
    for bucket in np.flatnonzero(demand > 0):
        able = room[:, bucket] > 0
        if (able & (role == WHOLE)).any():
            continue
        for part in (PREFILL, DECODE):
            if not (able & (role == part)).any():
                prices = tuple(float(other == bucket) for other in range(len(demand)))
                none = (0.0,) * len(demand)
                return Balanced(
                    routed=False,
                    prefill=prices if part == PREFILL else none,
                    decode=prices if part == DECODE else none,
                )
    return None


def _solve(
    room: FloatArray, demand: FloatArray, role: IntArray, columns: Sequence[int], wanted: IntArray, split: bool
) -> Balanced:
    column, bucket = np.nonzero((room > 0) & (demand > 0))
    place = np.zeros(len(demand), dtype=np.int64)
    place[wanted] = np.arange(len(wanted))
    lines = len(wanted) * (2 if split else 1)
    load = demand[bucket] / room[column, bucket]
    first, second = role[column] != DECODE, (role[column] != PREFILL) & split
    variable = np.arange(len(column))
    rows = np.concatenate([place[bucket[first]], len(wanted) + place[bucket[second]], lines + column])
    places = np.concatenate([variable[first], variable[second], variable])
    values = np.concatenate([np.ones(int(first.sum())), np.ones(int(second.sum())), load])
    highest = np.arange(len(columns)) + lines
    rows = np.concatenate([rows, highest])
    places = np.concatenate([places, np.full(len(columns), len(column))])
    values = np.concatenate([values, -np.ones(len(columns))])
    point, duals = _linear_program(rows, places, values, lines, lines + len(columns), len(column) + 1)
    if not len(point):
        return Balanced(routed=False)
    shares = np.maximum(point[:-1], 0.0)
    prefill, decode = np.zeros(len(demand)), np.zeros(len(demand))
    prefill[wanted] = duals[: len(wanted)] / demand[wanted]
    if split:
        decode[wanted] = duals[len(wanted) : lines] / demand[wanted]
    flows = {(columns[int(k)], int(b)): float(share) for k, b, share in zip(column, bucket, shares) if share > 0.0}
    return Balanced(routed=True, flows=flows, prefill=tuple(prefill), decode=tuple(decode))


def _linear_program(
    rows: IntArray, places: IntArray, values: FloatArray, equal: int, lines: int, count: int
) -> tuple[FloatArray, FloatArray]:
    """min the last variable; the first `equal` lines are >= 1, the others <= 0; the point and the multipliers."""
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(lines + 1))
    cost = np.zeros(count)
    cost[-1] = 1.0
    if not highs.available():
        return _scipy_program(rows, places, values, equal, lines, cost)
    first = np.arange(lines) < equal
    sides = {"low": np.where(first, 1.0, -np.inf), "high": np.where(first, np.inf, 0.0)}
    entries = highs.Lines(starts=starts, variables=places[order], values=values[order], **sides)
    solver = highs.program(
        cost,
        np.full(count, np.inf),
        entries,
        primal_feasibility_tolerance=1e-10,
        dual_feasibility_tolerance=1e-10,
    )
    return highs.optimum(solver) or (np.zeros(0), np.zeros(0))


def _scipy_program(
    rows: IntArray, places: IntArray, values: FloatArray, equal: int, lines: int, cost: FloatArray
) -> tuple[FloatArray, FloatArray]:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    signs = np.where(np.arange(lines) < equal, -1.0, 1.0)
    matrix = csr_array((values * signs[rows], (rows, places)), shape=(lines, len(cost)))
    found = linprog(cost, A_ub=matrix, b_ub=np.where(np.arange(lines) < equal, -1.0, 0.0), method="highs")
    if found.x is None:
        return np.zeros(0), np.zeros(0)
    return np.asarray(found.x, dtype=np.float64), -np.asarray(found.ineqlin.marginals)
