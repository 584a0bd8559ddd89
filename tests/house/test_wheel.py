"""The wheel holds everything: installed into a clean environment away from the checkout, it solves."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


def test_installed_wheel_solves_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """A clean environment: the wheel without its dependencies, which come from this interpreter's."""
    environment, away = tmp_path / "env", tmp_path / "away"
    away.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    own = {path for path in sys.path if path.endswith("site-packages")}
    # dependencies only: .pth files of these folders (an editable install of the checkout) are not read
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    variables["PYTHONPATH"] = os.pathsep.join([str(site), *own])
    scenario = site / "planner" / "_data" / "scenarios" / "llama.yaml"
    command = [str(environment / "bin" / "python"), "-m", "planner.cli.main", "solve", str(scenario), "-o", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=away, env=variables, check=False)
    assert answer.returncode == 0, answer.stderr
    assert '"status": "optimal"' in answer.stdout
    where = subprocess.run(
        [command[0], "-c", "import planner; print(planner.__file__)"],
        capture_output=True,
        text=True,
        cwd=away,
        env=variables,
        check=True,
    )
    assert str(site) in where.stdout
