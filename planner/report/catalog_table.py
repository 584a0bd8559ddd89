"""Catalogs beside each other over many scenarios, in every output format."""

from __future__ import annotations

from itertools import groupby

from planner.plan.parts import said_of
from planner.report import compare_words as words
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns, warned
from planner.report.sweep import why
from planner.sweeps.catalogs import Beside, beside, flat_rows
from planner.sweeps.model import SweepDocument


def render_catalog_table(document: SweepDocument, form: str, *, width: int = 100, colour: bool = False) -> str:
    """A sweep over scenarios and catalogs as table, json, csv or md.

    Parameters
    ----------
    document
        The sweep.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        rows = flat_rows(document)
        return csv.render(rows, list(rows[0]))
    blocks = catalog_table_blocks(document)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def catalog_table_blocks(document: SweepDocument) -> list[Block]:
    """A line for each scenario on each catalog, all scenarios together, and why some have no answer."""
    found = list(beside(document))
    catalogs = list(dict.fromkeys(one.catalog for one in found))
    scenarios = list(dict.fromkeys(one.scenario for one in found))
    many = "" if len(scenarios) == 1 else "s"
    counted = f"{len(scenarios):,} scenario{many} on {len(catalogs):,} catalogs, each held against {catalogs[0]}"
    lines = [counted, *(f"case {value}" for value in _case(document))]
    rows = [row for _, mine in groupby(found, lambda one: one.scenario) for row in _rows(list(mine))]
    heads = columns("Scenario", "Catalog", ">Total", ">Difference", ">Change", ">Devices", "Decision")
    table = Grid(columns=heads, rows=rows + _together(found, catalogs, len(scenarios)))
    said = [(f"{one.scenario} on {one.catalog}", one.point["warnings"]) for one in found if one.point["decision"]]
    return [Lines(lines=tuple(lines), strong_first=True), table, why(document), warned(said_of(said))]


def _case(document: SweepDocument) -> list[str]:
    return [value for axis in document["axes"] if axis["name"] == "case" for value in axis["values"]]


def _rows(mine: list[Beside]) -> list[list[str]]:
    """The catalogs of one scenario, which is named once."""
    rows = []
    for number, one in enumerate(mine):
        point = one.point
        devices = "–" if point["devices"] is None else f"{point['devices']:,}"
        problem = point["problem"]
        decision = point["decision"] or (problem["reference"] if problem else point["status"])
        if number and decision == one.first["decision"]:
            decision = "the same"
        money = _money(point["cost_microusd"], one.first["cost_microusd"], first=not number)
        rows.append([one.scenario if not number else "", one.catalog, *money, devices, decision])
    return rows


def _together(found: list[Beside], catalogs: list[str], scenarios: int) -> list[list[str]]:
    """What all scenarios cost that have a plan on every catalog; none where there are fewer than two."""
    costs: dict[str, list[int]] = {}
    for one in found:
        if one.point["cost_microusd"] is not None:
            costs.setdefault(one.scenario, []).append(one.point["cost_microusd"])
    whole = [mine for mine in costs.values() if len(mine) == len(catalogs)]
    if len(whole) < 2:
        return []
    sums = [sum(mine[number] for mine in whole) for number in range(len(catalogs))]
    name = "all together" if len(whole) == scenarios else f"the {len(whole):,} with a plan on each"
    return [
        [name if not number else "", catalog, *_money(cost, sums[0], first=not number), "", ""]
        for number, (catalog, cost) in enumerate(zip(catalogs, sums))
    ]


def _money(cost: int | None, first_cost: int | None, *, first: bool) -> list[str]:
    """Total, difference from the first catalog, and its share."""
    total = words.amount(None if cost is None else cost / 1e6, "USD")
    if first:
        return [total, "", ""]
    if cost is None or first_cost is None:
        return [total, "–", ""]
    difference = cost - first_cost
    told = words.signed(difference / 1e6, "USD") if difference else "no change"
    return [total, told, words.percent(difference / first_cost) if first_cost else ""]
