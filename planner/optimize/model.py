"""A mixed-integer program as plain arrays: what the builder writes and every solver reads.

One of these feeds PuLP (`pulp_adapter.to_pulp`), the model of record, and the linear
relaxation (`relax`), so the two can never differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.optimize.status import FloatArray, IntArray

LARGEST, SMALLEST = 1e9, 1e-9  # coefficients outside are refused after scaling


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """low <= sum(coefficient * variable) <= high."""

    name: str
    variables: IntArray
    coefficients: FloatArray
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What a flow variable is of: a share, or whole slices, of a bucket on a column at a level of load."""

    column: int
    bucket: int
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a line of a routing sums up: a bucket of a task at a level, in one role of the split or in both."""

    task: str
    level: int
    bucket: int
    decode: bool


@dataclass(slots=True, kw_only=True)
class Model:
    """Variables (all bounded), an objective to minimise, and lines.

    The first `len(columns)` variables are the units of `columns`. True objective value =
    `objective` value / `scale`.
    """

    columns: IntArray
    names: list[str] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    scale: float = 1.0
    flows: dict[int, Flow] = field(default_factory=dict)  # by variable
    routes: dict[int, Route] = field(default_factory=dict)  # by number of the line
    used: dict[int, int] = field(default_factory=dict)  # column -> variable that says that it is used

    def add(self, prefix: str, uppers: Iterable[float], *, integer: bool) -> IntArray:
        """New variables from 0 to their upper bounds, named by prefix and number; their indices."""
        start = len(self.names)
        for number, upper in enumerate(uppers, start + 1):
            self.names.append(f"{prefix}_{number:06d}")
            self.upper.append(float(upper))
            self.integer.append(integer)
            self.objective.append(0.0)
        return np.arange(start, len(self.names))

    def line(
        self,
        prefix: str,
        variables: Sequence[int] | IntArray,
        coefficients: Sequence[float] | FloatArray,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> None:
        """Add a line; its name is the prefix and a running number."""
        values = np.asarray(coefficients, dtype=np.float64)
        nonzero = values != 0
        self.lines.append(
            Line(
                name=f"{prefix}_{len(self.lines) + 1:04d}",
                variables=np.asarray(variables, dtype=np.int64)[nonzero],
                coefficients=values[nonzero],
                low=low,
                high=high,
            )
        )

    def unfit(self) -> str:
        """Why no solver should see this: a coefficient that is not finite or badly scaled; empty when fit."""
        parts = [np.asarray(self.objective), *(line.coefficients for line in self.lines)]
        for line in self.lines:
            if math.isnan(line.low) or math.isnan(line.high):
                return f"the bounds of {line.name} are not numbers"
        values = np.abs(np.concatenate(parts))
        values = values[values != 0]
        if not np.isfinite(values).all():
            return "a coefficient is not finite"
        if len(values) and (values.max() > LARGEST or values.min() < SMALLEST):
            return f"coefficients span {values.min():.1e} to {values.max():.1e} after scaling"
        return ""
