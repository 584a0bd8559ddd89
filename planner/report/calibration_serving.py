"""A calibration of serving for people and programs: errors on figures left out, and the constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from planner.calibrate.serving import ServingCalibrationRun
from planner.calibrate.serving_gather import folds_of
from planner.calibrate.serving_priors import SERVING_PRIORS
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.validation_tables import percent
from planner.validate.serving_bars import errors_of_fold
from planner.validate.serving_entries import Entry

_COLUMNS = (
    "kind", "name", "left_out", "rows", "configurations", "campaigns", "median", "mean", "p90", "coverage", "constant",
    "of", "value", "expected",
)  # fmt: skip


def render_serving_calibration(
    found: ServingCalibrationRun, entries: Sequence[Entry], form: str, *, width: int = 100, colour: bool = False
) -> str:
    """The report of a calibration as table, json, csv or md.

    Parameters
    ----------
    found
        A calibration of serving.
    entries
        The layouts of its rows, as `entries_of` gives them.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
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
    configurations: float
    campaigns: int
    median: float
    mean: float
    p90: float
    coverage: float
    "share within the band p10 to p90"


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
    for fold, own in folds_of(found, entries).items():
        for kind in sorted({item.kind for item in own.scored}):
            errors = errors_of_fold(own, own.of_kinds(kind))
            if errors is not None:
                rows.append({"kind": "figure", "name": kind, "left_out": fold, "rows": errors.rows,
                             "configurations": errors.configurations, "campaigns": errors.campaigns,
                             "median": errors.median, "mean": errors.mean, "p90": errors.p90,
                             "coverage": errors.coverage})  # fmt: skip
    rows.sort(key=lambda row: row["name"])
    return [*rows, *_constants(found)]


_OF_LEVEL = {"mixture": ", with experts"}  # whose names are those of pairs


def _constants(found: ServingCalibrationRun) -> list[ConstantRow]:
    common = found.found.common.items()
    rows = [_constant(name, "all", value, SERVING_PRIORS[name].value) for name, value in common]
    traits = [
        (f"{name}{_OF_LEVEL.get(level, '')}", trait)
        for level, own in found.found.traits.items()
        for name, trait in own.items()
    ]
    return rows + [_constant(move, name, value, 1.0) for name, trait in traits for move, value in trait.factors.items()]


def _constant(name: str, of: str, value: float, expected: float) -> ConstantRow:
    return {"kind": "constant", "constant": name, "of": of, "value": value, "expected": expected}


def _blocks(rows: Sequence[FigureRow | ConstantRow]) -> list[Block]:
    errors = [
        [row["name"], f"the {row['left_out']}", f"{row['rows']:,}", str(row["campaigns"]),
         percent(row["median"]), percent(row["mean"]), percent(row["p90"]), percent(row["coverage"])]
        for row in rows if row["kind"] == "figure"
    ]  # fmt: skip
    constants = [
        [row["of"], row["constant"], f"{row['value']:.4g}", f"{row['expected']:.4g}"]
        for row in rows
        if row["kind"] == "constant"
    ]
    heads = columns("Figure", "Left out", ">rows", ">campaigns", ">median", ">mean", ">p90", ">in the band")
    return [
        Lines(lines=("Constants of serving, fitted to measured rows",), strong_first=True),
        Grid(title="Error on figures that the fit was not shown", columns=heads, rows=errors, grouped=True),
        Grid(
            title="Constants: common values, then factors of engines, families, parts, pairs, formats, cards, contests",
            columns=columns("Of", "Constant", ">value", ">expected"),
            rows=constants,
            grouped=True,
        ),
    ]
