"""The wheel holds everything: installed into a clean environment away from the checkout, it solves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from planner import api
from planner.scenario.shipped import shipped_names

Run = Callable[..., str]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    answer = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return next(folder.glob("*.whl"))


def test_wheel_ships_data_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "planner/_data/hardware/catalog.yaml",
        "planner/_data/scenarios/llama.yaml",
        "planner/architecture/presets/llama-3.1-8b.json",
        "planner/scenario/scenario.schema.json",
        "planner/plan/plan.schema.json",
        "planner/py.typed",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs python of a clean environment in an empty folder: the wheel without its dependencies, which are ours."""
    environment, away = tmp_path_factory.mktemp("env"), tmp_path_factory.mktemp("away")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    own = {path for path in sys.path if path.endswith("site-packages")}
    # dependencies only: .pth files of these folders (an editable install of the checkout) are not read
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    variables["PYTHONPATH"] = os.pathsep.join([str(site), *own])

    def run(*words: str) -> str:
        command = [str(environment / "bin" / "python"), *words]
        answer = subprocess.run(command, capture_output=True, text=True, cwd=away, env=variables, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    assert str(site) in run("-c", "import planner; print(planner.__file__)")
    return run


@pytest.mark.parametrize(
    "name", [pytest.param("llama", marks=pytest.mark.campaign), "trace"]
)  # trace names a file beside it
def test_installed_wheel_solves_what_ships_as_the_checkout_does(installed: Run, name: str) -> None:
    found = json.loads(installed("-m", "planner.cli.main", "solve", name, "-o", "json"))
    assert found["status"] == "optimal"
    assert found == api.solve(name).document
    assert installed("-m", "planner.cli.main", "verify", f".plan/{name}.plan.json")


def test_installed_wheel_lists_what_ships(installed: Run) -> None:
    rows = json.loads(installed("-m", "planner.cli.main", "scenarios", "-o", "json"))
    assert [row["name"] for row in rows] == shipped_names()


def test_both_names_of_the_command_are_installed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        text = archive.read(points).decode()
    assert "plan = planner.cli:start" in text
    assert "llm-capacity-planner = planner.cli:start" in text
