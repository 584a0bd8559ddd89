"""Ctrl-C while a plan is made: heard at once, in words, although the best plan so far has yet to be written down."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

HEARD = b"interrupted: the best plan found so far is kept, if there is one; Ctrl-C again ends at once\n"


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
