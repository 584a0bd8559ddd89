"""Values of a plan document, which may have been edited since: counts and numbers, or ValueError."""

from __future__ import annotations

import math
from datetime import datetime

MOST = 1e18  # above every count, size and time of a plan; a value beyond is a slip of an editor


def whole(value: float) -> int:
    """A count, which is a whole number of at least 1.

    Examples
    --------
    >>> whole(8.0)
    8
    """
    if not 1 <= value <= MOST or value != int(value):
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def real(value: float) -> float:
    """A finite number of at least 0.

    Examples
    --------
    >>> real(2)
    2.0
    """
    if not 0 <= value <= MOST:
        raise ValueError(f"{value!r} is not a number of at least 0")
    return float(value)


def date(value: str | None) -> str | None:
    """An ISO date, with a time or without; None stays None."""
    if value is None:
        return None
    datetime.fromisoformat(value)
    return value


def above_zero(value: float) -> float:
    """A finite number above 0."""
    if not real(value):
        raise ValueError("0 where something is needed")
    return float(value)


def if_any(value: float | None) -> float | None:
    """A number above 0; None where there is none, or it never ends."""
    return None if value is None or value == math.inf else (real(value) or None)
