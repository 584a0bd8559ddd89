"""Predictions of training and of serving held against measurements, in every output format.

Both have tables of errors by group, bands, the worst rows, refusals; serving also errors by kind of figure, memory fit,
lint. The HTML page has tables, and predicted against measured on logarithmic axes, and works offline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner import units
from planner.report import csv, json, markdown, text
from planner.report.blocks import Block, Grid, Items, Lines, columns
from planner.report.charts import Chart, Dot, Panel, Series, chart, logarithmic
from planner.report.html.page_parts import render_sheet
from planner.validate.model import CoverageRow, ErrorRow, Errors, KindRow, Quantity, RowValidated
from planner.validate.result import QUANTITIES, SERVING_QUANTITIES, Validation, devices_of
from planner.validate.score import FEWEST_ROWS, Shown, worst_rows

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
         _figure_cell(quantity, item.predicted), _figure_cell(quantity, item.target), percent(item.error, sign=True)]
        for item in scored
    ]  # fmt: skip
    heads = columns("Row", "Model", "Devices", "Precision", ">predicted", ">measured", ">error")
    return Grid(title=f"{NAMES[quantity]}: the largest errors", columns=heads, rows=rows, folded=True)


def _format_of(row: Any) -> str:
    """Format of the products, whichever kind of row it is."""
    name: str | None = getattr(row, "precision", None) or getattr(row, "weight_precision", None)
    return name or ""


def _figure_cell(quantity: str, value: float) -> str:
    if quantity == "peak_memory_bytes":
        return units.format_bytes(value)
    if quantity.endswith("tokens_per_s"):
        return f"{value:,.1f} /s"
    return f"{value:,.0f} h" if quantity == "device_hours" else units.format_duration(value)


def refusal_items(result: Validation, *, most: int = _MOST_NAMED) -> list[Items]:
    """Each reason why rows got no prediction, with up to `most` rows by name."""
    wide = _coverage(result)[-1:]
    items = [f"{reason}: {_rows_named(names, most)}" for row in wide for reason, names in row["refusals"].items()]
    return [Items(title="Not predicted", items=tuple(items), folded=True)] if items else []


def _rows_named(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


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


_SCALES: dict[Quantity, tuple[float, str]] = {
    "step_time_s": (1.0, "s"),
    "tpot_s": (1e-3, "ms"),
    "ttft_s": (1e-3, "ms"),
    "output_tokens_per_s": (1.0, "tokens/s"),
    "batch_latency_s": (1.0, "s"),
    "prefill_tokens_per_s": (1.0, "tokens/s"),
    "peak_memory_bytes": (1e9, "GB"),
    "device_hours": (1.0, "h"),
}
_LOOKS = ("circle", "square", "diamond", "triangle", "star")
_HEIGHT = 460  # [px]


def render_page(result: Validation, blocks: Sequence[Block]) -> str:
    """The page: figures first, then the tables of errors, what was not predicted, and how to read it."""
    quantities = [name for name in _SCALES if any(quantity == name for quantity, _ in result.targets)]
    first, *tables = blocks
    told = [Lines(lines=first.lines[1:])] if isinstance(first, Lines) else []
    figures = [part for name in quantities for part in (_figure(result, name), _table(tables, NAMES[name]))]
    others = [block for block in tables if block not in figures]
    return render_sheet(f"Predicted against measured: {result.kind}", [*told, *figures, *others])


def _table(blocks: Sequence[Block], quantity: str) -> Block | None:
    """The table of errors of a quantity, which stands below its figure."""
    return next((one for one in blocks if isinstance(one, Grid) and one.title.startswith(f"{quantity}:")), None)


def _figure(result: Validation, quantity: Quantity) -> Chart:
    """Predicted against measured, a kind of mark a family, with the line on which a prediction is right."""
    scored = [item for name, item in result.targets if name == quantity]
    scale, unit = _SCALES[quantity]
    low, high = _ends(scored, scale)
    series = [Series(name="exact", look="dots", paths=[((low, low), (high, high))])]
    for number, family in enumerate(sorted({item.family for item in scored})):
        look = f"{_LOOKS[number % len(_LOOKS)]} hue-{number % 10}"
        dots = [
            Dot(item.measured / scale, item.predicted / scale, _told(item, scale, unit))
            for item in scored
            if item.family == family
        ]
        series.append(Series(name=family or "unstated", look=look, dots=dots))
    return chart(
        id=quantity.replace("_", "-"),
        title=f"{NAMES[quantity]}: predicted against measured",
        summary=f"{NAMES[quantity]} of {len(scored):,} rows, predicted against measured; the tables below give errors",
        panels=[
            Panel(
                x=logarithmic(low, high, f"measured, {unit}"),
                y=logarithmic(low, high, f"predicted, {unit}"),
                height=_HEIGHT,
                series=series,
            )
        ],
    )


def _ends(scored: Sequence[Shown], scale: float) -> tuple[float, float]:
    values = [value / scale for item in scored for value in (item.predicted, item.measured)]
    return min(values) / 1.2, max(values) * 1.2


def _told(item: Shown, scale: float, unit: str) -> str:
    figures = f"measured {item.measured / scale:.4g} {unit}, predicted {item.predicted / scale:.4g} {unit}"
    return (
        f"{item.row.name}: {item.row.model or ''}, {devices_of(item.row)}; {figures}, error {100 * item.error:+.1f} %"
    )


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
