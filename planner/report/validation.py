"""Predictions held against measurements, in every output format."""

from __future__ import annotations

from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Items, Lines
from planner.report.validation_html import render_page
from planner.report.validation_serving import serving_blocks, serving_notes
from planner.report.validation_tables import (
    OWN_ROWS,
    band_grid,
    coverage_lines,
    error_rows,
    group_grid,
    refusal_items,
    worst_grid,
)
from planner.validate.model import RowValidated
from planner.validate.result import QUANTITIES, SERVING_QUANTITIES, Validation
from planner.validate.summary import FEWEST_ROWS


def render_validation(result: Validation, form: str, *, width: int = 100, colour: bool = False) -> str:
    """A validation as table, json, csv, md or html.

    Parameters
    ----------
    result
        Predictions held against rows of training, serving or whole runs.
    form
        table, json, csv, md or html.
    width
        Of a table, kept within 80 to 120.  [characters]
    colour
        Of a table: with escape codes for a terminal.
    """
    if form == "json":
        return json.render(result.document())
    if form == "csv":
        return csv.render(_flat(result), _csv_columns(result))
    blocks = validation_blocks(result, wide=form in ("md", "html"))
    if form == "html":
        return render_page(result, blocks)
    return markdown.draw(blocks) if form == "md" else text.draw(blocks, width=width, style=text.Style(colour))


def validation_blocks(result: Validation, *, wide: bool = False) -> list[Block]:
    """Coverage, errors by group, bands, worst rows, and how to read them."""
    if result.kind == "serving":
        return serving_blocks(result, wide=wide)
    quantities = list(dict.fromkeys(row["quantity"] for row in error_rows(result)))
    return [
        Lines(lines=(f"Predictions against measured {result.kind} rows", *coverage_lines(result)), strong_first=True),
        *(group_grid(result, quantity, wide=wide) for quantity in quantities),
        band_grid(result, "Step times within the p10-p90 band of their family", "Family"),
        *(worst_grid(result, quantity) for quantity in quantities),
        *refusal_items(result),
        Items(title="How to read this", items=tuple(reading_notes(result))),
    ]


def reading_notes(result: Validation) -> list[str]:
    """What the columns mean, and what these errors are not."""
    if result.kind == "serving":
        return serving_notes(result)
    notes = [
        "error = predicted / measured - 1; ± is half of the bootstrap 90 % interval of the mean; by source is the mean "
        "of the means of sources; bias is the mean with its sign",
        "rows that state the same configuration are held against their median; noise is how far from it they lie "
        "themselves",
        f"* fewer than {FEWEST_ROWS} rows: too few for a verdict",
    ]
    if result.kind == "totals":
        notes = [notes[0], "budgets include restarts, and count what their publishers chose to count", notes[2]]
    return [*notes, OWN_ROWS] if result.own_rows else notes


def _csv_columns(result: Validation) -> list[str]:
    names = {"training": QUANTITIES, "serving": SERVING_QUANTITIES}.get(result.kind, ("device_hours",))
    parts = [f"{part}_{name}" for part in ("predicted", "measured", "error") for name in names]
    how = ("engine", "load") if result.kind == "serving" else ()
    return ["id", "model", "device", "family", *how, "source", *parts, "left_out", "skipped"]


def _flat(result: Validation) -> list[dict[str, object]]:
    return [{**_flat_row(row), **label} for row, label in zip(result.rows, result.labels, strict=True)]


def _flat_row(row: RowValidated) -> dict[str, object]:
    parts = {"predicted": row["predicted"], "measured": row["measured"], "error": row["error"]}
    flat = {f"{part}_{name}": value for part, figures in parts.items() for name, value in figures.items()}
    return {"id": row["id"], "skipped": row["skipped"], **flat}
