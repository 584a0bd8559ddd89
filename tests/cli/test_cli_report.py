"""`plan report` with its budget: every format of one small plan, options of the scenario and of the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from planner import api
from planner.api import checking, listing, sessions
from planner.candidates.search import Candidates
from tests.cli.conftest import Run
from tests.verified import follow_schema

pytestmark = pytest.mark.usefixtures("answered_once")

SCENARIO = """\
schema: plan/v1
name: small
begin: 2026-11-20
training:
  - {name: job, model: gpt2-xl, tokens: 5B, deadline: 60 days, sequence_length: 1024, global_batch: 512k tokens}
hardware: {allow: [a100-sxm-80gb], regions: ["us-*"]}
report: {fiscal_year_start: december, contingency: 10 %}
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def test_every_format_of_a_plan_tells_the_same_money(run: Run, small: Path) -> None:
    assert run("solve", "small.yaml", "-q").code == 0
    plan = json.loads(Path(".plan/small.plan.json").read_text(encoding="utf-8"))
    total = plan["summary"]["cost_microusd"]
    report = json.loads(run("report", ".plan/small.plan.json", "-o", "json").out)
    follow_schema(report, "report")
    budget = report["budget"]
    assert budget["totals"]["total_microusd"] == total
    assert (budget["fiscal_year_start"], budget["contingency"]) == ("december", 0.1)
    assert next(year["label"] for year in budget["fiscal_years"]) == "FY2026"
    rows = list(csv.DictReader(io.StringIO(run("report", ".plan/small.plan.json", "-o", "csv").out)))
    assert sum(int(row["amount_microusd"] or 0) for row in rows) == total
    for form in ("table", "md"):
        text = run("report", ".plan/small.plan.json", "-o", form).out
        assert "2026-11" in text
        assert "10 %" in text
    done = run("report", ".plan/small.plan.json", "-o", "xlsx", "--out", "small.xlsx")
    assert done.code == 0, done.err
    book = openpyxl.load_workbook("small.xlsx", data_only=True)
    (sheet, cell), *_ = book.defined_names["Total"].destinations
    assert book[sheet][cell.replace("$", "")].value == pytest.approx(total / 1e6)
    assert any(row["place"] == "small.yaml:5" for row in report["trace"])


def test_options_of_the_command_line_come_first(run: Run, small: Path) -> None:
    assert run("solve", "small.yaml", "-q").code == 0
    asked = ("--contingency", "25%", "--fiscal-year-start", "april")
    budget = json.loads(run("report", ".plan/small.plan.json", "-o", "json", *asked).out)["budget"]
    assert (budget["fiscal_year_start"], budget["contingency"]) == ("april", 0.25)
    refused = run("report", ".plan/small.plan.json", "--fiscal-year-start", "Apr")
    assert (refused.code, refused.out) == (3, "")
    assert "did you mean 'april'?" in refused.err


def test_margins_of_a_scenario_together_and_one_by_one(run: Run, small: Path) -> None:
    together = json.loads(run("report", "small.yaml", "-o", "json").out)["margins"]
    assert together["each"] is None
    assert together["together_microusd"] >= 0
    each = json.loads(run("report", "small.yaml", "-o", "json", "--margins").out)["margins"]["each"]
    assert each == [
        {
            "name": "confidence",
            "without_microusd": together["without_microusd"],
            "saves_microusd": together["together_microusd"],
        }
    ]


def test_a_workbook_is_no_text(run: Run, small: Path) -> None:
    answer = run("report", "small.yaml", "-o", "xlsx", "--out", "-")
    assert (answer.code, answer.out) == (2, "")


def test_a_report_of_a_plan_file_lists_its_ways_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check, the margins and the savings each listed every way of the scenario anew."""
    anew: list[str] = []
    for module in (checking, listing, sessions):
        name = "enumerate_candidates" if module is checking else "_enumerate"
        listed = getattr(module, name)

        def counted(plan: Any, *args: Any, listed: Any = listed, **more: Any) -> Candidates:
            anew.extend([] if more.get("known") is not None else [plan.name])
            return listed(plan, *args, **more)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, name, counted)
    file = tmp_path / "llama.plan.json"
    assert run("solve", "llama", "--out", str(file)).code == 0
    for source in (str(file), "llama"):
        anew.clear()
        assert run("report", source, "--margins", "-o", "md").code == 0
        assert anew == ["llama"], source
    anew.clear()
    api.report(file, margins=True, savings=True)
    assert anew == ["llama"]


def test_a_scenario_in_json_is_taken_as_one(here: Path, run: Run) -> None:
    job = {"name": "pre", "model": "gpt2-xl", "tokens": "1B", "deadline": "30 days"}
    asked = {"schema": "plan/v1", "name": "t", "training": [job], "hardware": {"allow": ["a100-*"]}}
    (here / "t.json").write_text(json.dumps(asked))
    assert run("solve", "t.json", "--out", "p.json").code == 0
    for line in ("report t.json", "explain t.json", "export slurm t.json", "compare p.json t.json"):
        answer = run(*line.split())
        assert answer.code == 0, answer.err
    (here / "p.json").write_text("{")
    assert "error[bad-json]" in run("report", "p.json").err
    assert "there is no file q.json" in run("report", "q.json").err
