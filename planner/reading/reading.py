"""What was read: rows taken and skipped, what the figures are, and the pieces that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from planner.carriers import dataclass

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
