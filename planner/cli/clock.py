"""The one place that asks what day it is, where a test puts another, and that knows when the command began."""

from __future__ import annotations

import time
from datetime import date

_began_s: list[float] = []


def today() -> date:
    """The date where the command runs."""
    return date.today()


def begin(began_s: float | None = None) -> None:
    """A command begins, or began then (`time.monotonic`): time limits count from there."""
    _began_s[:] = [time.monotonic() if began_s is None else began_s]


def began_s() -> float | None:
    """When the command began; told once, to the one who sets its deadline.  [s]"""
    return _began_s.pop() if _began_s else None
