"""The page of a report: ten sections, every figure with its table, nothing from outside, readable without eyes."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.report import plan_words as words
from planner.report import screen_words as said
from planner.report.alternatives_view import because_lines
from planner.report.charts import Box, Chart, Panel
from planner.report.html import page_parts
from planner.report.html.pages import render_page, sections_of
from planner.report.report_view import report_document
from tests.report.pages import Read, assert_inert, drawn, read, structure
from tests.shipped import plan

Document = dict[str, Any]
DECIDED = ["allocation", "timeline", "memory", "cost"]
FOLDED = ["alternatives", "sources", "rejected", "made"]
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
def test_sections_in_their_order_those_that_are_asked_for_less_folded_at_the_end(name: str, pages: Pages) -> None:
    report, _, page = pages(name)
    found = [e.attributes["id"] for e in page.all("section") if "aria-labelledby" in e.attributes]
    has_plan = report["plan"]["summary"]["cost_microusd"] is not None
    assert found == ["decision", *(DECIDED if has_plan else []), "tradeoff", *FOLDED]
    assert render_page(report).sections == len(found)
    folded = [e for e in page.all("details") if e.attributes.get("class") == "section"]
    assert len(folded) == len(FOLDED)
    assert not any("open" in one.attributes for one in folded)
    assert page.all("header")
    assert page.all("footer")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_answer_stands_before_all_else(name: str, pages: Pages) -> None:
    """What is decided in the words of the first screen, total and range, three reasons at most, before any section."""
    report, _, page = pages(name)
    plan = report["plan"]
    (decision,) = [e for e in page.all("p") if e.attributes.get("class") == "decision"]
    assert decision.text == said.decided(plan)
    order = [e.attributes.get("class", e.attributes.get("id", "")) for e in page.elements]
    assert order.index("decision") < order.index("row")
    cost = plan["summary"]["cost_microusd"]
    totals = [e.text for e in page.all("strong") if e.parents[-1:] == ("p",)]
    assert (cost is None) or totals[0] == words.money(plan, cost)
    reasons = [e.text for e in page.all("li") if e.text in because_lines(plan)]
    assert reasons[:3] == page_parts.reasons(plan)[0]
    first, others = page_parts.reasons(plan)
    assert sorted(first + others) == sorted(because_lines(plan))


def test_reasons_begin_with_the_largest_workload_and_tell_of_each_before_a_second(pages: Pages) -> None:
    plan = pages("portfolio")[0]["plan"]
    taken = {w["name"]: sum(row["device_hours"] for row in w["allocations"]) for w in plan["workloads"]}
    told = [line.partition(":")[0] for line in page_parts.reasons(plan)[0]]
    assert told == sorted(taken, key=taken.__getitem__, reverse=True)[:3]


@pytest.mark.parametrize("name", ["infeasible", "too-big"])
def test_the_cheapest_way_out_stands_first(name: str, pages: Pages) -> None:
    from planner.report.next_words import how

    report, _, page = pages(name)
    facts = report["plan"]["infeasible"]
    enough = [way for way in facts["ways_out"] if way["to"] is not None and way["cost_microusd"] is not None]
    commands = [e.text for e in page.all("code")]
    if enough:
        least = min(enough, key=lambda way: way["cost_microusd"])
        assert commands[0].startswith("plan solve ")
        assert commands[0].endswith(how(least))
    else:
        assert facts["combined"] is None or commands[0].count("--set") >= 1
    assert "There is no plan" not in page.by_id("decision").text


@pytest.mark.parametrize("name", ["llama", "fleet", "infeasible", "portfolio"])
def test_structure_is_the_golden_one(name: str, pages: Pages, golden: Any) -> None:
    golden(f"{name}.html.txt", structure(pages(name)[2]))


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_runs_and_nothing_leads_out(name: str, pages: Pages) -> None:
    _, text, page = pages(name)
    assert_inert(page)
    assert len(text.encode()) <= 1_500_000


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
        if element.tag == "svg" and "id" in element.attributes:
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
def test_figures_stand_inside_their_frames(name: str, pages: Pages) -> None:
    report, _, page = pages(name)
    charts = charts_of(report)
    assert list(drawn(page)) == list(charts)
    for chart in charts.values():
        assert any(series for panel in chart.panels for series in panel.series)
        for panel in chart.panels:
            for x, y in _places(panel):
                assert -1e-9 <= panel.x.share(x) <= 1 + 1e-9, (chart.id, x)
                assert -1e-9 <= panel.y.share(y) <= 1 + 1e-9, (chart.id, y)


def charts_of(report: Document) -> dict[str, Chart]:
    return {part.id: part for section in sections_of(report) for part in section.parts if isinstance(part, Chart)}


def _places(panel: Panel) -> Iterator[tuple[float, float]]:
    for series in panel.series:
        yield from ((x, y) for x, y, _ in series.dots)
        yield from (place for path in series.paths for place in path)
        for box in series.boxes:
            yield from ((box.left, box.low), (box.right, box.high))


def boxes_of(chart: Chart) -> list[Box]:
    return [box for panel in chart.panels for series in panel.series for box in series.boxes]


def test_bars_of_memory_add_up_to_what_is_needed(pages: Pages) -> None:
    report, *_ = pages("llama")
    chart = charts_of(report)["memory-figure"]
    rows = [row for workload in report["plan"]["workloads"] for row in workload["allocations"]]
    (limits,) = [series.dots for series in chart.panels[0].series if series.name == "usable memory"]
    for place, row in enumerate(rows):
        mine = sorted((box.left, box.right) for box in boxes_of(chart) if box.low < place < box.high)
        assert mine[0][0] == 0.0
        assert all(after[0] == before[1] for before, after in itertools.pairwise(mine))
        assert mine[-1][1] == pytest.approx(row["memory"]["needed_bytes"] / 1e9, rel=1e-9)
        assert limits[place].x == row["memory"]["usable_bytes"] / 1e9


def test_bars_of_cost_add_up_to_the_total(pages: Pages) -> None:
    report, *_ = pages("portfolio")
    total = report["budget"]["totals"]["total_microusd"] / 1e6
    charts = charts_of(report)
    lying = sum(box.right - box.left for box in boxes_of(charts["cost-workload-figure"]))
    standing = sum(box.high - box.low for box in boxes_of(charts["cost-month-figure"]))
    assert (lying, standing) == (pytest.approx(total, rel=1e-12), pytest.approx(total, rel=1e-12))


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
    assert shlex.split(page_parts.command(plan)) == [
        "plan", "report", plan["scenario_file"], "--case", "it's busy",
        "--set", "training.a b.tokens=$(1B)", "-o", "html",
    ]  # fmt: skip


def test_what_would_win_is_the_price_at_which_costs_are_equal() -> None:
    from planner.report.html.pages import would_win

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
    (panel,) = charts_of(report)["tradeoff-figure-1"].panels
    (here,) = [series for series in panel.series if series.name == "this plan"]
    assert [dot.y for dot in here.dots] == [plan.document["summary"]["cost_usd"]]
    assert drawn(read(render_page(report).text))["tradeoff-figure-1"]["star"] == 1


@pytest.mark.parametrize("name", ["llama", "old-cards"])
def test_what_the_scenario_names_has_a_line_each(name: str, shipped: Catalog) -> None:
    """Used or why not, of each group of owned machines, each device and each provider."""
    solved = plan(name)
    page = read(render_page(report_document(solved, shipped)).text)
    cells = [cell.text for cell in (*page.all("td"), *page.all("th"))]
    assert solved["named"]
    for one in solved["named"]:
        assert one["name"] in cells
        assert one["text"] in cells
