"""What every format of training asks of a launch before it writes a file, and the command that trains on each node.

The command is the same whatever starts it there: environment, blanks, trainer and its options. Formats that start
processes on nodes (torchrun, Slurm, SkyPilot, Kubernetes) write `command_lines` after setting MASTER_ADDR.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from planner.carriers import dataclass
from planner.estimate.layout import expert_tensor_degree
from planner.estimate.resolve_run import checkpoints_kept, storage_price_usd
from planner.estimate.software import SOFTWARE, Asked, Split, lack
from planner.export.file_text import Blank, Target, commented, demand, header_lines, shell
from planner.export.launch import NotExpressible, Timing, TrainingLaunch, TrainingLayout, Turn
from planner.export.serving_command import chosen_devices
from planner.scenario.workload_parts import Failures
from planner.units import format_duration

SHELL = "#!/usr/bin/env bash\n"
RENDEZVOUS_PORT = 29500  # torchrun's own default
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
        f'--rdzv-endpoint "$MASTER_ADDR:${{MASTER_PORT:-{RENDEZVOUS_PORT}}}"',
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


WALL_TIME_MARGIN = 1.2  # of a time limit, over the upper end of the predicted finish (interface.md section 6)


def demand_launchable(launch: TrainingLaunch, name: str) -> None:
    """Refuse what a program does not run, and sums that do not hold.

    Parameters
    ----------
    launch
        The allocation.
    name
        The program, of planner.estimate.software.

    Raises
    ------
    NotExpressible
        With the reason, and with what of the scenario to change.
    """
    missing = lack(name, asked_of(launch))
    if missing is not None:
        raise NotExpressible(*missing)
    _demand_identities(launch)


def asked_of(launch: TrainingLaunch) -> Asked:
    """What programs are asked to run."""
    machine, layout = launch.machine, launch.layout
    return Asked(
        job=launch.job,
        arch=launch.model.arch,
        model=launch.model.name,
        sequence_length=launch.sequence_length,
        layout=Split(
            dp=layout.dp, tp=layout.tp, pp=layout.pp, vpp=layout.vpp, cp=layout.cp, ep=layout.ep,
            micro_batches=layout.micro_batches, sharding=layout.sharding,
            recompute=layout.recompute,
        ),
        device=machine.device,
        kind=machine.device_kind,
        family=machine.family,
        part=machine.shape_kind in ("mig", "share") and machine.devices // launch.jobs > 1,
        slices=launch.nodes_per_job,
        mixed=launch.mixed,
    )  # fmt: skip


def _demand_identities(launch: TrainingLaunch) -> None:
    """dp·tp·pp·cp = devices, nodes · devices of a node = devices, micro-batches · micro-batch · dp = batch."""
    layout, machine = launch.layout, launch.machine
    held = launch.nodes_per_job * machine.devices_per_node
    if layout.devices != held or launch.nodes_per_job * launch.jobs != machine.nodes:
        raise NotExpressible(
            f"the layout takes {layout.devices} devices of {held} that a job rents", "plan solve the scenario again"
        )
    if layout.micro_batch * layout.dp * layout.micro_batches != layout.global_batch_sequences:
        raise NotExpressible(
            f"{layout.global_batch_sequences} sequences do not divide over {layout.dp} replicas in passes of "
            f"{layout.micro_batch}: the last pass of a step would be a smaller one",
            "give global_batch as a range and solve again",
        )


def steps_between_checkpoints(launch: TrainingLaunch) -> int:
    """Whole optimizer steps in the plan's interval between checkpoints; the run's end where it saves none."""
    if launch.checkpoint_every_s is None:
        return launch.steps
    return min(max(round(launch.checkpoint_every_s / step_s(launch)), 1), launch.steps)


def saves_behind(launch: TrainingLaunch) -> bool:
    """Whether checkpoints were planned to be written while training goes on."""
    given = launch.job.failures
    return launch.checkpoint_every_s is not None and isinstance(given, Failures) and given.checkpoint == "async"


def kept_checkpoints(launch: TrainingLaunch) -> int | None:
    """Checkpoints that the plan keeps in storage, where the scenario speaks of them; else the trainer's own."""
    given = launch.job.failures
    said = isinstance(given, Failures) and given.checkpoints_kept is not None
    return checkpoints_kept(launch.job) if said or storage_price_usd(launch.job) is not None else None


def checkpoint_notes(launch: TrainingLaunch, *, behind: bool, keeps: bool) -> Iterator[str]:
    """What of the plan's checkpoints a trainer has no words for.

    Parameters
    ----------
    launch
        The allocation.
    behind
        Whether it writes them while training goes on.
    keeps
        Whether it deletes those beyond a number.
    """
    if saves_behind(launch) and not behind:
        yield (
            "the plan counts on checkpoints that are written while training goes on (failures: {checkpoint: async}); "
            "this trainer stops for each, so that the run takes longer: plan with checkpoint: sync"
        )
    kept = kept_checkpoints(launch)
    if kept is not None and not keeps and launch.checkpoint_every_s is not None:
        yield f"the plan keeps {kept} checkpoint{'s' if kept > 1 else ''} in storage: delete older ones yourself"


def step_s(launch: TrainingLaunch) -> float:
    """Wall time of one step, failures and checkpoints spread over all of them.  [s]"""
    if launch.turn is None:
        return launch.timing.hours * 3600.0 / max(launch.steps - launch.steps_done, 1)
    whole = launch.tokens * launch.epochs * launch.token_factor / launch.tokens_per_step
    return launch.timing.hours * 3600.0 / max((whole - launch.steps_done) * launch.turn.share, 1)


def wall_time_limit_s(launch: TrainingLaunch) -> int:
    """Time limit of a batch job: a fifth more than the upper end of the error band, in whole minutes.  [s]"""
    return -int(-launch.timing.at_confidence_hours * WALL_TIME_MARGIN * 60.0 // 1) * 60


def expert_tensor_size(layout: TrainingLayout) -> int:
    """Ranks that share each expert of a layout, as the plan's memory and time count them."""
    return int(expert_tensor_degree(layout.tp, layout.ep))


def training_notes(launch: TrainingLaunch, name: str) -> Iterator[str]:
    """What holds for the job whatever launches it; `name` is the program's, of planner.estimate.software."""
    timing = launch.timing
    wall, upper = (format_duration(hours * 3600) for hours in (timing.hours, timing.at_confidence_hours))
    end = f"p{100 * timing.confidence:.0f}" if timing.confidence else "the upper end"
    yield (
        f"predicted {wall} of wall time, {upper} at {end} of the error band; "
        f"{launch.steps:,} steps of {launch.tokens_per_step:,} tokens"
    )
    if launch.on is not None:
        others, own = ", ".join(launch.on.others) or "others of its own", ", ".join(map(str, launch.on.devices))
        yield f"on node {launch.on.node + 1} of the {launch.on.nodes} that fleets share, beside {others}: devices {own}"
    if launch.jobs > 1:
        yield f"{launch.jobs} identical runs of {launch.nodes_per_job} node(s): RUN says which, from 1 to {launch.jobs}"
    if launch.token_factor > 1:
        yield f"its batch is above the critical one: steps for {launch.token_factor:.3g} times the tokens, as planned"
    if launch.steps_done:
        yield f"the run is under way: it goes on from its checkpoint, {launch.steps_done:,} steps are done"
    if launch.software not in SOFTWARE[name].predicted:
        yield f"step time and memory were predicted for {launch.software}; with other software both differ"
    if launch.machine.vendor == "amd":
        yield "AMD devices: take the ROCm builds of PyTorch and of the trainer"
    if launch.machine.family == "kepler":
        yield "CUDA 12 left these devices out: take a PyTorch built with CUDA 11, and a release of the trainer for it"
    if launch.machine.price_model == "spot":
        yield "spot nodes can be taken away: start it again with the same command, it goes on from its last checkpoint"
    yield from _calendar(launch) if launch.turn is None else _turns(launch, launch.turn)


def _turns(launch: TrainingLaunch, turn: Turn) -> Iterator[str]:
    """What to do where the job changes machines; a file starts one part and knows of no other."""
    when = _moment(launch.timing, turn.switch_hours)
    if turn.first:
        yield (
            f"the first part of the job, until {when}: stop it then as soon as a checkpoint is saved, give the spot "
            "nodes back, and start the part on demand, whose file lies beside this one; boot its nodes before"
        )
    else:
        yield (
            f"the second part of the job, from {when} on: it goes on from the last checkpoint of the part on spot, "
            "in the same checkpoint folder"
        )
    batches = launch.layout.global_batch_sequences, turn.other_batch_sequences
    if batches[0] != batches[1]:
        before, after = batches if turn.first else batches[::-1]
        yield f"the batch changes from {before} to {after} sequences at the switch: steps are those of both parts"
    if turn.resplit:
        yield "the two parts split the model differently: keep checkpoints in a form that another split can read"


def _calendar(launch: TrainingLaunch) -> Iterator[str]:
    """When the plan lets a job run; a file starts it, but keeps no calendar."""
    timing = launch.timing
    if len(timing.windows_hours) > 1:
        spans = ", ".join(
            f"{_moment(timing, first)} to {_moment(timing, last)}" for first, last in timing.windows_hours
        )
        yield f"the plan pauses this job, which runs from {spans}: stop and start it yourself"
    elif timing.start_hours > 0:
        yield f"the plan starts this job {_moment(timing, timing.start_hours)}"


def _moment(timing: Timing, hours: float) -> str:
    date = date_after(timing, hours)
    return f"hour {hours:g}" if date is None else f"{date:%Y-%m-%d %H:%M}"


def date_after(timing: Timing, hours: float) -> datetime | None:
    """The date so many hours after the plan begins; None where the plan has no dates."""
    return datetime.fromisoformat(timing.begin) + timedelta(hours=hours) if timing.begin else None
