"""What a run computes, how fast, and what the rule of thumb says of the same devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.architecture.work import training_flop_per_token
from planner.equations.rules import training_hours
from planner.estimate.run import TERMS as RUN_TERMS
from planner.estimate.utilisation import tokens_left

if TYPE_CHECKING:
    from planner.architecture.model import Architecture
    from planner.catalog.model import Catalog
    from planner.estimate.training_spec import TrainingSpec
    from planner.plan.model.rows import Work


def busy_s_of(terms: Mapping[str, float]) -> float:
    """Time of the optimizer steps alone, without failures and checkpoints.  [s]"""
    return sum(seconds for name, seconds in terms.items() if name not in RUN_TERMS)


def work_document(arch: Architecture, spec: TrainingSpec, busy_s: float, devices: int) -> Work:
    """Model FLOPs of a token and of the run, and the rate of them that one device reaches in its busy time.

    Parameters
    ----------
    arch
        The model.
    spec
        What is trained; what was trained before does not count.
    busy_s
        Time of the optimizer steps that are left.  [s]
    devices
        Of one job; in a mix those of one group.
    """
    per_token, tokens = float(training_flop_per_token(arch, spec.sequence_length)), tokens_left(spec)
    return {
        "flop_per_token": per_token,
        "tokens": tokens,
        "flop_count": per_token * tokens,
        "flop_per_s_per_device": per_token * tokens / busy_s / devices,
    }


def rule_hours(arch: Architecture, spec: TrainingSpec, catalog: Catalog, family: str, peak_flop_per_s: float) -> float:
    """Hours by the rule of thumb at the family's usual share of the peak of all devices together.  [h]

    Parameters
    ----------
    arch
        The model.
    spec
        What is trained; what was trained before does not count.
    catalog
        Has the rule's share of the peak by family.
    family
        Of the devices.
    peak_flop_per_s
        Of all its devices together.  [FLOP/s]
    """
    sustained = peak_flop_per_s * catalog.efficiencies[family].mfu
    hours = training_hours(spec.tokens, arch.active_parameters, spec.epochs, 1.0, sustained)
    return float(hours) * spec.remaining_share
