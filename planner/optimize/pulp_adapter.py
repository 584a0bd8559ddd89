"""PuLP 3.x and 4.x behind one face, and what HiGHS and CBC say turned into an `Outcome`.

PuLP's own status is never read alone: for HiGHS the live solver object is asked; for CBC a
time-out with a point is told from an optimum, and values are read only when there is a point.
"""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from planner.errors import Problem, StoppedError
from planner.optimize.model import Model
from planner.optimize.status import Ending, FloatArray, Outcome

SOLVERS = ("highs", "cbc")
GRACE_S = 5.0  # beyond its time limit before a solver counts as hung
CBC_SEED = 1234567  # CBC's own default; 0 would mean the time of day


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run is asked for."""

    gap: float = 0.0
    time_limit_s: float | None = None
    threads: int = 1
    seed: int = 0


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
        """Solve; never raises for what the solver does."""
        if options.time_limit_s is None:
            return self._run(model, options)
        answer: list[Outcome] = []
        worker = threading.Thread(target=lambda: answer.append(self._run(model, options)), daemon=True)
        worker.start()
        worker.join(options.time_limit_s + GRACE_S)
        return answer[0] if answer else Outcome(ending=Ending.HANG, detail=f"{self.name} did not come back in time")

    def _run(self, model: Model, options: Options) -> Outcome:
        try:
            problem, variables = to_pulp(model)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stats = problem.solve(self._solver(options))
            read = _read_highs if self.solver == "highs" else _read_cbc
            return read(problem, variables, stats)
        except Exception as error:  # a solver may fail in any way; what it did is checked by the caller
            return Outcome(ending=Ending.ERROR, detail=f"{type(error).__name__}: {error}"[:300])

    def _solver(self, options: Options) -> Any:
        import pulp

        common: dict[str, Any] = {"msg": False, "gapRel": options.gap, "timeLimit": options.time_limit_s}
        # with "threads 1" the CBC inside PuLP 3 now and then sleeps for 10 s: one thread is its default
        if self.solver == "highs" or options.threads > 1:
            common["threads"] = options.threads
        if self.solver == "highs":
            # absolute gap and tolerances far below one micro-dollar at the model's scale
            return pulp.HiGHS(
                **common,
                gapAbs=1e-9,
                random_seed=options.seed,
                output_flag=False,
                mip_feasibility_tolerance=1e-9,
                primal_feasibility_tolerance=1e-9,
                dual_feasibility_tolerance=1e-9,
            )
        tolerances = ["primalT 1e-9", "dualT 1e-9", "increment 1e-9", f"randomSeed {CBC_SEED + options.seed}"]
        if _major() < 4:
            # the deprecation notice of the bundled CBC is for PuLP's users, not for ours
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return pulp.PULP_CBC_CMD(**common, gapAbs=1e-9, options=tolerances)
        return pulp.COIN_CMD(**common, gapAbs=1e-9, options=tolerances)

    def _refusal(self) -> Problem | None:
        if self.solver not in SOLVERS:
            return Problem(
                reference="unknown-solver",
                message=f"there is no solver called {self.solver!r}",
                hint=f"use one of {', '.join(SOLVERS)}",
            )
        if self.solver == "highs":
            ready, way = _has_module("highspy"), "pip install highspy, or use --solver cbc"
        else:
            ready, way = _has_cbc(), "pip install 'pulp[cbc]' (Python 3.12 or newer), or use --solver highs"
        if ready:
            return None
        return Problem(reference="solver-missing", message=f"the solver {self.solver} is not installed", hint=way)

    def _version(self) -> str:
        if self.solver == "highs":
            return _installed("highspy")
        return _installed("cbcbox") if _major() >= 4 else f"of PuLP {pulp_version()}"


def pulp_version() -> str:
    """Version of the PuLP that is installed."""
    return _installed("pulp")


def to_pulp(model: Model) -> tuple[Any, list[Any]]:
    """The model in PuLP: the model of record. Names are generated, so none can collide."""
    import pulp

    problem = pulp.LpProblem("plan", pulp.LpMinimize)
    variables = [
        problem.add_variable(name, 0, upper, "Integer" if whole else "Continuous")
        for name, upper, whole in zip(model.names, model.upper.tolist(), model.integer.tolist())
    ]
    costs = [(variable, cost) for variable, cost in zip(variables, model.objective.tolist()) if cost]
    problem.setObjective(_sum(costs) if costs else _sum([(variables[0], 0.0)]))
    for line in model.lines:
        terms = [(variables[v], c) for v, c in zip(line.variables.tolist(), line.coefficients.tolist())]
        if line.low == line.high:
            problem.addConstraint(_sum(terms) == line.low, line.name)
        elif math.isfinite(line.high):
            problem.addConstraint(_sum(terms) <= line.high, line.name)
        else:
            problem.addConstraint(_sum(terms) >= line.low, line.name)
    return problem, variables


def _sum(terms: list[tuple[Any, float]]) -> Any:
    import pulp

    return pulp.lpSum_vars_coefs(terms) if _major() >= 4 else pulp.LpAffineExpression(terms)


def _read_highs(problem: Any, variables: list[Any], stats: Any) -> Outcome:
    """HiGHS is asked itself; PuLP calls a time-out optimal."""
    import highspy

    solver, said = problem.solverModel, highspy.HighsModelStatus
    status, info = solver.getModelStatus(), solver.getInfo()
    endings = {
        said.kOptimal: Ending.OPTIMAL,
        said.kInfeasible: Ending.INFEASIBLE,
        # every variable is bounded, so it can only be infeasible
        said.kUnboundedOrInfeasible: Ending.INFEASIBLE,
        said.kUnbounded: Ending.UNBOUNDED,
        said.kTimeLimit: Ending.LIMIT,
        said.kInterrupt: Ending.LIMIT,
        said.kIterationLimit: Ending.LIMIT,
        said.kSolutionLimit: Ending.LIMIT,
    }
    ending = endings.get(status, Ending.ERROR)
    has_point = info.primal_solution_status == 2 and ending in (Ending.OPTIMAL, Ending.LIMIT)
    bound = float(info.mip_dual_bound) if any(v.cat == "Integer" for v in variables) else None
    return Outcome(
        ending=ending,
        values=_values(variables) if has_point else None,
        objective=float(info.objective_function_value) if has_point else None,
        bound=bound if bound is not None and math.isfinite(bound) else None,
        detail=str(status),
    )


def _read_cbc(problem: Any, variables: list[Any], stats: Any) -> Outcome:
    import pulp

    if _major() >= 4:
        said = pulp.LpSolveStatus
        status, has_point = stats.status, bool(stats.has_solution)
        endings = {
            said.Optimal: Ending.OPTIMAL,
            said.GapLimit: Ending.GAP,
            said.Infeasible: Ending.INFEASIBLE,
            said.Unbounded: Ending.UNBOUNDED,
            said.TimeLimit: Ending.LIMIT,
            said.NodeLimit: Ending.LIMIT,
            said.Interrupted: Ending.LIMIT,
            said.Stopped: Ending.LIMIT,
        }
        ending = endings.get(status, Ending.ERROR)
    else:
        status = (problem.status, problem.sol_status)
        found = pulp.LpSolutionIntegerFeasible
        endings = {
            (pulp.LpStatusOptimal, pulp.LpSolutionOptimal): Ending.OPTIMAL,
            (pulp.LpStatusOptimal, found): Ending.LIMIT,
            (pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound): Ending.LIMIT,
            (pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible): Ending.INFEASIBLE,
            # CBC's "Integer infeasible"
            (pulp.LpStatusInfeasible, pulp.LpSolutionNoSolutionFound): Ending.INFEASIBLE,
            (pulp.LpStatusUnbounded, pulp.LpSolutionUnbounded): Ending.UNBOUNDED,
        }
        ending = endings.get(status, Ending.ERROR)
        has_point = problem.status == pulp.LpStatusOptimal
    has_point = has_point and ending in (Ending.OPTIMAL, Ending.GAP, Ending.LIMIT)
    objective = problem.objective.value() if has_point else None
    return Outcome(
        ending=ending,
        values=_values(variables) if has_point else None,
        objective=float(objective) if objective is not None else None,
        detail=str(status),
    )


def _values(variables: list[Any]) -> FloatArray:
    # a variable that the solver did not mention is a hole in the answer, not a zero
    return np.array([math.nan if v.varValue is None else float(v.varValue) for v in variables], dtype=np.float64)


def _major() -> int:
    return int(pulp_version().split(".")[0])


@cache  # asked for every line of a model
def _installed(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _has_module(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _has_cbc() -> bool:
    import pulp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool((pulp.PULP_CBC_CMD if _major() < 4 else pulp.COIN_CMD)(msg=False).available())
