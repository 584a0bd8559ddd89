"""The solver process: fourteen endings through the real boundary, and nothing left behind however it ends."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.optimize import child, process, pulp_adapter
from planner.optimize.adapter import PulpAdapter
from planner.optimize.answer import Kept
from planner.optimize.build import build
from planner.optimize.scope import scope_of
from planner.optimize.solve import optimize
from planner.optimize.status import Ending, Options
from planner.optimize.wire import HEAD, arrays_of, header_of, model_of, parts_of, unpacked
from tests.faults import stand_in
from tests.faults.breaking import break_off, driver
from tests.faults.hard import hard
from tests.optimize.test_solver_endings import BEST, QUESTION
from tests.tiers import sampled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sessions and signals are those of POSIX")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No solver process from before, none for those after."""
    child.end()
    yield
    child.end()


Behaves = Callable[..., None]


def packed(header: dict[str, Any], **arrays: Any) -> bytes:
    """One frame, its length in front, as a whole."""
    return b"".join(parts_of(header, **arrays))


@pytest.fixture
def behaves(monkeypatch: pytest.MonkeyPatch) -> Behaves:
    """`behaves("hang", "alone")`: solver processes misbehave from now on, and nothing but they find plans."""

    def stand(*arguments: str) -> None:
        monkeypatch.setattr(child, "BOOT", stand_in.boot(*arguments))
        monkeypatch.setattr("planner.optimize.solve.greedy_plan", lambda scope, **_: None, raising=False)
        process.solvers()

    return stand


# way: status, stopped by, what is said of it, without another solver
ALONE = {
    "optimal": ("optimal", "", ""),
    "limit with an incumbent": ("feasible", "time-limit", "time limit"),
    "limit without an incumbent": ("stopped", "time-limit", "time limit"),
    "infeasible": ("infeasible", "", ""),
    "infeasible or unbounded": ("infeasible", "", ""),
    "unbounded": ("failed", "solver-failure", "(unbounded) was refused"),
    "invalid point": ("failed", "solver-failure", "a: not 1 jobs"),
    "point that is not whole": ("failed", "solver-failure", "not whole"),
    "NaN": ("failed", "solver-failure", "not numbers"),
    "empty": ("failed", "solver-failure", "no point"),
    "wrong objective": ("failed", "solver-failure", "reports the objective"),
    "crash": ("failed", "solver-failure", "killed by signal 11): terminate called after throwing"),
    "non-zero exit": ("failed", "solver-failure", "exit status 3"),
    "truncated answer": ("failed", "solver-failure", "ended (exit status 0)"),
    "garbage": ("failed", "solver-failure", "cannot be read"),
    "killed": ("failed", "solver-failure", "killed by signal 9"),
    "out of memory": ("failed", "solver-failure", "MemoryError"),
}


@pytest.mark.parametrize("way", ALONE)
def test_ending_through_the_process(way: str, behaves: Behaves) -> None:
    status, stopped_by, words = ALONE[way]
    behaves(way, "alone")
    answer = optimize(QUESTION)
    assert (answer.status, answer.stopped_by) == (status, stopped_by)
    assert words in " ".join(answer.messages)
    if answer.has_plan:
        assert answer.cost_microusd == 12


@pytest.mark.parametrize("way", ["invalid point", "NaN", "crash", "truncated answer", "out of memory"])
def test_the_other_solver_is_asked_with_a_warning(way: str, behaves: Behaves) -> None:
    behaves(way)
    answer = optimize(QUESTION)
    assert (answer.status, answer.units.tolist(), answer.stopped_by) == ("optimal", BEST, "")
    assert ALONE[way][2] in " ".join(answer.messages)


def test_a_hang_is_ended_and_the_last_point_kept(behaves: Behaves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    for way, status in (("hang", "stopped"), ("hang with a point", "feasible")):
        child.end()
        behaves(way, "alone")
        told = folder()
        answer = optimize(QUESTION, time_limit_s=0.3)
        assert (answer.status, answer.stopped_by) == (status, "hang")
        assert "did not come back" in " ".join(answer.messages)
        assert not told.exists()
        assert not child._current[0].usable


def test_a_process_that_cannot_be_started_is_a_failure_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "command", lambda: ["/nowhere/python"])
    answer = optimize(QUESTION, adapters=[PulpAdapter(solver="highs")])
    assert (answer.status, answer.stopped_by) == ("failed", "solver-failure")
    assert "could not be started" in " ".join(answer.messages)
    assert not child._current


def folder() -> Path:
    """Where the solver process works."""
    return child.current().folder


def test_it_works_in_a_folder_of_its_own_which_goes_with_it() -> None:
    PulpAdapter(solver="cbc").run(build(scope_of(QUESTION, None), "cost"), Options())
    place, number = folder(), child.current().process.pid
    assert place.is_dir()
    child.end()
    assert not place.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(number, 0)


def test_folders_of_planners_long_gone_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (f"{gone.pid}-old", f"{gone.pid}-new", f"{os.getpid()}-old", "other"):
        (tmp_path / f"plan-solver-{name}").mkdir()
        if name.endswith("old") or name == "other":
            os.utime(tmp_path / f"plan-solver-{name}", (0, 0))
    child.current()
    assert not (tmp_path / f"plan-solver-{gone.pid}-old").exists()
    assert len(list(tmp_path.iterdir())) == 4  # the other three, and that of this process
    child.end()


def test_another_number_of_threads_is_another_process() -> None:
    """Within one process HiGHS answers nothing to the second."""
    first = child.current(1).process.pid
    assert optimize(QUESTION, threads=1).units.tolist() == BEST
    assert child.current(1).process.pid == first
    assert optimize(QUESTION, threads=2).units.tolist() == BEST
    assert child.current().threads == 2
    assert child.current().process.pid != first


def test_the_planner_imports_no_solver() -> None:
    code = (
        "import sys\nfrom tests.optimize.test_solver_endings import BEST, QUESTION\n"
        "from planner.optimize.solve import optimize\n"
        "assert optimize(QUESTION).units.tolist() == BEST\n"
        "print({'pulp', 'highspy'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=stand_in.ROOT, check=True)
    assert ran.stdout == "set()\n", ran.stderr


def test_a_copy_of_the_planner_has_a_process_of_its_own() -> None:
    """A fork shares the pipes; it must not talk on them, nor end what is not its own."""
    code = (
        "import os\nfrom tests.optimize.test_solver_endings import BEST, QUESTION\n"
        "from planner.optimize import child\nfrom planner.optimize.solve import optimize\n"
        "assert optimize(QUESTION).units.tolist() == BEST\n"
        "place = child.current().folder\nnumber = os.fork()\n"
        "assert optimize(QUESTION).units.tolist() == BEST\n"
        "if number:\n    os.waitpid(number, 0)\n"
        "    assert child.current().folder == place and place.is_dir()\n"
        "    assert optimize(QUESTION).units.tolist() == BEST\n"
        "else:\n    assert child.current().folder != place\n"
        "print('fine', flush=True)\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=stand_in.ROOT, timeout=100, check=True)
    assert ran.stdout == "fine\nfine\n", ran.stderr


def test_a_model_is_the_same_after_its_way() -> None:
    model = build(scope_of(hard(), None), "cost")
    frame = packed({"do": "solve", **header_of(model)}, **arrays_of(model))
    assert int.from_bytes(frame[:HEAD], "big") == len(frame) - HEAD
    back = model_of(*unpacked(frame[HEAD:]))
    assert back.names == model.names
    assert [line.name for line in back.lines] == [line.name for line in model.lines]
    for name, array in arrays_of(model).items():
        assert np.array_equal(arrays_of(back)[name], array)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0\0\x02{}",
        b"\0\0\0\x02[]",
        packed({"say": "x"}, values=np.ones(3))[HEAD:-1],
        packed({"say": "x"}, values=np.ones(3))[HEAD:] + b"\0",
        packed({"say": "x"}, values=np.ones(3))[HEAD:].replace(b"float64", b"object_"),
    ],
)
def test_what_is_no_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError):
        unpacked(frame)


def test_numbers_that_json_has_no_word_for_arrive() -> None:
    header, arrays = unpacked(packed({"objective": math.nan, "bound": -math.inf}, values=np.array([math.inf]))[HEAD:])
    assert math.isnan(header["objective"])
    assert (header["bound"], arrays["values"].tolist()) == (-math.inf, [math.inf])


def test_ctrl_c_reaches_what_tests_start_in_the_background_too(tmp_path: Path) -> None:
    test = tmp_path / "test_one.py"
    test.write_text(
        "import signal\ndef test_one():\n    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN\n"
    )
    code = f"import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'tests.conftest', '--rootdir', '.', {str(test)!r}]))"
    own = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{code}"]
    ran = subprocess.run(own, capture_output=True, text=True, cwd=stand_in.ROOT, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout


SLOW = "import shutil, time; real = shutil.rmtree; shutil.rmtree = lambda *a, **k: (time.sleep(1.0), real(*a, **k)); "


@pytest.mark.parametrize("ended", ["amid a question", "before the answer"])
def test_a_planner_gone_at_a_bad_moment_leaves_no_folder(ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread of the process must not end it by itself, while the other still clears away."""
    monkeypatch.setattr(child, "BOOT", SLOW + child.BOOT)
    process_of = child.current(1)
    question = packed({"do": "solve", "until": None, "solver": "cbc", "gap": 0.0, "threads": 1, "seed": 0})
    process_of.send([question[:-3]] if ended == "amid a question" else [question])
    if ended == "before the answer":
        process_of.process.stdout.close()  # type: ignore[union-attr]
    process_of.process.stdin.close()  # type: ignore[union-attr]
    process_of.process.wait(timeout=30)
    assert not process_of.folder.exists()


@pytest.mark.parametrize(
    ("solver", "how", "after_s", "more"),
    sampled(
        [
            ("highs", "process", 1.2, ""),
            ("cbc", "process", 1.6, "early"),
            ("highs", "worker", 0.5, "early"),
            ("highs", "group", 0.6, "early"),
            ("cbc", "group", 0.9, ""),
            ("cbc", "planner", 0.7, "early"),
            ("highs", "planner", 0.7, ""),
            ("highs", "process", 0.9, "early"),
            ("cbc", "worker", 0.5, ""),
        ],
        5,
    ),
)
def test_nothing_is_left_of_a_run_broken_off(solver: str, how: str, after_s: float, more: str, tmp_path: Path) -> None:
    """The plan that was known is kept; what a benchmark does at many moments is done here at one each."""
    ran = break_off(driver(solver, *more.split()), how, after_s, tmp_path)
    assert (ran.processes, ran.files) == (0, 0)
    assert ran.err == ""
    if how == "planner":
        return
    assert ran.code == 0
    assert ran.answer["stopped_by"] == "interrupt"
    assert not ran.answer["broken"]
    assert ran.answer["status"] in (("feasible",) if ran.answer["told"] else ("feasible", "stopped"))


def test_cbc_writes_down_its_best_point_when_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own pace it would go on for a minute; the watchdog ends it sooner and has its point all the same."""
    model = build(scope_of(hard(), None), "cost")
    process.solvers()
    talk, here = process.Talk(until=None, polite=True), child.current(1)
    settings = {"solver": "cbc", "gap": 0.0, "seed": 0, "do": "solve", "threads": 1, "until": None}
    here.send(parts_of({**settings, **header_of(model)}, **arrays_of(model)))
    with pytest.raises(TimeoutError):
        talk._wait(here, until=time.monotonic() + 2.0)
    monkeypatch.setattr(process, "PARTING_S", 20.0)
    talk._stop(here, Ending.HANG, "late")
    assert talk.point is not None
    assert talk.point.values is not None


def test_the_plan_kept_is_the_better_one_and_a_real_one() -> None:
    scope = scope_of(QUESTION, None)
    kept = Kept(scope=scope, chain=("cost",))
    kept.offer(np.array([1, 0, 1, 0]))  # breaks the limit
    assert kept.units is None
    kept.offer(np.array([0, 1, 0, 1]))
    kept.offer(np.array(BEST))
    kept.offer(np.array([0, 1, 1, 0]))
    assert kept.units is not None
    assert kept.units.tolist() == BEST


def test_a_plan_from_elsewhere_is_the_answer_when_the_solver_has_none(behaves: Behaves) -> None:
    behaves("limit without an incumbent", "alone")
    answer = optimize(QUESTION, first=np.array([0, 1, 0, 1]))
    assert (answer.status, answer.stopped_by, answer.cost_microusd) == ("feasible", "time-limit", 17)
    assert answer.bound_microusd is not None
    assert answer.bound_microusd <= 12


def test_versions_are_those_that_the_process_works_with() -> None:
    process.solvers()
    assert process.version("highspy") == pulp_adapter.version_of("highspy") != ""


def binary(tmp_path: Path, body: str) -> Path:
    """An executable that stands in for cbc; `$out` is the solution file it is asked for."""
    script = tmp_path / "cbc"
    find = 'for a in "$@"; do if [ "$p" = "-solution" ]; then out=$a; fi; p=$a; done\n'
    script.write_text(f"#!/bin/sh\n{find}{body}\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


BINARIES = {
    "non-zero exit": ("exit 3", "failed"),
    "killed": ("kill -9 $$", "failed"),
    "no solution file": ("exit 0", "failed"),
    "empty solution file": (': > "$out"', "failed"),
    "truncated solution file": ("printf 'Optimal - objective value 12\\n      0 X0' > \"$out\"", "failed"),
    "garbage": ('head -c 400 /dev/urandom > "$out"', "failed"),
    "half of the variables": (
        "printf 'Optimal - objective value 12\\n      0 X0000000 1 0\\n' > \"$out\"",
        "failed",
    ),
    "infeasible": ("printf 'Infeasible - objective value 0\\n' > \"$out\"", "infeasible"),
    "integer infeasible": ("printf 'Integer infeasible - objective value 0\\n' > \"$out\"", "infeasible"),
    "unbounded": ("printf 'Unbounded - objective value 0\\n' > \"$out\"", "failed"),
    "time out without a plan": (
        "printf 'Stopped on time (no integer solution - continuous used) - objective value 9\\n' > \"$out\"",
        "stopped",
    ),
}


@pytest.mark.parametrize("name", BINARIES)
def test_binary_for_cbc(name: str, tmp_path: Path, behaves: Behaves) -> None:
    body, status = BINARIES[name]
    behaves("optimal", f"cbc={binary(tmp_path, body)}")
    answer = optimize(QUESTION, adapters=[PulpAdapter(solver="cbc")])
    assert answer.status == status
    assert not answer.units.any()


def test_binary_that_hangs_is_killed_with_the_process(tmp_path: Path, behaves: Behaves) -> None:
    behaves("optimal", f"cbc={binary(tmp_path, 'trap : INT TERM; while :; do sleep 0.1; done')}")
    session = child.current().process.pid
    answer = optimize(QUESTION, adapters=[PulpAdapter(solver="cbc")], time_limit_s=0.1)
    assert (answer.status, answer.stopped_by) == ("stopped", "hang")
    for _ in range(100):
        if not any(True for _ in members(session)):
            break
        time.sleep(0.05)
    assert not list(members(session))


def members(session: int) -> Iterator[str]:
    """Names of the processes of a session that still run."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()
                if int(state[3]) == session and state[0] != "Z":
                    yield place.name
