"""The moment at which an answer is due: set once, when a command begins, and handed down to all that works for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from planner.carriers import dataclass

PARTING_S, PARTING_SHARE = 1.0, 0.1  # kept back to check and write down what was found
CERTIFYING_S = 0.5  # beyond a deadline: without it nothing is known of how much less any plan could cost
CERTIFYING_SHARE = 0.25  # of what is kept back, if that is longer
MOST_SHARE = 0.4  # of all of it, however much there is to be written down and however busy the machine
MOST_OF_REST = 0.5  # of the time that is left by then
MORE_TIME = "give it more time, or ask for fewer offers"
_CLOCKS: ContextVar[tuple[Callable[[Deadline], None], ...]] = ContextVar("clocks", default=())
_PARTING: ContextVar[bool] = ContextVar("parting", default=False)


class TimeIsUp(KeyboardInterrupt):
    """Raised in work that does not come to an end by itself; what Ctrl-C keeps, this keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A time limit that runs; a second of it, or a tenth, is kept back for what was found: more on a busy machine.

    Parameters
    ----------
    limit_s
        Time that was given.  [s]
    began_s, due_s
        When work began and when it has to end, by the clock.  [s]
    clock
        Seconds that only grow; a test puts its own here.
    """

    limit_s: float
    began_s: float
    due_s: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(
        cls, limit_s: float, clock: Callable[[], float] = time.monotonic, *, began_s: float | None = None
    ) -> Deadline:
        """So long from now on, or from when it began.

        Parameters
        ----------
        limit_s
            Time that is given, what is kept back at its end included.  [s]
        clock
            Seconds that only grow; a test puts its own here.
        began_s
            When work began, by the clock; None: now.  [s]
        """
        began_s = clock() if began_s is None else began_s
        due_s = began_s + limit_s - min(PARTING_S, PARTING_SHARE * limit_s)
        return cls(limit_s=limit_s, began_s=began_s, due_s=due_s, clock=clock)

    @classmethod
    def of(cls, limit: float | Deadline | None) -> Deadline | None:
        """A limit that runs already as it is, seconds from now on."""
        return limit if limit is None or isinstance(limit, Deadline) else cls.after(limit)

    def left_s(self, beyond_s: float = 0.0) -> float:
        """Time for work that is left, or until so long beyond its end.  [s]"""
        return max(self.due_s + beyond_s - self.clock(), 0.0)

    def passed(self) -> bool:
        """Whether the time for work is up."""
        return self.left_s() <= 0.0

    @property
    def certifying_s(self) -> float:
        """Time after its end for a certificate: a part of what is kept back for a large plan.  [s]"""
        return max(CERTIFYING_S, CERTIFYING_SHARE * (self.began_s + self.limit_s - self.due_s))

    def spent(self) -> float:
        """Share of the time for work that is gone: 1 and more when it is up, without end where there was none."""
        given_s = self.due_s - self.began_s
        return (self.clock() - self.began_s) / given_s if given_s > 0 else math.inf

    def slowed(self, by: float) -> Deadline:
        """With so many times as much kept back: there are several plans, or work takes long on a busy machine."""
        least_s, left_s = min(PARTING_S, PARTING_SHARE * self.limit_s), self.began_s + self.limit_s - self.clock()
        kept_back_s = max(min(by * least_s, MOST_SHARE * self.limit_s, MOST_OF_REST * left_s), least_s)
        return replace(self, due_s=self.began_s + self.limit_s - kept_back_s)

    def portion(self, share: float) -> Deadline:
        """One of its own, for a share of the time that is left."""
        now = self.clock()
        return replace(self, began_s=now, due_s=now + share * max(self.due_s - now, 0.0))


def left_s(limit: float | Deadline | None) -> float | None:
    """Time that a limit leaves: its own seconds, what is left until a deadline, or None.  [s]"""
    return limit.left_s() if isinstance(limit, Deadline) else limit


def is_up(limit: float | Deadline | None) -> bool:
    """Whether a deadline has passed; seconds that were not begun never are up."""
    return isinstance(limit, Deadline) and limit.passed()


def due(deadline: Deadline) -> Deadline:
    """A deadline that holds from now on; what breaks work off at one is told of it."""
    for tell in _CLOCKS.get():
        tell(deadline)
    return deadline


@contextmanager
def telling(tell: Callable[[Deadline], None]) -> Iterator[None]:
    """Deadlines that hold from then on are told, as one that is sooner since there is more to be written down.

    Parameters
    ----------
    tell
        Is called with each.
    """
    before = _CLOCKS.set((*_CLOCKS.get(), tell))
    try:
        yield
    finally:
        _CLOCKS.reset(before)


@contextmanager
def parting() -> Iterator[None]:
    """What was found is checked and written down: a time limit that rings meanwhile is heard only at its very end."""
    before = _PARTING.set(True)
    try:
        yield
    finally:
        _PARTING.reset(before)


def is_parting() -> bool:
    """Whether what was found is being checked or written down."""
    return _PARTING.get()
