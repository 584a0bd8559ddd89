"""One builder feeds PuLP and the arrays: the matrix that PuLP hands to the solver is the one of the arrays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pulp
import pytest

from planner.candidates.program import Program
from planner.optimize.build import build
from planner.optimize.model import Model
from planner.optimize.pulp_adapter import to_pulp
from planner.optimize.scope import scope_of
from tests.optimize.brute import random_program
from tests.optimize.brute_fleets import KINDS, random_fleet
from tests.optimize.brute_supplies import random_supplied
from tests.optimize.instances import mix, static

QUESTIONS = {
    **{f"rows {seed}": random_program(seed) for seed in range(12)},
    **{f"calendar {seed}": random_supplied(seed) for seed in range(12)},
    **{kind: random_fleet(kind, 1) for kind in KINDS},
    "static": static(10, 100),
    "mix": mix(16, 4),
}
Matrix = dict[str, Any]


def of_arrays(model: Model) -> Matrix:
    """Everything that the arrays say, by name."""
    table, names = model.table(), model.names
    seen = set(np.flatnonzero(model.mentioned()).tolist())
    entries = {
        (table.name(number), names[variable]): value
        for number in range(model.line_count)
        for variable, value in zip(table.line(number).variables.tolist(), table.line(number).coefficients.tolist())
    }
    return {
        "entries": entries,
        "sides": {table.name(n): (float(table.low[n]), float(table.high[n])) for n in range(model.line_count)},
        "costs": {names[v]: float(model.objective[v]) for v in seen},
        "upper": {names[v]: float(model.upper[v]) for v in seen},
        "integer": {names[v]: bool(model.integer[v]) for v in seen},
    }


def of_highs(solver: Any, columns: list[str], rows: list[str]) -> Matrix:
    """What HiGHS holds, by the names given."""
    lp = solver.getLp()
    matrix = lp.a_matrix_
    starts, index, value = (np.array(each) for each in (matrix.start_, matrix.index_, matrix.value_))
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    entries = {}
    for major in range(len(starts) - 1):
        for place in range(starts[major], starts[major + 1]):
            row, column = (int(index[place]), major) if by_column else (major, int(index[place]))
            entries[rows[row], columns[column]] = float(value[place])
    whole = [each == highspy.HighsVarType.kInteger for each in lp.integrality_] or [False] * len(columns)
    return {
        "entries": entries,
        "sides": {
            name: tuple(-np.inf if v <= -1e30 else np.inf if v >= 1e30 else float(v) for v in sides)
            for name, *sides in zip(rows, lp.row_lower_, lp.row_upper_)
        },
        "costs": dict(zip(columns, map(float, lp.col_cost_))),
        "upper": dict(zip(columns, map(float, lp.col_upper_))),
        "integer": dict(zip(columns, whole)),
    }


@pytest.mark.parametrize("criterion", ["cost", "finish"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_pulp_hands_over_the_arrays(name: str, criterion: str) -> None:
    model = _model(QUESTIONS[name], criterion)
    problem, _ = to_pulp(model)
    problem.solve(pulp.HiGHS(msg=False, timeLimit=0.01))
    table = model.table()
    rows = [table.name(number) for number in range(model.line_count)]
    expected = of_arrays(model)
    # what stands in no line and costs nothing is not handed over, though PuLP 4 lists it
    columns = [v.name for v in problem.variables() if v.name in expected["costs"]]
    assert of_highs(problem.solverModel, columns, rows) == expected


@pytest.mark.parametrize("name", QUESTIONS)
def test_model_files_say_the_same(name: str, tmp_path: Path) -> None:
    """Written as MPS and read again: the same names, sides and numbers to the 12 digits that the format keeps."""
    model = _model(QUESTIONS[name], "cost")
    problem, _ = to_pulp(model)
    problem.writeMPS(str(tmp_path / "model.mps"))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(tmp_path / "model.mps")) == highspy.HighsStatus.kOk
    lp = solver.getLp()
    read, expected = of_highs(solver, list(lp.col_names_), list(lp.row_names_)), of_arrays(model)
    assert read["integer"] == expected["integer"]
    for part in ("entries", "costs", "upper"):
        assert read[part].keys() == expected[part].keys()
        for key, value in expected[part].items():
            assert read[part][key] == pytest.approx(value, rel=1e-11), (part, key)
    for key, sides in expected["sides"].items():
        assert read["sides"][key] == pytest.approx(sides, rel=1e-11), key


def _model(question: Program, criterion: str) -> Model:
    scope = scope_of(question)
    if not question.rows:
        return build(scope, criterion)
    return build(scope.settle("devices", int(question.devices.sum())), criterion)


def test_highs_asked_directly_prints_nothing() -> None:
    """A release of it tells its version where it is made: in the midst of a plan that somebody's program reads."""
    told = """
import numpy as np
from planner.optimize.highs import Lines, optimum, program
one = np.array([0])
lines = Lines(starts=np.array([0, 1]), variables=one, values=one + 1.0, low=one + 2.0, high=one + 3.0)
assert optimum(program(one + 1.0, one + 9.0, lines))[0] == 2
"""
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
