"""Questions from a list to rows in its order: look into the journal, have answered what is missing, keep it at once.

The journal is on disk, a line an answer, so that whatever is killed goes on where it was. A record is found by its key,
the SHA-256 of the question and of all that its answer depends on: one of another question has another key and is never
read. Each line ends with a hash of itself. A line that does not bear its own hash is not believed: its question is
answered again, and how many there were is told. In memory there are keys and places alone, 100 bytes an answer: a row
is read, and its hash tried again, when it is asked for.

Plans and proofs that there is none are kept. A question that was refused or that failed is asked again: that takes no
solver, and what it lacked (a file, memory, a worker) may be there by then.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

from planner.carriers import dataclass
from planner.sweeps.question import Answered, Question, Row, canonical, lost

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


Asked = tuple[int, Question]
_NO_TIME = ("time-limit", "the time was up before it was asked", "run it again: it goes on from the journal")
Runner = Callable[[Iterable[Asked]], Iterator[tuple[int, Answered]]]  # answers in any order, each under its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a sweep is."""

    done: int  # those from the journal among them
    of: int
    failed: int
    best_usd: float | None
    left_s: float | None  # at the pace so far; None: none was answered yet

    def __str__(self) -> str:
        parts = [f"{self.done:,} of {self.of:,}"]
        if self.failed:
            parts.append(f"{self.failed:,} without a plan")
        if self.best_usd is not None:
            parts.append(f"best ${self.best_usd:,.0f}")
        if self.left_s is not None and self.done < self.of:
            parts.append(f"{self.left_s:,.0f} s left")
        return ", ".join(parts)


class Plans(Protocol):
    """Where plan files are kept by the hash that they bear."""

    def has(self, sha256: str) -> bool:
        """Whether it is there."""

    def add(self, sha256: str, text: str) -> None:
        """Keep one."""


@dataclass(slots=True, kw_only=True)
class Asker:
    """Asks questions, each once; what was answered before is taken from the journal.

    Parameters
    ----------
    key
        Under which the answer to a question is kept.
    plans
        Where plan files go; None: they are not asked for.
    over
        Whether the time is up: nothing more is begun then.
    """

    key: Callable[[Question], str]
    runner: Runner
    journal: Journal
    plans: Plans | None = None
    tell: Callable[[Progress], None] | None = None
    over: Callable[[], bool] | None = None
    clock: Callable[[], float] = time.monotonic
    asked: int = 0  # that were not in the journal

    def rows(self, questions: Sequence[Question]) -> list[Row]:
        """The row of each question, in their order.

        Raises
        ------
        OutputError
            The journal or a plan file cannot be written; what was kept before stays.
        """
        keys = list(map(self.key, questions))
        missing: dict[str, int] = {}
        for number, key in enumerate(keys):
            if key not in missing and not self._known(key):
                missing[key] = number
        waiting = list(missing.values())
        counted = _Count(of=len(questions), began_s=self.clock(), missing=len(waiting))
        for key in keys:
            if key not in missing:
                counted.add(self.journal.get(key))
        times = Counter(keys)
        self._tell(counted)
        for number, answered in self.runner(self._until_over((number, questions[number]) for number in waiting)):
            sha256 = answered.row["plan_sha256"]
            if self.plans is not None and sha256 is not None and answered.plan is not None:
                self.plans.add(sha256, answered.plan)  # before its row says that it is there
            self.journal.add(keys[number], answered.row)
            self.asked += 1
            counted.answered += 1
            for _ in range(times[keys[number]]):
                counted.add(answered.row)
            self._tell(counted)
        return [self.journal.get(key) or lost(*_NO_TIME) for key in keys]

    def quietly(self, questions: Sequence[Question]) -> list[Row]:
        """The same, without telling how far it is."""
        tell, self.tell = self.tell, None
        try:
            return self.rows(questions)
        finally:
            self.tell = tell

    def _until_over(self, waiting: Iterable[Asked]) -> Iterator[Asked]:
        for one in waiting:
            if self.over is not None and self.over():
                return
            yield one

    def _known(self, key: str) -> bool:
        row = self.journal.get(key)
        if row is None or self.plans is None or row["plan_sha256"] is None:
            return row is not None
        return self.plans.has(row["plan_sha256"])

    def _tell(self, counted: _Count) -> None:
        if self.tell is not None:
            self.tell(counted.told(self.clock()))


@dataclass(slots=True, kw_only=True)
class _Count:
    of: int
    began_s: float
    missing: int
    answered: int = 0
    done: int = 0
    failed: int = 0
    best_usd: float | None = None

    def add(self, row: Row | None) -> None:
        if row is None:
            return
        self.done += 1
        cost = row["cost_usd"]
        if cost is None:
            self.failed += 1
        elif self.best_usd is None or cost < self.best_usd:
            self.best_usd = cost

    def told(self, now_s: float) -> Progress:
        left_s = None
        if self.answered:
            left_s = (now_s - self.began_s) / self.answered * (self.missing - self.answered)
        return Progress(done=self.done, of=self.of, failed=self.failed, best_usd=self.best_usd, left_s=left_s)
