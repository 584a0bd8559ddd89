"""The best plan seen so far, so that whatever ends a run early, there is an answer.

Every plan that stands up to the exact check is offered: a first one from before the solver, those
of earlier stages, those that a solver streamed before it was stopped. Beside it stands the bound
that is proven of the first criterion.
"""

from __future__ import annotations

import math

from planner.candidates.program import IntArray
from planner.carriers import dataclass
from planner.optimize.check import violations
from planner.optimize.criteria import value_of
from planner.optimize.scope import Scope


@dataclass(slots=True, kw_only=True)
class Kept:
    """A plan of the whole scope, and a bound of the first criterion of the chain."""

    scope: Scope  # as the run was asked, before anything is closed
    chain: tuple[str, ...]
    units: IntArray | None = None
    bound: float = -math.inf

    def offer(self, units: IntArray | None, *, checked: bool = False) -> None:
        """Keep a plan that is better by the chain; `checked` = the exact check has been passed already."""
        if units is None or (self.units is not None and self._values(units) >= self._values(self.units)):
            return
        if checked or next(violations(self.scope, units), None) is None:
            self.units = units.copy()

    def better_than(self, units: IntArray) -> bool:
        """Whether the plan kept comes before these units, criterion by criterion."""
        return self.units is not None and self._values(self.units) < self._values(units)

    def prove(self, criterion: str, bound: float) -> None:
        """No plan has a value of this criterion below the bound; earlier criteria are not held."""
        if criterion == self.chain[0]:
            self.bound = max(self.bound, bound)

    @property
    def bound_microusd(self) -> int | None:
        """What every plan costs at least, with a margin for rounding; None when not known."""
        known = self.chain[0] == "cost" and math.isfinite(self.bound)
        return max(math.floor(self.bound * (1 - 1e-9)), 0) if known else None

    def _values(self, units: IntArray) -> tuple[float, ...]:
        return tuple(value_of(self.scope.program, units, name) for name in self.chain if name != "offers")
