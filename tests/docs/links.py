"""Links of Markdown pages and the anchors that repository hosts give their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+).+?\1")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_SOURCE = re.compile(r"<(?:img|source|a)\b[^>]*?(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_LINE = re.compile(r"L(\d+)")


def targets(text: str) -> Iterator[str]:
    """Where the links of a page lead, those in code left out."""
    prose = _FENCE.sub("", text)
    bare = _CODE.sub(lambda found: "x" * len(found[0]), prose)
    for pattern in (_LINK, _REFERENCE, _SOURCE):
        for found in pattern.finditer(bare):
            yield prose[found.start(1) : found.end(1)] if "`" not in found[1] else found[1]


def anchors(text: str) -> set[str]:
    """The anchors of a page: one a heading, repeated ones numbered."""
    seen: dict[str, int] = {}
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = "".join(letter for letter in plain.lower() if letter.isalnum() or letter in " -_").replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(slug if number == 0 else f"{slug}-{number}")
    return found


def broken(page: Path) -> Iterator[str]:
    """What is wrong with the links of a page that lead into the repository."""
    for target in targets(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        where = (page.parent / unquote(path)).resolve() if path else page
        if not where.exists():
            yield f"{target}: no such file"
        elif anchor and where.suffix == ".md" and anchor not in anchors(where.read_text(encoding="utf-8")):
            yield f"{target}: no such heading"
        elif (line := _LINE.fullmatch(anchor)) and int(line[1]) > len(where.read_text(encoding="utf-8").splitlines()):
            yield f"{target}: the file is shorter"
