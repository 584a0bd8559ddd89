"""The least by which one limit alone must be loosened, every other held: single repairs.

A repair is the least m >= 1 such that the program with that limit loosened by m has a plan
(`limited.Limited.at`). Proof that it is exact:

* *rows, one of them, without supplies*: drop the row and minimise its left side; the least value v is a
  solved integer program. The limit v lets that plan through, and with v - 1 any plan would be one of a
  lesser left side.
* *several rows, supplies, providers*: bisection over whole units. The upper end always has a plan at hand
  (and jumps down to what that plan uses), the lower end was proven infeasible; feasibility is monotone
  in m, so they meet at the least m.
* *filters*: only the values that columns need matter, a finite set; bisection over them, between steps at
  which the rows change from the least value on (`Limited.steps`), since feasibility is monotone there.

A limit without which there is no plan either has no repair of its own: something else conflicts.
What is not proven within the time limit is marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from planner.candidates.program import IntArray, Row
from planner.carriers import dataclass
from planner.optimize.limited import PROVIDERS, Asker, Filter, Limited, used_by, verdict
from planner.optimize.status import Solution, Status

INT = np.int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One limit loosened, and what the cheapest plan then costs; `more` None = alone not enough."""

    name: str
    more: int | None
    cost_microusd: int | None = None
    proven: bool = True  # least, or not enough, and the cost too
    units: IntArray | None = None  # of the cheapest plan


def single_repair(limited: Limited, name: str, asker: Asker | None = None) -> Repair:
    """The least loosening of one limit that makes the program feasible, and the least cost then.

    Parameters
    ----------
    limited
        The program and its limits; all others are held.
    name
        Of the limit, as in `Limited.limits`.
    asker
        Solves the steps; None = HiGHS without a time limit.
    """
    asker = asker or Asker()
    one = limited.filter_of(name)
    if one is not None:
        more, proven = _least_need(limited, one, asker)
    elif name == PROVIDERS:
        more, proven = _least_providers(limited, asker)
    else:
        more, proven = _least_bound(limited, name, asker)
    if more is None:
        return Repair(name=name, more=None, proven=proven)
    answer = asker.cheapest(*limited.at({name: more}))
    if not answer.has_plan:
        return Repair(name=name, more=more, proven=False)
    sure = proven and answer.status is Status.OPTIMAL
    return Repair(name=name, more=more, cost_microusd=answer.cost_microusd, proven=sure, units=answer.units)


Found = tuple[int | None, bool]  # least m or None, and whether that is proven


def _least_bound(limited: Limited, name: str, asker: Asker) -> Found:
    rows = limited.rows_of(name)
    program, mask = limited.at({name: None})
    if len(rows) == 1 and (rows[0].coefficients >= 0).all():
        answer = asker.cheapest(replace(program, cost_microusd=_dense(rows[0], program.column_count)), mask)
        least = None if not answer.has_plan else max(used_by(rows[0], answer.units) - rows[0].bound, 0)
        return least, answer.status in (Status.OPTIMAL, Status.INFEASIBLE)

    def over(answer: Solution) -> int:
        return max(used_by(row, answer.units) - row.bound for row in rows)

    return _bisected(limited, name, asker.any_plan(program, mask), over, asker)


def _dense(row: Row, count: int) -> IntArray:
    dense = np.zeros(count, dtype=INT)
    np.add.at(dense, row.columns, row.coefficients)
    return dense


def _least_providers(limited: Limited, asker: Asker) -> Found:
    most = limited.program.max_providers or 0

    def over(answer: Solution) -> int:
        return len(np.unique(limited.program.provider[answer.units > 0])) - most

    return _bisected(limited, PROVIDERS, asker.any_plan(*limited.at({PROVIDERS: None})), over, asker)


def _bisected(limited: Limited, name: str, whole: Solution, over: Callable[[Solution], int], asker: Asker) -> Found:
    """Between 0, known not to do, and what a plan without the limit takes."""
    if not whole.has_plan:
        return None, verdict(whole) is False
    low, high, proven = 0, max(over(whole), 0), True
    while high - low > 1:
        middle = (low + high) // 2
        answer = asker.any_plan(*limited.at({name: middle}))
        if answer.has_plan:
            high = max(min(middle, over(answer)), low + 1)
        else:
            proven &= verdict(answer) is False
            low = middle
    return high, proven


def _least_need(limited: Limited, one: Filter, asker: Asker) -> Found:
    proven = True
    for values in _segments(one, limited.steps.get(one.name, ())):
        last = asker.any_plan(*limited.at({one.name: values[-1]}))
        proven &= verdict(last) is not None
        if not last.has_plan:
            continue
        low, high = -1, len(values) - 1
        while high - low > 1:
            middle = (low + high) // 2
            found = verdict(asker.any_plan(*limited.at({one.name: values[middle]})))
            proven &= found is not None
            low, high = (low, middle) if found else (middle, high)
        return values[high], proven
    return None, proven


def _segments(one: Filter, steps: tuple[int, ...]) -> Iterator[list[int]]:
    """Loosenings at which more columns open, in runs over which the rows stay the same."""
    values = np.unique(one.need[one.need > one.bound]) - one.bound
    places = np.searchsorted(values, sorted(steps))
    for part in np.split(values, places):
        if len(part):
            yield [int(value) for value in part]
