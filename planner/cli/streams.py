"""Standard streams that are closed, full, or that nobody reads any more.

What was asked for is the result on stdout: when not all of it could be written, the command says so and exits
with the code of an output that was not written. Remarks on stderr are worth less than the result: when they
cannot be written they are dropped, and the exit code stays what it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

from planner.errors import OutputError

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
