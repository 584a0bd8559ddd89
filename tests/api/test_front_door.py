"""`import planner`: what tools see of it, what it names, what it does not import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import planner
from planner import api, errors

ROOT = Path(__file__).parents[2]

SCRIPT = """\
import planner
from planner import InputError, solve
from planner import no_such_name

reveal_type(planner.solve("llama"))
reveal_type(solve)
plan = planner.solve("llama", time_limit_s=60.0)
reveal_type(plan.cost_usd)
reveal_type(plan.status)
plan.cost_uds
planner.slove("llama")
planner.solve(3)
planner.solve("llama", treads=2)
cost: int = plan.cost_usd
try:
    planner.load_scenario("mine.yaml")
except InputError as error:
    reveal_type(error.problems)
held = planner.session("llama")
reveal_type(held.with_(confidence="p95").solve())
reveal_type(planner.verify(plan))
planner.verify(7)
"""
EXPECTED = """\
3: error: Module "planner" has no attribute "no_such_name"  [attr-defined]
5: note: Revealed type is "planner.answers.plan_answer.Plan"
6: note: Revealed type is "def (scenario: planner.scenario.schema.Scenario | typing.Mapping[str, Any] | str | os.PathLike[str], …) -> planner.answers.plan_answer.Plan"
8: note: Revealed type is "float | None"
9: note: Revealed type is "str"
10: error: "Plan" has no attribute "cost_uds"; maybe "cost_usd"?  [attr-defined]
11: error: Module has no attribute "slove"; maybe "solve"?  [attr-defined]
12: error: Argument 1 to "solve" has incompatible type "int"; expected "Scenario | Mapping[str, Any] | str | PathLike[str]"  [arg-type]
13: error: Unexpected keyword argument "treads" for "solve"; did you mean "threads"?  [call-arg]
14: error: Incompatible types in assignment (expression has type "float | None", variable has type "int")  [assignment]
18: note: Revealed type is "tuple[planner.errors.Problem, ...]"
20: note: Revealed type is "planner.answers.plan_answer.Plan"
21: note: Revealed type is "list[planner.errors.Problem]"
22: error: Argument 1 to "verify" has incompatible type "int"; expected "Plan | Mapping[str, Any] | str | PathLike[str]"  [arg-type]
"""  # noqa: E501 - as mypy words it


def test_a_type_checker_sees_the_library(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # the settings and the cache of the checkout: what it imports is checked by `make lint`
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", "--no-error-summary"]
    answer = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.sub(r"^.*script\.py:", "", answer.stdout, flags=re.MULTILINE)
    found = re.sub(r'^\d+: note: "\w+" defined in.*\n', "", found, flags=re.MULTILINE)
    found = re.sub(r"(PathLike\[str\], )catalog: [^)]*\)", r"\1…)", found)
    assert found == EXPECTED, answer.stderr


def test_what_is_public() -> None:
    assert dir(planner) == sorted(planner.__all__)
    for name in planner.__all__:
        assert getattr(planner, name) is not None
    tree = {name for name in vars(errors) if isinstance(getattr(errors, name), type) and name.endswith("Error")}
    assert tree <= set(planner.__all__)
    assert planner.InputError is errors.InputError
    assert planner.solve is api.solve
    with pytest.raises(AttributeError, match="module 'planner' has no attribute 'no_such_name'"):
        planner.no_such_name  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="no_such_name"):
        exec("from planner import no_such_name")


def test_no_public_name_is_that_of_a_room() -> None:
    """A room that is imported takes its name in the package: `planner.report` is one, and no function."""
    rooms = {path.stem for path in (ROOT / "planner").iterdir()}
    assert not rooms & set(planner.__all__)


def test_every_public_function_says_what_it_takes() -> None:
    for name in planner.__all__:
        found = getattr(planner, name)
        assert name == "__version__" or (found.__doc__ or "").strip(), name


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, planner\n"
        "dir(planner), planner.__version__\n"
        "print(sorted(name for name in sys.modules if name.startswith('planner')))\n"
        "planner.InputError\n"
        "print('numpy' in sys.modules, 'pydantic' in sys.modules)\n"
        "from planner import *\n"
        "print('numpy' in sys.modules, solve.__module__)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert answer.stdout.splitlines() == ["['planner']", "False False", "True planner.api.solving"]


JOB = {"name": "pre", "model": "gpt2-xl", "tokens": "1B", "deadline": "30 days"}
ASKED = {"schema": "plan/v1", "name": "t", "training": [JOB], "hardware": {"allow": ["a100-*"]}}


def test_a_scenario_is_given_as_a_mapping_and_changed_as_on_the_command_line() -> None:
    session = planner.session(ASKED)
    assert session.solve().status == "optimal"
    assert session.with_("limits.budget=$0").scenario.limits.budget_microusd == 0
    with pytest.raises(errors.InputError, match="did you mean 'tokens'") as caught:
        planner.session({**ASKED, "training": [{**JOB, "toknes": "1B"}]})
    assert caught.value.problems[0].places[0].line > 1
    loaded = planner.load_scenario(ASKED, settings=["training.pre.deadline=7 days"])
    assert loaded.training[0].deadline_s == 7 * 86400
    with pytest.raises(TypeError, match="a scenario, its mapping, the path"):
        planner.session(["t"])  # type: ignore[arg-type]


def test_formats_of_exports_go_by_the_names_that_people_have() -> None:
    plan = planner.solve(ASKED)
    for name, meant in (
        ("k8s", "did you mean kubernetes?"),
        ("slrum", "did you mean slurm?"),
        ("x", "one of torchrun"),
    ):
        with pytest.raises(errors.UsageError, match=meant):
            plan.export(name)
