"""The journal of a sweep: what is torn is dropped, what is another question's is not read, nobody writes beside us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from planner.analysis.frontier.journal import BEGINS, Journal, program_digest, question_key
from planner.errors import InputError, OutputError
from planner.files import LineFile
from tests.optimize.brute import random_program

ROOT = Path(__file__).parents[2]


def test_lines_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.jsonl"
    with LineFile(path) as lines:
        assert lines.lines == []
        lines.append("one")
        lines.append("two\nlines")
    assert path.read_text() == "one\ntwo lines\n"
    with LineFile(path) as lines:
        assert lines.lines == ["one", "two lines"]


@pytest.mark.parametrize("torn", ["x", '{"key": "ab', "é".encode().decode("latin-1")])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one\ntwo\n" + torn, encoding="utf-8")
    with LineFile(path) as lines:
        assert lines.lines == ["one", "two"]
        lines.append("three")
    assert path.read_text() == "one\ntwo\nthree\n"


def test_a_journal_torn_anywhere_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with LineFile(path) as lines:
        journal = Journal("question", lines)
        for limit in (None, 7, 3.5):
            journal.add(limit, {"status": "optimal", "over": limit})
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 10]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with LineFile(path) as lines:
            journal = Journal("question", lines)
        known = [journal.get(limit) is not None for limit in (None, 7, 3.5)]
        assert known == [cut >= end for end in ends]


def test_garbage_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first = BEGINS.encode() + b', "key": 7}\n'
    path.write_bytes(first + b'\xff\xfe\n[]\n{"key": 3}\n' + b"[" * 50_000 + b'\n{"schema": "other", "key": "k"}\n')
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal("question", lines)
        assert journal.get(None) is None
        journal.add(None, {"status": "infeasible"})
    with LineFile(path) as lines:
        assert Journal("question", lines).get(None) == {"status": "infeasible"}


@pytest.mark.parametrize("text", ["my notes", "my notes\nand more\n", '{"schema": "plan/result/v1"}', "{}\n"])
def test_what_is_no_journal_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        LineFile(path, begins=BEGINS)
    assert refused.value.problems[0].reference == "not-a-journal"
    assert path.read_text() == text


def test_a_torn_first_line_is_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for size in range(len(BEGINS) + 1):
        path.write_text(BEGINS[:size])
        with LineFile(path, begins=BEGINS) as lines:
            Journal("question", lines).add(3, {"status": "infeasible"})
        assert path.read_text().startswith(BEGINS)
        assert path.read_text().count("\n") == 1


def test_a_second_run_waits_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with LineFile(path), pytest.raises(OutputError, match="in use by another run"):
        LineFile(path, wait_s=0.1)
    LineFile(path, wait_s=0.1).close()


def test_the_lock_goes_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    hold = f"LineFile({str(path)!r})"
    code = f"from planner.files import LineFile; import time; {hold}; print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputError):
        LineFile(path, wait_s=0.1)
    holder.kill()
    holder.wait()
    LineFile(path, wait_s=1.0).close()


def test_only_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError):
        LineFile(tmp_path / "pipe")
    with pytest.raises(OutputError):
        LineFile(tmp_path)


def test_every_number_of_a_program_is_in_its_key() -> None:
    question = random_program(3)
    seen = {program_digest(question)}
    money = ("cost_microusd", "finish_s", "carbon_mg", "nodes", "replicas", "capacity_micro_per_s", "max_units")
    for name in (*money, "provider", "offer", "role", "level", "spot", "domain"):
        changed = getattr(question, name).copy()
        changed.flat[0] += 1
        seen.add(program_digest(replace(question, **{name: changed})))
    seen.add(program_digest(replace(question, max_providers=9)))
    seen.add(program_digest(replace(question, objective=("carbon",))))
    seen.add(program_digest(replace(question, rows=())))
    assert len(seen) == 16 + bool(question.rows)


def test_a_key_is_of_the_question_the_part_and_the_limit() -> None:
    question = random_program(3)
    journals = [Journal(question_key({"scenario": n}, program=question)) for n in (1, 2)]
    keys = {journal.key(limit, part) for journal in journals for limit in (None, 1, 1.0, 2) for part in ("", "b")}
    assert len(keys) == 16
    assert json.loads(json.dumps(1.1 + 2.2)) == 1.1 + 2.2  # limits come back from a file as they were


SWEEP = ("frontier", "scenarios/gpt2-xl.yaml", "--over", "budget", "-o", "json", "--out")
CODE = "from planner.cli.main import main; main()"


def started(folder: Path, out: str) -> subprocess.Popen[bytes]:
    """A sweep as users run it."""
    command = [sys.executable, "-c", CODE, *SWEEP, out]
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
    )  # fmt: skip


def test_killed_and_run_again_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    """SIGKILL after two points; benchmarks/resume.py does more of it."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        (folder / "scenarios").symlink_to(ROOT / "scenarios")
    assert started(whole, "f.json").wait() == 0
    journal = killed / ".plan" / "gpt2-xl.frontier.jsonl"
    process = started(killed, "f.json")
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.005)
    process.kill()
    process.wait()
    found = journal.read_bytes()
    kept = found[: found.rfind(b"\n") + 1]
    assert started(killed, "f.json").wait() == 0
    assert (killed / "f.json").read_bytes() == (whole / "f.json").read_bytes()
    assert journal.read_bytes().startswith(kept)
    assert journal.read_bytes() == (whole / ".plan" / "gpt2-xl.frontier.jsonl").read_bytes()
