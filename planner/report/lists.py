"""Lists of plain rows in every output format, among them candidates of a scenario and the scenarios that ship."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner import units
from planner.carriers import dataclass
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Column, Grid, Lines
from planner.units import format_number as number

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


_SHOWN = 40


def render_candidates(
    rows: Sequence[Mapping[str, Any]], form: str, *, full: bool = False, width: int = 100, colour: bool = False
) -> str:
    """Rows as the search evaluated them; the table shows the cheapest of each workload, csv and json show all.

    Parameters
    ----------
    rows
        As `candidate_rows` gives them.
    form
        table, json, csv or md.
    full
        Every row in table and md, too.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form in ("csv", "json"):
        return render(rows, [], form=form, keys=csv.columns_of(rows))
    shown = rows if full else _cheapest(rows)
    title = f"{len(rows):,} candidates" + ("" if len(shown) == len(rows) else f", the {len(shown)} cheapest · -v: all")
    cells = [{**row, "layout": _layout(row), "load": _load(row)} for row in shown]
    return render(cells, _CANDIDATE_FIELDS, form=form, title=title, width=width, colour=colour)


def _cheapest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    ranked = sorted(rows, key=lambda row: row.get("cost_microusd") or 0)
    names = list(dict.fromkeys(row.get("workload") for row in rows))
    each = max(1, _SHOWN // max(1, len(names)))
    return [row for name in names for row in [row for row in ranked if row.get("workload") == name][:each]]


def _layout(row: Mapping[str, Any]) -> str:
    axes = [f"{axis}{row[axis]}" for axis in ("dp", "tp", "pp", "vpp", "cp", "ep") if row[axis] not in ("", 1)]
    policies = [str(row[name]) for name in ("sharding", "recompute") if row[name] not in ("", "none")]
    micro = [f"mb{row['micro_batch']}"] if row["micro_batch"] != "" else []
    replicas = [f"{row['replicas']} ×"] if row["replicas"] else []
    return " ".join([*replicas, *(axes or ["tp1"]), *policies, *micro])


def _load(row: Mapping[str, Any]) -> str:
    if row["replicas"]:
        return f"{number(row['users'])} users" if row.get("users") else f"{number(row['requests_per_s'])} req/s"
    late = row.get("hours_p90")
    return f"{row['hours']:,.1f} h" + (f" ({late:,.1f} at p90)" if late and late != row["hours"] else "")


_CANDIDATE_FIELDS = (
    Field(key="workload", head="Workload"),
    Field(key="offer", head="Offer"),
    Field(key="count", head="Count", show="{:,}".format, right=True),
    Field(key="devices", head="Devices", show="{:,}".format, right=True),
    Field(key="layout", head="Layout"),
    Field(key="needed_bytes", head="needed", show=units.format_bytes, right=True),
    Field(key="usable_bytes", head="usable", show=units.format_bytes, right=True),
    Field(key="load", head="Time / rate", right=True),
    Field(key="cost_microusd", head="Cost", show=units.format_money, right=True),
    Field(key="tie", head="", show=lambda tied: "tie" if tied else ""),
)


_MANY = 50  # jobs and fleets, from which on solving takes minutes


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


_SCENARIO_FIELDS = (
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
    return render(shown, _SCENARIO_FIELDS, form=form, title=title, width=width, colour=colour)
