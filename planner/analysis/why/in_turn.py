"""Ways out by jobs that follow each other, where all of them at once are too many for what is limited in number.

Without a calendar everything is planned to run at once: forty jobs of ten minutes on the one node that is owned have no
plan, though it has days for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from planner.analysis.why.widen import Texts, tried
from planner.candidates.search import Candidates
from planner.optimize.limited import Asker
from planner.scenario.load import with_settings
from planner.scenario.schema import MAX_PERIODS, Scenario
from planner.units import format_duration

if TYPE_CHECKING:
    from planner.plan.model.others import WayOut

# Lengths of periods as people give them.  [s]
PERIODS_S = tuple(
    60 * minutes
    for minutes in (5, 10, 15, 30, 60, 90, 120, 180, 240, 360, 480, 720, 1440, 2880, 10_080, 20_160, 43_200)
)
TRIED = 3  # lengths
STARTS = 30_000  # of all ways in all periods: a calendar of a million takes minutes and gigabytes
COUNTED = ("hardware.owned", "hardware.quotas", "limits.max_devices")


def fine_periods_s(scenario: Scenario, columns: int) -> list[int]:
    """The shortest of some lengths that jobs may be planned in, in turn; none where there is nothing to order.

    A grid of its own, and contracts that give one, are left as they are; fleets run through, and make a calendar of
    hundreds of periods large. Several, as a job holds whole periods: one of 100 minutes has less in periods of 2 h than
    in those of 90 min.

    Parameters
    ----------
    scenario
        What is asked.
    columns
        Ways to run its jobs, each of which may start in every period.
    """
    if scenario.serving or scenario.scheduled or sum(job.count for job in scenario.training) < 2:
        return []
    if any(job.start_s + job.deadline_s > scenario.horizon_s for job in scenario.training):  # no calendar there
        return []
    most_s = min(scenario.horizon_s, *(job.deadline_s for job in scenario.training))
    most = min(MAX_PERIODS, STARTS // max(columns, 1))
    return [s for s in PERIODS_S if scenario.horizon_s <= most * s and 2 * s <= most_s][:TRIED]


def in_turn(
    ways: Candidates, conflict: Sequence[str], search: Callable[..., Candidates], asker: Asker
) -> Iterator[WayOut]:
    """At most one way out: the finest calendar that is one, where machines are too few for all jobs at once.

    Parameters
    ----------
    ways
        Those of the scenario, without limits that shape them.
    conflict
        Names of the limits and workloads that contradict each other.
    search
        Enumerates a scenario with the same catalog.
    asker
        How programs are solved.
    """
    if not any(name.startswith(COUNTED) for name in conflict):
        return
    scenario = ways.scenario
    for period_s in fine_periods_s(scenario, ways.whole.column_count):
        if asker.spent:
            return
        written = format_duration(period_s)
        setting, after = f"periods={written}", f"in turn, in periods of {written}"
        held = scenario.periods, with_settings(scenario, [setting]).periods
        texts = Texts(limit="periods", setting=setting, before="all at once", after=after, more=written)
        if way := tried(scenario, texts, "periods", held, search, asker):
            yield way
            return
