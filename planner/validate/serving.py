"""Rows of serving measurements as inputs of the estimators, and what the analytic tier predicts for them.

Nothing measured is read, and nothing that identifies a publication.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, ServingCalibration
from planner.equations.registry import FloatOrArray, as_float
from planner.estimate.engines import ENGINES
from planner.estimate.serving import (
    ServingPeaks,
    serving_peaks,
)
from planner.estimate.serving_closed import closed_loop, static_batch, timely_requests_per_s
from planner.estimate.serving_constants import (
    IDEAL,
    TEXTBOOK,
    Calibrated,
    ServingConstants,
    calibrated,
    demanded,
    layout_kind,
)
from planner.estimate.serving_runs import open_run, pile_s, pile_through_http_s
from planner.estimate.serving_step import Replica
from planner.estimate.serving_work import ServingWork
from planner.validate.serving_entries import (
    Entry,
    RowMemory,
    Values,
    domain_of,
    entries_of,
    layout_of,
    machine_of,
    memory_of,
    serving_refusal,
)
from planner.validate.serving_rows import ServingRow, band_kind

# Engines that hold the cache of the batch that they are asked for from the start, and fail where it does not fit.
WHOLE_BATCH = ("fastertransformer", "neuron", "trt-llm-0", "optimum-habana", "ctranslate2")
NO_ROOM = "does not fit the memory of its devices"
NO_FIGURE = "no figure can be worked out: a rate that its layout needs is not known"
TOO_LATE = "no rate at all keeps the latencies that its run must keep"
METRICS = ("tpot_s", "ttft_s", "output_tokens_per_s", "batch_latency_s", "prefill_tokens_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPrediction:
    """What the model says about one row; None where it says nothing."""

    tpot_s: float | None = None
    ttft_s: float | None = None
    output_tokens_per_s: float | None = None
    batch_latency_s: float | None = None
    prefill_tokens_per_s: float | None = None
    peak_memory_bytes: float | None = None
    fits: bool | None = None  # the memory: one longest request, or all of a batch that is allocated as a whole
    floor_s: float | None = None  # no token comes faster: weights and cache at full bandwidth
    skipped: str | None = None
    engine: str = ""
    family: str = ""
    bands: Mapping[str, Band] = field(default_factory=dict)  # measured over predicted, by metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingBatch:
    """Entries side by side: element i of every array belongs to entry i."""

    entries: tuple[Entry, ...]
    replica: Replica
    index: NDArray[np.int64]  # row of each entry
    input_tokens: Values
    output_tokens: Values
    clients: Values
    requests: Values
    batch_limit: Values
    replicas: Values
    beams: Values
    rate: Values  # of an open loop; 0 = not one  [1/s]
    variation: Values  # standard deviation of the answers over their mean
    first_wave: Values  # share of a closed loop's requests that are their clients' first

    @property
    def pile(self) -> Values:
        """Variation of the answers of a pile that is not sent through a server: that is another time."""
        apart = np.array([entry.load.kind in ("burst", "mlperf") for entry in self.entries])
        return np.where(apart, 0.0, self.variation)

    @property
    def static_limit(self) -> Values:
        """Sequences of a static batch that run at once: all, where an engine holds room for the batch it is given."""
        held = np.array([entry.engine in WHOLE_BATCH for entry in self.entries])
        return np.where(held, np.inf, self.batch_limit)

    def take(self, chosen: NDArray[np.int64]) -> ServingBatch:
        """Some of the entries."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name not in ("entries", "replica")}
        return ServingBatch(entries=tuple(self.entries[i] for i in chosen), replica=self.replica.take(chosen), **arrays)

    def predict(self, constants: ServingConstants) -> dict[str, Values]:
        """Every metric of every entry, of the whole deployment; those that its load does not have are nan."""
        found = {metric: np.full(len(self.entries), np.nan) for metric in METRICS}
        kinds = np.array([entry.load.kind for entry in self.entries])
        whole = replace(self, replica=replace(self.replica, constants=constants))
        for kind in dict.fromkeys(kinds.tolist()):
            rows = np.flatnonzero(kinds == kind)
            part = whole if len(rows) == len(kinds) else whole.take(rows)
            with np.errstate(all="ignore"):
                for metric, values in part._of_load(kind).items():
                    found[metric][rows] = values
        return found

    def _of_load(self, kind: str) -> dict[str, FloatOrArray]:
        """The metrics of entries that are all under one kind of load."""
        replica, given, made = self.replica, self.input_tokens, self.output_tokens
        every = np.full(len(self.entries), True)
        if kind == "first":
            return {"ttft_s": replica.prefill_alone_s(given)}
        if kind == "closed":
            loop = closed_loop(
                replica, given, made, self.clients / self.replicas, self.batch_limit, first_wave=self.first_wave
            )
            return {
                "tpot_s": loop.tpot_s,
                "ttft_s": loop.ttft_s,
                "output_tokens_per_s": loop.requests_per_s * made * self.replicas,
                "batch_latency_s": _answer_s(loop.ttft_s, loop.tpot_s, made),
            }
        if kind == "burst":
            full = closed_loop(replica, given, made, self.requests, self.batch_limit)
            rate = self._through_http(replica, every)
            return {"tpot_s": full.tpot_s, "ttft_s": full.ttft_s / 2, "output_tokens_per_s": rate}
        if kind == "open":
            run = self._open_loop(replica, every)
            return {**run, "batch_latency_s": _answer_s(run["ttft_s"], run["tpot_s"], made)}
        if kind in ("offline", "mlperf"):
            whole = pile_s(replica, given, made, self.requests, self.batch_limit, beams=self.beams, variation=self.pile)
            pile = self.requests * made / whole
            rate = np.fmin(pile, self._under_limits(replica, every)) if kind == "mlperf" else pile
            return {"output_tokens_per_s": rate * self.replicas}
        batch = static_batch(replica, given, made, self.clients, batch_limit=self.static_limit)
        if kind == "single":  # llama-bench: as many tokens in as out, apart
            prompt = made / np.asarray(replica.prefill_alone_s(made))
            return {"output_tokens_per_s": 1 / np.asarray(batch.step_s), "prefill_tokens_per_s": prompt}
        rates = {"output_tokens_per_s": self.clients * made / np.asarray(batch.latency_s)}
        if kind == "peak":
            return rates
        return {**rates, "tpot_s": batch.step_s, "ttft_s": batch.first_token_s, "batch_latency_s": batch.latency_s}

    def _under_limits(self, replica: Replica, asked: NDArray[np.bool_]) -> Values:
        """Output tokens a second that keep the limits of a run; nan where it has none."""
        found = np.full(len(asked), np.nan)
        loads = [entry.load for entry in self.entries]
        rows = np.flatnonzero(asked & np.isfinite([load.tpot_limit_s for load in loads]))
        if len(rows):
            found[rows] = self.output_tokens[rows] * timely_requests_per_s(
                replica.take(rows),
                self.input_tokens[rows],
                self.output_tokens[rows],
                np.maximum(self.batch_limit[rows], 1.0),
                ttft_s=_column(loads[row].ttft_limit_s for row in rows),
                tpot_s=_column(loads[row].tpot_limit_s for row in rows),
                variation=_column(loads[row].variation for row in rows),
                beams=self.beams[rows],
            )
        return found

    def _through_http(self, replica: Replica, asked: NDArray[np.bool_]) -> Values:
        """Output tokens a second of a pile that a server hands to its replicas; nan where the load is another."""
        found = np.full(len(asked), np.nan)
        rows = np.flatnonzero(asked)
        if len(rows):
            given, made, sent = self.input_tokens[rows], self.output_tokens[rows], self.requests[rows]
            share = sent / self.replicas[rows]
            time = pile_through_http_s(
                replica.take(rows), given, made, share, self.batch_limit[rows], self.variation[rows]
            )
            found[rows] = sent * made / time
        return found

    def _open_loop(self, replica: Replica, asked: NDArray[np.bool_]) -> dict[str, Values]:
        """Means of runs at the offered rates; nan where the load is another."""
        found = {name: np.full(len(asked), np.nan) for name in ("tpot_s", "ttft_s", "output_tokens_per_s")}
        rows = np.flatnonzero(asked & (self.rate > 0))
        if not len(rows):
            return found
        shared, made = self.replicas[rows], self.output_tokens[rows]
        with np.errstate(all="ignore"):
            run = open_run(
                replica.take(rows), self.input_tokens[rows], made, self.rate[rows] / shared,
                self.requests[rows] / shared, np.maximum(self.batch_limit[rows], 1.0),
            )  # fmt: skip
        found["tpot_s"][rows] = run.tpot_s
        found["ttft_s"][rows] = run.ttft_s
        found["output_tokens_per_s"][rows] = run.requests_per_s * shared * made
        return found


def _answer_s(ttft_s: FloatOrArray, tpot_s: FloatOrArray, output_tokens: Values) -> Values:
    """A request from its arrival to its last token.  [s]"""
    return np.asarray(as_float(ttft_s) + np.maximum(output_tokens - 1, 0.0) * as_float(tpot_s))


def _column(values: Iterable[float]) -> Values:
    return np.array(list(values), dtype=np.float64)


def batch_of(entries: Sequence[Entry]) -> ServingBatch:
    """Entries as arrays."""
    sums = {rules.name: rules.narrow_sums for rules in ENGINES.values()}
    peaks = [
        serving_peaks(e.arch, e.weights, e.device.peak_flop_per_s, narrow_sums=sums.get(e.engine, False))
        for e in entries
    ]
    work = ServingWork.stack([ServingWork.of(e.arch, e.weights, e.kv_cache) for e in entries])
    return ServingBatch(
        entries=tuple(entries),
        replica=Replica(
            work=work,
            layout=layout_of([entry.split for entry in entries]),
            machine=machine_of([entry.device for entry in entries]),
            peaks=ServingPeaks(
                **{f.name: _column(getattr(one, f.name) for one in peaks) for f in fields(ServingPeaks)}
            ),
            constants=TEXTBOOK,
        ),
        index=np.array([entry.row for entry in entries], dtype=np.int64),
        input_tokens=_column(e.load.input_tokens for e in entries),
        output_tokens=_column(e.load.output_tokens for e in entries),
        clients=_column(e.load.clients for e in entries),
        requests=_column(e.load.requests for e in entries),
        batch_limit=_column(e.batch_limit for e in entries),
        replicas=_column(e.split.replicas for e in entries),
        beams=_column(e.load.beams for e in entries),
        rate=_column(e.load.requests_per_s for e in entries),
        variation=_column(e.load.variation for e in entries),
        first_wave=_column(e.load.first_wave for e in entries),
    )


def predict_serving(rows: Sequence[ServingRow], catalog: Catalog) -> list[ServingPrediction]:
    """What the analytic tier says of every row, by the catalog's constants.

    Nothing measured is read, and nothing that identifies a publication.
    """
    found = [ServingPrediction(skipped=serving_refusal(row, catalog)) for row in rows]
    entries = entries_of(rows, catalog)
    if not entries:
        return found
    batch = batch_of(entries)
    own = calibrated_entries(demanded(catalog), entries)
    said = batch.predict(side_by_side(own))
    of_row: dict[int, list[int]] = {}
    for number, entry in enumerate(entries):
        of_row.setdefault(entry.row, []).append(number)
    floor = floor_s(batch)
    for row, numbers in of_row.items():
        bands = bands_of(own[numbers[0]], entries[numbers[0]], rows[row])
        found[row] = _prediction(rows[row], entries, numbers, said, floor, bands)
    return found


def calibrated_entries(found: ServingCalibration, entries: Sequence[Entry]) -> list[Calibrated]:
    """Constants and bands of every entry."""
    known: dict[tuple[str, str, str, bool, str], Calibrated] = {}
    keys = [(e.device.id, e.engine, e.weights, e.arch.is_moe, protocol_of(e)) for e in entries]
    for (_, engine, weights, experts, protocol), entry in zip(keys, entries, strict=True):
        key = entry.device.id, engine, weights, experts, protocol
        if key not in known:
            known[key] = calibrated(found, entry.device, engine, weights, experts=experts, protocol=protocol)
    return [known[key] for key in keys]


def protocol_of(entry: Entry) -> str:
    """The contest that an entry's row is of: its rows are tuned for it, and plans are not."""
    return "mlperf" if entry.load.kind == "mlperf" else ""


def side_by_side(each: Sequence[Calibrated]) -> ServingConstants:
    """Constants of every entry as arrays."""
    first = each[0].constants
    names = [f.name for f in fields(ServingConstants) if isinstance(getattr(first, f.name), int | float)]
    columns: dict[str, Any] = {name: _column(float(getattr(one.constants, name)) for one in each) for name in names}
    return ServingConstants(name=first.name, **columns)


def layout_kind_of(entry: Entry) -> str:
    """What of an entry's layout makes its times less known."""
    link, devices, apart = entry.device.scale_up, entry.split.devices, entry.load.apart
    if link is None:
        return layout_kind(devices, entry.split.pp, 1, 1.0, apart=apart)
    fast = link.max_devices if link.max_devices >= devices else domain_of(entry.device)
    return layout_kind(devices, entry.split.pp, fast, float(link.pattern == "pcie"), apart=apart)


def bands_of(own: Calibrated, entry: Entry, row: ServingRow) -> dict[str, Band]:
    """The band of every figure that a row may have.

    Parameters
    ----------
    own
        Bands of the entry's engine on its device.
    entry
        The row in one of its layouts: model, device and split.
    row
        How load was applied, which tells figures of one metric apart.
    """
    experts, layout = entry.arch.is_moe, layout_kind_of(entry)
    kinds = {metric: band_kind(metric, row) for metric in METRICS}
    return {metric: own.band(kind, experts=experts, layout=layout) for metric, kind in kinds.items()}


def floor_s(batch: ServingBatch) -> Values:
    """No token comes faster than weights and cache are read once at full bandwidth.  [s]"""
    ideal = replace(IDEAL, expert_bandwidth=1.0, cache_bandwidth=1.0)
    sequences = np.minimum(batch.clients, np.maximum(batch.batch_limit, 1.0))
    replica = replace(batch.replica, constants=ideal)
    fast = ServingPeaks(linear=np.inf, expert=np.inf, attention=np.inf)
    terms = replace(replica, peaks=fast).decode_step(sequences, batch.input_tokens)
    return np.asarray(terms["linear"] + terms["experts"] + terms["attention"], dtype=np.float64)


def ideal_cycle_s(batch: ServingBatch) -> Values:
    """What a machine that loses nothing needs to answer every client of a closed loop once.  [s]

    Every peak, link and bandwidth at 100 %, no overhead, each request an answer: work is conserved, so that no cycle
    of the loop is shorter, whatever the order of prompts and steps.
    """
    best = replace(IDEAL, expert_bandwidth=1.0, cache_bandwidth=1.0, attention_compute=1.0, expert_compute=1.0)
    mine = batch.clients / batch.replicas
    with np.errstate(all="ignore"):
        loop = closed_loop(replace(batch.replica, constants=best), batch.input_tokens, batch.output_tokens, mine)
        return np.asarray(mine / as_float(loop.requests_per_s), dtype=np.float64)


def _shortage(entries: Sequence[Entry], numbers: Sequence[int], memory: Sequence[RowMemory]) -> str:
    """By how much the layout that is nearest to fitting does not, and in which formats."""
    least, number = min(
        zip(memory, numbers, strict=True), key=lambda pair: pair[0].needed_bytes - pair[0].available_bytes
    )
    entry = entries[number]
    return (
        f"{least.needed_bytes / 1e9:.1f} GB of a device are needed, {least.available_bytes / 1e9:.1f} GB are there"
        f" (weights in {entry.weights}, cache in {entry.kv_cache})"
    )


def _prediction(
    row: ServingRow,
    entries: Sequence[Entry],
    numbers: Sequence[int],
    said: dict[str, Values],
    floor: Values,
    bands: Mapping[str, Band],
) -> ServingPrediction:
    """Of several layouts the fastest."""
    entry, memory = entries[numbers[0]], [memory_of(row, entries[i]) for i in numbers]
    about: dict[str, Any] = {"engine": entry.engine, "family": entry.device.family}
    if not any(one.runs for one in memory):
        return ServingPrediction(fits=False, skipped=f"{NO_ROOM}: {_shortage(entries, numbers, memory)}", **about)
    values = {name: [float(said[name][i]) for i in numbers] for name in said}
    first = {name: own[0] for name, own in values.items()}
    first["output_tokens_per_s"] = max(values["output_tokens_per_s"])
    known: dict[str, Any] = {name: value for name, value in first.items() if 0 < value < np.inf}
    if not known:
        late = first["output_tokens_per_s"] == 0
        return ServingPrediction(fits=True, skipped=TOO_LATE if late else NO_FIGURE, **about)
    return ServingPrediction(
        fits=True,
        floor_s=float(floor[numbers[0]]),
        peak_memory_bytes=memory[0].peak_bytes,
        bands=bands,
        **about,
        **known,
    )
