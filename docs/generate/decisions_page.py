"""docs/decisions/README.md: the notes in order, by their own titles."""

from __future__ import annotations

import re
from pathlib import Path

from markup import link, table

FOLDER = Path(__file__).parents[1] / "decisions"
_TITLE = re.compile(r"# (\d{4})(?: ·|:)? (.+)")

HEAD = """\
# Decisions

<!-- made by `make docs` from the notes of this folder; change those -->

Why things are as they are, half a page each. A wall of the house that is moved, a dependency that comes or goes,
a way of doing things that a newcomer would ask about: write the next number and run `make docs`."""


def decisions_page() -> dict[str, str]:
    """Path below docs/ -> text."""
    rows = []
    for path in sorted(FOLDER.glob("[0-9]*.md")):
        found = _TITLE.match(path.read_text(encoding="utf-8").splitlines()[0])
        if found is None or found[1] != path.name[:4]:
            raise ValueError(f"{path.name} does not begin with '# {path.name[:4]} Title'")
        title = found[2][0].upper() + found[2][1:]
        rows.append([found[1], link(title, path.name)])
    return {"decisions/README.md": f"{HEAD}\n\n{table(('', 'Decision'), rows)}\n"}
