"""`plan report`: pages and workbooks by their default names, stale plans refused, frontiers held against plans."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from markupsafe import escape

from planner.units import parse_money
from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("answered_once")

SCENARIO = """\
schema: plan/v1
name: small
title: One small job
training:
  - {name: job, model: gpt2-xl, tokens: 1B, deadline: 30 days, sequence_length: 1024, global_batch: 512k tokens}
hardware: {allow: [a100-sxm-80gb]}
"""


@pytest.fixture
def plan(here: Path, run: Run) -> Path:
    """A plan of a scenario in this folder."""
    (here / "small.yaml").write_text(SCENARIO, encoding="utf-8")
    assert run("solve", "small.yaml", "-q").code == 0
    return here / ".plan/small.plan.json"


def test_a_page_stands_beside_its_plan_and_one_line_says_so(run: Run, plan: Path) -> None:
    answer = run("report", str(plan), "-o", "html")
    assert answer.code == 0, answer.err
    assert re.fullmatch(
        r"wrote \.plan/small\.report\.html \(\d+ kB, self-contained, works offline\)"
        r"   sections: 10   warnings: \d+\n",
        answer.out,
    )
    page = (plan.parent / "small.report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>\n")
    assert "One small job" in page
    assert "small.yaml:5" in page  # figures lead to lines of the scenario


def test_a_page_goes_to_a_file_or_to_stdout(run: Run, plan: Path) -> None:
    answer = run("report", str(plan), "-o", "html", "--out", "a.html")
    assert answer.code == 0
    assert run("report", str(plan), "-o", "html", "--out", "-").out == Path("a.html").read_text(encoding="utf-8")


def test_a_workbook_is_written_whole_and_not_to_a_terminal(run: Run, plan: Path) -> None:
    answer = run("report", str(plan), "-o", "xlsx")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("wrote .plan/small.report.xlsx (")
    assert (plan.parent / "small.report.xlsx").read_bytes().startswith(b"PK")
    assert run("report", str(plan), "-o", "xlsx", "--out", "-").code == 2


def test_a_plan_whose_scenario_was_edited_is_refused_unless_allowed(run: Run, plan: Path) -> None:
    Path("small.yaml").write_text(SCENARIO.replace("30 days", "20 days"), encoding="utf-8")
    answer = run("report", str(plan))
    assert answer.code == 3
    assert "error[stale-plan] the scenario changed since this plan was made: training.job.deadline" in answer.err
    assert "--allow-stale" in answer.err
    answer = run("report", str(plan), "--allow-stale")
    assert answer.code == 0
    assert answer.err.startswith("warning[stale-plan]")
    assert "small" in answer.out


def test_a_plan_whose_catalog_changed_is_refused(run: Run, plan: Path) -> None:
    answer = run("report", str(plan), "--price", "a100-sxm-80gb=$1/h")
    assert answer.code == 3
    assert "error[stale-plan] the catalog changed" in answer.err


def test_a_plan_without_its_scenario_is_reported_with_a_remark(run: Run, plan: Path) -> None:
    Path("small.yaml").unlink()
    answer = run("report", str(plan), "-o", "json")
    assert answer.code == 0
    assert "not readable here" in answer.err
    report = json.loads(answer.out)
    assert report["schema"] == "plan/report/v1"
    assert report["tradeoffs"][0]["points"]  # from the plan's own copy of the scenario


def test_an_infeasible_scenario_has_a_page_too(run: Run, here: Path) -> None:
    (here / "small.yaml").write_text(SCENARIO.replace("30 days", "1 min"), encoding="utf-8")
    answer = run("report", "small.yaml", "-o", "html")
    assert answer.code == 4
    assert "sections: 6" in answer.out
    assert "Ways out" in (here / ".plan/small.report.html").read_text(encoding="utf-8")


def test_a_sweep_and_a_frontier_file_show_the_same_points(run: Run, plan: Path) -> None:
    over = ("--over", "deadline=2d..30d")
    assert run("frontier", "small.yaml", *over, "-o", "json", "--out", "f.json").code == 0
    swept = run("report", str(plan), *over, "-o", "json")
    read = run("report", str(plan), "--frontier", "f.json", "-o", "json")
    assert swept.code == read.code == 0, swept.err + read.err
    points = json.loads(Path("f.json").read_text(encoding="utf-8"))["points"]
    assert points
    assert json.loads(swept.out)["frontier"]["points"] == points
    assert json.loads(read.out)["frontier"]["points"] == points


def test_a_frontier_of_another_scenario_is_refused(run: Run, plan: Path) -> None:
    over = ("--over", "deadline=2d..30d")
    setting = ("--set", "training.job.tokens=2B")
    assert run("frontier", "small.yaml", *over, *setting, "-o", "json", "--out", "f.json").code == 0
    answer = run("report", str(plan), "--frontier", "f.json")
    assert answer.code == 3
    assert "error[stale-frontier]" in answer.err
    assert run("report", str(plan), "--frontier", "f.json", "--allow-stale").code == 0


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        (("--over", "deadline=2d..9d", "--frontier", "f.json"), "not-together"),
        (("--contingency", "200%"), "out-of-range"),
        (("--frontier", "small.yaml"), "bad-json"),
        (("--frontier", ".plan/small.plan.json"), "not-a-frontier"),
        (("--set", "horizon=2 months"), ""),
    ],
)
def test_what_makes_no_sense_is_said(run: Run, plan: Path, arguments: tuple[str, ...], reference: str) -> None:
    answer = run("report", str(plan), *arguments)
    assert answer.code in (2, 3)
    assert (f"error[{reference}]" if reference else "error[not-a-scenario]") in answer.err


@pytest.mark.parametrize("share", ["200%", "10"])
def test_a_contingency_that_is_none_is_answered_with_a_usual_one(run: Run, plan: Path, share: str) -> None:
    answer = run("report", str(plan), "--contingency", share)
    assert (answer.code, 'write "10%"' in answer.err) == (2, True), answer.err


def test_contingency_and_fiscal_year_reach_the_budget(run: Run, plan: Path) -> None:
    flags = ("--contingency", "10%", "--fiscal-year-start", "april")
    answer = run("report", str(plan), *flags, "-o", "json")
    assert answer.code == 0, answer.err
    budget = json.loads(answer.out)["budget"]
    assert (budget["contingency"], budget["fiscal_year_start"]) == (0.1, "april")


def test_the_command_on_a_page_makes_that_page(run: Run, here: Path) -> None:
    import html
    import shlex

    (here / "small.yaml").write_text(SCENARIO, encoding="utf-8")
    given = ("report", "small.yaml", "--set", "training.job.deadline=25 days", "-o", "html")
    assert run(*given).code == 0
    page = Path(".plan/small.report.html").read_text(encoding="utf-8")
    (command,) = re.findall(r"Made again by <code>(.*?)</code>", page)
    words = shlex.split(html.unescape(command))
    assert words == ["plan", *given]
    assert run(*words[1:]).code == 0
    assert Path(".plan/small.report.html").read_text(encoding="utf-8") == page


def test_a_file_where_a_format_stands_is_told_its_place(run: Run) -> None:
    refused = run("report", "llama", "-o", "page.html")
    assert refused.code == 2
    words = " ".join(refused.err.split())
    assert "Value error" not in words
    assert "A file is named by --out page.html" in words
    assert "A file" not in run("report", "llama", "-o", "pdf").err


def test_a_report_says_what_would_make_it_cheaper(run: Run, here: Path) -> None:
    """The same on the page, in Markdown and in the document; each command costs what is said less."""
    assert run("solve", "llama", "-q", "--out", "a.json").code == 0
    document = json.loads(run("report", "a.json", "-o", "json").out)
    markdown, page = run("report", "a.json", "-o", "md").out, run("report", "a.json", "-o", "html", "--out", "-").out
    cost, savings = document["plan"]["summary"]["cost_usd"], document["savings"]
    assert len(savings) == 2
    for saving in savings:
        assert saving["text"] in markdown.replace("\\$", "$")
        assert escape(saving["text"]) in page
        assert escape(saving["command"]) in page
        _, *asked = shlex.split(saving["command"])
        changed = json.loads(run(*asked, "-o", "json").out)["summary"]["cost_usd"]
        said = re.search(r"would save (\$[\d,.]+) \(", saving["text"])
        assert said is not None
        assert cost - changed == pytest.approx(parse_money(said[1], rates=None) / 1e6, abs=1.0)
    assert "make it cheaper" not in run("report", "infeasible", "-o", "html", "--out", "-").out
