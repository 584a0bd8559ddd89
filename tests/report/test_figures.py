"""Figures and tables of small documents, whose numbers can be worked out in the head."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from planner.errors import Place, Problem
from planner.report import escape
from planner.report.certainty_words import late_hours
from planner.report.csv import render_plan
from planner.report.frontier_view import HEIGHT, scatter
from planner.report.html.cost_figures import hours_table, workload_figure
from planner.report.html.prediction_figures import REST, finish_table, memory_figure
from planner.report.problems import findings
from tests.report.conftest import plan_named

Document = dict[str, Any]
GB = 10**9


def timed(**band: float) -> Document:
    """A job that waits for 10 h and runs for 100 h, with what is known of its errors."""
    time = {"margin": 1.3} if band else None
    known = {"time": time, "confidence": 0.75, "hours": {"p10": 90.0, "p90": 140.0, **band}}
    return {"start_hours": 10.0, "hours": 100.0, "finish_hours": 110.0, "deadline_hours": 200.0,
            "runs": None, "error_band": known}  # fmt: skip


def test_a_job_is_late_by_its_own_confidence() -> None:
    assert late_hours(timed(at_confidence=130.0)) == 140.0
    assert late_hours(timed()) == 110.0


def test_a_job_that_may_pause_is_done_with_its_last_period() -> None:
    """Its periods hold the margin already: the plan said a day after the last one, in which it has no machines."""
    row = timed(at_confidence=130.0) | {"finish_hours": 150.0, "runs": [{"start_hours": 0.0, "end_hours": 150.0}]}
    assert late_hours(row) == 150.0


def test_slack_is_what_is_left_at_that_confidence() -> None:
    row = timed(at_confidence=130.0)
    (line,) = finish_table({"workloads": [{"name": "a", "kind": "training", "allocations": [row]}]}).rows
    assert line == ["a", "10 h", "4.58 days", "5.83 days (p75)", "8.33 days", "2.5 days"]


def stored(name: str, terms: dict[str, float]) -> Document:
    needed = sum(terms.values())
    memory = {"terms_bytes": terms, "needed_bytes": needed, "usable_bytes": 100.0 * GB, "free_bytes": 100 * GB - needed}
    return {"name": name, "kind": "training", "allocations": [{"device": "d", "memory": memory}]}


def test_the_largest_parts_of_memory_have_a_colour() -> None:
    """Ten parts of 1 to 10 GB: seven have a colour, the three smallest are one part."""
    terms = {f"part {size}": float(size * GB) for size in (1, 10, 2, 9, 3, 8, 4, 7, 5, 6)}
    figure = memory_figure({"workloads": [stored("a", terms)]})
    assert figure is not None
    (panel,) = figure.panels
    assert [name for _, name in figure.key][:8] == [*(f"part {size}" for size in range(10, 3, -1)), REST]
    (rest,) = [series.boxes[0] for series in panel.series if series.name == REST]
    assert (rest.left, rest.right) == (pytest.approx(49.0), pytest.approx(55.0))


def test_parts_below_a_hundredth_of_a_device_are_no_part_of_their_own() -> None:
    figure = memory_figure({"workloads": [stored("a", {"large": 1.0 * GB, "small": 0.99 * GB})]})
    assert figure is not None
    assert [name for _, name in figure.key] == ["large", REST, "usable memory"]


def test_what_is_left_of_many_workloads_is_one_bar() -> None:
    """14 workloads of 14 to 1 dollars: twelve have a bar, the last two are 3 dollars together."""
    rows = [{"workload": f"w{n}", "kind": "training", "total_microusd": (14 - n) * 1_000_000} for n in range(14)]
    document = {"scenario": {}}
    figure = workload_figure(document, {"by_workload": rows})
    assert figure is not None
    (panel,) = figure.panels
    ends = {round((box.low + box.high) / 2): box.right for series in panel.series for box in series.boxes}
    assert ends == {**{n: 14.0 - n for n in range(12)}, 12: 3.0}
    assert [label.name for label in panel.labels][-2:] == ["w11", "2 others"]
    thirteen = workload_figure(document, {"by_workload": rows[:13]})
    assert thirteen is not None
    assert sum(len(series.boxes) for series in thirteen.panels[0].series) == 13


def test_a_device_hour_costs_what_is_paid_by_the_hour() -> None:
    """100 device-hours under contract and 50 at $2: one that is paid costs $2, not 67 cents."""
    rows = [
        {"device_hours": 100.0, "devices": 10, "cost_microusd": 0, "funding": "reserved"},
        {"device_hours": 50.0, "devices": 5, "cost_microusd": 100_000_000, "funding": "on_demand"},
    ]
    own = {"name": "own", "kind": "training", "allocations": rows}
    held = {"name": "held", "kind": "training", "allocations": rows[:1]}
    table = hours_table({"workloads": [held, own], "scenario": {}})
    assert table.rows == [
        ["own", "training", "15", "150", "$2.00"],
        ["held", "training", "10", "100", "under contract"],
    ]


def test_a_copy_of_data_says_of_what() -> None:
    rows = list(csv.DictReader(io.StringIO(render_plan(plan_named("portfolio")))))
    assert [(row["workload"], row["region"], row["cost_usd"]) for row in rows if row["kind"] == "copy"] == [
        ("web", "us-east-2", "1827.945205")
    ]


def problem(severity: str) -> Problem:
    return Problem(reference="x", message="m", places=(Place(file="f"),), hint="h", severity=severity)


@pytest.mark.parametrize(
    ("found", "ok", "errors", "verdict"),
    [
        ([], True, 0, "p: ok"),
        (["warning"], True, 0, "p: no errors, 1 warning"),
        (["error"], False, 1, "p: 1 error, no warnings"),
        (["warning", "error", "error"], False, 2, "p: 2 errors, 1 warning"),
    ],
)
def test_warnings_alone_are_no_mistake(found: list[str], ok: bool, errors: int, verdict: str) -> None:
    problems = [problem(severity) for severity in found]
    told = json.loads(findings(problems, "p", "json"))
    assert (told["ok"], told["errors"], len(told["problems"])) == (ok, errors, len(found))
    assert findings(problems, "p", "table").split("\n")[0].strip() == verdict


def test_a_drawing_stands_on_its_feet() -> None:
    lines = scatter([0, 9], [0, 10], "xo", width=20, x_label="{:.0f}".format, y_label="{:.0f}".format)
    assert "o" in lines[0]
    assert "x" in lines[HEIGHT - 1]
    assert lines[0].startswith(" 10┤ ")
    assert lines[HEIGHT - 1].startswith("  0┤x")


@pytest.mark.parametrize("first", list("=+-@\t\r\n＝＋－＠"))
def test_no_cell_begins_like_a_formula(first: str) -> None:
    hidden = (
        [] if first.isspace() else [f"  {first}1", f"\u202e{first}1"]
    )  # what strips blanks finds it, or what is unseen
    for text in (f"{first}1", *hidden):
        assert escape.csv_cell(text).startswith("'")


@pytest.mark.parametrize(
    "character", ["\u202e", "\u2066", "\u200b", "\ufeff", "\xad", "\x1b", "\x07", "\x9b", "\ud800"]
)
def test_what_turns_text_around_or_cannot_be_seen_reaches_no_terminal(character: str) -> None:
    assert escape.terminal(f"a{character}b") == "ab"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("<b>", "&lt;b&gt;"), ("&", "&amp;"), ('"', "&quot;"), ("'", "&#39;"), ("&quot;", "&amp;quot;"), ("é", "é")],
)
def test_html_holds_no_mark_of_its_own(text: str, shown: str) -> None:
    assert escape.html(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@someone", "&#64;someone"),
        ("https://x.y", "https&#58;//x.y"),
        ("WWW.x.y", "WWW&#46;x.y"),
        ("a|b", r"a\|b"),
        ("*a* _b_ `c` [d] ~e~ $f$", r"\*a\* \_b\_ \`c\` \[d\] \~e\~ \$f\$"),
        ("# a", r"\# a"),
        ("1. a", r"1\. a"),
        ("- a", r"\- a"),
        ("<b>", "&lt;b&gt;"),
        ("a - b", "a - b"),
    ],
)
def test_markdown_holds_no_mark_of_its_own(text: str, shown: str) -> None:
    assert escape.markdown(text) == shown
