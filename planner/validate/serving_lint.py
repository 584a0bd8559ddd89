"""Measurements that cannot be right, or are not of what they say: faster than memory can be read, or beyond it.

A figure below the floor, or a closed loop whose cycle is shorter than the work in it on a machine without losses, is
wrong, or of another configuration: other formats, other layout, drafted tokens, prompts found in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.carriers import dataclass
from planner.validate.serving import ServingBatch, floor_s, ideal_cycle_s
from planner.validate.serving_entries import Entry
from planner.validate.serving_memory import RowMemory, memory_of
from planner.validate.serving_points import below_ideal, measured_of
from planner.validate.serving_rows import ServingRow

BELOW_FLOOR = "is faster than its weights and cache can be read once at full bandwidth"
BELOW_IDEAL = "answers in less time than a machine without losses needs for as much work"
NO_ROOM = "has a measurement, although it cannot have fitted the memory"
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
        return [(NO_ROOM, f"{needed:.1f} GB of a device are needed, {there:.1f} GB are there")]
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
