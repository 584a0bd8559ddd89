"""What runs models, and what a model came to."""

from __future__ import annotations

import math
from typing import Protocol

from planner.candidates.program import IntArray
from planner.carriers import dataclass
from planner.optimize.model import Model
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
