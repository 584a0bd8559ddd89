"""The command line as a whole: exit codes, streams, discovery, errors, and the report of a bug."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner import __version__
from tests.cli.conftest import ROOT, Run, sample, without_price_age
from tests.faked import answer_with
from tests.tiers import sampled

FAULTS = ROOT / "tests" / "faults"


def expected_faults() -> dict[str, list[dict[str, str]]]:
    table: dict[str, list[dict[str, str]]] = {}
    with (FAULTS / "faults.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            table.setdefault(row["file"], []).append(row)
    return table


BROKEN = expected_faults()


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Let `plan solve` come to the plan of a sample document."""
    from planner.answers import Plan

    def become(name: str) -> dict[str, Any]:
        document = sample(name)
        answer_with(monkeypatch, lambda *_, **__: Plan(document=document))
        return document

    return become


@pytest.mark.parametrize("name", sampled(sorted(BROKEN), 40))  # what each says: tests/scenario
def test_broken_scenario_through_the_command_line(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(ROOT)
    file = f"tests/faults/broken/{name}"
    answer = run("solve", file)
    assert answer.code == 3
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert answer.err.count("error[") == len(BROKEN[name])
    for fault in BROKEN[name]:
        assert f"error[{fault['reference']}] " in answer.err
        assert f"  {file}:{fault['line']}:{fault['column']}\n" in answer.err
    assert answer.err.count("hint: ") >= len(BROKEN[name])


STATUSES = [("llama", 0), ("feasible", 5), ("infeasible", 4), ("stopped", 6)]


@pytest.mark.parametrize(("name", "code"), STATUSES)
def test_exit_code_of_each_status(
    run: Run, here: Path, solved: Callable[[str], dict[str, Any]], name: str, code: int
) -> None:
    document = solved(name)
    answer = run("solve", "scenarios/llama.yaml", "-o", "json")
    assert (answer.code, without_price_age(answer.err)) == (code, "")
    assert json.loads(answer.out) == document
    case = ".rush" if document["case"] else ""
    assert json.loads((here / f".plan/{document['name']}{case}.plan.json").read_text()) == document


def test_an_incumbent_may_be_accepted(run: Run, here: Path, solved: Callable[[str], dict[str, Any]]) -> None:
    solved("feasible")
    assert run("solve", "scenarios/llama.yaml", "--accept-incumbent").code == 0


def test_out_names_the_plan_file(run: Run, here: Path, solved: Callable[[str], dict[str, Any]]) -> None:
    document = solved("llama")
    answer = run("solve", "scenarios/llama.yaml", "--out", "deep/er/p.json")
    assert json.loads((here / "deep/er/p.json").read_text()) == document
    assert "Saved deep/er/p.json" in answer.out
    assert not (here / ".plan").exists()


def test_out_dash_leaves_no_file(run: Run, here: Path, solved: Callable[[str], dict[str, Any]]) -> None:
    solved("llama")
    before = sorted(here.rglob("*"))
    assert "Saved" not in run("solve", "scenarios/llama.yaml", "--out", "-").out
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("form", ["csv", "md"])
def test_out_takes_the_view_of_csv_and_markdown(
    run: Run, here: Path, solved: Callable[[str], dict[str, Any]], form: str
) -> None:
    solved("llama")
    shown = run("solve", "scenarios/llama.yaml", "-o", form).out
    answer = run("solve", "scenarios/llama.yaml", "-o", form, "--out", f"view.{form}")
    assert answer.out == ""
    assert (here / f"view.{form}").read_text() == shown
    assert (here / ".plan/llama.plan.json").exists()


def test_a_file_that_cannot_be_written(run: Run, here: Path, solved: Callable[[str], dict[str, Any]]) -> None:
    solved("llama")
    (here / "taken").mkdir()
    answer = run("solve", "scenarios/llama.yaml", "--out", "taken")
    assert answer.code == 8
    assert without_price_age(answer.err).startswith("error[")


def test_discovery(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.cli.find import scenario_file

    monkeypatch.chdir(tmp_path)
    assert run("solve").code == 2
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios/b.yaml").write_text("name: b\n")
    assert scenario_file(None) == "scenarios/b.yaml"
    (tmp_path / "scenarios/a.yaml").write_text("name: a\n")
    answer = run("solve")
    assert answer.code == 2
    assert "scenarios/a.yaml, scenarios/b.yaml" in answer.err
    (tmp_path / "scenario.yaml").write_text("name: c\n")
    assert scenario_file(None) == "scenario.yaml"
    assert scenario_file("x.yaml") == "x.yaml"


BEYOND = "1000000000000000000000"  # more than 64 bits hold
COUNTED = ("--batch", "--sequence", "--devices", "--dp", "--tp", "--pp", "--cp", "--ep", "--context", "--concurrency")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("solve", "--no-such-flag"),
        ("solve", "x.yaml", "-o", "xml"),
        ("solve", "x.yaml", "--solver", "glpk"),
        ("solve", "x.yaml", "--threads", "0"),
        ("solve", "x.yaml", "--threads", BEYOND),
        ("solve", "x.yaml", "--seed", BEYOND),
        ("solve", "x.yaml", "--best", BEYOND),
        ("frontier", "x.yaml", "--most", BEYOND),
        ("models", "show", "gpt2", "--sequence", BEYOND),
        *(("memory", "gpt2", flag, BEYOND) for flag in COUNTED),
        ("solve", "x.yaml", "--gap", "150%"),
        ("solve", "x.yaml", "--time-limit", "60"),
        ("solve", "x.yaml", "--time-limit", "-1s"),
        ("memory",),
        ("catalog", "list", "--group-by", "colour"),
        ("schema", "catalog"),
    ],
    ids=" ".join,
)
def test_usage_errors_exit_2(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert "rror" in answer.err


def test_no_more_threads_than_cores(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them bring a machine to a halt; nothing here starts more than there are cores."""
    from planner.answers import Plan
    from planner.optimize import child, early

    asked: list[object] = []

    def solve(*_: object, **options: object) -> Plan:
        asked.append(options["threads"])
        return Plan(document=sample("llama"))

    answer_with(monkeypatch, solve)
    monkeypatch.setattr(child, "most_threads", lambda: 3)
    monkeypatch.setattr(early, "start_early", asked.append)
    answer = run("solve", "scenarios/llama.yaml", "--threads", "5000")
    assert (answer.code, asked) == (0, [3, 3])
    assert "5,000 threads were asked for, 3 are used: there are no more cores" in answer.err
    assert "threads" not in run("solve", "scenarios/llama.yaml", "--threads", "3").err


def test_version(run: Run) -> None:
    answer = run("--version")
    assert (answer.code, answer.out) == (0, f"plan {__version__}\n")


def test_no_color_leaves_no_escape_byte(
    run: Run, here: Path, solved: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved("llama")
    monkeypatch.setattr(sys.stdout.__class__, "isatty", lambda _: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    answer = run("solve", "scenarios/llama.yaml")
    assert "\x1b" not in answer.out + answer.err


def test_color_flag(run: Run, here: Path, solved: Callable[[str], dict[str, Any]]) -> None:
    solved("llama")
    assert "\x1b[" in run("solve", "scenarios/llama.yaml", "--color", "always").out
    assert "\x1b[" not in run("solve", "scenarios/llama.yaml", "--color", "auto").out
    assert "\x1b[" not in run("solve", "scenarios/llama.yaml", "--color", "never").out
    assert "\x1b[1;31merror" in run("solve", "missing.yaml", "--color", "always").err


SECRET = "hunter2-in-a-file"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug deep inside that quotes what it should not."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot handle {SECRET} at {os.environ['HOME']}")

    monkeypatch.setenv("HOME", "/home/somebody-private")
    answer_with(monkeypatch, fail)


def test_a_bug_leaves_a_report_without_anything_of_the_users(run: Run, here: Path, broken: None) -> None:
    answer = run("solve", "scenarios/llama.yaml", "--set", "name=private-name")
    assert answer.code == 1
    assert answer.out == ""
    assert "this is a bug in plan" in answer.err
    assert "Traceback" not in answer.err
    (report,) = (here / ".plan").glob("bug-*.txt")
    text = report.read_text() + answer.err
    assert "RuntimeError" in text
    assert "planner.cli.solve" in text
    for private in (SECRET, "somebody-private", "private-name", str(here), str(ROOT), "llama"):
        assert private not in text


def test_debug_shows_the_traceback(here: Path, broken: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.cli.main import main

    monkeypatch.setattr(sys, "argv", ["plan", "solve", "scenarios/llama.yaml", "--debug"])
    with pytest.raises(RuntimeError, match=SECRET):
        main()


def test_interrupt_exits_130(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    answer_with(monkeypatch, interrupt)
    assert run("solve", "scenarios/llama.yaml").code == 130


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("{", "bad-json"),
        ('{"schema": NaN}', "not-a-plan"),
        ("[]", "not-a-plan"),
        ('{"schema": "other"}', "not-a-plan"),
        ("[" * 100_000, "bad-json"),
    ],
)
def test_files_that_are_no_plans(run: Run, here: Path, text: str, reference: str) -> None:
    (here / "p.json").write_text(text)
    for command in ("verify", "explain"):
        answer = run(command, "p.json")
        assert answer.code == 3
        assert answer.err.startswith(f"error[{reference}] ")


def test_explain_knows_its_workloads(run: Run, here: Path) -> None:
    (here / ".plan").mkdir()
    (here / ".plan/llama.plan.json").write_text(json.dumps(sample("llama")))
    answer = run("explain", "--workload", "assistant")
    assert answer.code == 0
    assert "WHY  assistant on 2 × h100-sxm-80gb" in answer.out
    assert "pretrain-8b on" not in answer.out
    assert run("explain", "--workload", "other").code == 2
    rows = list(csv.DictReader(run("explain", "-o", "csv").out.splitlines()))
    memory = [float(row["value"]) for row in rows if row["quantity"] == "memory" and row["workload"] == "assistant"]
    assert sum(memory) == sample("llama")["workloads"][1]["allocations"][0]["memory"]["needed_bytes"]


def test_explain_solves_a_scenario_and_tells_every_term(run: Run, here: Path) -> None:
    answer = run("explain", "scenarios/gpt2-xl.yaml", "--workload", "gpt2-xl")
    assert answer.code == 0
    for head in ("Work and rate", "Time of the run", "Memory of the fullest device", "Binding", "Known error"):
        assert head in answer.out, head
    assert "rule of thumb" in answer.out
    assert re.search(r"products +[\d.,]+ \w+ +[\d.]+ % +EQ-TIME-1 \[NVIDIA\]", answer.out)
    assert re.search(r"weights +[\d.,]+ GB +[\d.]+ % +EQ-MEM-2 \[Rajbhandari 20\d\d\]", answer.out)
    assert re.search(r"time goes to compute [\d.]+ %", answer.out)
    assert not (here / ".plan").exists()  # nothing is written


def test_explained_terms_are_those_of_the_plan(run: Run, here: Path) -> None:
    """Printed, never computed again: the csv of terms sums to the hours and bytes of the row."""
    shown = json.loads(run("explain", "scenarios/gpt2-xl.yaml", "-o", "json").out)
    row = shown["workloads"][0]["allocations"][0]
    rows = list(csv.DictReader(run("explain", "scenarios/gpt2-xl.yaml", "-o", "csv").out.splitlines()))
    seconds = sum(float(line["value"]) for line in rows if line["quantity"] == "time")
    size = sum(float(line["value"]) for line in rows if line["quantity"] == "memory")
    assert seconds / 3600 == pytest.approx(row["hours"], rel=1e-12)
    assert size == pytest.approx(row["memory"]["needed_bytes"], rel=1e-12)
    assert {line["equation"] for line in rows if line["term"] == "attention"} == {"EQ-TIME-3"}


def test_explain_takes_what_changes_the_question(run: Run, here: Path) -> None:
    late = run("explain", "scenarios/llama.yaml", "--case", "rush", "--set", "limits.max_devices=2")
    assert late.code == 4
    assert "INFEASIBLE" in late.out
    assert "NOT PLACED" in late.out
    (here / ".plan").mkdir()
    (here / ".plan/llama.plan.json").write_text(json.dumps(sample("llama")))
    refused = run("explain", ".plan/llama.plan.json", "--set", "limits.max_devices=8")
    assert refused.code == 2
    assert "not-a-scenario" in refused.err


def test_a_reader_that_goes_away(here: Path) -> None:
    code = "from planner.cli.main import main; main()"
    writer = subprocess.Popen(
        [sys.executable, "-c", code, "models", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    complaint = writer.stderr.read()
    writer.wait(timeout=60)
    assert "Traceback" not in complaint
    assert "bug" not in complaint


def test_help_stays_light() -> None:
    code = (
        "import sys; sys.argv = ['plan', 'solve', '--help']\n"
        "from planner.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'rich', 'yaml', 'planner.api', 'planner.catalog', 'planner.scenario'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_plain_ascii_streams_do_not_break(here: Path) -> None:
    code = "from planner.cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    arguments = [sys.executable, "-c", code, "memory", "gpt2", "--batch", "1"]
    answer = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0
    assert "gpt2" in answer.stdout


@pytest.mark.parametrize(("flags", "shown"), [((), True), (("--no-progress",), False), (("--quiet",), False)])
def test_progress_is_for_terminals_and_long_waits(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], shown: bool
) -> None:
    import time

    from planner.answers import Plan

    def slowly(*_: object, **__: object) -> Plan:
        time.sleep(1.2)
        return Plan(document=sample("llama"))

    answer_with(monkeypatch, slowly)
    monkeypatch.setattr(sys.stderr.__class__, "isatty", lambda _: True, raising=False)
    answer = run("solve", "scenarios/llama.yaml", "-o", "json", "--color", "never", *flags)
    assert ("solving llama …" in answer.err) is shown
    assert json.loads(answer.out) == sample("llama")
