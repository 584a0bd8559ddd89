"""The solver process, started before there is a question: where nothing else runs yet, as a copy of this process.

Numpy and HiGHS, which both need, are imported once then; the second time was a twelfth of a small question. A copy of
a process with threads may hang, so it is made on Linux alone, which can tell that there are none, whether python's or a
library's. Everything else about it is as `child` has it.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

from planner.optimize import child


def start_early(threads: int) -> None:
    """Start the process before there is a question; that it cannot be started is told when there is one.

    Parameters
    ----------
    threads
        Of HiGHS.
    """
    with contextlib.suppress(OSError):
        child.current(threads, Copy if alone() else None)


def alone() -> bool:
    """Whether this process has one thread, those of libraries counted, and all of its standard streams."""
    try:
        threads = sum(1 for _ in Path("/proc/self/task").iterdir())
        for number in range(3):  # the pipes to the process would take the place of one that is closed
            os.fstat(number)
    except OSError:
        return False
    return threads == 1


class Copy:
    """A copy of this process that answers questions; raises `OSError` when there is no room for it."""

    def __init__(self, folder: Path, errors: IO[bytes]) -> None:
        from planner.optimize import worker

        with contextlib.suppress(ImportError):  # told when it is asked for
            import highspy  # noqa: F401
        self.returncode: int | None = None
        (inbox, outside), (answers, outbox) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            _become((inbox, outbox, errors.fileno()), folder, worker.main)
        os.close(inbox)
        os.close(outbox)
        self.stdin, self.stdout = io.FileIO(outside, "w"), io.FileIO(answers, "r")

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        return self._ended(os.WNOHANG)

    def wait(self) -> int:
        """How it ended, once it has."""
        return self._ended(0) or 0

    def kill(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGKILL)

    def _ended(self, how: int) -> int | None:
        if self.returncode is None:
            try:
                which, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else has asked
                which, status = self.pid, 0
            if which:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _become(streams: tuple[int, int, int], folder: Path, work: Callable[[], None]) -> NoReturn:
    """Work in a session and a folder of its own, with nothing open of the planner's, and never return to it."""
    try:
        os.setsid()
        for number, own in enumerate(streams):
            os.dup2(own, number)
        for number in [int(one.name) for one in Path("/proc/self/fd").iterdir() if int(one.name) > 2]:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.close(number)
        os.environ.update(child.places(folder))
        tempfile.tempdir = None
        os.chdir(folder)
        gc.enable()
        work()
    except BaseException:
        traceback.print_exc(file=io.TextIOWrapper(io.FileIO(2, "w"), write_through=True))
    finally:
        os._exit(1)
