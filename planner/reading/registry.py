"""All kinds, and which of them a file is."""

from __future__ import annotations

import importlib
from pathlib import PurePath

from planner.errors import InputError, Place, Problem, UsageError
from planner.reading.kinds import NOTHING, SURE, Asked, Kind, Match
from planner.reading.reading import Reading
from planner.reading.source import Source
from planner.spelling import closest

# modules with a tuple KINDS, imported when a file is to be recognised
MODULES = (
    "planner.reading.requests",
    "planner.reading.usage",
    "planner.reading.engine_logs",
    "planner.reading.benchmarks",
    "planner.reading.bench_tables",
    "planner.reading.bench_reports",
    "planner.reading.training_logs",
    "planner.reading.weights",
    "planner.reading.kubernetes",
    "planner.reading.kubernetes_text",
    "planner.reading.nvidia_smi",
    "planner.reading.amd_smi",
    "planner.reading.slurm",
    "planner.reading.slurm_nodes",
    "planner.reading.job_traces",
    "planner.reading.prometheus",
    "planner.reading.bills",
    "planner.reading.cost_explorer",
    "planner.reading.allocations",
    "planner.reading.prices",
    "planner.reading.price_lists",
    "planner.reading.sky",
    "planner.reading.models",
    "planner.reading.training_configs",
    "planner.reading.deployments",
)  # fmt: skip
_NEAREST = 3


def kinds() -> tuple[Kind, ...]:
    """Every kind of file that is read."""
    return tuple(kind for module in MODULES for kind in importlib.import_module(module).KINDS)


def kind_of(source: Source, named: str = "") -> tuple[Kind, Match]:
    """What a file is: by its content, or as the command line says.

    Raises
    ------
    InputError
        The file is empty or of no known kind; the three nearest kinds are named with what is missing.
    UsageError
        There is no kind of the given name.
    """
    known = {kind.name: kind for kind in kinds()}
    if named:
        if named not in known:
            near = closest(named, known)
            hint = f"did you mean '{near[0]}'?" if near else "kinds: " + ", ".join(known)
            raise UsageError(Problem(reference="unknown-kind", message=f"there is no kind '{named}'", hint=hint))
        return known[named], known[named].recognise(source)
    if not source.head.strip():
        raise _unread(source, "empty-file", f"{source.name} is empty", "name a file that holds something")
    matches = sorted(((kind.recognise(source), kind) for kind in known.values()), key=lambda each: -each[0].score)
    best, kind = matches[0] if matches else (NOTHING, None)
    if kind is not None and best.score >= SURE:
        return kind, best
    raise _unread(source, "unknown-format", f"{source.name} is of no kind that is read", _nearest(matches))


def read(source: Source, asked: Asked | None = None, named: str = "") -> Reading:
    """Recognise a file and read it.

    Parameters
    ----------
    source
        The file, or several as one.
    asked
        What the command line says of it; None: nothing.
    named
        Kind to read it as, by its name; empty: told by the content.

    Raises
    ------
    InputError
        It is of no known kind, or nothing can be taken from it.
    UsageError
        There is no kind of the given name.
    """
    kind, match = kind_of(source, named)
    reading = kind.read(source, asked or Asked())
    for again, first in source.twins():
        reading.note(f"{PurePath(again).name} is the same as {PurePath(first).name}, byte for byte: both count")
    reading.tool = reading.tool or match.tool
    reading.version = reading.version or match.version
    return reading


def _nearest(matches: list[tuple[Match, Kind]]) -> str:
    near = []
    for match, kind in matches[:_NEAREST]:
        lacks = f"; missing: {', '.join(match.missing[:4])}" if match.missing else ""
        near.append(f"{kind.title} ({kind.name}): {kind.looks_for}{lacks}")
    return "looked for, nearest first: " + " | ".join(near) + " | --as NAME reads it as one, --column names columns"


def _unread(source: Source, reference: str, message: str, hint: str) -> InputError:
    return InputError(Problem(reference=reference, message=message, places=(Place(file=source.name),), hint=hint))
