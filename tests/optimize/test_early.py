"""The solver process as a copy of the planner: made where that is safe, and gone with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planner.optimize import early

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="made on Linux alone")
ASKED = """
import os, signal, sys
from planner.optimize import child, early
early.start_early(1)
from planner.optimize import process
solvers = process.solvers()
one = child.current()
print(type(one.process).__name__, one.process.pid, one.folder, one.usable, ",".join(solvers))
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_copy_answers_and_goes_with_its_planner(tmp_path: Path, end: str) -> None:
    held = {**os.environ, "TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASKED, end], env=held, capture_output=True, text=True, timeout=120, check=False
    )
    kind, pid, folder, usable, solvers = done.stdout.split()
    assert (kind, usable) == ("Copy", "True"), done.stderr
    assert "highs" in solvers
    for _ in range(200):  # one whose planner was killed sees the end of its input
        if not Path(folder).exists() and not _runs(int(pid)):
            break
        threading.Event().wait(0.05)
    assert not Path(folder).exists()
    assert not _runs(int(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_process_with_threads_is_not_copied() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    assert not early.alone()
    done.set()
    other.join()


def test_copy_tells_how_it_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        copy = early.Copy.__new__(early.Copy)
        copy.pid, copy.returncode = other.pid, None
        assert copy.poll() is None
        copy.kill()
        assert copy.wait() == copy.poll() == copy.returncode == -signal.SIGKILL
        gone = early.Copy.__new__(early.Copy)
        gone.pid, gone.returncode = other.pid, None
        assert gone.poll() == 0  # somebody else has asked
        other.returncode = copy.returncode
