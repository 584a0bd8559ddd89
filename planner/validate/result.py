"""The outcome of a validation: every row with what was predicted and measured, and the errors in groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.validate.conventions import measured_tflops_per_device
from planner.validate.model import (
    BandRow,
    CoverageRow,
    ErrorRow,
    Errors,
    Quantity,
    RowLabel,
    RowValidated,
    SummaryRow,
    ValidationDocument,
)
from planner.validate.rows import MeasuredRow
from planner.validate.score import (
    Coverage,
    Predicted,
    Scored,
    coverage,
    memory_summaries,
    score_memory,
    score_step_times,
    share_in_band,
    summaries,
    why_left_out,
)
from planner.validate.summary import Shown, Summary

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
    bands: Mapping[str, tuple[float, float]] | None = None,
    own_rows: bool = False,
) -> Validation:
    """Hold predictions against the rows that they were made for.

    Parameters
    ----------
    rows, predictions
        One prediction a row, in the same order.
    bands
        p10 and p90 of measured / predicted by family of constants.
    own_rows
        Whether these are the rows that the constants were fitted to.
    """
    times, memory = score_step_times(rows, predictions), score_memory(rows, predictions)
    return Validation(
        kind="training",
        rows=[_row(row, prediction) for row, prediction in zip(rows, predictions, strict=True)],
        summary=[
            *_coverage_rows(rows, predictions),
            *(summary_row("step_time_s", summary) for summary in summaries(times)),
            *(summary_row("peak_memory_bytes", summary) for summary in memory_summaries(memory)),
            *_band_rows(times, bands or {}),
        ],
        labels=[_label(row, prediction) for row, prediction in zip(rows, predictions, strict=True)],
        targets=[*(("step_time_s", item) for item in times), *(("peak_memory_bytes", item) for item in memory)],
        own_rows=own_rows,
    )


def time_bands(catalog: Catalog) -> dict[str, tuple[float, float]]:
    """p10 and p90 of measured / predicted step time by device family."""
    dense = {name: (f.time_band.p10, f.time_band.p90) for name, f in catalog.training_families.items()}
    experts = {
        f"{name}, experts": (f.expert_time_band.p10, f.expert_time_band.p90)
        for name, f in catalog.training_families.items()
    }
    return dense | experts


def chosen(
    rows: Sequence[MeasuredRow],
    predictions: Sequence[Predicted],
    families: Sequence[str],
    sources: Sequence[str],
) -> tuple[list[MeasuredRow], list[Predicted]]:
    """The rows whose family and source match one of the patterns; no pattern matches every row."""
    pairs = [
        (row, prediction)
        for row, prediction in zip(rows, predictions, strict=True)
        if _matches(families, row.family, prediction.family) and _matches(sources, row.source_key)
    ]
    return [row for row, _ in pairs], [prediction for _, prediction in pairs]


def _matches(patterns: Sequence[str], *names: str | None) -> bool:
    return not patterns or any(fnmatchcase((name or "").lower(), p.lower()) for name in names for p in patterns)


def _row(row: MeasuredRow, prediction: Predicted) -> RowValidated:
    return row_document(row.name, QUANTITIES, prediction, _measured(row), prediction.skipped)


def row_document(
    name: str, quantities: Sequence[Quantity], prediction: object, measured: dict[Quantity, float], skipped: str | None
) -> RowValidated:
    """One row as `-o json` prints it: what was predicted and measured, and the relative errors of both."""
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


def _coverage_rows(rows: Sequence[MeasuredRow], predictions: Sequence[Predicted]) -> list[CoverageRow]:
    found = [("pre-training rows of trust A and B", coverage(rows, predictions))]
    if any(row.trust == "C" for row in rows):
        found.append(("pre-training rows of any trust", coverage(rows, predictions, of_trust=_ALL_TRUST)))
    left_out = sum(why_left_out(row) is not None for row in rows)
    return [coverage_row(name, item, left_out) for name, item in found]


def coverage_row(name: str, found: Coverage, left_out: int) -> CoverageRow:
    """How many rows got a prediction, as `-o json` prints it."""
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


def _band_rows(times: Sequence[Scored], bands: Mapping[str, tuple[float, float]]) -> list[BandRow]:
    parts = {name: [item for item in times if item.kin == name] for name in sorted(bands)}
    found = [("all", *share_in_band(times, bands))]
    return band_rows([*found, *((name, *share_in_band(part, bands)) for name, part in parts.items())])


def band_rows(found: Sequence[tuple[str, int, int]]) -> list[BandRow]:
    """Groups of figures, those of them inside their band, and all of them, as `-o json` prints them."""
    return [
        {"quantity": "band", "group": "band", "name": name, "rows": rows, "inside": inside, "share": inside / rows}
        for name, inside, rows in found
        if rows
    ]
