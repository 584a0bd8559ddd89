"""The candidates of a scenario, in every output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner import units
from planner.report import rows as lists
from planner.report.rows import Field
from planner.units import format_number as number

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
        keys = list(dict.fromkeys(key for row in rows for key in row))
        return lists.render(rows, [], form=form, keys=keys)
    shown = rows if full else _cheapest(rows)
    title = f"{len(rows):,} candidates" + ("" if len(shown) == len(rows) else f", the {len(shown)} cheapest · -v: all")
    cells = [{**row, "layout": _layout(row), "load": _load(row)} for row in shown]
    return lists.render(cells, _FIELDS, form=form, title=title, width=width, colour=colour)


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


_FIELDS = (
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
