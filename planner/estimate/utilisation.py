"""What is left to compute of a run, and the share of the peak that a predicted time amounts to."""

from __future__ import annotations

from planner.architecture.model import Architecture, training_flop_per_token
from planner.equations.flops import model_flop_utilisation
from planner.estimate.training_spec import TrainingSpec


def tokens_left(spec: TrainingSpec) -> float:
    """Tokens that are still to be trained, all epochs together.  [tokens]"""
    return spec.tokens * spec.epochs * spec.remaining_share


def achieved_mfu(
    arch: Architecture, spec: TrainingSpec, busy_s: float, devices: float, peak_flop_per_s: float
) -> float:
    """Model FLOPs of the run over what the peak of one device, times devices, would have done in its busy time.

    Parameters
    ----------
    arch
        The model.
    spec
        The job; only what is left of it counts.
    busy_s
        Time of the optimizer steps that are left, without failures and checkpoints.  [s]
    devices
        Of the job.  [count]
    peak_flop_per_s
        Dense peak of one device.  [FLOP/s]
    """
    per_token = training_flop_per_token(arch, spec.sequence_length)
    return float(model_flop_utilisation(tokens_left(spec) / busy_s, per_token, devices * peak_flop_per_s))
