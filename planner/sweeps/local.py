"""Questions answered on this machine: one after the other, or in processes beside each other.

A process that ends under a question (killed, out of memory) breaks the pool of `concurrent.futures`. What was in
flight is asked once more, each question alone in a process of its own, so that the one to blame is known; the second
time its row says so, and the others go on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from planner.errors import StoppedError, UsageError
from planner.sweeps.question import Answer, Answered, Question, lost

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
