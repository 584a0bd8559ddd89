"""PuLP 3.x and 4.x behind one face, and what HiGHS and CBC say turned into an `Outcome`.

All of it runs in the solver process (`worker`), which alone imports PuLP; the planner has `PulpAdapter` (`adapter`).

PuLP's own status is never read alone: for HiGHS the live solver object is asked; for CBC a
time-out with a point is told from an optimum, and values are read only when there is a point.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from planner.optimize.model import Model
from planner.optimize.status import Ending, FloatArray, IntArray, Options, Outcome

SOLVERS = ("highs", "cbc")
Better = Callable[[FloatArray, float], None]
# HiGHS 1.15.1 has called feasible programs infeasible, its presolve where coefficients are nearly multiples of each
# other (tests/optimize/test_tolerances.py): its "no" is asked again without presolve and at its own tolerance, and a
# point found there counts when it keeps every line to 1e-9 once rounded.
TIGHT, LOOSE = 1e-9, 1e-6
# CBC 2.10.3 has called a worse point the optimum of models of a dozen variables which its preprocessing solves outright
# (tests/optimize/test_boxed.py); models so small go without it.
FEW = 60
CBC_SEED = 1234567  # CBC's own default; 0 would mean the time of day


def run_here(model: Model, solver: str, options: Options, better: Better | None = None) -> Outcome:
    """Solve in this process, which is the solver process; never raises for what the solver does.

    Parameters
    ----------
    model
        The model of record.
    solver
        ``highs`` or ``cbc``.
    options
        For each run; HiGHS has a second one where it failed or finds nothing feasible.
    better
        Called with values and objective of every point that HiGHS finds on its way; None = nobody listens.
    """
    try:
        outcome = _run(model, solver, options, better, TIGHT)
        if solver == "highs" and outcome.ending in (Ending.INFEASIBLE, Ending.ERROR):
            again = _run(model, solver, options, better, LOOSE)
            stands = again.values is not None and _within_lines(model, again.values)
            if stands or (outcome.ending is Ending.ERROR and again.values is None):
                outcome = again
        return outcome
    except Exception as error:  # a solver may fail in any way; what it did is checked by the caller
        return Outcome(ending=Ending.ERROR, detail=f"{type(error).__name__}: {error}"[:300])


def _run(model: Model, solver: str, options: Options, better: Better | None, tolerance: float) -> Outcome:
    problem, variables = to_pulp(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats = problem.solve(solver_of(solver, options, _Listener(problem, variables, better), tolerance))
    return (_read_highs if solver == "highs" else _read_cbc)(problem, variables, stats)


def solver_of(solver: str, options: Options, listener: _Listener, tolerance: float = TIGHT) -> Any:
    """PuLP's object for a solver, set up for exact work.

    Parameters
    ----------
    solver
        ``highs``; anything else is CBC.
    options
        Gap, time limit, threads and seed.
    listener
        Is called by HiGHS; CBC goes by the number of its variables alone.
    tolerance
        Of HiGHS, which presolves only at `TIGHT`; CBC has its own.
    """
    import pulp

    common: dict[str, Any] = {"msg": False, "gapRel": options.gap, "timeLimit": options.time_limit_s}
    # with "threads 1" the CBC inside PuLP 3 now and then sleeps for 10 s: one thread is its default
    if solver == "highs" or options.threads > 1:
        common["threads"] = options.threads
    if solver == "highs":
        # absolute gap and tolerances far below one micro-dollar at the model's scale
        return pulp.HiGHS(
            **common,
            gapAbs=1e-9,
            random_seed=options.seed,
            output_flag=False,
            callbackTuple=(listener.hear, None),
            callbacksToActivate=listener.kinds(),
            presolve="choose" if tolerance == TIGHT else "off",
            mip_feasibility_tolerance=tolerance,
            primal_feasibility_tolerance=tolerance,
            dual_feasibility_tolerance=tolerance,
        )
    tolerances = ["primalT 1e-9", "dualT 1e-9", "increment 1e-9", f"randomSeed {CBC_SEED + options.seed}"]
    tolerances += ["preprocess off"] if len(listener.variables) <= FEW else []
    if _major() < 4:
        # the deprecation notice of the bundled CBC is for PuLP's users, not for ours
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pulp.PULP_CBC_CMD(**common, gapAbs=1e-9, options=tolerances)
    return pulp.COIN_CMD(**common, gapAbs=1e-9, options=tolerances)


class _Listener:
    """Hears of every better point that HiGHS finds and passes it on in our order of the variables."""

    def __init__(self, problem: Any, variables: list[Any], better: Better | None) -> None:
        self.problem, self.variables, self.better = problem, variables, better
        self.order: IntArray | None = None

    def kinds(self) -> list[Any]:
        """Callbacks to ask for."""
        import highspy

        return [highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution] if self.better else []

    def hear(self, kind: Any, message: str, out: Any, given: Any, user: Any) -> None:
        """HiGHS has a better point."""
        if self.order is None:
            own = {variable.name: number for number, variable in enumerate(self.variables)}
            # PuLP 4 leaves out of the solver's model what is in no line
            asked = getattr(self.problem, "exported_variables", self.problem.variables)()
            self.order = np.array([own[variable.name] for variable in asked])
        values = np.zeros(len(self.variables))
        values[self.order] = out.mip_solution
        if self.better is not None:
            self.better(values, float(out.objective_function_value))


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


def _within_lines(model: Model, values: FloatArray) -> bool:
    """Whether a point with its integers rounded keeps every line: to 1e-9 of its terms, to 1e-6 where flows are in."""
    table, rounded = model.table(), np.where(model.integer, np.rint(values), values)
    line = np.repeat(np.arange(model.line_count), np.diff(table.starts))
    terms = table.coefficients * rounded[table.variables]
    sums = np.bincount(line, weights=terms, minlength=model.line_count)
    sizes = np.bincount(line, weights=np.abs(terms), minlength=model.line_count)
    parts = np.bincount(line, weights=~model.integer[table.variables], minlength=model.line_count) > 0
    slack = sizes * np.where(parts, LOOSE, TIGHT)
    return bool(((sums <= table.high + slack) & (sums >= table.low - slack)).all())


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


@cache  # asked for every line of a model
def _major() -> int:
    return int(version_of("pulp").split(".")[0])


def version_of(package: str) -> str:
    """Version of a package; nothing where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def versions_here() -> dict[str, str]:
    """Versions of what the solver process works with."""
    return {package: version_of(package) for package in ("pulp", "highspy", "cbcbox")}


def has_module(name: str) -> bool:
    """Whether a package can be imported."""
    from importlib.util import find_spec

    return find_spec(name) is not None


def installed_here(solver: str) -> bool:
    """Whether a solver can be run by this process, which is the solver process."""
    if solver == "highs":
        return has_module("highspy")
    if not has_module("pulp"):
        return False
    import pulp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool((pulp.PULP_CBC_CMD if _major() < 4 else pulp.COIN_CMD)(msg=False).available())
