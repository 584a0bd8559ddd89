"""Sweeps in every output format, and catalogs beside each other over many scenarios."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from planner import units
from planner.files import read_package_text
from planner.plan.parts import said_of
from planner.report import compare_words as words
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Headline, Items, Lines, columns, warned
from planner.report.escape import terminal
from planner.report.notebook import blocks_html
from planner.sweeps.axes import Border, Side, turns
from planner.sweeps.document import Asked, AxisTold, Beside, Point, SweepDocument, beside, flat_comparison, flat_rows

MOST_ROWS = 200  # of a table for people
MOST_WHY = 10  # sentences about questions without an answer
TEMPLATE = "report/templates/sweep.html"
MOST_CELLS = 40_000  # of all maps together
# told apart by those who do not see red or green, too (Okabe and Ito, 2008), each light enough for black text
TINTS = ("#9ad0f3", "#f7c173", "#8fd6bd", "#f5ef9b", "#eab3d0", "#c9c9c9", "#e8a27f", "#b5b8f0")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def render_sweep(
    document: SweepDocument,
    form: str,
    *,
    width: int = 100,
    colour: bool = False,
    full: bool = False,
    elapsed_s: float | None = None,
    journal: str = "",
) -> str:
    """A sweep document as table, json, csv, md or html.

    Parameters
    ----------
    full
        Every row in the table, not just the first ones.
    journal
        Where answers are kept for another run; told in the table.
    """
    if form == "json":
        return json.render(document)
    if form == "csv":
        rows = flat_rows(document)
        return csv.render(rows, csv.columns_of(rows))
    if form == "html":
        return render_sweep_page(document)
    blocks = sweep_blocks(document, full=full, elapsed_s=elapsed_s)
    if form == "md":
        return markdown.draw(blocks)
    if journal:
        blocks.append(Lines(lines=(f" Answers are kept in {journal}: a run that was stopped goes on from there",)))
    return text.draw(blocks, width=width, style=text.Style(colour))


def parquet_bytes(document: SweepDocument) -> bytes:
    """The rows as a parquet file.

    Raises
    ------
    ImportError
        No library that writes such files is installed.
    """
    import io

    import pandas as pd

    into = io.BytesIO()
    pd.DataFrame(flat_rows(document)).to_parquet(into, index=False)
    return into.getvalue()


def sweep_blocks(document: SweepDocument, *, full: bool = False, elapsed_s: float | None = None) -> list[Block]:
    """What a sweep found, most important first.

    Parameters
    ----------
    document
        The sweep.
    full
        Every row, not just the first ones.
    elapsed_s
        How long it took; None = not told.  [s]
    """
    return [
        _title(document),
        _headline(document, elapsed_s),
        _grid(document, full),
        *_borders(document),
        why(document),
        warned(
            said_of([(_of(point), point["warnings"]) for point in document["points"] if point["cost_usd"] is not None])
        ),
    ]


def _of(point: Point) -> str:
    return " · ".join(point["values"]) or question_words(point["question"])


def _title(document: SweepDocument) -> Block:
    name = document["name"] + (f" (case {document['case']})" if document["case"] else "")
    title = f"{name} · {document['title']}" if document["title"] else name
    catalog = document["provenance"]["catalog"]
    return Lines(
        lines=(title, f"catalog {catalog['name']} {catalog['as_of']} (sha256 {catalog['sha256'][:8]}…)"),
        strong_first=True,
    )


def _headline(document: SweepDocument, elapsed_s: float | None) -> Block:
    counted = document["counted"]
    parts = [f"{counted['questions']:,} questions", f"{counted['plans']:,} plans"]
    if counted["infeasible"]:
        parts.append(f"{counted['infeasible']:,} proven impossible")
    if counted["without_answer"]:
        parts.append(f"{counted['without_answer']:,} without an answer")
    decisions = {point["decision"] for point in document["points"] if point["decision"]}
    right = (f"{len(decisions):,} decision{'s' if len(decisions) != 1 else ''}",) if decisions else ()
    seconds = f" ({elapsed_s:.1f} s)" if elapsed_s is not None else ""
    tone = {"optimal": "good", "feasible": "fair"}.get(document["status"], "bad")
    return Headline(word="SWEEP", text=" · ".join(parts) + seconds, right=right, tone=tone)


def _grid(document: SweepDocument, full: bool) -> Block:
    points = document["points"]
    shown = points if full else points[:MOST_ROWS]
    heads = [axis["name"] for axis in document["axes"]] or ["Question"]
    held = any("standing" in point for point in points)
    rows = [
        [*(point["values"] if document["axes"] else [question_words(point["question"])]), *_cells(point, held)]
        for point in shown
    ]
    notes: tuple[str, ...] = (*_held_notes(points),)
    if len(shown) < len(points):
        notes += (f"the first {len(shown):,} of {len(points):,} rows: -v, -o csv and -o json have all",)
    heads += [">Cost", *([">Regret"] if held else []), ">Devices", ">Finish", "Decision"]
    return Grid(columns=columns(*heads), rows=rows, notes=notes)


def _held_notes(points: Sequence[Point]) -> list[str]:
    """What the column of regret is, and why it is missing."""
    held = [stood for point in points if (stood := point.get("standing")) is not None]
    if not held:
        return []
    notes = [f"regret: what the plan of {held[0]['since']} costs at the prices of a row, above the best plan there"]
    problems = {f"{one['problem']['message']} ({one['problem']['hint']})": None for one in held if one["problem"]}
    return notes + list(problems)[:MOST_WHY]


def _cells(point: Point, held: bool) -> list[str]:
    finish, problem, stood = point["finish_hours"], point["problem"], point.get("standing")
    return [
        money(point["cost_microusd"]),
        *([money(stood["regret_microusd"] if stood else None)] if held else []),
        "–" if point["devices"] is None else f"{point['devices']:,}",
        "–" if finish is None else units.format_duration(finish * 3600),
        point["decision"] or (problem["reference"] if problem else point["status"]),
    ]


def question_words(question: Asked) -> str:
    """A question without axes in one line."""
    parts = [*question["settings"], *question["prices"]]
    named = {name: question.get(name) for name in ("scenario", "case", "catalog", "until")}
    parts += [f"{name}={value}" for name, value in named.items() if value]
    if question["seed"] is not None:
        parts.append(f"seed={question['seed']}")
    return ", ".join(parts) or "as it is"


def money(microusd: int | None) -> str:
    """Money, or a dash."""
    return "–" if microusd is None else units.format_money(microusd)


def _borders(document: SweepDocument) -> list[Block]:
    borders = document["borders"]
    if not borders:
        return []
    rows = [
        [border["axis"], fixed_words(border), _side(border["low"]), _side(border["high"])]
        for border in borders[:MOST_ROWS]
    ]
    notes = ["both sides of each are solved and proven"]
    if len(borders) > MOST_ROWS:
        notes.append(f"the first {MOST_ROWS:,} of {len(borders):,}: -o json has all")
    return [Grid(columns=columns("Axis", "At", "Up to", "From"), rows=rows, title="Borders", notes=tuple(notes))]


def fixed_words(border: Border) -> str:
    """Where on the other axes a border lies."""
    return ", ".join(f"{name} {value}" for name, value in border["fixed"].items()) or "–"


def _side(side: Side) -> str:
    return f"{side['value']}: {side['decision']}"


def why(document: SweepDocument) -> Block:
    """Why questions have no answer, each reason once."""
    said: dict[str, int] = {}
    for point in document["points"]:
        if point["problem"] is not None:
            problem = point["problem"]
            line = f"{problem['reference']}: {problem['message']}" + (
                f" ({problem['hint']})" if problem["hint"] else ""
            )
            said[line] = said.get(line, 0) + 1
    lines = [f"{count:,} × {line}" for line, count in list(said.items())[:MOST_WHY]]
    if len(said) > MOST_WHY:
        lines.append(f"{len(said) - MOST_WHY:,} other reasons: each row has its own")
    return Items(title="Without an answer", items=tuple(lines), tone="fair")


def render_sweep_page(document: SweepDocument) -> str:
    """The page; every text of a scenario in it is escaped."""
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(read_package_text(TEMPLATE))
    marks = _marks(document)
    page: str = template.render(
        title=terminal(f"Sweep: {document['name']}"),
        legend=[{"mark": mark, "tint": tint, "text": terminal(decision)} for decision, (mark, tint) in marks.items()],
        maps=_maps(document, marks),
        left_out=math.prod(len(axis["values"]) for axis in document["axes"]) > MOST_CELLS,
        section=blocks_html(sweep_blocks(document)),
    )
    return page + "\n"


def _marks(document: SweepDocument) -> dict[str, tuple[str, str]]:
    """A letter and a tint for each decision, in the order in which they are met."""
    found: dict[str, tuple[str, str]] = {}
    for point in document["points"]:
        if (decision := _decided(point)) not in found:
            number = len(found)
            mark = LETTERS[number % len(LETTERS)] + (str(number // len(LETTERS)) if number >= len(LETTERS) else "")
            found[decision] = (mark, TINTS[number % len(TINTS)])
    return found


def _decided(point: Point) -> str:
    problem = point["problem"]
    return point["decision"] or (f"no answer: {problem['reference']}" if problem else point["status"])


def _maps(document: SweepDocument, marks: dict[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """One map for every value of the axes before the last two; of one axis, or of none, a single line."""
    axes = document["axes"]
    if not axes or math.prod(len(axis["values"]) for axis in axes) > MOST_CELLS:
        return []
    none: AxisTold = {"name": "", "values": [""]}
    *before, rows, columns = axes if len(axes) > 1 else [none, *axes]
    high, wide = len(rows["values"]), len(columns["values"])
    maps = []
    for number, fixed in enumerate(itertools.product(*[axis["values"] for axis in before])):
        points = document["points"][number * high * wide : (number + 1) * high * wide]
        maps.append(
            {
                "caption": terminal(", ".join(f"{axis['name']} {value}" for axis, value in zip(before, fixed))),
                "rows_name": terminal(rows["name"]),
                "columns_name": terminal(columns["name"]),
                "heads": [terminal(value) for value in columns["values"]],
                "rows": [
                    {
                        "head": terminal(value),
                        "cells": [_cell(points, row, column, wide, marks) for column in range(wide)],
                    }
                    for row, value in enumerate(rows["values"])
                ],
            }
        )
    return maps


def _cell(points: list[Point], row: int, column: int, wide: int, marks: dict[str, tuple[str, str]]) -> dict[str, Any]:
    point = points[row * wide + column]
    mark, tint = marks[_decided(point)]
    left = column > 0 and turns(points[row * wide + column - 1], point)
    above = row > 0 and turns(points[(row - 1) * wide + column], point)
    return {
        "mark": mark,
        "tint": tint,
        "cost": money(point["cost_microusd"]),
        "edges": " ".join(name for name, there in (("l", left), ("t", above)) if there),
        "title": terminal(f"{question_words(point['question'])}: {_decided(point)}, {money(point['cost_microusd'])}"),
    }


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
        rows = flat_comparison(document)
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
