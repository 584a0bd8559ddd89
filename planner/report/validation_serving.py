"""Serving predictions held against measurements: errors by kind of figure, memory fit, bands, lint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.validation_tables import (
    OWN_ROWS,
    band_grid,
    coverage_lines,
    number_of,
    percent,
    refusal_items,
    worst_grid,
)
from planner.validate.model import Errors
from planner.validate.result import SERVING_QUANTITIES, Validation
from planner.validate.summary import FEWEST_ROWS

NOTES = (
    "error = predicted / measured - 1 of one figure; ± is half of the bootstrap 90 % interval of the mean; by source "
    "is the mean of the means of sources; bias is the mean with its sign; noise is how far figures of one and the "
    "same configuration lie from their median",
    "latencies of requests that are sent all at once, of MLPerf, and first tokens that wait for memory are queueing "
    "times: they count in no figure",
    f"* fewer than {FEWEST_ROWS} figures: too few for a verdict",
)
_ERRORS = columns("Figure", ">number", ">median", ">mean", ">p90", ">by source", ">bias", ">noise")
_PARTS = columns("Figure", "By", "", ">number", ">median", ">mean", ">bias")
_MOST_NAMED = 12


def serving_blocks(result: Validation, *, wide: bool = False) -> list[Block]:
    """Coverage, errors by kind, memory fit, bands, lint and the largest errors."""
    known = {name for name, _ in result.targets}
    return [
        Lines(lines=("Predictions against measured serving rows", *coverage_lines(result)), strong_first=True),
        _kinds(result),
        _parts(result, ("source", "engine", "device") if wide else ("source",)),
        memory_grid(result),
        band_grid(result, "Figures within their p10-p90 band", "Band"),
        *lint_items(result),
        *(worst_grid(result, quantity) for quantity in SERVING_QUANTITIES if quantity in known),
        *refusal_items(result),
        Items(title="How to read this", items=tuple(serving_notes(result))),
    ]


def serving_notes(result: Validation) -> list[str]:
    """What the columns mean, and what these errors are not."""
    return [*NOTES, OWN_ROWS] if result.own_rows else list(NOTES)


def _kinds(result: Validation) -> Grid:
    rows = [kind_cells(row["kind"], row) for row in result.summary if "kind" in row and row["group"] == "all"]
    return Grid(title="Absolute error by kind of figure, in percent", columns=_ERRORS, rows=rows)


def kind_cells(name: str, row: Errors) -> list[str]:
    """One group of figures as cells, in percent."""
    half = (row["high"] - row["low"]) / 2
    return [
        name, number_of(row), f"{100 * row['median']:.1f}", f"{100 * row['mean']:.1f} ± {100 * half:.1f}",
        f"{100 * row['p90']:.1f}", f"{100 * row['mean_of_sources']:.1f}", f"{100 * row['bias']:+.1f}",
        "" if row["noise_floor"] is None else f"{100 * row['noise_floor']:.1f}",
    ]  # fmt: skip


def _parts(result: Validation, groups: Sequence[str]) -> Grid:
    rows = [
        [row["kind"], row["group"], row["name"], number_of(row), f"{100 * row['median']:.1f}",
         f"{100 * row['mean']:.1f}", f"{100 * row['bias']:+.1f}"]
        for row in result.summary if "kind" in row and row["group"] in groups
    ]  # fmt: skip
    title = "Absolute error by " + " and ".join(groups) + ", in percent"
    return Grid(title=title, columns=_PARTS, rows=rows, grouped=True, folded=True)


def memory_grid(result: Validation) -> Grid:
    """How the memory model sorts cells whose outcome is known."""
    rows = [
        [row["name"], f"{row['rows']:,}", f"{row['right']:,}", percent(row["share"])]
        for row in result.summary
        if row["quantity"] == "memory_fit"
    ]
    return Grid(title="Memory fit", columns=columns("Cells", ">number", ">right", ">share"), rows=rows)


def lint_items(result: Validation, most: int = _MOST_NAMED) -> list[Items]:
    """What is odd about measurements, with up to `most` rows by name."""
    odd = [row for row in result.summary if row["quantity"] == "lint"]
    items = tuple(f"{row['name']}: {_named(row['details'], most)}" for row in odd)
    return [Items(title="Odd measurements", items=items, tone="fair")] if items else []


def _named(details: Mapping[str, str], most: int) -> str:
    shown = [f"{name} ({detail})" for name, detail in list(details.items())[:most]]
    more = len(details) - len(shown)
    return "; ".join(shown) + (f"; and {more:,} more" if more else "")
