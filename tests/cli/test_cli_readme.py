"""The screen that the README shows is the one that is printed, but for advice, which comes as time allows, and for
warnings, which take the lines that advice leaves.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("answered_once")
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def without_advice(screen: str) -> list[str]:
    """Its lines, without advice with the commands below it, without warnings, and without the time that it took."""
    lines = re.sub(r" · solved in [0-9.]+ s|^> more advice: -v$", "", screen, flags=re.MULTILINE).splitlines()
    kept, told = [], False
    for line in lines:
        told = line.startswith(("> ", "! ")) or (told and line.startswith("  "))
        kept += [line] if line and not told else []
    return kept


def test_the_screen_of_the_readme_is_what_is_printed(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (shown,) = re.findall(r"<!-- output of: (plan .*) -->\n```text\n(.*?)```", README, re.DOTALL)
    found = run(*shown[0].split()[1:])
    assert without_advice(shown[1]) == without_advice(found.out)
