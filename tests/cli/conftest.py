"""Run the command line in this process; compare text with golden files."""

from __future__ import annotations

import copy
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
def same_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line believes that it is TODAY."""
    monkeypatch.setattr(clock, "today", lambda: TODAY)


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


_KNOWN: dict[tuple[Any, ...], Any] = {}


@pytest.fixture
def answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question is solved, and each table fitted, once for all the forms that it is printed in."""
    from planner import api
    from planner.calibrate import result, serving

    def remember(room: Any, name: str, key_of: Callable[..., tuple[Any, ...]]) -> None:
        inner = getattr(room, name)

        def known(*arguments: Any, **options: Any) -> Any:
            key = (name, *key_of(*arguments, **options))
            if key not in _KNOWN:
                _KNOWN[key] = inner(*arguments, **options)
            return copy.deepcopy(_KNOWN[key])

        monkeypatch.setattr(room, name, known)

    remember(api, "solve", lambda scenario, catalog, **options: (
        json.dumps(scenario.resolved, sort_keys=True), scenario.file, scenario.case, catalog.digest, repr(options)
    ))  # fmt: skip
    for room, name in ((result, "calibrate"), (serving, "calibrate_serving")):
        remember(room, name, lambda rows, catalog, **options: (repr(rows), catalog.digest, repr(options)))
