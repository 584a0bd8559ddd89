"""Standard streams that are full, closed or left by their reader, around the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.tiers import sampled

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")

RUN = "from planner.cli.main import main; main()"
PRINTING = ("--help", "--version", "--show-completion bash", "solve --help", "help catalog list", "models list", "")
ODD = (">/dev/full", ">&-", ">/dev/full 2>/dev/full", ">&- 2>&-", ">&- 2>&- <&-")


def plan(arguments: str, streams: str, folder: Path, **environment: str) -> tuple[int, str]:
    """Exit code of a command under a shell's redirections, and what it said on stderr."""
    line = f'"$PYTHON" -c "{RUN}" {arguments} {streams}'
    around = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", **environment}
    ran = subprocess.run(["bash", "-c", line], cwd=folder, env=around, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(("arguments", "streams"), sampled([(one, odd) for one in PRINTING for odd in ODD], 7))
def test_a_result_that_cannot_be_written_exits_8(arguments: str, streams: str, tmp_path: Path) -> None:
    code, said = plan(arguments, streams, tmp_path)
    assert code == 8
    assert ("2>" in streams) or said.startswith("error[not-written] the result could not be written to stdout: ")
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("environment", [{"PYTHONUNBUFFERED": "1"}, {"PYTHONIOENCODING": "ascii"}], ids=str)
def test_neither_buffers_nor_encoding_matter(environment: dict[str, str], tmp_path: Path) -> None:
    assert plan("--help", ">/dev/full", tmp_path, **environment)[0] == 8


@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("--version", 0), ("nonsense", 2), ("solve missing.yaml", 3)])
def test_what_cannot_be_said_on_stderr_changes_nothing(arguments: str, code: int, streams: str, tmp_path: Path) -> None:
    assert plan(arguments, f"{streams} >/dev/null", tmp_path)[0] == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", ["--help", "models list"])
def test_a_reader_that_went_away_is_told_nothing(arguments: str, tmp_path: Path) -> None:
    """The pipe has lost its reader before a byte is written."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", RUN, *arguments.split()]
    around = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=around, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (8, b"")


@pytest.mark.parametrize(
    "question",
    [
        {"_PLAN_COMPLETE": "complete_bash", "COMP_WORDS": "plan so", "COMP_CWORD": "abc"},
        {"_PLAN_COMPLETE": "complete_bash", "COMP_WORDS": "plan so"},
        {"_PLAN_COMPLETE": "complete_bash"},
        {"_PLAN_COMPLETE": "complete_nosuchshell"},
        {"_PLAN_COMPLETE": "nonsense"},
    ],
    ids=str,
)
def test_a_question_for_completions_that_no_shell_asks(question: dict[str, str], tmp_path: Path) -> None:
    code, said = plan("", "", tmp_path, **question)
    assert code == 2
    assert said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
@pytest.mark.parametrize("kilobytes", sampled([100_000, 250_000, 300_000, 400_000], 2))
def test_too_little_memory_is_said(kilobytes: int, tmp_path: Path) -> None:
    """Libraries end the process, or send it an interrupt, when they cannot have what they ask for."""
    line = f"--version; ulimit -v {kilobytes}; \"$PYTHON\" -c '{RUN}' models list"
    code, said = plan(line, "", tmp_path)
    assert code == 6
    assert said.startswith("error[out-of-memory] ")
    assert "interrupted" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_a_name_of_bytes_that_are_no_text_is_a_name(tmp_path: Path) -> None:
    """It ended as an internal error, where the hash of the plan was worked out."""
    name = os.fsencode(tmp_path) + b"/bad\xff.yaml"
    Path(os.fsdecode(name)).write_text((ROOT / "scenarios" / "gpt2-xl.yaml").read_text())
    call = [sys.executable, "-m", "planner.cli.main", "solve", name, "-o", "json"]
    told = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(call, capture_output=True, cwd=tmp_path, env=told, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["scenario_file"].endswith("bad?.yaml")


def test_a_loss_is_told_once(tmp_path: Path) -> None:
    for arguments in ("models list", "--help"):
        assert plan(arguments, ">/dev/full", tmp_path)[1].count("error[not-written]") == 1
