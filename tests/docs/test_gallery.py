"""The gallery says what its scenarios come to, and shows the drawings of these plans."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from planner.answers.plan_answer import Plan
from planner.report import screen_words as said
from planner.report.plan_words import money
from tests import shipped
from tests.tiers import sampled

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
SOURCE = ast.parse((ROOT / "docs" / "pictures.py").read_text(encoding="utf-8"))
DRAWN = next(
    ast.literal_eval(node.value)
    for node in SOURCE.body
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DRAWN"
)


def test_six_scenarios_each_with_its_drawing() -> None:
    assert len(DRAWN) == 6
    assert re.findall(r"^## ([\w-]+):", PAGE, re.MULTILINE) == [name for name, _ in DRAWN]
    assert re.findall(r"\(pictures/gallery/([\w-]+)\.svg\)", PAGE) == [name for name, _ in DRAWN]


@pytest.mark.parametrize(("name", "plot"), sampled(DRAWN, 2))
def test_the_gallery_shows_the_plans_of_now(name: str, plot: str) -> None:
    document = shipped.plan(name)
    section = " ".join(PAGE.split(f"## {name}:")[1].split("\n## ")[0].split())
    assert f"**{said.decided(document)}**" in section
    assert f"**{money(document, document['summary']['cost_microusd'])}**" in section
    drawn = (ROOT / "docs" / "pictures" / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
    anew = Plan(document=document).plot(plot).to_svg()
    if document.get("schedule"):  # jobs may start in other weeks at the same cost, as the solver's version has it
        assert re.findall(r"<text[^>]*>(.*?)</text>", anew) == re.findall(r"<text[^>]*>(.*?)</text>", drawn)
    else:
        assert anew == drawn
