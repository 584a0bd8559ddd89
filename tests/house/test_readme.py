"""The README promises what the product does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner import api
from planner.scenario.load import parse_scenario
from tests.cli.conftest import Run, here, run  # noqa: F401

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_shown_output_is_real(here: Path, run: Run) -> None:  # noqa: F811
    real = re.sub(r" · solved in [\d.]+ s", "", run("solve", "scenarios/llama.yaml").out)
    more = "> more advice: -v\n"  # as many pieces as there is time for, and warnings in the lines that they leave
    warning = re.compile(r"! .*\n(?:  .*\n)*")
    advice = re.compile(rf"\n(?:> .*\n(?:  .*\n)+)+(?:{more})?|\n{more}")
    shown = blocks("text")[0]
    assert len(shown.splitlines()) > 15
    told = [[one for one in warning.findall(text) if "--show warnings" not in one] for text in (shown, real)]
    assert all(told)
    for said in zip(*told):
        short, long = sorted((" ".join(one.split()).partition(" …")[0] for one in said), key=len)
        assert long.startswith(short)  # as much of it as there are lines
        assert len(short) > len("! pretrain-8b on h100-sxm-80gb")  # more of it than its subject
    shown, real = (warning.sub("", advice.sub("", text)) for text in (shown, real))
    assert shown == real


def test_own_scenario_solves() -> None:
    scenario = parse_scenario(blocks("yaml")[0], file="mine.yaml")
    assert api.solve(scenario).status == "optimal"


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|docs|scenarios|benchmarks)/[\w/.]*)`", README))))
def test_named_paths_exist(path: str) -> None:
    assert (ROOT / path).exists()
