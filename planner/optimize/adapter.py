"""A solver as the planner knows it: its name and version, whether it is there, and what asks the solver process."""

from __future__ import annotations

from functools import cache

from planner.carriers import dataclass
from planner.errors import Problem, StoppedError
from planner.optimize import process
from planner.optimize.model import Model
from planner.optimize.pulp_adapter import SOLVERS, has_module, version_of
from planner.optimize.status import FloatArray, Options, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PulpAdapter:
    """Runs models through PuLP with one named solver."""

    solver: str

    @property
    def name(self) -> str:
        """Solver and version, as printed in the plan."""
        return f"{'HiGHS' if self.solver == 'highs' else 'CBC'} {self._version()}".strip()

    @property
    def modelling(self) -> str:
        """Modelling layer and version."""
        return f"PuLP {pulp_version()}"

    @property
    def sure_of_infeasible(self) -> bool:
        """CBC's word is checked: it reads models with 12 digits and has called tight ones infeasible."""
        return self.solver == "highs"

    def available(self) -> bool:
        """Whether the solver can be run here."""
        return self._refusal() is None

    def require(self) -> None:
        """Raise `StoppedError` naming the way out when the solver is missing."""
        refusal = self._refusal()
        if refusal is not None:
            raise StoppedError(refusal)

    def run(self, model: Model, options: Options) -> Outcome:
        """Solve in the solver process; never raises for what the solver does."""
        return process.solve(model, self.solver, options)

    def improve(self, model: Model, options: Options, start: FloatArray | None) -> Outcome | None:
        """A large model solved in parts by HiGHS on arrays; None with another solver.

        Parameters
        ----------
        model
            Jobs are lines of the family ``one``, pools and periods of the family ``limit``.
        options
            For all parts together.
        start
            Values of all variables at a plan, (variables,); None = none is known.
        """
        return process.improve(model, options, start) if self.solver == "highs" else None

    def _refusal(self) -> Problem | None:
        if self.solver not in SOLVERS:
            return Problem(
                reference="unknown-solver",
                message=f"there is no solver called {self.solver!r}",
                hint=f"use one of {', '.join(SOLVERS)}",
            )
        if self.solver == "highs":
            ready, way = has_module("highspy"), "pip install highspy, or use --solver cbc"
        else:
            ready, way = _has_cbc(), "pip install 'pulp[cbc]' (Python 3.12 or newer), or use --solver highs"
        if ready:
            return None
        return Problem(reference="solver-missing", message=f"the solver {self.solver} is not installed", hint=way)

    def _version(self) -> str:
        if self.solver == "highs":
            return _installed("highspy")
        return _installed("cbcbox") if int(pulp_version().split(".")[0]) >= 4 else f"of PuLP {pulp_version()}"


def pulp_version() -> str:
    """Version of the PuLP that is installed."""
    return _installed("pulp")


@cache
def _installed(package: str) -> str:
    """Version of a package; the solver process has looked it up, if it runs, and spares us the import for it."""
    known = process.version(package)
    return known if known is not None else version_of(package)


def _has_cbc() -> bool:
    """The solver process knows; one that cannot be started has its own words for that later."""
    try:
        return "cbc" in process.solvers()
    except OSError:
        return True
