"""Tables that validations of training and of serving share: errors by group, bands, the worst rows, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner import units
from planner.report.blocks import Grid, Items, columns
from planner.validate.model import CoverageRow, ErrorRow, Errors, KindRow, Quantity
from planner.validate.result import Validation, devices_of
from planner.validate.summary import FEWEST_ROWS, worst_rows

NAMES: dict[Quantity, str] = {
    "step_time_s": "Step time",
    "peak_memory_bytes": "Peak memory",
    "device_hours": "Device hours",
    "tpot_s": "TPOT",
    "ttft_s": "TTFT",
    "output_tokens_per_s": "Output throughput",
    "batch_latency_s": "Batch latency",
    "prefill_tokens_per_s": "Prompt throughput",
}


OWN_ROWS = (
    "the shipped constants were fitted to these rows: errors on rows left out of the fit stand in docs/validation.md"
)


_NARROW = columns("Rows", ">number", ">mean", ">median", ">p90", ">by source", ">bias", ">noise")


_WIDE = columns(
    "Rows by", "", ">rows", ">runs", ">sources", ">mean", ">90 % of means", ">median", ">p90", ">by source", ">bias",
    ">noise",
)  # fmt: skip


_MOST_NAMED = 12


_MOST_SHOWN = {"training": 10, "totals": 50, "serving": 8}


def percent(share: float | None, *, sign: bool = False) -> str:
    """A share as people read it; nothing for None."""
    if share is None:
        return ""
    return f"{100 * share:+.1f} %" if sign else f"{100 * share:.1f} %"


def coverage_lines(result: Validation) -> list[str]:
    """How many rows were predicted, and how many do not count."""
    found = _coverage(result)
    lines = [f"{r['predicted']:,} of {r['rows']:,} {r['name']} predicted ({percent(r['share'])})" for r in found]
    if found and found[0]["left_out_rows"]:
        words = "have a figure that does not count" if result.kind == "serving" else "are shown but count in no figure"
        lines.append(f"{found[0]['left_out_rows']:,} rows {words}")
    return lines


def error_rows(result: Validation) -> list[ErrorRow | KindRow]:
    """Groups of rows with their errors."""
    return [row for row in result.summary if "bias" in row]


def _coverage(result: Validation) -> list[CoverageRow]:
    return [row for row in result.summary if row["quantity"] == "coverage"]


def group_grid(result: Validation, quantity: Quantity, *, wide: bool = False) -> Grid:
    """Errors of one quantity, group by group; the narrow form fits 80 columns.

    Parameters
    ----------
    result
        The validation.
    quantity
        Whose errors are told.
    wide
        Every figure of a group, in columns of their own.
    """
    rows = [row for row in error_rows(result) if row["quantity"] == quantity]
    if wide:
        cells = [group_cells(row) for row in rows]
        return Grid(title=f"{NAMES[quantity]}: absolute error", columns=_WIDE, rows=cells, grouped=True)
    cells = [_narrow_cells(row) for row in rows]
    return Grid(title=f"{NAMES[quantity]}: absolute error, in percent", columns=_NARROW, rows=cells)


def _narrow_cells(row: Errors) -> list[str]:
    name = row["name"] if row["group"] == row["name"] else f"{row['group']} {row['name']}"
    half = (row["high"] - row["low"]) / 2
    shares = (row["median"], row["p90"], row["mean_of_sources"])
    return [
        name, number_of(row), f"{100 * row['mean']:.1f} ± {100 * half:.1f}",
        *(f"{100 * share:.1f}" for share in shares),
        f"{100 * row['bias']:+.1f}", "" if row["noise_floor"] is None else f"{100 * row['noise_floor']:.1f}",
    ]  # fmt: skip


def number_of(row: Errors) -> str:
    """How many rows a group has, marked where they are too few."""
    return f"{row['rows']:,}" + ("*" if row["rows"] < FEWEST_ROWS else "")


def group_cells(row: Errors) -> list[str]:
    """One group of a summary, every figure of it, as cells."""
    return [
        row["group"], row["name"], number_of(row), f"{row['configurations']:,}", str(row["sources"]),
        percent(row["mean"]), f"{100 * row['low']:.1f} … {percent(row['high'])}", percent(row["median"]),
        percent(row["p90"]), percent(row["mean_of_sources"]), percent(row["bias"], sign=True),
        percent(row["noise_floor"]),
    ]  # fmt: skip


def band_grid(result: Validation, title: str, head: str) -> Grid:
    """How many figures lie within the band that was drawn for them.

    Parameters
    ----------
    result
        The validation.
    title
        Of the table.
    head
        Of its first column: what figures are grouped by.
    """
    rows = [row for row in result.summary if row["quantity"] == "band"]
    cells = [[row["name"], f"{row['rows']:,}", f"{row['inside']:,}", percent(row["share"])] for row in rows]
    return Grid(title=title, columns=columns(head, ">rows", ">inside", ">share"), rows=cells)


def worst_grid(result: Validation, quantity: Quantity) -> Grid:
    """The rows with the largest errors of one quantity."""
    scored = worst_rows([item for name, item in result.targets if name == quantity], _MOST_SHOWN[result.kind])
    rows = [
        [item.row.name, item.row.model or "", devices_of(item.row), _format_of(item.row),
         _figure(quantity, item.predicted), _figure(quantity, item.target), percent(item.error, sign=True)]
        for item in scored
    ]  # fmt: skip
    heads = columns("Row", "Model", "Devices", "Precision", ">predicted", ">measured", ">error")
    return Grid(title=f"{NAMES[quantity]}: the largest errors", columns=heads, rows=rows, folded=True)


def _format_of(row: Any) -> str:
    """Format of the products, whichever kind of row it is."""
    name: str | None = getattr(row, "precision", None) or getattr(row, "weight_precision", None)
    return name or ""


def _figure(quantity: str, value: float) -> str:
    if quantity == "peak_memory_bytes":
        return units.format_bytes(value)
    if quantity.endswith("tokens_per_s"):
        return f"{value:,.1f} /s"
    return f"{value:,.0f} h" if quantity == "device_hours" else units.format_duration(value)


def refusal_items(result: Validation, *, most: int = _MOST_NAMED) -> list[Items]:
    """Each reason why rows got no prediction, with up to `most` rows by name."""
    wide = _coverage(result)[-1:]
    items = [f"{reason}: {_named(names, most)}" for row in wide for reason, names in row["refusals"].items()]
    return [Items(title="Not predicted", items=tuple(items), folded=True)] if items else []


def _named(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
