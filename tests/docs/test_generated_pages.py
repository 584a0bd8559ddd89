"""Pages made from code are what the generator gives now, and say all that there is to say."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.equations.registry import REGISTRY

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate" / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[[], dict[str, str]] = module.pages
    return made()


def test_no_page_is_stale(pages: dict[str, str]) -> None:
    stale = [name for name, text in pages.items() if (DOCS / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_pages_of_chapters_that_are_gone_are_gone(pages: dict[str, str]) -> None:
    there = {f"model/{path.name}" for path in (DOCS / "model").glob("*.md")}
    assert there == {name for name in pages if name.startswith("model/")}


def test_every_equation_has_a_section_of_its_own(pages: dict[str, str]) -> None:
    text = "\n".join(text for name, text in pages.items() if name.startswith("model/"))
    mine = [one for one, each in REGISTRY.items() if each.__module__.startswith("planner.")]
    assert len(mine) > 150
    for identifier in mine:
        assert text.count(f"### {identifier}\n") == 1
        assert f"#{identifier.lower()})" in pages["model.md"]
