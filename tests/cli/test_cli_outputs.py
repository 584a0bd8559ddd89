"""--out never replaces what a command was made from: named, linked, or named by the scenario."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planner import files
from planner.api import sessions
from planner.errors import OutputError
from tests.cli.conftest import Run

OVER = [
    ("solve s.yaml --out s.yaml", "s.yaml"),
    ("solve s.yaml --out ./scenarios/../s.yaml", "s.yaml"),
    ("solve s.yaml --out link.yaml", "s.yaml"),
    ("solve s.yaml --out hard.yaml", "s.yaml"),
    ("solve s.yaml --out requests.csv", "requests.csv"),  # the scenario's own trace
    ("report s.yaml -o html --out s.yaml", "s.yaml"),
    ("explain s.yaml --out s.yaml", "s.yaml"),
    ("export torchrun g.yaml --out g.yaml", "g.yaml"),
    ("traffic requests.csv --out requests.csv", "requests.csv"),
    ("read requests.csv --out requests.csv", "requests.csv"),
    ("catalog freeze --hardware own.json --out own.json", "own.json"),
]


@pytest.mark.parametrize(("line", "file"), OVER)
def test_an_input_is_never_replaced(line: str, file: str, here: Path, run: Run) -> None:
    for name, source in (("s.yaml", "trace.yaml"), ("requests.csv",) * 2, ("g.yaml", "gpt2-xl.yaml")):
        (here / name).write_bytes((here / "scenarios" / source).read_bytes())
    (here / "link.yaml").symlink_to("s.yaml")
    os.link(here / "s.yaml", here / "hard.yaml")
    if "own.json" in line:
        assert run("catalog", "freeze", "--out", "own.json").code == 0
    before = (here / file).read_bytes()
    answer = run(*line.split())
    assert (answer.code, (here / file).read_bytes() == before) == (8, True), answer.err
    assert "error[not-written]" in answer.err
    assert "name another file with --out" in answer.err


def test_what_was_written_before_is_replaced(here: Path, run: Run) -> None:
    for _ in range(2):
        assert run("traffic", "scenarios/requests.csv", "--out", "t.txt").code == 0


def test_only_what_is_read_in_the_block_is_kept(tmp_path: Path) -> None:
    """Below a folder too; a name that is none breaks nothing here; outside of the block all is as before."""
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_text("a")
    with files.output_at(tmp_path):
        files.read_text(one)
        files.write_text(other, "b")
        with pytest.raises(OutputError, match="is not replaced"):
            files.write_text(one, "b")
    with files.output_at(other):
        files.read_text(one)
        files.write_text(one, "c")  # not what was asked for: the command's own keeping
    with files.output_at("\0"):
        files.read_text(one)
    files.write_text(one, "d")


@pytest.mark.parametrize("out", ["kept", "new/", "", "fifo"])
@pytest.mark.parametrize("line", ["solve gpt2-xl", "report gpt2-xl -o html", "frontier gpt2-xl --over deadline"])
def test_a_name_that_is_no_file_is_refused_before_any_work(
    line: str, out: str, here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes of solving were lost to `--out FOLDER`, which was refused when the plan was to be written."""
    (here / "kept").mkdir()
    os.mkfifo(here / "fifo")
    monkeypatch.setattr(sessions, "enumerate_candidates", lambda *_, **__: pytest.fail("listed all the same"))
    answer = run(*line.split(), "--out", out)
    assert (answer.code, answer.out) == (8, ""), answer.err
    assert {"kept": "it is a folder", "new/": "it is a folder", "": "is empty", "fifo": "no regular file"}[
        out
    ] in answer.err
    assert "room?" not in answer.err
    assert not (here / "new").exists()
    assert list((here / "kept").iterdir()) == []


def test_launch_files_go_into_a_folder(here: Path, run: Run) -> None:
    (here / "kept").mkdir()
    assert run("export", "torchrun", "gpt2-xl", "--out", "kept/").code == 0
    assert list((here / "kept").iterdir())


def test_an_answer_whose_file_cannot_be_written_is_shown_all_the_same(here: Path, run: Run) -> None:
    (here / ".plan").write_text("a file where the folder would be")
    for flags, shown in (
        ("", "proven the cheapest"),
        ("-q", "proven (gap 0.00 %)"),
        ("-o json", '"schema": "plan/result/v1"'),
    ):
        answer = run("solve", "gpt2-xl", *flags.split())
        assert (answer.code, shown in answer.out) == (8, True), answer.err
        assert "Saved" not in answer.out
        assert "with --out" in answer.err
