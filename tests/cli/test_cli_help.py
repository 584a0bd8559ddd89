"""Help is laid out for people: commands by when one needs them, options by what they are about."""

from __future__ import annotations

import re

import pytest

from planner.cli.help_layout import COMMAND_GROUPS, OPTION_GROUPS, OTHER_COMMANDS
from tests.cli.conftest import Run


def sections(text: str) -> dict[str, str]:
    """Title -> body of each section of a help text."""
    parts = re.split(r"^(\S[^\n]*):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_commands_stand_in_groups_with_whole_sentences(run: Run) -> None:
    found = sections(run("--help").out)
    listed = [
        name
        for title in (*COMMAND_GROUPS, OTHER_COMMANDS)
        for name in re.findall(r"^  (\w+) ", found[title], re.MULTILINE)
    ]
    assert len(listed) == len(set(listed)) >= 15
    assert re.findall(r"^  (\w+) ", found[OTHER_COMMANDS], re.MULTILINE) == ["schema", "help"]
    assert list(found) == [title for title in found if title != "Commands"]
    assert "..." not in "".join(found[title] for title in COMMAND_GROUPS)


def test_options_stand_in_groups(run: Run) -> None:
    found = sections(run("solve", "--help").out)
    assert list(found)[:2] == ["Arguments", "Options"]
    assert list(found)[2:] == list(OPTION_GROUPS)
    assert "--simulate" in found["Options"]
    assert "--threads" in found["Solver"]
    assert "--quiet" not in found["Options"]


@pytest.mark.parametrize("words", [(), ("solve",), ("catalog",), ("catalog", "import", "skypilot")], ids=" ".join)
def test_plan_help_is_the_help(run: Run, words: tuple[str, ...]) -> None:
    shown = run("help", *words)
    assert shown.code == 0
    assert shown.out == run(*words, "--help").out


def test_help_on_what_is_not_there(run: Run) -> None:
    answer = run("help", "solv")
    assert answer.code == 2
    assert "hint: solve" in answer.err
