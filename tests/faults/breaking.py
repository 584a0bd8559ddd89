"""Start a run, break it off at some moment, and see what is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WAIT_S, WHOLE_S = 30.0, 600.0  # for what should take one second; for a run that is left alone


@dataclass(frozen=True, kw_only=True)
class Broken:
    """What became of a run."""

    code: int
    out: str
    err: str
    answered_s: float  # from the signal to the end, or to the start of another solver process; inf = never
    processes: int  # left
    files: int  # left

    @property
    def answer(self) -> dict[str, Any]:
        """The last line that it printed."""
        lines = self.out.splitlines()
        return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


def break_off(command: list[str], how: str, after_s: float, folder: Path, *, ready: str = "go") -> Broken:
    """Run a command, send it a signal so long after it said that it is ready, and clean up what should not be there.

    Parameters
    ----------
    how
        ``process`` or ``group``: Ctrl-C; ``twice``: two of them; ``worker``: the solver process is killed;
        ``planner``: the planner is killed; ``nothing``: it is left alone.
    ready
        First word that the run prints when it is ready; empty: it is ready when its solver process has been started.
    folder
        Working folder; its `tmp` is where the run puts its temporary files.
    """
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    run = subprocess.Popen(
        command, cwd=folder, env=own, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out = run.stdout.readline() if ready else ""  # type: ignore[union-attr]
        while not ready and run.poll() is None and not any(True for _ in with_temporary(temporary)):
            time.sleep(0.01)
        time.sleep(after_s)
        began, wait_s = time.monotonic(), WHOLE_S if how == "nothing" else WAIT_S
        send(run, how, temporary)
        if how == "worker":
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(timeout=1.5)
            send(run, "process", temporary)
        answered_s = float("inf")
        with contextlib.suppress(subprocess.TimeoutExpired):
            rest, err = run.communicate(timeout=wait_s)
            answered_s = time.monotonic() - began
        if answered_s > wait_s:
            rest, err = "", "never ended"
        told = rest.splitlines() if how == "worker" else []
        starts = [float(line.split()[1]) for line in told if line.startswith("started ")]
        answered_s = min([answered_s, *(moment - began for moment in starts if moment > began)])
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    left = list(left_over(temporary, patience_s=3.0 if how in ("planner", "twice") else 0.0))
    files = list(temporary.iterdir())
    for number in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return Broken(
        code=run.returncode, out=out + rest, err=err, answered_s=answered_s, processes=len(left), files=len(files)
    )


def send(run: subprocess.Popen[str], how: str, temporary: Path) -> None:
    """One of the ways to break a run off; one that has ended by itself gets nothing."""
    with contextlib.suppress(ProcessLookupError):
        if how == "worker":
            for number in with_temporary(temporary):
                if os.getsid(number) == number:
                    os.kill(number, signal.SIGKILL)
        elif how == "planner":
            run.kill()
        elif how == "nothing":
            return
        elif how == "group":
            os.killpg(run.pid, signal.SIGINT)
        else:
            run.send_signal(signal.SIGINT)
            if how == "twice":
                time.sleep(0.05)
                run.send_signal(signal.SIGINT)


def with_temporary(temporary: Path) -> Iterator[int]:
    """Solver processes, and what they run: all that were started with, or work in, a folder inside this one."""
    wanted, inside = f"TMPDIR={temporary}/".encode(), f"{temporary}/"
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                started = any(name.startswith(wanted) for name in (place / "environ").read_bytes().split(b"\0"))
                if started or os.readlink(place / "cwd").startswith(inside):  # noqa: PTH115 - it may be gone by now
                    yield int(place.name)


def left_over(temporary: Path, *, patience_s: float) -> Iterator[int]:
    """Processes of a run that is over."""
    stop = time.monotonic() + patience_s
    while any(True for _ in with_temporary(temporary)) and time.monotonic() < stop:
        time.sleep(0.05)
    yield from with_temporary(temporary)


def driver(solver: str, *more: str) -> list[str]:
    """The command that solves the instance that takes a while."""
    return [sys.executable, "-m", "tests.faults.interrupted", solver, *more]
