"""Rows of serving measurements as inputs of the estimators, and what the analytic tier predicts for them.

Nothing measured is read, and nothing that identifies a publication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Catalog, Device
from planner.errors import InputError
from planner.estimate.engines import engine_rules
from planner.estimate.machine import Machine
from planner.estimate.serving import (
    ReplicaLayout,
    ServingMemory,
    ServingPeaks,
    ServingSpec,
    serving_memory,
    serving_peaks,
)
from planner.estimate.serving_closed import closed_loop, offline_tokens_per_s, static_batch
from planner.estimate.serving_constants import IDEAL, TEXTBOOK, ServingConstants, serving_constants
from planner.estimate.serving_open import RequestShape, load_at
from planner.estimate.serving_step import Replica
from planner.estimate.serving_work import ServingWork
from planner.validate.rows_machine import REFERENCE_NETWORK_BYTES_PER_S
from planner.validate.serving_model import serving_architecture
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_setup import (
    SERVER_SHARE,
    Load,
    Split,
    cache_format,
    load_of,
    sequence_limit,
    serving_device,
    serving_engine,
    splits_of,
    weight_format,
)

Values = NDArray[np.float64]
_NETWORK = 25e9  # one way, per device, of generations without a reference system  [B/s]
NO_ROOM = "does not fit the memory of its devices"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row in one layout that it may have had."""

    row: int  # position among the rows
    split: Split
    load: Load
    arch: Architecture
    device: Device
    engine: str
    weights: str
    kv_cache: str
    batch_limit: float = np.inf  # by memory and the engine's own limit
    fits: bool = True  # one request, at all


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

    def take(self, chosen: NDArray[np.int64]) -> ServingBatch:
        """Some of the entries."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name not in ("entries", "replica")}
        return ServingBatch(entries=tuple(self.entries[i] for i in chosen), replica=self.replica.take(chosen), **arrays)

    def predict(self, constants: ServingConstants) -> dict[str, Values]:
        """Every metric of every entry, of the whole deployment; those that its load does not have are nan."""
        replica = replace(self.replica, constants=constants)
        given, made = self.input_tokens, self.output_tokens
        with np.errstate(all="ignore"):
            loop = closed_loop(replica, given, made, self.clients / self.replicas, self.batch_limit)
            pile = offline_tokens_per_s(replica, given, made, self.requests, self.batch_limit, beams=self.beams)
            batch = static_batch(replica, given, made, self.clients)
            full = closed_loop(replica, given, made, self.requests, self.batch_limit)
            alone = replica.prefill_alone_s(given)
            prompt = made / np.asarray(replica.prefill_alone_s(made))  # llama-bench: as many tokens in as out, apart
        kind = np.array([entry.load.kind for entry in self.entries])
        offered = self._open_loop(replica, kind == "open")
        carried = offered["output_tokens_per_s"]
        server = np.where([entry.load.server for entry in self.entries], SERVER_SHARE, 1.0)
        return {
            "tpot_s": np.select(
                [kind == "closed", kind == "burst", kind == "static", kind == "open"],
                [loop.tpot_s, full.tpot_s, batch.step_s, offered["tpot_s"]],
                np.nan,
            ),
            "ttft_s": np.select(
                [kind == "closed", kind == "burst", kind == "static", kind == "first", kind == "open"],
                [loop.ttft_s, full.ttft_s / 2, batch.first_token_s, alone, offered["ttft_s"]],
                np.nan,
            ),
            "output_tokens_per_s": np.select(
                [kind == "closed", kind == "burst", kind == "offline", kind == "mlperf", kind == "static",
                 kind == "peak", kind == "single", kind == "open"],
                [loop.requests_per_s * made * self.replicas, pile, pile * self.replicas, pile * self.replicas * server,
                 self.clients * made / np.asarray(batch.latency_s), self.clients * made / np.asarray(batch.latency_s),
                 1 / np.asarray(batch.step_s), np.where(np.isnan(carried), pile * self.replicas, carried)],
                np.nan,
            ),
            "batch_latency_s": np.where(kind == "static", batch.latency_s, np.nan),
            "prefill_tokens_per_s": np.where(kind == "single", prompt, np.nan),
        }  # fmt: skip

    def _open_loop(self, replica: Replica, asked: NDArray[np.bool_]) -> dict[str, Values]:
        """Means at the offered rates; nan where the load is another, or cannot be followed."""
        found = {name: np.full(len(asked), np.nan) for name in ("tpot_s", "ttft_s", "output_tokens_per_s")}
        rows = np.flatnonzero(asked & (self.rate > 0))
        if not len(rows):
            return found
        shape = RequestShape(input_tokens=self.input_tokens[rows], output_tokens=self.output_tokens[rows])
        with np.errstate(all="ignore"):
            load = load_at(
                replica.take(rows), shape, (self.rate / self.replicas)[rows], np.maximum(self.batch_limit[rows], 1.0)
            )
        follows = np.isfinite(load.e2e_s["mean"])
        found["tpot_s"][rows] = load.tpot_s["mean"]
        found["ttft_s"][rows] = load.ttft_s["mean"]
        found["output_tokens_per_s"][rows] = np.where(follows, self.rate[rows] * self.output_tokens[rows], np.nan)
        return found


def serving_refusal(row: ServingRow, catalog: Catalog) -> str | None:
    """Why a row gets no prediction; None when it gets one."""
    device = serving_device(row, catalog)
    if device is None:
        return f"device '{row.accelerator}' is not in the catalog"
    try:
        arch = serving_architecture(row)
    except InputError as error:
        return f"the shape of the model is not possible: {error.problems[0].message}"
    if not (arch.layers and row.layers and row.hidden):
        return "the shape of the model is not known, and so neither is that of its cache"
    if np.isnan(serving_peaks(arch, weight_format(row), device.peak_flop_per_s).linear):
        return f"{device.id} has no peak for {weight_format(row)}"
    return None


def entries_of(rows: Sequence[ServingRow], catalog: Catalog) -> list[Entry]:
    """Each row that can be predicted, once for every layout that it may have had and that fits."""
    found: list[Entry] = []
    for position, row in enumerate(rows):
        if serving_refusal(row, catalog) is not None:
            continue
        arch, device = serving_architecture(row), serving_device(row, catalog)
        assert device is not None
        for split in splits_of(row, arch, device):
            entry = Entry(
                row=position,
                split=split,
                load=load_of(row),
                arch=arch,
                device=device,
                engine=serving_engine(row),
                weights=weight_format(row),
                kv_cache=cache_format(row),
            )
            found.append(_limited(entry, row))
    return _fitting(found)


def _limited(entry: Entry, row: ServingRow) -> Entry:
    """The entry with the sequences that its memory and its engine allow."""
    memory = paged_memory(entry)
    by_memory = float(np.max(memory.max_sequences))
    most = min(by_memory, sequence_limit(row, entry.device) * entry.split.dp)
    return replace(entry, batch_limit=most, fits=bool(np.all(memory.feasible)))


def paged_memory(entry: Entry) -> ServingMemory:
    """Memory of an engine that pages its cache, by the defaults of its server."""
    compiled = entry.engine.startswith("trt-llm")
    rules = engine_rules("trt-llm" if compiled else entry.engine)
    load = entry.load
    longest = load.input_tokens + load.output_tokens * load.beams  # beams share the prompt
    spec = ServingSpec(
        weights=entry.weights,
        kv_cache=entry.kv_cache,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        memory_fraction=rules.memory_fraction if rules else 0.9,
        fraction=rules.fraction if rules else "of_device",
        # TensorRT-LLM admits a request only when its longest answer fits (its default: GUARANTEED_NO_EVICT)
        resident_tokens=longest if compiled else None,
        longest_tokens=longest,
    )
    return serving_memory(entry.arch, spec, layout_of([entry.split]), machine_of([entry.device]))


def _fitting(found: Sequence[Entry]) -> list[Entry]:
    """Without the layouts that do not fit, where another one of the row does."""
    able = {entry.row for entry in found if entry.fits}
    return [entry for entry in found if entry.fits or entry.row not in able]


def layout_of(splits: Sequence[Split]) -> ReplicaLayout:
    """Layouts as arrays."""
    names = ("devices", "tp", "pp", "ep")
    return ReplicaLayout(**{name: np.array([getattr(one, name) for one in splits], dtype=np.float64) for name in names})


def machine_of(devices: Sequence[Device]) -> Machine:
    """Machines as arrays: nodes of eight devices on the reference network of their generation."""
    columns: dict[str, list[float]] = {
        "memory_bytes": [float(device.memory_bytes) for device in devices],
        "memory_bandwidth_bytes_per_s": [float(device.memory_bandwidth_bytes_per_s or np.nan) for device in devices],
        "pair_bytes_per_s": [d.scale_up.one_way_pair_bytes_per_s if d.scale_up else 0.0 for d in devices],
        "all_bytes_per_s": [d.scale_up.one_way_bytes_per_s if d.scale_up else 0.0 for d in devices],
        "scale_up_devices": [float(min(d.scale_up.max_devices, 8)) if d.scale_up else 1.0 for d in devices],
        "host_bytes_per_s": [float(device.host_link_bytes_per_s or _NETWORK) for device in devices],
        "inter_node_bytes_per_s": [REFERENCE_NETWORK_BYTES_PER_S.get(d.family, _NETWORK) for d in devices],
    }
    arrays: dict[str, Any] = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    return Machine(peak_flop_per_s=np.ones(len(devices)), mfu=1.0, node_devices=8.0, **arrays)


def _column(values: Iterable[float]) -> Values:
    return np.array(list(values), dtype=np.float64)


def batch_of(entries: Sequence[Entry]) -> ServingBatch:
    """Entries as arrays."""
    peaks = [serving_peaks(e.arch, e.weights, e.device.peak_flop_per_s) for e in entries]
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
    said = batch.predict(_constants(entries, catalog))
    of_row: dict[int, list[int]] = {}
    for number, entry in enumerate(entries):
        of_row.setdefault(entry.row, []).append(number)
    floor = floor_s(batch)
    for row, numbers in of_row.items():
        found[row] = _prediction(rows[row], entries, numbers, said, floor)
    return found


def _constants(entries: Sequence[Entry], catalog: Catalog) -> ServingConstants:
    known = {(e.device.id, e.engine): serving_constants(catalog, e.device, e.engine).constants for e in entries}
    each = [known[entry.device.id, entry.engine] for entry in entries]
    names = [f.name for f in fields(ServingConstants) if isinstance(getattr(each[0], f.name), int | float)]
    columns: dict[str, Any] = {name: _column(float(getattr(one, name)) for one in each) for name in names}
    return ServingConstants(name=each[0].name, **columns)


def floor_s(batch: ServingBatch) -> Values:
    """No token comes faster than weights and cache are read once at full bandwidth.  [s]"""
    ideal = replace(IDEAL, expert_bandwidth=1.0, cache_bandwidth=1.0)
    sequences = np.minimum(batch.clients, np.maximum(batch.batch_limit, 1.0))
    replica = replace(batch.replica, constants=ideal)
    fast = ServingPeaks(linear=np.inf, expert=np.inf, attention=np.inf)
    terms = replace(replica, peaks=fast).decode_step(sequences, batch.input_tokens)
    return np.asarray(terms["linear"] + terms["experts"] + terms["attention"], dtype=np.float64)


def _prediction(
    row: ServingRow, entries: Sequence[Entry], numbers: Sequence[int], said: dict[str, Values], floor: Values
) -> ServingPrediction:
    """Of several layouts the fastest."""
    from planner.validate.serving_memory import memory_of  # it reads entries with the functions of this module

    entry, memory = entries[numbers[0]], [memory_of(row, entries[i]) for i in numbers]
    about: dict[str, Any] = {"engine": entry.engine, "family": entry.device.family}
    if not any(one.runs for one in memory):
        return ServingPrediction(fits=False, skipped=NO_ROOM, **about)
    values = {name: [float(said[name][i]) for i in numbers] for name in said}
    first = {name: own[0] for name, own in values.items()}
    first["output_tokens_per_s"] = max(values["output_tokens_per_s"])
    known: dict[str, Any] = {name: value for name, value in first.items() if np.isfinite(value)}
    return ServingPrediction(
        fits=True, floor_s=float(floor[numbers[0]]), peak_memory_bytes=memory[0].peak_bytes, **about, **known
    )
