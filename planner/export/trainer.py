"""The command that trains on each node, whatever starts it there: environment, blanks, trainer and its options.

Formats that start processes on nodes (torchrun, Slurm, SkyPilot, Kubernetes) write `command_lines` after setting
MASTER_ADDR.
"""

from __future__ import annotations

from planner.carriers import dataclass
from planner.export.header import Blank, Target, commented, demand, header_lines
from planner.export.launch import TrainingLaunch
from planner.export.quoting import shell
from planner.export.server import chosen_devices

SHELL = "#!/usr/bin/env bash\n"
PORT = 29500  # torchrun's own default
_END = "CONFIGURATION_ENDS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What runs on each node."""

    target: Target
    blanks: tuple[Blank, ...]  # environment variables that must be set
    notes: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]  # environment of the trainer
    program: tuple[str, ...]  # what torchrun, or python3, runs: shell words, quoted
    before: tuple[str, ...] = ()  # lines of bash that run first
    starter: str = "torchrun"  # python3 where the program finds its neighbours by itself
    options: tuple[tuple[str, ...], ...]  # each with its values: shell words, quoted
    from_hub: bool = False  # whether it fetches the model's weights by their name on the hub


def command_lines(launch: TrainingLaunch, command: Command) -> list[str]:
    """Bash lines that train on one node; MASTER_ADDR is set before where a job has several.

    They stop where a blank is not filled in. With several identical runs, RUN says which this is.
    """
    lines = [demand(blank) for blank in command.blanks]
    lines += [f"export {name}={shell(value)}" for name, value in command.exports]
    own = _torchrun(launch) if command.starter == "torchrun" else []
    words = [*own, *(" ".join(option) for option in (command.program, *command.options))]
    lines += [*command.before, f"exec {command.starter} \\"]
    return [*lines, *(f"  {word} \\" for word in words[:-1]), f"  {words[-1]}"]


def script(launch: TrainingLaunch, command: Command) -> str:
    """A script that trains, to be started on each node of a job by hand or by what rents them."""
    blanks, nodes = rendezvous_blanks(launch), launch.nodes_per_job
    notes = [*command.notes, *([f"start it on each of the {nodes} nodes of a job"] if nodes > 1 else [])]
    head = header_lines(launch, command.target, [*blanks, *command.blanks], notes)
    lines = ["set -euo pipefail", *map(demand, blanks), *chosen_devices(launch), *command_lines(launch, command)]
    return SHELL + commented(head) + "\n".join(lines) + "\n"


def rendezvous_blanks(launch: TrainingLaunch) -> list[Blank]:
    """What a script must be told of its neighbours when nothing else does."""
    blanks = []
    if launch.nodes_per_job > 1:
        blanks.append(Blank(name="MASTER_ADDR", meaning="address of the first node, the same on all nodes"))
    if launch.jobs > 1:
        blanks.append(Blank(name="RUN", meaning=f"which of the {launch.jobs} identical runs this is, from 1"))
    return blanks


def _torchrun(launch: TrainingLaunch) -> list[str]:
    nodes = launch.nodes_per_job
    own = [f"--nnodes {nodes}", f"--nproc-per-node {launch.machine.devices_per_node}"]
    if nodes == 1:
        return [*own, "--standalone"]
    run = '"-$RUN"' if launch.jobs > 1 else ""
    return [
        *own,
        "--rdzv-backend c10d",
        f'--rdzv-endpoint "$MASTER_ADDR:${{MASTER_PORT:-{PORT}}}"',
        f"--rdzv-id {shell(launch.stem)}{run}",
    ]


def written_first(text: str, suffix: str) -> tuple[str, str]:
    """Lines of bash that write a configuration, of which CONFIGURATION is the path then.

    Parameters
    ----------
    text
        The configuration.
    suffix
        Of the file's name.
    """
    assert _END not in text
    text = text.rstrip("\n")
    return f'CONFIGURATION="$(mktemp --suffix {suffix})"', f"cat > \"$CONFIGURATION\" <<'{_END}'\n{text}\n{_END}"


def run_folder(launch: TrainingLaunch, variable: str) -> str:
    """A folder named by a variable, with one below it for each of several identical runs; a shell word."""
    return f'"${variable}/run-$RUN"' if launch.jobs > 1 else f'"${variable}"'
