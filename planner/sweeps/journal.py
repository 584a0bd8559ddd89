"""What a sweep has found so far, on disk: a line an answer, so that whatever is killed goes on where it was.

A record is found by its key, the SHA-256 of the question and of all that its answer depends on: one of another
question has another key and is never read. Each line ends with a hash of itself. A line that does not bear its own
hash is not believed: its question is answered again, and how many there were is told. In memory there are keys and
places alone, 100 bytes an answer: a row is read, and its hash tried again, when it is asked for.

Plans and proofs that there is none are kept. A question that was refused or that failed is asked again: that takes
no solver, and what it lacked (a file, memory, a worker) may be there by then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Protocol, cast

from planner.sweeps.question import Row, canonical

SCHEMA = "plan/sweep/journal/v1"
BEGINS = json.dumps({"schema": SCHEMA})[:-1]  # every line, and so the file
KEPT = ("optimal", "feasible", "infeasible", "stopped")  # statuses of answers; stopped: after all the time it was given


class Lines(Protocol):
    """A file of lines that only grows (`planner.files.LineFile`)."""

    def places(self) -> Iterator[tuple[int, str]]:
        """Whole lines that were there when it was opened, each with its place."""

    def line_at(self, place: int) -> str:
        """The line that begins at a place."""

    def append(self, line: str) -> int:
        """Add a line and force it to disk; its place."""


class Journal:
    """Rows by key; without a file it remembers nothing beyond this run."""

    def __init__(self, lines: Lines | None = None) -> None:
        self._lines = lines
        self._places: dict[bytes, int] = {}
        self._rows: dict[str, Row] = {}  # those that are on no disk
        self.broken = 0  # lines that do not hold
        for place, line in lines.places() if lines is not None else ():
            key, row = _read(line)
            if row is None:
                self.broken += 1
            else:
                self._places[bytes.fromhex(key)] = place

    def get(self, key: str) -> Row | None:
        """What was answered before; None when it was not asked."""
        if (row := self._rows.get(key)) is not None:
            return row
        place = self._places.get(bytes.fromhex(key))
        if place is None or self._lines is None:
            return None
        found, row = _read(self._lines.line_at(place))
        return row if found == key else None

    def add(self, key: str, row: Row) -> None:
        """Keep an answer: it is on the disk when this returns. What is no answer is asked again in another run."""
        if self._lines is None or row["status"] not in KEPT:
            self._rows[key] = row
            return
        content = {"schema": SCHEMA, "key": key, "row": row}
        text = json.dumps({**content, "sha256": _hash(content)}, ensure_ascii=False, allow_nan=False)
        self._places[bytes.fromhex(key)] = self._lines.append(text)


def _hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(content).encode("utf-8", "surrogatepass")).hexdigest()


def _read(line: str) -> tuple[str, Row | None]:
    """Key and row of a line; no row when the line does not hold."""
    try:
        content = json.loads(line)
        told = content.pop("sha256")
        if content["schema"] != SCHEMA or told != _hash(content) or set(content["row"]) != set(Row.__annotations__):
            return "", None
        if len(bytes.fromhex(content["key"])) != _KEY_BYTES or content["row"]["status"] not in KEPT:
            return "", None
        return content["key"], cast("Row", content["row"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "", None


_KEY_BYTES = hashlib.sha256().digest_size
