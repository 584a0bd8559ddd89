"""The outcome of a validation of serving rows: what was predicted and measured, errors by kind, coverage, lint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import cast

from planner.carriers import dataclass
from planner.validate.model import BandRow, FigureBand, KindRow, LintRow, MemoryFitRow, Quantity, RowLabel, RowValidated
from planner.validate.result import SERVING_QUANTITIES as QUANTITIES
from planner.validate.result import (
    Validation,
    band_rows,
    coverage_row,
    devices_of,
    refused_row,
    row_document,
    summary_row,
    with_refused,
)
from planner.validate.score import Coverage
from planner.validate.serving import NO_ROOM, ServingBatch, ServingPrediction, batch_of
from planner.validate.serving_entries import Entry
from planner.validate.serving_lint import Finding, lint, ran
from planner.validate.serving_points import Point, points_of
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import (
    ScoredPoint,
    kind_summaries,
    score_points,
)

_UNFITTED: tuple[Quantity, ...] = ("peak_memory_bytes",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """Cells that ran out of memory, and cells that ran: how many the memory model sorts as they fell."""

    out_of_memory: int
    refused: int  # of those
    fitting: int
    accepted: int  # of those

    @property
    def accepted_share(self) -> float:
        """Accepted cells of those that ran; 1 when there are none."""
        return self.accepted / self.fitting if self.fitting else 1.0


def validate_serving(
    rows: Sequence[ServingRow],
    entries: Sequence[Entry],
    predictions: Sequence[ServingPrediction],
    *,
    own_rows: bool = False,
    refused: Mapping[str, str] | None = None,
) -> Validation:
    """Hold predictions against the rows that they were made for.

    Parameters
    ----------
    rows, predictions
        One prediction a row, in the same order.
    entries
        The layouts of the rows, as `entries_of` gives them.
    own_rows
        Whether these are the rows that the constants were fitted to.
    refused
        Rows that could not be read, and why.
    """
    unread = refused or {}
    covered = coverage_of(rows, predictions)
    for name, why in unread.items():
        covered = with_refused(covered, name, why)
    batch = batch_of(entries) if entries else None
    points = figures_of(rows, batch)
    scored = score_points(points, [said_of(predictions, point) for point in points], entries)
    return Validation(
        kind="serving",
        rows=[
            *(_row(row, said) for row, said in zip(rows, predictions, strict=True)),
            *(refused_row(name, why) for name, why in unread.items()),
        ],
        summary=[
            coverage_row("rows", covered, _left_out(points)),
            *_kind_rows(scored),
            *_memory_rows(memory_fit(rows, predictions)),
            *_band_rows(scored, predictions),
            *_lint_rows(lint(rows, batch) if batch else ()),
        ],
        labels=[
            *_labels(rows, predictions, points),
            *(RowLabel(model="", device="", family=None, source="", left_out="refused") for _ in unread),
        ],
        targets=[(_quantity(item), item) for item in scored],
        own_rows=own_rows,
    )


def figures_of(rows: Sequence[ServingRow], batch: ServingBatch | None) -> list[Point]:
    """Every figure of rows with a prediction: those that constants are fitted to, and what else was printed.

    Parameters
    ----------
    rows, batch
        The table, and its layouts as `batch_of` gives them; None where no row has one.
    """
    if batch is None:
        return []
    others = [
        Point(position=i, row=rows[i], metric=name, measured=value)
        for i in sorted({entry.row for entry in batch.entries})
        for name, value in measured_cells(rows[i]).items()
        if name in _UNFITTED
    ]
    return [*points_of(rows, batch), *others]


def said_of(predictions: Sequence[ServingPrediction], point: Point) -> float | None:
    """What was predicted for a figure."""
    said: float | None = getattr(predictions[point.position], point.metric)
    return said


def measured_cells(row: ServingRow) -> dict[Quantity, float]:
    """Everything that a row measured, in base units, of the whole deployment."""
    devices = row.n_accel or (row.tp or 1) * (row.pp or 1)
    each, memory = row.output_tokens_per_s_per_device, row.peak_mem_gb
    cells: dict[Quantity, float | None] = {
        "ttft_s": _seconds(row.ttft_ms),
        "tpot_s": _seconds(row.tpot_ms),
        "output_tokens_per_s": row.output_tokens_per_s_total or (each * devices if each else None),
        "prefill_tokens_per_s": row.prefill_tokens_per_s,
        "batch_latency_s": _seconds(row.e2e_latency_ms) if row.load in ("static", "closed", "open") else None,
        "peak_memory_bytes": None if memory is None else memory * 1e9,
    }
    return {name: value for name, value in cells.items() if value is not None}


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def coverage_of(rows: Sequence[ServingRow], predictions: Sequence[ServingPrediction]) -> Coverage:
    """Rows with a prediction; a row that ran out of memory is no row without one, but the memory fit's."""
    refusals: dict[str, tuple[str, ...]] = {}
    asked = [(row, said) for row, said in zip(rows, predictions, strict=True) if not row.out_of_memory]
    for row, said in asked:
        if said.skipped:
            why, colon, amount = said.skipped.partition(f"{NO_ROOM}: ")  # each lacks another amount
            name = f"{row.name} ({amount})" if colon else row.name
            refusals[NO_ROOM if colon else why] = (*refusals.get(NO_ROOM if colon else why, ()), name)
    refused = sum(map(len, refusals.values()))
    return Coverage(rows=len(asked), predicted=len(asked) - refused, refusals=refusals)


def memory_fit(rows: Sequence[ServingRow], predictions: Sequence[ServingPrediction]) -> MemoryFit:
    """How the memory model sorts rows whose outcome is known; rows of an unknown model are not asked."""
    known = [(row, said) for row, said in zip(rows, predictions, strict=True) if said.fits is not None]
    failed = [said for row, said in known if row.out_of_memory]
    fitted = [said for row, said in known if ran(row)]
    return MemoryFit(
        out_of_memory=len(failed),
        refused=sum(not said.fits for said in failed),
        fitting=len(fitted),
        accepted=sum(bool(said.fits) for said in fitted),
    )


def in_band(item: ScoredPoint, predictions: Sequence[ServingPrediction]) -> bool | None:
    """Whether what was measured lies within the band of its figure; None where it has none."""
    band = predictions[item.point.position].bands.get(item.point.metric)
    return None if band is None else band.p10 <= item.measured / item.predicted <= band.p90


def _row(row: ServingRow, said: ServingPrediction) -> RowValidated:
    document = row_document(row.name, QUANTITIES, said, measured_cells(row), said.skipped)
    bands: dict[Quantity, FigureBand] = {
        name: {
            "p10": value * band.p10, "p50": value * band.p50, "p90": value * band.p90, "tag": band.tag,
            "rows": band.rows, "sources": band.sources,
        }
        for name, value in document["predicted"].items() if (band := said.bands.get(name))
    }  # fmt: skip
    return {**document, "bands": bands}


def _left_out(points: Sequence[Point]) -> int:
    return len({point.position for point in points if point.left_out})


def _labels(
    rows: Sequence[ServingRow], predictions: Sequence[ServingPrediction], points: Sequence[Point]
) -> list[RowLabel]:
    reasons: dict[int, dict[str, None]] = {}
    for point in points:
        if point.left_out:
            reasons.setdefault(point.position, {})[f"{point.metric}: {point.left_out}"] = None
    return [
        {
            "model": row.model or "",
            "device": devices_of(row),
            "family": said.family,
            "engine": said.engine,
            "load": row.load,
            "source": row.source_key if row.source else PurePath(row.file).name,
            "left_out": "; ".join(reasons.get(position, ())),
        }
        for position, (row, said) in enumerate(zip(rows, predictions, strict=True))
    ]


def _kind_rows(scored: Sequence[ScoredPoint]) -> list[KindRow]:
    metric = {item.kind: _quantity(item) for item in scored}
    return [
        {**summary_row(metric[kind], summary), "kind": kind}
        for kind, found in kind_summaries(scored).items()
        for summary in found
    ]


def _memory_rows(found: MemoryFit) -> list[MemoryFitRow]:
    parts = (
        ("cells out of memory, refused", found.out_of_memory, found.refused),
        ("cells that ran, accepted", found.fitting, found.accepted),
    )
    return [
        {"quantity": "memory_fit", "group": "memory fit", "name": name, "rows": number, "right": right,
         "share": right / number}
        for name, number, right in parts if number
    ]  # fmt: skip


def _band_rows(scored: Sequence[ScoredPoint], predictions: Sequence[ServingPrediction]) -> list[BandRow]:
    known = [(item, inside) for item in scored if (inside := in_band(item, predictions)) is not None]
    kinds = {"all": known}
    for item, inside in known:
        kinds.setdefault(item.kind, []).append((item, inside))
    return band_rows([(name, sum(inside for _, inside in part), len(part)) for name, part in kinds.items()])


def _quantity(item: ScoredPoint) -> Quantity:
    return cast("Quantity", item.point.metric)


def _lint_rows(findings: Sequence[Finding]) -> list[LintRow]:
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.kind, []).append(finding)
    return [
        {"quantity": "lint", "group": "lint", "name": kind, "rows": len(found),
         "details": {one.name: one.detail for one in found}}
        for kind, found in kinds.items()
    ]  # fmt: skip
