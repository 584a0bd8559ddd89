"""Names in tables of traffic: buckets, offers, and rows that stand twice."""

from __future__ import annotations

from typing import Any

from planner.csvtable import Table

PAIR = ("input_bucket", "output_bucket")
_LONGEST_NAME = 80


def bucket_name(table: Table, line: int, row: dict[str, Any]) -> str | None:
    """The name of the bucket of a row; None, and a mistake noted, when it cannot be one.

    Parameters
    ----------
    table
        Takes the mistakes.
    line
        Where the row begins, from 1.
    row
        Typed cells by column; one that is missing or wrong has been noted by the table.
    """
    pair = [row.get(column) for column in PAIR]
    good = [name is not None and is_name(table, line, column, name) for column, name in zip(PAIR, pair)]
    if not all(good):
        return None
    return "/".join(str(name) for name in pair)


def is_name(table: Table, line: int, column: str, name: str) -> bool:
    """Whether a text may name a bucket or an offer; a mistake is noted when not.

    Parameters
    ----------
    table
        Takes the mistake.
    line
        Where the row begins, from 1.
    column
        Of the text; those of buckets may hold no slash.
    name
        The text.
    """
    barred = "/" if column in PAIR else ""
    good = name.isprintable() and len(name) <= _LONGEST_NAME and not (barred and barred in name)
    if not good:
        hint = f"a name without control characters{' and /' if barred else ''}, of at most {_LONGEST_NAME} characters"
        table.complain("unsafe-name", f"{column} is {name[:_LONGEST_NAME]!r}", line, column, hint)
    return good


def repeated(table: Table, line: int, what: str, key: str, seen: dict[str, int], column: str = PAIR[0]) -> bool:
    """Whether a key was seen in an earlier row; a mistake is noted when so.

    Parameters
    ----------
    table
        Takes the mistake.
    line
        Where the row begins, from 1.
    what
        The row as the message calls it.
    key
        What only one row may have.
    seen
        Line of the first row of each key; a new key is put in.
    column
        Where the mistake is shown.
    """
    if key not in seen:
        seen[key] = line
        return False
    table.complain("duplicate-row", f"{what} stands in line {seen[key]} already", line, column, "keep one of the two")
    return True
