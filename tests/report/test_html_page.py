"""The page of a report: ten sections, every figure with its table, nothing from outside, readable without eyes."""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.files import read_package_text
from planner.report.html import figures as looks
from planner.report.html import opening
from planner.report.html.page import render_page
from planner.report.report_document import report_document
from tests.report.pages import Read, assert_inert, figures_of, read, structure
from tests.shipped import plan

Document = dict[str, Any]
SECTIONS = ["decision", "allocation", "timeline", "memory", "cost", "tradeoff", "alternatives", "sources", "rejected"]
SAMPLES = ["llama", "fleet", "infeasible", "portfolio", "feasible", "stopped", "too-big"]


def report_of(plan: Document, catalog: Catalog) -> Document:
    """With a front for each training job, made of its alternatives: nothing is searched here."""
    fronts = [
        {
            "workload": workload["name"], "jobs": 1, "start_hours": 0.0, "confidence": 0.9,
            "deadline_hours": workload["demand"].get("deadline_hours", 720.0),
            "points": _points(workload), "chosen": None,
        }
        for workload in plan["workloads"]
        if workload["kind"] == "training"
    ]  # fmt: skip
    return report_document(plan, catalog, tradeoffs=fronts)


def _points(workload: Document) -> list[Document]:
    return [
        {
            **{key: other[key] for key in ("device", "offer", "count", "devices", "cost_microusd", "cost_usd")},
            "finish_hours": other["hours"], "finish_at_confidence_hours": 1.1 * other["hours"],
            "on_time": place > 0, "here": place == 0,
        }
        for place, other in enumerate(workload["alternatives"][:4])
    ]  # fmt: skip


@pytest.fixture(scope="module")
def pages(shipped: Catalog) -> Callable[[str], tuple[Document, str, Read]]:
    from tests.report.conftest import plan_named

    made: dict[str, tuple[Document, str, Read]] = {}

    def page(name: str) -> tuple[Document, str, Read]:
        if name not in made:
            report = report_of(plan_named(name), shipped)
            text = render_page(report).text
            made[name] = (report, text, read(text))
        return made[name]

    return page


Pages = Callable[[str], tuple[Document, str, Read]]


@pytest.mark.parametrize("name", SAMPLES)
def test_ten_sections_in_their_order(name: str, pages: Pages, shipped: Catalog) -> None:
    report, _, page = pages(name)
    found = [e.attributes["id"] for e in page.all("section") if "aria-labelledby" in e.attributes]
    assert found == SECTIONS
    assert render_page(report).sections == 10
    assert page.all("header")
    assert page.all("footer")


@pytest.mark.parametrize("name", ["llama", "fleet", "infeasible", "portfolio"])
def test_structure_is_the_golden_one(name: str, pages: Pages, golden: Any) -> None:
    golden(f"{name}.html.txt", structure(pages(name)[2]))


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_runs_but_its_own_scripts_and_nothing_leads_out(name: str, pages: Pages) -> None:
    _, text, page = pages(name)
    assert_inert(page)
    assert len(text.encode()) <= 6_000_000


@pytest.mark.parametrize("name", SAMPLES)
def test_readable_without_eyes(name: str, pages: Pages) -> None:
    _, _, page = pages(name)
    assert page.all("html")[0].attributes["lang"] == "en"
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = [link.attributes["href"] for link in page.all("a")]
    assert targets
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(head.attributes["scope"] in ("col", "row") for head in page.all("th"))
    for element in page.elements:
        if "figure" in element.attributes.get("class", "").split():
            assert element.attributes["role"] == "img"
            assert "table below" in element.attributes["aria-label"]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_figure_is_followed_by_a_table_of_its_section(name: str, pages: Pages) -> None:
    _, _, page = pages(name)
    order = [e for e in page.elements if e.tag in ("figure", "table") or "aria-labelledby" in e.attributes]
    for place, element in enumerate(order):
        if element.tag == "figure":
            after = next(e.tag for e in order[place + 1 :] if e.tag != "figure")
            assert after == "table"


@pytest.mark.parametrize("name", SAMPLES)
def test_figures_follow_plotly_and_hold_numbers(name: str, pages: Pages) -> None:
    import plotly.graph_objects as go

    _, _, page = pages(name)
    if not page.all("figure"):
        pytest.skip("nothing to draw")
    drawn = figures_of(page)
    shown = [e.attributes["id"] for e in page.elements if "figure" in e.attributes.get("class", "").split()]
    assert list(drawn) == shown
    for figure in drawn.values():
        go.Figure(figure)  # raises where a name or a value is not plotly's
        assert figure["data"]
        for value in _numbers(figure):
            assert math.isfinite(value)


def _numbers(piece: Any) -> Iterator[float]:
    if isinstance(piece, dict):
        piece = list(piece.values())
    if isinstance(piece, list):
        for one in piece:
            yield from _numbers(one)
    elif isinstance(piece, float):
        yield piece


def test_bars_of_memory_add_up_to_what_is_needed(pages: Pages) -> None:
    report, _, page = pages("llama")
    traces = figures_of(page)["memory-figure"]["data"]
    rows = [row for workload in report["plan"]["workloads"] for row in workload["allocations"]]
    for place, row in enumerate(rows):
        stacked = sum(trace["x"][place] for trace in traces if trace["type"] == "bar")
        assert stacked == pytest.approx(row["memory"]["needed_bytes"] / 1e9, rel=1e-9)
        (usable,) = [trace["x"][place] for trace in traces if trace["name"] == "usable memory"]
        assert usable == row["memory"]["usable_bytes"] / 1e9


def test_bars_of_cost_add_up_to_the_total(pages: Pages) -> None:
    report, _, page = pages("portfolio")
    total = report["budget"]["totals"]["total_microusd"] / 1e6
    drawn = figures_of(page)
    assert sum(map(sum, (t["x"] for t in drawn["cost-workload-figure"]["data"]))) == pytest.approx(total, rel=1e-12)
    assert sum(map(sum, (t["y"] for t in drawn["cost-month-figure"]["data"]))) == pytest.approx(total, rel=1e-12)


def test_every_trace_is_told_apart_without_colour() -> None:
    seen = {(looks.COLOURS[n], looks.PATTERNS[n]) for n in range(len(looks.COLOURS))}
    assert len(seen) == len(looks.COLOURS) == len(looks.PATTERNS)
    patterns = looks.PATTERNS[:8]  # more than eight kinds of things stand in no figure
    assert len(set(patterns)) == len(patterns)


def test_the_key_has_the_colours_of_the_figures() -> None:
    style = read_package_text("report/html/page.css")
    named = dict(re.findall(r"\.fill-(\d) \{ --c: (#[0-9a-f]{6})", style))
    assert [named[str(n)] for n in range(len(looks.COLOURS))] == list(looks.COLOURS)


def test_the_same_report_gives_the_same_bytes(shipped: Catalog) -> None:
    from tests.report.conftest import plan_named

    first = render_page(report_of(plan_named("llama"), shipped)).text
    assert render_page(copy.deepcopy(report_of(plan_named("llama"), shipped))).text == first


def test_a_budget_has_a_bar_and_words(pages: Pages, shipped: Catalog) -> None:
    report, *_ = pages("llama")
    (limit,) = [one for one in report["plan"]["limits"] if one["name"] == "limits.budget"]
    plan = {**report["plan"], "limits": [{**limit, "bound": 2 * limit["used"]}]}
    page = read(render_page(report_of(plan, shipped)).text)
    (bar,) = [e for e in page.elements if e.attributes.get("class") == "budget"]
    assert "50 % free" in bar.attributes["aria-label"]
    (inside,) = [e for e in page.elements if e.attributes.get("class") == "bar"]
    assert inside.attributes["style"] == "width: 50.0%"


def test_the_command_makes_the_page_again_whatever_its_words_are(pages: Pages) -> None:
    import shlex

    plan = {**pages("llama")[0]["plan"], "case": "it's busy", "settings": ["training.a b.tokens=$(1B)"]}
    assert shlex.split(opening.command(plan)) == [
        "plan", "report", plan["scenario_file"], "--case", "it's busy",
        "--set", "training.a b.tokens=$(1B)", "-o", "html",
    ]  # fmt: skip


def test_what_would_win_is_the_price_at_which_costs_are_equal() -> None:
    from planner.report.html.sections import would_win

    plan = {"scenario": {}}
    workload = {"cost_microusd": 60_000_000, "allocations": [{"funding": "on_demand"}]}
    other = {"cost_microusd": 100_000_000, "devices": 10, "hours": 4.0}
    assert would_win(plan, workload, other) == "its price fell below $1.50 /device-h (now $2.50)"
    assert "no dearer" in would_win(plan, workload, {**other, "cost_microusd": 60_000_000})
    assert would_win(plan, {**workload, "allocations": [{"funding": "reserved"}]}, other) == ""


def test_a_plan_of_the_library_becomes_a_page(shipped: Catalog) -> None:
    from tests.report.conftest import ROOT

    scenario = api.load_scenario(ROOT / "scenarios/gpt2-xl.yaml")
    plan = api.solve(scenario, shipped)
    report = api.report(plan.document, shipped, scenario=scenario)
    page = read(render_page(report).text)
    assert "tradeoff-figure-1" in figures_of(page)
    (here,) = [t for t in figures_of(page)["tradeoff-figure-1"]["data"] if t.get("name") == "this plan"]
    assert here["y"] == [plan.document["summary"]["cost_usd"]]


@pytest.mark.parametrize("name", ["llama", "old-cards"])
def test_what_the_scenario_names_has_a_line_each(name: str, shipped: Catalog) -> None:
    """Used or why not, of each group of owned machines, each device and each provider, in the decision."""
    solved = plan(name)
    page = read(render_page(report_document(solved, shipped)).text)
    cells = [cell.text for cell in (*page.all("td"), *page.all("th"))]
    assert solved["named"]
    for one in solved["named"]:
        assert one["name"] in cells
        assert one["text"] in cells
