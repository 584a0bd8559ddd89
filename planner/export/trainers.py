"""Which trainer a job is given to: that of its prediction, else the first that has words for its layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.export.axolotl import axolotl_command
from planner.export.deepspeed import deepspeed_command
from planner.export.launch import NotExpressible, TrainingLaunch
from planner.export.maxtext import maxtext_command
from planner.export.megatron import megatron_command
from planner.export.torchtitan import torchtitan_command
from planner.export.trainer import Command
from planner.export.trl import trl_command

Trainer = Callable[[TrainingLaunch], Command]


def training_command(launch: TrainingLaunch) -> Command:
    """The command of the first trainer that can: that of the prediction, else another for such jobs.

    Raises
    ------
    NotExpressible
        None can; with the reasons of all.
    """
    trainers: list[tuple[str, Trainer]] = [("Megatron-LM", megatron_command), ("torchtitan", torchtitan_command)]
    if launch.software == "fsdp":
        trainers.reverse()
    if launch.job.lora is not None:
        trainers = [("TRL", trl_command), ("Axolotl", axolotl_command)]
    # a script of one's own is asked for last
    trainers.insert(0 if launch.job.framework == "deepspeed" else len(trainers), ("DeepSpeed", deepspeed_command))
    if launch.job.framework == "axolotl":
        trainers = [("Axolotl", axolotl_command)]
    if launch.machine.device_kind == "tpu":
        trainers = [("MaxText", maxtext_command)]
    return first_that_can(launch, trainers)


def first_that_can(launch: TrainingLaunch, trainers: Sequence[tuple[str, Trainer]]) -> Command:
    """The command of the first of some trainers that has words for a launch.

    Raises
    ------
    NotExpressible
        None has.
    """
    reasons: list[NotExpressible] = []
    for _, trainer in trainers:
        try:
            return trainer(launch)
        except NotExpressible as error:
            reasons.append(error)
    told = list(dict.fromkeys(error.reason for error in reasons))
    if len(told) == 1:
        raise reasons[0]
    named = "; ".join(f"{name}: {error.reason}" for (name, _), error in zip(trainers, reasons))
    raise NotExpressible(named, reasons[0].instead)
