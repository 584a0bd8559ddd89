"""What a report is made of, before any format: headlines, paragraphs, bullets and grids.

A view turns a plan document into blocks once; text.py and markdown.py draw blocks. So no
view knows of escape codes, pipes or widths, and no drawer knows of plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TypeAlias

from planner.carriers import dataclass

_LEFT, _RIGHT, _FULL = "▕", "▏", "█"
FIXED, EVEN = "· ", "▒░"  # in the window of a bar and outside; the second where letters differ in width and blanks melt
_HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The answer in one line: a status with its tone, and what stands at the right of it."""

    word: str  # PLAN, INFEASIBLE
    text: str
    right: tuple[str, ...] = ()
    tone: str = "good"  # good | fair | bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of plain text; the first may stand out."""

    lines: tuple[str, ...]
    strong_first: bool = False
    folded: bool = False
    commands: bool = False  # some end in commands that are to be typed


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A title and bullets."""

    title: str
    items: tuple[str, ...]
    tone: str = ""
    folded: bool = False  # Markdown: inside the part that opens on a click


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a grid: its head, and whether numbers stand at the right."""

    head: str
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of text cells."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    title: str = ""
    folded: bool = False
    notes: tuple[str, ...] = field(default=())
    grouped: bool = False  # rows that begin alike belong together


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One line of a timeline: spans that are filled, or levels that rise and fall; places are shares of the axis."""

    spans: tuple[tuple[float, float], ...] = ()  # begin and end, 0 to 1
    window: tuple[float, float] = (0.0, 1.0)  # where spans might lie
    levels: tuple[float, ...] = ()  # 0 to 1, equally long parts of the axis; in place of spans

    def drawn(self, size: int, empty: str = FIXED) -> str:
        """The bar in `size` characters, its two ends included; what is filled shows even where it is narrow."""
        inner = max(1, size - 2)
        marks = [self._mark(number / inner, (number + 1) / inner, empty) for number in range(inner)]
        return _LEFT + "".join(marks) + _RIGHT

    def _mark(self, begin: float, end: float, empty: str) -> str:
        if self.levels:
            first, last = int(begin * len(self.levels)), math.ceil(end * len(self.levels) - 1e-9)
            height = max(self.levels[first : max(last, first + 1)], default=0.0)
            return empty[1] if height <= 0 else _HEIGHTS[min(len(_HEIGHTS) - 1, math.ceil(height * len(_HEIGHTS)) - 1)]
        if any(min(end, stop) - max(begin, start) > 1e-9 for start, stop in self.spans):
            return _FULL
        return empty[0] if min(end, self.window[1]) - max(begin, self.window[0]) > 1e-9 else empty[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Rows with a bar each on one axis: as wide as the page allows."""

    before: tuple[Column, ...]
    after: tuple[Column, ...]
    rows: Sequence[tuple[Sequence[str], Bar, Sequence[str]]]  # cells before the bar, the bar, cells after it
    axis: tuple[str, str]  # what stands at the two ends of the axis
    title: str = ""
    notes: tuple[str, ...] = field(default=())
    folded: bool = False

    def grid(self, size: int, empty: str = FIXED) -> Grid:
        """The table with bars of `size` characters."""
        first, last = self.axis
        head = first + " " * max(1, size - len(first) - len(last)) + last
        return Grid(
            columns=(*self.before, Column(head=head, right=True), *self.after),
            rows=[[*before, bar.drawn(size, empty), *after] for before, bar, after in self.rows],
            title=self.title,
            notes=self.notes,
            folded=self.folded,
            grouped=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """One thing a row: cells that stand under those of the others, and lines of detail below them."""

    rows: Sequence[tuple[Sequence[str], Sequence[str]]]  # cells, lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Sentences, each behind a mark that says what it is; the rest of a pair are commands, which are never cut."""

    mark: str  # one character
    rows: Sequence[tuple[str, ...]]  # a sentence, then commands
    tone: str = ""
    most_lines: int = 0  # of a sentence; 0 is all of it


Advice: TypeAlias = tuple[str, ...]  # what would save how much, and the command that does it
MORE_ADVICE: Advice = ("more advice: -v",)  # there is some that was not tried or has no room
Block: TypeAlias = Headline | Lines | Items | Grid | Timeline | Cards | Said


def columns(*heads: str) -> tuple[Column, ...]:
    """Columns from heads; a head that starts with '>' is a column of numbers."""
    return tuple(Column(head=head.removeprefix(">"), right=head.startswith(">")) for head in heads)


def warned(sentences: Sequence[str], shown: int = 8) -> Items:
    """What several plans warn of, the first of it: each has more to say than a table of them has room for."""
    more = (f"and {len(sentences) - shown} more in -o json",) if len(sentences) > shown + 1 else ()
    return Items(title="Warnings", items=(*(sentences[:shown] if more else sentences), *more), tone="fair")


def is_empty(block: Block) -> bool:
    """Whether a block shows nothing."""
    if isinstance(block, Grid | Timeline):
        return not block.rows and not block.notes
    if isinstance(block, Items):
        return not block.items
    if isinstance(block, Lines):
        return not any(line.strip() for line in block.lines)
    return isinstance(block, Cards | Said) and not block.rows


def unfolded(block: Block) -> Block:
    """A block that stands open in every format."""
    return replace(block, folded=False) if isinstance(block, Lines | Items | Grid | Timeline) else block
