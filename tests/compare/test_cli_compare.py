"""`plan compare` and `plan catalog diff --scenario` as people and pipelines use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.catalog.frozen import frozen_text
from planner.report.compare_view import render_comparison
from tests.compare.conftest import check_golden
from tests.compare.worlds import QUESTION, at_prices, base, market, question, side

Run = Callable[..., tuple[int, str, str]]
RUNPOD = "runpod:US-CA-1:1x_A100-80GB_SECURE:on_demand"
HYPERBOLIC = "hyperbolic:default:2x-H100-149-1443:on_demand"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, two catalogs as frozen files, and a plan of each."""
    (tmp_path / "small.yaml").write_text(QUESTION, encoding="utf-8")
    cheaper = at_prices(market(), {RUNPOD: 1.0})
    for name, catalog in (("old.json", market()), ("new.json", cheaper)):
        (tmp_path / name).write_text(frozen_text(catalog), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, catalog in (("base", market()), ("cheaper", cheaper)):
        plan = api.solve(api.load_scenario("small.yaml"), catalog)
        (tmp_path / f"{name}.plan.json").write_text(plan.to_json(), encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    """Comparisons of every sort, for golden files."""
    cheaper = side("cheaper", at_prices(market(), {RUNPOD: 1.0}))
    dearer = side("dearer", at_prices(market(), {HYPERBOLIC: 9.0}), "serving.chat.qpm=600")
    nothing = side("nothing", None, "limits.budget=$100")
    return {
        "price": without_digests(api.compare(base(), cheaper).document),
        "three": without_digests(api.compare(base(), dearer, nothing).document),
        "same": without_digests(api.compare(base(), base()).document),
    }


def without_digests(document: dict[str, Any]) -> dict[str, Any]:
    """The document with catalogs of digests that no fact of the shipped catalog changes."""
    for one in document["comparisons"]:
        for number, side_ in enumerate(("old", "new")):
            one["inputs"]["catalog"][side_]["sha256"] = str(number) * 64
    return document


@pytest.mark.parametrize("name", ["price", "three", "same"])
@pytest.mark.parametrize("width", [80, 120])
def test_golden_tables(documents: dict[str, dict[str, Any]], name: str, width: int) -> None:
    text = render_comparison(documents[name], "table", width=width)
    assert max(map(len, text.splitlines())) <= width
    check_golden(f"{name}-{width}.txt", text)


@pytest.mark.parametrize("name", ["price", "three", "same"])
def test_golden_comments(documents: dict[str, dict[str, Any]], name: str) -> None:
    text = render_comparison(documents[name], "md")
    assert text.count("<details>") == text.count("</details>") <= 1
    check_golden(f"{name}.md", text)


def test_what_one_plan_alone_warns_of_and_how_sure_both_are(documents: dict[str, dict[str, Any]]) -> None:
    """That the cheaper plan is on a device that nobody measured was dropped, and so was the range of its cost."""
    document = json.loads(json.dumps(documents["price"]))
    document["sides"][1]["warnings"].append("chat on k80: nothing was measured there")
    shown, whole = (" ".join(render_comparison(document, "table", full=full).split()) for full in (False, True))
    assert "Warnings · chat on k80: nothing was measured there (cheaper) Inputs" in shown
    assert "the KV cache is not counted in memory" in whole  # which both warn of
    assert "likely $1,011 to $1,053 → $756 to $797 (p10 to p90)" in shown


def test_two_catalogs_for_a_scenario(here: Path, run: Run) -> None:
    code, out, _ = run("compare", "old.json", "new.json", "--scenario", "small.yaml")
    assert code == 0
    assert "old.json → new.json" in out
    assert RUNPOD in out
    assert "this alone moves what is rented" in " ".join(out.split())


def test_an_increase_is_of_totals_of_one_time(here: Path, run: Run) -> None:
    """Two months of a fleet cost twice as much as one, and nothing became dearer."""
    flags = ("--set", "horizon='2 months'", "--no-cause")
    code, out, err = run("compare", "small.yaml", *flags, "--max-increase", "5%")
    assert (code, "totals are of different times" in " ".join(out.split())) == (2, True)
    assert "horizons differ" in err
    assert run("compare", "small.yaml", *flags)[0] == 0
    assert run("compare", "small.yaml", "--set", "limits.max_devices=60", "--no-cause", "--max-increase", "5%")[0] == 0


def test_exit_codes_for_pipelines(here: Path, run: Run) -> None:
    sides = ("compare", "old.json", "new.json", "--scenario", "small.yaml", "--no-cause", "-q")
    assert run(*sides, "--exit-code")[0] == 7
    assert run(*sides, "--max-increase", "0%")[0] == 0, "it became cheaper"
    back = ("compare", "new.json", "old.json", "--scenario", "small.yaml", "--no-cause", "-q")
    assert run(*back, "--max-increase", "5%")[0] == 7, "it became dearer"


def test_plans_by_their_files(here: Path, run: Run) -> None:
    code, out, _ = run("compare", "base.plan.json", "cheaper.plan.json", "-o", "json")
    document = json.loads(out)
    assert code == 0
    assert [one["name"] for one in document["sides"]] == ["base", "cheaper"]
    assert not document["comparisons"][0]["cause"]["looked_for"]
    assert "--hardware" in document["comparisons"][0]["cause"]["reason"]
    code, out, _ = run("compare", "base.plan.json", "base.plan.json", "--exit-code")
    assert code == 0
    assert "base.plan.json (1) → base.plan.json (2)" in out


def test_what_cannot_be_met_is_named_by_its_workload(here: Path, run: Run) -> None:
    """A comparison said "training[0].deadline", and three limits with "and" between all of them."""
    nothing = side("nothing", None, "training.tune.deadline=1 min")
    assert nothing.told()["reason"] == "proven infeasible: tune and training.tune.deadline 60 s cannot all be met"
    conflict = [{"name": name, "label": name} for name in ("tune", "chat", "limits.max_devices")]
    several = replace(nothing, document={**nothing.document, "infeasible": {"conflict": conflict}})  # type: ignore[typeddict-item]
    assert several.told()["reason"].endswith(": tune, chat and limits.max_devices cannot all be met")


def test_one_scenario_beside_its_cases_and_settings(here: Path, run: Run) -> None:
    cases = ("--case", "busy", "--case", "both")
    code, out, _ = run("compare", "small.yaml", *cases, "--hardware", "old.json", "-o", "json")
    document = json.loads(out)
    assert code == 0
    assert [one["name"] for one in document["sides"]] == ["small", "busy", "both"]
    assert [len(one["inputs"]["scenario"]) for one in document["comparisons"]] == [1, 2]
    setting = "serving.chat.qpm=600"
    code, out, _ = run("compare", "small.yaml", "--set", setting, "--hardware", "old.json", "-o", "csv")
    assert code == 0
    assert out.splitlines()[1].startswith(f"small,{setting},tune,training")


def test_catalog_diff_says_what_it_does_to_a_plan(here: Path, run: Run) -> None:
    code, out, _ = run("catalog", "diff", "old.json", "new.json", "--scenario", "small.yaml", "-o", "json")
    document = json.loads(out)
    assert code == 0
    assert [row["id"] for row in document["prices"]] == [RUNPOD]
    assert document["plans"]["comparisons"][0]["cause"]["found"][0]["id"] == RUNPOD
    code, out, _ = run("catalog", "diff", "old.json", "new.json", "--scenario", "small.yaml")
    assert out.index("Prices") < out.index("Because") < out.index("Break-even")
    assert run("catalog", "diff", "old.json", "new.json", "--set", "horizon=1 week")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("small.yaml",), "only one thing to compare"),
        (("base.plan.json",), "only one thing to compare"),
        (("old.json", "new.json", "--scenario", "small.yaml", "--hardware", "old.json"), "--hardware"),
        (("small.yaml", "small.yaml", "--scenario", "small.yaml"), "--scenario"),
        (("small.yaml", "small.yaml", "--case", "busy", "--case", "both"), "several cases"),
        (("base.plan.json", "cheaper.plan.json", "--set", "horizon=1 week"), "name its scenario"),
        (("base.plan.json", "cheaper.plan.json", "--price", "a100-*=+20%"), "made with --price"),
        (("small.yaml", "--set", "serving.chat.qpm=9", "--max-increase", "-3%"), "--max-increase"),
        (("small.yaml", "--set", "serving.chat.qpm=9", "--max-increase", "much"), "--max-increase"),
        (("small.yaml", "--set", "serving.chat.qpm=9", "--max-increase", "5"), 'write "5%", or "500%" where 6 times'),
    ],
)
def test_what_cannot_be_compared_is_refused(here: Path, run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run("compare", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "hint:" in err


def test_a_missing_file_is_an_error_with_its_name(here: Path, run: Run) -> None:
    code, _, err = run("compare", "base.plan.json", "nowhere.plan.json")
    assert code == 3
    assert "nowhere.plan.json" in err


@pytest.mark.parametrize("form", ["table", "md", "csv"])
def test_names_of_others_stay_text(form: str) -> None:
    evil = "=cmd|'/c calc'!A1\x1b[31m<script>alert(1)</script>|`x`"
    document = json.loads(api.compare(base(), side("B", None, "serving.chat.qpm=600")).to_json())
    document["sides"][1]["name"] = document["comparisons"][0]["new"] = evil
    document["comparisons"][0]["workloads"][1]["name"] = evil
    text = render_comparison(document, form)
    assert "\x1b" not in text
    if form == "md":
        assert "<script>" not in text
    if form == "csv":
        assert not any(cell.lstrip('"').startswith("=") for line in text.splitlines() for cell in line.split(","))


def test_a_plan_of_no_change_says_so(documents: dict[str, dict[str, Any]]) -> None:
    text = render_comparison(documents["same"], "table")
    assert "the same decision for the same money" in text
    assert "Because" not in text


def test_question_has_its_cases() -> None:
    assert question(case="both").training[0].deadline_s == 6 * 3600.0


def test_a_plan_that_was_changed_is_told_and_never_the_same_money(run: Run, here: Path) -> None:
    """Its total is twice that of its workloads: no headline of the same money, and both gates shut."""
    document = json.loads((here / "base.plan.json").read_text())
    for key in ("cost_microusd", "cost_usd"):
        document["summary"][key] *= 2
    (here / "forged.plan.json").write_text(json.dumps(document))
    code, out, err = run("compare", "base.plan.json", "forged.plan.json", "--hardware", "old.json", "--exit-code")
    assert code == 7
    assert "the same decision at another cost" in out
    assert "the plan does not hold" in err
    assert "  forged.plan.json\n" in err
    assert "base.plan.json" not in err
    assert (
        run("compare", "base.plan.json", "forged.plan.json", "--hardware", "old.json", "--max-increase", "50%")[0] == 7
    )
    assert run("compare", "base.plan.json", "base.plan.json", "--hardware", "old.json", "--exit-code")[0] == 0
    sides = api.compare("base.plan.json", "forged.plan.json", catalog=market(), cause=False).document["sides"]
    assert [side["status"] for side in sides] == ["optimal", "feasible"]


def test_contracts_are_told_as_paid_apart(run: Run) -> None:
    """A fleet "$783,494 → $0, -100 %" under contracts of $1,249,735, a line below."""
    asks = ("compare", "scenarios/reserve.yaml", "--set", "hardware.pricing=on_demand", "--no-cause")
    back = " ".join(run(*asks)[1].split())
    assert "contracts are paid apart: what runs under them costs a workload nothing more" in back
    assert "paid apart" not in run("compare", "scenarios/gpt2-xl.yaml", "--set", "prefer=cheapest", "--no-cause")[1]
