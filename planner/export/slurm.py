"""`plan export slurm`: a batch script that trains with torchrun on the nodes that Slurm gives."""

from __future__ import annotations

from collections.abc import Iterator

from planner.export.chosen_program import training_command
from planner.export.file_text import Target, commented, dns_label, header_lines
from planner.export.launch import ExportFile, Launch, NotExpressible, TrainingLaunch
from planner.export.trainer import SHELL, WALL_TIME_MARGIN, command_lines, date_after, wall_time_limit_s

TARGET = Target(
    name="Slurm",
    version="22.05 and later",
    read="2026-11-21",
    source="sbatch(1) of Debian's slurm-client 22.05.8-4",
)
_SIGNAL_BEFORE_S = 300  # for a last checkpoint before the time limit


def files(launch: Launch) -> list[ExportFile]:
    """One batch script; of several identical runs an array.

    Raises
    ------
    NotExpressible
        No trainer has words for the launch.
    """
    assert isinstance(launch, TrainingLaunch)
    if launch.machine.device_kind == "tpu":
        raise NotExpressible(f"{launch.machine.shape_name} is a slice of TPUs, which Slurm does not give out")
    command = training_command(launch)
    notes = [f"trains with {command.target.name} {command.target.version}", *command.notes, *_notes(launch)]
    head = header_lines(launch, TARGET, command.blanks, notes)
    body = ["set -euo pipefail", *_surroundings(launch), "", *_on_each_node(launch, command_lines(launch, command))]
    text = SHELL + "".join(f"#SBATCH {line}\n" for line in _directives(launch))
    return [ExportFile(name=f"{launch.stem}.sbatch", text=text + commented(head) + "\n" + "\n".join(body) + "\n")]


def _directives(launch: TrainingLaunch) -> Iterator[str]:
    name = dns_label(launch.stem)
    yield f"--job-name={name}"
    yield f"--nodes={launch.nodes_per_job}"
    yield f"--gpus-per-node={launch.machine.devices_per_node}"
    yield "--ntasks-per-node=1"
    if launch.machine.shape_kind != "mig" and launch.on is None:  # whose neighbours are other slices of the same device
        yield "--exclusive"
    yield f"--time={_clock(wall_time_limit_s(launch))}"
    yield f"--signal=TERM@{_SIGNAL_BEFORE_S}"
    yield f"--output={name}-%{'A_%a' if launch.jobs > 1 else 'j'}.log"
    if launch.jobs > 1:
        yield f"--array=1-{launch.jobs}"
    if launch.checkpoint_every_s is not None:
        yield "--requeue"
    begin = date_after(launch.timing, launch.timing.start_hours)
    if begin is not None and launch.timing.start_hours > 0:
        yield f"--begin={begin:%Y-%m-%dT%H:%M:%S}"


def _clock(seconds: int) -> str:
    """A time limit as sbatch reads it: days-hours:minutes:seconds.

    Examples
    --------
    >>> _clock(90_061)
    '1-01:01:01'
    """
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}"


def _surroundings(launch: TrainingLaunch) -> Iterator[str]:
    """What Slurm knows and torchrun must be told."""
    if launch.nodes_per_job > 1:
        yield 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)'
        yield "MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))"
        yield "export MASTER_ADDR MASTER_PORT"
    if launch.jobs > 1:
        yield 'export RUN="$SLURM_ARRAY_TASK_ID"'


def _on_each_node(launch: TrainingLaunch, lines: list[str]) -> list[str]:
    """Checks and environment once, then torchrun in one task a node."""
    start = next(number for number, line in enumerate(lines) if line.startswith("exec torchrun"))
    written = launch.nodes_per_job > 1 and any(line.startswith("CONFIGURATION=") for line in lines)
    return [
        *lines[:start],
        *(['sbcast --force "$CONFIGURATION" "$CONFIGURATION"'] if written else []),  # it was written on one of them
        lines[start].replace("exec torchrun", "srun --kill-on-bad-exit=1 torchrun", 1),
        *lines[start + 1 :],
    ]


def _notes(launch: TrainingLaunch) -> Iterator[str]:
    if launch.machine.shape_kind == "mig":
        yield "--gpus-per-node takes a slice by the type that your cluster gives it, such as 1g.10gb:1"
    if launch.on is not None:
        yield (
            "its node is not its own: Slurm must know of the devices that fleets have there, or start their servers too"
        )
    yield f"--time is {WALL_TIME_MARGIN:g} times the upper end of the prediction"
    yield "partition, account and environment modules are your cluster's: sbatch --partition=... --account=..."
