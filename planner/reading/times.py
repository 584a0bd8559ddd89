"""Times of all the forms that logs have, as seconds since 1970 or since the beginning of a log."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.errors import Problem, UsageError

_TICKS = re.compile(r"(\.\d{6})\d+")  # more digits than a microsecond has
_FORMS = ("%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %H:%M")
# an epoch count of 2001 to 2128 is this large in each unit; smaller numbers count from the log's beginning
_EPOCHS = ((1e9, 5e9, 1.0), (1e12, 5e12, 1e-3), (1e15, 5e15, 1e-6), (1e18, 5e18, 1e-9))
EPOCH_FROM_S = 1e9


def zone_of(name: str) -> tzinfo:
    """A time zone by its name; UTC for none.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    if not name or name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problem = Problem(reference="unknown-zone", message=f"there is no time zone '{name}'",
                          hint="as Europe/Berlin, America/New_York or UTC")  # fmt: skip
        raise UsageError(problem) from None


def epoch_unit_s(value: float) -> float | None:
    """The unit in which a number is a time between 2001 and 2128; None when there is none.  [s]"""
    return next((unit for low, high, unit in _EPOCHS if low <= value < high), None)


def iso_seconds(text: str, zone: tzinfo) -> float:
    """Seconds since 1970 of a written time; `ValueError` when it is none.  [s]"""
    text = _TICKS.sub(r"\1", text.strip())
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = _other(text)
    return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()


def has_zone(text: str) -> bool:
    """Whether a written time names its zone."""
    return bool(re.search(r"(Z|[+-]\d\d:?\d\d| UTC| GMT)$", text.strip()))


def _other(text: str) -> datetime:
    text = re.sub(r" (UTC|GMT)$", "+00:00", text)
    for form in ("", *_FORMS):
        try:
            return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
    raise ValueError(f"'{text[:40]}' is no time")
