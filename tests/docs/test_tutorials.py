"""Every command of the pages runs, in order, in an empty folder, and prints what the page says.

`PLAN_UPDATE_GOLDEN=1 python -m pytest tests/docs/test_tutorials.py` replaces shown lines that are out of date by the
nearest ones of the real output: read the difference before it is committed.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.docs import console

pytestmark = pytest.mark.usefixtures("answered_once")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```console" in page.read_text(encoding="utf-8"))
WIDTH = 100


class Reader:
    """Somebody who saves the files and types the commands."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.monkeypatch, self.code = folder, capsys, monkeypatch, 0

    def types(self, command: str) -> str:
        """What a command prints; the exit code is kept for `echo $?`."""
        if command == "echo $?":
            printed, self.code = f"{self.code}\n", 0
            return printed
        assert self.code == 0, f"exit code {self.code} before {command}: the page does not show it"
        words = shlex.split(command, comments=True)
        if words[0] != "plan":
            self.code, printed = console.outside(command, self.folder)
            return printed
        return self._plan(words[1:])

    def _plan(self, arguments: list[str]) -> str:
        from planner.cli.main import main

        self.monkeypatch.setattr(sys, "argv", ["plan", *arguments])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        self.code = ended.value.code if isinstance(ended.value.code, int) else int(ended.value.code is not None)
        out, err = self.capsys.readouterr()
        return out + err


@pytest.fixture
def reader(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    return Reader(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path, reader: Reader) -> None:
    text = page.read_text(encoding="utf-8")
    update = os.environ.get("PLAN_UPDATE_GOLDEN")
    for step in console.steps(text):
        if isinstance(step, console.Saved):
            step.into(reader.folder)
            continue
        printed = reader.types(step.command)
        if update and console.missing(step.shown, printed):
            _replace(page, step, printed)
            continue
        lost = console.missing(step.shown, printed)
        assert not lost, (
            f"{page.name}: {step.command}\n--- shown, but not printed:\n"
            + "\n".join(lost)
            + (f"\n--- printed:\n{printed}")
        )
    assert reader.code == 0, f"the last command ends with {reader.code}: show it with echo $?"


def _replace(page: Path, step: console.Typed, printed: str) -> None:
    """Put the nearest lines of the real output in the place of what is shown."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for first, together in console.runs(step.shown):
        if console.missing(together, printed):
            begin = step.start + first
            lines[begin : begin + len(together)] = console.nearest(together, printed)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_layout_that_prose_explains_is_one_that_the_page_shows(page: Path) -> None:
    """Blocks are brought up to date by running them, and prose beside them is not."""
    text = page.read_text(encoding="utf-8")
    assert [one for one in console.layouts(text) if not console.shows(text, one)] == []


def test_layouts_are_found_in_prose() -> None:
    page = (
        "`dp8 zero-3 mb2×15` and `dp8 tp2` are, `tp8` and `--tp 8` are words.\n\n```console\n$ plan solve `dp1 tp1`\n"
    )
    page += " tune  1  dp8 zero-3 mb2×15  2 days\n dp16 tp2\n```\n"
    assert console.layouts(page) == ["dp8 zero-3 mb2×15", "dp8 tp2"]
    assert [console.shows(page, one) for one in console.layouts(page)] == [True, False]


def test_there_is_a_tutorial_for_every_reader() -> None:
    assert {"engineer", "finance", "getting-started", "infrastructure-lead"} <= {page.stem for page in PAGES}


PAGE = """
Save this as `a.yaml`:

```yaml
name: a
```

And that as `folder/b.csv`:

```csv
x,y
1,2
```

This is for reading:

```yaml
name: c
```

```console
$ plan one --x 'y z'
first
...
  third line, of which ...
$ echo $?
0
```
"""


def test_a_page_is_read_in_its_order() -> None:
    first, second, typed, after = console.steps(PAGE)
    assert first == console.Saved("a.yaml", "name: a\n")
    assert second == console.Saved("folder/b.csv", "x,y\n1,2\n")
    assert isinstance(typed, console.Typed)
    assert (typed.command, typed.shown) == ("plan one --x 'y z'", ("first", "...", "  third line, of which ..."))
    assert PAGE.splitlines()[typed.start] == "first"
    assert isinstance(after, console.Typed)
    assert after.command == "echo $?"


@pytest.mark.parametrize(
    ("printed", "lost"),
    [
        ("zero\nfirst\n  third line, of which more\n", []),
        ("first\nsecond\n  third line, of which\n", []),
        ("  third line, of which\nfirst\n", ["  third line, of which ..."]),
        ("first \n", ["  third line, of which ..."]),
        ("firsts\n  third line, of which more\n", ["first"]),
    ],
)
def test_shown_lines_are_looked_for_in_order(printed: str, lost: list[str]) -> None:
    assert console.missing(("first", "...", "  third line, of which ..."), printed) == lost


def test_lines_without_a_gap_stand_together() -> None:
    assert console.missing(("a", "b"), "a\nb\n") == []
    assert console.missing(("a", "b"), "a\nx\nb\n") == ["a", "b"]


def test_what_is_out_of_date_is_replaced_by_the_nearest_lines() -> None:
    printed = "head\ntotal $1,977\n tune 2.74 of 7 days\nend\n"
    assert console.nearest(["total $2,011", " tune 2.70 of ..."], printed) == ["total $1,977", " tune 2.74 of ..."]
