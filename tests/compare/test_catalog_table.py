"""`plan compare` of catalogs over several scenarios: a table, whoever works it out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import api
from planner.catalog.frozen import frozen_text
from planner.errors import UsageError
from planner.sweeps.document import Beside
from planner.sweeps.question import lost, without_plan
from tests.compare.worlds import QUESTION, at_prices, market
from tests.sweeps.told import row
from tests.verified import follow_schema

Run = Callable[..., tuple[int, str, str]]
RUNPOD = "runpod:US-CA-1:1x_A100-80GB_SECURE:on_demand"
BOTH = ("compare", "old.json", "new.json", "--scenario", "small.yaml", "--scenario", "busy.yaml")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two scenarios, and two catalogs as frozen files, the second with a cheaper offer."""
    (tmp_path / "small.yaml").write_text(QUESTION, encoding="utf-8")
    busy = QUESTION.replace("name: small", "name: busy").replace("qpm: 60\n", "qpm: 600\n")
    (tmp_path / "busy.yaml").write_text(busy, encoding="utf-8")
    for name, catalog in (("old.json", market()), ("new.json", at_prices(market(), {RUNPOD: 1.0}))):
        (tmp_path / name).write_text(frozen_text(catalog), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


NAMES = [(scenario, catalog) for scenario in ("small.yaml", "busy.yaml") for catalog in ("old.json", "new.json")]


def test_every_cell_is_what_solve_says_whoever_answers(here: Path, run: Run) -> None:
    code, out, _ = run(*BOTH, "-o", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(one["scenario"], one["catalog"]) for one in rows] == NAMES
    plans = [planner.solve(scenario, planner.load_catalog(catalog)) for scenario, catalog in NAMES]
    assert [one["plan_sha256"] for one in rows] == [plan.document["sha256"] for plan in plans]
    costs = [plan.document["summary"]["cost_microusd"] or 0 for plan in plans]
    assert [int(one["cost_microusd"]) for one in rows] == costs
    differences = [0, costs[1] - costs[0], 0, costs[3] - costs[2]]
    assert differences[1] < 0
    # a spreadsheet would take what begins with a minus for a formula
    assert [int(one["difference_microusd"].lstrip("'")) for one in rows] == differences
    text = run(*BOTH)[1]
    assert text.splitlines()[0] == "2 scenarios on 2 catalogs, each held against old.json"
    (together,) = [line.split() for line in text.splitlines() if "all together" in line]
    assert together == ["all", "together", "old.json", dollars(costs[0] + costs[2])]
    table, warnings = text.split("\n Warnings\n")
    assert "the KV cache is not counted" in " ".join(warnings.split())  # they were dropped
    assert table.splitlines()[-1].split()[:3] == ["new.json", dollars(costs[1] + costs[3]), dollars(sum(differences))]


def dollars(microusd: int) -> str:
    return ("-" if microusd < 0 else "") + f"${abs(microusd) / 1e6:,.0f}"


def test_the_same_bytes_from_processes_and_from_the_journal(here: Path, run: Run) -> None:
    whole = run(*BOTH, "-o", "json")[1]
    follow_schema(json.loads(whole), "sweep")
    assert run(*BOTH, "-o", "json", "--workers", "2", "--journal", "a.jsonl")[1] == whole
    kept = (here / "a.jsonl").read_bytes()
    assert kept.count(b"\n") == 4
    assert run(*BOTH, "-o", "json", "--journal", "a.jsonl")[1] == whole
    assert (here / "a.jsonl").read_bytes() == kept
    # another file by that name is another question
    (here / "busy.yaml").write_text(QUESTION.replace("name: small", "name: busy"), encoding="utf-8")
    assert run(*BOTH, "-o", "json", "--journal", "a.jsonl")[1] != whole
    assert (here / "a.jsonl").read_bytes().count(b"\n") == 6


def test_from_python(here: Path) -> None:
    found = planner.compare_catalogs(["small.yaml"], ["old.json", "default"], settings=["serving.chat.qpm=90"])
    scenario = api.load_scenario("small.yaml", settings=["serving.chat.qpm=90"])
    alone = planner.solve(scenario, planner.load_catalog("old.json"))
    assert found.points[0]["plan_sha256"] == alone.document["sha256"]
    assert not found.same
    assert not found.exceeds(0.0), "the catalog that ships has cheaper offers"
    back = planner.compare_catalogs(["small.yaml"], ["default", "old.json"])
    assert (back.exceeds(0.0), back.exceeds(1e6)) == (True, False)
    assert list(found.to_frame()["catalog"]) == ["old.json", "default"]
    assert str(found).splitlines()[0] == "1 scenario on 2 catalogs, each held against old.json"
    assert "all together" not in str(found), "of one scenario that says nothing"
    assert "<table" in found._repr_html_()
    for scenarios, catalogs in ([[], ["old.json"]], [["small.yaml"], []], [["small.yaml"], ["old.json", "old.json"]]):
        with pytest.raises(UsageError):
            planner.compare_catalogs(scenarios, catalogs)


def test_a_case_of_every_scenario(here: Path, run: Run) -> None:
    code, out, _ = run(*BOTH, "--case", "soonest", "-o", "csv")
    assert (code, out) == (3, "")
    for name in ("small", "busy"):
        text = (here / f"{name}.yaml").read_text(encoding="utf-8")
        (here / f"{name}.yaml").write_text(text.replace("both: [busy, soon]", "soonest: [soon]"), encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(run(*BOTH, "--case", "soonest", "-o", "csv")[1])))
    assert [one["plan_sha256"] for one in rows] == [
        planner.solve(api.load_scenario(scenario, case="soonest"), planner.load_catalog(catalog)).document["sha256"]
        for scenario, catalog in NAMES
    ]
    assert "case soonest" in run(*BOTH, "--case", "soonest")[1]


def test_what_has_no_plan_or_no_answer_is_a_row(here: Path, run: Run) -> None:
    """Nothing is fast enough within the hour; the other scenario stands, and all together is left out."""
    text = QUESTION.replace("name: small", "name: busy").replace("deadline: 10 days", "deadline: 5 min")
    (here / "busy.yaml").write_text(text, encoding="utf-8")
    code, out, _ = run(*BOTH)
    assert code == 0
    assert out.count("infeasible") == 2
    assert "together" not in out
    assert run(*BOTH, "--prices", "2020-01-01")[0] == 3


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("small.yaml", "busy.yaml"), "several scenarios are what catalogs are compared for"),
        (("old.json",), "several scenarios are what catalogs are compared for"),
        (("old.json", "new.json", "--hardware", "old.json"), "--hardware names one catalog for all sides"),
        (("old.json", "new.json", "--case", "busy", "--case", "both"), "several cases"),
        (("old.json", "old.json"), "a catalog is named twice"),
        (("old.json", "new.json", "--scenario", "small.yaml"), "a scenario is named twice"),
    ],
)
def test_usage(here: Path, run: Run, flags: tuple[str, ...], said: str) -> None:
    code, _, err = run("compare", *flags, *BOTH[3:])
    assert (code, said in " ".join(err.split())) == (2, True), err


@pytest.mark.parametrize("flag", [("--workers", "2"), ("--scheduler", "tcp://x:1"), ("--journal", "j")])
def test_one_scenario_is_not_shared_out(here: Path, run: Run, flag: tuple[str, str]) -> None:
    code, _, err = run("compare", "old.json", "new.json", "--scenario", "small.yaml", *flag)
    assert (code, "are for catalogs over scenarios" in " ".join(err.split())) == (2, True), err


def test_exit_codes(here: Path, run: Run) -> None:
    assert run(*BOTH, "--exit-code")[0] == 7
    back = ("compare", "new.json", "old.json", *BOTH[3:])
    assert run(*back, "--max-increase", "5%")[0] == 7
    assert run(*BOTH, "--max-increase", "5%")[0] == 0


def beside_first(mine: Any, first: Any) -> Beside:
    return Beside(scenario="s", catalog="c", point=mine, first=first)


def test_differences_and_what_counts_as_the_same() -> None:
    nothing, unknown = without_plan("infeasible", None), lost("x", "y", "z")
    dearer = beside_first(row(5.5), row(5.0))
    assert (dearer.difference_microusd, dearer.change, dearer.same) == (500_000, 0.1, False)
    assert (dearer.exceeds(0.09), dearer.exceeds(0.1)) == (True, False)
    assert beside_first(row(5.0), row(5.0)).same
    assert not beside_first(row(5.0, "a: two"), row(5.0)).same
    assert beside_first(nothing, nothing).same
    assert not beside_first(unknown, unknown).same, "nothing is known of either"
    for one in (beside_first(nothing, row(5.0)), beside_first(unknown, row(5.0))):
        assert (one.difference_microusd, one.change, one.exceeds(1e6)) == (None, None, True)
    assert not beside_first(row(5.0), nothing).exceeds(0.0)
    assert beside_first(row(5.0), row(0.0)).change is None


def test_scenarios_are_an_axis_of_a_sweep(here: Path) -> None:
    """Settings and prices go on each; the same file in another folder's words is another value, with the same plan."""
    grid = planner.grid("scenario=small.yaml,busy.yaml", "serving.chat.qpm=90,600")
    found = planner.sweep(planner.session("busy.yaml", planner.load_catalog("old.json")), grid)
    for point, (name, qpm) in zip(found.points, grid.points, strict=True):
        scenario = api.load_scenario(name, settings=[f"serving.chat.qpm={qpm}"])
        assert point["plan_sha256"] == planner.solve(scenario, planner.load_catalog("old.json")).document["sha256"]
    asked = api.Question(scenario="small.yaml")
    assert "scenario=small.yaml" in str(planner.sweep("busy.yaml", [asked, api.Question()]))
    rows = planner.sweep("busy.yaml", [asked, api.Question()]).to_frame()
    assert list(rows["scenario"].fillna("")) == ["small.yaml", ""]


def test_prices_in_currencies_that_scenarios_count_otherwise(here: Path) -> None:
    other = QUESTION.replace("name: small", "name: busy") + "currency: {EUR: 1.5, as_of: 2026-11-01}\n"
    (here / "busy.yaml").write_text(other, encoding="utf-8")
    found = planner.compare_catalogs(["small.yaml", "busy.yaml"], ["old.json"], price=["h100-*=+10%"])
    assert [point["status"] for point in found.points] == ["optimal", "refused"]
    assert found.points[1]["problem"]["reference"] == "two-rates"  # type: ignore[index]
    assert found.exit_code == 5
    plain = planner.compare_catalogs(["small.yaml", "busy.yaml"], ["old.json"])
    assert [point["status"] for point in plain.points] == ["optimal", "optimal"]
