"""Lists of plain rows (candidates, offers, models) in every output format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.carriers import dataclass
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Column, Grid, Lines

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column: its key in the row, its head for people, and how a value reads."""

    key: str
    head: str
    show: Callable[[Any], str] = str
    right: bool = False


def render(
    rows: Sequence[Row],
    fields: Sequence[Field],
    *,
    form: str,
    title: str = "",
    width: int = 100,
    colour: bool = False,
    keys: Sequence[str] | None = None,
) -> str:
    """Rows as table, csv, json or md.

    Parameters
    ----------
    rows
        Plain rows; json has all of each.
    fields
        Columns of table and md; a cell is empty where a row lacks the key.
    form
        table, json, csv or md.
    title
        First line of table and md; "" = none.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    keys
        Columns of csv; None = those of the fields.
    """
    if form == "json":
        return json.render(list(rows))
    if form == "csv":
        return csv.render(rows, keys or [field.key for field in fields])
    blocks: list[Block] = [Lines(lines=(title,), strong_first=True)] if title else []
    columns = tuple(Column(head=field.head, right=field.right) for field in fields)
    blocks.append(Grid(columns=columns, rows=[[_cell(row, field) for field in fields] for row in rows]))
    if form == "md":
        return markdown.draw(blocks)
    return text.draw(blocks, width=width, style=text.Style(colour))


def _cell(row: Row, field: Field) -> str:
    value = row.get(field.key)
    return "" if value is None else field.show(value)
