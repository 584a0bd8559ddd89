"""Times of all the forms that logs have, as seconds since 1970 or since the beginning of a log."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.errors import Problem, UsageError

_TICKS = re.compile(r"(\.\d{6})\d+")  # more digits than a microsecond has
_FORMS = ("%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %H:%M")
_DAY_FIRST_FORMS = tuple(form.replace("%m/%d/", "%d/%m/") for form in _FORMS)
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/\d{4}(?!\d)")
_MONTHS = 12
# an offset of hours alone follows a time of day: 2026-11-01 ends in a day
_ZONE = re.compile(r"(?:Z| UTC| GMT|[+-]\d\d:?\d\d|\d[T ].*\d[+-]\d\d)$")
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


class DayOrder:
    """Whether of dates like 9/2/2023 the day stands first, by those of a whole file that can be read one way only."""

    def __init__(self) -> None:
        self._months_first = self._days_first = 0
        self._there = False

    def see(self, text: str) -> None:
        """A written time."""
        found = _SLASHED.match(text) if "/" in text else None
        if found:
            first, second = (int(each) <= _MONTHS for each in found.groups())
            self._there = True
            self._months_first += first and not second
            self._days_first += second and not first

    @property
    def day_first(self) -> bool:
        """Whether more of them say so than say otherwise."""
        return self._days_first > self._months_first

    @property
    def said(self) -> str:
        """How they are understood, for people; "" without such dates."""
        if not self._there:
            return ""
        if not (self._days_first or self._months_first):
            return "taken as month/day/year: no day after the 12th tells"
        return "day/month/year" if self.day_first else "month/day/year"


def has_slashes(text: str) -> bool:
    """Whether a text holds a date whose order is not said, like 9/2/2023."""
    return bool(_SLASHED.search(text))


def iso_seconds(text: str, zone: tzinfo, day_first: bool = False) -> float:
    """Seconds since 1970 of a written time; `ValueError` when it is none.  [s]

    Parameters
    ----------
    text
        As logs write it.
    zone
        Of a time that names none.
    day_first
        Of 9/2/2023 the day stands first, not the month.
    """
    text = _TICKS.sub(r"\1", text.strip())
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = _other(text, day_first)
    return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()


def has_zone(text: str) -> bool:
    """Whether a written time names its zone."""
    return bool(_ZONE.search(text.strip()))


def _other(text: str, day_first: bool) -> datetime:
    text = re.sub(r" (UTC|GMT)$", "+00:00", text)
    for form in ("", *(_DAY_FIRST_FORMS if day_first else _FORMS)):
        try:
            return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
    raise ValueError(f"'{text[:40]}' is no time")
