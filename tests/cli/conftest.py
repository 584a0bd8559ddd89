"""Run the command line in this process; compare text with golden files."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.cli import clock

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Run = Callable[..., Answer]

TODAY = date(2026, 11, 21)  # the day on which every test runs


def without_price_age(err: str) -> str:
    """What stands on stderr but for the warning that shipped prices are old or of no known date."""
    return re.sub(r"warning\[stale-prices\] [^\n]*\nhint: [^\n]*\n", "", err)


@pytest.fixture(autouse=True)
def asked_again(listed_once: None) -> None:
    """Commands share the ways that they list."""


@pytest.fixture(autouse=True)
def same_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line believes that it is TODAY."""
    monkeypatch.setattr(clock, "today", lambda: TODAY)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for constants that stops early: what is found matters less here than that it is told."""
    from planner.calibrate import serving_fit, training_effects

    monkeypatch.setattr(training_effects, "STEPS", 2)
    monkeypatch.setattr(serving_fit, "STEPS", 1)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("solve", "file", ...)`: exit code, stdout and stderr of one command."""
    from planner.cli.main import main

    def call(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["plan", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return Answer(code if isinstance(code, int) else int(code is not None), out, err)

    return call


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder but for the shipped scenarios, as the checkout's root has them."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((HERE / "samples" / f"{name}.json").read_text(encoding="utf-8"))
    return document


def check_golden(name: str, text: str) -> None:
    """Compare with tests/cli/golden/NAME; PLAN_UPDATE_GOLDEN=1 writes it anew."""
    path = HERE / "golden" / name
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
