"""CSV tables of measurements: cells into typed dataclasses, every mistake with its line and column.

The fields of the dataclass are the columns; a field's type (int, float or str, or None when
the cell is empty) says how its cells read. Columns may be left out, and stand in any order.
"""

from __future__ import annotations

import csv
import io
import math
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planner.errors import InputError, Place, Problem
from planner.files import StrPath, read_text

T = TypeVar("T")
LIMIT_BYTES = 20_000_000
MOST_PROBLEMS = 50  # more than a person mends in one go
_WIDEST_SHOWN = 160  # a longer line is not shown under its mistake
_LARGEST = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a table may hold."""

    kinds: Mapping[str, type]  # column -> int | float | str
    required: tuple[str, ...] = ()
    flags: Collection[str] = ()  # columns of 0 and 1
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zero_allowed: Collection[str] = ()


def kinds_of(row: type, *, besides: Collection[str] = ()) -> dict[str, type]:
    """The columns of a row class: its fields, each with the type of a filled cell."""
    hints = typing.get_type_hints(row)
    return {name: _filled(hints[name]) for name in row.__slots__ if name not in besides}  # type: ignore[attr-defined]


def _filled(hint: Any) -> type:
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    return typing.cast(type, kinds[0])


@dataclass(slots=True)
class _Reading:
    """One pass over one file."""

    file: str
    text: str
    columns: Columns
    header: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    more: int = 0

    def complain(self, reference: str, message: str, line: int, cell: int = 0, hint: str = "") -> None:
        if len(self.problems) >= MOST_PROBLEMS:
            self.more += 1
            return
        written = self.text.split("\n")[line - 1].rstrip("\r") if line else ""
        column = _column_of(written, cell)
        place = Place(file=self.file, line=line, column=column, text=written if len(written) <= _WIDEST_SHOWN else "")
        self.problems.append(Problem(reference=reference, message=message, places=(place,), hint=hint))

    def demand_none(self) -> None:
        if self.problems:
            if self.more:
                last = Problem(reference="too-many", message=f"{self.more:,} mistakes more", hint="mend these first")
                self.problems.append(last)
            raise InputError(*self.problems)


def read_table(path: StrPath, columns: Columns) -> list[tuple[int, dict[str, Any]]]:
    """Line number and typed cells (None: empty or no such column) of each row of a CSV file.

    Raises
    ------
    InputError
        The file cannot be read, is no CSV, or holds columns or cells that mean nothing; all
        mistakes at once, each with file, line and column.
    """
    reading = _Reading(file=str(path), text=read_text(path, limit_bytes=LIMIT_BYTES), columns=columns)
    rows = list(_rows(reading))
    reading.demand_none()
    return rows


def _rows(reading: _Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(reading.text, newline=""), strict=True)
    begins = 1
    try:
        reading.header = next(reader, [])
        if not _check_header(reading):
            return
        begins = reader.line_num + 1
        for cells in reader:
            if cells:
                yield begins, _typed(reading, begins, cells)
            begins = reader.line_num + 1
    except csv.Error as error:
        hint = "quote cells that hold commas, quotes or line ends; write a quote inside them twice"
        reading.complain("bad-csv", f"not CSV: {error}", min(begins, reading.text.count("\n") + 1), hint=hint)


def _check_header(reading: _Reading) -> bool:
    known, header = reading.columns.kinds, reading.header
    for number, name in enumerate(header):
        if name not in known:
            message = f"'{name[:80]}' is not a column of this table"
            reading.complain("unknown-column", message, 1, number, _column_hint(name, list(known)))
        elif name in header[:number]:
            reading.complain("duplicate-column", f"the column '{name}' stands twice", 1, number, "keep one")
    for name in reading.columns.required:
        if name not in header:
            reading.complain("missing-column", f"there is no column '{name}'", 1, 0, f"add {name} to the first line")
    return not reading.problems


def _column_hint(name: str, known: Sequence[str]) -> str:
    from planner.scenario.mistakes import closest

    if ";" in name or "\t" in name:
        return "columns are separated by commas"
    near = closest(name.strip()[:100], known)
    return f"did you mean '{near[0]}'?" if near else "columns: " + ", ".join(known)


def _typed(reading: _Reading, line: int, cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(reading.header):
        message = f"the line has {len(cells)} cells, the first line {len(reading.header)}"
        hint = "quote cells that hold commas; keep empty cells"
        reading.complain("bad-row", message, line, min(len(cells), len(reading.header)) - 1, hint)
        return {}
    row = dict.fromkeys(reading.columns.kinds)
    for number, (name, text) in enumerate(zip(reading.header, cells)):
        try:
            row[name] = _cell(name, text.strip(), reading.columns)
        except _BadCellError as bad:
            message = f"{name} is '{text[:80]}'"
            reading.complain(bad.reference, message, line, number, bad.hint)
    return row


class _BadCellError(Exception):
    def __init__(self, reference: str, hint: str) -> None:
        super().__init__(hint)
        self.reference = reference
        self.hint = hint


def _cell(name: str, text: str, columns: Columns) -> Any:
    if not text:
        return None
    kind = columns.kinds[name]
    if kind is str:
        return _word(name, text, columns)
    value = _number(text)
    if name in columns.flags:
        if value not in (0, 1):
            raise _BadCellError("bad-flag", "write 1 for yes, 0 for no, nothing for unknown")
        return int(value)
    if not 0 <= value <= _LARGEST or (value == 0 and name not in columns.zero_allowed):
        raise _BadCellError("bad-number", "a number above zero, or nothing for unknown")
    if kind is int and value != int(value):
        raise _BadCellError("bad-number", "a whole number")
    return kind(value)


def _word(name: str, text: str, columns: Columns) -> str:
    allowed = columns.choices.get(name, ())
    if allowed and text not in allowed:
        raise _BadCellError("unknown-value", "one of: " + ", ".join(allowed))
    return text


def _number(text: str) -> float:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _BadCellError("bad-number", "a plain number without unit, such as 0.85 or 2048")
    return value


def _column_of(line: str, cell: int) -> int:
    """1-based character at which a cell of a line begins; quoted commas do not count."""
    quoted, found = False, 0
    for position, character in enumerate(line):
        if found == cell:
            return position + 1
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            found += 1
    return len(line) + 1 if found == cell and cell else 1
