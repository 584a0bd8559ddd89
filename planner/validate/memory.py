"""Peak memory of measured rows: of the kind and the rank that a row names, by the model that scenarios use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog
from planner.equations.device_memory import process_bytes
from planner.equations.memory import usable_memory_bytes
from planner.errors import InputError
from planner.estimate.layout import RECOMPUTE_FULL, RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, Layout
from planner.estimate.memory_stack import MemoryStack
from planner.estimate.terms import Terms
from planner.estimate.training_memory import rank_memory
from planner.validate.memory_rows import CHOSEN_RANKS, memory_architecture, row_stack
from planner.validate.rows import MeasuredRow
from planner.validate.rows_machine import device_of
from planner.validate.rows_setup import layout_of

_FITS_WITHIN = 1.1  # an unstated policy counts as possible up to the model's own error


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBand:
    """Measured over predicted memory of the rows of one kind."""

    kind: str  # allocated | reserved | process
    p10: float
    p50: float
    p90: float
    mean_error: float  # absolute, share of the measured
    worst_error: float
    rows: int
    sources: int


def predict_peak_memory(row: MeasuredRow, catalog: Catalog) -> float | None:
    """Peak memory of a row, of the kind and the rank that it names.

    Returns
    -------
    Bytes [B]; None where layers, devices or kind are not given: a pool of states that an unknown
    number of ranks share has no size.
    """
    try:
        terms = memory_terms(row, catalog)
    except InputError:  # a shape that no model has
        return None
    return None if terms is None else _of_kind(terms, row)


def memory_terms(row: MeasuredRow, catalog: Catalog) -> Terms | None:
    """The terms behind `predict_peak_memory`  [B], before the kind of the reading is looked at."""
    arch = memory_architecture(row)
    unshaped = row.is_moe and not row.n_experts  # its layers are those of what a token uses, not of all that is stored
    if unshaped or not arch.layers or row.n_accel is None or row.seq_len is None:
        return None
    stack = row_stack(row, arch)
    layout = Layout(**layout_of(row))
    rank = CHOSEN_RANKS.get(row.mem_rank or "", "max")
    if row.recompute is not None or layout_of(row)["recompute"] != RECOMPUTE_NONE:  # stated, or a known default
        return rank_memory(arch, stack, float(row.seq_len), layout, rank)
    return _least_recompute_that_fits(row, catalog, arch, stack, layout, rank)


def _of_kind(terms: Terms, row: MeasuredRow) -> float:
    kind, total = row.memory_kind, float(terms.total)
    if kind == "formula":
        return float(sum(terms[name] for name in ("weights", "gradients", "optimizer", "activations")))
    if kind == "reserved":
        return total
    if kind == "process":
        return total + float(process_bytes(_communicators(row)))
    return total - float(terms["fragmentation"])


def _communicators(row: MeasuredRow) -> float:
    """Groups of ranks: all, and one for each way in which the job is split."""
    layout = layout_of(row)
    return 1.0 + sum(layout[name] > 1 for name in ("dp", "tp", "pp", "cp", "ep"))


def _least_recompute_that_fits(
    row: MeasuredRow, catalog: Catalog, arch: Architecture, stack: MemoryStack, layout: Layout, rank: str
) -> Terms:
    """An unstated policy is the fastest that fits."""
    device = device_of(row, catalog)
    room = float(usable_memory_bytes(device.memory_bytes)) * _FITS_WITHIN if device else np.inf
    for level in (RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL):
        chosen = replace(layout, recompute=float(level))
        terms = rank_memory(arch, stack, float(row.seq_len or 0), chosen, rank)
        if float(rank_memory(arch, stack, float(row.seq_len or 0), chosen).total) <= room:
            return terms
    return terms


def memory_bands(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[MemoryBand]:
    """Measured over predicted memory by kind of reading; rows without a prediction count in none."""
    found: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        measured = row.measured_memory_bytes
        predicted = predict_peak_memory(row, catalog) if measured else None
        if measured and predicted:
            found.setdefault(row.memory_kind, []).append((measured / predicted, row.source_key or ""))
    return [_band(kind, pairs) for kind, pairs in sorted(found.items())]


def _band(kind: str, pairs: Sequence[tuple[float, str]]) -> MemoryBand:
    ratios = np.array([ratio for ratio, _ in pairs])
    errors = np.abs(1.0 / ratios - 1.0)
    p10, p50, p90 = (float(value) for value in np.quantile(ratios, (0.1, 0.5, 0.9)))
    return MemoryBand(
        kind=kind,
        p10=p10,
        p50=p50,
        p90=p90,
        mean_error=float(np.mean(errors)),
        worst_error=float(np.max(errors)),
        rows=len(pairs),
        sources=len({source for _, source in pairs}),
    )
