"""Dates of a plan and the time that owned hardware is there, worked out again from the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from planner.scenario.owned import Owned
from planner.scenario.schema import Scenario

_SHORT_S = 1e-6  # rounding may take so much of a period


def date_after(scenario: Scenario, hours: float) -> str | None:
    """The date so many hours after the begin, with the time of day unless that is midnight; None without a begin."""
    if scenario.begin is None:
        return None
    moment = datetime.fromisoformat(scenario.begin) + timedelta(hours=hours)
    midnight = moment.hour == moment.minute == 0
    return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")


def owned_window_s(scenario: Scenario, owned: Owned) -> tuple[float, float]:
    """From when to when owned hardware is there, cut to the horizon; of no length where it is not.  [s]"""
    begin = 0.0 if not owned.from_date else _within(scenario, scenario.since_begin_s(owned.from_date) or 0.0)
    end = scenario.horizon_s
    if owned.until_date and (last := scenario.since_begin_s(owned.until_date)) is not None:
        end = _within(scenario, last)
    return begin, max(begin, end)


def _within(scenario: Scenario, moment_s: float) -> float:
    return min(max(moment_s, 0.0), scenario.horizon_s)


def owned_nodes(scenario: Scenario, owned: Owned, edges_s: Sequence[float]) -> list[int]:
    """Nodes of owned hardware in every period; none in one that it is not there for throughout.

    Parameters
    ----------
    scenario
        Its begin, from which dates are counted, and its horizon.
    owned
        One entry of `hardware.owned`.
    edges_s
        Begin of each period and the end of the last, ascending, (periods + 1,).  [s]
    """
    begin, end = owned_window_s(scenario, owned)
    return [
        owned.count if begin - _SHORT_S <= edges_s[number] and edges_s[number + 1] <= end + _SHORT_S else 0
        for number in range(len(edges_s) - 1)
    ]
