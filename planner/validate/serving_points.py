"""What serving rows measured, figure by figure, and which figures count in no error."""

from __future__ import annotations

from collections.abc import Sequence

from planner.carriers import dataclass
from planner.validate.serving import Entry, ServingBatch, floor_s
from planner.validate.serving_rows import ServingRow

# Loads whose figures of a kind a steady state predicts. In a pile that is sent at once the first token is a queueing
# time, and the time per token is that of a batch whose size is not stated.
_TPOT, _TTFT = ("closed", "static"), ("closed", "static", "first")
_OUTPUT = ("offline", "mlperf", "peak", "single", "burst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One figure of one row."""

    position: int  # of the row
    row: ServingRow
    metric: str  # tpot_s | ttft_s | output_tokens_per_s | batch_latency_s
    measured: float
    device: str = ""  # of the catalog
    left_out: str = ""  # why it counts in no error figure; "" when it counts

    @property
    def source(self) -> str:
        """Publication of the row; the rounds of one benchmark are one."""
        return self.row.source_key.split("_v")[0] if "mlcommons" in self.row.source_key else self.row.source_key

    @property
    def model(self) -> tuple[object, ...]:
        """What makes two rows the same model."""
        return (self.row.hidden, self.row.layers, self.row.n_experts)


def points_of(rows: Sequence[ServingRow], batch: ServingBatch) -> list[Point]:
    """Every figure that rows with a prediction measured."""
    first: dict[int, int] = {}
    for number, entry in enumerate(batch.entries):
        first.setdefault(entry.row, number)
    floor = floor_s(batch)
    found = []
    for i, number in first.items():
        for metric, value in measured_of(rows[i]).items():
            why = why_not(rows[i], metric, value, batch.entries[number], float(floor[number]))
            device = batch.entries[number].device.id
            found.append(Point(position=i, row=rows[i], metric=metric, measured=value, device=device, left_out=why))
    return found


def measured_of(row: ServingRow) -> dict[str, float]:
    """What a row measured, in base units; throughput of the whole deployment."""
    found: dict[str, float] = {}
    if row.tpot_ms and row.load in _TPOT:
        found["tpot_s"] = row.tpot_ms / 1e3
    if row.ttft_ms and row.load in _TTFT:
        found["ttft_s"] = row.ttft_ms / 1e3
    if row.e2e_latency_ms and row.load == "static":
        found["batch_latency_s"] = row.e2e_latency_ms / 1e3
    if row.load in _OUTPUT and (rate := _output_rate(row)):
        found["output_tokens_per_s"] = rate
    return found


def _output_rate(row: ServingRow) -> float | None:
    if row.output_tokens_per_s_total:
        return row.output_tokens_per_s_total
    each = row.output_tokens_per_s_per_device
    return each * (row.tp or 1) * (row.pp or 1) if each else None


def why_not(row: ServingRow, metric: str, measured: float, entry: Entry, floor: float) -> str:
    """Why a figure counts in no error: it waited for memory, or it cannot be; "" when it counts."""
    if metric == "tpot_s" and measured < floor:
        return "below the physical floor: weights and cache take longer to read once at full bandwidth"
    waits = row.load == "closed" and (row.concurrency or 1) > entry.batch_limit * entry.split.replicas
    return "more clients than fit in memory: a queueing time" if metric == "ttft_s" and waits else ""
