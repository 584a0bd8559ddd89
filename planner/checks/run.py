"""Failures, checkpoints and the run under way of one row, worked out again from the scenario and the equations.

Shares the equations with the search, not the way they are put together. Of a run under way, the ratio of its measured
step time to the predicted one is what the plan says, or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from planner.architecture.model import Architecture
from planner.catalog.load import find_shape
from planner.catalog.model import Catalog, Shape
from planner.checks.findings import Finding, cell_findings
from planner.checks.layout import training_layout_findings
from planner.equations import reliability as rel
from planner.estimate import resolve_run as defaults
from planner.estimate.layout import Layout
from planner.estimate.resolve import inter_node_rate, predicted_step_s, training_machine, training_spec, usable_bytes
from planner.estimate.run import checkpoint_bytes_of
from planner.estimate.training import training_memory
from planner.estimate.training_spec import TrainingSpec
from planner.scenario.schema import Failures, Scenario, Spot, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import UnderWay
    from planner.plan.model.rows import RunFigures, TrainingAllocation, TrainingLayout


STAGES = {"none": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3}
LEVELS = {"none": 0, "selective": 1, "full": 2}


def layout_of(split: TrainingLayout, devices: int) -> Layout:
    """The layout that a document spells out."""
    return Layout(
        devices=devices,
        sharding=STAGES[split["sharding"]],
        recompute=LEVELS[split["recompute"]],
        global_batch=split["global_batch_sequences"],
        dp=split["dp"],
        tp=split["tp"],
        pp=split["pp"],
        vpp=split["vpp"],
        cp=split["cp"],
        ep=split["ep"],
        micro_batch=split["micro_batch"],
    )


def ratio_on(under_way: UnderWay | None, device: str) -> float | None:
    """Measured over predicted step time on a device; None where none was measured."""
    return float(under_way["ratio"]) if under_way and under_way["device"] == device else None


def under_way_findings(
    job: TrainingJob, arch: Architecture, scenario: Scenario, catalog: Catalog, stated: UnderWay | None
) -> Iterator[Finding]:
    """Everything wrong with what a plan says of the run under way.

    Parameters
    ----------
    job
        A job of the scenario, with a measured step time or without.
    arch
        Its model.
    scenario
        Its first owned hardware is what the step was timed on, unless the job says on what.
    catalog
        Shapes, devices, and the constants that predict a step.
    stated
        What the plan says; None = nothing, which is right where no step time was measured.
    """
    if job.step_time is None:
        if stated is not None:
            yield Finding("wrong-run", f"{job.name}: the scenario gives no step time")
        return
    if stated is None:
        yield Finding("wrong-run", f"{job.name}: the measured step time is left out")
        return
    shape, count = _measured_on(job, scenario, catalog)
    devices, given = count * shape.devices, job.step_time.layout.model_dump(exclude_none=True)
    named = "pp" in given and "sharding" in given
    problems = list(training_layout_findings(job, arch, stated["layout"], shape, devices, stated=named))
    yield from problems
    yield from cell_findings("wrong-run", job.name, stated["layout"], given)
    if problems:
        return
    layout, device = layout_of(stated["layout"], devices), catalog.devices[shape.device]
    spec = training_spec(job, arch, device, shape)
    if float(training_memory(arch, spec, layout, device.family).total) > usable_bytes(device, shape):
        yield Finding("does-not-fit", f"{job.name}: the run under way does not fit {device.id}")
    rate = inter_node_rate(shape, catalog, scenario.hardware.assume_inter_node_bytes_per_s)
    machine = training_machine(device, shape, job, arch, catalog, rate)
    predicted_s = float(predicted_step_s(arch, spec, layout, machine))
    cells = {
        "device": device.id,
        "shape": shape.id,
        "count": count,
        "measured_step_s": job.step_time.measured_s,
        "predicted_step_s": predicted_s,
        "ratio": job.step_time.measured_s / predicted_s,
    }
    yield from cell_findings("wrong-run", job.name, stated, cells)


def _measured_on(job: TrainingJob, scenario: Scenario, catalog: Catalog) -> tuple[Shape, int]:
    given, owned = job.step_time, scenario.hardware.owned
    shape, count = (given.shape, given.count) if given is not None else (None, None)
    return find_shape(catalog, shape or owned[0].shape), count or owned[0].count


RUN_TERMS = ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts")


class RunCells(TypedDict):
    """What failures and checkpoints make of a run."""

    wall_s: float
    terms: dict[str, float]
    run: RunFigures


class Stops(NamedTuple):
    """What stops a job: rates of failures and preemptions, and what each costs beyond lost work."""

    fails_per_s: float
    pause_s: float
    taken_per_s: float
    away_s: float
    warning_s: float

    @property
    def per_s(self) -> float:
        """Stops of any kind."""
        return self.fails_per_s + self.taken_per_s


def run_cells(
    job: TrainingJob,
    arch: Architecture,
    spec: TrainingSpec,
    shape: Shape,
    busy_s: float,
    devices: int,
    jobs: int,
    spot: Spot | None = None,
    *,
    calibrated: bool = False,
) -> RunCells:
    """The cells `run` and the overheads among the terms of one row, and its wall time.

    Parameters
    ----------
    job, arch
        What is trained; how it fails and is saved is of the job.
    spec
        The job as it is estimated; without `run` nothing fails and nothing is saved.
    shape
        What it runs on.
    busy_s
        Time of the run without the terms named in `RUN_TERMS`.  [s]
    devices
        Of one job.
    jobs
        Identical ones, whose checkpoints are all stored.
    spot
        How often shapes are taken away; None = they are not.
    calibrated
        Whether a step time was measured on such devices: what many hosts lose is then in it, unless the job states it.
    """
    part = Part(spec, shape, devices, spot, calibrated)
    return shared_run_cells(job, arch, [part], busy_s, jobs)


class Part(NamedTuple):
    """What one group of shapes adds to a job: most jobs have one."""

    spec: TrainingSpec
    shape: Shape
    devices: int
    spot: Spot | None
    calibrated: bool

    @property
    def hosts(self) -> int:
        """Hosts that write its checkpoints."""
        return math.ceil(self.devices / min(self.shape.devices, defaults.DEVICES_PER_HOST))


def shared_run_cells(job: TrainingJob, arch: Architecture, parts: Sequence[Part], busy_s: float, jobs: int) -> RunCells:
    """`run_cells` of a job on one or several groups: any of them stops it, all of them write its checkpoints.

    Parameters
    ----------
    job, arch
        What is trained; how it fails and is saved is of the job.
    parts
        The groups of one job; where none has a `spec.run`, nothing fails and nothing is saved.
    busy_s
        Time of the run without the terms named in `RUN_TERMS`.  [s]
    jobs
        Identical ones, whose checkpoints are all stored.
    """
    failing = [part for part in parts if part.spec.run is not None]
    if not failing:
        return {"run": {"modelled": False, "goodput": 1.0}, "terms": dict.fromkeys(RUN_TERMS, 0.0), "wall_s": busy_s}
    given = job.failures if isinstance(job.failures, Failures) else None
    rare = all(math.isinf(part.spec.run.mtbf_per_device_s) for part in failing if part.spec.run)
    fails = job.failures != "none" and (given is not None or not rare)
    size, devices = checkpoint_bytes_of(arch, parts[0].spec), sum(part.devices for part in parts)
    hosts = sum(part.hosts for part in parts)
    delta_s, least_s = _saving_s(given, hosts, devices, size)
    stops = _stops(given, failing, fails)
    sigma = defaults.DEFAULT_STRAGGLER_SIGMA if given is None or given.stragglers is None else given.stragglers
    losses = [_scale_loss(given, part.spec.tier == "analytic" and not part.calibrated) for part in failing]
    scaled_s = busy_s * float(rel.scale_loss_factor(max(losses) if fails else 0.0, hosts))
    useful_s = scaled_s * float(rel.straggler_factor(sigma if fails else 0.0, devices))
    return _run_document(job, stops, (delta_s, least_s), (busy_s, scaled_s, useful_s), size, jobs)


def _run_document(
    job: TrainingJob, stops: Stops, saving_s: tuple[float, float], times_s: tuple[float, float, float], size: float,
    jobs: int,
) -> RunCells:  # fmt: skip
    """Cells of a run from how it stops, how long it saves, and its time without either."""
    (delta_s, least_s), (busy_s, scaled_s, useful_s) = saving_s, times_s
    asked = job.checkpoint_every_s
    every_s = min(max(_best_s(stops, delta_s) if asked is None else asked, least_s), useful_s)
    undone_s = float(rel.preemption_lost_s(every_s, delta_s, stops.warning_s))
    lost = stops.fails_per_s * every_s / 2.0 + stops.taken_per_s * undone_s
    away = stops.fails_per_s * stops.pause_s + stops.taken_per_s * stops.away_s
    wall_s = useful_s * (1.0 + delta_s / every_s) / (1.0 - lost - away)
    stored = float(rel.checkpoint_storage_bytes(size, defaults.checkpoints_kept(job))) * jobs
    price = defaults.storage_price_usd(job)
    return {
        "wall_s": wall_s,
        "terms": {
            "scale_loss": scaled_s - busy_s,
            "stragglers": useful_s - scaled_s,
            "checkpoints": useful_s / every_s * delta_s,
            "lost_work": wall_s * lost,
            "restarts": wall_s * away,
        },
        "run": {
            "modelled": True,
            "goodput": busy_s / wall_s,
            "checkpoint_bytes": size,
            "checkpoint_s": delta_s,
            "checkpoint_every_s": every_s,
            "mtbf_hours": 1.0 / stops.per_s / 3600.0 if stops.per_s else None,
            "expected_failures": wall_s * stops.per_s,
            "storage_bytes": stored,
            "storage_usd": None if price is None else float(rel.checkpoint_storage_cost(stored, price, wall_s / 3600)),
        },
    }


class Chance(NamedTuple):
    """Preemptions as chance: how often, what one costs in the mean and how that spreads, and all that stops cost."""

    taken_per_s: float
    loss_s: float
    width_s: float
    lost_share: float


def chance_of(job: TrainingJob, spec: TrainingSpec, shape: Shape, devices: int, spot: Spot, run: RunFigures) -> Chance:
    """The chance of a whole run on spot, from its cells `run`.

    Parameters
    ----------
    job, spec
        The job, and the job as it is estimated on the shape.
    shape
        What it runs on.
    devices
        Of one job.
    spot
        How often shapes are taken away, and with what warning.
    run
        Of the whole run, one that is saved: how long a checkpoint takes, and the time between two.
    """
    assert run["modelled"]  # what is taken away is saved
    stops = _spot_stops(job, spec, shape, devices, spot)
    delta_s, every_s = run["checkpoint_s"], run["checkpoint_every_s"]
    undone_s = float(rel.preemption_lost_s(every_s, delta_s, stops.warning_s))
    lost = stops.fails_per_s * (every_s / 2.0 + stops.pause_s) + stops.taken_per_s * (undone_s + stops.away_s)
    width_s = 0.0 if stops.warning_s >= delta_s else every_s
    return Chance(stops.taken_per_s, undone_s + stops.away_s, width_s, lost)


def switch_s(
    job: TrainingJob, arch: Architecture, spec: TrainingSpec, shape: Shape, devices: int, spot: Spot
) -> tuple[float, float]:
    """What leaving spot for other machines takes: a checkpoint until it is in storage, and a restart.  [s]

    Parameters
    ----------
    job, arch, spec
        What is trained, and the job as it is estimated on the shape.
    shape
        What it runs on.
    devices
        Of one job.
    spot
        How long a restart takes; where it does not say, as after a failure.
    """
    given = job.failures if isinstance(job.failures, Failures) else None
    hosts = Part(spec, shape, devices, spot, False).hosts
    written = max(_saving_s(given, hosts, devices, checkpoint_bytes_of(arch, spec)))
    return written, _spot_stops(job, spec, shape, devices, spot).away_s


def _spot_stops(job: TrainingJob, spec: TrainingSpec, shape: Shape, devices: int, spot: Spot) -> Stops:
    given = job.failures if isinstance(job.failures, Failures) else None
    rare = spec.run is None or math.isinf(spec.run.mtbf_per_device_s)
    fails = job.failures != "none" and (given is not None or not rare)
    return _stops(given, [Part(spec, shape, devices, spot, False)], fails)


def _stops(given: Failures | None, parts: Sequence[Part], fails: bool) -> Stops:
    per_device_s = (given.mtbf_per_device_s if given else None) or defaults.DEFAULT_MTBF_PER_DEVICE_S
    restart_s = (given.restart_s if given else None) or defaults.DEFAULT_RESTART_S
    taken = [part for part in parts if part.spot is not None]
    spot = taken[0].spot if taken else None
    devices = sum(part.devices for part in parts)
    shapes = sum(part.devices // part.shape.devices for part in taken)
    return Stops(
        fails_per_s=1.0 / float(rel.system_mtbf_s(per_device_s, devices)) if fails else 0.0,
        pause_s=restart_s + ((given.detection_s if given else None) or 0.0),
        taken_per_s=spot.interruptions_per_s * shapes if spot else 0.0,
        away_s=(spot.restart_s if spot else None) or restart_s,
        warning_s=(spot.warning_s if spot else None) or 0.0,
    )


def _scale_loss(given: Failures | None, from_benchmarks: bool) -> float:
    """Of speeds from benchmarks alone: a measured one has it in it, the rule of thumb too."""
    if given is not None and given.scale_loss is not None:
        return given.scale_loss
    return defaults.DEFAULT_SCALE_LOSS if from_benchmarks else 0.0


def _best_s(stops: Stops, delta_s: float) -> float:
    """The interval that loses least, given what undoes work and what only pauses."""
    warned = stops.warning_s >= delta_s
    undoing = stops.fails_per_s + (0.0 if warned else stops.taken_per_s)
    if not undoing:
        return math.inf
    pausing = stops.fails_per_s * stops.pause_s
    pausing += stops.taken_per_s * (stops.away_s + (delta_s if warned else 0.0))
    return float(rel.best_interval_s(delta_s, 1.0 / undoing, pausing / undoing))


def run_findings(
    job: TrainingJob,
    arch: Architecture,
    spec: TrainingSpec,
    shape: Shape,
    row: TrainingAllocation,
    terms: Mapping[str, float],
    spot: Spot | None,
) -> Iterator[Finding]:
    """Everything wrong with what a row says of failures and checkpoints.

    Parameters
    ----------
    job, arch
        What is trained; how it fails and is saved is of the job.
    spec
        The job as it is estimated on the shape.
    shape
        What the row runs on.
    row
        Its devices and jobs are taken as stated, and so is whether a step time was measured.
    terms
        Seconds of the run by term, worked out again; those of `RUN_TERMS` are not used.  [s]
    spot
        How often shapes are taken away; None = they are not.
    """
    busy_s = sum(seconds for name, seconds in terms.items() if name not in RUN_TERMS)
    devices, calibrated = row["devices"] // row["jobs"], row["step_time_ratio"] is not None
    cells = run_cells(job, arch, spec, shape, busy_s, devices, row["jobs"], spot, calibrated=calibrated)
    stated = {name: row["time_terms_s"].get(name) for name in RUN_TERMS}
    yield from cell_findings("wrong-run", job.name, row["run"], cells["run"])
    yield from cell_findings("wrong-run", job.name, row, {"hours": cells["wall_s"] / 3600.0})
    yield from cell_findings("wrong-run", job.name, {"terms": stated}, {"terms": cells["terms"]}, scale=busy_s)


def _saving_s(given: Failures | None, hosts: int, devices: int, size_bytes: float) -> tuple[float, float]:
    """How long a checkpoint stops the job, and how long it takes to reach storage when that is longer."""
    bandwidth = (given.checkpoint_bandwidth_bytes_per_s if given else None) or (
        defaults.DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    )
    written_s = float(rel.checkpoint_write_s(size_bytes, hosts, bandwidth))
    if given is None or given.checkpoint == "sync":
        return written_s, 0.0
    return min(float(rel.checkpoint_write_s(size_bytes, devices, defaults.HOST_COPY_BYTES_PER_S)), written_s), written_s
