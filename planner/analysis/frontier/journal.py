"""What a sweep has found so far, on disk: a line a point, so that a killed run goes on where it was.

A record is found by its key, the SHA-256 of everything that the point depends on: the scenario, the
catalog, the version of the planner, the sweep and its limit, and the columns of the program itself,
which also stand for the files that a scenario names. A record of another question has another key
and is never read. A line is on the disk before the next point is begun; a last line that was torn
is dropped, and its point is solved again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from planner.candidates.program import OPTIONAL, Program

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import Record

SCHEMA = "plan/frontier/journal/v1"
BEGINS = json.dumps({"schema": SCHEMA})[:-1]  # every line, and so the file


class Lines(Protocol):
    """A file of lines that only grows (`planner.files.LineFile`)."""

    @property
    def lines(self) -> list[str]:
        """Whole lines that were there when it was opened."""

    def append(self, line: str) -> object:
        """Add a line and force it to disk."""


class Journal:
    """Records by key; without a file it remembers nothing beyond this run."""

    def __init__(self, question: str, lines: Lines | None = None) -> None:
        self.question, self._lines = question, lines
        self._records = {} if lines is None else dict(_read(line) for line in lines.lines if _read(line)[0])

    def key(self, limit: float | None, part: str = "") -> str:
        """Key of the point at a limit (None is no limit) in a part of the sweep."""
        return hashlib.sha256(f"{self.question} {part} {limit!r}".encode()).hexdigest()

    def get(self, limit: float | None, part: str = "") -> Record | None:
        """What was found at a limit before; None when it was not looked at."""
        return self._records.get(self.key(limit, part))

    def add(self, limit: float | None, record: Record, part: str = "") -> None:
        """Keep what was found at a limit.

        Parameters
        ----------
        limit
            In s, micro-USD or mg; None = no limit.
        record
            What was found; it replaces what was there.
        part
            Name of the range of the sweep; empty where there is one range alone.
        """
        key = self.key(limit, part)
        self._records[key] = record
        if self._lines is not None:
            content = {"schema": SCHEMA, "key": key, "limit": limit, **record}
            self._lines.append(
                json.dumps(content, ensure_ascii=False, allow_nan=False)
            )  # keys as they come: so they stay


def question_key(*parts: Any, program: Program) -> str:
    """SHA-256 of plain data and of a program."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(f"{text} {program_digest(program)}".encode()).hexdigest()


def program_digest(program: Program) -> str:
    """SHA-256 of all numbers of a program; tasks and rows by what they say."""
    digest = hashlib.sha256()
    for task in program.tasks:
        digest.update(repr(task).encode())
    arrays = ("cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units")
    for name in (*arrays, "provider", "offer", *OPTIONAL):
        array = np.ascontiguousarray(getattr(program, name))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    for row in program.rows:
        digest.update(f"{row.name} {row.bound} {len(row.columns)}".encode())
        digest.update(np.ascontiguousarray(row.columns, dtype=np.int64).tobytes())
        digest.update(np.ascontiguousarray(row.coefficients, dtype=np.int64).tobytes())
    told = (program.max_providers, program.objective, program.tie_share, program.most_tie_microusd)
    digest.update(repr(told).encode())
    return digest.hexdigest()


def _read(line: str) -> tuple[str, Record]:
    """Key and record of a line; no key when it is not one of ours."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return "", {}
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("key"), str):
        return "", {}
    kept = {name: value for name, value in content.items() if name not in ("schema", "key", "limit")}
    return content["key"], cast("Record", kept)
