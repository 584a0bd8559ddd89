"""What runs models, what a model came to, and the best plan seen so far: whatever ends a run early, there is an answer.

Every plan that stands up to the exact check is offered: a first one from before the solver, those of earlier stages,
those that a solver streamed before it was stopped. Beside it stands the bound that is proven of the first criterion.
"""

from __future__ import annotations

import math
from typing import Protocol

from planner.candidates.program import IntArray
from planner.carriers import dataclass
from planner.optimize.check import violations
from planner.optimize.criteria import value_of
from planner.optimize.model import Model
from planner.optimize.scope import Scope
from planner.optimize.status import Ending, Options, Outcome


class Adapter(Protocol):
    """Anything that runs models: PuLP with a solver, or a stand-in for tests."""

    @property
    def name(self) -> str:
        """Solver and version."""

    @property
    def modelling(self) -> str:
        """Modelling layer and version."""

    @property
    def sure_of_infeasible(self) -> bool:
        """Whether its "infeasible" is taken as it is, or put to the next solver as well."""

    def run(self, model: Model, options: Options) -> Outcome:
        """Solve a model; never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model came to after the exact check."""

    ending: Ending
    units: IntArray | None = None
    bound: float = -math.inf  # unscaled
    solver: str = ""
    detail: str = ""


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
