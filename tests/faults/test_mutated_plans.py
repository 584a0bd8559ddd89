"""Plan files changed at random, each put to one of verify, explain, report, export and compare."""

from __future__ import annotations

import random
import sys

import pytest

from tests.faults import mutated
from tests.tiers import cases, time_is_up

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="time of a processor is measured by POSIX timers")


def test_changes_are_changes_and_the_same_for_a_seed() -> None:
    real = (mutated.ROOT / "tests" / "cli" / "samples" / "llama.json").read_text(encoding="utf-8")
    files = [mutated.mutated(real, random.Random(number))[1] for number in range(50)]
    assert files == [mutated.mutated(real, random.Random(number))[1] for number in range(50)]
    assert len(set(files)) == 50
    assert real.encode() not in files


def test_a_traceback_and_a_hang_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.api import checking

    def fail(*_: object, **__: object) -> None:
        raise KeyError("planted")

    def hang(*_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(mutated, "COMMANDS", {"verify": mutated.COMMANDS["verify"]})
    monkeypatch.setattr(mutated, "mutated", lambda text, dice: ("nothing", text.encode()))
    for planted, words in ((fail, "planted"), (hang, "more than 0.2 s")):  # what is imported once, the first imports
        monkeypatch.setattr(mutated, "CPU_S", 0.2 if planted is hang else mutated.CPU_S)
        monkeypatch.setattr(checking, "check", planted)
        _, crashes = mutated.run(2)
        assert len(crashes) == 2
        assert all(words in crash.what and planted.__name__ in crash.what for crash in crashes)


@pytest.mark.usefixtures("rated_once")
def test_some_mutated_plans() -> None:
    count = cases(50, 300)
    codes, crashes = mutated.run(count)
    assert sum(codes.values()) == count or time_is_up()
    assert not crashes, mutated.told(count, codes, crashes)


@pytest.mark.campaign
@pytest.mark.usefixtures("rated_once")
def test_ten_thousand_mutated_plans(capsys: pytest.CaptureFixture[str]) -> None:
    codes, crashes = mutated.run(10_000, seed=1)
    with capsys.disabled():
        print("\n" + mutated.told(10_000, codes, crashes))
    assert not crashes
