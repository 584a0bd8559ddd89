"""Scenarios that ship, by name: which file is meant, what it is called, and what is beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from planner import api
from planner.errors import InputError
from planner.scenario.load import load_scenario, parse_scenario
from planner.scenario.shipped import PREFIX, find_scenario, is_name, shipped_names, shipped_scenarios, shipped_text

ROOT = Path(__file__).parents[2]
GPT2_XL = (ROOT / "scenarios" / "gpt2-xl.yaml").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_of_the_folder_has_its_name() -> None:
    assert shipped_names() == sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
    assert "portfolio" in shipped_names()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml")))
def test_a_name_is_the_file_that_ships(name: str) -> None:
    named, file = load_scenario(name), load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    assert named.file == f"{PREFIX}{name}"
    assert named.resolved == file.resolved
    assert load_scenario(named.file).resolved == file.resolved
    again = parse_scenario(json.dumps(named.resolved), file=named.file)  # as a plan is read again, anywhere
    assert again.resolved == named.resolved
    told = next(one for one in shipped_scenarios() if one.name == name)
    assert (told.title, told.training) == (named.title, tuple(job.name for job in named.training))
    assert told.serving == tuple(fleet.name for fleet in named.serving)


def test_the_company_is_as_large_as_its_title_says() -> None:
    company = load_scenario("company")
    assert sum(job.count for job in company.training) == 200
    assert len(company.serving) == 30
    assert company.periods == 26
    grown = load_scenario("company", case="growth")
    more = [new.name for old, new in zip(company.serving, grown.serving) if old != new]
    assert len(more) == 10
    assert all(
        new.requests_per_minute > old.requests_per_minute
        for old, new in zip(company.serving, grown.serving)
        if old != new
    )


def test_files_that_it_names_are_found_and_not_told_where() -> None:
    plan = api.solve("trace")
    assert str(ROOT) not in plan.to_json()
    assert plan.document["scenario_file"] == "shipped:trace"
    assert api.verify(plan) == []


def test_a_file_of_that_name_wins(away: Path) -> None:
    assert find_scenario("llama").file == "shipped:llama"
    (away / "llama.yaml").write_text(GPT2_XL)
    assert load_scenario("llama").name == "gpt2-xl"
    assert load_scenario("shipped:llama").name == "llama"
    (away / "llama").write_text(GPT2_XL.replace("name: gpt2-xl", "name: the-file-itself", 1))
    assert load_scenario("llama").name == "the-file-itself"
    assert load_scenario("llama").file == "llama"


def test_a_folder_of_that_name_is_no_scenario(away: Path) -> None:
    (away / "llama").mkdir()
    assert load_scenario("llama").file == "shipped:llama"


def test_a_pipe_of_that_name_is_refused(away: Path) -> None:
    os.mkfifo(away / "llama")
    with pytest.raises(InputError, match="not a regular file"):
        load_scenario("llama")


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("lama", "llama"),
        ("shipped:lama", "llama"),
        ("shipped:../llama", "llama"),
        ("zzzzzz", "plan scenarios"),
        ("shipped:", "plan scenarios"),
        ("", "plan scenarios"),
        ("x" * 10_000, "plan scenarios"),
        ("shipped:a\0b", "plan scenarios"),
    ],
)
def test_an_unknown_name_gives_the_nearest(given: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        load_scenario(given)
    (problem,) = refused.value.problems
    assert problem.reference == "unknown-scenario"
    assert hint in problem.hint
    assert len(problem.message) < 300


def test_a_folder_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    with pytest.raises(InputError, match="'scenarios' is a folder, and no scenario ships by that name"):
        load_scenario("scenarios")


def test_paths_are_no_names() -> None:
    for path in ("llama.yaml", "./llama", "scenarios/llama", "a.yml", "x.json"):
        assert not is_name(path)
        with pytest.raises(InputError, match="there is no file"):
            load_scenario(path)


def test_the_text_is_that_of_the_file() -> None:
    assert shipped_text("gpt2-xl") == GPT2_XL
    with pytest.raises(InputError, match="no scenario ships by that name"):
        shipped_text("../pyproject")
