"""Questions from a list to rows in its order: look into the journal, have answered what is missing, keep it at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from planner.carriers import dataclass
from planner.sweeps.journal import Journal
from planner.sweeps.question import Answered, Question, Row, lost

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
