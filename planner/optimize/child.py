"""The life and death of the solver process, and of all that it starts and writes.

It leads a session of its own, so that a Ctrl-C of the terminal does not reach it and one signal ends
it together with the solvers that it started. It works in a folder of its own, which goes with it.
When its planner dies without a word it sees the end of its input and does the same for itself.

Nothing heavy is imported here: the process can be started before the planner has read a scenario, so that both
import at the same time what only one of them needs (`early`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

PREFIX = "plan-solver-"  # of its folder
HEAD = 8  # bytes of the length before each frame (`wire`)
LONGEST = 1 << 34  # of a frame; what claims more is not one of ours
SHORT = 16384  # bytes that go into an empty pipe at once
STALE_S = 86400.0  # age at which the folder of a planner that is gone is removed by another one
SWEEP_S = 2.0  # for a solver that is being killed to stop writing
_HELD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGALRM") if hasattr(signal, name))
BOOT = "import sys; sys.path[:] = sys.argv[1:]; from planner.optimize.worker import main; main()"


def command() -> list[str]:
    """How the process is started: with our own interpreter and our own places to import from."""
    places = [str(Path(place or ".").absolute()) for place in sys.path]
    return [sys.executable, "-P", "-c", BOOT, *places]


def most_threads() -> int:
    """Threads that can run at once: more of them only wait for each other, and thousands bring a machine to a halt."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Child:
    """One solver process. Raises `OSError` when it cannot be started."""

    ready: bool  # has imported all that it needs
    solvers: tuple[str, ...]  # that it can run, once it is ready

    def __init__(self, threads: int, start: Start | None = None) -> None:
        self.threads, self.planner = threads, os.getpid()
        self.ready, self.solvers = False, ()
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._letters: queue.SimpleQueue[Sequence[bytes | memoryview] | None] = queue.SimpleQueue()
        with undisturbed():
            sweep_stale()
            self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{self.planner}-"))
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            try:
                self.process = (start or _started)(self.folder, self._errors)
            except BaseException:
                self._sweep()
                raise
        for work in (self._listen, self._write):
            threading.Thread(target=work, daemon=True).start()

    @property
    def usable(self) -> bool:
        """Whether it runs, and is ours: a copy of the planner must not talk on the same pipes."""
        return self.planner == os.getpid() and self.process.poll() is None

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        """Send a frame in parts; never waits, whatever the process does."""
        if sum(map(len, parts)) > SHORT:
            self._letters.put(parts)
        else:
            self._put([b"".join(parts)])

    def receive(self, until: float | None = None) -> bytes:
        """The next frame, without its length.

        Raises
        ------
        TimeoutError
            Nothing came until then (`time.monotonic`).
        EOFError
            The process is gone, in the middle of a frame perhaps.
        ValueError
            It sent what cannot be a frame.
        """
        try:
            frame = self._frames.get(timeout=None if until is None else max(until - time.monotonic(), 0.0))
        except queue.Empty:
            raise TimeoutError from None
        if frame:
            return frame
        self._frames.put(frame)  # and so it stays
        if frame is None:
            raise EOFError
        raise ValueError("not a frame")

    def interrupt(self) -> None:
        """Ask what it runs to come to an end: CBC then writes down the best that it has."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it with all that it started, and remove what they wrote."""
        if self.planner != os.getpid():
            return
        with undisturbed():
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            self.process.wait()
            self._letters.put(None)
            for pipe in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
            self._sweep()

    def last_words(self) -> str:
        """How it ended and the end of what it complained of; after `kill`."""
        code = self.process.returncode or 0
        how = f"exit status {code}" if code >= 0 else f"killed by signal {-code}"
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - 2000, 0))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"the solver process ended ({how})" + (f": {lines[-1][:200]}" if lines else "")

    def forget(self) -> None:
        """Close what it complained into: nobody asks for its last words any more."""
        if self.planner == os.getpid():
            self._errors.close()

    def _signal(self, number: int) -> None:
        # the number of a session is not given away for as long as it has a member, nor its leader's before `wait`
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, number)
            else:
                self.process.kill()

    def _sweep(self) -> None:
        stop = time.monotonic() + SWEEP_S
        while self.folder.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            if time.monotonic() > stop:
                break

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while frame := _read(self.process.stdout):
            self._frames.put(frame)
        self._frames.put(frame)

    def _write(self) -> None:
        while (letter := self._letters.get()) is not None:
            self._put(letter)

    def _put(self, parts: Sequence[bytes | memoryview]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it is gone: the listener says so
            write_all(self.process.stdin, parts)


class Process(Protocol):
    """What is used here of `subprocess.Popen`."""

    pid: int
    stdin: Any
    stdout: Any
    returncode: Any

    def poll(self) -> int | None:
        """How it ended; None while it runs."""

    def wait(self) -> int:
        """How it ended, once it has."""

    def kill(self) -> None:
        """End it."""


Start = Callable[[Path, IO[bytes]], Process]  # of the folder that it works in, and of what it complains into


def _started(folder: Path, errors: IO[bytes]) -> Process:
    return subprocess.Popen(
        command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        bufsize=0,
        cwd=folder,
        env={**os.environ, **places(folder)},
        start_new_session=True,
    )


def places(folder: Path) -> dict[str, str]:
    """Where temporary files of the process go, as variables of its surroundings."""
    return dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder))


def _read(pipe: IO[bytes]) -> bytes | None:
    """The next frame; None at the end, nothing when it is no frame."""
    head = exactly(pipe, HEAD)
    length = int.from_bytes(head, "big")
    if len(head) < HEAD:
        return None
    if not 0 < length < LONGEST:
        return b""
    frame = exactly(pipe, length)
    return frame if len(frame) == length else None


def write_all(pipe: IO[bytes], parts: Sequence[bytes | memoryview]) -> None:
    """All parts to an unbuffered pipe, which takes only as much at once as it likes."""
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[pipe.write(rest) :]


def exactly(pipe: IO[bytes], count: int) -> bytes:
    """So many bytes of an unbuffered pipe, fewer only at its end."""
    parts, left = [], count
    while left:
        try:
            part = pipe.read(min(left, 1 << 20))
        except (OSError, ValueError):  # closed under our hands
            break
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@contextlib.contextmanager
def undisturbed(*, heard: bool = True) -> Iterator[None]:
    """Ctrl-C and an alarm wait until the block is done: what is half started or half cleared away would be left behind.

    `heard` = it comes through then; else it is forgotten.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: caught.append(number)) for number in _HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default if handler is None else handler)
        for number in caught if heard else ():
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, None)


def sweep_stale() -> None:
    """Remove folders of planners that were killed together with their solver process, a day after the last use.

    The age is for planners elsewhere that share the place for temporary files, and whose numbers mean nothing here.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if number.isdigit() and time.time() - folder.stat().st_mtime > STALE_S and not _runs(int(number)):
                shutil.rmtree(folder, ignore_errors=True)


def _runs(number: int) -> bool:
    if os.name == "nt":  # where this signal is no question
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_current: list[Child] = []  # one at most


def current(threads: int | None = None, start: Start | None = None) -> Child:
    """The solver process, started when there is none or it has another number of threads (None: any will do).

    HiGHS answers nothing when it is asked with another number of threads in the same process.

    Parameters
    ----------
    threads
        Of HiGHS.
    start
        Starts it; None: anew, as any program.
    """
    if _current and (threads not in (None, _current[0].threads) or not _current[0].usable):
        end()
    if not _current:
        with undisturbed():
            _current.append(Child(threads or 1, start))
    return _current[0]


def end() -> None:
    """End the solver process, if there is one."""
    while _current:
        _current[0].kill()
        _current.pop().forget()


def _leave() -> None:
    with undisturbed(heard=False):  # there is nothing left to interrupt
        end()


atexit.register(_leave)
