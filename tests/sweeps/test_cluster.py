"""A Dask scheduler and its workers on loopback: the same bytes, and what is told when one of them goes.

`make test` installs `distributed`; where it is not there only what is said then is tried.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.errors import StoppedError, UsageError
from planner.files import LineFile
from planner.sweeps import cluster as room
from planner.sweeps import question
from planner.sweeps.answering import BEGINS, Asker, Journal, Progress
from planner.sweeps.cluster import cluster
from planner.sweeps.question import Answered, Question
from tests.sweeps.told import Counting, answer, key, questions, row
from tests.tiers import cases

ROOT = Path(__file__).parents[2]
NAME = str(ROOT / "scenarios" / "gpt2-xl.yaml")
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the extra is not installed")


@dataclass
class Loopback:
    """A scheduler and workers, each a process of its own."""

    folder: Path
    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def worker(self, *flags: str) -> subprocess.Popen[bytes]:
        """One more, without a nanny: what is killed stays dead."""
        name = flags or ("--no-nanny",)
        call = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard", *name]
        self.workers.append(started(self.folder, *call))
        return self.workers[-1]


def started(folder: Path, module: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=log, stderr=log, cwd=folder, env=environment
        )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def loopback(folder: Path, workers: int = 2, *flags: str) -> Iterator[Loopback]:
    port = free_port()
    call = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    made = Loopback(folder, f"tcp://127.0.0.1:{port}", started(folder, *call))
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        for _ in range(workers):
            made.worker(*flags)
        yield made
    finally:
        for one in (*made.workers, made.scheduler):
            one.terminate()
        for one in (*made.workers, made.scheduler):
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


def rows_by(made: Loopback, asked: list[Question], by: Any, digest: str = "d" * 64, **more: Any) -> list[Any]:
    with cluster(by, made.address, digest) as runner:
        return Asker(key=key, runner=runner, journal=more.pop("journal", Journal()), **more).rows(asked)


@needs_dask
def test_a_cluster_gives_the_same_bytes_again_and_again(tmp_path: Path) -> None:
    over = ("training.gpt2-xl.deadline=20d..80d/3", "price:v100-*=-20%,0%")
    with loopback(tmp_path) as made:
        found = []
        for number, where in enumerate([None, made.address, made.address]):
            folder = tmp_path / f"plans{number}"
            told = planner.sweep(NAME, planner.grid(*over), where, plans=folder, borders=1)
            found.append((told.to_json(), {path.name: path.read_bytes() for path in sorted(folder.iterdir())}))
    assert found[0] == found[1] == found[2]


@needs_dask
def test_workers_are_told_once_and_both_answer(tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    counting = Counting(tmp_path / "asked", slow_s=0.05)
    with loopback(tmp_path) as made:
        wait_for(made, 2)
        assert rows_by(made, questions(20), counting) == [row(float(number)) for number in range(20)]
    assert counting.tries() == dict.fromkeys(range(20), 1)
    assert len({path.name.split(".")[2] for path in (tmp_path / "asked").iterdir()}) == 2


@needs_dask
@pytest.mark.parametrize("broken", [1, 9])
def test_a_line_that_breaks_while_workers_are_told_is_no_end(
    broken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that came or went just then closes the line of all; one that always breaks is told."""
    import distributed
    from distributed.comm.core import CommClosedError

    tell, breaks = distributed.Client.register_plugin, iter(range(broken))

    def broken_line(client: object, *given: object, **more: object) -> object:
        if next(breaks, None) is not None:
            raise CommClosedError("in <TCP (closed)>")
        return tell(client, *given, **more)

    monkeypatch.setattr(distributed.Client, "register_plugin", broken_line)
    with loopback(tmp_path) as made:
        if broken == 1:
            assert rows_by(made, questions(3), answer) == [row(float(number)) for number in range(3)]
            return
        with pytest.raises(StoppedError, match="a worker failed: CommClosedError"):
            rows_by(made, questions(3), answer)


def wait_for(made: Loopback, count: int) -> None:
    import distributed

    with distributed.Client(made.address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=30)


@needs_dask
@pytest.mark.parametrize("moment", range(cases(1, 20)))
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, moment: int) -> None:
    (tmp_path / "asked").mkdir()
    counting = Counting(tmp_path / "asked", slow_s=0.05)
    with loopback(tmp_path) as made:
        wait_for(made, 2)

        def kill(told: Progress) -> None:
            if told.done == 1 + moment and made.workers[0].poll() is None:
                made.workers[0].send_signal(signal.SIGKILL)

        assert rows_by(made, questions(24), counting, tell=kill) == [row(float(number)) for number in range(24)]
    tries = counting.tries()
    assert sum(tries.values()) <= 24 + 2  # what that worker held


@needs_dask
@pytest.mark.parametrize("moment", range(cases(1, 20)))
def test_a_scheduler_that_is_killed_ends_the_sweep_which_goes_on_from_its_journal(tmp_path: Path, moment: int) -> None:
    (tmp_path / "asked").mkdir()
    counting, path = Counting(tmp_path / "asked", slow_s=0.05), tmp_path / "a.jsonl"
    done = []
    with loopback(tmp_path) as made:

        def kill(told: Progress) -> None:
            done.append(told.done)
            if told.done == 1 + moment:
                made.scheduler.send_signal(signal.SIGKILL)

        with LineFile(path, begins=BEGINS) as lines, pytest.raises(StoppedError) as error:
            rows_by(made, questions(24), counting, journal=Journal(lines), tell=kill)
        assert error.value.problems[0].reference == "scheduler-gone"
        assert "journal" in error.value.problems[0].hint
    whole = path.read_bytes()
    assert whole.count(b"\n") == done[-1]
    with loopback(tmp_path) as made, LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        assert rows_by(made, questions(24), counting, journal=journal) == [row(float(number)) for number in range(24)]
        assert len(Journal(lines)._places) == done[-1]
    assert path.read_bytes().startswith(whole)
    assert path.read_bytes().count(b"\n") == 24


@needs_dask
def test_a_question_that_always_kills_its_worker_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    counting = Counting(tmp_path / "asked", kills=(3,))
    with loopback(tmp_path, 2, "--nanny") as made:
        rows = rows_by(made, questions(8), counting)
    assert [one["status"] for one in rows] == ["optimal"] * 3 + ["lost"] + ["optimal"] * 4
    assert rows[3]["problem"]["reference"] == "worker-died"
    assert counting.tries()[3] >= 2


@needs_dask
def test_two_sweeps_of_the_same_at_once(tmp_path: Path) -> None:
    """The one that ends first takes what both had sent with it: the other sends it again."""
    (tmp_path / "asked").mkdir()
    with loopback(tmp_path, 1) as made, cluster(Counting(tmp_path / "asked"), made.address, "e" * 64) as runner:
        answers = runner(enumerate(questions(12)))
        first = next(answers)
        assert rows_by(made, questions(2), answer, "e" * 64) == [row(0.0), row(1.0)]
        found = dict([first, *answers])
    assert [found[number].row for number in range(12)] == [row(float(number)) for number in range(12)]


@needs_dask
def test_two_sweeps_of_other_questions_at_once(tmp_path: Path) -> None:
    """Tasks of both had the same names on the scheduler, which gave each the answers of who came first."""
    (tmp_path / "asked").mkdir()
    slow = Counting(tmp_path / "asked", slow_s=0.1)
    ours, theirs = list(enumerate(questions(6))), [(number, Question(seed=100 + number)) for number in range(6)]
    with (
        loopback(tmp_path, 1) as made,
        cluster(slow, made.address, "e" * 64) as runner,
        cluster(slow, made.address, "e" * 64) as other,
    ):
        found = list(zip(runner(ours), other(theirs)))
    assert {one[0]: one[1].row["cost_usd"] for one, _ in found} == {number: float(number) for number in range(6)}
    assert {one[0]: one[1].row["cost_usd"] for _, one in found} == {number: 100.0 + number for number in range(6)}


def no_memory(asked: Question) -> Answered:
    raise MemoryError


def broken(asked: Question) -> Answered:
    raise ZeroDivisionError


@needs_dask
def test_what_goes_wrong_in_a_worker(tmp_path: Path) -> None:
    with loopback(tmp_path, 1) as made:
        (one,) = rows_by(made, questions(1), no_memory)
        assert one["problem"]["reference"] == "out-of-memory"
        with pytest.raises(StoppedError, match="a worker failed: ZeroDivisionError"):
            rows_by(made, questions(1), broken, "f" * 64)


@needs_dask
def test_a_worker_that_came_later_with_other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(question._answers, "x", answer)
    question.know("x", answer, question.versions_here())
    assert question.answered("x", questions(2)[1]).row == row(1.0)
    question.know("x", answer, {**question.versions_here(), "planner": "0.0.0"})
    with pytest.raises(question.VersionsDifferError, match=r"the client 0\.0\.0"):
        question.answered("x", questions(1)[0])
    question.forget("x")
    with pytest.raises(LookupError):
        question.answered("x", questions(1)[0])


@needs_dask
def test_a_worker_of_other_versions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(tmp_path, 1) as made:
        monkeypatch.setattr(planner, "__version__", "99.0")
        with pytest.raises(StoppedError) as error:
            rows_by(made, questions(1), answer)
    assert error.value.problems[0].reference == "versions-differ"
    assert "99.0" in error.value.problems[0].message


@needs_dask
@pytest.mark.parametrize(("name", "version"), [("python", "3.99.1.final.0"), ("numpy", "0.1")])
def test_a_python_or_a_library_that_differs_is_named(name: str, version: str) -> None:
    import copy

    from distributed.versions import get_versions

    class Client:
        """Of a cluster one of whose workers has something else."""

        def get_versions(self, packages: list[str]) -> dict[str, Any]:
            same = get_versions(packages=packages)
            other = copy.deepcopy(same)
            other["host" if name == "python" else "packages"][name] = version
            return {"scheduler": same, "workers": {"a": same, "b": self.changed(same, other)}}

        def changed(self, same: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
            return other

        def run(self, *_: Any, **__: Any) -> dict[str, str]:
            return {"a": planner.__version__, "b": planner.__version__}

        def run_on_scheduler(self, *_: Any) -> str:
            return planner.__version__

    with pytest.raises(StoppedError) as error:
        room._demand_same(Client())
    assert error.value.problems[0].reference == "versions-differ"
    assert error.value.problems[0].message.startswith(f"the worker b has {name} {version.removesuffix('.1.final.0')},")
    assert "same versions" in error.value.problems[0].hint
    Client.changed = lambda self, same, other: same  # type: ignore[method-assign, assignment]
    room._demand_same(Client())


@needs_dask
def test_no_scheduler_and_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CONNECT_S", 1.0)
    monkeypatch.setattr(room, "WORKERS_S", 1.0)
    for address in (f"tcp://127.0.0.1:{free_port()}", "nonsense", "tcp://", "udp://x:1", "tls://127.0.0.1:1", ""):
        with pytest.raises(StoppedError) as error:
            planner.sweep(NAME, [Question()], address)
        assert error.value.problems[0].reference == "no-scheduler", address
    with loopback(tmp_path, 0) as made, pytest.raises(StoppedError) as error:
        planner.sweep(NAME, [Question()], made.address)
    assert error.value.problems[0].reference == "no-workers"


class Told:
    """A client whose scheduler tells of these workers."""

    status = "running"

    def __init__(self, workers: dict[str, Any]) -> None:
        self.workers = workers

    def scheduler_info(self, n_workers: int = 5) -> dict[str, Any]:
        return {"workers": self.workers}


def test_workers_without_memory_are_an_error_once_nothing_moves() -> None:
    paused = {"status": "paused", "metrics": {"executing": 0}}
    busy = {"status": "paused", "metrics": {"executing": 1}}
    assert room._Cluster(Told({"a": busy}), "d", list)._look(1000.0) == 0.0
    assert room._Cluster(Told({"a": paused, "b": {"status": "running"}}), "d", list)._look(1000.0) == 0.0
    assert room._Cluster(Told({"a": paused}), "d", list)._look(1.0) == 1.0
    with pytest.raises(StoppedError, match="no memory left: 1"):
        room._Cluster(Told({"a": paused}), "d", list)._look(1000.0)
    with pytest.raises(StoppedError, match="had no worker"):
        room._Cluster(Told({}), "d", list)._look(1000.0)


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.config", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "distributed.security", None)
    with pytest.raises(UsageError, match="which are not installed") as error:
        planner.sweep(NAME, [Question()], "tcp://127.0.0.1:1")
    assert "llm-capacity-planner[cluster]" in error.value.problems[0].hint
    with pytest.raises(UsageError):
        room.security_of(NAME, NAME, NAME)
    assert planner.sweep(NAME, [Question()]).status == "optimal"
