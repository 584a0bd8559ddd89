"""The command line and golden files of tests/cli, for the tests of `plan compare`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """`run("compare", ...)`: exit code, stdout and stderr of one command."""
    from planner.cli.main import main

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plan", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else int(code is not None)), out, err

    return call


def check_golden(name: str, text: str) -> None:
    """Compare with tests/compare/golden/NAME; PLAN_UPDATE_GOLDEN=1 writes it anew."""
    path = HERE / "golden" / name
    if os.environ.get("PLAN_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.fixture(autouse=True)
def asked_again(listed_once: None) -> None:
    """Commands share the ways that they list."""
