"""The calendar of a plan in every format: bars on one axis, nothing wider than the page, nothing that escapes."""

from __future__ import annotations

import copy
import csv
import io
import json
from typing import Any

import pytest

from planner import api
from planner.report import escape
from planner.report.blocks import Bar
from planner.report.explanation_view import render_explanation
from planner.report.plan_formats import render_plan
from planner.report.schedule_view import moment
from planner.report.text import cells
from tests.worlds import catalog, device, fleet, job, offer, scenario, shape

Document = dict[str, Any]


@pytest.fixture(scope="module")
def plan() -> Document:
    """A node under contract, a block that is topped up, a job that waits for another and one that pauses."""
    offers = [offer("north/one", 1.0), offer("north/one", 0.6, price_model="commitment_1y")]
    there = catalog([device()], [shape("north/one")], offers)
    block = {"shape": "north/one", "region": "r1", "price_model": "block", "price": "$0.5/h", "term": "10 days"}
    asked = scenario(
        [
            job("first", tokens="60B", deadline="8 days"),
            job("second", tokens="30B", deadline="12 days", after="first"),
            job("pauses", tokens="30B", deadline="12 days", schedule="elastic"),
        ],
        [fleet("chat")],
        horizon="12 days",
        periods="1 day",
        begin="2026-12-01",
        hardware={"contracts": [block], "pricing": ["on_demand", "commitment_1y"], "beyond_horizon": "prorate",
                  "owned": [{"shape": "north/one", "count": 1, "price": "$0.9/h", "sunk": "$1/h"}]},
        limits={"max_devices": 3},
    )  # fmt: skip
    document: Document = json.loads(api.solve(asked, there).to_json())
    assert document["contracts"]
    return document


def named(document: Document, names: dict[str, str]) -> Document:
    """The plan with other names, wherever they stand as a value."""

    def renamed(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: renamed(value) for key, value in node.items()}
        if isinstance(node, list):
            return [renamed(value) for value in node]
        return names.get(node, node) if isinstance(node, str) else node

    found: Document = renamed({key: value for key, value in document.items() if key != "scenario"})
    rejected = {names.get(name, name): ledger for name, ledger in document["rejected"].items()}
    return {**found, "scenario": document["scenario"], "rejected": rejected}


HOSTILE = {
    "chat": "\x1b[31mred\x07",
    "first": "=cmd()|'/c calc'!A1",
    "second": "<script>|</script>\n# head",
    "pauses": "\u202e漢字" + "字" * 30,
    "north/r1/one": "@SUM(1)|`x`\x1b]0;t\x07",
}


@pytest.mark.parametrize("width", range(80, 121, 8))
def test_no_line_is_wider_than_the_page(plan: Document, width: int) -> None:
    for document in (plan, named(plan, HOSTILE)):
        lines = render_plan(document, "table", width=width).splitlines()
        assert max(map(cells, lines)) <= width
    bars = [line for line in lines if "▕" in line]
    assert all("▏" in line for line in bars)  # a bar is never broken
    assert len(bars) >= 4


def test_bars_stand_on_one_axis(plan: Document) -> None:
    text = render_plan(plan, "table", width=110)
    part = text[text.index(" Schedule\n") : text.index(" Nodes of each pool")]
    edges = {
        (cells(line[: line.index("▕")]), cells(line[: line.index("▏")])) for line in part.splitlines() if "▕" in line
    }
    assert len(edges) == 1


def test_wider_pages_have_longer_bars(plan: Document) -> None:
    def longest(width: int) -> int:
        lines = render_plan(plan, "table", width=width).splitlines()
        return max(line.index("▏") - line.index("▕") for line in lines if "▕" in line)

    assert longest(120) > longest(80)


def test_the_schedule_says_what_the_document_says(plan: Document) -> None:
    text = render_plan(plan, "table", width=120)
    first = plan["schedule"]["jobs"][0]
    assert "Schedule" in text
    assert f"counted from {plan['schedule']['begin']}" in text
    assert moment(first["slack_hours"]) in text
    assert "under contract" in text
    assert "committed, used or not" in text
    for contract in plan["contracts"]:
        assert contract["pool"] in text


def test_nothing_hostile_reaches_a_terminal(plan: Document) -> None:
    document = named(plan, HOSTILE)
    for text in (render_plan(document, "table", width=100), render_explanation(document, "table", width=100)):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "# head" not in [line.strip() for line in text.splitlines()]


def test_nothing_hostile_breaks_a_markdown_table(plan: Document) -> None:
    text = render_plan(named(plan, HOSTILE), "md")
    assert "<script>" not in text
    assert not [line for line in text.splitlines() if "▕" in line and " " in line[line.index("▕") : line.index("▏")]]
    table: list[int] = []
    for line in text.splitlines():
        pipes = len([at for at, mark in enumerate(line) if mark == "|" and line[at - 1 : at] != "\\"])
        if line.startswith("|"):
            table.append(pipes)
            assert pipes == table[0], line
        else:
            table = []


def test_csv_rows_add_up_and_start_no_formula(plan: Document) -> None:
    rows = list(csv.DictReader(io.StringIO(render_plan(named(plan, HOSTILE), "csv"))))
    assert sum(int(row["cost_microusd"]) for row in rows) == plan["summary"]["cost_microusd"]
    kinds = [row["kind"] for row in rows]
    assert kinds.count("contract") == len(plan["contracts"])
    reserved = [row for row in rows if row["funding"] == "reserved"]
    assert reserved
    assert all(row["reserved_pool"] for row in reserved)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "@", "+", "\t")]


def test_json_is_the_document(plan: Document) -> None:
    assert json.loads(render_plan(plan, "json")) == plan


def test_explanations_compare_load_and_fee(plan: Document) -> None:
    text = " ".join(render_explanation(plan, "table", width=120).split())
    assert "Why these contracts" in text
    assert "fee / price on demand is" in text
    assert "paid for under contracts" in text
    assert json.loads(render_explanation(plan, "json", workload="chat"))["contracts"]
    alone = copy.deepcopy(plan)
    for contract in alone["contracts"]:
        contract["break_even_share"] = None
    assert "nobody sells such nodes on demand" in " ".join(render_explanation(alone, "table", width=120).split())


def test_a_contract_is_held_against_the_same_nodes_in_words(plan: Document) -> None:
    """What it "saves" on the same nodes is not what the plan saves: without it, cheaper ones may be rented."""
    text = render_plan(plan, "table", width=160)
    (heads,) = [line for line in text.splitlines() if line.startswith(" Bought ")]
    assert heads.endswith("Even at  Rented")
    rented = [f"${one['on_demand_microusd'] / 1e6:,.0f}" for one in plan["contracts"] if one["on_demand_microusd"]]
    assert rented
    assert all(any(line.endswith(money) for line in text.splitlines()) for money in rented)
    assert "rented: the hours in use of the same nodes on demand; without contracts a plan may rent" in text


def test_plans_without_a_calendar_have_no_schedule(plan: Document) -> None:
    document = {**plan, "schedule": None, "contracts": [], "copies": [], "owned": [], "spend": None}
    older = {
        key: value for key, value in plan.items() if key not in ("schedule", "contracts", "copies", "owned", "spend")
    }
    for one in (document, older):
        text = render_plan(one, "table", width=100)
        assert "Schedule" not in text
        assert "▕" not in text
        assert "Why these contracts" not in render_explanation(one, "table", width=100)


# ---- bars


@pytest.mark.parametrize(
    ("bar", "drawn"),
    [
        (Bar(spans=((0.0, 1.0),)), "▕████████▏"),
        (Bar(spans=((0.25, 0.5),)), "▕··██····▏"),
        (Bar(spans=((0.5, 0.501),), window=(0.25, 0.75)), "▕  ··█·  ▏"),  # short, but it shows
        (Bar(spans=((0.0, 0.125), (0.5, 0.625))), "▕█···█···▏"),
        (Bar(levels=(0.0, 0.5, 1.0, 0.125)), "▕  ▄▄██▁▁▏"),
        (Bar(), "▕········▏"),
    ],
)
def test_bars_by_hand(bar: Bar, drawn: str) -> None:
    assert bar.drawn(10) == drawn
    even = bar.drawn(10, "▒░")  # no blanks, which Markdown would melt into one
    assert (len(even), " " in even) == (10, False)


@pytest.mark.parametrize("size", [1, 2, 3, 13, 54, 120])
def test_bars_are_as_long_as_asked(size: int) -> None:
    for bar in (Bar(spans=((0.1, 0.2),)), Bar(levels=tuple(n / 520 for n in range(520)))):
        assert len(bar.drawn(size)) == max(size, 3)


def test_streams_without_bars_get_letters_of_the_same_width(plan: Document) -> None:
    text = render_plan(plan, "table", width=100)
    assert escape.plain(text, "utf-8") == text
    plain = escape.plain(text, "ascii")
    plain.encode("ascii")
    assert list(map(len, plain.splitlines())) == list(map(len, text.splitlines()))
    assert "#" in plain


@pytest.mark.parametrize(
    ("hours", "words"),
    [(0, "0 h"), (47, "47 h"), (48, "2 days"), (36.5, "36.5 h"), (1344, "8 weeks"), (-60, "-2.5 days")],
)
def test_moments(hours: float, words: str) -> None:
    assert moment(hours) == words
