"""The one place that asks what day it is; a test puts another day here."""

from __future__ import annotations

from datetime import date


def today() -> date:
    """The date where the command runs."""
    return date.today()
