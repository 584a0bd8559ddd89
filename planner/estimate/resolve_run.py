"""From what a scenario says of failures and checkpoints to a `RunSpec`, defaults filled in."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.model import Shape
from planner.estimate.training_spec import RunSpec
from planner.scenario.schema import Failures, Spot, TrainingJob

# Llama 3 405B: 419 unexpected stops in 54 days on 16,384 H100 are one in 50,700 h of a device.
DEFAULT_MTBF_PER_DEVICE_S = 50_000 * 3600.0
DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S = 2e9  # of one host into a shared file system
DEFAULT_RESTART_S = 600.0  # noticing the failure included
DEFAULT_STRAGGLER_SIGMA = 0.005  # low end of 0.5 to 1 %
# Of the time, on many hosts: what published whole runs took beyond the model's steps, failures and checkpoints. Fitted
# to the nearest hundredth by planner/validate/totals.py, a publisher weighing one; 0.17 to 0.30 without any one.
DEFAULT_SCALE_LOSS = 0.26
DEFAULT_CHECKPOINTS_KEPT = 2
HOST_COPY_BYTES_PER_S = 10e9  # of one device into host memory: a third of a PCIe 4 link, pinned memory shared
DEVICES_PER_HOST = 8  # at most: a host of a larger domain writes for as many


def run_spec(
    job: TrainingJob,
    shape: Shape | None = None,
    *,
    rule_of_thumb: bool = False,
    from_benchmarks: bool = False,
    spot: Spot | None = None,
) -> RunSpec | None:
    """How a job fails, saves and restarts on a kind of shape; None: all wall time is spent training.

    Where the scenario says nothing, the defaults above hold, except for times by the rule of thumb: its utilisation
    comes from budgets of whole runs, in which failures are paid for already.

    Parameters
    ----------
    job
        Its `failures` and `checkpoint_every`.
    shape
        What it runs on; None: hosts of eight devices.
    rule_of_thumb
        Times are by the rule of thumb.
    from_benchmarks
        The speed comes from constants fitted to benchmarks, so that what size costs a whole run comes on top.
    spot
        How often such a shape is taken away; None: never.
    """
    given = job.failures
    if given != "none" and not (given is None and rule_of_thumb):
        run = _failing(given or Failures.model_validate({}), job, shape, from_benchmarks)
    elif job.checkpoint_every_s is None and spot is None:
        return None
    else:
        run = _saving(job, shape)
    return run if spot is None else _taken_away(run, spot)


def _taken_away(run: RunSpec, spot: Spot) -> RunSpec:
    return replace(
        run,
        preemptions_per_s=spot.interruptions_per_s,
        preemption_restart_s=spot.restart_s or run.restart_s or DEFAULT_RESTART_S,
        preemption_warning_s=spot.warning_s or 0.0,
    )


def _saving(job: TrainingJob, shape: Shape | None) -> RunSpec:
    """Nothing fails, but the job is saved as often as asked."""
    return RunSpec(
        checkpoint_bandwidth_bytes_per_s=DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S,
        checkpoint_every_s=job.checkpoint_every_s,
        devices_per_host=devices_per_host(shape),
        devices_per_shape=float(shape.devices) if shape else float(DEVICES_PER_HOST),
    )


def scale_loss_of(given: Failures, from_benchmarks: bool) -> float:
    """Share of the time that many hosts cost: as given, else the default on top of benchmarks."""
    if given.scale_loss is not None:
        return given.scale_loss
    return DEFAULT_SCALE_LOSS if from_benchmarks else 0.0


def _failing(given: Failures, job: TrainingJob, shape: Shape | None, from_benchmarks: bool) -> RunSpec:
    bandwidth = given.checkpoint_bandwidth_bytes_per_s or DEFAULT_CHECKPOINT_BANDWIDTH_BYTES_PER_S
    return RunSpec(
        mtbf_per_device_s=given.mtbf_per_device_s or DEFAULT_MTBF_PER_DEVICE_S,
        restart_s=given.restart_s or DEFAULT_RESTART_S,
        detection_s=given.detection_s or 0.0,
        checkpoint_bandwidth_bytes_per_s=bandwidth,
        checkpoint_every_s=job.checkpoint_every_s,
        asynchronous_checkpoint=given.checkpoint == "async",
        host_copy_bytes_per_s=HOST_COPY_BYTES_PER_S,
        devices_per_host=devices_per_host(shape),
        devices_per_shape=float(shape.devices) if shape else float(DEVICES_PER_HOST),
        straggler_sigma=DEFAULT_STRAGGLER_SIGMA if given.stragglers is None else given.stragglers,
        scale_loss=scale_loss_of(given, from_benchmarks),
    )


def devices_per_host(shape: Shape | None) -> float:
    """Devices that share one host, and so one writer of checkpoints.  [count]"""
    return float(min(shape.devices, DEVICES_PER_HOST)) if shape else float(DEVICES_PER_HOST)


def checkpoints_kept(job: TrainingJob) -> int:
    """Checkpoints that stay in storage.  [count]"""
    given = job.failures
    kept = given.checkpoints_kept if isinstance(given, Failures) else None
    return kept or DEFAULT_CHECKPOINTS_KEPT


def storage_price_usd(job: TrainingJob) -> float | None:
    """Price of a gigabyte kept for a month, when the scenario gives one.  [USD]"""
    given = job.failures
    return given.storage_usd_per_gb_month if isinstance(given, Failures) else None
