"""HiGHS asked directly, for programs that need its multipliers or its cuts: one way to set one up, quiet and bounded.

The program of a plan goes through PuLP (`pulp_adapter`); this is for the many small linear programs around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.optimize.status import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Rows of a program: entries of row i stand from starts[i] to starts[i + 1]; sides may be infinite."""

    starts: IntArray
    variables: IntArray
    values: FloatArray
    low: FloatArray
    high: FloatArray


def available() -> bool:
    """Whether HiGHS can be imported here."""
    try:
        import highspy
    except ImportError:
        return False
    return bool(highspy)


def program(
    cost: FloatArray,
    upper: FloatArray,
    lines: Lines,
    *,
    integer: NDArray[np.bool_] | None = None,
    threads: int = 1,
    time_limit_s: float | None = None,
    **settings: float,
) -> Any:
    """A solver that holds min cost · x with 0 <= x <= upper under the lines; not run yet.

    Parameters
    ----------
    integer
        Which variables are whole; none when left out.
    settings
        Options by HiGHS's own names.
    """
    import highspy

    solver = _silent()
    options: dict[str, Any] = {"threads": threads, **settings}
    if time_limit_s is not None:
        options["time_limit"] = max(time_limit_s, 0.0)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    linear, inf = highspy.HighsLp(), highspy.kHighsInf
    linear.num_col_, linear.num_row_ = len(cost), len(lines.low)
    linear.col_cost_, linear.col_lower_, linear.col_upper_ = cost, np.zeros(len(cost)), np.minimum(upper, inf)
    linear.row_lower_, linear.row_upper_ = np.maximum(lines.low, -inf), np.minimum(lines.high, inf)
    matrix = linear.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_, matrix.index_, matrix.value_ = lines.starts, lines.variables, lines.values
    if integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        linear.integrality_ = [kinds[each] for each in integer.tolist()]
    solver.passModel(linear)
    return solver


def _silent() -> Any:
    """A solver that prints nothing: from HiGHS 1.16 on one tells its version as soon as it is made.

    It does so where it is given its callbacks, before anybody can ask it not to.
    """
    import highspy

    class Silent(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Silent()


def optimum(solver: Any) -> tuple[FloatArray, FloatArray] | None:
    """Run it: the point and the multipliers of the lines; None when there is no proven optimum."""
    import highspy

    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = solver.getSolution()
    return np.array(found.col_value), np.array(found.row_dual)


def best_point(solver: Any) -> FloatArray | None:
    """Run it: the best point that was found, proven or not; None where there is none."""
    import highspy

    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return np.array(solver.getSolution().col_value)
