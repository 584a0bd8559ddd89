"""Where a rising function crosses zero, for many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Function = Callable[[Values], Values]

ROUNDS = 60
CLOSE = 2e-5  # of the argument or below zero: a row is done
SPARSE = 0.6  # share of rows not done below which the others are left out


def crossing(function: Function, low: Values, at_low: Values, high: Values, at_high: Values) -> Values:
    """Largest argument found where a function is not above zero, between one that keeps it and one that does not."""
    state = _Bracket(low, at_low, high, at_high)
    for _ in range(ROUNDS):
        state.narrow(function)
        if state.done.all():
            break
    return state.bottom


def crossing_of_rows(
    of_rows: Callable[[NDArray[np.intp]], Function], low: Values, at_low: Values, high: Values, at_high: Values
) -> Values:
    """The same where `of_rows` makes the function of some of the rows, so that those that are done cost nothing."""
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

    False position with the Illinois rule, and bisection where a round does not halve the bracket.

    References: M. Dowell and P. Jarratt, "A modified regula falsi method," BIT 11, 1971.
    """

    def __init__(self, low: Values, at_low: Values, high: Values, at_high: Values) -> None:
        self.bottom, self.below, self.top, self.above = low, at_low, high, at_high
        self.halve = np.zeros(low.shape, dtype=bool)
        self.done = np.zeros(low.shape, dtype=bool)

    def narrow(self, function: Function) -> None:
        """One evaluation of every row."""
        bottom, below, top, above = self.bottom, self.below, self.top, self.above
        width = top - bottom
        slope = np.where(above > below, above - below, 1.0)
        guess = np.where(self.halve, bottom + width / 2, bottom - below * width / slope)
        guess = np.clip(guess, bottom + CLOSE / 4, np.maximum(top - CLOSE / 4, bottom + CLOSE / 4))
        value = function(guess)
        kept = value <= 0
        # the end that stays is weighed half, so that the next guess falls on its side
        self.below, self.above = np.where(kept, value, below / 2), np.where(kept, above / 2, value)
        self.bottom, self.top = np.where(kept, guess, bottom), np.where(kept, top, guess)
        self.halve = (self.top - self.bottom > width / 2) & ~self.halve
        self.done = (self.top - self.bottom < CLOSE) | (kept & (value > -CLOSE))

    def keep(self, left: NDArray[np.intp]) -> None:
        """Go on with these rows only."""
        for name in ("bottom", "below", "top", "above", "halve", "done"):
            setattr(self, name, getattr(self, name)[left])
