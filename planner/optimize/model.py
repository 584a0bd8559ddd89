"""A mixed-integer program as plain arrays: what the builder writes and every solver reads.

One of these feeds PuLP (`pulp_adapter.to_pulp`), the model of record, and the linear
relaxation (`relax`), so the two can never differ. Lines are kept as compressed rows; names
and single lines are made when somebody asks for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.optimize.status import FloatArray, IntArray

LARGEST, SMALLEST = 1e9, 1e-9  # coefficients outside are refused after scaling
Numbers = Sequence[int] | Sequence[float] | IntArray | FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """low <= sum(coefficient * variable) <= high."""

    name: str
    variables: IntArray
    coefficients: FloatArray
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """All lines as compressed rows: line r has the entries `starts[r]:starts[r + 1]`."""

    kinds: tuple[str, ...]  # (lines,) the family of each, first part of its name
    starts: IntArray  # (lines + 1,)
    variables: IntArray  # (entries,)
    coefficients: FloatArray  # (entries,)
    low: FloatArray  # (lines,) -inf = none
    high: FloatArray  # (lines,) inf = none

    def name(self, number: int) -> str:
        """Name of a line: its family and its number."""
        return f"{self.kinds[number]}_{number + 1:04d}"

    def line(self, number: int) -> Line:
        """One line by itself."""
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Line(
            name=self.name(number),
            variables=self.variables[part],
            coefficients=self.coefficients[part],
            low=float(self.low[number]),
            high=float(self.high[number]),
        )


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


def _floats() -> FloatArray:
    return np.zeros(0)


@dataclass(slots=True, kw_only=True)
class Model:
    """Variables (all bounded), an objective to minimise, and lines.

    The first `len(columns)` variables are the units of `columns`. True objective value =
    `objective` value / `scale`.
    """

    columns: IntArray
    upper: FloatArray = field(default_factory=_floats)  # (variables,) from 0 to this
    integer: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))  # (variables,)
    objective: FloatArray = field(default_factory=_floats)  # (variables,)
    scale: float = 1.0
    flows: dict[int, Flow] = field(default_factory=dict)  # by variable
    routes: dict[int, Route] = field(default_factory=dict)  # by number of the line
    used: dict[int, int] = field(default_factory=dict)  # column -> variable that says that it is used
    _prefixes: list[tuple[str, int]] = field(default_factory=list)  # of variables: family and how many
    _parts: list[Lines] = field(default_factory=list)  # lines in the order in which they came
    _line_count: int = 0

    @classmethod
    def of(
        cls,
        *,
        columns: IntArray,
        families: Sequence[tuple[str, int]],
        upper: FloatArray,
        integer: NDArray[np.bool_],
        objective: FloatArray,
        lines: Lines,
    ) -> Model:
        """A model from its arrays.

        Parameters
        ----------
        columns
            Columns of the program whose units are the first variables.
        families
            First parts of the names of the variables, each with how many follow one another.
        upper, integer, objective
            (variables,)
        lines
            All of them.
        """
        made = cls(columns=columns, upper=upper, integer=integer, objective=objective)
        made._prefixes, made._parts, made._line_count = list(families), [lines], len(lines.kinds)
        return made

    @property
    def families(self) -> list[tuple[str, int]]:
        """First parts of the names of the variables, each with how many follow one another."""
        return self._prefixes

    @property
    def variable_count(self) -> int:
        """Number of variables."""
        return len(self.upper)

    @property
    def line_count(self) -> int:
        """Number of lines."""
        return self._line_count

    @property
    def names(self) -> list[str]:
        """Names of the variables: family and number, x_000001 first."""
        families = [prefix for prefix, count in self._prefixes for _ in range(count)]
        return [f"{prefix}_{number:06d}" for number, prefix in enumerate(families, 1)]

    @property
    def lines(self) -> list[Line]:
        """Every line by itself; use `table` for many."""
        table = self.table()
        return [table.line(number) for number in range(self._line_count)]

    def table(self) -> Lines:
        """All lines as compressed rows."""
        if len(self._parts) != 1:
            self._parts = [_joined(self._parts)]
        return self._parts[0]

    def mentioned(self) -> NDArray[np.bool_]:
        """Variables that stand in a line or have a cost."""
        said = np.asarray(self.objective != 0)
        said[self.table().variables] = True
        return said

    def add(self, prefix: str, uppers: Numbers, *, integer: bool) -> IntArray:
        """New variables from 0 to their upper bounds, named by prefix and number; their indices.

        Parameters
        ----------
        prefix
            First part of the names.
        uppers
            One for each new variable.
        integer
            Whether they must be whole.
        """
        start, new = len(self.upper), np.asarray(uppers, dtype=np.float64)
        self.upper = np.concatenate([self.upper, new])
        self.integer = np.concatenate([self.integer, np.full(len(new), integer)])
        self.objective = np.concatenate([self.objective, np.zeros(len(new))])
        self._prefixes.append((prefix, len(new)))
        return np.arange(start, start + len(new))

    def line(
        self,
        prefix: str,
        variables: Sequence[int] | IntArray,
        coefficients: Numbers,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> None:
        """Add a line; its name is the prefix and a running number.

        Parameters
        ----------
        prefix
            Its family.
        variables
            Index of each entry.
        coefficients
            Of each entry; those of zero are left out.
        low, high
            Sides; -inf or inf = none.
        """
        self.add_lines(
            prefix,
            [0, len(variables)],
            variables,
            coefficients,
            low=np.array([float(low)]),
            high=np.array([float(high)]),
        )

    def add_lines(
        self,
        prefix: str,
        starts: Sequence[int] | IntArray,
        variables: Sequence[int] | IntArray,
        coefficients: Numbers,
        *,
        low: FloatArray | float = -math.inf,
        high: FloatArray | float = math.inf,
    ) -> None:
        """Add lines of one family as compressed rows; entries of zero are left out.

        Parameters
        ----------
        prefix
            Their family.
        starts
            Line r has the entries `starts[r]:starts[r + 1]`, (lines + 1,).
        variables
            Index of each entry, (entries,).
        coefficients
            Of each entry, (entries,).
        low, high
            Sides of each line, (lines,), or one for all; -inf or inf = none.
        """
        ends, values = np.asarray(starts, dtype=np.int64), np.asarray(coefficients, dtype=np.float64)
        names, count = np.asarray(variables, dtype=np.int64), len(ends) - 1
        nonzero = values != 0
        if not nonzero.all():
            ends = np.concatenate([[0], np.cumsum(nonzero)])[ends]
            names, values = names[nonzero], values[nonzero]
        self._parts.append(
            Lines(
                kinds=(prefix,) * count,
                starts=ends,
                variables=names,
                coefficients=values,
                low=np.broadcast_to(np.asarray(low, dtype=np.float64), (count,)),
                high=np.broadcast_to(np.asarray(high, dtype=np.float64), (count,)),
            )
        )
        self._line_count += count

    def unfit(self) -> str:
        """Why no solver should see this: a coefficient that is not finite or badly scaled; empty when fit."""
        table = self.table()
        unknown = np.flatnonzero(np.isnan(table.low) | np.isnan(table.high))
        if len(unknown):
            return f"the bounds of {table.name(int(unknown[0]))} are not numbers"
        values = np.abs(np.concatenate([self.objective, table.coefficients]))
        values = values[values != 0]
        if not np.isfinite(values).all():
            return "a coefficient is not finite"
        if len(values) and (values.max() > LARGEST or values.min() < SMALLEST):
            return f"coefficients span {values.min():.1e} to {values.max():.1e} after scaling"
        return ""


def _joined(parts: list[Lines]) -> Lines:
    """Lines one after another."""
    if not parts:
        return Lines(
            kinds=(),
            starts=np.zeros(1, dtype=np.int64),
            variables=np.zeros(0, dtype=np.int64),
            coefficients=_floats(),
            low=_floats(),
            high=_floats(),
        )
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    return Lines(
        kinds=tuple(kind for part in parts for kind in part.kinds),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        variables=np.concatenate([part.variables for part in parts]),
        coefficients=np.concatenate([part.coefficients for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
    )
