"""`plan export torchrun`: a script that trains with Megatron-LM, started on every node by torchrun."""

from __future__ import annotations

from planner.export.header import commented, demand, header_lines
from planner.export.launch import ExportFile, Launch, TrainingLaunch
from planner.export.megatron import megatron_command
from planner.export.trainer import command_lines, rendezvous_blanks

SHELL = "#!/usr/bin/env bash\n"


def files(launch: Launch) -> list[ExportFile]:
    """One script, to be started on each node of a job.

    Raises
    ------
    NotExpressible
        Megatron-LM has no options for the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    command = megatron_command(launch)
    neighbours = rendezvous_blanks(launch)
    notes = [f"start it on each of the {launch.nodes_per_job} nodes of a job"] if launch.nodes_per_job > 1 else []
    head = header_lines(launch, command.target, [*neighbours, *command.blanks], [*command.notes, *notes])
    checks = [demand(blank) for blank in neighbours]
    lines = ["set -euo pipefail", *checks, *command_lines(launch, command)]
    text = SHELL + commented(head) + "\n".join(lines) + "\n"
    return [ExportFile(name=f"{launch.stem}.torchrun.sh", text=text)]
