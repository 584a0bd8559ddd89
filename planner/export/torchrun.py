"""`plan export torchrun`: a script that trains with Megatron-LM, started on every node by torchrun."""

from __future__ import annotations

from planner.export.launch import ExportFile, Launch, TrainingLaunch
from planner.export.megatron import megatron_command
from planner.export.trainer import script


def files(launch: Launch) -> list[ExportFile]:
    """One script, to be started on each node of a job.

    Raises
    ------
    NotExpressible
        Megatron-LM has no options for the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    return [ExportFile(name=f"{launch.stem}.torchrun.sh", text=script(launch, megatron_command(launch)))]
