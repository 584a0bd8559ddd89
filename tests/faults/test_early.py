"""The solver process as a copy of the planner: when it is one, what it has open, and that it answers as any other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a copy is made where threads can be counted")

# each prints what kind of process answers
BEGIN = "import os, sys, json, time, threading, pathlib\nfrom planner.optimize import child, early, process\n"
STARTED = "early.start_early(1)\nkind = type(child.current(1).process).__name__\n"
SOLVED = """
from tests.optimize.test_solver_endings import BEST, QUESTION
from planner.optimize.solve import optimize
found = optimize(QUESTION).units.tolist()
folder = child.current(1).folder
child.end()
print(json.dumps({"kind": kind, "right": found == BEST, "left": folder.exists()}))
"""


def said(code: str, **more: str) -> dict[str, object]:
    command = [sys.executable, "-c", BEGIN + code]
    if more:
        command = ["sh", "-c", f'exec "$@" {more["closed"]}', "sh", *command]
    own = {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, timeout=100, check=True)
    found: dict[str, object] = json.loads(run.stdout)
    return found


def test_a_planner_of_one_thread_is_copied() -> None:
    assert said(STARTED + SOLVED) == {"kind": "Copy", "right": True, "left": False}


def test_one_that_has_another_thread_is_not() -> None:
    """A lock that the other thread holds would be held for ever in a copy."""
    waits = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    assert said(waits + STARTED + SOLVED) == {"kind": "Popen", "right": True, "left": False}


def test_one_whose_input_is_closed_is_not() -> None:
    """A pipe to the copy would be its input, and be lost when the pipes take their places."""
    assert said(STARTED + SOLVED, closed="<&-") == {"kind": "Popen", "right": True, "left": False}


def test_nothing_of_the_planner_is_open_in_the_copy() -> None:
    """Who waits for the end of what the planner writes would wait for the copy, too."""
    opened = "secret = open('/etc/hostname')\nos.set_inheritable(secret.fileno(), True)\n"
    look = """
process.solvers()
number = child.current(1).process.pid
there = [os.readlink(one) for one in pathlib.Path(f"/proc/{number}/fd").iterdir()]
own = [os.readlink(f"/proc/self/fd/{one}") for one in (1, 2, secret.fileno())]
print(json.dumps({"kind": kind, "shared": sorted(set(there) & set(own))}))
"""
    assert said(opened + STARTED + look) == {"kind": "Copy", "shared": []}


def test_a_copy_that_fails_says_why() -> None:
    breaks = "from planner.optimize import worker\nworker.main = lambda: 1 / 0\n"
    look = """
here = child.Child(1, early.Copy)
try:
    here.receive(time.monotonic() + 60)
except EOFError:
    here.kill()
    print(json.dumps({"words": here.last_words()}))
"""
    words = said(breaks + look)["words"]
    assert "exit status 1" in str(words)
    assert "ZeroDivisionError" in str(words)
