"""Views of plan documents: golden text, widths, colours, and formats that hold the same figures."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from planner.report.explanation_view import render_explanation
from planner.report.plan_formats import render_plan
from planner.report.text import cells
from tests.cli.conftest import HERE, check_golden, sample
from tests.verified import follow_schema

SAMPLES = sorted(path.stem for path in (HERE / "samples").glob("*.json"))
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def table(name: str, width: int, *, colour: bool = False) -> str:
    saved = f".plan/{name}.plan.json"
    return render_plan(sample(name), "table", width=width, colour=colour, saved=saved, launch="skypilot")


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_follow_the_schema(name: str) -> None:
    follow_schema(sample(name))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", SAMPLES)
def test_table_golden(name: str, width: int) -> None:
    check_golden(f"plan-{name}-{width}.txt", table(name, width))


@pytest.mark.parametrize("width", [80, 120])
def test_table_golden_in_colour(width: int) -> None:
    check_golden(f"plan-llama-{width}-colour.txt", table("llama", width, colour=True))


@pytest.mark.parametrize("form", ["md", "csv"])
@pytest.mark.parametrize("name", SAMPLES)
def test_markdown_and_csv_golden(name: str, form: str) -> None:
    check_golden(f"plan-{name}.{form}", render_plan(sample(name), form))


@pytest.mark.parametrize("width", [80, 120])
def test_explanation_golden(width: int) -> None:
    check_golden(f"explain-llama-{width}.txt", render_explanation(sample("llama"), "table", width=width))
    check_golden(
        f"rejected-llama-{width}.txt", render_explanation(sample("llama"), "table", rejected=True, width=width)
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    for width in range(80, 121, 4):
        assert max(map(cells, table(name, width).splitlines())) <= width


@pytest.mark.parametrize("width", [1, 20, 79, 400])
def test_odd_widths_are_brought_into_range(width: int) -> None:
    assert table("llama", width) == table("llama", 80 if width < 80 else 120)


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    plain, coloured = table(name, 100), table(name, 100, colour=True)
    assert ESCAPES.sub("", coloured) == plain
    assert "\x1b" in coloured
    assert "\x1b" not in plain


@pytest.mark.parametrize("name", SAMPLES)
def test_json_is_the_document(name: str) -> None:
    assert json.loads(render_plan(sample(name), "json")) == sample(name)


def test_json_refuses_what_is_no_number() -> None:
    document = sample("llama")
    document["summary"]["gap"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        render_plan(document, "json")


@pytest.mark.parametrize("name", SAMPLES)
def test_csv_has_one_row_an_allocation_and_its_figures(name: str) -> None:
    document = sample(name)
    rows = list(csv.DictReader(io.StringIO(render_plan(document, "csv"))))
    chosen = [row for workload in document["workloads"] for row in workload["allocations"]]
    assert [int(row["cost_microusd"]) for row in rows] == [row["cost_microusd"] for row in chosen]
    assert [float(row["memory_needed_bytes"]) for row in rows] == [row["memory"]["needed_bytes"] for row in chosen]
    assert [row["tp"] for row in rows] == [str(row["layout"]["tp"]) for row in chosen]


def test_training_and_serving_are_never_one_figure_without_the_horizon() -> None:
    text = table("llama", 120)
    assert "total  $46,224 for 1 month horizon" in text
    assert "training $17,141 one-off · serving $29,083 for 1 month" in text


def test_an_unproven_plan_shows_its_bound() -> None:
    text = table("feasible", 120)
    assert "feasible, not proven cheapest (gap 2.12 %)" in text
    assert "none costs less than $45,244" in text
    assert "llama (case rush)" in text


def test_infeasible_names_the_conflict_and_its_lines() -> None:
    text = table("infeasible", 120)
    assert "INFEASIBLE" in text
    assert "smallest set" in text
    assert "scenarios/infeasible.yaml:23:7" in text
    assert "total" not in text.split("\n\n")[1]


def test_the_chosen_device_is_not_its_own_alternative() -> None:
    after = table("llama", 120).split("Next best, alone")[1].split("\n\n")[0]
    assert "a100-sxm-80gb" in after
    assert "h100-sxm-80gb" not in after


def test_figures_are_in_dollars_whatever_the_scenario_is_written_in() -> None:
    document = sample("llama")
    document["scenario"]["currency"] = {"EUR": 1.08, "as_of": "2026-11-01"}
    assert "$46,224" in render_plan(document, "table", width=120)


def test_golden_folder_holds_nothing_stale() -> None:
    names = {path.name for path in Path(HERE / "golden").iterdir()}
    source = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    prefixes = set(re.findall(r'check_golden\(\s*f?"([a-z]+)-', source))
    assert {re.split("[-.]", name)[0] for name in names} <= prefixes
