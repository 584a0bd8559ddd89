"""The little Markdown that the generated pages are made of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 120


def link(text: str, target: str) -> str:
    """A link; the text may hold code marks."""
    return f"[{text}]({target})"


def prose(text: str) -> str:
    """Running text of a docstring: no HTML begins in it, and no link."""
    return text.replace("<", "&lt;").replace("](", "]\\(")


def paragraphs(text: str) -> str:
    """Our own running text, folded, so that a change of a word is a change of a line or two."""
    wrap = textwrap.TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(wrap.fill(" ".join(part.split())) for part in text.split("\n\n"))


def cell(text: str) -> str:
    """Text that stays in its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with the given heads."""
    lines = [heads, ["---"] * len(heads), *([cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
