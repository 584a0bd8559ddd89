"""Scenarios that ship, on the command line: named, listed, printed; and which file is meant is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.scenario.shipped import shipped_names
from tests.cli.conftest import ROOT, Run

GPT2_XL = (ROOT / "scenarios" / "gpt2-xl.yaml").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_warns_of_what_takes_minutes(run: Run) -> None:
    told = " ".join(run("scenarios").out.split())
    assert "plan solve a100-rules; company takes minutes" in told
    assert "takes minutes" not in run("scenarios", "-o", "csv").out


def test_commands_say_which_is_taken(away: Path, run: Run) -> None:
    named = run("candidates", "gpt2-xl", "-o", "csv")
    assert named.code == 0
    assert "gpt2-xl is the scenario that ships" in named.err
    (away / "gpt2-xl.yaml").write_text(GPT2_XL)
    own = run("candidates", "gpt2-xl", "-o", "csv")
    assert "gpt2-xl is gpt2-xl.yaml of this folder" in own.err
    assert own.out == named.out
    assert "the scenario that ships" not in run("candidates", "gpt2-xl.yaml", "-o", "csv").err


@pytest.mark.parametrize("command", [("explain",), ("report",), ("export", "slurm")])
def test_a_name_wherever_a_plan_or_a_scenario_is_taken(run: Run, command: tuple[str, ...]) -> None:
    answer = run(*command, "gpt2-xl")
    assert answer.code == 0, answer.err
    assert "gpt2-xl" in answer.out
    assert run(*command, "gpt2-x").code == 3


def test_the_list_of_them(away: Path, run: Run) -> None:
    rows = json.loads(run("scenarios", "-o", "json").out)
    assert [row["name"] for row in rows] == shipped_names()
    assert all(row["title"] and (row["training"] or row["serving"]) for row in rows)
    table = run("scenarios").out
    assert "portfolio" in table
    assert "and 17 more" in table
    assert run("scenarios", "-o", "csv").out.splitlines()[0] == "name,title,training,serving"
    assert run("scenarios", "gpt2-xl", "--out", "mine.yaml").code == 0
    assert (away / "mine.yaml").read_text(encoding="utf-8") == GPT2_XL
    wrong = run("scenarios", "gpt2")
    assert wrong.code == 3
    assert "did you mean" in wrong.err
    assert run("scenarios", "gpt2-xl", "-o", "json").code == 2


@pytest.mark.parametrize(("name", "file"), [("trace", "requests.csv"), ("chat-fleet", "chat.csv")])
def test_what_a_scenario_reads_is_written_beside_it(away: Path, run: Run, name: str, file: str) -> None:
    """Copied out as the help advises, two of them did not run: the log of requests that they name was not there."""
    assert run("scenarios", name, "--out", f"{name}.yaml").code == 0
    assert Path(file).exists()
    assert run("solve", f"{name}.yaml", "-q").code == 0
    Path(file).write_text("mine")
    again = run("scenarios", name, "--out", "again.yaml")
    assert Path(file).read_text() == "mine"
    assert "left as it is" in again.err
    assert file in run("scenarios", name).err
