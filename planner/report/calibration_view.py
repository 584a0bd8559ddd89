"""Calibrations of training and of serving: errors on what was left out, and what the rows say about each constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from planner.calibrate.calibration import Calibration, folds_of
from planner.calibrate.serving import ServingCalibrationRun
from planner.calibrate.serving_fit import SERVING_PRIORS
from planner.calibrate.training import by_family
from planner.calibrate.training_effects import PRIORS
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.validation_view import percent
from planner.validate.serving_entries import Entry
from planner.validate.serving_score import errors_of_fold

# what is left of a constant's uncertainty once the rows are seen, as a share of its prior's
_DECIDED, _WEAK = 0.5, 0.9
_COLUMNS = (
    "family", "kind", "name", "rows", "median", "mean", "p90", "value", "prior", "left_open", "known_from", "meaning",
)  # fmt: skip


def render_calibration(found: Calibration, form: str, *, width: int = 100, colour: bool = False) -> str:
    """The report of a calibration as table, json, csv or md.

    Parameters
    ----------
    found
        A calibration of training.
    form
        table, json, csv or md.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    rows = calibration_rows(found)
    if form == "json":
        return json.render(rows)
    if form == "csv":
        return csv.render(rows, _COLUMNS)
    blocks = _training_blocks(rows)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


class Errors(TypedDict):
    """Errors of some rows that were left out of the fit, as shares."""

    rows: int
    median: float
    mean: float
    p90: float


class ErrorRow(Errors):
    """Errors of a family, or of one source of it."""

    family: str
    kind: Literal["family", "source"]
    name: str


class ConstantRow(TypedDict):
    """A constant, and what it is known from."""

    family: str
    kind: Literal["constant"]
    name: str
    value: float
    prior: float
    left_open: float
    known_from: str
    meaning: str


def calibration_rows(found: Calibration) -> list[ErrorRow | ConstantRow]:
    """One row a family, a source left out, and a constant; shares and base units."""
    rows: list[ErrorRow | ConstantRow] = []
    for family, part in by_family(found.held_out.points):
        errors = found.errors_of(family)
        sources = np.array([point.source for point in part])
        rows.append({"family": family, "kind": "family", "name": "all rows", **_errors(errors)})
        for source in sorted(set(sources)):
            rows.append({"family": family, "kind": "source", "name": source, **_errors(errors[sources == source])})
        rows += [_constant(found, family, name) for name in PRIORS]
    return rows


def _errors(errors: np.ndarray) -> Errors:
    return {
        "rows": len(errors),
        "median": float(np.median(errors)),
        "mean": float(np.mean(errors)),
        "p90": float(np.quantile(errors, 0.9)),
    }


def _constant(found: Calibration, family: str, name: str) -> ConstantRow:
    left = found.constants.effects.deviation_of(("all", name), (family, name)) / PRIORS[name].spread
    known = "the rows" if left < _DECIDED else "the rows, weakly" if left < _WEAK else "its prior"
    return {
        "family": family,
        "kind": "constant",
        "name": name,
        "value": found.constants.of_family(family, found.catalog)[name],
        "prior": PRIORS[name].value,
        "left_open": left,
        "known_from": known,
        "meaning": PRIORS[name].meaning,
    }


def _training_blocks(rows: Sequence[ErrorRow | ConstantRow]) -> list[Block]:
    errors = [
        [row["family"], row["name"], f"{row['rows']:,}", percent(row["median"]), percent(row["mean"]),
         percent(row["p90"])]
        for row in rows if row["kind"] != "constant"
    ]  # fmt: skip
    constants = [
        [row["family"], row["name"], f"{row['value']:.4g}", f"{row['prior']:.4g}", row["known_from"], row["meaning"]]
        for row in rows
        if row["kind"] == "constant"
    ]
    return [
        Lines(lines=("Constants of a training step, fitted to measured rows",), strong_first=True),
        Grid(
            title="Step-time error on rows whose source, or release and model, was left out of the fit",
            columns=columns("Family", "Rows left out", ">rows", ">median", ">mean", ">p90"),
            rows=errors,
            grouped=True,
        ),
        Grid(
            title="What decides each constant",
            columns=columns("Family", "Constant", ">value", ">prior", "decided by", "Meaning"),
            rows=constants,
            grouped=True,
        ),
    ]


_SERVING_COLUMNS = (
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
        return csv.render(rows, _SERVING_COLUMNS)
    blocks = _serving_blocks(rows)
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


class ServingConstantRow(TypedDict):
    """A constant of an engine, of a family, or of all."""

    kind: Literal["constant"]
    constant: str
    of: str
    value: float
    expected: float


def serving_calibration_rows(
    found: ServingCalibrationRun, entries: Sequence[Entry]
) -> list[FigureRow | ServingConstantRow]:
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


def _constants(found: ServingCalibrationRun) -> list[ServingConstantRow]:
    common = found.found.common.items()
    rows = [_serving_constant(name, "all", value, SERVING_PRIORS[name].value) for name, value in common]
    traits = [
        (f"{name}{_OF_LEVEL.get(level, '')}", trait)
        for level, own in found.found.traits.items()
        for name, trait in own.items()
    ]
    return rows + [
        _serving_constant(move, name, value, 1.0) for name, trait in traits for move, value in trait.factors.items()
    ]


def _serving_constant(name: str, of: str, value: float, expected: float) -> ServingConstantRow:
    return {"kind": "constant", "constant": name, "of": of, "value": value, "expected": expected}


def _serving_blocks(rows: Sequence[FigureRow | ServingConstantRow]) -> list[Block]:
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
