"""Parts of the command line by themselves: quantities at their limits, the newest file, a report of a bug."""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType

import pytest

from planner.cli.bugs import bug_text
from planner.cli.find import newest_first
from planner.cli.flags import money_of, share_of, time_of
from planner.errors import InputError, UsageError
from planner.plan.plan_files import read_plan
from planner.report.plan_words import one_of
from tests.cli.conftest import Run


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("0 %", 0.0), ("99.99 %", 0.9999), ("0.5", 0.5)])
def test_a_share_is_at_least_nothing(text: str, share: float) -> None:
    assert share_of(text) == share


@pytest.mark.parametrize("text", ["100 %", "1", "100.01 %"])
def test_a_share_is_below_all(text: str) -> None:
    with pytest.raises(UsageError, match="at least 0 and below 1"):
        share_of(text)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("at most 1 shapes of aws/p5.48xlarge", "at most 1 shape of aws/p5.48xlarge"),
        ("at most 11 devices of all", "at most 11 devices of all"),
        ("at most 1 devices", "at most 1 device"),
    ],
)
def test_one_of_a_limit_is_said_as_one(label: str, said: str) -> None:
    """Plan files have the plural, by which the verifier knows the limit."""
    assert one_of(label) == said


def test_a_time_is_above_nothing() -> None:
    assert (time_of(None), time_of("1 ms"), time_of("2 min")) == (None, 0.001, 120.0)
    with pytest.raises(UsageError, match="above 0"):
        time_of("0 s")


def test_money_is_at_least_nothing() -> None:
    assert (money_of("$0", "--x"), money_of("$0.000001", "--x")) == (0, 1)


def test_the_newest_file_is_the_one_changed_last(tmp_path: Path) -> None:
    for name, changed in (("b", 100), ("c", 300), ("a", 200)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, changed))
    assert newest_first([str(tmp_path / name) for name in "abc"]) == [str(tmp_path / name) for name in "cab"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_plan_holds_finite_numbers_only(number: str, tmp_path: Path) -> None:
    path = tmp_path / "x.plan.json"
    path.write_text(f'{{"schema": "plan/result/v1", "summary": {{"cost_usd": {number}}}}}')
    with pytest.raises(InputError) as caught:
        read_plan(str(path))
    (problem,) = caught.value.problems
    assert (problem.reference, problem.message) == ("malformed-plan", "summary.cost_usd is no finite number")


def raised(module: str, function: str) -> BaseException:
    """An error from a function of a module of that name."""
    code = compile(f"def {function}():\n    raise KeyError('secret')\n{function}()\n", "secret.py", "exec")
    assert isinstance(code, CodeType)
    try:
        exec(code, {"__name__": module})
    except KeyError as error:
        return error
    raise AssertionError


def test_a_report_of_a_bug_names_the_package_of_other_code_and_nothing_of_it() -> None:
    told = bug_text(raised("acme.secret_project.billing", "customer"))
    assert "acme:0" in told
    assert "secret" not in told
    assert "customer" not in told
    own = bug_text(raised("planner.optimize.solve", "optimize"))
    assert "planner.optimize.solve:2 optimize" in own


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("solve gpt2-xl --within 2", 'write "2%"'),
        ("solve gpt2-xl --gap 200%", 'write "0.1%"'),
        ("solve gpt2-xl -o html", "plan report PLAN -o html"),
        ("solve gpt2-xl --prices 2026-13-01", "which is no date"),
        ("init i.txt", "plan init i.yaml"),
        ("init .", "plan init scenario.yaml"),
    ],
)
def test_slips_are_told_what_was_meant(line: str, told: str, run: Run, here: Path) -> None:
    answer = run(*line.split())
    assert (answer.code, told in " ".join(answer.err.split())) == (2, True), answer.err
