"""Measured serving rows as layouts that they may have had, each with the memory of its engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    ServingSpec,
    serving_memory,
    serving_peaks,
)
from planner.validate.mlperf import unknown_task
from planner.validate.rows_machine import REFERENCE_NETWORK_BYTES_PER_S
from planner.validate.serving_model import serving_architecture
from planner.validate.serving_rows import ServingRow
from planner.validate.serving_setup import (
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
TIGHT_FRACTION, TIGHT_WORKSPACE = 0.98, 0.25  # of the memory; of the workspace of a full step


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


def serving_refusal(row: ServingRow, catalog: Catalog) -> str | None:
    """Why a row gets no prediction; None when it gets one."""
    device = serving_device(row, catalog)
    if device is None:
        return f"device '{row.accelerator}' is not in the catalog"
    try:
        arch = serving_architecture(row)
    except InputError as error:
        return f"the shape of the model is not possible: {error.problems[0].message}"
    if not arch.layers:
        return "the shape of the model is not known, and so neither is that of its cache"
    if row.load == "mlperf" and (unknown := unknown_task(row.model, row.scenario or "")):
        return unknown
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
        # TensorRT-LLM admits a request only when its longest answer fits (its default: GUARANTEED_NO_EVICT); sequences
        # that begin together are all at their longest at the end
        resident_tokens=longest if compiled or load.kind == "static" else None,
        longest_tokens=longest,
    )
    layout, machine = layout_of([entry.split]), machine_of([entry.device])
    found = serving_memory(entry.arch, spec, layout, machine)
    if np.all(found.feasible) or spec.fraction == "local":
        return found
    # Where defaults leave no room for a request, who starts the engine raises its share and makes steps smaller.
    tight = replace(spec, memory_fraction=TIGHT_FRACTION, fraction="of_device", workspace_share=TIGHT_WORKSPACE)
    return serving_memory(entry.arch, tight, layout, machine)


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
        "scale_up_devices": [domain_of(device) for device in devices],
        "pcie": [float(d.scale_up is None or d.scale_up.pattern == "pcie") for d in devices],
        "host_bytes_per_s": [float(device.host_link_bytes_per_s or _NETWORK) for device in devices],
        "inter_node_bytes_per_s": [REFERENCE_NETWORK_BYTES_PER_S.get(d.family, _NETWORK) for d in devices],
    }
    arrays: dict[str, Any] = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    node = np.maximum(arrays["scale_up_devices"], 8.0)
    return Machine(peak_flop_per_s=np.ones(len(devices)), mfu=1.0, node_devices=node, **arrays)


def domain_of(device: Device) -> float:
    """Devices that the fast links of a server join: of GPUs up to the eight of a node, of other devices all."""
    most = float(device.scale_up.max_devices) if device.scale_up else 1.0
    return min(most, 8.0) if device.kind == "gpu" else most
