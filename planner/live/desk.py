"""Where questions are answered: one at a time, in the main thread, each given up when nobody waits for it any more.

A question first has `FIRST_S` seconds; what is proven by then is the answer. Else the best plan so far is told with
its gap, and the question is asked again without a limit. What listing and estimates found is kept for the next one.
That nothing meets every limit is an answer; ways out, which take several times as long, are told after it.

Who asks sits in other threads. A question that runs is broken off by a signal to the main thread, which Ctrl-C is
too: in Python nothing else breaks off work that never looks up. It is raised as `Dropped`, which nobody catches that
catches Ctrl-C to keep what was found: what is dropped leaves nothing.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from planner.answers import Plan
from planner.api.frontiers import tradeoffs
from planner.api.sessions import Session
from planner.carriers import dataclass
from planner.deadline import Deadline, TimeIsUp
from planner.errors import PlanError, StoppedError
from planner.live.knobs import Changes, settings_of
from planner.optimize import early
from planner.plan.model.frontier_document import Tradeoff
from planner.plan.model.plan import PlanDocument
from planner.plan.proof import is_proven
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario

FIRST_S = 2.0
AGAIN_S = 0.1  # between two attempts to break off a question
MOST_KEPT = 16  # answers that are there at once when they are asked for again
Settings = tuple[str, ...]
OnTime = Callable[[Deadline], contextlib.AbstractContextManager[None]]


class Dropped(BaseException):
    """Nobody waits for what is being worked out."""


BROKEN_OFF = (Dropped, TimeIsUp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A plan document that was verified, and how far it goes."""

    settings: Settings
    document: PlanDocument
    elapsed_s: float
    last: bool  # no better one follows
    looking: bool = False  # for ways out

    @property
    def has_plan(self) -> bool:
        """Whether there is anything to rent."""
        return self.document["summary"]["cost_microusd"] is not None

    @property
    def proven(self) -> bool:
        """Whether its certificate shows that nothing is better, or that there is nothing."""
        return is_proven(self.document)


class Listener(Protocol):
    """Who asked; each is told in the order of these, from another thread than its own."""

    def answered(self, answer: Answer) -> None:
        """The best plan so far, or the answer."""

    def traded(self, answer: Answer, tradeoffs: list[Tradeoff]) -> None:
        """What each training job alone would cost at other finishes, after the answer."""

    def mended(self, answer: Answer) -> None:
        """The answer that nothing meets every limit again, with its ways out."""

    def refused(self, error: PlanError) -> None:
        """What was asked cannot be read, or not be solved."""

    def failed(self, error: Exception) -> None:
        """A bug."""

    def done(self) -> None:
        """Nothing follows."""


@dataclass(slots=True, kw_only=True)
class Question:
    """What is asked: changes of the scenario, by a listener that may lose interest."""

    changes: Changes
    listener: Listener
    dropped: bool = False


class Desk:
    """One session and the questions that it is asked.

    Parameters
    ----------
    session
        Without a time limit; its ways are listed.
    on_time
        What breaks off work that goes on beyond a deadline (`planner.cli.interrupts.on_time`).
    """

    def __init__(self, session: Session, on_time: OnTime) -> None:
        self.start, self._on_time = session, on_time
        self._last = session
        self._answers: OrderedDict[Settings, Answer] = OrderedDict()
        self._questions: queue.SimpleQueue[Question] = queue.SimpleQueue()
        self._current: Question | None = None
        self._dropping = threading.Event()
        self._ended = False

    # ---- from any thread

    def put(self, question: Question) -> None:
        """Have a question answered after those that were put before."""
        self._questions.put(question)

    def drop(self, question: Question) -> None:
        """Nobody waits for the answer any more."""
        question.dropped = True
        if self._current is question:
            threading.Thread(target=self._break_off, args=(question,), daemon=True).start()

    def _break_off(self, question: Question) -> None:
        """Have `Dropped` raised where a question is worked out; again where that was lost, as in a destructor."""
        while self._current is question:
            self._dropping.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(AGAIN_S)

    def known(self, settings: Settings) -> Answer | None:
        """An answer that was given before, if it is still kept."""
        return self._answers.get(settings)

    # ---- in the main thread

    def run(self) -> None:
        """Answer until Ctrl-C, or a request to end."""
        self._ended = False
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        told, sys.unraisablehook = sys.unraisablehook, self._unraised
        try:
            while not self._ended:
                with contextlib.suppress(*BROKEN_OFF):
                    self._current = None
                    self._serve(self._questions.get())
        finally:
            sys.unraisablehook = told
            for number, handler in before.items():
                signal.signal(number, handler)

    @staticmethod
    def _unraised(lost: Any) -> None:
        """What a destructor could not raise; that work was to be broken off is no news."""
        if not issubclass(lost.exc_type, BROKEN_OFF):
            sys.__unraisablehook__(lost)

    def _hear(self, number: int, frame: object) -> None:
        if number == signal.SIGINT and self._dropping.is_set():
            self._dropping.clear()
            if self._current is not None and self._current.dropped:
                raise Dropped
            return  # it was answered in the meantime
        self._ended = True
        raise Dropped

    def _serve(self, question: Question) -> None:
        self._current = question
        try:
            if not question.dropped:
                for tell in self._told(question):
                    tell()
        except PlanError as error:
            question.listener.refused(error)
        except Exception as error:
            question.listener.failed(error)
        finally:
            self._current = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)  # of a limit that was dropped while it was taken away
            question.listener.done()

    def _told(self, question: Question) -> Iterator[Callable[[], None]]:
        """What to tell a listener, one after the other."""
        listener = question.listener
        settings = settings_of(self.start.scenario, question.changes)
        scenario = with_settings(self.start.scenario, settings) if settings else self.start.scenario
        answer, tell = None, listener.answered
        for answer in self._answered(settings, scenario):
            yield partial(tell, answer)
            if answer.last:
                tell = listener.mended
        if answer is not None and answer.has_plan and scenario.training:
            yield partial(listener.traded, answer, self._tradeoffs(scenario, answer))

    def _answered(self, settings: Settings, scenario: Scenario) -> Iterator[Answer]:
        """The best plan so far where the answer takes long, then the answer; that there is none again with ways out."""
        kept = self._answers.get(settings)
        if kept is not None:
            yield kept
            return
        early.start_early(self.start.options["threads"])  # it may have gone with a question that was dropped
        began_s, first = time.monotonic(), Deadline.after(FIRST_S)
        session, found = self._last, None

        def answer(document: PlanDocument, *, last: bool, looking: bool = False) -> Answer:
            took_s = time.monotonic() - began_s
            return Answer(settings=settings, document=document, elapsed_s=took_s, last=last, looking=looking)

        with contextlib.suppress(StoppedError), self._on_time(first):
            session = self._asked(first, session).on(scenario)
            found = session.solve(ways_out=False).document
        if found is None or not is_proven(found) or first.passed():
            sofar = found and answer(found, last=False, looking=bool(found["infeasible"]))
            if sofar and (sofar.has_plan or sofar.proven):
                yield sofar
            session = self._asked(None, session).on(scenario)
            found = session.solve(ways_out=False).document
        if found["infeasible"]:
            self._last = session
            yield answer(found, last=True, looking=True)
            session = self._asked(None, session).on(scenario)
            found = session.solve().document
        yield self._keep(answer(found, last=True), session)

    def _asked(self, limit: Deadline | None, known: Session) -> Session:
        """A session with the ways of a known one, asked as the first was but for the time."""
        options: Mapping[str, Any] = {**self.start.options, "time_limit_s": limit}
        return Session(
            known.scenario,
            known.catalog,
            allow_suspect=self.start.allow_suspect,
            tie_tolerance=self.start.tie_tolerance,
            candidates=known.candidates,
            **options,
        )

    def _keep(self, answer: Answer, session: Session) -> Answer:
        self._last = session
        self._answers[answer.settings] = answer
        while len(self._answers) > MOST_KEPT:
            self._answers.pop(next(settings for settings in self._answers if settings))  # never that of the start
        return answer

    def _tradeoffs(self, scenario: Scenario, answer: Answer) -> list[Tradeoff]:
        plan = Plan(document=answer.document)
        return tradeoffs(scenario, self._last.catalog, plan=plan, allow_suspect=self.start.allow_suspect)
