"""Questions from a list to rows in its order: look into the journal, have answered what is missing, keep it at once.

On this machine one is answered after the other, or in processes beside each other. A process that ends under a question
(killed, out of memory) breaks the pool of `concurrent.futures`. What was in flight is asked once more, each question
alone in a process of its own, so that the one to blame is known; the second time its row says so, and the others go on.

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
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from planner.carriers import dataclass
from planner.errors import StoppedError, UsageError
from planner.sweeps.question import Answer, Answered, Question, Row, canonical, lost

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor


Asked = tuple[int, Question]  # its number, so that an answer finds its place
Numbered = tuple[int, Answered]
KILLER = "each process that was asked it ended before it answered, two of two"
KILLER_HINT = "ask it by itself with plan solve: it may need more memory than there is"
MOST_WORKERS = 1024
BEGINNINGS = 2  # of a first process, before it is given up
BEGINNING_HINT = "a script must do its work under if __name__ == '__main__':, or take workers=1; is there memory left?"
_answer: list[Answer] = []  # of this process, once it is a worker


def checked_workers(workers: int) -> int:
    """A number of processes.

    Raises
    ------
    UsageError
        There can be none of them, or not as many.
    """
    if not isinstance(workers, int | float) or not 1 <= workers <= MOST_WORKERS or workers != int(workers):
        raise UsageError.of("out-of-range", f"{workers} workers", hint=f"a whole number from 1 to {MOST_WORKERS:,}")
    return int(workers)


def in_turn(answer: Answer, questions: Iterable[Asked]) -> Iterator[tuple[int, Answered]]:
    """Each question answered here."""
    for number, question in questions:
        yield number, answer(question)


class Processes:
    """Processes of this machine that answer questions, in the order in which they are ready.

    Parameters
    ----------
    answer
        What answers, with all that the questions share: it goes to each process once.
    workers
        How many.
    """

    def __init__(self, answer: Answer, workers: int) -> None:
        self._answer, self._workers = answer, workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, questions: Iterable[Asked]) -> Iterator[tuple[int, Answered]]:
        """The answers, each under the number of its question."""
        waiting = iter(questions)
        while suspects := (yield from self._until_one_dies(waiting, self._workers)):
            for number, question in suspects:
                if (yield from self._until_one_dies(iter([(number, question)]), 1)):
                    yield number, Answered(row=lost("worker-died", KILLER, KILLER_HINT))

    def _until_one_dies(self, waiting: Iterator[Asked], most: int) -> Generator[Numbered, None, list[Asked]]:
        """Answers until none is left or a process has died; returns what was in flight then."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        flying: dict[Future[Answered], Asked] = {}
        try:
            while True:
                # what is in flight is what is being answered: nothing waits in the pool itself
                while len(flying) < most and (asked := next(waiting, None)) is not None:
                    flying[self._submitted(asked[1])] = asked
                if not flying:
                    return []
                for done in wait(flying, return_when=FIRST_COMPLETED).done:
                    answered = done.result()
                    yield flying.pop(done)[0], answered
        except BrokenProcessPool:
            self._end()
            for done in [one for one in flying if one.done() and one.exception() is None]:
                yield flying.pop(done)[0], done.result()
            return sorted(flying.values(), key=lambda one: one[0])

    def _submitted(self, question: Question) -> Future[Answered]:
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        if self._pool is None:
            self._pool = self._begun()
        try:
            return self._pool.submit(_answered, question)
        except BrokenProcessPool as error:  # one died between two questions: this one counts as being in flight
            broken: Future[Answered] = Future()
            broken.set_exception(error)
            return broken

    def _begun(self) -> ProcessPoolExecutor:
        """Processes of which one has begun: a machine on which none does answers nothing, however often it is asked.

        Raises
        ------
        StoppedError
            None begins.
        """
        from concurrent.futures.process import BrokenProcessPool

        for _ in range(BEGINNINGS):
            pool = _pool(self._answer, self._workers)
            try:
                pool.submit(_ready).result()
            except BrokenProcessPool:
                pool.shutdown(wait=False, cancel_futures=True)
            except BaseException:
                self._pool = pool
                self._end()
                raise
            else:
                return pool
        raise StoppedError.of("no-workers", "no process that should answer begins", hint=BEGINNING_HINT)

    def _end(self) -> None:
        """End the processes at once: whatever they still do is not asked for any more."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _pool(answer: Answer, workers: int) -> ProcessPoolExecutor:
    """Processes that begin anew: what threads of this one hold when it is copied would be held for ever."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(answer,))


def _begin(answer: Answer) -> None:
    """A worker begins; it ends with whoever began it, however that ends, and leaves Ctrl-C to it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _answer[:] = [answer]


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody hears what would be answered


def _ready() -> None:
    """Nothing is asked: it is answered by a process that has begun."""


def _answered(question: Question) -> Answered:
    return _answer[0](question)


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
