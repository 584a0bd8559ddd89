"""Rows of serving measurements: what was served, how load was applied, and what was read off the clock.

The columns are those of planner/measurements/README.md; an empty cell is unknown, neither zero nor a default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from planner.carriers import dataclass
from planner.csvtable import Columns, kinds_of, read_table
from planner.files import StrPath
from planner.validate.rows import HOUSE

SHIPPED_SERVING = "planner/measurements/serving.csv"
MEASURED = (
    "output_tokens_per_s_total", "output_tokens_per_s_per_device", "total_tokens_per_s", "requests_per_s",
    "ttft_ms", "tpot_ms", "e2e_latency_ms", "prefill_tokens_per_s", "peak_mem_gb", "kv_cache_gb",
    "out_of_memory",
)  # fmt: skip
UNREAD = ("id", "source", "notes", "ttft_stat", "tpot_stat")

# How load was applied: the first word that the scenario's text holds decides.
_LOADS = (
    ("all requests at once", "burst"),
    ("closed loop", "closed"),
    ("fixed concurrency", "closed"),
    ("bench serve", "closed"),
    ("mlperf", "mlperf"),
    ("request throughput", "offline"),
    ("offline", "offline"),
    ("first token", "first"),
    ("peak throughput", "peak"),
    ("llama-bench", "single"),
    ("batch 1", "single"),
    ("server", "open"),
    ("open loop", "open"),
    ("static", "static"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRow:
    """One measured point of a serving engine."""

    # the row
    id: str | None = None
    source: str | None = None
    year: int | None = None
    notes: str | None = None
    # the model
    model: str | None = None
    n_params_b: float | None = None  # [1e9]
    n_active_params_b: float | None = None  # [1e9]
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    ffn_hidden: int | None = None
    n_experts: int | None = None
    top_k: int | None = None
    vocab: int | None = None
    arch_source: str | None = None
    # the machine
    accelerator: str | None = None
    accel_class: str | None = None
    n_accel: int | None = None
    # the layout
    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    # the engine and its formats
    engine: str | None = None
    engine_version: str | None = None
    weight_precision: str | None = None
    kv_precision: str | None = None
    # the load
    input_tokens: float | None = None
    output_tokens: float | None = None
    scenario: str | None = None
    concurrency: float | None = None
    request_rate: float | None = None  # [1/s]
    # the measurements
    output_tokens_per_s_total: float | None = None
    output_tokens_per_s_per_device: float | None = None
    total_tokens_per_s: float | None = None
    requests_per_s: float | None = None
    ttft_ms: float | None = None
    ttft_stat: str | None = None
    tpot_ms: float | None = None
    tpot_stat: str | None = None
    e2e_latency_ms: float | None = None
    prefill_tokens_per_s: float | None = None
    peak_mem_gb: float | None = None  # [1e9 B]
    kv_cache_gb: float | None = None
    out_of_memory: int | None = None  # 1: it did not run
    # where the row stands
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The id, or the line when there is none."""
        return self.id or f"line {self.line}"

    @property
    def source_key(self) -> str:
        """The publication: text of `source` before the first colon."""
        return (self.source or self.file).split(":")[0]

    @property
    def load(self) -> str:
        """How load was applied: closed | burst | offline | mlperf | static | peak | first | single | open."""
        text = (self.scenario or "").lower()
        unsaid = "closed" if self.concurrency else "open" if self.request_rate else "offline"
        return next((kind for word, kind in _LOADS if word in text), unsaid)

    @property
    def is_moe(self) -> bool:
        """Whether the model routes tokens to experts."""
        return (self.n_experts or 0) > 1


SERVING = Columns(
    kinds=kinds_of(ServingRow, besides=("file", "line")),
    required=("model", "accelerator", "n_accel", "scenario"),
    flags=("out_of_memory",),
    choices={},
    zero_allowed=("ep", "dp", "n_experts", "top_k"),
)


def read_serving_rows(path: StrPath) -> tuple[ServingRow, ...]:
    """The rows of a table in the columns of serving.csv, in their order.

    Raises
    ------
    InputError
        Unknown or missing columns, or cells that are no numbers.
    """
    return tuple(ServingRow(**cells, file=str(path), line=line) for line, cells in read_table(path, SERVING))


def shipped_serving_rows() -> tuple[ServingRow, ...]:
    """The project's own table of serving measurements."""
    return read_serving_rows(HOUSE / "serving.csv")


def chosen_serving(
    rows: Sequence[ServingRow],
    *,
    engines: Sequence[str] = (),
    devices: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> tuple[ServingRow, ...]:
    """The rows whose engine, device and source match a pattern each, capitals aside; no pattern matches every row."""
    return tuple(
        row
        for row in rows
        if _matches(engines, row.engine)
        and _matches(devices, row.accel_class, row.accelerator)
        and _matches(sources, row.source_key)
    )


def _matches(patterns: Sequence[str], *names: str | None) -> bool:
    return not patterns or any(fnmatchcase((name or "").lower(), p.lower()) for name in names for p in patterns)


def blank_serving(row: ServingRow) -> ServingRow:
    """The row without what was measured and without what identifies its publication."""
    nothing: dict[str, Any] = dict.fromkeys((*MEASURED, *UNREAD))
    return dataclasses.replace(row, **nothing)
