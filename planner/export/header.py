"""The head of every exported file: who made it, from which plan, for which version, and what to fill in."""

from __future__ import annotations

from collections.abc import Sequence

from planner.carriers import dataclass
from planner.export.launch import Launch, TrainingLaunch
from planner.export.quoting import comment, shell_double


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The program that a file is for, in the version whose options were read."""

    name: str
    version: str
    read: str  # ISO date on which its options were read
    source: str  # where, owner/repository:path


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """What a plan does not know, and the environment variable (or placeholder) that stands for it."""

    name: str
    meaning: str


def demand(blank: Blank) -> str:
    """A line that stops a script, with the meaning, where a variable is not set."""
    return f': "${{{blank.name}:?{shell_double(blank.meaning)}}}"'


def header_lines(launch: Launch, target: Target, blanks: Sequence[Blank] = (), notes: Sequence[str] = ()) -> list[str]:
    """Lines of the head without comment marks; each is one line of visible text.

    Parameters
    ----------
    launch
        What the file launches.
    target
        The program and version that it is for.
    blanks
        What to fill in before use.
    notes
        What else to know: where the file differs from what was planned, what was left out.
    """
    origin = launch.origin
    case = f", case {origin.case}" if origin.case else ""
    proven = "" if origin.proven else f", {origin.status}: not proven"
    lines = [
        f"Made by: {origin.command} (plan {origin.planner})",
        f"Plan: {origin.plan_name} ({origin.scenario_file}{case}{proven}), sha256 {origin.plan_sha256}",
        f"Catalog: {origin.catalog}; prices as of {origin.prices_as_of or 'unknown'}",
        f"Workload: {launch.workload}, {launch.model.name} on {placed(launch)}",
        f"For: {target.name} {target.version} (options read on {target.read} from {target.source})",
        "Check before use: predicted, not tried on this hardware.",
    ]
    if blanks:
        lines.append("The plan does not know these; set them before use:")
        width = max(len(blank.name) for blank in blanks)
        lines += [f"  {blank.name:{width}}  {blank.meaning}" for blank in blanks]
    lines += [f"Note: {note}" for note in notes]
    return [" " * (len(line) - len(line.lstrip(" "))) + comment(line) for line in lines]


def placed(launch: Launch) -> str:
    """Where an allocation stands: "2 × n3-H100-SXM5x8 (8 × h100-sxm-80gb), hyperstack CANADA-1, on_demand"."""
    machine = launch.machine
    place = " ".join(dict.fromkeys(part for part in (machine.provider, machine.region, machine.zone) if part))
    shape = f"{machine.nodes} × {machine.shape_name} ({machine.devices_per_node} × {machine.device})"
    if isinstance(launch, TrainingLaunch) and launch.on is not None:
        shape = f"{machine.devices} × {machine.device} of a {machine.shape_name}"
    return f"{shape}, {place}, {machine.price_model}"


def commented(lines: Sequence[str], mark: str = "#") -> str:
    """Lines as comments of a script, YAML or TOML file."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
