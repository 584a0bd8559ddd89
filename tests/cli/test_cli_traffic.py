"""`plan traffic`: golden views, formats that hold the same figures, lines that can be pasted, hostile files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from planner.report.reading_view import render_traffic
from planner.report.text import cells
from planner.scenario import parse_scenario
from planner.traffic.request_trace import read_trace, traffic_document
from tests.cli.conftest import Run, check_golden

TRACE = "scenarios/requests.csv"
HEAD = "timestamp,input_tokens,output_tokens\n"


@pytest.fixture
def document(here: Path) -> dict[str, Any]:
    return traffic_document(read_trace(TRACE))


@pytest.mark.parametrize("width", [80, 120])
def test_table_golden(document: dict[str, Any], width: int) -> None:
    table = render_traffic(document, "table", width=width)
    check_golden(f"traffic-{width}.txt", table)
    assert max(map(cells, table.splitlines())) <= width


def test_markdown_golden(document: dict[str, Any]) -> None:
    check_golden("traffic.md", render_traffic(document, "md"))


def test_csv_and_json_hold_the_same_figures(run: Run, here: Path) -> None:
    found = json.loads(run("traffic", TRACE, "-o", "json").out)
    rows = {row["fact"]: row for row in csv.DictReader(io.StringIO(run("traffic", TRACE, "-o", "csv").out))}
    assert float(rows["requests_per_s"]["value"]) == found["requests_per_s"]
    assert float(rows["input_tokens p95"]["value"]) == found["input_tokens"]["p95"]
    assert rows["input_tokens p95"]["unit"] == "tokens"
    for bucket in found["buckets"]:
        assert float(rows[f"share of {bucket['bucket']}"]["value"]) == bucket["share"]
    assert len([fact for fact in rows if fact.startswith("weight of")]) == 24


def test_what_is_pasted_is_a_fleet_of_the_same_demand(document: dict[str, Any], here: Path) -> None:
    head = "schema: plan/v1\nname: t\nserving:\n  - name: f\n    model: gpt2-xl\n"
    traced = parse_scenario(head + f"    {document['scenario_trace']}\n", file="scenarios/mine.yaml").serving[0]
    assert traced.traffic.requests_per_s == document["requests_per_s"]
    told = parse_scenario(head + "".join(f"    {line}\n" for line in document["scenario_numbers"])).serving[0]
    assert told.arrival_variability == pytest.approx(traced.arrival_variability, rel=1e-3)
    assert told.traffic.peak_requests_per_s == pytest.approx(traced.traffic.peak_requests_per_s, rel=1e-3)
    assert told.input_tokens == pytest.approx(traced.input_tokens, rel=1e-3)
    assert told.output_tokens == pytest.approx(traced.output_tokens, rel=1e-2)


def test_a_week_has_a_line_a_day(here: Path) -> None:
    begin = 1_762_128_000  # 2025-11-03, a Monday
    rows = [f"{begin + i * 60},100,{10 + i % 3}\n" for i in range(7 * 24 * 60)]
    (here / "week.csv").write_text(HEAD + "".join(rows), encoding="utf-8")
    found = traffic_document(read_trace("week.csv"))
    assert [row["day"] for row in found["profile"]][::6] == ["Monday", "Sunday"]
    assert found["peak_factor"] == pytest.approx(1.0)
    assert found["arrival_variability"] == pytest.approx(0.0, abs=1e-3)
    assert "hour of the week" in render_traffic(found, "table", width=80)


def test_a_short_trace_is_flat(run: Run, here: Path) -> None:
    (here / "odd name: [x].csv").write_text(HEAD + "0,10,1\n1,10,1\n2,10,1\n", encoding="utf-8")
    answer = run("traffic", "odd name: [x].csv")
    assert answer.code == 0
    assert "flat profile" in answer.out
    assert 'trace: "odd name: [x].csv"' in answer.out
    assert "input_tokens: {mean: 10, p95: 10}" in answer.out


def test_mistakes_exit_with_3_and_show_the_line(run: Run, here: Path) -> None:
    (here / "t.csv").write_text(HEAD + "0,10,1\nsoon,10,1\n1,\x1b[31m,1\n", encoding="utf-8")
    answer = run("traffic", "t.csv")
    assert answer.code == 3
    assert "t.csv:3:1" in answer.err
    assert "t.csv:4:3" in answer.err
    assert "\x1b" not in answer.err
    assert answer.out == ""
    assert run("traffic", "none.csv").code == 3
    assert run("traffic", "/dev/null").code == 3
    assert run("traffic").code == 2


def test_a_name_is_only_text(run: Run, here: Path) -> None:
    (here / "=cmd|x.csv").write_text(HEAD + "0,10,1\n9,10,1\n", encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(run("traffic", "=cmd|x.csv", "-o", "csv").out)))
    assert {row["trace"] for row in rows} == {"'=cmd|x.csv"}
    assert "\\|x" in run("traffic", "=cmd|x.csv", "-o", "md").out


def test_a_log_of_another_form_is_told_the_command_that_takes_it(run: Run, here: Path) -> None:
    (here / "log.csv").write_text("time;prompt;answer\n1;2;3\n")
    answer = run("traffic", "log.csv")
    assert (answer.code, "plan read log.csv --into SCENARIO" in answer.err) == (3, True)
