"""CSV tables: cells into typed values, every mistake with its line and column, all of them at once.

Columns stand in any order. `read_table` gives rows of cells (None: empty or no such column);
`Table` is for readers that find more mistakes in what the cells say together.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from planner.carriers import dataclass
from planner.errors import InputError, Place, Problem
from planner.files import StrPath, as_text, read_bytes
from planner.spelling import closest

LIMIT_BYTES = 20_000_000
MOST_PROBLEMS = 50  # more than a person mends in one go
_WIDEST_SHOWN = 160  # a longer line is not shown under its mistake
_LARGEST = 1e18
_FLAGS = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0}  # spreadsheets write words


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a table may hold."""

    kinds: Mapping[str, type]  # column -> int | float | str
    required: Collection[str] = ()  # columns that must be there
    filled: Collection[str] = ()  # columns whose cells must not be empty
    flags: Collection[str] = ()  # columns of 0 and 1
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zero_allowed: Collection[str] = ()
    most: Mapping[str, float] = field(default_factory=dict)  # largest number of a column
    most_rows: int = 1_000_000
    others: bool = False  # columns of other names are passed over


def kinds_of(row: type, *, besides: Collection[str] = ()) -> dict[str, type]:
    """The columns of a row class: its fields, each with the type of a filled cell."""
    hints = typing.get_type_hints(row)
    return {name: _filled(hints[name]) for name in row.__slots__ if name not in besides}  # type: ignore[attr-defined]


def _filled(hint: Any) -> type:
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    return typing.cast(type, kinds[0])


@dataclass(slots=True, kw_only=True)
class Table:
    """One file: its text, its first line, and what was found wrong with it."""

    file: str
    text: str
    sha256: str
    columns: Columns
    header: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    more: int = 0
    ignored: list[str] = field(default_factory=list)  # columns passed over
    _lines: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: StrPath, columns: Columns, *, limit_bytes: int = LIMIT_BYTES) -> Table:
        """The file as text; its cells are not looked at yet.

        Parameters
        ----------
        path
            Names the file in messages.
        columns
            What it may hold.
        limit_bytes
            Length up to which it is read.  [B]

        Raises
        ------
        InputError
            It cannot be read, is too long or is not UTF-8.
        """
        data = read_bytes(path, limit_bytes=limit_bytes)
        return cls(file=str(path), text=as_text(data, str(path)), sha256=hashlib.sha256(data).hexdigest(),
                   columns=columns)  # fmt: skip

    def complain(self, reference: str, message: str, line: int, cell: int | str = 0, hint: str = "") -> None:
        """Note a mistake at a cell, by its number or its column; after the 50th they are only counted.

        Parameters
        ----------
        reference
            Of the problem, in kebab-case.
        message
            What is wrong.
        line
            From 1; 0 = the whole file.
        cell
            From 0, or a column of the header; one that is not there counts as the first.
        hint
            What to do about it; empty: none.
        """
        if len(self.problems) >= MOST_PROBLEMS:
            self.more += 1
            return
        written = self._written()[line - 1] if line else ""
        if isinstance(cell, str):
            cell = self.header.index(cell) if cell in self.header else 0
        column = _column_of(written, cell)
        place = Place(file=self.file, line=line, column=column, text=written if len(written) <= _WIDEST_SHOWN else "")
        self.problems.append(Problem(reference=reference, message=message, places=(place,), hint=hint))

    def _written(self) -> list[str]:
        """The lines of the text, ended as the CSV reader counts them."""
        self._lines = self._lines or re.split(r"\r\n|\r|\n", self.text)
        return self._lines

    def demand_none(self) -> None:
        """Raise what was found wrong."""
        if self.problems:
            if self.more:
                last = Problem(reference="too-many", message=f"{self.more:,} mistakes more", hint="mend these first")
                self.problems.append(last)
            raise InputError(*self.problems)

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Line number and typed cells of each row; a row with a mistake lacks the wrong cells."""
        for number, (line, cells) in enumerate(self.lines(), start=1):
            if number > self.columns.most_rows:
                self.complain("too-large", f"the table has more than {self.columns.most_rows:,} rows", line, 0,
                              "split it, or thin it out")  # fmt: skip
                return
            yield line, _typed(self, line, cells)

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of each row as they are written, when the first line is right."""
        reader = csv.reader(io.StringIO(self.text, newline=""), strict=True)
        begins = 1
        try:
            self.header = [name.strip() for name in next(reader, [])]
            if not _check_header(self):
                return
            begins = reader.line_num + 1
            for cells in reader:
                if cells:
                    yield begins, cells
                begins = reader.line_num + 1
        except csv.Error as error:
            hint = "quote cells that hold commas, quotes or line ends; write a quote inside them twice"
            self.complain("bad-csv", f"not CSV: {error}", min(begins, len(self._written())), hint=hint)


def read_table(path: StrPath, columns: Columns) -> list[tuple[int, dict[str, Any]]]:
    """Line number and typed cells (None: empty or no such column) of each row of a CSV file.

    Raises
    ------
    InputError
        The file cannot be read, is no CSV, or holds columns or cells that mean nothing; all
        mistakes at once, each with file, line and column.
    """
    table = Table.open(path, columns)
    rows = list(table.rows())
    table.demand_none()
    return rows


def _check_header(table: Table) -> bool:
    known, header = table.columns.kinds, table.header
    for number, name in enumerate(header):
        if name not in known and table.columns.others and not _misspelt(table, name):
            table.ignored.append(name)
        elif name not in known:
            message = f"'{name[:80]}' is not a column of this table"
            table.complain("unknown-column", message, 1, number, _column_hint(name, list(known)))
        elif name in header[:number]:
            table.complain("duplicate-column", f"the column '{name}' stands twice", 1, number, "keep one")
    unknown = [name for name in header if name not in known and name not in table.ignored]
    meant = {near for name in unknown for near in closest(name[:100], known)[:1]}
    for name in table.columns.required:
        if name not in header and name not in meant:
            table.complain("missing-column", f"there is no column '{name}'", 1, 0, f"add {name} to the first line")
    return not table.problems


def _misspelt(table: Table, name: str) -> bool:
    """Whether a name is near to a needed column that is not there."""
    missing = [needed for needed in table.columns.required if needed not in table.header]
    return bool(closest(name[:100], missing))


def _column_hint(name: str, known: Sequence[str]) -> str:
    if ";" in name or "\t" in name:
        return "columns are separated by commas"
    near = closest(name.strip()[:100], known)
    return f"did you mean '{near[0]}'?" if near else "columns: " + ", ".join(known)


def _typed(table: Table, line: int, cells: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(table.header):
        message = f"the line has {len(cells)} cells, the first line {len(table.header)}"
        hint = "quote cells that hold commas; keep empty cells"
        table.complain("bad-row", message, line, min(len(cells), len(table.header)) - 1, hint)
        return {}
    row = dict.fromkeys(table.columns.kinds)
    for number, (name, text) in enumerate(zip(table.header, cells)):
        if name in table.ignored:
            continue
        try:
            row[name] = _cell(name, text.strip(), table.columns)
        except _BadCellError as bad:
            message = f"{name} is '{text[:80]}'"
            table.complain(bad.reference, message, line, number, bad.hint)
    return row


class _BadCellError(Exception):
    def __init__(self, reference: str, hint: str) -> None:
        super().__init__(hint)
        self.reference = reference
        self.hint = hint


def _cell(name: str, text: str, columns: Columns) -> Any:
    if not text:
        if name in columns.filled:
            raise _BadCellError("empty-cell", f"give every row its {name}, or leave the row out")
        return None
    kind = columns.kinds[name]
    if kind is str:
        return _word(name, text, columns)
    if name in columns.flags:
        if (flag := _FLAGS.get(text.lower())) is None:
            raise _BadCellError("bad-flag", "write 1 for yes, 0 for no, nothing for unknown")
        return flag
    value = _number(text)
    _in_range(name, value, columns)
    if kind is int and value != int(value):
        raise _BadCellError("bad-number", "a whole number")
    return kind(value)


def _in_range(name: str, value: float, columns: Columns) -> None:
    least = "of zero or more" if name in columns.zero_allowed else "above zero"
    most = columns.most.get(name)
    if not 0 <= value <= (most or _LARGEST) or (value == 0 and name not in columns.zero_allowed):
        unknown = "" if name in columns.filled else ", or nothing for unknown"
        limit = "" if most is None else f", at most {most:g}"
        raise _BadCellError("bad-number", f"a number {least}{limit}{unknown}")


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
