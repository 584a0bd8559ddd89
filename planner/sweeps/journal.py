"""What a sweep has found so far, on disk: a line an answer, so that whatever is killed goes on where it was.

A record is found by its key, the SHA-256 of the question and of all that its answer depends on: one of another
question has another key and is never read. Each line ends with a hash of itself. A line that does not bear its own
hash is not believed: its question is answered again, and how many there were is told.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Protocol, cast

from planner.sweeps.question import LOST, Row, canonical

SCHEMA = "plan/sweep/journal/v1"
BEGINS = json.dumps({"schema": SCHEMA})[:-1]  # every line, and so the file
MOST_BYTES = 2_000_000_000  # of a journal: more than a million answers


class Lines(Protocol):
    """A file of lines that only grows (`planner.files.LineFile`)."""

    @property
    def lines(self) -> list[str]:
        """Whole lines that were there when it was opened."""

    def append(self, line: str) -> None:
        """Add a line and force it to disk."""


class Journal:
    """Rows by key; without a file it remembers nothing beyond this run."""

    def __init__(self, lines: Lines | None = None) -> None:
        self._lines = lines
        self._rows: dict[str, Row] = {}
        self.broken = 0  # lines that do not hold
        for line in lines.lines if lines is not None else ():
            key, row = _read(line)
            if row is None:
                self.broken += 1
            else:
                self._rows[key] = row

    def get(self, key: str) -> Row | None:
        """What was answered before; None when it was not asked."""
        return self._rows.get(key)

    def add(self, key: str, row: Row) -> None:
        """Keep an answer: it is on the disk when this returns. What could not be answered here is asked again."""
        self._rows[key] = row
        if self._lines is not None and row["status"] != LOST:
            content = {"schema": SCHEMA, "key": key, "row": row}
            text = json.dumps({**content, "sha256": _hash(content)}, ensure_ascii=False, allow_nan=False)
            self._lines.append(text)


def _hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _read(line: str) -> tuple[str, Row | None]:
    """Key and row of a line; no row when the line does not hold."""
    try:
        content = json.loads(line)
        told = content.pop("sha256")
        if content["schema"] != SCHEMA or told != _hash(content) or set(content["row"]) != set(Row.__annotations__):
            return "", None
        return content["key"], cast("Row", content["row"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", None
