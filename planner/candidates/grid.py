"""The periods of a calendar: which of them something touches, and which it covers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.scenario.periods import first_period
from planner.scenario.schema import Scenario

_SHORT = 1e-9  # share of a period within which two moments are one


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Periods of `period_s` seconds from the beginning of the plan; the last one ends with the horizon.

    Examples
    --------
    Three days of a horizon of two and a half: work of 30 hours from day 1 touches days 1 and 2.

    >>> grid = Grid(period_s=86400.0, periods=3, horizon_s=216000.0)
    >>> int(grid.touched(1, 30 * 3600.0)), int(grid.covered(0, 30 * 3600.0)), int(grid.covered(1, 36 * 3600.0))
    (3, 1, 3)
    """

    period_s: float
    periods: int
    horizon_s: float

    def start_s(self, period: Any) -> NDArray[np.float64]:
        """Beginning of a period; that of the period after the last is the horizon."""
        start: NDArray[np.float64] = np.minimum(np.asarray(period, dtype=np.float64) * self.period_s, self.horizon_s)
        return start

    def hours(self, first: int, stop: int) -> float:
        """Length of the periods [first, stop).  [h]"""
        return float(self.start_s(stop) - self.start_s(first)) / 3600.0

    def first(self, start_s: float) -> int:
        """The first period that begins at a time or after it."""
        return first_period(start_s, self.period_s)

    def last(self, length_s: Any, end_s: Any) -> NDArray[np.int64]:
        """The last period at whose beginning something of a length can start and end in time; -1 when none is."""
        room = (np.asarray(end_s, dtype=np.float64) - np.asarray(length_s, dtype=np.float64)) / self.period_s
        last = np.floor(np.where(np.isfinite(room), room, -1.0) + _SHORT).astype(np.int64)
        return np.asarray(np.clip(last, -1, self.periods - 1), dtype=np.int64)

    def touched(self, period: Any, length_s: Any) -> NDArray[np.int64]:
        """The first period that something which starts with a period no longer touches."""
        length = np.minimum(np.asarray(length_s, dtype=np.float64), self.period_s * self.periods)
        count = np.ceil(length / self.period_s - _SHORT).astype(np.int64)
        return np.asarray(np.minimum(np.asarray(period) + np.maximum(count, 1), self.periods), dtype=np.int64)

    def covered(self, period: Any, length_s: Any) -> NDArray[np.int64]:
        """The first period that something which starts with a period does not cover whole."""
        length = np.asarray(length_s, dtype=np.float64)
        count = np.floor(length / self.period_s + _SHORT).astype(np.int64)
        stop = np.minimum(np.asarray(period) + count, self.periods)
        to_the_end = self.start_s(period) + length >= self.horizon_s - _SHORT * self.period_s
        return np.asarray(np.where(to_the_end, self.periods, stop), dtype=np.int64)

    def whole_before(self, end_s: float) -> int:
        """How many periods of full length end by a time."""
        return int(np.floor(min(end_s, self.horizon_s) / self.period_s + _SHORT))

    def running_periods(self, length_s: Any, restart_s: Any) -> NDArray[np.int64]:
        """Periods that work of a length takes when it may pause: in each of them a restart comes first.

        More than there are where the restart takes a whole period.
        """
        useful = self.period_s - np.asarray(restart_s, dtype=np.float64)
        count = np.asarray(length_s, dtype=np.float64) / np.where(useful > 0, useful, 1.0)
        whole = np.ceil(np.where(useful > 0, count, np.inf) - _SHORT)
        return np.asarray(np.clip(whole, 1, self.periods + 1), dtype=np.int64)

    def stop_running(self, length_s: Any, restart_s: Any, end_s: float) -> NDArray[np.int64]:
        """The period before which work that may pause has to be done by a time.

        Periods of full length before it, and one more that is cut short where the part of the work that its last
        running period holds fits: what runs there has run in whole periods before.
        """
        length, restart = np.asarray(length_s, dtype=np.float64), np.asarray(restart_s, dtype=np.float64)
        whole, end = self.whole_before(end_s), min(end_s, self.horizon_s)
        done = (self.running_periods(length, restart) - 1) * (self.period_s - restart)
        until = self.start_s(whole) + restart + length - done
        return np.where((whole < self.periods) & (until <= end + _SHORT * self.period_s), whole + 1, whole)

    def run_ends_s(self, period: int, latest_s: float) -> float:
        """When what runs in a period ends there: with the period, or with the deadline that cuts it.  [s]"""
        end_s = float(self.start_s(period + 1))
        return min(end_s, latest_s) if float(self.start_s(period)) < latest_s else end_s


def grid_of(scenario: Scenario) -> Grid:
    """The periods of a scenario; one, the horizon, where it names none."""
    return Grid(period_s=scenario.period_s, periods=scenario.periods, horizon_s=scenario.horizon_s)
