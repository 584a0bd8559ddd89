"""A plan, its document and its file are one to every function; what they answer is short, and shows itself."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import planner
from planner import api
from planner.answers import Explanation, Plan, Report
from planner.answers.plan_answer import COLUMNS
from planner.brief import brief, some
from planner.errors import InputError, UsageError
from planner.export import Export
from planner.plan.document import resealed
from planner.report.explanation_view import render_explanation
from tests import shipped
from tests.report.test_notebook_views import HOSTILE, INERT, Page
from tests.tiers import sampled

pytestmark = pytest.mark.usefixtures("answered_once", "listed_once", "rated_once")
MOST = 2_000  # characters of a repr


@pytest.fixture(scope="module")
def session() -> api.Session:
    return planner.session("llama")


@pytest.fixture(scope="module")
def plan(session: api.Session) -> Plan:
    return session.solve()


@pytest.fixture(scope="module")
def path(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plan") / "llama.plan.json"
    plan.write(file)
    return file


# ---- a plan, its document, its file

TAKEN: dict[str, Callable[[Any], Any]] = {
    "verify": planner.verify,
    "explain": lambda given: str(planner.explain(given, "assistant")),
    "export_plan": lambda given: [file.text for file in planner.export_plan(given, "skypilot").files],
    "report": api.report,
    "tradeoffs": lambda given: api.tradeoffs("llama", plan=given),
    "margins": lambda given: api.margins("gpt2-xl", plan=given),
    "compare": lambda given: planner.compare(given, "gpt2-xl", cause=False).document,
    "compared": lambda given: planner.compare("gpt2-xl", given, cause=False).document,
    "side_of_plan": lambda given: api.side_of_plan("a", given).document,
}


@pytest.mark.parametrize("name", sampled(TAKEN, 4))
def test_a_plan_its_document_and_its_file_are_one(name: str, plan: Plan, path: Path) -> None:
    take = TAKEN[name]
    told = take(plan)
    assert take(plan.document) == told
    assert take(str(path)) == told
    assert take(path) == told


def test_a_good_plan_verifies_however_it_is_given(plan: Plan, path: Path) -> None:
    assert planner.verify(plan) == plan.verify() == planner.verify(plan.document) == planner.verify(path) == []


@pytest.mark.parametrize("given", [None, 7, [], b"llama"])
def test_anything_else_is_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match="a plan, its document or the path of its file is wanted"):
        planner.verify(given)
    with pytest.raises(TypeError, match="a scenario, its mapping, the path of its file or the name of one is wanted"):
        planner.solve(given)


def test_a_file_that_is_no_plan(tmp_path: Path) -> None:
    file = tmp_path / "no.plan.json"
    file.write_text("{}")
    for take in (planner.verify, Plan.read, planner.explain):
        with pytest.raises(InputError):
            take(file)
        with pytest.raises(InputError, match="there is no file"):
            take(tmp_path / "gone.plan.json")


def test_a_plan_is_written_and_read(plan: Plan, path: Path) -> None:
    assert Plan.read(path).document == plan.document
    assert Plan.read(str(path)).to_json() == path.read_text(encoding="utf-8")


def test_what_is_read_is_shown_as_far_as_it_is_proven(plan: Plan, path: Path, tmp_path: Path) -> None:
    """A plan that says "optimal" and has no certificate, under a seal of its own: nothing of it says "proven"."""
    assert "plain; the cheapest is proven" in str(Plan.read(path)) == str(plan)
    forged = tmp_path / "forged.plan.json"
    Plan(document=cast("Any", resealed({**plan.document, "certificate": None}))).write(forged)
    found = Plan.read(forged)
    assert {problem.reference for problem in found.verify()} == {"wrong-proof"}
    views = [str(found), found._repr_html_(), str(found.explain()), str(found.report()), found.report().to_html()]
    for text in views:
        assert re.findall(r"(?<!not )\bproven\b(?! (?:this close|far))", text) == []
    assert "not proven" in views[0]


# ---- methods


def test_methods_are_the_functions(plan: Plan) -> None:
    explained = plan.explain("pretrain-8b")
    assert isinstance(explained, Explanation)
    assert str(explained) == render_explanation(plan.document, "table", workload="pretrain-8b")
    assert "assistant" not in explained.render("csv")
    assert str(plan.explain(rejected=True)) == render_explanation(plan.document, "table", rejected=True)
    with pytest.raises(UsageError, match="no workload 'asistant'"):
        plan.explain("asistant")
    assert plan.compare("gpt2-xl", cause=False).document == planner.compare(plan, "gpt2-xl", cause=False).document
    assert plan.export("slurm") == planner.export_plan(plan, "slurm")
    assert plan.report().document == api.report(plan)


def test_launch_files_are_written(plan: Plan, tmp_path: Path) -> None:
    found = plan.export("slurm", workload="pretrain-8b")
    (written,) = found.write(tmp_path / "jobs")
    assert written.read_text(encoding="utf-8") == found.files[0].text
    assert repr(found) == f"<Export {written.name}>"


def test_a_report_in_every_form(plan: Plan, tmp_path: Path) -> None:
    report = plan.report(contingency=0.1)
    assert isinstance(report, Report)
    for ending in ("html", "md", "csv", "json", "txt", "xlsx"):
        report.write(tmp_path / f"report.{ending}")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads((tmp_path / "report.json").read_text())["plan"]["name"] == "llama"
    assert "xl/workbook.xml" in zipfile.ZipFile(tmp_path / "report.xlsx").namelist()
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == str(report)
    with pytest.raises(UsageError, match="what form is"):
        report.write(tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


# ---- frames


def at(row: Any, where: str) -> Any:
    for key in where.split("."):
        row = row[key]
    return row


def test_a_frame_of_all_that_is_rented(plan: Plan) -> None:
    frame = plan.to_frame()
    found = [(one["name"], row) for one in plan.document["workloads"] for row in one["allocations"]]
    trains = [name == "pretrain-8b" for name, _ in found]
    assert list(frame["workload"]) == [name for name, _ in found]
    assert {"pretrain-8b", "assistant"} == {name for name, _ in found}
    assert {"dp", "tp", "pp", "cp", "ep", "memory_needed_bytes", "ttft_p95_s", "hours_p90", "cost_usd"} <= set(frame)
    assert list(frame["pp"]) == [row["layout"]["pp"] for _, row in found]
    assert list(frame["memory_needed_bytes"]) == [row["memory"]["needed_bytes"] for _, row in found]
    assert frame["ttft_p95_s"].isna().tolist() == trains
    assert frame["hours_p90"].isna().tolist() == [not one for one in trains]
    served = trains.index(False)
    assert frame["tpot_p95_s"][served] == found[served][1]["point"]["tpot_s"]["p95"]
    assert frame["cost_microusd"].sum() == plan.document["summary"]["cost_microusd"]


@pytest.mark.parametrize("kind", ["training", "serving"])
def test_a_frame_of_one_kind_tells_all_of_it(plan: Plan, kind: Any) -> None:
    frame = plan.to_frame(kind)
    (workload,) = [one for one in plan.document["workloads"] if one["kind"] == kind]
    rows = workload["allocations"]
    assert list(frame) == list(COLUMNS[kind])
    assert list(frame["workload"]) == [workload["name"]] * len(rows)
    for name, where in COLUMNS[kind].items():
        if name not in ("workload", "kind", "mix", "mix_share"):  # no job of it is mixed
            assert list(frame[name]) == [at(row, where) for row in rows], name


def test_a_mix_is_told_row_by_row() -> None:
    frame = Plan(document=cast("Any", shipped.plan("mixed-job"))).to_frame(kind="training")
    assert len(frame) == 2
    assert frame["mix_share"].sum() == pytest.approx(1)


def test_a_frame_of_no_such_kind(plan: Plan, session: api.Session) -> None:
    for take in (plan.to_frame, session.candidates.to_frame):
        with pytest.raises(ValueError, match="kind is 'training', 'serving' or left out, not 'train'"):
            take("train")


def test_a_plan_without_rows_has_its_columns() -> None:
    frame = Plan(document=cast("Any", shipped.plan("infeasible"))).to_frame()
    assert len(frame) == 0
    assert "tp" in frame


def test_frames_of_candidates(session: api.Session) -> None:
    listed = session.candidates
    rows = planner.candidates_table("llama")
    frame = listed.to_frame()
    assert len(frame) == len(rows)
    assert list(frame["cost_microusd"]) == [row["cost_microusd"] for row in rows]
    trained, served = listed.to_frame("training"), listed.to_frame("serving")
    assert len(trained) + len(served) == len(frame)
    assert set(trained["workload"]) == {"pretrain-8b"}
    assert trained["vpp"].min() >= 1
    assert "vpp" not in served
    assert "requests_per_s" not in trained
    assert (frame["vpp"].isna() == (frame["workload"] == "assistant")).all()


# ---- how things call themselves


def test_nothing_that_is_answered_is_long(session: api.Session, plan: Plan) -> None:
    swept = planner.frontier("gpt2-xl", over="deadline", low="10d", high="20d")
    answers = [
        session, plan, swept, session.candidates, session.candidates.program, session.answer()[1],
        session.candidates.tables, session.scenario, session.catalog, planner.load_model("deepseek-v3"),
        planner.load_scenario("portfolio"), planner.candidates_table("llama"), planner.shipped_scenarios(),
        plan.compare("gpt2-xl", cause=False), plan.explain(), plan.report(), plan.export("skypilot"),
        api.side_of_plan("a", plan), api.Rows(),
    ]  # fmt: skip
    for answer in answers:
        assert 0 < len(repr(answer)) <= MOST, type(answer)
    assert repr(plan) == "<Plan llama: optimal>"
    assert repr(session) == "<Session llama, catalog shipped, optimal>"
    assert repr(session.scenario) == str(session.scenario) == "<Scenario llama, pretrain-8b, assistant>"
    assert repr(session.candidates).startswith("<Candidates llama, ways: pretrain-8b ")


def test_long_names_are_cut() -> None:
    assert brief("Plan", "x" * 5_000).endswith("…>")
    assert len(brief("Plan", "x" * 5_000)) == 400
    assert brief("Plan") == brief("Plan", "", None) == "<Plan>"
    assert brief("Plan", 0) == "<Plan 0>"
    assert some("abc", 2) == "a, b and 1 more"
    assert some("ab", 2) == "a, b"


@pytest.mark.parametrize("what", ["scenario", "catalog", "candidates", "session", "explanation", "report", "rejected"])
def test_what_a_notebook_shows_is_inert(what: str, session: api.Session, plan: Plan) -> None:
    shown: Any = {
        "scenario": lambda: session.scenario,
        "catalog": lambda: session.catalog,
        "candidates": lambda: session.candidates,
        "session": lambda: session,
        "explanation": plan.explain,
        "rejected": lambda: plan.explain(rejected=True),
        "report": plan.report,
    }[what]()
    page = Page(shown._repr_html_())
    assert page.open == []
    assert set(page.tags) <= INERT
    assert page.attributes <= {"style", "scope", "title", "role", "aria-label"}
    wanted = "h100-sxm-80gb" if what in ("catalog", "explanation", "report") else "pretrain-8b"
    assert wanted in page.text


def test_what_a_scenario_says_stays_text(tmp_path: Path) -> None:
    file = tmp_path / "hostile.yaml"
    entry = "{name: a, model: gpt2, tokens: 1B, deadline: 30 days}"
    file.write_text(f"schema: plan/v1\nname: a\ntitle: '<script>alert(1)</script>'\ntraining: [{entry}]\n")
    session = planner.session(file)
    for text in (session.scenario._repr_html_(), session._repr_html_()):
        assert set(Page(text).tags) <= INERT
    assert "<script>alert(1)</script>" in Page(session.scenario._repr_html_()).text
    assert HOSTILE not in repr(session.scenario)


def test_tables_of_a_notebook_are_cut() -> None:
    scenario = planner.load_scenario("portfolio")
    page = Page(scenario._repr_html_())
    assert page.tags.count("tr") == 21
    assert "25 rows, the first 20 of them" in page.text
    catalog = planner.load_catalog()
    assert Page(catalog._repr_html_()).tags.count("tr") == 21
    assert f"{len(catalog.devices)} rows" in Page(catalog._repr_html_()).text


def test_the_catalog_shows_its_cheapest_price() -> None:
    catalog = planner.load_catalog()
    frame = catalog.to_frame()
    usable = frame[(frame["device"] == "h100-sxm-80gb") & (frame["quality"] == "")]
    least = usable["usd_per_device_hour"].min()
    cells = catalog._repr_html_().split("<tr>")
    (row,) = [cell for cell in cells if ">h100-sxm-80gb<" in cell]
    assert f">{len(usable)}<" in row
    assert f"${least:.2f}" in row


def test_an_export_says_what_it_could_not_write() -> None:
    assert repr(Export(files=(), refusals=())) == "<Export no files>"
