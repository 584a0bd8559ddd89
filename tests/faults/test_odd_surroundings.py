"""Odd streams, limits, folders, clocks and locales around every command: documented exit codes, and nothing left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults import odd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and devices are those of Linux")

SAMPLE = (
    ("solve", "stdout full"),
    ("page", "stdout closed"),
    ("offers", "stdout a pipe that is closed early"),
    ("explain", "five files"),
    ("solve", "one process"),
    ("solve", "a folder one may not write"),
    ("solve", "a pipe in place of a file"),
    ("solve to stdout", "no HiGHS"),
    ("solve", "no large files"),
    ("memory", "a clock that goes backwards"),
    ("models", "plain ascii"),
)


def tried(command: str, around: str, folder: Path) -> list[str]:
    folder.mkdir()
    odd.prepare(folder)
    return odd.faults(command, around, folder)


@pytest.mark.parametrize(("command", "around"), SAMPLE)
def test_a_sample_of_odd_surroundings(command: str, around: str, tmp_path: Path) -> None:
    if not odd.possible(odd.SURROUNDINGS[around]):
        pytest.skip("this machine cannot make such surroundings")
    assert tried(command, around, tmp_path / "here") == []


@pytest.mark.campaign
def test_every_command_in_all_odd_surroundings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At least 300 runs; each is told with what went wrong."""
    wrong: dict[tuple[str, str], list[str]] = {}
    runs = [(command, around) for command, around in odd.combinations() if odd.possible(odd.SURROUNDINGS[around])]
    for number, (command, around) in enumerate(runs):
        found = tried(command, around, tmp_path / str(number))
        if found:
            wrong[command, around] = found
    with capsys.disabled():
        print(f"\nodd surroundings: {len(runs)} invocations, {len(wrong)} with faults")
        for (command, around), found in wrong.items():
            print(f"  {command} · {around}: {'; '.join(found)}")
    assert len(runs) >= 300
    assert not wrong
