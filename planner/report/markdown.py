"""Blocks drawn as GitHub Markdown: fits a comment in a pull request, details folded."""

from __future__ import annotations

from collections.abc import Iterable

from planner.report.blocks import EVEN, Block, Cards, Grid, Headline, Items, Lines, Said, Timeline
from planner.report.escape import markdown as safe
from planner.report.escape import terminal

_BAR = 40  # characters of a bar


def draw(blocks: Iterable[Block], *, summary: str = "Details") -> str:
    """Open blocks first, then the folded ones inside one <details>."""
    blocks = list(blocks)
    parts = [_draw(block, title=block is blocks[0]) for block in blocks if not getattr(block, "folded", False)]
    folded = [_draw(block) for block in blocks if getattr(block, "folded", False)]
    folded = [part for part in folded if part]
    if folded:
        parts += [f"<details><summary>{safe(summary)}</summary>", *folded, "</details>"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _draw(block: Block, *, title: bool = False) -> str:
    if isinstance(block, Headline):
        return "  \n".join([f"**{safe(block.word)}** {safe(block.text)}", *map(safe, block.right)])
    if isinstance(block, Lines):
        lines = [safe(line) for line in block.lines]
        if block.strong_first and lines:
            lines[0] = f"### {lines[0]}" if title else f"**{lines[0]}**"
        return "\n\n".join(lines[:1]) + ("\n\n" + "  \n".join(lines[1:]) if lines[1:] else "")
    if isinstance(block, Items):
        if not block.items:
            return ""
        return "\n".join([f"**{safe(block.title)}**", "", *(f"- {safe(item)}" for item in block.items)])
    if isinstance(block, Cards):
        return "\n".join("- " + "  \n  ".join([_card(row), *map(safe, lines)]) for row, lines in block.rows)
    if isinstance(block, Said):
        return "\n".join("- " + "  \n  ".join([safe(row[0]), *map(_code, row[1:])]) for row in block.rows)
    return _grid(block.grid(_BAR, EVEN) if isinstance(block, Timeline) else block)


def _card(cells: Iterable[str]) -> str:
    name, *others = cells
    return " · ".join([f"**{safe(name)}**", *(safe(cell) for cell in others if cell)])


def _code(text: str) -> str:
    """A command to copy: a span of code, which no backtick of a name may end."""
    shown = terminal(text)
    return safe(text) if "`" in shown or not shown else f"`{shown}`"


def _grid(block: Grid) -> str:
    if not block.rows and not block.notes:
        return ""
    title = [f"**{safe(block.title)}**", ""] if block.title else []
    head = _row([column.head or " " for column in block.columns])
    rule = "|" + "|".join("---:" if column.right else "---" for column in block.columns) + "|"
    notes = ["", "  \n".join(f"_{safe(note)}_" for note in block.notes)] if block.notes else []
    return "\n".join([*title, head, rule, *(_row(row) for row in block.rows), *notes])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(safe(cell) for cell in cells) + " |"
