"""Which program an allocation is given to: the trainer of its prediction, the server of the engine it was planned for.

Else it is the first trainer that has words for its layout, and vLLM where the plan names another engine or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.estimate.engines import engine_rules
from planner.export import sglang, vllm
from planner.export.axolotl import axolotl_command
from planner.export.deepspeed import deepspeed_command
from planner.export.launch import NotExpressible, ServingLaunch, TrainingLaunch
from planner.export.maxtext import maxtext_command
from planner.export.megatron import megatron_command
from planner.export.serving_command import Meeting, Server
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


SCRIPTS_ALONE = {"llama.cpp": "llama.cpp", "trt-llm": "TensorRT-LLM"}


def planned_server(launch: ServingLaunch, meeting: Meeting, *, together: int | None = None) -> Server:
    """The command of one port, as `vllm.server` and `sglang.server` make it.

    Parameters
    ----------
    launch
        The fleet's allocation.
    meeting
        How the nodes of a replica find each other, where there are several.
    together
        Replicas behind the port; default: those that share a node.

    Raises
    ------
    NotExpressible
        The engine has no words for it.
    """
    rules = engine_rules(launch.engine or launch.fleet.engine)
    name = rules.name if rules else ""
    if name == "sglang":
        return sglang.server(launch, meeting, together=together)
    if name in SCRIPTS_ALONE:
        raise NotExpressible(f"a server of {SCRIPTS_ALONE[name]} is exported as a script of its own alone")
    return vllm.server(launch, meeting, together=together)
