"""A session of the command line whose answer is given, for what happens around an answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from planner import api
from planner.api import advising


def answer_with(monkeypatch: pytest.MonkeyPatch, solve: Callable[..., Any]) -> None:
    """`plan solve` asks this function, and has no advice to give."""

    def session(*question: Any, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(solve=lambda **told: solve(*question, **options, **told))

    monkeypatch.setattr(api, "session", session)
    monkeypatch.setattr(advising, "advice", lambda *_, **__: advising.Advised([], False))
