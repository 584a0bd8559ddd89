"""What a file can be: a `Kind` recognises its own by content before name, and reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date

from planner.carriers import dataclass
from planner.reading.reading import Reading
from planner.reading.source import Source

SURE = 0.6  # from here on a file is of the kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How well a file fits a kind: 0 not at all, 1 without doubt; what of it was found and what is missing."""

    score: float
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    tool: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says about a file."""

    columns: Mapping[str, str] = field(default_factory=dict)  # role -> name of the column in the file
    time_zone: str = ""  # of times without one, as Europe/Berlin
    time_unit: str = ""  # of numbers that are times: s, ms, us, ns
    model: str = ""
    accelerator: str = ""
    devices: int = 0
    name: str = ""  # of the workload, fleet or job that is written
    today: str = field(default_factory=lambda: date.today().isoformat())  # of prices that tell no date


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of file; `recognise` looks at the head only."""

    name: str
    title: str
    looks_for: str  # one line: what a file of this kind holds
    recognise: Callable[[Source], Match]
    read: Callable[[Source, Asked], Reading]


def fit(found: Mapping[str, bool], *, tool: str = "", version: str = "", ceiling: float = 1.0) -> Match:
    """A match by the share of marks that are there.

    Parameters
    ----------
    found
        Mark in words -> whether the file has it.
    tool
        What writes such files; empty: not told.
    version
        Of the tool; empty: not told.
    ceiling
        Score where every mark is there.  [1]
    """
    there = tuple(mark for mark, is_there in found.items() if is_there)
    missing = tuple(mark for mark, is_there in found.items() if not is_there)
    return Match(score=ceiling * len(there) / max(len(found), 1), found=there, missing=missing, tool=tool,
                 version=version)  # fmt: skip


NOTHING = Match(score=0.0)
