"""Names of a hostile user reach no format as anything but text."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from planner.errors import Place, Problem
from planner.report import escape, problems
from planner.report.plan_formats import render_plan
from tests.cli.conftest import sample
from tests.hostile_names import hostile_names
from tests.tiers import sampled


def plan_named(name: str) -> dict[str, Any]:
    """A plan in which everything that can be a user's text is that name."""
    document = sample("llama")
    document |= {"name": name, "title": name, "case": name, "assumed": [name], "warnings": [name], "notes": [name]}
    for workload in document["workloads"]:
        workload |= {"name": name, "model": name, "because": [name]}
        for row in workload["allocations"]:
            row |= {
                "offer": name,
                "provider": name,
                "region": name,
                "shape": name,
                "price_source": name,
                "device": name,
            }
    document["limits"][0] |= {"label": name}
    document["rejected"] = {name: document["rejected"]["assistant"]}
    return document


@pytest.mark.parametrize("index", sampled(range(200), 24))
def test_hostile_name_in_every_format(index: int) -> None:
    document = plan_named(hostile_names()[index])
    assert_no_control(render_plan(document, "table", width=80))
    assert_cells_are_text(render_plan(document, "csv"))
    assert_inert_markdown(render_plan(document, "md"))
    if "\ud800" not in hostile_names()[index]:
        text = render_plan(document, "json")
        assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"]


def assert_no_control(text: str) -> None:
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n"}


def assert_cells_are_text(text: str) -> None:
    assert_no_control(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row if cell[:1] and cell[0] in "=+-@＝＋－＠\t\r\n"):
        float(cell)  # only a number may begin like a formula


def assert_inert_markdown(text: str) -> None:
    assert_no_control(text)
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inner = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in tokens} | {token.type for token in inner}
    assert not kinds & {"link_open", "image", "html_inline", "s_open", "code_inline", "fence", "code_block",
                        "blockquote_open", "ordered_list_open", "hr"}  # fmt: skip
    ours = {"<details><summary>Prices, assumptions, checks</summary>", "</details>"}
    assert {token.content.strip() for token in tokens if token.type == "html_block"} <= ours
    assert sum(token.type == "heading_open" for token in tokens) == 1
    assert sum(token.type == "table_open" for token in tokens) == 8
    assert "://" not in text
    assert "@" not in text
    assert "www." not in text.lower()


@given(st.text())
def test_terminal_text_has_no_control_character(text: str) -> None:
    assert not {unicodedata.category(c) for c in escape.terminal(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert escape.terminal(escape.terminal(text)) == escape.terminal(text)


@given(st.text())
def test_csv_text_never_begins_a_formula(text: str) -> None:
    assert str(escape.csv_cell(text))[:1] not in ("=", "+", "-", "@")


@pytest.mark.parametrize("number", [-1, -1.5, 0, 10**20])
def test_csv_numbers_stay_numbers(number: float) -> None:
    assert escape.csv_cell(number) is number


@given(st.text())
def test_file_stem_stays_in_its_folder(text: str) -> None:
    stem = escape.file_stem(text)
    assert stem
    assert not stem.startswith(".")
    assert not set(stem) & set("/\\:\0")


def test_error_messages_hold_no_escape() -> None:
    place = Place(file="a\x1b[2J.yaml", line=3, column=2, text="x: \x1b[31m", width=2)
    problem = Problem(reference="unknown-field", message="'\x1b]0;t\x07' is wrong", places=(place,), hint="\x9bA")
    text = problems.render([problem])
    assert_no_control(text)
    assert text.startswith("error[unknown-field] ")
