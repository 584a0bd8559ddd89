"""What a page is made of: sections of tables (blocks.Grid), lists, lines and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from planner.carriers import dataclass
from planner.report.blocks import Block, Cards, Column, Grid, Headline, Items, Lines, Said, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One plotly figure, and the words for those who cannot see it."""

    id: str  # of its element
    title: str
    summary: str  # what it shows, and which table gives the same figures
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    height: int  # [px]
    key: Sequence[tuple[str, str]] = ()  # mark (a class of page.css) and what it stands for


Part: TypeAlias = Figure | Grid | Items | Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One numbered part of the page."""

    id: str
    title: str
    parts: Sequence[Part]
    lead: str = ""


def shown(blocks: Iterable[Block | Figure | None]) -> list[Part]:
    """Parts that have something to show; timelines as tables, since a page draws its bars as figures."""
    parts: list[Part] = []
    for block in blocks:
        if isinstance(block, Timeline):
            block = table_of(block)
        if block is None or isinstance(block, Headline | Cards | Said) or _empty(block):
            continue
        parts.append(block)
    return parts


def _empty(part: Part) -> bool:
    if isinstance(part, Grid):
        return not part.rows and not part.notes
    if isinstance(part, Items):
        return not part.items
    return isinstance(part, Lines) and not any(part.lines)


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
