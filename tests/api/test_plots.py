"""Drawings of answers, as a notebook shows them and as files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import planner
from planner.answers.shown import Figure
from planner.errors import UsageError
from planner.report.notebook import PLOTS


@pytest.fixture(scope="module")
def found() -> planner.Plan:
    return planner.solve("gpt2-xl")


def test_a_plan_draws_what_is_asked_for(found: planner.Plan) -> None:
    assert [chart.id for chart in found.plot("memory", "schedule").charts] == ["memory-figure", "timeline-figure"]
    (deadline,) = found.plot("deadline").charts
    (here,) = [series for series in deadline.panels[0].series if series.name == "this plan"]
    assert [dot.y for dot in here.dots] == [found.cost_usd]


def test_without_a_name_all_that_there_is_is_drawn(found: planner.Plan) -> None:
    whole = found.plot()
    assert [chart.id for chart in whole.charts] == [
        "tradeoff-figure-1", "timeline-figure", "memory-figure", "band-figure",
    ]  # fmt: skip
    assert ElementTree.fromstring(whole._repr_svg_()).tag.endswith("svg")
    assert repr(whole).startswith("<Figure gpt2-xl")


def test_a_drawing_is_a_file(found: planner.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    found.plot("memory").write(path)
    assert path.read_text(encoding="utf-8") == found.plot("memory").to_svg()
    with pytest.raises(UsageError, match=r"what form is .*plan\.png"):
        found.plot("memory").write(tmp_path / "plan.png")


def test_what_cannot_be_drawn_says_so(found: planner.Plan) -> None:
    with pytest.raises(UsageError, match="there is no drawing 'memmory'") as refused:
        found.plot("memmory")
    assert all(name in str(refused.value) for name in PLOTS)
    with pytest.raises(UsageError, match="nothing to draw for latency"):
        found.plot("latency")


def test_a_frontier_draws_its_points() -> None:
    swept = planner.frontier("gpt2-xl", over="deadline", low="2d", high="30d")
    figure = swept.plot()
    assert isinstance(figure, Figure)
    (chart,) = figure.charts
    assert sum(len(series.dots) for series in chart.panels[0].series) == len(swept.points) > 1
    one = type(swept)(document={**swept.document, "points": swept.points[:1]})
    with pytest.raises(UsageError, match="fewer than two plans"):
        one.plot()
