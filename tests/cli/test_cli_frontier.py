"""`plan frontier`, and what `plan solve` tells of other plans: formats, files, exit codes, hostile names."""

from __future__ import annotations

import csv
import doctest
import io
import json
import re
import shlex
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from planner import api
from planner.analysis.frontier.document import flat_rows
from planner.report import frontier_view
from planner.report.frontier_view import plot_lines, render_frontier
from planner.report.text import cells
from planner.scenario.load import load_scenario, with_settings
from tests.cli.conftest import HERE, Run, check_golden, without_price_age
from tests.verified import follow_schema

if TYPE_CHECKING:
    from planner.plan.model.frontier_document import FrontierDocument

pytestmark = pytest.mark.usefixtures("answered_once")

SWEEP = ("frontier", "scenarios/gpt2-xl.yaml", "--over", "budget")
HOSTILE = ["<script>alert(1)</script>", "=1+1", "a|b", "\x1b[31mred", "</script><b>", "[x](http://evil)", "\"'&"]


def test_a_sweep_in_every_format(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = run(*SWEEP)
    assert (table.code, without_price_age(table.err)) == (0, "")
    assert max(map(cells, table.out.splitlines())) <= 80
    assert "proven" in table.out
    assert "Points are kept in .plan/gpt2-xl.frontier.jsonl" in table.out
    journal = (here / ".plan/gpt2-xl.frontier.jsonl").read_bytes()
    document = json.loads(run(*SWEEP, "-o", "json").out, parse_constant=pytest.fail)
    assert document["schema"] == "plan/frontier/v1"
    follow_schema(document, "frontier")
    rows = list(csv.DictReader(io.StringIO(run(*SWEEP, "-o", "csv").out)))
    assert [float(row["cost_usd"]) for row in rows] == [point["cost_usd"] for point in document["points"]]
    shown = run(*SWEEP, "-o", "md").out
    assert shown.count("\n| ") == len(rows) + 1
    answer = run(*SWEEP, "-o", "html", "--out", "f.html")
    assert (answer.code, without_price_age(answer.err)) == (0, "wrote f.html\n")
    page = (here / "f.html").read_text(encoding="utf-8")
    assert page.split('id="frontier-figure"')[1].split("</figure>")[0].count("<title>") == len(rows)
    assert "<script" not in page
    assert (here / ".plan/gpt2-xl.frontier.jsonl").read_bytes() == journal  # nothing was solved again


def test_without_a_journal_nothing_is_kept(run: Run, here: Path) -> None:
    assert run(*SWEEP, "--no-journal").code == 0
    assert not (here / ".plan").exists()


def test_points_that_are_left(run: Run, here: Path) -> None:
    first = run(*SWEEP, "--most", "2", "-o", "json")
    assert first.code == 5
    assert json.loads(first.out)["complete"] is False
    assert run(*SWEEP, "-o", "json").code == 0


def test_a_range_without_any_plan(run: Run, here: Path) -> None:
    answer = run("frontier", "scenarios/gpt2-xl.yaml", "--over", "budget=$1..$2")
    assert answer.code == 4
    (told,) = re.findall(r"why: plan solve scenarios/gpt2-xl.yaml (--set.*)", re.sub(r"\\\n\s*", "", answer.out))
    assert told == """--set 'objective=["time","cost"]' --set 'limits.budget=$2.00'"""
    assert run("solve", "scenarios/gpt2-xl.yaml", *shlex.split(told)).code == 4


@pytest.mark.parametrize(("over", "more"), [("deadline=1h..2h", {}), ("carbon", {"limits.max_devices": 0})])
def test_the_question_that_is_told_is_the_one_that_was_asked(over: str, more: dict[str, Any]) -> None:
    """The scenario's own limit of carbon, which the sweep lifts, stood in its way."""
    job = {"training.gpt2-xl.deadline": None, "training.gpt2-xl.hours": 2000, "limits.carbon": "1 kg"}
    asked = load_scenario("gpt2-xl").with_(job | more)
    limit, _, ends = over.partition("=")
    low, high = ends.split("..") if ends else (None, None)
    found = api.frontier(asked, over=limit, low=low, high=high)
    assert found.status == "infeasible"
    settings = found.document["sweep"]["loosest"]
    again = with_settings(asked, settings)
    assert {job.deadline_s for job in again.training} == {7200.0 if high else 2000 * 3600.0}
    assert (again.limits.carbon_g is None) == (limit == "carbon")
    assert api.solve(again).document["status"] == "infeasible"


def test_a_frontier_says_what_its_plans_warn_of() -> None:
    """They were dropped: of a plan on devices that nobody measured, or where grids are unknown, nothing was told."""
    found = api.frontier("gpt2-xl", over="budget")
    best = api.solve("gpt2-xl").document["warnings"]
    assert any("no such job was measured" in warning for warning in best)
    told = found.document["messages"]
    assert all(any(text.startswith(warning) for text in told) for warning in best)
    assert len({text.partition(" (from ")[0] for text in told}) == len(told)  # each once
    assert best[0][:40] in str(found)


@pytest.mark.parametrize(
    ("arguments", "reference"),
    [
        ((), "missing-option"),
        (("--over", "deadline"), "missing-range"),
        (("--over", "deadline=7d"), "missing-range"),
        (("--over", "deadline=9d..7d"), "out-of-range"),
        (("--over", "deadline=7..9"), "missing-unit"),
        (("--over", "speed=1..2"), "unknown-limit"),
        (("--over", "budget", "--against", "cost"), "nothing-to-trade"),
        (("--over", "deadline=7d..9d", "--workload", "other"), "unknown-workload"),
        (("--over", "budget", "--gap", "2"), "out-of-range"),
    ],
)
def test_usage(run: Run, here: Path, arguments: tuple[str, ...], reference: str) -> None:
    answer = run("frontier", "scenarios/gpt2-xl.yaml", *arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert f"error[{reference}]" in answer.err
    assert "hint: " in answer.err


def test_what_is_no_limit_is_told_where_it_is_swept(run: Run, here: Path) -> None:
    answer = run("frontier", "scenarios/chat-fleet.yaml", "--over", "qpm=100..900")
    assert "plan sweep solves a scenario at values of anything" in answer.err


def test_a_fleet_alone_has_no_deadline(run: Run, here: Path) -> None:
    answer = run("frontier", "scenarios/chat-fleet.yaml", "--over", "deadline=7d..9d")
    assert answer.code == 2
    assert "error[nothing-to-trade]" in answer.err


@pytest.mark.parametrize(("low", "high"), [("$10k", "$60k"), ("$10000", "$60000"), ("$0.01M", "$.06M")])
def test_money_may_be_written_short(low: str, high: str) -> None:
    from planner.analysis.frontier.question import sweep_of

    if high == "$.06M":
        high = "$0.06M"
    question = api.load_scenario("scenarios/gpt2-xl.yaml")
    sweep = sweep_of(question, over="budget", low=low, high=high)
    assert (sweep.low, sweep.high) == (10_000_000_000, 60_000_000_000)


def frontier_sample(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "samples" / "frontier" / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["deadline", "budget"])
def test_golden_views(name: str) -> None:
    shown = frontier_sample(name)
    follow_schema(shown, "frontier")
    rows = flat_rows(shown)
    for width in (80, 120):
        text = render_frontier(shown, "table", rows, width=width, journal=".plan/llama.frontier.jsonl")
        assert max(map(cells, text.splitlines())) <= width
        check_golden(f"frontier-{name}-{width}.txt", text)
    check_golden(f"frontier-{name}.md", render_frontier(shown, "md", rows))
    check_golden(f"frontier-{name}.csv", render_frontier(shown, "csv", rows))


def test_colour_changes_nothing_but_colour() -> None:
    shown = frontier_sample("deadline")
    plain, coloured = (render_frontier(shown, "table", [], colour=colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain != coloured


def test_nothing_found_says_so() -> None:
    shown = frontier_sample("budget")
    nothing = {**shown, "points": [], "unchanging": [], "status": "infeasible", "infeasible_below": None}
    assert "nothing meets every limit at a budget of $60,000" in render_frontier(nothing, "table", [])
    anything = {**nothing, "sweep": {**shown["sweep"], "high": None}}
    assert "nothing meets every limit, whatever the budget" in render_frontier(anything, "table", [])
    assert "nothing meets every limit at a budget of $60,000" in render_frontier(nothing, "html", [])
    one = {**shown, "points": shown["points"][:1]}
    assert "1 Pareto point," in render_frontier(one, "table", [])


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    root = Path(__file__).parents[2]
    return api.frontier(api.load_scenario(root / "scenarios/gpt2-xl.yaml"), over="budget").document


class Tags(HTMLParser):
    """Elements of a page, and its text outside of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.inside = tag
        self.links += [value or "" for name, value in attributes if name in ("src", "href") or name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text += data


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A frontier in which everything that can be a user's text is that name."""
    changed: dict[str, Any] = json.loads(json.dumps(document))
    changed |= {"name": name, "title": name, "case": name, "messages": [name]}
    for point in changed["points"]:
        for workload in point["workloads"]:
            workload["name"] = name
            for row in workload["allocations"]:
                row |= {"offer": name, "provider": name, "region": name, "device": name}
    changed["unchanging"] = []
    return changed


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(document: dict[str, Any], name: str) -> None:
    hostile = named(document, name)
    plain, page = Tags(), Tags()
    plain.feed(render_frontier(cast("FrontierDocument", {**document, "messages": []}), "html", []))
    page.feed(render_frontier(hostile, "html", []))
    assert Counter(page.seen) - Counter(plain.seen) == Counter(["div", "div", "section", "h3", "ul", "li"])  # a warning
    assert Counter(plain.seen) <= Counter(page.seen)
    assert page.links == plain.links == []
    for form in ("table", "md", "csv"):
        text = render_frontier(hostile, form, flat_rows(hostile))
        assert "\x1b" not in text
        assert "<script>" not in text or form != "md"
    sheet = csv.reader(io.StringIO(render_frontier(hostile, "csv", flat_rows(hostile))))
    assert not any(re.match(r"[=@]", cell) for row in sheet for cell in row)


def test_the_plot_shows_every_point(document: dict[str, Any]) -> None:
    lines = plot_lines(document, 100)
    marks = sum(line.count("x") + line.count("*") for line in lines[1:9]) - 1  # the legend has one
    assert 1 <= marks <= len(document["points"])
    assert len({len(line.split("│")[0].split("┤")[0]) for line in lines[1:9]}) == 1  # one margin


def test_the_plot_of_the_docstring() -> None:
    assert doctest.testmod(frontier_view).failed == 0


def test_other_plans_of_a_scenario(run: Run, here: Path) -> None:
    answer = run("solve", "scenarios/gpt2-xl.yaml", "--best", "3", "--within", "5%", "-o", "json")
    assert answer.code == 0
    plan = json.loads(answer.out)
    follow_schema(plan)
    others = plan["others"]
    costs = [decision["cost_microusd"] for decision in others["decisions"]["plans"]]
    assert costs == sorted(costs)
    assert costs[0] == plan["summary"]["cost_microusd"]
    assert len(costs) == 3
    for row in others["near_optimal"]["devices"]:
        assert row["fewest"] <= row["best"] <= row["most"]
    assert sum(row["best"] for row in others["near_optimal"]["devices"]) == plan["summary"]["devices"]
    shown = run("solve", "scenarios/gpt2-xl.yaml", "--best", "3", "--within", "5%").out
    assert "Decision" in shown
    assert "Within 5 %" in shown
    assert run("verify", ".plan/gpt2-xl.plan.json").code == 0


def test_staying_with_a_plan(run: Run, here: Path) -> None:
    """The dearest of three decisions is stayed with when that may cost as much, and not when it may not."""
    asked = ("solve", "scenarios/gpt2-xl.yaml", "--set", "hardware.owned=[]", "-o", "json")
    plan = json.loads(run(*asked, "--best", "3").out)
    decisions = plan["others"]["decisions"]["plans"]
    told, (dearest,) = plan["workloads"][0], decisions[-1]["workloads"]  # whose rows are told in short
    rows = [{**told["allocations"][0], **row} for row in dearest["allocations"]]
    before = {**plan, "workloads": [{**told, "allocations": rows}]}
    (here / "before.json").write_text(json.dumps(before), encoding="utf-8")
    dearer = decisions[-1]["dearer"]
    assert 0.001 < dearer < 0.9
    share = f"{100 * dearer + 0.1:.2f}%"
    stay = json.loads(run(*asked, "--previous", "before.json", "--within", share).out)
    assert stay["others"]["previous"]["changed_nodes"] == 0
    assert stay["summary"]["cost_microusd"] == decisions[-1]["cost_microusd"]
    assert stay["others"]["previous"]["staying_usd"] == pytest.approx(decisions[-1]["dearer_usd"])
    charged = json.loads(run(*asked, "--previous", "before.json", "--move-cost", "$100000").out)
    assert charged["others"]["previous"]["changed_nodes"] == 0
    shown = run(*asked[:-2], "--previous", "before.json")
    assert shown.code == 0
    words = " ".join(shown.out.split())
    assert "no plan is cheaper" in words
    assert "no plan changes fewer nodes" in words


@pytest.mark.parametrize(
    "arguments",
    [
        ("--move-cost", "$5"),
        ("--within", "200%"),
        ("--previous", "none.json"),
        ("--previous", "x", "--move-cost", "5 kg"),
    ],
)
def test_usage_of_other_plans(run: Run, here: Path, arguments: tuple[str, ...]) -> None:
    answer = run("solve", "scenarios/gpt2-xl.yaml", *arguments)
    assert answer.code == (3 if "none.json" in arguments else 2)
    assert "hint: " in answer.err


@pytest.mark.parametrize("over", ["deadline=15d..60d", "budget=$0..$60k", "carbon"])
def test_a_limit_as_it_is_told_is_enough(run: Run, here: Path, over: str) -> None:
    """Rounded to the nearest, "3.57 days" and "$5,013" had no plan at that cost, or none at all."""
    from planner.report.frontier_view import cells_of

    found = api.frontier("gpt2-xl", over=over.partition("=")[0], **ends(over)).document
    (_, from_), *_ = cells_of(found)
    (*_, point) = found["points"][:2]
    told = from_(point).removesuffix(" *")
    path = {"deadline": "training.gpt2-xl.deadline", "budget": "limits.budget", "carbon": "limits.carbon"}
    sweep = found["sweep"]
    asked = {"training.gpt2-xl.hours": None} if sweep["over"] == "deadline" else {}
    again = api.solve(
        load_scenario("gpt2-xl").with_(asked | {path[sweep["over"]]: told, "objective": [sweep["against"]]})
    )
    assert again.status == "optimal"
    if sweep["against"] == "cost":
        plain = again.document.get("plain")
        least = plain["cheapest_microusd"] if plain else again.document["summary"]["cost_microusd"]
        assert least <= point["cost_microusd"]


def ends(over: str) -> dict[str, str]:
    low, _, high = over.partition("=")[2].partition("..")
    return {"low": low, "high": high} if high else {}
