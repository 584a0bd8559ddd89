"""Rows of measurements as inputs of the estimators, and what the analytic tier predicts for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device, TrainingFamily
from planner.equations.rules import training_hours
from planner.errors import InputError
from planner.estimate.bands import beyond, beyond_power, wider
from planner.estimate.constants import NAMES, StepConstants
from planner.estimate.device_constants import fitted_on, step_constants
from planner.estimate.frameworks import fitted_factors
from planner.estimate.layout import Layout
from planner.estimate.machine import Machine, sustained
from planner.estimate.stack import Stack
from planner.estimate.step import step_time
from planner.estimate.terms import Terms
from planner.estimate.work import Work
from planner.validate.memory_rows import predict_peak_memory
from planner.validate.rows import MeasuredRow
from planner.validate.rows_facts import (
    architecture_of,
    counted_tflops_per_device,
    device_of,
    machine_of_row,
    parameters_of,
)
from planner.validate.rows_setup import framework_of, layout_of, recompute_of, sizes_of, stack_of, unread_cell

__all__ = [
    "Batch",
    "Prediction",
    "architecture_of",
    "batch_of",
    "device_of",
    "framework_of",
    "layout_of",
    "predict_training",
    "recompute_of",
    "refusal",
]


NO_FIGURE = "no figure can be worked out: a rate that its layout needs is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the model says about one row; None where it says nothing."""

    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    tflops_per_device: float | None = None  # [1e12/s], in the row's conventions
    peak_memory_bytes: float | None = None
    skipped: str | None = None
    family: str = ""
    terms: Mapping[str, float] = field(default_factory=dict)  # of a step  [s]
    time_band: Band | None = None  # measured over predicted step time
    memory_band: Band | None = None  # the same of peak memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows side by side: element i of every array belongs to row i."""

    work: Work
    layout: Layout
    machine: Machine
    stack: Stack
    frameworks: tuple[str, ...]

    def predict(self, constants: StepConstants, overhead: Any = 1.0, host: Any = 1.0, dispatch: Any = 1.0) -> Terms:
        """Terms of one step of every row  [s].

        Parameters
        ----------
        constants
            The same for all rows, or of each row, (n,).
        overhead, host, dispatch
            Work of device, of host and of routing on the host over a tuned stack's; numbers, or of each row, (n,).
        """
        slower = np.broadcast_to(np.asarray(overhead, dtype=np.float64), (len(self.frameworks),))
        stack = replace(
            self.stack,
            overhead=slower,
            host_share=np.asarray(self.stack.host_share) * host,
            expert_host=np.asarray(self.stack.expert_host) * dispatch,
        )
        with np.errstate(all="ignore"):
            return step_time(self.work, self.layout, sustained(self.machine, constants), stack, constants)


def refusal(row: MeasuredRow, catalog: Catalog) -> str | None:
    """Why a row gets no prediction; None when it gets one."""
    device = device_of(row, catalog)
    if device is None:
        return f"device '{row.accelerator}' is not in the catalog"
    if not row.n_accel:
        return "number of devices unknown"
    if row.n_accel > 1 and device.scale_up is None:
        return f"no link between several {device.id} is known"
    if not (row.hidden and row.layers and row.heads) and parameters_of(row) is None:
        return "neither shape nor size of the model is known"
    try:
        architecture_of(row)
    except InputError as error:
        return f"the shape of the model is not possible: {error.problems[0].message}"
    return unread_cell(row) or None


def batch_of(rows: Sequence[MeasuredRow], catalog: Catalog) -> Batch:
    """Rows of models whose layers are known, as arrays."""
    devices = [_device(row, catalog) for row in rows]
    pairs = list(zip(rows, devices, strict=True))
    return Batch(
        work=Work.stack([Work.of(architecture_of(row), float(row.seq_len or 2048)) for row in rows]),
        layout=Layout(**_columns([layout_of(row) for row in rows])),
        machine=Machine(**_columns([machine_of_row(row, device) for row, device in pairs])),
        stack=Stack(**_columns([stack_of(row, device) for row, device in pairs])),
        frameworks=tuple(framework_of(row).name for row in rows),
    )


def _device(row: MeasuredRow, catalog: Catalog) -> Device:
    device = device_of(row, catalog)
    if device is None:
        raise ValueError(f"no device for {row.name}")
    return device


def _columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]}


def predict_training(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[Prediction]:
    """Step time, throughput and peak memory of every row, by the catalog's constants.

    Nothing measured is read, and nothing that identifies a publication.
    """
    steps = step_terms(rows, catalog)
    return [_prediction(row, catalog, terms) for row, terms in zip(rows, steps, strict=True)]


def step_terms(rows: Sequence[MeasuredRow], catalog: Catalog) -> list[dict[str, float]]:
    """Terms of a step of every row  [s]; empty for a refused one."""
    found: list[dict[str, float]] = [{} for _ in rows]
    whole = [i for i, row in enumerate(rows) if refusal(row, catalog) is None and architecture_of(row).layers]
    if whole:
        kept = [rows[i] for i in whole]
        batch = batch_of(kept, catalog)
        devices = [_device(rows[i], catalog) for i in whole]
        factors = [_factors(row, device, catalog) for row, device in zip(kept, devices, strict=True)]
        work, host, dispatch = (np.array(column) for column in zip(*factors, strict=True))
        terms = batch.predict(_constants(devices, catalog), work, host, dispatch)
        for position, i in enumerate(whole):
            found[i] = terms.row(position)
    for i, row in enumerate(rows):
        if not found[i] and refusal(row, catalog) is None:
            found[i] = _coarse(row, catalog)
    return found


def _factors(row: MeasuredRow, device: Device, catalog: Catalog) -> tuple[float, float, float]:
    """Fitted factors of a row's stack on its device: on the device's work, on the host's, on that of routing."""
    fitted, experts = fitted_on(catalog, device), row.kind in ("experts", "hybrid")
    work, host = fitted_factors(framework_of(row).name, fitted, experts=experts)
    if row.kind == "hybrid":
        work *= fitted.get("hybrid/all", 1.0) * fitted.get(f"hybrid/{row.size}", 1.0)
    return work, host, fitted.get(f"dispatch/{row.software_release}", 1.0) if experts else 1.0


def _constants(devices: Sequence[Device], catalog: Catalog) -> StepConstants:
    each = [step_constants(catalog, device) for device in devices]
    return StepConstants(**{name: np.array([getattr(one, name) for one in each], dtype=np.float64) for name in NAMES})


def _coarse(row: MeasuredRow, catalog: Catalog) -> dict[str, float]:
    """A model of which only the size is known: the rule tier."""
    device = _device(row, catalog)
    peak = machine_of_row(row, device)["peak_flop_per_s"]
    layout = layout_of(row)
    tokens = layout["global_batch"] * float(row.seq_len or 2048)
    mfu = catalog.efficiencies[device.family].mfu
    hours = training_hours(tokens, architecture_of(row).active_parameters, 1.0, layout["devices"], peak * mfu)
    return {"compute": float(hours) * 3600.0}


def _prediction(row: MeasuredRow, catalog: Catalog, terms: dict[str, float]) -> Prediction:
    reason = refusal(row, catalog)
    if reason is not None:
        return Prediction(skipped=reason)
    seconds, device = sum(terms.values()), _device(row, catalog)
    if not 0 < seconds < np.inf:
        return Prediction(skipped=NO_FIGURE, family=device.family)
    family = catalog.training_families.get(device.family)
    architecture = architecture_of(row)
    batch = layout_of(row)["global_batch"]
    return Prediction(
        step_time_s=seconds,
        tokens_per_s_per_device=batch * float(row.seq_len or 2048) / seconds / float(row.n_accel or 1),
        tflops_per_device=_tflops(row, architecture, seconds, batch),
        peak_memory_bytes=_peak_memory(row, catalog),
        family=device.family,
        terms=terms,
        time_band=_time_band(row, device, catalog, family) if family else None,
        memory_band=family.memory_band_of(_KINDS[row.kind]) if family else None,
    )


def _time_band(row: MeasuredRow, device: Device, catalog: Catalog, family: TrainingFamily) -> Band:
    """That of the device and kind, wider where the row lies outside of what the fitted ones cover."""
    power = float(beyond_power(catalog, beyond(catalog, device.family, sizes_of(row))))
    return wider(family.time_band_of(device.id, _KINDS[row.kind]), power)


_KINDS = {"dense": "dense", "experts": "experts", "hybrid": "experts", "tuning": "tuning"}


def _tflops(row: MeasuredRow, architecture: Architecture, seconds: float, batch: float) -> float | None:
    counted = replace(row, global_batch=round(batch)) if row.global_batch is None else row
    return counted_tflops_per_device(counted, architecture, seconds)


def _peak_memory(row: MeasuredRow, catalog: Catalog) -> float | None:
    return predict_peak_memory(row, catalog)
