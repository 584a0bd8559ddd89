"""The screen that the README shows is the one that is printed, but for advice, which comes as time allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("answered_once")
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def without_advice(screen: str) -> list[str]:
    """Its lines, without a piece of advice and the command below it, and without the time that it took."""
    lines = re.sub(r" · solved in [0-9.]+ s|^> more advice: -v$", "", screen, flags=re.MULTILINE).splitlines()
    advice = [number for number, line in enumerate(lines) if line.startswith("> ")]
    left_out = {number + more for number in advice for more in (0, 1)}
    kept = [line for number, line in enumerate(lines) if number not in left_out]
    return [line for line in kept if line]


def test_the_screen_of_the_readme_is_what_is_printed(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (shown,) = re.findall(r"<!-- output of: (plan .*) -->\n```text\n(.*?)```", README, re.DOTALL)
    found = run(*shown[0].split()[1:])
    assert without_advice(shown[1]) == without_advice(found.out)
