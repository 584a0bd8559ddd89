"""The wheel holds everything: installed into a clean environment away from the checkout, it solves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from planner import api
from planner.scenario.shipped import shipped_names

Run = Callable[..., str]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def built(kind: str, source: Path, folder: Path) -> Path:
    """A wheel or an sdist of a folder of sources."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(source)]
    answer = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return next(folder.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


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
    return runner(wheel, tmp_path_factory.mktemp("installed"))


def runner(wheel: Path, folder: Path) -> Run:
    """Runs python of a clean environment in an empty folder: the wheel without its dependencies, which are ours."""
    environment, away = folder / "env", folder / "away"
    away.mkdir()
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


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sdist unpacks to."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built("sdist", ROOT, folder)) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.is_dir())


def test_the_sdist_holds_every_file_that_is_tracked(sources: Path) -> None:
    answer = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode or not (ROOT / ".git").exists():
        pytest.skip("no git checkout here: what is tracked is not known")
    tracked = [name for name in answer.stdout.splitlines() if (ROOT / name).is_file()]
    assert len(tracked) > 1000
    assert [name for name in tracked if not (sources / name).is_file()] == []


@pytest.mark.campaign
def test_the_sdist_builds_a_wheel_that_solves_in_an_empty_folder(sources: Path, tmp_path: Path) -> None:
    run = runner(built("wheel", sources, tmp_path), tmp_path)
    assert json.loads(run("-m", "planner.cli.main", "solve", "llama", "-o", "json"))["status"] == "optimal"


def test_constraints_pin_all_that_an_installation_brings() -> None:
    """Every distribution that ours asks for, and theirs in turn, for this Python and without extras."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_plain(line.partition("==")[0]) for line in lines if "==" in line}
    found: set[str] = set()
    todo = _names(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo |= _names(metadata.requires(name) or ())
    assert "numpy" in found
    assert found - pinned == set()


def _names(texts: Iterable[str]) -> set[str]:
    """Of what is asked for here and now."""
    requirements = map(Requirement, texts)
    return {_plain(one.name) for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
