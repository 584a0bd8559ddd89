"""Errors of serving predictions, figure by figure and in the kinds that bars speak of.

An error is predicted / measured - 1 of one figure of one row. A row may have several figures; each has a kind, by what
it is and by how load was applied.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from planner.carriers import dataclass
from planner.validate.serving_entries import Entry
from planner.validate.serving_points import Point
from planner.validate.serving_rows import ServingRow
from planner.validate.summary import Summary, by_name, summarise

_CARDS = ("rtx-", "geforce-", "quadro-", "titan-")  # ids of cards for desks and workstations
_OLD_ENGINES = ("fastertransformer",)

TPOT, TTFT = "TPOT, closed loop", "TTFT, closed loop"
OPEN_TPOT, OPEN_TTFT = "TPOT, open loop", "TTFT, open loop"
OFFLINE = "output throughput, offline tables"
MLPERF_OFFLINE, MLPERF_SERVER = "throughput, MLPerf Offline", "throughput, MLPerf Server"
MLPERF_INTERACTIVE = "throughput, MLPerf Interactive"
STATIC, CARDS = "latency, static batches of 2022 engines on A100", "batch-1 decode, consumer and workstation cards"
OTHER_SINGLE, OTHER_STATIC = "batch-1 decode, other devices", "latency, other static batches"
PEAK, BURST = "throughput, best static batch", "throughput, all requests at once"
STATIC_TPOT, FIRST = "TPOT, static batches", "TTFT, static batches and single prompts"
CLOSED_RATE, OPEN_RATE = "throughput, closed loop", "throughput, open loop"
ANSWER = "latency of requests, closed and open loops"
PEAK_MEMORY, PROMPT = "peak memory", "prompt throughput, batch 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPoint:
    """One figure that counts, with what was predicted for it."""

    point: Point
    predicted: float
    engine: str
    family: str  # of the catalog
    device_id: str

    @property
    def row(self) -> ServingRow:
        """The row of the figure."""
        return self.point.row

    @property
    def measured(self) -> float:
        """The figure, in base units."""
        return self.point.measured

    @property
    def target(self) -> float:
        """What the prediction is held against: the figure itself."""
        return self.point.measured

    @property
    def error(self) -> float:
        """Predicted over measured, less one: a share with its sign."""
        return self.predicted / self.point.measured - 1

    @property
    def source(self) -> str:
        """Publication of the row."""
        return self.point.source

    @property
    def configuration(self) -> Hashable:
        """What two figures share when they are of the same run in everything that a prediction may read."""
        return self.point.configuration

    @property
    def kind(self) -> str:
        """Which figures it is judged with."""
        return _KINDS.get((self.point.metric, self.row.load)) or _by_device(self)


_KINDS = {
    ("tpot_s", "closed"): TPOT,
    ("tpot_s", "static"): STATIC_TPOT,
    ("ttft_s", "closed"): TTFT,
    ("tpot_s", "open"): OPEN_TPOT,
    ("ttft_s", "open"): OPEN_TTFT,
    ("ttft_s", "static"): FIRST,
    ("ttft_s", "first"): FIRST,
    ("output_tokens_per_s", "offline"): OFFLINE,
    ("output_tokens_per_s", "peak"): PEAK,
    ("output_tokens_per_s", "static"): PEAK,
    ("output_tokens_per_s", "burst"): BURST,
    ("output_tokens_per_s", "closed"): CLOSED_RATE,
    ("output_tokens_per_s", "open"): OPEN_RATE,
    ("batch_latency_s", "closed"): ANSWER,
    ("batch_latency_s", "open"): ANSWER,
}
_APART = {"peak_memory_bytes": PEAK_MEMORY, "prefill_tokens_per_s": PROMPT}


_MLPERF = (("offline", MLPERF_OFFLINE), ("interactive", MLPERF_INTERACTIVE))


def _by_device(item: ScoredPoint) -> str:
    if item.row.load == "mlperf":
        text = (item.row.scenario or "").lower()
        return next((kind for word, kind in _MLPERF if word in text), MLPERF_SERVER)
    if item.point.metric == "batch_latency_s":
        old = any(name in (item.row.engine or "").lower() for name in _OLD_ENGINES)
        return STATIC if old and item.device_id.startswith("a100") else OTHER_STATIC
    if item.point.metric in _APART:
        return _APART[item.point.metric]
    if item.row.load == "single":
        return CARDS if item.device_id.startswith(_CARDS) else OTHER_SINGLE
    return f"{item.point.metric}, {item.row.load}"


def score_points(
    points: Sequence[Point], predicted: Sequence[float | None] | np.ndarray, entries: Sequence[Entry]
) -> list[ScoredPoint]:
    """Every figure that counts and has a prediction.

    Parameters
    ----------
    points, predicted
        One number a figure, in the same order; nan or None where there is none.
    entries
        As `entries_of` gives them: the engine and the device of each row.
    """
    first: dict[int, Entry] = {}
    for entry in entries:
        first.setdefault(entry.row, entry)
    return [
        ScoredPoint(
            point=point,
            predicted=float(said),
            engine=first[point.position].engine,
            family=first[point.position].device.family,
            device_id=first[point.position].device.id,
        )
        for point, said in zip(points, predicted, strict=True)
        if said is not None and np.isfinite(said) and not point.left_out
    ]


GROUPS: Mapping[str, Callable[[ScoredPoint], str]] = {
    "source": lambda item: item.source or "unstated",
    "engine": lambda item: item.engine or "unstated",
    "device": lambda item: item.device_id,
}


def kind_summaries(scored: Sequence[ScoredPoint]) -> dict[str, list[Summary]]:
    """By kind of figure: all of them, then by source, engine and device."""
    return {
        kind: [summarise(part), *_parts(part)] for kind, part in sorted(by_name(scored, lambda item: item.kind).items())
    }


def _parts(part: Sequence[ScoredPoint]) -> list[Summary]:
    return [
        summarise(own, group, name)
        for group, name_of in GROUPS.items()
        for name, own in sorted(by_name(part, name_of).items())
    ]
