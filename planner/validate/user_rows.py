"""A user's table of measurements: a wrong cell costs its row and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from planner.csvtable import Columns, Table
from planner.files import StrPath


class Named(Protocol):
    """A row with a name of its own."""

    @property
    def name(self) -> str:
        """The id, or the line when there is none."""
        ...


Row = TypeVar("Row", bound=Named)


def rows_that_can_be_read(
    path: StrPath, columns: Columns, make: Callable[..., Row], contradiction: Callable[[Row], str]
) -> tuple[tuple[Row, ...], dict[str, str], tuple[str, ...]]:
    """Rows of a table in their order, what is wrong with the others by name, and columns of other names.

    Parameters
    ----------
    make
        A row of its cells, and of the file and line where it stands.
    contradiction
        What a row says twice and differently; "" where it agrees with itself.

    Raises
    ------
    InputError
        No file, no CSV, or a needed column is missing.
    """
    table = Table.open(path, replace(columns, others=True))
    kept: list[Row] = []
    refused: dict[str, str] = {}
    for line, cells in table.rows():
        if table.problems:
            name = str(cells.get("id") or f"line {line}")
            refused[name] = "; ".join(problem.message for problem in table.problems)
            table.problems.clear()
            continue
        row = make(**cells, file=str(path), line=line)
        if wrong := contradiction(row):
            refused[row.name] = wrong
        else:
            kept.append(row)
    table.demand_none()
    return tuple(kept), refused, tuple(table.ignored)
