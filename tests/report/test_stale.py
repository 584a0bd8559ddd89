"""A plan that its scenario or its catalog has left behind is refused, and named what changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner import api
from planner.plan.plan_files import changed_keys, scenario_of, stale_problems

SCENARIO = """\
schema: plan/v1
name: small
training:
  - {name: job, model: gpt2-xl, tokens: 1B, deadline: 30 days, sequence_length: 1024, global_batch: 512k tokens}
hardware: {allow: [a100-sxm-80gb]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("stale") / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    plan = api.solve(api.load_scenario(path, settings=["training.job.deadline=20 days"]))
    return path, json.loads(plan.to_json())


def test_a_plan_of_today_is_fresh_also_when_it_was_made_with_settings(
    made: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plan = made
    monkeypatch.chdir(path.parent)
    assert scenario_of(plan) is not None
    assert plan["settings"] == ["training.job.deadline=20 days"]
    assert stale_problems(plan, api.load_catalog(), scenario_of(plan)) == []


def test_an_edit_of_the_scenario_is_named(made: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    path, plan = made
    monkeypatch.chdir(path.parent)
    path.write_text(SCENARIO.replace("1B", "2B"), encoding="utf-8")
    (problem,) = stale_problems(plan, api.load_catalog(), scenario_of(plan))
    assert problem.reference == "stale-plan"
    assert "training.job.tokens" in problem.message
    assert "--allow-stale" in problem.hint
    path.write_text(SCENARIO, encoding="utf-8")


def test_an_edit_of_the_catalog_is_named(made: tuple[Path, dict[str, Any]]) -> None:
    _, plan = made
    other = replace(api.load_catalog(), digest="f" * 64)
    (problem,) = stale_problems(plan, other, scenario_of(plan))
    assert "ffffffff" in problem.message


def test_a_scenario_that_is_gone_is_no_edit(made: tuple[Path, dict[str, Any]]) -> None:
    _, plan = made
    gone = {**plan, "scenario_file": "nowhere/small.yaml"}
    assert scenario_of(gone) is None
    assert stale_problems(gone, api.load_catalog(), None) == []


def test_changed_keys_are_those_of_set() -> None:
    before = {"limits": {"budget": "$1"}, "training": [{"name": "a", "tokens": "1B"}, {"name": "b", "tokens": "1B"}]}
    after = {"training": [{"name": "b", "tokens": "2B"}, {"name": "a", "tokens": "1B"}], "horizon": "1 month"}
    assert changed_keys(before, after) == ["limits", "training.b.tokens", "horizon"]
    assert changed_keys(before, before) == []


def test_how_a_plan_is_reported_is_no_part_of_its_question(
    made: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, plan = made
    monkeypatch.chdir(path.parent)
    path.write_text(SCENARIO + "report: {fiscal_year_start: april, contingency: 10 %}\n", encoding="utf-8")
    now = scenario_of(plan)
    assert stale_problems(plan, api.load_catalog(), now) == []
    report = api.report(plan, scenario=now)
    assert (report["budget"]["contingency"], report["budget"]["fiscal_year_start"]) == (0.1, "april")
    path.write_text(SCENARIO, encoding="utf-8")
