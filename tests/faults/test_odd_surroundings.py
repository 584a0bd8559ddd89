"""Odd streams, limits, folders, clocks and locales around every command: documented exit codes, and nothing left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults import odd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and devices are those of Linux")

SAMPLE = (
    ("solve", "stdout full"),
    ("offers", "stdout a pipe that is closed early"),
    ("explain", "five files"),
    ("solve", "a folder one may not write"),
    ("solve to stdout", "no HiGHS"),
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


def test_there_are_many() -> None:
    assert len([around for _, around in odd.combinations() if odd.possible(odd.SURROUNDINGS[around])]) >= 300


@pytest.mark.campaign
@pytest.mark.parametrize("around", odd.SURROUNDINGS)
def test_every_command_in_odd_surroundings(around: str, tmp_path: Path) -> None:
    """Each that is tried there, told with what went wrong."""
    if not odd.possible(odd.SURROUNDINGS[around]):
        pytest.skip("this machine cannot make such surroundings")
    commands = odd.SURROUNDINGS[around].only or tuple(odd.COMMANDS)
    found = {command: tried(command, around, tmp_path / str(n)) for n, command in enumerate(commands)}
    assert {command: wrong for command, wrong in found.items() if wrong} == {}
