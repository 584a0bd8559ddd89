"""Ctrl-C and the time limit while a plan is made: what breaks off work that does not end by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from planner.deadline import MORE_TIME, Deadline, TimeIsUp, is_parting, telling
from planner.errors import StoppedError

OVERTIME_S = 0.2  # after its deadline, and the time for a certificate, that work has to come to an end by itself
LAST_S = 1.0  # after the time limit: then what is made of what was found is broken off too
AGAIN_S = 0.1  # between two looks at whether what may not be broken off is done
HEARD = b"interrupted: the best plan found so far is kept, if there is one; Ctrl-C again ends at once\n"


@contextlib.contextmanager
def on_time(deadline: Deadline | None) -> Iterator[None]:
    """Work that goes on beyond its deadline is broken off, wherever it is; so is, later, what comes after it.

    Raises
    ------
    StoppedError
        It was, and there was nothing to keep.
    """
    alarm = getattr(signal, "SIGALRM", None)
    if deadline is None:
        yield
        return
    here = alarm is not None and threading.current_thread() is threading.main_thread()

    last_s, rung = deadline.began_s + deadline.limit_s + LAST_S, False

    def ring(number: int, frame: object) -> None:
        nonlocal rung
        left_s = last_s - deadline.clock()
        spared = left_s > 0 and (rung or is_parting())
        signal.setitimer(signal.ITIMER_REAL, min(left_s, AGAIN_S) if spared else max(left_s, 5 * AGAIN_S))
        if not spared:
            rung = True
            raise TimeIsUp

    def wind(due: Deadline) -> None:
        own = (due.began_s, due.limit_s) == (deadline.began_s, deadline.limit_s)
        if here and own and not rung:
            signal.setitimer(signal.ITIMER_REAL, max(due.left_s(due.certifying_s + OVERTIME_S), 0.001))

    before = signal.signal(alarm, ring) if here and alarm else None
    try:
        wind(deadline)
        with telling(wind):
            yield
    except TimeIsUp:
        if here:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        from planner.units import format_duration

        message = f"the time limit of {format_duration(deadline.limit_s)} ended the command before it had an answer"
        raise StoppedError.of("time-limit", message, hint=MORE_TIME) from None
    finally:
        if here and alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(alarm, before or signal.SIG_DFL)


@contextlib.contextmanager
def answered(*, quiet: bool) -> Iterator[None]:
    """The first Ctrl-C in the block is answered on stderr, then raised as ever; the next ones are only raised."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not quiet:
            with contextlib.suppress(OSError):
                os.write(2, HEARD)  # sys.stderr may be in the middle of a line
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
