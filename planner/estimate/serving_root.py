"""Where a rising function crosses zero, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Function = Callable[[Values], Values]

ROUNDS = 60
PATIENCE = 3  # rounds that need not halve the bracket
CLOSE = 5e-5  # of the argument or below zero: a row is done
ROUNDING = 1e-9  # of a width or a value: rules are not decided by last digits, which processors round differently
SPARSE = 0.6  # share of rows not done below which the others are left out


def crossing(function: Function, low: Values, at_low: Values, high: Values, at_high: Values) -> Values:
    """Largest argument found where a function is not above zero, between one that keeps it and one that does not.

    Parameters
    ----------
    function
        Rises in every row; takes and gives arrays of the shape of `low`.
    low, at_low
        Arguments at which it is not above zero, and what it is there.
    high, at_high
        Arguments at which it is above zero, and what it is there; a row where either does not hold means nothing.
    """
    state = _Bracket(low, at_low, high, at_high)
    for _ in range(ROUNDS):
        state.narrow(function)
        if state.done.all():
            break
    return state.bottom


def crossing_of_rows(
    of_rows: Callable[[NDArray[np.intp]], Function], low: Values, at_low: Values, high: Values, at_high: Values
) -> Values:
    """The same where `of_rows` makes the function of some of the rows, so that those that are done cost nothing.

    Parameters
    ----------
    of_rows
        Makes the function of the rows of an index; it takes and gives arrays of their number.
    low, at_low
        Arguments at which the function of all rows is not above zero, and what it is there, (n,).
    high, at_high
        Arguments at which it is above zero, and what it is there, (n,).
    """
    found, rows = np.array(low), np.arange(low.size)
    function, state = of_rows(rows), _Bracket(low, at_low, high, at_high)
    for _ in range(ROUNDS):
        state.narrow(function)
        done = state.done
        if done.mean() > 1 - SPARSE:
            found[rows] = state.bottom
            left = np.nonzero(~done)[0]
            if not len(left):
                return found
            rows = rows[left]
            function = of_rows(rows)
            state.keep(left)
    found[rows] = state.bottom
    return found


class _Bracket:
    """Rows between an argument that is not above zero and one that is.

    False position with the rule of Anderson and Bjorck, and bisection where rounds do not halve the bracket.

    References: N. Anderson and A. Bjorck, "A new high order method of regula falsi type," BIT 13, 1973.
    """

    def __init__(self, low: Values, at_low: Values, high: Values, at_high: Values) -> None:
        self.bottom, self.below, self.top, self.above = low, at_low, high, at_high
        self.halve = np.zeros(low.shape, dtype=bool)
        self.last: NDArray[Any] = np.full(low.shape, 2)  # neither
        self.slow: NDArray[Any] = np.zeros(low.shape, dtype=np.int64)
        self.done = np.zeros(low.shape, dtype=bool)

    def narrow(self, function: Function) -> None:
        """One evaluation of every row."""
        bottom, below, top, above = self.bottom, self.below, self.top, self.above
        width = top - bottom
        slope = np.where(above > below, above - below, 1.0)
        guess = np.where(self.halve, bottom + width / 2, bottom - below * width / slope)
        lowest = bottom + CLOSE / 4
        guess = np.minimum(np.maximum(guess, lowest), np.maximum(top - CLOSE / 4, lowest))
        value = function(guess)
        kept = value <= 0
        again = kept == self.last  # the end that stays twice is weighed less, so that the next guess falls on its side
        low_factor, high_factor = 1 - value / below, 1 - value / above
        self.below = np.where(
            kept, value, np.where(again, below * np.where(high_factor > ROUNDING, high_factor, 0.5), below)
        )
        self.above = np.where(
            kept, np.where(again, above * np.where(low_factor > ROUNDING, low_factor, 0.5), above), value
        )
        kept_here, left_here = kept & ~self.done, ~kept & ~self.done  # rows that are done stay, whatever their company
        self.bottom, self.top = np.where(kept_here, guess, bottom), np.where(left_here, guess, top)
        self.last = kept
        self.slow = np.where(self.top - self.bottom > width * (0.5 + ROUNDING), self.slow + 1, 0)
        self.halve = self.slow >= PATIENCE
        self.done = self.done | (self.top - self.bottom < CLOSE) | (kept & (value > -CLOSE))

    def keep(self, left: NDArray[np.intp]) -> None:
        """Go on with these rows only."""
        for name in ("bottom", "below", "top", "above", "halve", "last", "slow", "done"):
            setattr(self, name, getattr(self, name)[left])
