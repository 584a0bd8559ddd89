"""A sweep as one HTML page: a heat map with the borders of the decision, and the tables. Works offline."""

from __future__ import annotations

import itertools
import math
from typing import Any

from planner.files import read_package_text
from planner.report.escape import terminal
from planner.report.notebook import blocks_html
from planner.report.sweep import money, question_words, sweep_blocks
from planner.sweeps.borders import turns
from planner.sweeps.model import AxisTold, Point, SweepDocument

TEMPLATE = "report/templates/sweep.html"
MOST_CELLS = 40_000  # of all maps together
# told apart by those who do not see red or green, too (Okabe and Ito, 2008), each light enough for black text
TINTS = ("#9ad0f3", "#f7c173", "#8fd6bd", "#f5ef9b", "#eab3d0", "#c9c9c9", "#e8a27f", "#b5b8f0")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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
