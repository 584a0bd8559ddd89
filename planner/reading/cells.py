"""Rows of a table in blocks: a cell may hold ends of lines, or a record as JSON; a row that is none is told."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from planner.reading.jsonlines import flat, generated, record_in
from planner.reading.source import Source

_LONGEST_CELL = 131_072
_LONGEST_ROW = 1_048_576  # bytes of a row of several lines
_MOST_LINES = 2_000  # of a row
_HEAD = 20  # rows that are looked into for records in cells


def blocks_of(source: Source) -> Iterator[tuple[str, bytes]]:
    """File and whole rows of it, about a megabyte at a time: lines that a quote holds together stay together."""
    file, rest = "", b""
    for path, block in source.line_blocks():
        if rest and path != file:
            yield file, rest
            rest = b""
        file, block, rest = path, rest + block, b""
        if block.count(b'"') % 2:
            cut = len(block)
            while cut and not block.count(b'"', cut) % 2:  # back to the last line with an odd number of quotes
                cut = block.rfind(b"\n", 0, cut - 1) + 1
            if len(block) - cut <= _LONGEST_ROW:
                block, rest = block[:cut], block[cut:]
        if block:
            yield path, block
    if rest:
        yield file, rest


def rows_in(block: bytes, separator: str, number: int, columns: int) -> Iterator[tuple[int, list[str] | None]]:
    """Line number and cells of each row; None for a row that is no CSV. Blank lines are none.

    Parameters
    ----------
    block
        Whole lines.
    separator
        Of the cells.
    number
        Of the first line.
    columns
        Cells of a row: lines that a quote holds together are one row where they give so many.  [count]
    """
    lines = block.decode("utf-8", "replace").replace("\0", "\ufffd").split("\n")[:-1]
    before = csv.field_size_limit(_LONGEST_CELL * 64)  # of the process: other tables keep theirs
    csv.field_size_limit(before)
    at = 0
    while at < len(lines):
        count = 1
        if lines[at].strip():
            csv.field_size_limit(_LONGEST_CELL * 64)
            try:
                cells, count = _row(lines, at, separator, columns)
            except csv.Error:
                cells = None
            finally:
                csv.field_size_limit(before)
            yield number + at, cells
        at += count


def _row(lines: list[str], at: int, separator: str, columns: int) -> tuple[list[str] | None, int]:
    """Cells of the row that begins at a line, and of how many lines it is."""
    if lines[at].count('"') % 2:
        reader = csv.reader((f"{line}\n" for line in islice(lines, at, at + _MOST_LINES)), delimiter=separator,
                            strict=True)  # fmt: skip
        try:
            cells = next(reader, [])
        except csv.Error:
            cells = []
        if len(cells) == columns:
            return cells, reader.line_num
    return next(csv.reader([lines[at]], delimiter=separator), None), 1


def names_in_cells(source: Source, names: Sequence[str], separator: str) -> list[str]:
    """Names of what stands in cells that hold a record each, behind those of their columns: usage.input."""
    if "{" not in source.head_text:
        return []
    head = ("\n".join(source.first_lines) + "\n").encode()
    found: dict[str, None] = {}
    for _, cells in islice(rows_in(head, separator, 1, len(names)), 1, _HEAD):
        for name, cell in zip(names, cells or ()):
            record = record_in(cell)
            found |= dict.fromkeys(f"{name}.{each}" for each in (flat(record, 4) if isinstance(record, dict) else ()))
    return list(found)


def cell_getter(names: Sequence[str], column: str) -> Callable[[Any], Any]:
    """What gives the value of a column, or of a name in the records of its cells, of a row of cells."""
    held = next((name for name in names if column not in names and column.startswith(f"{name}.")), column)
    at = names.index(held)

    def get(cells: Any) -> Any:
        text = cells[at].strip() if at < len(cells) else ""
        if held != column:
            return below(text, column[len(held) + 1 :])
        if text[:1] == "[" and text[-1:] == "]":  # ids of blocks
            try:
                return json.loads(text)
            except ValueError:
                return text  # a time in brackets, as web servers write it
        return text or None

    return get


def below(record: Any, column: str) -> Any:
    """A value by the names of the records that hold it, one after the other; names may have dots themselves."""
    record = generated(record) if isinstance(record, list) else record_in(record)
    if not isinstance(record, dict):
        return None
    if column in record:
        return record[column]
    found = (below(record[column[:at]], column[at + 1 :]) for at, sign in enumerate(column)
             if sign == "." and column[:at] in record)  # fmt: skip
    return next((value for value in found if value is not None), None)
