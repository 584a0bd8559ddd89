"""docs/catalog.md names every reference of the check, every column and key; its examples are run by tests/docs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from planner.catalog import offers, own, shapes
from planner.catalog.devices import PATTERNS, PRECISIONS
from planner.catalog.reading import STATUSES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "catalog.md").read_text(encoding="utf-8")


def references(name: str) -> set[str]:
    """References that the rules of the check give to `error` or `warning`."""
    found: set[str] = set()
    for path in [ROOT / "planner" / "catalog" / "check.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else {"recalled-facts", "inferred-facts"}
    return {text for text in found if isinstance(text, str)}


@pytest.mark.parametrize(("name", "title"), [("error", "Error"), ("warning", "Warning")])
def test_every_check_is_told(name: str, title: str) -> None:
    table = PAGE.split(f"| {title} | |\n")[1].split("\n\n")[0]
    told = {word for line in table.splitlines() for word in re.findall(r"`([a-z-]+)`", line.split("|")[1])}
    known = references(name) - ({"spot-above-on-demand"} if name == "warning" else set())
    assert told == known


def test_every_column_and_key_is_told() -> None:
    words = set(re.findall(r"[\w-]+", PAGE))
    columns = {*offers.REQUIRED, *offers.OPTIONAL, *shapes.REQUIRED, *shapes.OPTIONAL} - {
        "start_rule", "cancel_rule", "min_shapes", "interruptible", "mean_hours_between_interruptions",
    }  # fmt: skip
    assert columns <= words
    assert {
        *STATUSES,
        *PATTERNS,
        *PRECISIONS,
        *shapes.KINDS,
        *offers.PRICE_MODELS,
        *filter(None, offers.QUALITIES),
    } <= words
    assert {*own._ACTIONS, *own._PATTERN, "fraction", "because"} <= words


def test_its_examples_are_run() -> None:
    """tests/docs runs every page with a console block: this one saves and types."""
    assert PAGE.count("```console") >= 7
    saved = re.findall(r"as\s+`([\w./-]+)`:\n\n```(?:yaml|csv)", PAGE)
    assert len(saved) == PAGE.count("```yaml") + PAGE.count("```csv")
