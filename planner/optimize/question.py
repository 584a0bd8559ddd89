"""A model as a header and arrays for the way to the solver process, and back."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from planner.optimize.model import Lines, Model
from planner.optimize.wire import Arrays


def header_of(model: Model) -> dict[str, Any]:
    """The families of variables and lines, each with how many follow one another."""
    kinds = [(kind, sum(1 for _ in same)) for kind, same in groupby(model.table().kinds)]
    return {"variables": model.families, "lines": kinds}


def arrays_of(model: Model) -> Arrays:
    """Numbers of variables and lines."""
    table = model.table()
    rows = {"starts": table.starts, "entries": table.variables, "coefficients": table.coefficients}
    sides = {"low": table.low, "high": table.high}
    return {"upper": model.upper, "integer": model.integer, "objective": model.objective, **rows, **sides}


def model_of(header: dict[str, Any], arrays: Arrays) -> Model:
    """The model again, without what only the planner knows of it: columns, flows and routes."""
    lines = Lines(
        kinds=tuple(kind for kind, count in header["lines"] for _ in range(count)),
        starts=arrays["starts"],
        variables=arrays["entries"],
        coefficients=arrays["coefficients"],
        low=arrays["low"],
        high=arrays["high"],
    )
    return Model.of(
        columns=np.arange(len(arrays["upper"])),
        families=[(prefix, count) for prefix, count in header["variables"]],
        upper=arrays["upper"],
        integer=arrays["integer"],
        objective=arrays["objective"],
        lines=lines,
    )
