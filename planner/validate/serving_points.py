"""What serving rows measured, figure by figure, and which figures count in no error.

By which rule a figure counts in none is what left_out.csv must say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.carriers import dataclass
from planner.validate.serving import ServingBatch, floor_s, ideal_cycle_s
from planner.validate.serving_entries import Entry
from planner.validate.serving_rows import ServingRow, band_kind, typed_inputs
from planner.validate.serving_setup import task_of

# Loads whose figures of a kind a steady state predicts. In a pile that is sent at once the first token is a queueing
# time, and the time per token is that of a batch whose size is not stated.
_TPOT, _TTFT = ("closed", "static", "open"), ("closed", "static", "first", "open")
_REQUESTS = ("closed", "open")  # each request by itself
_OUTPUT = ("offline", "mlperf", "peak", "single", "burst")


_TAILS = re.compile(r"\s*(?:p ?(?:[89]\d|999?)\b|[89]\dth|max|min|worst|best)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d+)*")
NO_TRUST, UNTRUSTED = "C", "noisy, contradictory or incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One figure of one row."""

    position: int  # of the row
    row: ServingRow
    metric: str  # tpot_s | ttft_s | output_tokens_per_s | batch_latency_s | prefill_tokens_per_s
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
        shape = (self.row.hidden, self.row.layers, self.row.n_experts)
        return shape if self.row.hidden else (self.row.model,)

    @property
    def release(self) -> str:
        """The first number of a version: what is written beside it are other libraries and builds."""
        found = _NUMBER.search(self.row.engine_version or "")
        return ".".join(found.group().split(".")[:3]) if found else ""

    @property
    def campaign(self) -> tuple[object, ...]:
        """Rows that err together: of a publication, an engine's release and a model."""
        return (self.source, (self.row.engine or "").lower(), self.release, *self.model)

    @property
    def configuration(self) -> tuple[object, ...]:
        """What two figures share when they are of the same run in everything that a prediction may read."""
        return (self.metric, *typed_inputs(self.row))

    @property
    def band_kind(self) -> str:
        """Among which figures its error is: of the kinds that `calibration/serving.yaml` has bands of."""
        return band_kind(self.metric, self.row)


def points_of(rows: Sequence[ServingRow], batch: ServingBatch) -> list[Point]:
    """Every figure that rows with a prediction measured."""
    first: dict[int, int] = {}
    for number, entry in enumerate(batch.entries):
        first.setdefault(entry.row, number)
    floor, ideal = floor_s(batch), ideal_cycle_s(batch)
    found = []
    for i, number in first.items():
        entry = batch.entries[number]
        conserved = below_ideal(rows[i], entry, float(ideal[number]))
        for metric, value in measured_of(rows[i]).items():
            why = why_not(rows[i], metric, value, entry, float(floor[number])) or conserved
            device = entry.device.id
            found.append(Point(position=i, row=rows[i], metric=metric, measured=value, device=device, left_out=why))
    return found


def below_ideal(row: ServingRow, entry: Entry, ideal_s: float) -> str:
    """Why a closed loop is no measurement: a machine without losses needs longer for its cycle; "" when it is one.

    Parameters
    ----------
    row
        Load and latencies that were measured; others than closed loops with both latencies are not judged.
    entry
        The row in one of its layouts, for the length of answers.
    ideal_s
        As `ideal_cycle_s` gives it.  [s]
    """
    if row.load != "closed" or not row.tpot_ms or not row.ttft_ms:
        return ""
    cycle = (row.ttft_ms + row.tpot_ms * max(entry.load.output_tokens - 1, 0)) / 1e3
    if not cycle < ideal_s:
        return ""
    ratio = cycle / ideal_s
    return f"its cycle takes {cycle:.3g} s, {ratio:.2f} of the {ideal_s:.3g} s that a machine without losses needs"


def measured_of(row: ServingRow) -> dict[str, float]:
    """What a row measured, in base units; throughput of the whole deployment."""
    found: dict[str, float] = {}
    if row.tpot_ms and row.load in _TPOT:
        found["tpot_s"] = row.tpot_ms / 1e3
    if row.ttft_ms and row.load in _TTFT:
        found["ttft_s"] = row.ttft_ms / 1e3
    apart = bool(row.tpot_ms and row.ttft_ms)  # a mean latency of requests says nothing beside its parts
    if row.e2e_latency_ms and (row.load == "static" or (row.load in _REQUESTS and not apart)):
        found["batch_latency_s"] = row.e2e_latency_ms / 1e3
    if row.prefill_tokens_per_s and row.load == "single":
        found["prefill_tokens_per_s"] = row.prefill_tokens_per_s
    if (row.load in _OUTPUT or (row.load in _REQUESTS and not (row.tpot_ms or row.ttft_ms))) and (
        rate := _output_rate(row)
    ):
        found["output_tokens_per_s"] = rate
    return found


def _output_rate(row: ServingRow) -> float | None:
    if row.output_tokens_per_s_total:
        return row.output_tokens_per_s_total
    if each := row.output_tokens_per_s_per_device:
        return each * (row.n_accel or (row.tp or 1) * (row.pp or 1))
    task = task_of(row.model) if row.load == "mlperf" else None
    made = row.output_tokens or (task.output_tokens if task else None)
    return row.requests_per_s * made if row.requests_per_s and made else None


def why_not(row: ServingRow, metric: str, measured: float, entry: Entry, floor: float) -> str:
    """Why a figure counts in no error: it waited for memory, it cannot be, or nobody trusts it; "" when it counts.

    Parameters
    ----------
    row
        Trust, load and clients.
    metric
        Of `METRICS`.
    measured
        The figure, in base units.
    entry
        The row in one of its layouts: the sequences that it holds at once.
    floor
        As `floor_s` gives it.  [s]
    """
    if row.trust == NO_TRUST:
        return UNTRUSTED
    stated = {"ttft_s": row.ttft_stat, "tpot_s": row.tpot_stat}.get(metric)
    if stated and _TAILS.match(stated):
        return f"{stated}: a tail, where a central value is predicted"
    if metric == "tpot_s" and measured < floor:
        return "below the physical floor: weights and cache take longer to read once at full bandwidth"
    waits = row.load == "closed" and (row.concurrency or 1) > entry.batch_limit * entry.split.replicas
    return "more clients than fit in memory: a queueing time" if metric == "ttft_s" and waits else ""


OUT_OF_MEMORY = "ran out of memory: counts in the memory fit alone"
ALL_AT_ONCE = "TTFT and TPOT: all requests are sent at once, so they are a queueing time and that of an unstated batch"
TAIL = "TTFT and TPOT: a 99th percentile under limits, and a median of a load that is not stated"
UNSTATED = "TTFT and TPOT: of a pile of requests, whose batch is not stated"
_NAMES = {"ttft_s": "TTFT", "tpot_s": "TPOT"}


def left_out_of(rows: Sequence[ServingRow], points: Sequence[Point]) -> dict[str, str]:
    """Name of each row that has a figure without weight, and why.

    Parameters
    ----------
    rows, points
        The table, and its figures as `points_of` gives them.
    """
    reasons: dict[int, list[str]] = {i: list(_by_load(row)) for i, row in enumerate(rows)}
    for point in points:
        if point.left_out and point.left_out != UNTRUSTED:
            reasons[point.position].append(f"{_NAMES.get(point.metric, point.metric)}: {point.left_out}")
    return {rows[i].name: "; ".join(dict.fromkeys(own)) for i, own in reasons.items() if own}


def _by_load(row: ServingRow) -> Sequence[str]:
    if row.trust == NO_TRUST:
        return (f"trust C: {UNTRUSTED}",)
    if row.out_of_memory:
        return (OUT_OF_MEMORY,)
    if row.ttft_ms is None and row.tpot_ms is None:
        return ()
    return {"burst": (ALL_AT_ONCE,), "mlperf": (TAIL,), "offline": (UNSTATED,)}.get(row.load, ())
