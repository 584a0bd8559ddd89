"""Scenarios that ship, as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.report import rows as lists
from planner.report.rows import Field

_MANY = 50  # jobs and fleets, from which on solving takes minutes


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


_FIELDS = (
    Field(key="name", head="Scenario"),
    Field(key="title", head="What it asks"),
    Field(key="training", head="Trains", show=_some),
    Field(key="serving", head="Serves", show=_some),
)


def render_scenarios(rows: Sequence[Mapping[str, Any]], form: str, *, width: int = 100, colour: bool = False) -> str:
    """The scenarios that ship, one a row; in csv the names of workloads are separated by blanks.

    Parameters
    ----------
    rows
        Name, title, and the names of jobs and fleets of each (`Shipped`).
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    kinds = ("training", "serving")
    long = [row["name"] for row in rows if sum(len(row[kind]) for kind in kinds) > _MANY]
    title = (
        f"{len(rows)} scenarios; name one wherever a scenario is taken: plan solve {rows[0]['name']}" if rows else ""
    )
    title += "".join(f"; {name} takes minutes" for name in long)
    shown = [{**row, **{kind: " ".join(row[kind]) for kind in kinds}} for row in rows] if form == "csv" else rows
    return lists.render(shown, _FIELDS, form=form, title=title, width=width, colour=colour)
