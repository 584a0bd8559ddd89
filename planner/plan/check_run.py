"""Failures, checkpoints and the run under way of one row, worked out again from the scenario and the equations.

Shares the equations with the search, not the way they are put together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from planner.architecture.model import Architecture
from planner.catalog.model import Shape
from planner.equations import checkpoints as ckp
from planner.equations import reliability as rel
from planner.estimate import resolve_run as defaults
from planner.estimate.run import checkpoint_bytes_of
from planner.estimate.training import TrainingSpec
from planner.plan.findings import Finding, cell_findings
from planner.scenario.schema import Failures, TrainingJob

Document = dict[str, Any]
RUN_TERMS = ("stragglers", "checkpoints", "lost_work", "restarts")


def run_cells(
    job: TrainingJob, arch: Architecture, spec: TrainingSpec, shape: Shape, busy_s: float, devices: int, jobs: int
) -> Document:
    """The cells `run` and the overheads among the terms of one row, and its wall time."""
    if spec.run is None:
        return {"run": {"modelled": False, "goodput": 1.0}, "terms": dict.fromkeys(RUN_TERMS, 0.0), "wall_s": busy_s}
    given = job.failures if isinstance(job.failures, Failures) else None
    fails = job.failures != "none" and (given is not None or math.isfinite(spec.run.mtbf_per_device_s))
    size = checkpoint_bytes_of(arch, spec)
    stop_s, least_s = _saving_s(given, shape, devices, size)
    mtbf_s = float(rel.system_mtbf_s(_mtbf_s(given), devices)) if fails else math.inf
    sigma = defaults.DEFAULT_STRAGGLER_SIGMA if given is None or given.stragglers is None else given.stragglers
    useful_s = busy_s * float(rel.straggler_factor(sigma if fails else 0.0, devices))
    pause_s = _pause_s(given) if fails else 0.0
    asked = job.checkpoint_every_s
    best_s = float(rel.best_interval_s(stop_s, mtbf_s, pause_s)) if asked is None else asked
    every_s = min(max(best_s, least_s), useful_s)
    wall_s = useful_s * float(rel.inverse_goodput(stop_s, every_s, mtbf_s, pause_s))
    stored = float(ckp.checkpoint_storage_bytes(size, defaults.checkpoints_kept(job))) * jobs
    price = defaults.storage_price_usd(job)
    return {
        "wall_s": wall_s,
        "terms": {
            "stragglers": useful_s - busy_s,
            "checkpoints": useful_s / every_s * stop_s,
            "lost_work": wall_s / mtbf_s * every_s / 2.0,
            "restarts": wall_s / mtbf_s * pause_s,
        },
        "run": {
            "modelled": True,
            "goodput": busy_s / wall_s,
            "checkpoint_bytes": size,
            "checkpoint_s": stop_s,
            "checkpoint_every_s": every_s,
            "mtbf_hours": mtbf_s / 3600.0 if fails else None,
            "expected_failures": float(rel.expected_failures(wall_s, mtbf_s)),
            "storage_bytes": stored,
            "storage_usd": None if price is None else float(ckp.checkpoint_storage_cost(stored, price, wall_s / 3600)),
        },
    }


def run_findings(
    job: TrainingJob, arch: Architecture, spec: TrainingSpec, shape: Shape, row: Document, terms: dict[str, float]
) -> Iterator[Finding]:
    """Everything wrong with what a row says of failures and checkpoints, given the terms computed again."""
    busy_s = sum(seconds for name, seconds in terms.items() if name not in RUN_TERMS)
    cells = run_cells(job, arch, spec, shape, busy_s, row["devices"] // row["jobs"], row["jobs"])
    stated = {name: row["time_terms_s"].get(name) for name in RUN_TERMS}
    yield from cell_findings("wrong-run", job.name, row["run"], cells["run"])
    yield from cell_findings("wrong-run", job.name, row, {"hours": cells["wall_s"] / 3600.0})
    yield from cell_findings("wrong-run", job.name, {"terms": stated}, {"terms": cells["terms"]}, scale=busy_s)


def _mtbf_s(given: Failures | None) -> float:
    return (given.mtbf_per_device_s if given else None) or defaults.DEFAULT_MTBF_PER_DEVICE_S


def _pause_s(given: Failures | None) -> float:
    """From a failure to the next useful step."""
    if given is None:
        return defaults.DEFAULT_RESTART_S
    return (given.restart_s or defaults.DEFAULT_RESTART_S) + (given.detection_s or 0.0)


def _saving_s(given: Failures | None, shape: Shape, devices: int, size_bytes: float) -> tuple[float, float]:
    """How long a checkpoint stops the job, and how long it takes to reach storage when that is longer."""
    bandwidth = (given.checkpoint_bandwidth_bytes_per_s if given else None) or (
        defaults.DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    )
    hosts = math.ceil(devices / min(shape.devices, defaults.DEVICES_PER_HOST))
    written_s = float(ckp.checkpoint_write_s(size_bytes, hosts, bandwidth))
    if given is None or given.checkpoint == "sync":
        return written_s, 0.0
    return min(float(ckp.checkpoint_write_s(size_bytes, devices, defaults.HOST_COPY_BYTES_PER_S)), written_s), written_s
