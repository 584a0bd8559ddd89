"""Who is asked what: in turn, in processes that die, never twice, and never after the time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner.errors import OutputError, StoppedError
from planner.files import LineFile
from planner.sweeps.answering import BEGINS, Asked, Asker, Journal, Processes, Progress, in_turn
from planner.sweeps.question import Answered, Question, lost
from tests.sweeps.told import Counting, answer, key, questions, row
from tests.tiers import cases


def asker(runner: Any = None, journal: Journal | None = None, **more: Any) -> Asker:
    return Asker(key=key, runner=runner or partial(in_turn, answer), journal=journal or Journal(), **more)


def backwards(asked: Iterable[Asked]) -> Iterator[tuple[int, Answered]]:
    """As a cluster might: the last one first."""
    yield from reversed(list(in_turn(answer, asked)))


ROWS = [row(float(number)) for number in range(8)]


def test_rows_are_in_the_order_of_the_questions() -> None:
    assert asker().rows(questions(8)) == ROWS
    assert asker(backwards).rows(questions(8)) == ROWS


def test_no_question_is_asked_twice() -> None:
    made = asker()
    assert made.rows([*questions(3), *questions(3)]) == ROWS[:3] * 2
    assert made.asked == 3
    assert made.rows(questions(4)) == ROWS[:4]
    assert made.asked == 4


def test_progress_counts_questions_and_the_best() -> None:
    heard: list[Progress] = []
    ticks = iter(range(100))
    made = asker(tell=heard.append, clock=lambda: float(next(ticks)))
    made.rows([*questions(3), questions(1)[0]])
    assert [(one.done, one.of, one.best_usd) for one in heard] == [
        *((0, 4, None), (2, 4, 0.0), (3, 4, 0.0), (4, 4, 0.0))
    ]
    assert heard[1].left_s == pytest.approx(4.0)  # two questions took two ticks each
    assert str(heard[1]) == "2 of 4, best $0, 4 s left"
    assert "left" not in str(heard[-1])
    heard.clear()
    made.quietly(questions(6))
    assert heard == []
    made.rows(questions(7))
    assert heard  # quiet was for that time only


def test_failures_are_counted() -> None:
    heard: list[Progress] = []

    def fails(asked: Question) -> Answered:
        return Answered(row=lost("x", "y", "z")) if asked.seed == 1 else answer(asked)

    asker(partial(in_turn, fails), tell=heard.append).rows(questions(3))
    assert heard[-1].failed == 1
    assert str(heard[-1]) == "3 of 3, 1 without a plan, best $0"


def test_when_the_time_is_up_nothing_more_is_begun() -> None:
    begun: list[int] = []

    def counted(asked: Question) -> Answered:
        begun.append(asked.seed or 0)
        return answer(asked)

    rows = asker(partial(in_turn, counted), over=lambda: len(begun) >= 2).rows(questions(4))
    assert begun == [0, 1]
    assert rows[:2] == ROWS[:2]
    assert [one["status"] for one in rows[2:]] == ["lost", "lost"]
    assert rows[2]["problem"] is not None
    assert rows[2]["problem"]["reference"] == "time-limit"


def test_a_plan_is_written_before_its_row(tmp_path: Path) -> None:
    class Full:
        def has(self, sha256: str) -> bool:
            return False

        def add(self, sha256: str, text: str) -> None:
            raise OutputError.of("not-written", "full", hint="")

    with LineFile(tmp_path / "a.jsonl", begins=BEGINS) as lines, pytest.raises(OutputError):
        asker(journal=Journal(lines), plans=Full()).rows(questions(2))
    assert (tmp_path / "a.jsonl").read_bytes() == b""


def test_processes_answer_as_one_does(tmp_path: Path) -> None:
    counting = Counting(tmp_path, processes=2)
    with Processes(counting, 2) as processes:
        assert asker(processes).rows(questions(8)) == ROWS
    assert counting.tries() == dict.fromkeys(range(8), 1)
    assert len(counting.askers()) == 2


def test_a_question_that_always_kills_its_worker_is_asked_twice_and_is_a_row(tmp_path: Path) -> None:
    counting = Counting(tmp_path, kills=(3,))
    with Processes(counting, 2) as processes:
        rows = asker(processes).rows(questions(8))
    assert rows[:3] + rows[4:] == ROWS[:3] + ROWS[4:]
    assert rows[3]["status"] == "lost"
    assert rows[3]["problem"] is not None
    assert rows[3]["problem"]["reference"] == "worker-died"
    tries = counting.tries()
    assert tries.pop(3) == 2
    assert max(tries.values()) <= 2


def test_two_that_kill_do_not_blame_the_others(tmp_path: Path) -> None:
    with Processes(Counting(tmp_path, kills=(2, 3)), 3) as processes:
        rows = asker(processes).rows(questions(8))
    assert [one["status"] for one in rows] == ["optimal"] * 2 + ["lost"] * 2 + ["optimal"] * 4


def test_a_worker_that_is_killed_once_costs_nothing(tmp_path: Path) -> None:
    with Processes(Counting(tmp_path, kills=(2,), once=True), 2) as processes:
        assert asker(processes).rows(questions(8)) == ROWS


def never() -> None:
    raise MemoryError


class Unreadable:
    """Goes to a process, but cannot be made there."""

    def __call__(self, asked: Question) -> Answered:
        return answer(asked)

    def __reduce__(self) -> tuple[Any, ...]:
        return never, ()


def test_processes_that_do_not_begin_are_an_error_at_once() -> None:
    began = time.monotonic()
    with Processes(Unreadable(), 2) as processes, pytest.raises(StoppedError) as told:
        asker(processes).rows(questions(50))
    assert told.value.problems[0].reference == "no-workers"
    assert "__main__" in told.value.problems[0].hint
    assert time.monotonic() - began < 60


CLIENT = """
import sys
from pathlib import Path
from planner.files import LineFile
from planner.sweeps.answering import BEGINS, Journal
from planner.sweeps.answering import Processes
from planner.sweeps.answering import Asker
from tests.sweeps.told import Counting, key, questions

def pool(folder):
    return Processes(Counting(folder / "asked", slow_s=0.02), 2)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with LineFile(folder / "a.jsonl", begins=BEGINS) as lines, pool(folder) as two:
        made = Asker(key=key, runner=two, journal=Journal(lines), tell=lambda told: print(told.done, flush=True))
        made.rows(questions(30))
        print("asked", made.asked, flush=True)
"""


@pytest.mark.parametrize("after", range(cases(2, 20)))
def test_a_client_that_is_killed_loses_nothing(tmp_path: Path, after: int) -> None:
    """SIGKILL once that many answers are in: all are in the journal; at most what was in flight is asked again."""
    (tmp_path / "asked").mkdir()
    script = tmp_path / "client.py"
    script.write_text(CLIENT, encoding="utf-8")
    call = [sys.executable, str(script), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    moment = 1 + after * 29 // cases(2, 20)
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment) as client:
        assert client.stdout is not None
        for line in client.stdout:
            if int(line) >= moment:
                client.send_signal(signal.SIGKILL)
                break
    workers = {int(path.name.split(".")[2]) for path in (tmp_path / "asked").iterdir()}
    whole = (tmp_path / "a.jsonl").read_bytes()
    answers = whole.count(b"\n")
    assert answers >= moment
    ended = subprocess.run(call, capture_output=True, text=True, check=True, timeout=60, env=environment)
    assert ended.stdout.splitlines()[-1] == f"asked {30 - answers}"
    assert (tmp_path / "a.jsonl").read_bytes().startswith(whole)
    with LineFile(tmp_path / "a.jsonl", begins=BEGINS) as lines:
        journal = Journal(lines)
        assert [journal.get(key(one)) for one in questions(30)] == [row(float(number)) for number in range(30)]
        assert (journal.broken, len(lines.lines)) == (0, 30)
    tries = Counting(tmp_path / "asked").tries()
    assert sum(tries.values()) <= 30 + 2  # workers
    assert not [pid for pid in workers if alive(pid)], "its workers outlive it"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):  # it may end between any two looks
        return False
    return "Z" not in stat.split(")")[1][:3]
