"""The report document: as its schema says, and every figure traced to where it is from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from planner import api
from planner.catalog.model import Catalog
from planner.checks.leaves import tree
from planner.equations.registry import REGISTRY
from planner.plan.model.rows import Energy
from planner.report.csv import PLAN_COLUMNS
from planner.report.report_view import report_document
from planner.report.trace import KINDS, RULES, leaves
from tests.verified import follow_schema

Document = dict[str, Any]
SAMPLES = ("llama", "fleet", "feasible", "infeasible", "stopped", "too-big", "portfolio")
FIGURES = ("plan.summary", "plan.workloads", "plan.contracts", "plan.copies", "plan.schedule", "plan.spend",
           "plan.owned", "plan.limits", "budget")  # fmt: skip
MARGINS = {
    "taken": [{"name": "spares", "taken": "1 (assistant)", "without": "none"}],
    "cost_microusd": 3,
    "without_microusd": 1,
    "together_microusd": 2,
    "each": [{"name": "spares", "without_microusd": 1, "saves_microusd": 2}],
    "notes": ["a sentence"],
}


@pytest.fixture(params=SAMPLES)
def report(request: pytest.FixtureRequest, sample: Callable[[str], Document], shipped: Catalog) -> Document:
    return report_document(sample(request.param), shipped, contingency=0.1, margins=MARGINS)


def test_a_report_is_as_its_schema_says(report: Document) -> None:
    follow_schema(report, "report")


def above(path: str) -> Iterator[str]:
    """A path and all that it lies below."""
    while path:
        yield path
        path = re.sub(r"(\.[^.\[]+|\[\d+\]|^[^.\[]+)$", "", path)


def test_every_figure_traces_to_something(report: Document) -> None:
    """Each number that a view may show lies at or below the path of a row of the trace."""
    traced = {row["path"] for row in report["trace"]}
    for part in FIGURES:
        value: Any = report
        for key in part.split("."):
            value = value.get(key) if value else None
        for path, found in leaves(value, part):
            if isinstance(found, int | float) and not isinstance(found, bool):
                assert traced.intersection(above(path)), path


def test_every_row_of_the_trace_says_where_its_figure_is_from(report: Document) -> None:
    for row in report["trace"]:
        assert row["kind"] in KINDS
        if row["kind"] == "equation":
            names = row["id"].split()
            assert names, row
            assert set(names) <= {*REGISTRY, *RULES}, row
        if row["kind"] == "fact":
            assert row["source"], row
            assert row["as_of"] or row["status"] in ("derived", "user"), row
        if row["kind"] == "scenario":
            assert row["place"].startswith("scenario."), row
        if row["kind"] == "assumption":
            assert row["figure"], row


def test_values_of_the_trace_are_those_of_the_report(report: Document) -> None:
    found = dict(leaves(report["plan"], "plan")) | dict(leaves(report["budget"], "budget"))
    checked = 0
    for row in report["trace"]:
        if row["path"] in found and row["value"] is not None:
            assert row["value"] == found[row["path"]], row["path"]
            checked += 1
    assert checked > 5


def test_lines_of_the_scenario_are_told_by_file_and_line(
    tmp_path: Any, sample: Callable[[str], Document], shipped: Catalog
) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(
        "schema: plan/v1\nname: asked\ntraining:\n  - name: job\n    model: gpt2\n    tokens: 1B\n"
        "    deadline: 30 days\n    sequence_length: 1024\n    global_batch: 512k tokens\n",
        encoding="utf-8",
    )
    asked = api.load_scenario(file)
    plan = sample("llama") | {"scenario": asked.resolved}
    rows = {row["figure"]: row for row in report_document(plan, shipped, places=asked.places)["trace"]}
    assert rows["training[0].deadline"]["place"] == f"{file}:7"
    assert rows["training[0].tokens"]["place"] == f"{file}:6"


def test_prices_are_facts_with_source_and_date(report: Document) -> None:
    prices = [row for row in report["trace"] if row["path"].endswith("price_microusd_per_hour")]
    expected = sum(len(workload["allocations"]) for workload in report["plan"]["workloads"])
    assert len(prices) == expected + len(report["plan"].get("contracts") or ())
    assert all(row["kind"] == "fact" and row["source"] and row["status"] for row in prices)


def test_a_new_cell_of_a_row_is_a_column_a_leaf_and_traced(
    sample: Callable[[str], Document], shipped: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its type, its value and its check are all that is written for it (docs/architecture.md)."""
    assert set(Energy.__annotations__) <= set(PLAN_COLUMNS)
    assert set(Energy.__annotations__) <= tree()["workloads"]["*"]["allocations"]["*"].keys()
    monkeypatch.setitem(Energy.__annotations__, "network_bytes_per_s", "float | None")
    document = sample("llama")
    document["workloads"][0]["allocations"][0]["network_bytes_per_s"] = 5e10
    (told,) = [
        one for one in report_document(document, shipped)["trace"] if one["path"].endswith(".network_bytes_per_s")
    ]
    assert (told["value"], told["unit"], told["id"]) == (5e10, "B/s", "ACC-10")
