"""The outcome of a validation: every row with what was predicted and measured, and the errors in groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from planner.carriers import dataclass
from planner.validate.model import (
    BandRow,
    CoverageRow,
    ErrorRow,
    Errors,
    FigureBand,
    Quantity,
    RowLabel,
    RowValidated,
    SummaryRow,
    ValidationDocument,
)
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import measured_tflops_per_device
from planner.validate.score import (
    Coverage,
    Predicted,
    Scored,
    Shown,
    Summary,
    by_name,
    coverage,
    memory_summaries,
    score_memory,
    score_step_times,
    summaries,
    why_left_out,
)

QUANTITIES: tuple[Quantity, ...] = ("step_time_s", "tokens_per_s_per_device", "tflops_per_device", "peak_memory_bytes")
SERVING_QUANTITIES: tuple[Quantity, ...] = (
    "ttft_s", "tpot_s", "output_tokens_per_s", "prefill_tokens_per_s", "batch_latency_s", "peak_memory_bytes",
)  # fmt: skip
_ALL_TRUST = ("A", "B", "C")


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Predictions held against a table of measurements."""

    kind: str  # training | serving | totals
    rows: list[RowValidated]
    summary: list[SummaryRow]
    labels: list[RowLabel]
    targets: Sequence[tuple[Quantity, Shown]]  # what counts: quantity and row
    own_rows: bool  # of the shipped table, to which the shipped constants were fitted

    def document(self) -> ValidationDocument:
        """The two parts that `-o json` prints."""
        return {"rows": self.rows, "summary": self.summary}


def validate_training(
    rows: Sequence[MeasuredRow],
    predictions: Sequence[Predicted],
    *,
    own_rows: bool = False,
    refused: Mapping[str, str] | None = None,
) -> Validation:
    """Hold predictions against the rows that they were made for.

    Parameters
    ----------
    rows, predictions
        One prediction a row, in the same order.
    own_rows
        Whether these are the rows that the constants were fitted to.
    refused
        Rows that could not be read, and why.
    """
    unread = refused or {}
    by_row = {row.name: prediction for row, prediction in zip(rows, predictions, strict=True)}
    times, memory = score_step_times(rows, predictions), score_memory(rows, predictions)
    return Validation(
        kind="training",
        rows=[
            *(_row(row, prediction) for row, prediction in zip(rows, predictions, strict=True)),
            *(refused_row(name, why) for name, why in unread.items()),
        ],
        summary=[
            *_coverage_rows(rows, predictions, unread),
            *(summary_row("step_time_s", summary) for summary in summaries(times)),
            *(summary_row("peak_memory_bytes", summary) for summary in memory_summaries(memory)),
            *_band_rows(times, _inside(times, by_row)),
        ],
        labels=[
            *(_label(row, prediction) for row, prediction in zip(rows, predictions, strict=True)),
            *(RowLabel(model="", device="", family=None, source="", left_out="refused") for _ in unread),
        ],
        targets=[*(("step_time_s", item) for item in times), *(("peak_memory_bytes", item) for item in memory)],
        own_rows=own_rows,
    )


def chosen(
    rows: Sequence[MeasuredRow],
    predictions: Sequence[Predicted],
    families: Sequence[str],
    sources: Sequence[str],
) -> tuple[list[MeasuredRow], list[Predicted]]:
    """The rows whose family and source match one of the patterns; no pattern matches every row.

    Parameters
    ----------
    rows, predictions
        One prediction a row, in the same order.
    families
        Patterns of the device family, as the row or its prediction names it, capitals aside.
    sources
        Patterns of the row's source key, capitals aside.
    """
    pairs = [
        (row, prediction)
        for row, prediction in zip(rows, predictions, strict=True)
        if _matches(families, row.family, prediction.family) and _matches(sources, row.source_key)
    ]
    return [row for row, _ in pairs], [prediction for _, prediction in pairs]


def _matches(patterns: Sequence[str], *names: str | None) -> bool:
    return not patterns or any(fnmatchcase((name or "").lower(), p.lower()) for name in names for p in patterns)


def _row(row: MeasuredRow, prediction: Predicted) -> RowValidated:
    document = row_document(row.name, QUANTITIES, prediction, _measured(row), prediction.skipped)
    return {**document, "bands": _bands(document["predicted"], prediction)}


def _bands(predicted: Mapping[Quantity, float], prediction: Predicted) -> dict[Quantity, FigureBand]:
    """The band of every predicted figure: a rate is the inverse of a time."""
    time, memory = getattr(prediction, "time_band", None), getattr(prediction, "memory_band", None)
    found: dict[Quantity, FigureBand] = {}
    for name, value in predicted.items():
        band = memory if name == "peak_memory_bytes" else time
        if band is not None:
            rate = name in ("tokens_per_s_per_device", "tflops_per_device")
            shares = (1 / band.p90, 1 / band.p50, 1 / band.p10) if rate else (band.p10, band.p50, band.p90)
            p10, p50, p90 = (value * share for share in shares)
            found[name] = {
                "p10": p10, "p50": p50, "p90": p90, "tag": band.tag, "rows": band.rows, "sources": band.sources,
            }  # fmt: skip
    return found


def refused_row(name: str, why: str) -> RowValidated:
    """A row of a table that could not be read."""
    return {"id": name, "predicted": {}, "measured": {}, "error": {}, "skipped": why}


def row_document(
    name: str, quantities: Sequence[Quantity], prediction: object, measured: dict[Quantity, float], skipped: str | None
) -> RowValidated:
    """One row as `-o json` prints it: what was predicted and measured, and the relative errors of both.

    Parameters
    ----------
    name
        Of the row: its id, or its line.
    quantities
        That are told, in their order.
    prediction
        Has an attribute of each quantity; None where it says nothing.
    measured
        What the row measured, by quantity and in its unit.
    skipped
        Why there is no prediction; None where there is one.
    """
    predicted = {key: value for key in quantities if (value := getattr(prediction, key)) is not None}
    both = [key for key in quantities if key in predicted and key in measured]
    return {
        "id": name,
        "predicted": predicted,
        "measured": measured,
        "error": {key: predicted[key] / measured[key] - 1 for key in both},
        "skipped": skipped,
    }


def _measured(row: MeasuredRow) -> dict[Quantity, float]:
    cells: dict[Quantity, float | None] = {
        "step_time_s": row.step_time_s,
        "tokens_per_s_per_device": row.tokens_per_s_per_device,
        "tflops_per_device": measured_tflops_per_device(row),
        "peak_memory_bytes": row.measured_memory_bytes,
    }
    return {name: value for name, value in cells.items() if value is not None}


def _label(row: MeasuredRow, prediction: Predicted) -> RowLabel:
    return {
        "model": row.model or "",
        "device": devices_of(row),
        "family": row.family or prediction.family,
        "source": row.source_key or "",
        "left_out": why_left_out(row) or "",
    }


def devices_of(row: Any) -> str:
    """How many of what a row ran on."""
    return f"{row.n_accel or '?'} × {row.accelerator or '?'}"


def summary_row(quantity: Quantity, summary: Summary) -> ErrorRow:
    """One group of rows as `-o json` prints it."""
    return {"quantity": quantity, **errors_of(summary)}


def errors_of(summary: Summary) -> Errors:
    """The errors of one group as plain data."""
    return cast("Errors", dataclasses.asdict(summary))


def _coverage_rows(
    rows: Sequence[MeasuredRow], predictions: Sequence[Predicted], unread: Mapping[str, str]
) -> list[CoverageRow]:
    found = [("rows of trust A and B", coverage(rows, predictions))]
    if any(row.trust == "C" for row in rows):
        found.append(("rows of any trust", coverage(rows, predictions, of_trust=_ALL_TRUST)))
    left_out = sum(why_left_out(row) is not None for row in rows)
    for name, why in unread.items():
        found = [(words, with_refused(item, name, why)) for words, item in found]
    return [coverage_row(name, item, left_out) for name, item in found]


def with_refused(found: Coverage, name: str, why: str) -> Coverage:
    """The coverage with a row more that has no prediction.

    Parameters
    ----------
    found
        Of the other rows.
    name, why
        The row, and why it has none.
    """
    refusals = {**found.refusals, why: (*found.refusals.get(why, ()), name)}
    return dataclasses.replace(found, rows=found.rows + 1, refusals=refusals)


def coverage_row(name: str, found: Coverage, left_out: int) -> CoverageRow:
    """How many rows got a prediction, as `-o json` prints it.

    Parameters
    ----------
    name
        Which rows these are, in words.
    found
        How many there are, how many have a prediction, and why the others have none.
    left_out
        Rows of which something measured counts in no error.  [count]
    """
    return {
        "quantity": "coverage",
        "group": "coverage",
        "name": name,
        "rows": found.rows,
        "predicted": found.predicted,
        "skipped": found.rows - found.predicted,
        "share": found.share,
        "refusals": {reason: list(names) for reason, names in sorted(found.refusals.items())},
        "left_out_rows": left_out,
    }


def _band_rows(times: Sequence[Scored], inside: Mapping[str, bool]) -> list[BandRow]:
    """Rows inside the band of their own prediction: all, then by device and kind."""
    held = [item for item in times if item.row.name in inside]
    parts = {"all": held} | by_name(held, lambda item: f"{item.family}, {item.row.kind}")
    return band_rows([(name, sum(inside[item.row.name] for item in part), len(part)) for name, part in parts.items()])


def _inside(times: Sequence[Scored], predictions: Mapping[str, Predicted]) -> dict[str, bool]:
    """Whether what was measured lies between p10 and p90 of what was predicted, by row."""
    found = {}
    for item in times:
        band = getattr(predictions[item.row.name], "time_band", None)
        if band is not None:
            found[item.row.name] = band.p10 <= item.measured / item.predicted <= band.p90
    return found


def band_rows(found: Sequence[tuple[str, int, int]]) -> list[BandRow]:
    """Groups of figures, those of them inside their band, and all of them, as `-o json` prints them."""
    return [
        {"quantity": "band", "group": "band", "name": name, "rows": rows, "inside": inside, "share": inside / rows}
        for name, inside, rows in found
        if rows
    ]
