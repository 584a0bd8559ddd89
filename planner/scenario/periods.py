"""Periods of a calendar: which of them begins first, and how long they are where a scenario does not say."""

from __future__ import annotations

import math
from functools import lru_cache

SHORT = 1e-9  # share of a period by which a moment may miss its begin, for the rounding of floats
MOST_PARTS = 60  # that a period is cut into for jobs that start later, unless one of them then loses a tenth
TENTH = 10


def first_period(start_s: float, period_s: float) -> int:
    """The first period that begins at a time or after it.

    Examples
    --------
    >>> first_period(86400.0, 86400.0), first_period(86401.0, 86400.0)
    (1, 2)
    """
    return int(-((-start_s + SHORT * period_s) // period_s))


@lru_cache(maxsize=64)
def period_for(whole_s: float, windows: tuple[tuple[float, float], ...], most: int) -> float:
    """The longest whole part of a period that begins when jobs may start, or else soon after.

    A job starts with a period. One that would have to wait for it has less time than it was given, so where no part
    suits all, that is taken in which the worst waits for the least part of its time, in whole hundredths: of a few
    dozen parts, where one of these takes a tenth at most, else of the fewest that do and half as many more.

    Parameters
    ----------
    whole_s
        Period without jobs that start later: a term, or the horizon.  [s]
    windows
        Start of each job and the time that it has from there on.  [s]
    most
        Parts that it may be cut into.

    Examples
    --------
    A job that starts on day 10 of 30 and has 20 days.

    >>> period_for(30 * 86400.0, ((10 * 86400.0, 20 * 86400.0),), 60) / 86400
    10.0

    One that starts on day 1 of a year and has three: 258 parts would take ten hours from it, 365 take none.

    >>> period_for(365 * 86400.0, ((86400.0, 76 * 3600.0),), 520) / 86400
    1.0
    """

    def waits(parts: int) -> int:
        period_s = whole_s / parts
        lost = [(first_period(start, period_s) * period_s - start) / within for start, within in windows]
        return math.ceil(100 * max(lost, default=0.0) - 1e-6)

    parts = min(range(1, max(1, min(most, MOST_PARTS)) + 1), key=lambda number: (waits(number), number))
    if waits(parts) > TENTH:
        parts = next((number for number in range(parts, most + 1) if waits(number) <= TENTH), parts)
        parts = min(range(parts, min(most, parts * 3 // 2) + 1), key=lambda number: (waits(number), number))
    return whole_s / parts
