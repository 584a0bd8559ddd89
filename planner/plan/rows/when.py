"""Dates and windows of a plan, from the scenario alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from planner.scenario.owned import Owned
from planner.scenario.schema import Scenario

_SHORT_S = 1e-6  # a window that misses the edge of a period by so little reaches it


def date_after(scenario: Scenario, hours: float) -> str | None:
    """The date some hours after the plan's begin, to the minute; None when the plan has no date."""
    if scenario.begin is None:
        return None
    moment = datetime.fromisoformat(scenario.begin) + timedelta(hours=hours)
    return moment.isoformat(sep=" ", timespec="minutes").removesuffix(" 00:00")


def owned_window_s(scenario: Scenario, owned: Owned) -> tuple[float, float]:
    """When owned hardware is there, within the horizon; begin = end when it is not.  [s] after the begin"""
    first = scenario.since_begin_s(owned.from_date) if owned.from_date else None
    last = scenario.since_begin_s(owned.until_date) if owned.until_date else None
    begin = min(max(first or 0.0, 0.0), scenario.horizon_s)
    end = scenario.horizon_s if last is None else min(max(last, 0.0), scenario.horizon_s)
    return begin, max(begin, end)


def owned_periods(scenario: Scenario, owned: Owned, edges_s: Sequence[float]) -> list[bool]:
    """Periods that owned hardware is there for throughout.

    Parameters
    ----------
    scenario
        Its begin, from which dates are counted, and its horizon.
    owned
        Some hardware of it, with the dates from and until which it is there.
    edges_s
        (periods + 1,) where periods begin and end, after the begin.  [s]
    """
    begin, end = owned_window_s(scenario, owned)
    return [begin <= first + _SHORT_S and last <= end + _SHORT_S for first, last in pairwise(edges_s)]
