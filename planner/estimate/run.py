"""From the busy time of a run to its wall time: checkpoints, failures, restarts, the slowest of many.

A job of N devices stops when any of them fails, goes back to its last checkpoint and restarts. It saves at
the interval that loses least unless one is given, at least once in a run, and never more often than an
asynchronous checkpoint takes to reach storage. Spare machines are taken to be at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.architecture.model import Architecture
from planner.carriers import dataclass
from planner.equations import reliability as rel
from planner.equations.parameters import lora_layer_parameters
from planner.equations.preemption import preempted_mean_s, preempted_quantile
from planner.equations.recipes import state_recipe
from planner.estimate.terms import Terms
from planner.estimate.training_spec import RunSpec, TrainingSpec

Values = NDArray[np.float64]

TERMS = ("scale_loss", "stragglers", "checkpoints", "lost_work", "restarts")
_MASTER_AND_MOMENTS_BYTES = 12.0  # of one parameter, all in fp32
_RAREST_PER_S = 1e-300  # a rate of failures that is none, but whose inverse is a number


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What follows from a `RunSpec` for jobs of given sizes; arrays of one shape, or numbers."""

    checkpoint_s: Values  # time that one checkpoint stops the job
    interval_s: Values  # computing time between checkpoints
    mtbf_s: Values  # of the job, preemptions included; inf: nothing fails
    goodput: Values  # share of the wall time that counts, stragglers not included
    failures: Values  # to expect in the whole run
    scaled_s: Values  # busy time with what size costs
    useful_s: Values  # with stragglers too
    lost_share: Values  # of the wall time: work that failures undo
    restart_share: Values  # of the wall time: noticing failures and restarting

    @property
    def wall_s(self) -> Values:
        """Time of the whole run, stragglers included; infinite where it fails faster than it restarts.  [s]"""
        endless = np.full(np.broadcast(self.useful_s, self.goodput).shape, np.inf)
        return np.asarray(np.divide(self.useful_s, self.goodput, out=endless, where=np.asarray(self.goodput) > 0))


def checkpoint_bytes_of(arch: Architecture, spec: TrainingSpec) -> float:
    """Bytes of one checkpoint of a job: what is trained, its master weights and moments.  [B]"""
    recipe = state_recipe(spec.optimizer, spec.precision, spec.framework)
    kept = min(recipe.optimizer, _MASTER_AND_MOMENTS_BYTES)  # some recipes count fp32 gradients among these states
    return float(rel.checkpoint_bytes(trained_parameters(arch, spec), recipe.weight, kept))


def trained_parameters(arch: Architecture, spec: TrainingSpec) -> float:
    """Parameters that a job trains: all, or those of its adapters."""
    return float(arch.parameters) if spec.lora_rank is None else adapter_parameters(arch, spec.lora_rank)


def adapter_parameters(arch: Architecture, rank: int) -> float:
    """Adapters on the attention and the dense or shared MLP of every layer."""
    total = 0.0
    for group in arch.layers:
        width = group.mlp_width or group.shared_expert_width
        heads = (group.query_heads, group.kv_heads, group.head_size)
        total += group.count * float(lora_layer_parameters(rank, arch.hidden_size, *heads, width, group.gated))
    return total


def run_figures(busy_s: Any, devices: Any, checkpoint_bytes: Any, run: RunSpec) -> RunFigures:
    """Interval, goodput and failures of runs.

    Parameters
    ----------
    busy_s
        Time of all optimizer steps.  [s]
    devices
        Devices N of the job.  [count]
    checkpoint_bytes
        Size of one checkpoint.  [B]
    run
        How the job fails, saves and restarts.
    """
    n = np.asarray(devices, dtype=np.float64)
    scaled = np.asarray(busy_s, dtype=np.float64) * rel.scale_loss_factor(run.scale_loss, _hosts(n, run))
    useful = scaled * rel.straggler_factor(run.straggler_sigma, n)
    delta, written = _checkpoint_times(n, checkpoint_bytes, run)
    fails = n / run.mtbf_per_device_s
    shapes = np.ceil(n / run.devices_per_shape) if run.spot_shapes is None else run.spot_shapes
    taken = np.asarray(shapes * run.preemptions_per_s)
    tau = _interval(useful, delta, written, fails, taken, run)
    preempted_s = rel.preemption_lost_s(tau, delta, run.preemption_warning_s)
    lost = fails * tau / 2.0 + taken * preempted_s
    restart = fails * (run.restart_s + run.detection_s) + taken * run.preemption_restart_s
    mtbf = 1.0 / np.maximum(fails + taken, _RAREST_PER_S)
    beyond = (lost + restart) * mtbf - tau / 2.0  # what a stop costs on average beyond half an interval
    inverse = np.asarray(rel.inverse_goodput(delta, tau, mtbf, beyond))
    return RunFigures(
        checkpoint_s=delta,
        interval_s=tau,
        mtbf_s=np.where(fails + taken > 0, mtbf, np.inf),
        goodput=1.0 / inverse,
        failures=np.where(fails + taken > 0, rel.expected_failures(useful * inverse, mtbf), 0.0),
        scaled_s=np.asarray(scaled),
        useful_s=np.asarray(useful),
        lost_share=lost,
        restart_share=restart,
    )


def preemption_margin(
    busy_s: Any, devices: Any, checkpoint_bytes: Any, run: RunSpec | None, confidence: float
) -> Values:
    """What a mean wall time is multiplied with so that it holds with a confidence whatever is taken away (EQ-REL-13).

    1 where nothing is taken away: failures have their share in the error that whole runs showed.

    Parameters
    ----------
    busy_s, devices, checkpoint_bytes
        As in `run_figures`.
    run
        How the job fails, saves and restarts; None: nothing is taken away.
    confidence
        Quantile, 0.5 or more and below 1.
    """
    busy = np.asarray(busy_s, dtype=np.float64)
    if run is None or not run.preemptions_per_s:
        return np.ones(np.broadcast(busy, devices).shape)
    figures = run_figures(busy, devices, checkpoint_bytes, run)
    return np.asarray(preempted_quantile(figures.wall_s, *_chance(figures, devices, run), confidence))


def _chance(figures: RunFigures, devices: Any, run: RunSpec) -> tuple[Values, Values, Values, Values]:
    """Of preemptions: their rate, what one costs in the mean, the spread of that, and the share lost to all stops."""
    taken = np.ceil(np.asarray(devices, dtype=np.float64) / run.devices_per_shape) * run.preemptions_per_s
    undone = rel.preemption_lost_s(figures.interval_s, figures.checkpoint_s, run.preemption_warning_s)
    warned = run.preemption_warning_s >= figures.checkpoint_s
    width = np.where(warned, 0.0, figures.interval_s)
    return taken, np.asarray(undone + run.preemption_restart_s), width, figures.lost_share + figures.restart_share


def mean_within_s(
    within_s: Any, busy_s: Any, devices: Any, checkpoint_bytes: Any, run: RunSpec, confidence: float
) -> Values:
    """Mean wall time of the part of a run that is done within a time, whatever is taken away (EQ-REL-14).  [s]

    Parameters
    ----------
    within_s
        Time that there is.  [s]
    busy_s, devices, checkpoint_bytes, run
        Of the whole run, as in `run_figures`.
    """
    figures = run_figures(busy_s, devices, checkpoint_bytes, run)
    return np.asarray(preempted_mean_s(within_s, *_chance(figures, devices, run), confidence))


def switch_s(devices: Any, checkpoint_bytes: Any, run: RunSpec) -> tuple[Values, float]:
    """What leaving preemptible machines for others takes: a checkpoint that reaches storage, and a restart.  [s]

    Parameters
    ----------
    devices
        Devices of the job.  [count]
    checkpoint_bytes
        Size of one checkpoint.  [B]
    run
        How the job saves, and what a restart after a preemption takes.
    """
    stops, written = _checkpoint_times(np.asarray(devices, dtype=np.float64), checkpoint_bytes, run)
    return np.maximum(stops, written), run.preemption_restart_s


def whole_run(steps: Terms, arch: Architecture, spec: TrainingSpec, devices: Any) -> Terms:
    """Wall seconds of what is left of a run, from the seconds of all its optimizer steps.

    Steps are scaled to the tokens that are left and to the step time measured on the run under way;
    the terms of `run_overheads` follow, all 0 for a job without a `RunSpec`.

    Parameters
    ----------
    steps
        Time of all optimizer steps, nothing of them done.  [s]
    arch
        The model.
    spec
        The job: how far it is, what was measured of it, how it fails.
    devices
        Devices of the job, one element a layout.  [count]
    """
    share = spec.remaining_share * spec.step_time_ratio
    left = steps if np.all(np.asarray(share) == 1.0) else Terms({name: array * share for name, array in steps.items()})
    if spec.run is None:
        return Terms({**left, **dict.fromkeys(TERMS, 0.0)}, total=left.total)
    return Terms({**left, **run_overheads(left.total, devices, checkpoint_bytes_of(arch, spec), spec.run)})


def run_overheads(busy_s: Any, devices: Any, checkpoint_bytes: Any, run: RunSpec) -> Terms:
    """Wall seconds of a run beyond its steps, term by term; busy time and terms sum to the wall time.

    `scale_loss` what whole runs lose with size, `stragglers` waiting for the slowest device, `checkpoints` written,
    `lost_work` that failures undo, `restarts` with the time to notice. Infinite where a job fails faster than it
    restarts.

    Parameters
    ----------
    busy_s
        Time of the optimizer steps; one that is not finite counts as a second.  [s]
    devices, checkpoint_bytes, run
        As in `run_figures`.
    """
    busy = np.asarray(busy_s, dtype=np.float64)
    known = np.where(np.isfinite(busy), busy, 1.0)  # an unknown busy time stays what makes the sum infinite
    figures = run_figures(known, devices, checkpoint_bytes, run)
    with np.errstate(divide="ignore", invalid="ignore"):
        wall = figures.wall_s
        saves = np.where(figures.checkpoint_s > 0, figures.useful_s / figures.interval_s, 0.0)
        lost = np.where(figures.lost_share > 0, wall * figures.lost_share, 0.0)
        restarts = np.where(figures.restart_share > 0, wall * figures.restart_share, 0.0)
    return Terms(
        {
            "scale_loss": figures.scaled_s - known,
            "stragglers": figures.useful_s - figures.scaled_s,
            "checkpoints": saves * figures.checkpoint_s,
            "lost_work": lost,
            "restarts": restarts,
        }
    )


def _hosts(n: Values, run: RunSpec) -> Values:
    if run.host_count is not None:
        return np.full(np.shape(n), run.host_count)
    return np.asarray(np.ceil(n / run.devices_per_host))


def _checkpoint_times(n: Values, size_bytes: Any, run: RunSpec) -> tuple[Values, Values]:
    """Time that a checkpoint stops the job, and least time between two of them."""
    written = np.asarray(rel.checkpoint_write_s(size_bytes, _hosts(n, run), run.checkpoint_bandwidth_bytes_per_s))
    if not run.asynchronous_checkpoint:
        return written, np.zeros(np.shape(written))
    copied = np.asarray(rel.checkpoint_write_s(size_bytes, n, run.host_copy_bytes_per_s))
    return np.minimum(copied, written), written


def _interval(useful: Values, delta: Values, written: Values, fails: Values, taken: Values, run: RunSpec) -> Values:
    """The asked interval or the best one; one checkpoint at least, at the end of the run."""
    longest = np.maximum(useful, 1e-9)
    if run.checkpoint_every_s is not None:
        return np.asarray(np.minimum(np.maximum(run.checkpoint_every_s, written), longest))
    warned = run.preemption_warning_s >= delta
    undone = np.maximum(fails + np.where(warned, 0.0, taken), _RAREST_PER_S)  # stops that undo half an interval
    other = fails * (run.restart_s + run.detection_s) + taken * (
        run.preemption_restart_s + np.where(warned, delta, 0.0)
    )
    best = rel.best_interval_s(delta, 1.0 / undone, other / undone)
    return np.asarray(np.minimum(np.maximum(best, written), longest))
