"""Rows of tables by the meaning of their columns; cells may hold ends of lines, and files of a table may differ."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from planner.reading.columns import english, plain
from planner.reading.jsonlines import JsonLines, flat, records_of
from planner.reading.kinds import Skips
from planner.reading.requests import header_of, separator_of
from planner.reading.source import Source

Names = Mapping[str, Sequence[str]]  # role -> plain names of its column, the surest first
_EMPTY = {"null", "none", "nan", "n/a", "[n/a]", "[not supported]"}
_MOST_COLUMNS = 5_000


def places_of(header: Sequence[str], roles: Names) -> dict[str, int]:
    """Role -> place of its column."""
    stems = [plain(name) for name in header[:_MOST_COLUMNS]]
    meant = [plain(english(name)) for name in header[:_MOST_COLUMNS]]
    found: dict[str, int] = {}
    for role, names in roles.items():
        place = next((each.index(name) for name in names for each in (stems, meant) if name in each), None)
        if place is not None:
            found[role] = place
    return found


def names_of(source: Source) -> tuple[list[str], str]:
    """Columns of a table and their separator; of JSON records their keys, those below others too, and ""."""
    names, separator = header_of(source)
    if names:
        return names, separator
    return list(dict.fromkeys(name for record in records_of(source)[:20] for name in flat(record))), ""


def records_by_role(source: Source, roles: Names, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    """Place and values by role of each JSON record, as `rows_of` gives rows.

    Parameters
    ----------
    source
        JSON: a record a line, an array of records, or records below a key.
    roles
        Role -> plain names of its key, the surest first; a role without a key is left out of a record.
    skipped
        Takes what was no record, once the last record was given.
    """
    lines = JsonLines(source)
    for number, record in lines:
        cells = flat(record)
        values = list(cells.values())
        places = places_of(list(cells), roles)
        yield number, {role: "" if values[at] is None else told(str(values[at])) for role, at in places.items()}
    for reason, (count, first) in lines.skipped.reasons.items():
        skipped.add(reason, first, count)


def rows_of(
    source: Source, roles: Names, needed: Sequence[str], skipped: Skips, *, quoted: bool = True
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells by role of each row, "" for a needed one that has no column.

    A first line that stands again (of a further file) may order the columns anew.

    Parameters
    ----------
    source
        Tables with a first line of names.
    roles
        Role -> plain names of its column, the surest first.
    needed
        Roles that are given of every row; a row that names columns of all of them is a first line.
    skipped
        Takes rows that do not fit the first line.
    quoted
        Cells may stand in quotes, with ends of lines in them; else a quote is a letter like others.
    """
    separator, header, places = "", [""], dict[str, int]()
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE

    def lines() -> Iterator[str]:
        for line in source.lines():
            yield line.replace("\0", "\ufffd") + "\n"

    every = lines()
    before = 0
    for first in every:
        before += 1
        if first.strip():
            separator = separator_of(first)
            with contextlib.suppress(csv.Error):  # a first line that is no row: no row fits it
                header = next(csv.reader([first], delimiter=separator, quoting=quoting), [""])
            places = places_of(header, roles)
            break
    reader = csv.reader(every, delimiter=separator or ",", quoting=quoting)
    end = 0
    while True:
        begin = end
        try:
            cells = next(reader, None)
        except csv.Error:
            end = reader.line_num
            skipped.add("no row of a table", before + begin + 1, end - begin)
            continue
        end = reader.line_num
        if cells is None:
            return
        line = before + begin + 1
        if not any(cell.strip() for cell in cells):
            continue
        named = all(role in places for role in needed)  # else what came before were no names of columns
        again = {} if named and set(header).isdisjoint(cells) else places_of(cells, roles)
        if all(role in again for role in needed) and 2 * len(again) >= len(places):  # a partition may be called gpu
            header, places = cells, again
        elif len(cells) != len(header):
            skipped.add("more or fewer cells than columns", line, end - begin)
        else:
            yield line, dict.fromkeys(needed, "") | {role: told(cells[place]) for role, place in places.items()}


def told(cell: str) -> str:
    """A cell without blanks; "" for the words that say that there is nothing."""
    cell = cell.strip()
    return "" if cell.lower() in _EMPTY else cell


def csv_text(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> str:
    """A table of our own; a name that a spreadsheet would calculate with begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_still(cell) for cell in row])
    return text.getvalue()


def _still(cell: Any) -> Any:
    if isinstance(cell, float):
        return f"{cell:.9g}"
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in tuple("=+-@\t\r") else cell


def printable(text: str, most: int = 80) -> str:
    """A name from a file as it is shown: on one line, and not endless."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:most])
