"""What a file can be, and what was read of it: rows taken and skipped, what the figures are, pieces that follow.

A `Kind` recognises its own by content before name, and reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date
from typing import Any

from planner.carriers import dataclass
from planner.reading.source import Source

MOST_NOTES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure for people."""

    label: str
    value: float | int | str
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something to write.

    `what` is scenario (a fragment: keys below which `fragment` is put, `lists` are lists of named things),
    trace (CSV of requests), rows (CSV of measurements), card (config of a model), prices or overlay (YAML or CSV).
    """

    what: str
    name: str  # of the file, as proposed
    text: str = ""
    fragment: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""  # one line: what it is good for


@dataclass(slots=True, kw_only=True)
class Skips:
    """Rows that were not taken: reason -> how many, and the line or row of the first."""

    reasons: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, reason: str, line: int, count: int = 1) -> None:
        """Count rows, of which the first stands at a line.

        Parameters
        ----------
        reason
            Why the rows were not taken; they are counted by it.
        line
            Of the first of them, or its place among records.
        count
            How many.  [count]
        """
        before, first = self.reasons.get(reason, (0, line))
        self.reasons[reason] = (before + count, min(first, line) if before else line)

    @property
    def count(self) -> int:
        """All rows skipped."""
        return sum(count for count, _ in self.reasons.values())


@dataclass(slots=True, kw_only=True)
class Reading:
    """What a file is and what follows from it."""

    kind: str
    title: str
    source: str
    tool: str = ""
    version: str = ""
    taken: int = 0
    of: str = "rows"  # what is counted
    skipped: Skips = field(default_factory=Skips)
    notes: list[str] = field(default_factory=list)
    understood: dict[str, str] = field(default_factory=dict)  # units, time zone, columns: as they were taken
    look: list[Figure] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def show(self, label: str, value: float | int | str | None, unit: str = "") -> None:
        """Add a figure, unless it is not known.

        Parameters
        ----------
        label
            What the figure is.
        value
            None: it is not known.
        unit
            As it stands behind the figure; empty: none.
        """
        if value is not None:
            self.look.append(Figure(label=label, value=value, unit=unit))

    def note(self, sentence: str) -> None:
        """Add a note once; after the 40th no more."""
        if sentence not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(sentence)


def document_of(reading: Reading) -> dict[str, Any]:
    """The reading as plain data, for every output format."""
    return {
        "kind": reading.kind,
        "title": reading.title,
        "source": reading.source,
        "tool": reading.tool,
        "version": reading.version,
        "taken": reading.taken,
        "of": reading.of,
        "skipped": [
            {"reason": reason, "count": count, "first_line": line}
            for reason, (count, line) in reading.skipped.reasons.items()
        ],
        "understood": dict(reading.understood),
        "figures": [{"label": each.label, "value": each.value, "unit": each.unit} for each in reading.look],
        "notes": list(reading.notes),
        "pieces": [{"what": piece.what, "name": piece.name, "says": piece.says} for piece in reading.pieces],
    }


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
