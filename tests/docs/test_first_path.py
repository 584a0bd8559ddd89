"""A newcomer's path: every command of the README's first part, in order, with the edit that it tells of."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from planner.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PATH = README.split("## From a clone to a plan of your own")[1].split("\n## ")[0]
NOT_HERE = {"make", "."}  # the clone's own: making the environment that this test runs in, and entering it


def steps() -> list[tuple[str, str]]:
    """("run", command) and ("edit", "old → new") in the order of the text."""
    found = []
    for match in re.finditer(r"```sh\n(.*?)```|change `(model: [^`]+)` to `(model: [^`]+)`", PATH, re.DOTALL):
        if match[1] is None:
            found.append(("edit", f"{match[2]}\n{match[3]}"))
        else:
            lines = [line.split("#")[0].strip() for line in match[1].splitlines()]
            found += [("run", line) for line in lines if line]
    return found


def plan(command: str) -> int:
    """Exit code of a command, typed by somebody who answers nothing."""
    words = shlex.split(command)
    assert words[0] == "plan"
    with pytest.MonkeyPatch.context() as patch, Path(os.devnull).open() as nothing:
        patch.setattr(sys, "argv", words)
        patch.setattr(sys, "stdin", nothing)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder in which every step was taken: the clone, after `make demo`."""
    folder = tmp_path
    monkeypatch.chdir(folder)
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    (folder / ".plan").mkdir()
    (folder / ".plan/llama.plan.json").write_bytes((ROOT / "tests/cli/samples/llama.json").read_bytes())
    for kind, step in steps():
        if kind == "edit":
            old, new = step.split("\n")
            text = (folder / "mine.yaml").read_text(encoding="utf-8")
            assert old in text
            (folder / "mine.yaml").write_text(text.replace(old, new), encoding="utf-8")
        elif step.split()[0] not in NOT_HERE:
            code, said = plan(step), capsys.readouterr().err
            assert code == 0, f"{step}\n{said}"
            assert "Traceback" not in said
    return folder


def test_the_path_is_the_one_promised() -> None:
    assert [step.split("\n")[0].split(" ")[:2] for _, step in steps()] == [
        ["make", "demo"],
        [".", ".venv/bin/activate"],
        ["plan", "init"],
        ["plan", "read"],
        ["model:", "llama-3.1-8b"],
        ["plan", "solve"],
        ["plan", "explain"],
        ["plan", "report"],
        ["plan", "export"],
    ]


def test_every_step_works_as_the_readme_says(walked: Path) -> None:
    document = json.loads((walked / ".plan/mine.plan.json").read_text(encoding="utf-8"))
    assert document["status"] == "optimal"
    assert {workload["model"] for workload in document["workloads"]} == {"qwen2.5-7b"}
    page = (walked / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    launched = "".join(path.read_text(encoding="utf-8") for path in (walked / "launch").iterdir())
    assert "kind: Job" in launched


def test_make_demo_installs_and_solves_and_says_what_is_next() -> None:
    """The first target's own words: its install is that of this environment."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\ndemo:")[1].split("\n\n")[0]
    assert "install" in recipe.splitlines()[0]
    assert "$(BIN)/plan solve scenarios/llama.yaml" in recipe
    assert "plan init" in recipe
