"""Memory, files and processes that run out under a command: said in words, never as a bug."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from planner.cli.shortage import shortage_of
from tests.cli.conftest import Run
from tests.faked import answer_with


def of_os(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def import_that_failed() -> ImportError:
    """As numpy tells it: the loader's words are those of the cause."""
    error = ImportError("importing the C-extensions failed")
    error.__cause__ = ImportError("libscipy_openblas64_.so: failed to map segment from shared object")
    return error


SHORT = [
    (MemoryError(), "out-of-memory"),
    (of_os(errno.ENOMEM), "out-of-memory"),
    (import_that_failed(), "out-of-memory"),
    (of_os(errno.EMFILE), "no-files-left"),
    (of_os(errno.ENFILE), "no-files-left"),
    (of_os(errno.EAGAIN), "no-processes-left"),
    (RuntimeError("can't start new thread"), "no-processes-left"),
]
OTHER = [ImportError("No module named 'x'"), RuntimeError("set changed size"), of_os(errno.EACCES), KeyError("memory")]


@pytest.mark.parametrize(("error", "reference"), SHORT, ids=lambda value: repr(value)[:40])
def test_what_ran_out_is_said(
    error: Exception, reference: str, run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    answer_with(monkeypatch, fail)
    answer = run("solve", "scenarios/llama.yaml")
    assert answer.code == 6
    assert f"error[{reference}] " in answer.err
    assert not (here / ".plan").exists()


@pytest.mark.parametrize("error", OTHER, ids=repr)
def test_other_errors_are_no_shortage(error: Exception) -> None:
    assert shortage_of(error) is None
