"""Values of a plan document, which may have been edited since: text, counts and numbers, or ValueError."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

MOST = 1e18  # above every count, size and time of a plan; a value beyond is a slip of an editor


def text(row: Mapping[str, Any], key: str) -> str:
    """Text under a key.

    Examples
    --------
    >>> text({"region": "us-east-1"}, "region")
    'us-east-1'
    """
    value = row[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is not text")
    return value


def whole(value: Any) -> int:
    """A count, which is a whole number of at least 1.

    Examples
    --------
    >>> whole(8.0)
    8
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MOST or value != int(value):
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def real(value: Any) -> float:
    """A finite number of at least 0.

    Examples
    --------
    >>> real(2)
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise ValueError(f"{value!r} is not a number of at least 0")
    return float(value)


def date(value: Any) -> str | None:
    """An ISO date, with a time or without; None stays None."""
    if value is None:
        return None
    datetime.fromisoformat(value)
    return str(value)


def above_zero(value: Any) -> float:
    """A finite number above 0."""
    if not real(value):
        raise ValueError("0 where something is needed")
    return float(value)


def if_any(value: Any) -> float | None:
    """A number above 0; None where there is none, or it never ends."""
    return None if value is None or value == math.inf else (real(value) or None)
