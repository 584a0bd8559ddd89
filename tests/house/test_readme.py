"""The README promises what the product does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner import api
from planner.report.plan import render_plan
from planner.scenario.load import parse_scenario

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def steady(text: str) -> list[str]:
    """Lines without what changes from run to run: seconds, versions, digests, the folding of the header."""
    return [line for line in text.splitlines()[4:] if "proven (gap" not in line]


def test_shown_output_is_real() -> None:
    plan = api.solve(api.load_scenario(ROOT / "scenarios" / "llama.yaml"))
    real = render_plan(plan.document, "table", width=100, colour=False)
    shown = steady(blocks("text")[0])
    assert len(shown) > 20
    assert shown == steady(real)[: len(shown)]


def test_own_scenario_solves() -> None:
    scenario = parse_scenario(blocks("yaml")[0], file="mine.yaml")
    assert api.solve(scenario).status == "optimal"


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|docs|scenarios|benchmarks)/[\w/.]*)`", README))))
def test_named_paths_exist(path: str) -> None:
    assert (ROOT / path).exists()
