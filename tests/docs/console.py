"""Pages with commands: what a page tells the reader to save and to type, and what it says comes out.

A block below a line that ends in "as `assistant.yaml`:" is a file that the reader saves. In a ``console`` block a line
that begins with "$ " is typed, the lines below it are printed by it: in this order, one right after the other, with
anything left out where a line is "...". A line that ends in "..." shows its beginning only.
"""

from __future__ import annotations

import difflib
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

GAP = "..."
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LAYOUT = re.compile(r"`((?:dp|tp|pp|cp|ep)\d+(?: [a-z][\w×-]*)+)`")
_SAVED = re.compile(r"\bas `([\w./-]+)`:$")


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that the reader is told to save."""

    name: str
    text: str

    def into(self, folder: Path) -> None:
        """Save it."""
        (folder / self.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / self.name).write_text(self.text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Typed:
    """A command, the lines that the page shows of its output, and where in the page those stand."""

    command: str
    shown: tuple[str, ...]
    start: int


def steps(page: str) -> Iterator[Saved | Typed]:
    """Files and commands in the order of the page."""
    for block in _BLOCK.finditer(page):
        language, text = block.groups()
        if language == "console":
            yield from _typed(text, page.count("\n", 0, block.start(2)))
        elif found := _SAVED.search(" ".join(page[: block.start()].rsplit("\n\n", 2)[-2].split())):
            yield Saved(found[1], text)


def layouts(page: str) -> list[str]:
    """Layouts that are quoted between the blocks of a page: two parts of one or more, `dp8 zero-3 mb2×15`."""
    return _LAYOUT.findall(_BLOCK.sub("", page))


def shows(page: str, layout: str) -> bool:
    """Whether a console block of a page prints a layout."""
    printed = [text for language, text in _BLOCK.findall(page) if language == "console"]
    return any(re.search(rf"(?<!\S){re.escape(layout)}(?!\S)", text) for text in printed)


def _typed(text: str, line: int) -> Iterator[Typed]:
    lines = text.splitlines()
    starts = [number for number, content in enumerate(lines) if content.startswith("$ ")]
    assert starts[:1] == [0], "a console block begins with a command"
    for start, stop in zip(starts, [*starts[1:], len(lines)]):
        yield Typed(lines[start][2:], tuple(lines[start + 1 : stop]), line + start + 1)


def runs(shown: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines that stand together, with the number of the first, parted by gaps."""
    first, together = 0, []
    for number, line in enumerate([*shown, GAP]):
        if line.strip() == GAP:
            if together:
                yield first, together
            first, together = number + 1, []
        else:
            together.append(line)


def missing(shown: Sequence[str], printed: str) -> list[str]:
    """The first run of shown lines that the output does not have after those before it; empty when all are there."""
    lines, at = [line.rstrip() for line in printed.splitlines()], 0
    for _, together in runs(shown):
        places = (i for i in range(at, len(lines) - len(together) + 1) if _same(together, lines[i:]))
        place = next(places, None)
        if place is None:
            return together
        at = place + len(together)
    return []


def _same(shown: Sequence[str], printed: Sequence[str]) -> bool:
    return all(
        real.startswith(line[: -len(GAP)].rstrip()) if line.endswith(GAP) else real == line.rstrip()
        for line, real in zip(shown, printed)
    )


def nearest(together: Sequence[str], printed: str) -> list[str]:
    """As many lines of the output as are shown, those most like them: what a page that is out of date should say."""
    lines = [line.rstrip() for line in printed.splitlines()]
    windows = [lines[i : i + len(together)] for i in range(max(1, len(lines) - len(together) + 1))]
    told = "\n".join(together)
    best = max(windows, key=lambda window: difflib.SequenceMatcher(None, told, "\n".join(window), False).ratio())
    return [
        real[: len(line) - len(GAP)].rstrip() + " " + GAP if line.endswith(GAP) else real
        for line, real in zip(together, best)
    ]


def outside(command: str, folder: Path) -> tuple[int, str]:
    """Run a command that is not plan's: exit code and output."""
    ran = subprocess.run(shlex.split(command), cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr
