"""The Tab key: the shells' own protocol, on the command line as it ships."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Run, sample

CODE = """
import sys
from planner.cli.main import main
try:
    main()
finally:
    heavy = {'numpy', 'pandas', 'pulp', 'highspy', 'jinja2', 'yaml', 'planner.api', 'planner.scenario'}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def asked(shell: str, line: str) -> dict[str, str]:
    """What a shell sets when the Tab key is pressed at the end of a line."""
    words = line.split(" ")
    if shell == "zsh":
        return {"_PLAN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    own = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return {"_PLAN_COMPLETE": "complete_bash", **own}


def offered_by(shell: str, out: str) -> list[str]:
    """The words that a shell is offered."""
    if shell == "zsh":
        return re.findall(r'^(?:_arguments .*\(\()?"((?:[^"]|"")*)"', out, re.MULTILINE)
    return out.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a scenario, a plan and a folder of scenarios."""
    folder = tmp_path_factory.mktemp("tab")
    (folder / "scenario.yaml").write_text((ROOT / "scenarios/llama.yaml").read_text(encoding="utf-8"))
    (folder / "scenarios").mkdir()
    (folder / "scenarios/other.yaml").write_text(
        "schema: plan/v1\ntraining:\n- {name: tune, model: gpt2}\nscenarios: {fast: [a], slow: [b]}\n"
    )
    (folder / ".plan").mkdir()
    (folder / ".plan/llama.plan.json").write_text(json.dumps(sample("llama")))
    (folder / "notes.txt").write_text("")
    return folder


OFFERED = [
    ("plan so", ["solve"]),
    ("plan solve s", ["scenario.yaml", "scenarios/", "spot-first"]),
    ("plan solve scenarios/", ["scenarios/other.yaml"]),
    ("plan solve --case ", ["launch", "rush"]),
    ("plan solve scenarios/other.yaml --case ", ["fast", "slow"]),
    ("plan explain --workload ", ["assistant", "pretrain-8b"]),
    ("plan explain scenarios/other.yaml --workload ", ["tune"]),
    ("plan explain --why-not h100-sx", ["h100-sxm-80gb"]),
    ("plan verify ", [".plan/llama.plan.json", "scenarios/"]),
    ("plan memory qwen2.5-7", ["qwen2.5-72b", "qwen2.5-72b-instruct", "qwen2.5-7b", "qwen2.5-7b-instruct"]),
    ("plan init --train llama-3.1-", ["llama-3.1-405b", "llama-3.1-70b", "llama-3.1-8b"]),
    ("plan solve --set serving.", ["serving.assistant."]),
    ("plan export sl", ["slurm"]),
    ("plan compare scenarios/other.yaml --case ", ["fast", "slow"]),
    ("plan catalog show v100-sxm2-1", ["v100-sxm2-16gb"]),
    ("plan solve -o j", ["json"]),
    ("plan solve no/such/folder/", []),
    ("plan solve tr", ["trace"]),
    ("plan explain gpt2", ["gpt2-xl"]),
    ("plan scenarios a100", ["a100-rules"]),
    ("plan solve fleet --case ", []),
    ("plan explain gpt2-xl --workload ", ["gpt2-xl"]),
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=[line for line, _ in OFFERED])
def test_what_is_offered(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, shell: str, line: str, offered: list[str]
) -> None:
    monkeypatch.chdir(folder)
    for name, value in asked(shell, line).items():
        monkeypatch.setenv(name, value)
    assert offered_by(shell, run().out) == offered


@pytest.mark.parametrize("number", [1, 3, 5, 7, 17, 21])
def test_nothing_heavy_is_imported_for_it(folder: Path, number: int) -> None:
    line, offered = OFFERED[number]
    own = os.environ | {"PYTHONPATH": str(ROOT)} | asked("bash", line)
    answer = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, cwd=folder, env=own, check=False
    )
    assert answer.stdout.split() == offered
    assert answer.stderr.splitlines()[-1] == "[]", answer.stderr


def test_the_script_that_is_installed_works_in_bash(folder: Path, tmp_path: Path) -> None:
    """What --install-completion writes, sourced by a real bash, asks plan and offers what it says."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    command = tmp_path / "plan"  # as pip writes it
    command.write_text(f"#!{sys.executable}\nfrom planner.cli.main import main\nmain()\n")
    command.chmod(0o755)
    own = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    lines = """
source <(_PLAN_COMPLETE=source_bash plan)
COMP_WORDS=(plan solve --case "") COMP_CWORD=3
_plan_completion plan
printf '%s\\n' "${COMPREPLY[@]}"
"""
    answer = subprocess.run(
        [bash, "--norc", "-c", lines], capture_output=True, text=True, cwd=folder, env=own, check=True
    )  # fmt: skip
    assert answer.stdout.split() == ["launch", "rush"], answer.stderr
