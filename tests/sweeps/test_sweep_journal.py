"""What a sweep keeps: of any size, torn anywhere, on a full disk, held by one run, and only what is an answer."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner import files
from planner.errors import InputError, OutputError
from planner.files import LineFile
from planner.sweeps.answering import BEGINS, Journal
from planner.sweeps.question import lost, without_plan
from tests.sweeps.told import key, question, row


def filled(path: Path, count: int = 3) -> bytes:
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        for number in range(count):
            journal.add(key(question(number)), row(float(number), f"wörk: {number}"))
    return path.read_bytes()


def known(path: Path, count: int = 3) -> list[bool]:
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        return [journal.get(key(question(number))) == row(float(number), f"wörk: {number}") for number in range(count)]


def test_answers_are_there_again(tmp_path: Path) -> None:
    filled(tmp_path / "a.jsonl")
    assert known(tmp_path / "a.jsonl", 4) == [True, True, True, False]


def test_an_answer_is_found_in_the_run_that_gave_it(tmp_path: Path) -> None:
    with LineFile(tmp_path / "a.jsonl", begins=BEGINS) as lines:
        journal = Journal(lines)
        journal.add(key(question(1)), row(5.0))
        assert journal.get(key(question(1))) == row(5.0)
        assert journal.get(key(question(2))) is None


def test_torn_anywhere_it_keeps_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = filled(path)
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 10]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert known(path) == [cut >= end for end in ends], cut
        assert path.read_bytes() == whole[: max((end for end in ends if end <= cut), default=0)]


def test_one_letter_that_changed_costs_its_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = filled(path)
    ends = [0, *(place + 1 for place, byte in enumerate(whole) if byte == 10)]
    for place in range(len(BEGINS), len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        line = sum(end <= place for end in ends) - 1
        assert not known(path)[line], place
        if whole[place] not in b"\n\x0b":  # neither ended its line nor broke it in two
            assert sum(known(path)) == 2, place


def test_lines_that_do_not_hold_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = filled(path).splitlines(keepends=True)
    path.write_bytes(whole[0] + b"garbage\n" + whole[1].replace(b"1.0", b"0.5") + b"[" * 5000 + b"\n" + whole[2])
    with LineFile(path, begins=BEGINS) as lines:
        assert Journal(lines).broken == 3
    assert known(path) == [True, False, True]


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("schema: plan/v1\n", encoding="utf-8")
    with pytest.raises(InputError, match="something else"):
        LineFile(path, begins=BEGINS)
    assert path.read_text(encoding="utf-8") == "schema: plan/v1\n"


def test_a_name_that_is_none() -> None:
    with pytest.raises(OutputError, match="no file name"):
        LineFile("a\0b")


def test_only_answers_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [lost("worker-died", "gone", ""), without_plan("refused", None), without_plan("failed", None)]
    kept = [without_plan("infeasible", None), without_plan("stopped", None), row(1.0, status="feasible")]
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        for number, one in enumerate([*rows, *kept]):
            journal.add(key(question(number)), one)
        assert [journal.get(key(question(number))) for number in range(6)] == [*rows, *kept]
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        assert [journal.get(key(question(number))) for number in range(6)] == [None, None, None, *kept]


def test_no_size_at_which_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first form did above 2 GB; here everything is read in pieces that are smaller than a line."""
    monkeypatch.setattr(files, "_CHUNK_BYTES", 64)
    monkeypatch.setattr(files, "_LINE_BYTES", 16)
    path = tmp_path / "a.jsonl"
    whole = filled(path, 20)
    assert known(path, 20) == [True] * 20
    assert path.read_bytes() == whole
    path.write_bytes(whole + b"x" * 200)
    assert known(path, 20) == [True] * 20
    assert path.read_bytes() == whole


def test_a_hole_of_three_gigabytes_is_no_end(tmp_path: Path) -> None:
    """A file past what one read of the system gives (2 GiB): nothing of it is cut, and what is behind is found."""
    path = tmp_path / "a.jsonl"
    whole = filled(path)
    try:
        with path.open("r+b") as stream:
            stream.truncate(3_000_000_000)  # of zeros, which no disk holds
            stream.seek(3_000_000_000)
            stream.write(b"\n" + whole)
    except OSError:
        pytest.skip("this file system has no holes")
    assert known(path) == [True] * 3
    assert path.stat().st_size == 3_000_000_000 + 1 + len(whole)
    with LineFile(path, begins=BEGINS) as lines:
        assert Journal(lines).broken == 1


def test_a_line_longer_than_any_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LINE_BYTES", 2000)
    monkeypatch.setattr(files, "_CHUNK_BYTES", 512)
    path = tmp_path / "a.jsonl"
    lines = filled(path).splitlines(keepends=True)
    path.write_bytes(lines[0] + b"z" * 9000 + b"\n" + lines[1] + lines[2])
    assert known(path) == [True] * 3
    with LineFile(path) as opened:
        assert [line for _, line in opened.places()][1] == ""


def test_a_file_cut_by_somebody_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    filled(path)
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        os.truncate(path, 0)
        with pytest.raises(InputError, match="was changed while it was read"):
            journal.get(key(question(0)))


FULL = """
import resource, sys
from planner.errors import OutputError
from planner.files import LineFile
from planner.sweeps.answering import BEGINS, Journal
from tests.sweeps.told import key, question, row
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with LineFile(sys.argv[1], begins=BEGINS) as lines:
    journal = Journal(lines)
    try:
        for number in range(50):
            journal.add(key(question(number)), row(float(number), f"wörk: {number}"))
    except OutputError as error:
        print(number, error.problems[0].reference, error.problems[0].hint)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no such limit on this system")
@pytest.mark.parametrize("room", [700, 1500, 3001])
def test_a_full_disk_is_an_error_and_the_journal_whole(tmp_path: Path, room: int) -> None:
    path = tmp_path / "a.jsonl"
    call = [sys.executable, "-c", FULL, str(path), str(room)]
    ended = subprocess.run(call, capture_output=True, text=True, check=True, timeout=60)
    count, reference, hint = ended.stdout.split(maxsplit=2)
    assert reference == "not-written"
    assert "make room" in hint
    whole = path.read_bytes()
    assert whole.endswith(b"\n")  # what did not fit was taken back
    assert len(whole.splitlines()) == int(count)
    assert known(path, int(count) + 1) == [True] * int(count) + [False]


def test_a_disk_that_fails_when_it_is_told_to_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    whole = filled(path)

    def refuse(handle: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(OutputError):
            journal.add(key(question(9)), row())
        monkeypatch.undo()
    assert path.read_bytes() == whole


def test_two_sweeps_do_not_write_one_journal(tmp_path: Path) -> None:
    with LineFile(tmp_path / "a.jsonl", begins=BEGINS), pytest.raises(OutputError, match="in use by another run"):
        LineFile(tmp_path / "a.jsonl", begins=BEGINS, wait_s=0.1)


@pytest.mark.parametrize("change", [{"key": "xyz"}, {"key": "ab"}, {"row": {}}, {"row": [1]}, {"schema": "other"}])
def test_a_line_with_a_true_hash_that_is_no_answer(tmp_path: Path, change: dict[str, Any]) -> None:
    from planner.sweeps.answering import SCHEMA, _hash

    content = {"schema": SCHEMA, "key": key(question(0)), "row": row(), **change}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**content, "sha256": _hash(content)}) + "\n", encoding="utf-8")
    if "schema" in change:
        path.write_text(BEGINS + "}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    with LineFile(path, begins=BEGINS) as lines:
        journal = Journal(lines)
        assert journal.broken == 1 + ("schema" in change)
        assert journal.get(key(question(0))) is None
