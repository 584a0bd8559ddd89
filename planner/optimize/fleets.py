"""One fleet of several buckets walked through in whole units: every plan that the known lines allow.

Lines of prices (`situations.Cut`) are true of every plan. Columns are taken one after another, in all their
units, and a part of a plan is kept while it can still meet every line for at most the value Z of a plan
that is known: with E earned and c spent, line j needs

    E_j - loss_j + (Z - c) max over the columns to come of (W_jk / c_k)  >=  need_j,

and the same of the lines together, weighed by their multipliers in the relaxation. What is left at the end is
few as a rule; it is routed exactly, cheapest first, and plans that break a loss teach lines that rule out others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import IntArray
from planner.candidates.prune import canonical_order
from planner.carriers import dataclass
from planner.optimize.check import violations
from planner.optimize.criteria import LINEAR, value_of, weights_of
from planner.optimize.relax import Relaxation
from planner.optimize.scope import Scope
from planner.optimize.situations import Cut, unmet
from planner.optimize.status import FloatArray

MOST_STATES = 40_000  # looked at for one column
MOST_ROUTED = 200  # plans that are routed
SAFE = 1e-9  # relative, for sums in floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The least value of a criterion, and all plans that may be as good, the routed one first."""

    value: int
    plans: IntArray  # (plans, columns of the program)

    @property
    def upper(self) -> IntArray:
        """Most units of each column in any of them."""
        return np.asarray(self.plans.max(axis=0), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Lines of prices over some columns, each divided by its need."""

    earned: FloatArray  # (lines, columns) by a unit
    lost: FloatArray  # (lines, columns) at most, when a column is in use

    @classmethod
    def of(cls, scope: Scope, columns: IntArray, cuts: list[Cut]) -> _Lines:
        first = scope.program.tasks[0].first
        earned = np.array([[cut.earnings[k - first] / cut.need for k in columns.tolist()] for cut in cuts])
        spares = np.array([cut.spares for cut in cuts], dtype=np.float64)
        earned = earned.reshape(len(cuts), len(columns))
        return cls(
            earned=earned, lost=earned * spares[:, None] / np.maximum(scope.program.replicas[columns], 1)[None, :]
        )

    def kept(self, units: IntArray) -> NDArray[np.bool_]:
        """Which plans (rows) meet all lines."""
        loss = np.where(units[:, None, :] > 0, self.lost[None], 0.0).max(axis=2, initial=0.0)
        return np.asarray((units @ self.earned.T - loss >= 1 - SAFE).all(axis=1))


def listable(scope: Scope, criterion: str) -> bool:
    """Whether a scope is one fleet whose plans are told by lines and routings alone, with a positive criterion."""
    if criterion not in LINEAR or len(scope.program.tasks) != 1 or scope.fixed:
        return False
    (task,) = scope.program.tasks
    weights = weights_of(scope.program, criterion)[scope.open]
    return task.kind == "serving" and not task.integer_slices and bool((weights > 0).all())


def list_plans(
    scope: Scope,
    criterion: str,
    relaxation: Relaxation,
    weighed: FloatArray,
    most: int,
    tie: Callable[[int], int] = lambda value: 0,
) -> Listed | None:
    """All plans as good as the best, when none is above `most`; None when there are too many to look at.

    Parameters
    ----------
    relaxation
        Of the lines of the scope; says which columns to take first.
    weighed
        One number >= 0 per line of the scope, to weigh them together.
    tie
        By how much a plan may be above a value and still be as good.
    """
    columns = scope.open
    cuts = [cut for cut in scope.cuts if cut.need > 0]
    weighed = weighed[[cut.need > 0 for cut in scope.cuts]]
    if not cuts or not len(columns):
        return None
    weights = weights_of(scope.program, criterion)[columns]
    order = np.argsort(relaxation.reduced[: len(columns)] / weights, kind="stable")
    columns, weights = columns[order], weights[order]
    units = _combined(_Lines.of(scope, columns, cuts), scope.upper[columns], weights, weighed, most)
    if units is None or not len(units):
        return None
    return _cheapest(scope, columns, units, units @ weights, tie)


def _combined(lines: _Lines, upper: IntArray, weights: IntArray, weighed: FloatArray, most: int) -> IntArray | None:
    """Units (plans, columns) of everything that may meet the lines for at most a value."""
    count, columns = lines.earned.shape
    spent, earned, lost = np.zeros(1, dtype=np.int64), np.zeros((1, count)), np.zeros((1, count))
    units = np.zeros((1, columns), dtype=np.int64)
    rates = np.vstack([lines.earned, weighed @ lines.earned]) / weights
    to_come = np.maximum.accumulate(rates[:, ::-1], axis=1)[:, ::-1]
    to_come = np.hstack([to_come[:, 1:], np.zeros((count + 1, 1))])
    for column in range(columns):
        amounts = np.arange(int(upper[column]) + 1)
        if len(spent) * len(amounts) > MOST_STATES:
            return None
        state, amount = np.repeat(np.arange(len(spent)), len(amounts)), np.tile(amounts, len(spent))
        total = spent[state] + amount * weights[column]
        payable = total <= most
        state, amount, total = state[payable], amount[payable], total[payable]
        gained = earned[state] + amount[:, None] * lines.earned[:, column]
        gone = np.where(amount[:, None] > 0, np.maximum(lost[state], lines.lost[:, column]), lost[state])
        left, net = (most - total)[:, None], gained - gone
        hope = (net + left * to_come[:-1, column] >= 1 - SAFE).all(axis=1)
        hope &= net @ weighed + left[:, 0] * to_come[-1, column] >= weighed.sum() * (1 - SAFE)
        spent, earned, lost, units = total[hope], gained[hope], gone[hope], units[state[hope]]
        units[:, column] = amount[hope]
    return units


def _cheapest(
    scope: Scope, columns: IntArray, units: IntArray, values: IntArray, tie: Callable[[int], int]
) -> Listed | None:
    """The first plan that is routed, by value, with all others as good that no line rules out."""
    order = np.argsort(values, kind="stable")
    units, values = units[order], values[order]
    for _ in range(MOST_ROUTED):
        if not len(units):
            return None
        whole = _whole(scope, columns, units[:1])[0]
        missed = _missed(scope, whole)
        if missed is None:
            return None
        if not missed and next(violations(scope, whole, routed=False), "") == "":
            value = int(values[0])
            return Listed(value=value, plans=_whole(scope, columns, units[values <= value + tie(value)]))
        scope.cuts.extend(missed)
        kept = np.arange(len(units)) > 0
        usable = [cut for cut in missed if cut.need > 0]
        if usable:
            kept &= _Lines.of(scope, columns, usable).kept(units)
        units, values = units[kept], values[kept]
    return None


def _missed(scope: Scope, units: IntArray) -> list[Cut] | None:
    """Lines that a plan breaks; None when it cannot be told whether it carries all."""
    (task,) = scope.program.tasks
    missed = list(unmet(scope.program, task, units))
    return None if any(not isinstance(each, Cut) for each in missed) else [m for m in missed if isinstance(m, Cut)]


def _whole(scope: Scope, columns: IntArray, units: IntArray) -> IntArray:
    whole = np.zeros((len(units), scope.program.column_count), dtype=np.int64)
    whole[:, columns] = units
    return whole


def first_of(scope: Scope, plans: IntArray, chain: tuple[str, ...]) -> IntArray | None:
    """The best of some plans by a chain of criteria, routed and within all limits; None when that cannot be told.

    Parameters
    ----------
    scope
        Of one fleet (`listable`).
    plans
        Units, (plans, columns of the program).
    chain
        Criteria, most important first; may have ``offers``.
    """
    order = canonical_order(scope.program)
    ordered = sorted(plans, key=lambda units: tuple(_key(scope, units, chain, order)))
    for units in ordered[:MOST_ROUTED]:
        missed = _missed(scope, units)
        if missed is None:
            return None
        if not missed and next(violations(scope, units, routed=False), "") == "":
            return np.asarray(units)
    return None


def _key(scope: Scope, units: IntArray, chain: tuple[str, ...], order: IntArray) -> Iterator[object]:
    for name in chain:
        if name == "offers":
            # more of the first column wins, then of the second
            yield tuple((-units[order]).tolist())
        else:
            yield value_of(scope.program, units, name)
