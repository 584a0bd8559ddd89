"""`--time-limit` bounds the whole command: what does not end by itself is broken off."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from planner import deadline as deadlines
from planner.cli import clock, interrupts
from planner.cli.flags import deadline_of
from planner.cli.interrupts import on_time
from planner.deadline import Deadline, TimeIsUp, due, parting
from planner.errors import StoppedError
from tests.cli.conftest import Run

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alarms ring as soon as the time is up."""
    monkeypatch.setattr(interrupts, "OVERTIME_S", 0.001)
    monkeypatch.setattr(deadlines, "CERTIFYING_S", 0.0)
    monkeypatch.setattr(deadlines, "CERTIFYING_SHARE", 0.0)


def endless(*_: object, **__: object) -> None:
    while True:
        pass


PLACES = {
    "planner.cli.find.load": ("solve", "scenarios/llama.yaml"),
    "planner.api.sessions.enumerate_candidates": ("solve", "scenarios/llama.yaml"),
    "planner.api.frontiers.sweep_of": ("frontier", "scenarios/llama.yaml", "--over", "budget"),
    "planner.cli.sides.sides_of": ("compare", "scenarios/llama.yaml", "scenarios/gpt2-xl.yaml"),
    "planner.api.session": ("report", "scenarios/llama.yaml"),
}


@pytest.mark.parametrize("place", PLACES)
def test_work_that_does_not_end_is_ended(
    place: str, run: Run, here: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is: no plan, exit 6, no file, and the alarm is put away."""
    import planner.api
    import planner.api.frontiers
    import planner.cli.sides  # noqa: F401 - parts of them are replaced

    if place == "planner.api.frontiers.sweep_of":
        place = "planner.analysis.frontier.question.sweep_of"
    monkeypatch.setattr(place, endless)
    answer = run(*PLACES.get(place, ("frontier", "scenarios/llama.yaml", "--over", "budget")), "--time-limit", "0.3s")
    assert answer.code == 6
    assert "error[time-limit] the time limit of 300 ms ended the command before it had an answer" in answer.err
    assert "interrupted" not in answer.err
    assert not (here / ".plan").exists()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


LATE_S = 3600.0  # alarms of these tests are rung where they are to be heard: a busy machine may stand still anywhere


def test_it_rings_again_for_what_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.1)
    monkeypatch.setattr(interrupts, "LAST_S", -LATE_S)
    heard: list[str] = []

    def work() -> None:
        with on_time(Deadline.after(LATE_S)):
            try:
                signal.raise_signal(signal.SIGALRM)
            except TimeIsUp:
                heard.append("once")
            endless()

    with pytest.raises(StoppedError):
        work()
    assert heard == ["once"]


@pytest.mark.parametrize(("last_s", "heard"), [(60.0, ["to the end", "then broken off"]), (0.05, ["then broken off"])])
def test_what_was_found_is_written_down_first(last_s: float, heard: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm waits for it, and no longer than until the last moment."""
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.005)
    monkeypatch.setattr(interrupts, "LAST_S", last_s - LATE_S)
    found: list[str] = []

    with on_time(Deadline.after(LATE_S)):
        try:
            with parting():
                signal.raise_signal(signal.SIGALRM)
                until = time.monotonic() + (0.1 if last_s > 1.0 else LATE_S)
                while time.monotonic() < until:
                    pass
                found.append("to the end")
            endless()
        except TimeIsUp:
            found.append("then broken off")
    assert found == heard


def test_the_clock_runs_since_the_command_began() -> None:
    """Not only since its imports are done; and once, so that a second command has its own."""
    clock.begin(time.monotonic() - 5.0)
    first, second = deadline_of("10 s"), deadline_of("10 s")
    assert first is not None
    assert second is not None
    assert first.left_s() == pytest.approx(4.0, abs=0.5)
    assert second.left_s() == pytest.approx(9.0, abs=0.5)


def test_a_solver_process_is_not_left_half_started(at_once: None) -> None:
    """An alarm waits, as Ctrl-C does, until the process can be found again."""
    from planner.optimize import child

    done: list[str] = []

    def work() -> None:
        with on_time(Deadline.after(3600.0)), child.undisturbed():
            signal.raise_signal(signal.SIGALRM)
            done.append("to the end")

    with pytest.raises(StoppedError):
        work()
    assert done == ["to the end"]


@pytest.mark.parametrize("deadline", [None, Deadline.after(3600.0)])
def test_without_a_need_nothing_rings(deadline: Deadline | None) -> None:
    with on_time(deadline):
        assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (deadline is not None)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize(("changed", "rings"), [({}, True), ({"limit_s": 7.0}, False)])
def test_the_alarm_rings_sooner_where_more_is_kept_back(changed: dict[str, float], rings: bool, at_once: None) -> None:
    """Comparisons of forty workloads went on into the time in which the plan was to be written down."""
    deadline = Deadline.after(3600.0)
    sooner = replace(deadline, due_s=deadline.began_s - 5.0, **changed)
    with pytest.raises(StoppedError) if rings else contextlib.nullcontext(), on_time(deadline):
        due(sooner)
        time.sleep(0.3)


def test_a_certificate_has_a_part_of_what_is_kept_back() -> None:
    """Of the company's 100 s, 17 were kept back, half a second of which was for a certificate that takes two."""
    small = Deadline.after(100.0)
    large = small.slowed(17.0)
    assert small.certifying_s == 0.5
    assert large.certifying_s == pytest.approx(17.0 / 4)
    with on_time(small):
        due(large)
        assert signal.getitimer(signal.ITIMER_REAL)[0] == pytest.approx(83.0 + 17.0 / 4 + 0.2, abs=0.5)


def test_other_threads_have_no_alarms() -> None:
    """A notebook may call from one: only the looks at the clock bound it there."""
    rung: list[float] = []

    def work() -> None:
        with on_time(Deadline.after(0.001)):
            rung.append(signal.getitimer(signal.ITIMER_REAL)[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert rung == [0.0]


def test_the_limit_of_a_sweep_keeps_the_points_found(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.analysis.frontier import points

    solved: list[object] = []
    real: Callable[..., object] = points.solve_at

    def solve_at(*arguments: object) -> object:
        solved.append(None)
        return real(*arguments)

    monkeypatch.setattr(points, "solve_at", solve_at)
    monkeypatch.setattr(points, "is_up", lambda limit: len(solved) >= 2)
    answer = run("frontier", "scenarios/gpt2-xl.yaml", "--over", "budget", "-o", "json", "--time-limit", "10 min")
    assert len(solved) == 2
    assert answer.code == 5
    assert "broken off: points that are missing are looked for when it is run again" in answer.out
