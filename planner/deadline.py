"""The moment at which an answer is due: set once, when a command begins, and handed down to all that works for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

PARTING_S, PARTING_SHARE = 1.0, 0.1  # kept back to check and write down what was found


class TimeIsUp(KeyboardInterrupt):
    """Raised in work that does not come to an end by itself; what Ctrl-C keeps, this keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A time limit that runs; a second of it, or a tenth, is kept back for what was found.

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
    def after(cls, limit_s: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """So long from now on."""
        now = clock()
        due_s = now + limit_s - min(PARTING_S, PARTING_SHARE * limit_s)
        return cls(limit_s=limit_s, began_s=now, due_s=due_s, clock=clock)

    @classmethod
    def of(cls, limit: float | Deadline | None) -> Deadline | None:
        """A limit that runs already as it is, seconds from now on."""
        return limit if limit is None or isinstance(limit, Deadline) else cls.after(limit)

    def left_s(self) -> float:
        """Time for work that is left.  [s]"""
        return max(self.due_s - self.clock(), 0.0)

    def passed(self) -> bool:
        """Whether the time for work is up."""
        return self.left_s() <= 0.0

    def spent(self) -> float:
        """Share of the time for work that is gone: 1 and more when it is up."""
        given_s = self.due_s - self.began_s
        return (self.clock() - self.began_s) / given_s if given_s > 0 else 1.0

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
