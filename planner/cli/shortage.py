"""What a machine may fail in under a command: standard streams, memory, open files, processes.

Streams are closed, full, or nobody reads them any more; what runs out is told in words, not as a bug.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

from planner.errors import OutputError, PlanError, StoppedError

_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)  # of the three standard streams, when they are closed


class Lost(OutputError):
    """Not all of the result reached stdout."""


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """stdout raises `Lost` for what it does not take, stderr drops it; nothing is left for python to fail at later."""
    _fill()
    before = sys.stdout, sys.stderr
    for stream in before:
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stdout = cast(Any, _Stream(before[0] or _opened(1)))
    sys.stderr = cast(Any, _Stream(before[1] or _opened(2), _forget))
    try:
        yield
        sys.stderr.flush()
    finally:
        sys.stdout, sys.stderr = before


def _fill() -> None:
    """Closed streams are opened on nothing: else the next file that is opened would be one of them.

    stdout is opened so that writing to it fails, as it does when it is closed.
    """
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free


def _opened(number: int) -> Any:
    return os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)


def _forget(_: Exception) -> None:
    """Nothing more can be said."""


def _lose(error: Exception) -> None:
    if getattr(error, "errno", None) == errno.EPIPE:  # nobody listens any more, and whoever did knows
        raise Lost from None
    reason = getattr(error, "strerror", None) or str(error)
    message = f"the result could not be written to stdout: {reason}"
    raise Lost.of("not-written", message, hint="see where stdout goes") from None


class _Stream:
    """A text stream; `fail` hears of the first failure at everything that is written from then on."""

    def __init__(self, stream: Any, fail: Callable[[Exception], None] = _lose) -> None:
        self._stream, self._fail = stream, fail
        self._failed: Exception | None = None

    def write(self, text: Any) -> int:
        """As of any stream."""
        return int(self._tried(lambda: self._stream.write(text)) or 0)

    def flush(self) -> None:
        """As of any stream."""
        self._tried(self._stream.flush)

    @property
    def buffer(self) -> Any:
        """The stream of bytes below."""
        return _Stream(self._stream.buffer, self._fail)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a stream has."""
        return getattr(self._stream, name)

    def _tried(self, do: Callable[[], Any]) -> Any:
        if self._failed is None:
            try:
                return do()
            except (OSError, ValueError) as error:  # ValueError: it was closed
                self._failed = error
                self._to_nowhere()
        return self._fail(self._failed)

    def _to_nowhere(self) -> None:
        """What still waits to be written is thrown away, or python would complain again at its end."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)


LEAST_BYTES = 512_000_000  # of address space: what the libraries map, and a scenario of ordinary size
_UNMAPPED = ("failed to map", "cannot allocate memory")  # what the loader of libraries says, in small letters


def demand_memory() -> None:
    """Refuse to begin where the libraries would not even load: one of them ends the process without a word of ours.

    Raises
    ------
    StoppedError
        The limit on address space is below what a command needs.
    """
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_BYTES:
        has, needs = limit / 1e6, LEAST_BYTES / 1e6
        raise _no_memory(f"this process may use {has:,.0f} MB of address space, and plan needs about {needs:.0f} MB")


def shortage_of(error: BaseException) -> PlanError | None:
    """The user's error behind an exception that says that something ran out; None for any other."""
    seen: BaseException | None = error
    while seen is not None:
        found = _of(seen)
        if found is not None:
            return found
        seen = seen.__cause__ or seen.__context__
    return None


def _of(error: BaseException) -> PlanError | None:
    number = error.errno if isinstance(error, OSError) else None
    unmapped = isinstance(error, (ImportError, OSError)) and any(words in str(error).lower() for words in _UNMAPPED)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or unmapped:
        return _no_memory("the memory that this process may use ran out")
    if number in (errno.EMFILE, errno.ENFILE):
        return StoppedError.of("no-files-left", "no more files can be opened", hint="raise the limit (ulimit -n)")
    if number == errno.EAGAIN or (isinstance(error, RuntimeError) and "can't start new thread" in str(error)):
        return StoppedError.of(
            "no-processes-left", "no more processes or threads can be started", hint="raise the limit (ulimit -u)"
        )
    return None


def _no_memory(message: str) -> PlanError:
    return StoppedError.of(
        "out-of-memory", message, hint="raise the limit (ulimit -v), or ask for fewer offers: hardware.allow, regions"
    )
