"""What a page is made of: sections of rows, each a figure with its table beside it, or tables, lists and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from planner.carriers import dataclass
from planner.report.blocks import Block, Cards, Column, Grid, Headline, Items, Lines, Said, Timeline, is_empty
from planner.report.chart.model import Chart

Part: TypeAlias = Chart | Grid | Items | Lines | Said
_WIDE = 6  # columns of a table that has room beside a figure
_LONG = 8  # rows of a table beside a figure; a longer one is folded, since the figure says it already


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What stands side by side where there is room: figures, and what is read with them."""

    charts: Sequence[Chart]
    parts: Sequence[Part]

    @property
    def beside(self) -> bool:
        """Whether a figure stands beside its table, not above it: a wide or a folded table leaves no room for that."""
        return len(self.charts) == 1 and all(
            isinstance(part, Grid) and not part.folded and len(part.columns) <= _WIDE for part in self.parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One numbered part of the page."""

    id: str
    title: str
    parts: Sequence[Part]
    lead: str = ""
    folded: bool = False

    @property
    def rows(self) -> list[Row]:
        """Its parts, a figure with the table that gives the same figures."""
        return rows_of(self.parts)


def rows_of(parts: Sequence[Part]) -> list[Row]:
    """Figures that follow each other, and the table after them, are a row; everything else is one of its own."""
    rows: list[Row] = []
    charts: list[Chart] = []
    for part in parts:
        if isinstance(part, Chart):
            charts.append(part)
        elif charts:
            rows.append(Row(charts=charts, parts=[_told(part, charts[-1])]))
            charts = []
        else:
            rows.append(Row(charts=[], parts=[part]))
    return [*rows, *([Row(charts=charts, parts=[])] if charts else [])]


def _told(part: Part, beside: Chart) -> Part:
    """The table of a figure: folded where it is long, and never without a name."""
    if not isinstance(part, Grid) or len(part.rows) <= _LONG:
        return part
    return replace(part, folded=True, title=part.title or beside.title)


def shown(blocks: Iterable[Block | Chart | None]) -> list[Part]:
    """Parts that have something to show; timelines as tables, since a page draws its bars as figures."""
    parts: list[Part] = []
    for block in blocks:
        if isinstance(block, Timeline):
            block = table_of(block)
        if isinstance(block, Headline):
            block = Lines(lines=(f"{block.word}  {block.text}", *block.right))
        if isinstance(block, Chart) or not (block is None or isinstance(block, Cards) or is_empty(block)):
            parts.append(block)
    return parts


def table_of(timeline: Timeline) -> Grid:
    """A timeline without its bars."""
    return Grid(
        columns=(*timeline.before, *timeline.after),
        rows=[[*before, *after] for before, _, after in timeline.rows],
        title=timeline.title,
        notes=timeline.notes,
    )


def captioned(grid: Grid, title: str, *heads: str) -> Grid:
    """A table under a title of its own; its first columns get heads that say what stands in them."""
    columns = list(grid.columns)
    for number, head in enumerate(heads):
        columns[number] = Column(head=head, right=columns[number].right)
    return replace(grid, title=title, columns=tuple(columns), folded=False)


def without(grid: Grid, *places: int) -> Grid:
    """A table without some of its columns."""
    kept = [number for number in range(len(grid.columns)) if number not in places]
    return replace(
        grid, columns=tuple(grid.columns[n] for n in kept), rows=[[row[n] for n in kept] for row in grid.rows]
    )
