"""Answers in a notebook: small, inert, and nothing in them that the document does not say."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.answers import Comparison, Frontier, Plan, Rows
from planner.catalog.load import load_catalog
from planner.errors import InputError
from planner.report.plan_formats import render_plan
from planner.scenario.load import load_scenario
from tests.compare.worlds import base, side

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "cli" / "samples"
HOSTILE = "<script>alert(1)</script>\"' onload=x \x1b[31m=cmd()"


def sample(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return document


class Page(HTMLParser):
    """Tags, attributes and text of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


INERT = {"p", "b", "br", "ul", "li", "small", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"}


@pytest.mark.parametrize("name", ["llama", "feasible", "infeasible", "stopped"])
def test_a_plan_shows_itself_and_is_inert(name: str) -> None:
    document = sample(name)
    page = Page(Plan(document=document)._repr_html_())
    assert page.open == []
    assert set(page.tags) <= INERT
    assert page.attributes <= {"style", "scope", "title", "role", "aria-label"}
    assert document["name"] in page.text
    for workload in document["workloads"]:
        assert all(row["device"] in page.text for row in workload["allocations"])
    assert str(Plan(document=document)) == render_plan(document, "table")
    assert repr(Plan(document=document)) == f"<Plan {document['name']}: {document['status']}>"


def test_names_stay_text() -> None:
    document = sample("llama")
    document["title"] = HOSTILE
    document["warnings"] = [HOSTILE]
    document["workloads"][0]["name"] = HOSTILE
    page = Page(Plan(document=document)._repr_html_())
    assert set(page.tags) <= INERT
    assert "onload" not in page.attributes
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text


def test_the_bar_is_as_full_as_the_device() -> None:
    document = sample("llama")
    text = Plan(document=document)._repr_html_()
    memory = document["workloads"][0]["allocations"][0]["memory"]
    bar = text.split('role="img"')[1].split("</td>")[0]
    widths = [float(part.split("%")[0]) for part in bar.split(";width:")[1:] if "%" in part.split(";")[0]]
    assert len(widths) == len(memory["terms_bytes"])
    assert sum(widths) == pytest.approx(100 * sum(memory["terms_bytes"].values()) / memory["usable_bytes"], abs=0.05)


def test_rows_are_a_list_that_shows_itself() -> None:
    rows = Rows({"name": f"<{number}>", "cost": number / 3, "nested": {"a": 1}} for number in range(30))
    frame = rows.to_frame()
    assert list(frame.columns) == ["name", "cost"]
    assert len(frame) == len(rows) == 30
    page = Page(rows._repr_html_())
    assert page.tags.count("tr") == 21
    assert "30 rows" in page.text
    assert set(page.tags) <= INERT
    assert Rows()._repr_html_() == ""


def test_a_frontier_shows_itself() -> None:
    document = sample("frontier/budget")
    found = Frontier(document=document)
    page = Page(found._repr_html_())
    assert set(page.tags) <= INERT
    assert page.tags.count("tr") == 1 + len(found.points)
    assert len(found.to_frame()) == len(found.points)
    assert "Pareto" in str(found)


def test_a_scenario_with_other_values() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "llama.yaml")
    changed = scenario.with_(
        {"training.pretrain-8b.deadline": "14 days"}, limits__budget="$60000", hardware__allow=["l40s"]
    )
    assert changed.training[0].deadline_s == 14 * 86400
    assert changed.limits.budget_microusd == 60_000 * 10**6
    assert changed.hardware.allow == ("l40s",)
    assert changed.with_({"limits.budget": None}).limits.budget_microusd is None
    assert scenario.training[0].deadline_s == 30 * 86400  # as it was
    with pytest.raises(InputError) as refused:
        scenario.with_({"training.pretrain-8.deadline": "14 days"}, limits__budget=5)
    assert [problem.reference for problem in refused.value.problems] == ["bad-reference", "missing-unit"]


def test_the_catalog_as_a_frame() -> None:
    catalog = load_catalog()
    frame = catalog.to_frame()
    assert list(frame["id"]) == [offer.id for offer in catalog.offers]
    row = frame[frame["devices"] == 8].iloc[0]
    assert row["usd_per_device_hour"] * 8 == pytest.approx(row["usd_per_hour"])


def test_a_comparison_shows_itself() -> None:
    found = api.compare(base(), side("twice", None, "serving.chat.qpm=600"), cause=False)
    assert isinstance(found, Comparison)
    page = Page(found._repr_html_())
    assert set(page.tags) <= INERT
    assert "chat" in page.text
    assert repr(found).startswith("<Comparison ")
    assert repr(found).endswith(" → twice>")
    assert "serving.chat.qpm" in str(found)
    assert len(found.to_frame()) >= 1
