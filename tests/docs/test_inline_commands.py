"""Commands named in running text are commands that exist, with options that they have."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.cli.main import command

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`(plan [^`\n]+)`")
PLAN = command()


def named(text: str) -> Iterator[str]:
    """Every `plan ...` of running text, and of blocks for a shell that no test runs."""
    for language, block in _FENCE.findall(text):
        if language == "sh":
            yield from (line.split("#")[0].strip() for line in block.splitlines() if line.startswith("plan "))
    yield from _CODE.findall(_FENCE.sub("", text))


def mistake(command: str) -> str:
    """What is wrong with a command; "" when there is such a one."""
    words, at = shlex.split(command)[1:], PLAN
    while words and not words[0].startswith("-") and hasattr(at, "commands"):
        if words[0] not in at.commands:
            # "plan/v1", "plan COMMAND --help": words that stand for others
            return "" if words[0].isupper() else f"no command {words[0]}"
        at, words = at.commands[words[0]], words[1:]
    known = set(options(at))
    unknown = [word for word in words if word.startswith("-") and word not in known]
    return f"{at.name} has no option {unknown[0]}" if unknown else ""


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    yield from ("-h", "--help", "-v", "-vv")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_running_text_exist(page: Path) -> None:
    commands = list(named(page.read_text(encoding="utf-8")))
    assert [f"{one}: {said}" for one in commands if (said := mistake(one))] == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("plan solve mine.yaml --best 5", ""),
        ("plan catalog show h100-sxm-80gb", ""),
        ("plan COMMAND --help", ""),
        ("plan sovle mine.yaml", "no command sovle"),
        ("plan solve --bets 5", "solve has no option --bets"),
        ("plan catalog shwo", "no command shwo"),
    ],
)
def test_mistakes_are_seen(command: str, said: str) -> None:
    assert mistake(command) == said
