"""A calibration for people and programs: errors on rows left out, and what the rows say about each constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from planner.calibrate.priors import PRIORS
from planner.calibrate.result import Calibration
from planner.calibrate.training import by_family
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Lines, columns
from planner.report.validation_tables import percent

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
    blocks = _blocks(rows)
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


def _blocks(rows: Sequence[ErrorRow | ConstantRow]) -> list[Block]:
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
