"""The outcome of a validation of serving rows: what was predicted and measured, errors by kind, coverage, lint.

Lint finds measurements that cannot be right, or are not of what they say. A figure below the floor, or a closed loop
whose cycle is shorter than the work in it on a machine without losses, is wrong, or of another configuration: other
formats, other layout, drafted tokens, prompts found in a cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import cast

import numpy as np

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
from planner.validate.serving import NO_ROOM, ServingBatch, ServingPrediction, batch_of, floor_s, ideal_cycle_s
from planner.validate.serving_entries import Entry, RowMemory, memory_of
from planner.validate.serving_points import Point, below_ideal, measured_of, points_of
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_score import (
    ScoredPoint,
    kind_summaries,
    score_points,
)

BELOW_FLOOR = "is faster than its weights and cache can be read once at full bandwidth"
BELOW_IDEAL = "answers in less time than a machine without losses needs for as much work"
CANNOT_FIT = "has a measurement, although it cannot have fitted the memory"
WAITS = "states more sequences than fit the memory at once: what was measured is a smaller batch, and a queue"
_KNOWN_BATCH = ("static", "peak")
_SLACK = 1e-9  # of a floor, for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is odd about one row."""

    position: int  # of the row
    name: str
    kind: str
    detail: str


def lint(rows: Sequence[ServingRow], batch: ServingBatch) -> list[Finding]:
    """Everything odd about rows that have a measurement; `batch` as `batch_of` gives it."""
    floors = floor_s(replace(batch, clients=np.array([_decoding(rows[entry.row], entry) for entry in batch.entries])))
    ideal = ideal_cycle_s(batch)
    layouts: dict[int, list[int]] = {}
    for number, entry in enumerate(batch.entries):
        layouts.setdefault(entry.row, []).append(number)
    found: list[Finding] = []
    for position, numbers in layouts.items():
        row, own = rows[position], [batch.entries[number] for number in numbers]
        memory = [memory_of(row, entry) for entry in own]
        floor = min(float(floors[number]) for number in numbers)
        shortest = below_ideal(row, own[0], min(float(ideal[number]) for number in numbers))
        odd = [*_below_floor(row, floor, own[0]), *_beyond_memory(row, own, memory)]
        odd += [(BELOW_IDEAL, shortest)] if shortest else []
        found += [Finding(position=position, name=row.name, kind=kind, detail=detail) for kind, detail in odd]
    return found


def _decoding(row: ServingRow, entry: Entry) -> float:
    """Sequences that decode together: all of a static batch; of a closed loop, by Little's law and its own times."""
    load = entry.load
    if load.kind in _KNOWN_BATCH:
        return load.clients
    if load.kind != "closed" or not row.tpot_ms or not row.ttft_ms:
        return 1.0
    answer = row.tpot_ms * max(load.output_tokens - 1, 0)
    return max(load.clients * answer / (answer + row.ttft_ms), 1.0)


def _below_floor(row: ServingRow, floor: float, entry: Entry) -> list[tuple[str, str]]:
    shortest = {name: value for name, value in _step_times(row, entry).items() if value < floor * (1 - _SLACK)}
    return [
        (BELOW_FLOOR, f"{name} says {1e3 * value:.3g} ms a step, at least {1e3 * floor:.3g} ms are needed")
        for name, value in shortest.items()
    ]


def _step_times(row: ServingRow, entry: Entry) -> dict[str, float]:
    """The longest decode step that each figure of a row leaves room for.  [s]"""
    figures, load = measured_of(row), entry.load
    steps = {"tpot_s": figures["tpot_s"]} if "tpot_s" in figures else {}
    if "batch_latency_s" in figures and load.output_tokens:
        steps["batch_latency_s"] = figures["batch_latency_s"] / max(load.output_tokens - 1, 1)
    if "output_tokens_per_s" in figures and load.kind in ("single", *_KNOWN_BATCH):
        together = load.clients if load.kind in _KNOWN_BATCH else 1.0
        steps["output_tokens_per_s"] = together / figures["output_tokens_per_s"]
    return steps


def _beyond_memory(row: ServingRow, own: Sequence[Entry], memory: Sequence[RowMemory]) -> list[tuple[str, str]]:
    if not ran(row):
        return []
    if not any(one.runs for one in memory):
        least = min(memory, key=lambda one: one.needed_bytes / one.available_bytes)
        needed, there = least.needed_bytes / 1e9, least.available_bytes / 1e9
        return [(CANNOT_FIT, f"{needed:.1f} GB of a device are needed, {there:.1f} GB are there")]
    most = max(one.batch_limit * entry.split.replicas for one, entry in zip(memory, own, strict=True))
    stated = own[0].load.clients
    if own[0].load.kind in ("closed", *_KNOWN_BATCH) and stated > most:
        return [(WAITS, f"{stated:,.0f} are stated, {most:,.0f} fit")]
    return []


def ran(row: ServingRow) -> bool:
    """Whether a row has a figure, so that its configuration must have fitted."""
    cells = (
        row.output_tokens_per_s_total, row.output_tokens_per_s_per_device, row.total_tokens_per_s, row.requests_per_s,
        row.ttft_ms, row.tpot_ms, row.e2e_latency_ms, row.prefill_tokens_per_s, row.peak_mem_gb,
    )  # fmt: skip
    return any(cell is not None for cell in cells) and not row.out_of_memory


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
