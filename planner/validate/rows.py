"""Rows of measurements: what was run, and what was read off the clock and the allocator.

The columns are those of planner/measurements/README.md. An empty cell, or a column that a file does not have, is None:
unknown, which is neither zero nor a default. In a user's table a wrong cell costs its row and no other.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from planner.carriers import dataclass
from planner.csvtable import Columns, Table, kinds_of, read_table
from planner.errors import InputError, Place, Problem
from planner.files import StrPath


class Named(Protocol):
    """A row with a name of its own."""

    @property
    def name(self) -> str:
        """The id, or the line when there is none."""
        ...


Row = TypeVar("Row", bound=Named)


def rows_that_can_be_read(
    path: StrPath, columns: Columns, make: Callable[..., Row], contradiction: Callable[[Row], str]
) -> tuple[tuple[Row, ...], dict[str, str], tuple[str, ...]]:
    """Rows of a table in their order, what is wrong with the others by name, and columns of other names.

    Parameters
    ----------
    make
        A row of its cells, and of the file and line where it stands.
    contradiction
        What a row says twice and differently; "" where it agrees with itself.

    Raises
    ------
    InputError
        No file, no CSV, or a needed column is missing.
    """
    table = Table.open(path, replace(columns, others=True))
    kept: list[Row] = []
    refused: dict[str, str] = {}
    for line, cells in table.rows():
        if table.problems:
            name = str(cells.get("id") or f"line {line}")
            refused[name] = "; ".join(problem.message for problem in table.problems)
            table.problems.clear()
            continue
        row = make(**cells, file=str(path), line=line)
        if wrong := contradiction(row):
            refused[row.name] = wrong
        else:
            kept.append(row)
    table.demand_none()
    return tuple(kept), refused, tuple(table.ignored)


HOUSE = Path(__file__).parents[1] / "measurements"
TABLES = ("training.csv", "training_more.csv")
TOTALS_TABLES = ("training_totals.csv", "training_totals_more.csv")
SHIPPED = "planner/measurements/training.csv, training_more.csv"
COLLECTED = "2026-11-21"  # when the shipped rows were read at their sources
UNIT_BYTES = {"GB": 1e9, "GiB": 2.0**30}

# Measured cells, and what identifies a publication: no prediction reads any of these.
MEASURED = ("step_time_s", "tokens_per_s_per_device", "tflops_per_device", "mfu_pct", "peak_mem_gb")
UNREAD = ("id", "source", "source_key", "trust", "notes")
# Cells that change no prediction, and why.
NO_INPUTS = MappingProxyType(
    {
        "family": "the device is that of `accelerator`; this names its generation for people",
        "layers_are_truncated": "`layers` holds what was run",
        "mfu_peak_tflops": "turns a measured utilisation into FLOP/s, and belongs to it",
        "peak_mem_unit": "unit of a measured cell",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One training run of training.csv, or of a user's table in the same columns."""

    # the row
    id: str | None = None
    source: str | None = None
    year: int | None = None
    model: str | None = None
    task: str | None = None
    framework: str | None = None
    software_release: str | None = None
    source_key: str | None = None
    trust: str | None = None
    notes: str | None = None
    # the model
    n_params_b: float | None = None  # [1e9]
    n_active_params_b: float | None = None  # [1e9]
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    ffn_hidden: int | None = None
    gated_mlp: int | None = None
    vocab: int | None = None
    seq_len: int | None = None  # [tokens]
    n_experts: int | None = None
    top_k: int | None = None
    layers_are_truncated: int | None = None
    # the machine
    accelerator: str | None = None
    family: str | None = None
    n_accel: int | None = None
    accel_per_node: int | None = None
    interconnect: str | None = None
    # the layout
    tp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    sharding: str | None = None
    sequence_parallel: int | None = None
    micro_batch: float | None = None  # [sequences]
    global_batch: int | None = None  # [sequences]
    recompute: str | None = None
    offload: str | None = None
    # numerics and software settings
    precision: str | None = None
    precision_class: str | None = None
    fp8_recipe: str | None = None
    states_recipe: str | None = None
    attention_kernel: str | None = None
    compiled: int | None = None
    async_tp: int | None = None
    comm_overlap: str | None = None
    moe_routing: str | None = None
    cuda_graphs: int | None = None
    loss_kind: str | None = None
    deterministic: int | None = None
    # the measurements, and how they were counted
    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None  # [1e12/s]
    flops_convention: str | None = None
    attention_flops: str | None = None
    mfu_pct: float | None = None
    mfu_peak_tflops: float | None = None
    peak_mem_gb: float | None = None  # in peak_mem_unit
    peak_mem_unit: str | None = None
    peak_mem_kind: str | None = None
    mem_rank: str | None = None
    # where the row stands
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The id, or the line when there is none."""
        return self.id or f"line {self.line}"

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of one optimizer step [tokens]; None when batch or sequence is unknown."""
        if self.global_batch is None or self.seq_len is None:
            return None
        return float(self.global_batch) * self.seq_len

    @property
    def is_moe(self) -> bool:
        """Whether the model routes tokens to experts: it has several, or a token uses some parameters only."""
        if self.n_experts is not None:
            return self.n_experts > 1
        active = self.active_params_b
        return active is not None and active < _ALL_ACTIVE * (self.n_params_b or _named_size(self.model) or 0.0)

    @property
    def active_params_b(self) -> float | None:
        """Parameters that a token uses [1e9]: as stated, else as the name says ("…-A12B"); None where neither does."""
        if self.n_active_params_b is not None:
            return self.n_active_params_b
        named = _NAMED_ACTIVE.search(self.model or "")
        return float(named[1]) if named else None

    @property
    def adapters(self) -> str:
        """What is trained beside frozen weights: lora, qlora (of a 4-bit base), or "" for all weights."""
        words = f"{self.task or ''} {self.states_recipe or ''}".lower()
        return "qlora" if "qlora" in words else "lora" if any(word in words for word in _ADAPTERS) else ""

    @property
    def loss(self) -> str:
        """How the loss is computed: fused | chunked; "" where it is not said, or otherwise."""
        words = (self.loss_kind or "").lower()
        return "chunked" if "chunk" in words else "fused" if any(one in words for one in _FUSED_LOSSES) else ""

    @property
    def kind(self) -> str:
        """What rows share a band: tuning | hybrid (only sizes known) | experts | dense."""
        if (self.task and not _PRETRAINED.search(self.task.lower())) or self.adapters:
            return "tuning"
        if not self.is_moe:
            return "dense"
        return "experts" if self.n_experts else "hybrid"

    @property
    def size(self) -> str:
        """Parameters, and those of a token, in whole 1e9."""
        return f"{self.n_params_b or 0:.0f}-{self.active_params_b or 0:.0f}"

    @property
    def measured_memory_bytes(self) -> float | None:
        """The peak memory that was read [B]; None when none was."""
        if self.peak_mem_gb is None:
            return None
        return self.peak_mem_gb * UNIT_BYTES[self.peak_mem_unit or "GB"]

    @property
    def memory_kind(self) -> str:
        """What the peak memory was read from: allocated | reserved | process | formula; "" when no kind is named."""
        text = (self.peak_mem_kind or "").lower()
        return next((kind for word, kind in _MEMORY_WORDS if word in text), "allocated" if text else "")


_FUSED_LOSSES = ("fused", "liger", "cut")
_ADAPTERS = ("lora", "dora", "peft", "adapter")
_PRETRAINED = re.compile(r"pre-?\s?train")
_ALL_ACTIVE = 0.95  # share of the parameters from which on a token counts as using them all
_NAMED_ACTIVE = re.compile(r"(?<![A-Za-z0-9])A(\d+(?:\.\d+)?)[Bb](?![A-Za-z0-9])")
_NAMED_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*[bB]\b")


def _named_size(model: str | None) -> float | None:
    """The parameters of a model's name [1e9], as in "Qwen3-30B-A3B"; None where it says none."""
    found = _NAMED_SIZE.search(model or "")
    return float(found[1]) if found else None


# Words of peak_mem_kind, the telling ones first; torchtitan's log prints the reserved pool.
_MEMORY_WORDS = (
    ("digitised", "formula"), ("reserved", "reserved"), ("torchtitan", "reserved"), ("nvidia-smi", "process"),
    ("per gpu", "process"), ("nvml", "process"), ("rocm-smi", "process"), ("amd-smi", "process"), ("device", "process"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsRow:
    """The budget of one whole training run. Text columns may hold remarks beside their number."""

    id: str | None = None
    model: str | None = None
    params_b: float | None = None  # [1e9]
    active_params_b: float | None = None  # [1e9]
    tokens_b: float | None = None  # [1e9]
    epochs: float | None = None
    accelerator: str | None = None
    n_accel: str | None = None
    gpu_hours: str | None = None
    days: str | None = None
    source: str | None = None
    notes: str | None = None
    evidence: str | None = None
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """The id, or the line when there is none."""
        return self.id or f"line {self.line}"

    @property
    def devices(self) -> int | None:
        """Devices of the run; None when unknown, varied or only recalled."""
        value = _stated(self.n_accel)
        return None if value is None else int(value)

    @property
    def device_hours(self) -> float | None:
        """Device hours of the run [h]: as stated, else devices times days; None when neither is."""
        hours, days = _stated(self.gpu_hours), _stated(self.days)
        if hours is None and days is not None and self.devices is not None:
            hours = self.devices * days * 24.0
        return hours or None  # nothing is no measurement


_STATED = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?)(?:\s*\(.*\))?")


def _stated(text: str | None) -> float | None:
    """The number of a text, a remark in brackets behind it aside; none of a range, a sum or a recollection."""
    match = _STATED.fullmatch(text or "")
    return None if match is None or "recalled" in (text or "") else float(match[1].replace(",", ""))


TRAINING = Columns(
    kinds=kinds_of(MeasuredRow, besides=("file", "line")),
    required=("accelerator", "n_accel", "seq_len"),
    flags=(
        "gated_mlp", "sequence_parallel", "compiled", "async_tp", "cuda_graphs", "deterministic",
        "layers_are_truncated",
    ),
    choices={
        "trust": ("A", "B", "C"),
        "flops_convention": ("model", "hardware"),
        "attention_flops": ("full", "causal", "none"),
        "peak_mem_unit": tuple(UNIT_BYTES),
    },
    zero_allowed=("n_experts", "top_k"),
)  # fmt: skip
TOTALS = Columns(kinds=kinds_of(TotalsRow, besides=("file", "line")), required=("params_b", "tokens_b", "accelerator"))


def read_training_rows(path: StrPath) -> tuple[MeasuredRow, ...]:
    """The rows of a table in the columns of training.csv, in their order.

    Raises
    ------
    InputError
        Unknown or missing columns, cells that are no numbers, a peak memory without a unit.
    """
    found = [MeasuredRow(**cells, file=str(path), line=line) for line, cells in read_table(path, TRAINING)]
    problems = [_no_unit(row) for row in found if row.peak_mem_gb is not None and row.peak_mem_unit is None]
    if problems:
        raise InputError(*problems)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """A user's table: what could be read of it, and what could not."""

    rows: tuple[MeasuredRow, ...]
    refused: Mapping[str, str] = field(default_factory=dict)  # by row: what is wrong with it
    ignored: tuple[str, ...] = ()  # columns of other names


def read_training_table(path: StrPath) -> ReadRows:
    """The rows of a table that can be read; a wrong cell costs its row and no other.

    Raises
    ------
    InputError
        No file, no CSV, or a needed column is missing.
    """
    kept, refused, ignored = rows_that_can_be_read(path, TRAINING, MeasuredRow, contradiction)
    return ReadRows(rows=kept, refused=refused, ignored=ignored)


def contradiction(row: MeasuredRow) -> str:
    """What a row says twice and differently, with both figures; empty where it agrees with itself."""
    if row.peak_mem_gb is not None and row.peak_mem_unit is None:
        return _no_unit(row).message
    degrees = (row.dp, row.tp, row.pp, row.cp)
    if row.n_accel and all(degrees):
        product = math.prod(degree or 1 for degree in degrees)
        if product != row.n_accel:
            return f"dp x tp x pp x cp is {product}, and n_accel is {row.n_accel}"
    if row.mfu_pct is not None and row.mfu_pct > _WHOLE:
        return f"mfu_pct is {row.mfu_pct:g}, above {_WHOLE:g} % of the peak"
    if row.tflops_per_device and row.mfu_peak_tflops and row.tflops_per_device > row.mfu_peak_tflops:
        return f"tflops_per_device is {row.tflops_per_device:g}, and mfu_peak_tflops {row.mfu_peak_tflops:g}"
    if row.step_time_s and row.tokens_per_s_per_device and row.tokens_per_step and row.n_accel:
        implied = row.tokens_per_step / row.tokens_per_s_per_device / row.n_accel
        if abs(math.log(implied / row.step_time_s)) > _LINKED:
            return f"step_time_s is {row.step_time_s:g}, and tokens_per_s_per_device makes it {implied:.4g}"
    return ""


_WHOLE, _LINKED = 100.0, 0.05  # percent; logarithm by which two figures of one time may differ


def _no_unit(row: MeasuredRow) -> Problem:
    return Problem(
        reference="missing-unit",
        message="peak_mem_gb has no unit",
        places=(Place(file=row.file, line=row.line, column=1),),
        hint="write GB (1e9 bytes) or GiB (2^30) in peak_mem_unit",
    )


def read_totals(path: StrPath) -> tuple[TotalsRow, ...]:
    """The rows of a table in the columns of training_totals.csv, in their order."""
    return tuple(TotalsRow(**cells, file=str(path), line=line) for line, cells in read_table(path, TOTALS))


def read_totals_table(path: StrPath) -> tuple[tuple[TotalsRow, ...], dict[str, str], tuple[str, ...]]:
    """As `rows_that_can_be_read`, of whole runs.

    Raises
    ------
    InputError
        No file, no CSV, or a needed column is missing.
    """
    return rows_that_can_be_read(path, TOTALS, TotalsRow, lambda row: "")


def shipped_training_rows() -> tuple[MeasuredRow, ...]:
    """The project's own tables of training runs."""
    return tuple(row for name in TABLES for row in read_training_rows(HOUSE / name))


def of_families(rows: Sequence[MeasuredRow], patterns: Sequence[str]) -> tuple[MeasuredRow, ...]:
    """The rows whose family matches one of the patterns, capitals aside; no pattern matches every row."""
    wanted = [pattern.lower() for pattern in patterns]
    return tuple(row for row in rows if not wanted or any(fnmatchcase((row.family or "").lower(), p) for p in wanted))


def shipped_totals() -> tuple[TotalsRow, ...]:
    """The project's own table of whole-run budgets."""
    return tuple(row for name in TOTALS_TABLES for row in read_totals(HOUSE / name))


def shipped_left_out() -> dict[tuple[str, str], str]:
    """Why a row of ours counts in no error figure, by (file, id)."""
    columns = Columns(kinds={"id": str, "file": str, "why": str}, required=("id", "file", "why"))
    return {(cells["file"], cells["id"]): cells["why"] for _, cells in read_table(HOUSE / "left_out.csv", columns)}


def shipped_reasons() -> list[dict[str, str]]:
    """What is known about rows of ours that predictions miss: which rows, and why."""
    columns = Columns(kinds={"rows": str, "file": str, "why": str}, required=("rows", "file", "why"))
    return [cells for _, cells in read_table(HOUSE / "obstacles.csv", columns)]


def blank_measured(row: MeasuredRow) -> MeasuredRow:
    """The row without what was measured and without what identifies its publication."""
    nothing: dict[str, Any] = dict.fromkeys((*MEASURED, *UNREAD))
    return dataclasses.replace(row, **nothing)


def typed_inputs(row: MeasuredRow, *, besides: Sequence[str] = ()) -> tuple[object, ...]:
    """Every cell that a prediction may read, in the order of the columns."""
    skip = {*MEASURED, *UNREAD, "file", "line", *besides}
    return tuple(getattr(row, name) for name in MeasuredRow.__slots__ if name not in skip)
