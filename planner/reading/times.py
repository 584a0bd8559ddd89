"""Times of all the forms that logs have, as seconds since 1970 or since the beginning of a log."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.errors import Problem, UsageError

_TICKS = re.compile(r"(\.\d{6})\d+")  # more digits than a microsecond has
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)(?!\d)")
_DIGITS = re.compile(r"(\d{4})()(\d\d)(\d\d)(?!\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)(?!\d)")
_DAY_NAMED = re.compile(r"(?:[A-Za-z]{3}, )?(\d{1,2})[ /-]([A-Za-z]{3})[a-z]*[ /-](\d{4})(?!\d)")  # 1 Mar 2025
_MONTH_NAMED = re.compile(r"([A-Za-z]{3})[a-z]*\.? (\d{1,2}),? (\d{4})(?!\d)")  # Mar 1, 2025
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"[T:,@\s]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?(?:\s?([ap])\.?m\.?)?"
    r"\s?(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d)?(?: UTC)?)?",
    re.IGNORECASE,
)
_CLOCK_ALONE = re.compile(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?)?(?:\s?(?:Z|[+-]\d\d:?\d\d))?", re.I)
_MIDNIGHT = re.compile(r"(?:[T ]0?0:00(?::00(?:\.0+)?)?(?:Z|\+00:00)?)?")
_SLASHED = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(?:\d{4}|\d\d)(?!\d)")
_NOON_H = 12
_MONTHS = 12
# an offset of hours alone follows a time of day: 2026-11-01 ends in a day
_ZONE = re.compile(r"(?:Z| UTC| GMT|\d[T :].*\d ?[+-]\d\d(?::?\d\d)?)$")
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
        found = _SLASHED.match(text)
        if found:
            first, second = (int(each) <= _MONTHS for each in found.group(1, 3))
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
    """Whether a text holds a date whose order is not said, like 9/2/2023 or 9-2-23."""
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
    text = _TICKS.sub(r"\1", text.strip().removeprefix("[").removesuffix("]"))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = _other(text, day_first)
    return (time if time.tzinfo else time.replace(tzinfo=zone)).timestamp()


def has_zone(text: str) -> bool:
    """Whether a written time names its zone."""
    return bool(_ZONE.search(text.strip().removesuffix("]")))


def is_clock(value: object) -> bool:
    """Whether it is a time of a day whose day is not told, as 9:05:00."""
    return isinstance(value, str) and bool(_CLOCK_ALONE.fullmatch(value.strip()))


def day_alone(value: object) -> str:
    """A day that is written without a time of it, or with midnight, as a spreadsheet does; "" for anything else."""
    text = str(value).strip()[:40]
    try:
        _, rest = written_day(text)
    except ValueError:
        try:
            _, rest = written_day(text, day_first=True)
        except ValueError:
            return ""
    return text.removesuffix(rest) if _MIDNIGHT.fullmatch(rest) else ""


def written_day(text: str, day_first: bool = False) -> tuple[date, str]:
    """The day that a text begins with, and what follows it; `ValueError` when it begins with none.

    Parameters
    ----------
    text
        As 2023-02-09, 20230209, 9/2/2023, 9-2-23, 9.2.2023, 9 Feb 2023 or Feb 9, 2023.
    day_first
        Of 9/2/2023 the day stands first, not the month; of 9.2.2023 it always does.
    """
    if found := _YEAR_FIRST.match(text) or _DIGITS.match(text):
        year, month, day = map(int, found.group(1, 3, 4))
    elif found := _YEAR_LAST.match(text):
        first, second, year = map(int, found.group(1, 3, 4))
        month, day = (second, first) if day_first or found.group(2) == "." else (first, second)
        year += 2000 if year < 100 else 0
    elif found := _DAY_NAMED.match(text):
        day, month, year = int(found.group(1)), _month(found.group(2)), int(found.group(3))
    elif found := _MONTH_NAMED.match(text):
        month, day, year = _month(found.group(1)), int(found.group(2)), int(found.group(3))
    else:
        raise ValueError(f"'{text[:40]}' is no day")
    return date(year, month, day), text[found.end() :]


def _month(name: str) -> int:
    return _NAMES.index(name.lower()) + 1


def _other(text: str, day_first: bool) -> datetime:
    """A time that is not of ISO's form; a day alone is its midnight."""
    day, rest = written_day(text, day_first)
    found = _CLOCK.fullmatch(rest) if rest.strip() else None
    if found is None:
        if rest.strip():
            raise ValueError(f"'{text[:40]}' is no time")
        return datetime.combine(day, time())
    hour, minute, second = (int(each or 0) for each in found.group(1, 2, 3))
    if half := found.group(5):
        if not 1 <= hour <= _NOON_H:
            raise ValueError(f"'{text[:40]}' is no time of half a day")
        hour = hour % _NOON_H + (_NOON_H if half in "pP" else 0)
    zone = UTC if found.group(6) else None
    if found.group(7):
        ahead = timedelta(hours=int(found.group(8)), minutes=int(found.group(9) or 0))
        zone = timezone(-ahead if found.group(7) == "-" else ahead)
    microsecond = int((found.group(4) or "0").ljust(6, "0"))
    return datetime.combine(day, time(hour, minute, second, microsecond, tzinfo=zone))
