"""Rows of serving measurements: what was served, how load was applied, and what was read off the clock.

The columns are those of planner/measurements/README.md; an empty cell is unknown, neither zero nor a default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from planner.carriers import dataclass
from planner.csvtable import Columns, kinds_of, read_table
from planner.files import StrPath
from planner.validate.rows import HOUSE, rows_that_can_be_read

SERVING_TABLES = ("serving.csv", "serving_more.csv")
SHIPPED_SERVING = "planner/measurements/serving.csv, serving_more.csv"
MEASURED = (
    "output_tokens_per_s_total", "output_tokens_per_s_per_device", "total_tokens_per_s", "requests_per_s",
    "ttft_ms", "tpot_ms", "e2e_latency_ms", "prefill_tokens_per_s", "peak_mem_gb", "kv_cache_gb",
    "out_of_memory",
)  # fmt: skip
UNREAD = ("id", "source", "notes", "trust", "ttft_stat", "tpot_stat")

# How load was applied: the first word that the scenario's text holds decides.
_LOADS = (
    ("all requests at once", "burst"),
    ("closed loop", "closed"),
    ("fixed concurrency", "closed"),
    ("mlperf", "mlperf"),
    ("request throughput", "offline"),
    ("offline", "offline"),
    ("first token", "first"),
    ("peak throughput", "peak"),
    ("llama-bench", "single"),
    ("batch 1 decode", "single"),
    ("batch 1", "static"),
    ("single request", "static"),
    ("open loop", "open"),
    ("poisson", "open"),
    ("static", "static"),
    ("bench latency", "static"),
    ("benchmark_latency", "static"),
    ("one_batch", "static"),
    ("single stream", "static"),
    ("single user", "static"),
    ("bench throughput", "offline"),
    ("benchmark_throughput", "offline"),
    ("batch inference", "offline"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRow:
    """One measured point of a serving engine."""

    # the row
    id: str | None = None
    source: str | None = None
    year: int | None = None
    trust: str | None = None  # A | B | C: noisy, contradictory or incomplete
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
    output_variation: float | None = None  # standard deviation of the answers over their mean
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
        nothing = "burst" if "bench serve" in text or "bench_serving" in text else "offline"  # their default: at once
        unsaid = "closed" if self.concurrency else "open" if self.request_rate else nothing
        found = next((kind for word, kind in _LOADS if word in text), unsaid)
        # one sequence whose prompt nobody states is timed token by token
        return "single" if "batch 1" in text and found == "static" and not self.input_tokens else found

    @property
    def is_moe(self) -> bool:
        """Whether the model routes tokens to experts."""
        return (self.n_experts or 0) > 1


SERVING = Columns(
    kinds=kinds_of(ServingRow, besides=("file", "line")),
    required=("model", "accelerator", "n_accel", "scenario"),
    flags=("out_of_memory",),
    choices={"trust": ("A", "B", "C")},
    zero_allowed=("ep", "dp", "n_experts", "top_k", "output_variation"),
)


def read_serving_rows(path: StrPath) -> tuple[ServingRow, ...]:
    """The rows of a table in the columns of serving.csv, in their order.

    Raises
    ------
    InputError
        Unknown or missing columns, or cells that are no numbers.
    """
    return tuple(ServingRow(**cells, file=str(path), line=line) for line, cells in read_table(path, SERVING))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServing:
    """A user's table: what could be read of it, and what could not."""

    rows: tuple[ServingRow, ...]
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)  # by row: what is wrong with it
    ignored: tuple[str, ...] = ()  # columns of other names


def read_serving_table(path: StrPath) -> ReadServing:
    """The rows of a table that can be read; a wrong cell costs its row and no other.

    Raises
    ------
    InputError
        No file, no CSV, or a needed column is missing.
    """
    kept, refused, ignored = rows_that_can_be_read(path, SERVING, ServingRow, contradiction)
    return ReadServing(rows=kept, refused=refused, ignored=ignored)


def contradiction(row: ServingRow) -> str:
    """What a row says twice and differently, with both figures; empty where it agrees with itself."""
    figures = [name for name in MEASURED[:-1] if getattr(row, name) is not None]
    if row.out_of_memory and figures:
        return f"out_of_memory is 1, and {figures[0]} is {getattr(row, figures[0]):g}"
    if row.top_k and row.n_experts and row.top_k > row.n_experts:
        return f"top_k is {row.top_k}, and n_experts is {row.n_experts}"
    if row.heads and row.kv_heads and row.kv_heads > row.heads:
        return f"kv_heads is {row.kv_heads}, and heads is {row.heads}"
    if row.n_active_params_b and row.n_params_b and row.n_active_params_b > row.n_params_b:
        return f"n_active_params_b is {row.n_active_params_b:g}, and n_params_b is {row.n_params_b:g}"
    output, total = row.output_tokens_per_s_total, row.total_tokens_per_s
    if output and total and output > total * _ROUNDED:
        return f"output_tokens_per_s_total is {output:g}, and total_tokens_per_s is {total:g}"
    return ""


_ROUNDED = 1.01  # figures are printed with few digits


def shipped_serving_rows() -> tuple[ServingRow, ...]:
    """The project's own tables of serving measurements."""
    return tuple(row for name in SERVING_TABLES for row in read_serving_rows(HOUSE / name))


def chosen_serving(
    rows: Sequence[ServingRow],
    *,
    engines: Sequence[str] = (),
    devices: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> tuple[ServingRow, ...]:
    """The rows whose engine, device and source match a pattern each, capitals aside; no pattern matches every row.

    Parameters
    ----------
    rows
        A table, in its order.
    engines, devices, sources
        Patterns; of devices they match class or name.
    """
    return tuple(
        row
        for row in rows
        if _matches(engines, row.engine)
        and _matches(devices, row.accel_class, row.accelerator)
        and _matches(sources, row.source_key)
    )


# A later release of the same engine is the same configuration run again.
_RELEASE = ("year", "engine_version", "arch_source", "accelerator", "file", "line")


def typed_inputs(row: ServingRow) -> tuple[object, ...]:
    """Every cell that a prediction may read, but for releases and names that mean the same."""
    skip = {*MEASURED, *UNREAD, *_RELEASE}
    return tuple(getattr(row, field.name) for field in dataclasses.fields(row) if field.name not in skip)


def band_kind(metric: str, row: ServingRow) -> str:
    """Among which figures the error of a row's figure is: a kind that `calibration/serving.yaml` has bands of."""
    load, first = row.load, metric == "ttft_s"
    if metric == "prefill_tokens_per_s":
        return "prompt"
    if load in ("static", "first", "peak"):
        return "first" if first else "static"
    if load == "closed":
        return "ttft" if first else "throughput" if metric == "output_tokens_per_s" else "tpot"
    if load == "mlperf":
        return "served" if "offline" in (row.scenario or "").lower() else "timely"
    return {"offline": "throughput", "burst": "pile", "single": "single", "open": "open"}[load]


def _matches(patterns: Sequence[str], *names: str | None) -> bool:
    return not patterns or any(fnmatchcase((name or "").lower(), p.lower()) for name in names for p in patterns)


def blank_serving(row: ServingRow) -> ServingRow:
    """The row without what was measured and without what identifies its publication."""
    nothing: dict[str, Any] = dict.fromkeys((*MEASURED, *UNREAD))
    return dataclasses.replace(row, **nothing)
