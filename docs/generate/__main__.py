"""`python docs/generate`: write the pages of docs/ that are made from code; with --check, name those that are stale."""

from __future__ import annotations

import sys
from pathlib import Path

from architecture_page import architecture_page
from commands_page import commands_page
from decisions_page import decisions_page
from model_pages import model_pages
from readme_part import readme_part
from reliability_page import reliability_page
from scenario_page import scenario_page

from planner.files import write_text

DOCS = Path(__file__).parents[1]


def pages() -> dict[str, str]:
    """Path below docs/ -> text, of every page that is made from code."""
    rooms = (
        model_pages, scenario_page, reliability_page, decisions_page, commands_page, readme_part, architecture_page,
    )  # fmt: skip
    return {name: text for room in rooms for name, text in room().items()}


def stale() -> list[str]:
    """Pages that are not what the generator gives now."""
    found = []
    for name, text in pages().items():
        path = DOCS / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            found.append(name)
    return found


def _shown(name: str) -> Path:
    return (DOCS / name).resolve().relative_to(DOCS.parent.resolve())


def main() -> int:
    """Write the stale pages, or only name them with --check."""
    names = stale()
    if "--check" in sys.argv[1:]:
        for name in names:
            print(f"{_shown(name)} is stale: run make docs")
        return int(bool(names))
    made = pages()
    for name in names:
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(DOCS / name, made[name])
        print(f"wrote {_shown(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
