"""A calibration of serving for people and programs: errors on figures left out, and the constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from planner.calibrate.serving import ServingCalibrationRun
from planner.calibrate.serving_priors import SERVING_PRIORS
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.validation import percent
from planner.validate.serving import Entry
from planner.validate.serving_bars import FOLDS
from planner.validate.serving_score import score_points
from planner.validate.summary import by_name, summarise

_COLUMNS = (
    "kind", "name", "left_out", "rows", "sources", "median", "mean", "p90", "constant", "of", "value", "expected",
)  # fmt: skip


def render_serving_calibration(
    found: ServingCalibrationRun, entries: Sequence[Entry], form: str, *, width: int = 100, colour: bool = False
) -> str:
    """The report of a calibration as table, json, csv or md; `entries` are the layouts of its rows."""
    rows = serving_calibration_rows(found, entries)
    if form == "json":
        return json.render(rows)
    if form == "csv":
        return csv.render(rows, _COLUMNS)
    blocks = _blocks(rows)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


class FigureRow(TypedDict):
    """Errors of a kind of figure in one fold, as shares."""

    kind: Literal["figure"]
    name: str
    left_out: str
    rows: int
    sources: int
    median: float
    mean: float
    p90: float


class ConstantRow(TypedDict):
    """A constant of an engine, of a family, or of all."""

    kind: Literal["constant"]
    constant: str
    of: str
    value: float
    expected: float


def serving_calibration_rows(found: ServingCalibrationRun, entries: Sequence[Entry]) -> list[FigureRow | ConstantRow]:
    """One row a kind of figure and fold, and one a constant; shares and base units."""
    rows: list[FigureRow] = []
    for fold in FOLDS:
        scored = score_points(found.points, found.held_out[fold], entries)
        for kind, part in sorted(by_name(scored, lambda item: item.kind).items()):
            own = summarise(part)
            rows.append({"kind": "figure", "name": kind, "left_out": fold, "rows": own.rows, "sources": own.sources,
                         "median": own.median, "mean": own.mean, "p90": own.p90})  # fmt: skip
    rows.sort(key=lambda row: row["name"])
    return [*rows, *_constants(found)]


def _constants(found: ServingCalibrationRun) -> list[ConstantRow]:
    factors = found.factors
    rows = [_constant(name, "all", value, SERVING_PRIORS[name].value) for name, value in factors.common.items()]
    groups = [*factors.engines.items(), *factors.families.items()]
    return rows + [_constant(name, of, value, 1.0) for of, own in groups for name, value in own.items()]


def _constant(name: str, of: str, value: float, expected: float) -> ConstantRow:
    return {"kind": "constant", "constant": name, "of": of, "value": value, "expected": expected}


def _blocks(rows: Sequence[FigureRow | ConstantRow]) -> list[Block]:
    errors = [
        [row["name"], f"the {row['left_out']}", f"{row['rows']:,}", str(row["sources"]), percent(row["median"]),
         percent(row["mean"]), percent(row["p90"])]
        for row in rows if row["kind"] == "figure"
    ]  # fmt: skip
    constants = [
        [row["of"], row["constant"], f"{row['value']:.4g}", f"{row['expected']:.4g}"]
        for row in rows
        if row["kind"] == "constant"
    ]
    heads = columns("Figure", "Left out", ">rows", ">sources", ">median", ">mean", ">p90")
    return [
        Lines(lines=("Constants of serving, fitted to measured rows",), strong_first=True),
        Grid(title="Error on figures that the fit was not shown", columns=heads, rows=errors, grouped=True),
        Grid(
            title="Constants: common values, then factors on them by engine and by device family",
            columns=columns("Of", "Constant", ">value", ">expected"),
            rows=constants,
            grouped=True,
        ),
    ]
