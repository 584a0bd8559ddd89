"""When rows run, worked out again from the scenario: periods, windows, orders of jobs, pauses.

Nothing of the search is used: a row says when it starts, and everything else (dates, the time that owned hardware is
there) follows from the scenario.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from planner.carriers import dataclass
from planner.checks.facts import RESERVED, OfferFacts, exact_rental, jobs_of, pool_of_row, wait_hours
from planner.checks.findings import TOLERANCE, Finding, cell_findings
from planner.scenario.hardware_keys import Owned
from planner.scenario.schema import Scenario, ServingFleet, TrainingJob

if TYPE_CHECKING:
    from planner.plan.model.plan import Allocation, PlanDocument
    from planner.plan.model.rows import TrainingAllocation


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


_SHORT = 1e-9  # share of a period that rounding may take


class Held(NamedTuple):
    """Nodes that a row holds, from the first period to the one before `stop`."""

    first: int
    stop: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Periods of a scenario's calendar; the last one ends with the horizon."""

    period_hours: float
    periods: int
    horizon_hours: float

    def edge(self, number: int) -> float:
        """Where a period begins.  [h]"""
        return min(number * self.period_hours, self.horizon_hours)

    def edges_s(self) -> list[float]:
        """All edges, the end of the horizon last.  [s]"""
        return [3600.0 * self.edge(number) for number in range(self.periods + 1)]

    def at(self, hours: float) -> int | None:
        """The period that begins at a time, None when none does."""
        number = round(hours / self.period_hours)
        near = math.isclose(self.edge(number), hours, rel_tol=TOLERANCE, abs_tol=_SHORT * self.period_hours)
        return number if 0 <= number < self.periods and near else None

    def within(self, hours: float) -> int | None:
        """The period in which a time lies, None after the last."""
        number = math.floor(hours / self.period_hours + _SHORT)
        return number if 0 <= number < self.periods else None

    def touched(self, begin: int, end_hours: float) -> int:
        """The first period after those that reach from `begin` to a time."""
        return max(begin + 1, min(self.periods, math.ceil(end_hours / self.period_hours - _SHORT)))


def grid_of(scenario: Scenario) -> Grid | None:
    """The grid of a scenario; None where everything runs at once."""
    if not scenario.scheduled:
        return None
    horizon = scenario.horizon_s / 3600.0
    return Grid(scenario.period_s / 3600.0, scenario.periods, horizon)


def held_by(asked: TrainingJob | ServingFleet, row: Allocation, facts: OfferFacts, scenario: Scenario) -> list[Held]:
    """Periods in which a row holds nodes, and how many of its jobs run in them; a fleet holds all.

    Parameters
    ----------
    asked
        The job or the fleet of the scenario that the row is of.
    row
        A row of the plan; one that starts with no period holds nothing.
    facts
        The offer looked up again: how long a job waits for it, with its nodes held meanwhile.
    scenario
        One with a calendar.
    """
    grid = grid_of(scenario)
    assert grid is not None
    if isinstance(asked, ServingFleet):
        return [Held(0, grid.periods, 1)]
    row = cast("TrainingAllocation", row)
    if row["runs"] is not None:
        spans = [(grid.at(run["start_hours"]), run["end_hours"], run["jobs"]) for run in row["runs"]]
        return [Held(first, grid.touched(first, end), jobs) for first, end, jobs in spans if first is not None]
    if "switch" in row and row["switch"]["part"] > 1:  # it goes on in the middle of a period
        first = grid.within(row["start_hours"])
    else:
        first = grid.at(row["start_hours"] - wait_hours(facts, scenario))
    if first is None:
        return []
    return [Held(first, grid.touched(first, row["start_hours"] + row["held_hours"]), row["jobs"])]


def row_timing_findings(
    asked: TrainingJob | ServingFleet, row: Allocation, facts: OfferFacts, scenario: Scenario
) -> Iterator[Finding]:
    """Start, end, who pays, and whether the windows of the workload are kept.

    Parameters
    ----------
    asked
        The job or the fleet of the scenario that the row is of.
    row
        A row of the plan.
    facts
        The offer looked up again: who pays, and how long a job waits for it.
    scenario
        Its calendar, if it has one; without one a job starts when it may, or when it changes machines.
    """
    reserved = facts.offer.price_model == RESERVED
    paid = {"funding": facts.offer.price_model, "reserved_pool": pool_of_row(row) if reserved else None}
    yield from cell_findings("wrong-funding", asked.name, row, paid)
    if row.get("mix"):  # the groups hold their machines together, at the widest band, which their rows tell
        band = cast("TrainingAllocation", row)["error_band"]["time"]
        held = {"held_hours": row["hours"] * (band["margin"] if band else 1.0)}
        yield from cell_findings("wrong-time", asked.name, row, held)
    if isinstance(asked, ServingFleet):
        cells: Mapping[str, object] = {"start_hours": 0.0, "end_hours": scenario.horizon_s / 3600.0, "runs": None}
        yield from cell_findings("wrong-start", asked.name, row, cells)
        return
    row = cast("TrainingAllocation", row)
    grid = grid_of(scenario)
    if grid is None:
        after = "switch" in row and row["switch"]["part"] > 1
        begin = asked.start_s / 3600.0 + (row["switch"]["switch_hours"] if after else 0.0)
        cells = {"start_hours": begin, "end_hours": begin + row["hours"], "runs": None}
        yield from cell_findings("wrong-start", asked.name, row, cells)
    elif asked.schedule == "elastic" and row["runs"] is not None:
        yield from _pausing(asked, row, grid)
    else:
        yield from _started(asked, row, facts, scenario, grid)


def _started(
    job: TrainingJob, row: TrainingAllocation, facts: OfferFacts, scenario: Scenario, grid: Grid
) -> Iterator[Finding]:
    """A job that runs through: it starts with a period, not too early, and ends in time."""
    yield from cell_findings(
        "wrong-start", job.name, row, {"end_hours": row["start_hours"] + row["hours"], "runs": None}
    )
    first = grid.at(_begins(row) - wait_hours(facts, scenario))
    if first is None:
        yield Finding("wrong-start", f"{job.name}: no period begins at {_begins(row):.6g} h, less any wait")
    elif grid.edge(first) * 3600.0 < job.start_s - _slack_s(grid):
        yield Finding("too-early", f"{job.name}: starts at {grid.edge(first):.6g} h, before {job.start_s / 3600:.6g} h")
    until = row["start_hours"] + row["held_hours"]
    yield from _in_time(job, until, grid)
    if facts.offer.price_model == RESERVED and until > grid.horizon_hours * (1 + _SHORT) + _slack_s(grid) / 3600.0:
        yield Finding("late", f"{job.name}: {until:.6g} h is after the horizon, where contracts end")


def _begins(row: TrainingAllocation) -> float:
    """When the job of a row starts, of one that changed machines its first part.  [h]"""
    after = "switch" in row and row["switch"]["part"] > 1
    return row["start_hours"] - (row["switch"]["switch_hours"] if after else 0.0)


def _slack_s(grid: Grid) -> float:
    return _SHORT * grid.period_hours * 3600.0


def _in_time(job: TrainingJob, until_hours: float, grid: Grid) -> Iterator[Finding]:
    latest = (job.start_s + job.deadline_s) / 3600.0
    if until_hours > latest * (1 + _SHORT) + _slack_s(grid) / 3600.0:
        yield Finding("late", f"{job.name}: {until_hours:.6g} h is after the deadline of {latest:.6g} h")


def _pausing(job: TrainingJob, row: TrainingAllocation, grid: Grid) -> Iterator[Finding]:
    """A job that may pause: enough whole periods within its window, no more jobs at once than there are."""
    runs = row["runs"]
    if not runs:
        yield Finding("wrong-start", f"{job.name}: it pauses, and no running periods are named")
        return
    ends = {"start_hours": runs[0]["start_hours"], "end_hours": runs[-1]["end_hours"]}
    yield from cell_findings("wrong-start", job.name, row, ends)
    numbers = [grid.at(run["start_hours"]) for run in runs]
    known = [number for number in numbers if number is not None]
    if len(known) < len(runs) or sorted(set(known)) != known:
        yield Finding("wrong-start", f"{job.name}: its runs are not periods of the calendar, each once and in order")
        return
    for number, run in zip(known, runs):
        latest = (job.start_s + job.deadline_s) / 3600.0  # a period in which it lies is run up to there at most
        whole = {"end_hours": min(grid.edge(number + 1), latest if grid.edge(number) < latest else math.inf)}
        yield from cell_findings("wrong-start", job.name, run, whole)
        if not 1 <= run["jobs"] <= row["jobs"]:
            yield Finding("wrong-count", f"{job.name}: {run['jobs']} of {row['jobs']} jobs run in period {number}")
    if grid.edge(known[0]) * 3600.0 < job.start_s - _slack_s(grid):
        yield Finding("too-early", f"{job.name}: runs before {job.start_s / 3600:.6g} h")
    yield from _in_time(job, runs[-1]["end_hours"], grid)


def running_findings(
    job: TrainingJob, row: TrainingAllocation, facts: OfferFacts, scenario: Scenario, hours: float, restart_s: float
) -> Iterator[Finding]:
    """A job that may pause runs in as many periods as it takes: each begins with a restart.

    Parameters
    ----------
    hours
        Of the run without pauses, at the confidence of the job.  [h]
    """
    grid = grid_of(scenario)
    if grid is None or not row["runs"]:
        return
    useful = grid.period_hours - restart_s / 3600.0
    needed = (hours + wait_hours(facts, scenario)) / useful if useful > 0 else math.inf
    ran = sum(run["jobs"] for run in row["runs"])
    periods = max(math.ceil(needed - _SHORT), 1) if math.isfinite(needed) else math.inf
    if ran < row["jobs"] * periods:
        yield Finding("wrong-time", f"{job.name}: {ran} periods are run, {row['jobs']} × {needed:.6g} are needed")
        return
    last = row["runs"][-1]
    if last["end_hours"] < last["start_hours"] + grid.period_hours * (1 - _SHORT):  # the last part of the run is there
        until = last["start_hours"] + (needed - periods + 1) * useful + restart_s / 3600.0
        if until > last["end_hours"] + 2 * _SHORT * grid.period_hours:
            yield Finding("late", f"{job.name}: its last part ends at {until:.6g} h, after {last['end_hours']:.6g} h")


def training_cost(row: TrainingAllocation, facts: OfferFacts, per_job: int, hours: float) -> int:
    """What a row of a job costs by itself: nothing on reserved nodes, which contracts pay for.  [micro-USD]

    Parameters
    ----------
    row
        Only its number of jobs counts.
    facts
        The offer looked up again: its price, and how it is billed.
    per_job
        Shapes of one job.
    hours
        Predicted time of one job on them, before it is rounded up as billed.  [h]
    """
    if facts.offer.price_model == RESERVED:
        return 0
    return int(row["jobs"]) * exact_rental(per_job, facts.offer.price_microusd_per_hour, hours, facts.bill)


def order_findings(document: PlanDocument, scenario: Scenario) -> Iterator[Finding]:
    """Jobs that wait for others start when those are done, their margins included."""
    grid = grid_of(scenario)
    if grid is None:
        return
    rows = {
        workload["name"]: cast("list[TrainingAllocation]", workload["allocations"])  # no fleet is asked for below
        for workload in document["workloads"]
    }
    for job in scenario.training:
        for name in job.after or ():
            done = max((_done_hours(row, grid) for row in rows[name]), default=0.0)
            begins = min((row["start_hours"] for row in rows[job.name]), default=math.inf)
            if begins < done - _slack_s(grid) / 3600.0:
                message = f"{job.name}: starts at {begins:.6g} h, and {name} holds its nodes until {done:.6g} h"
                yield Finding("too-early", message)


def _done_hours(row: TrainingAllocation, grid: Grid) -> float:
    """End of the last period that a row touches."""
    until = row["end_hours"] if row["runs"] else row["start_hours"] + row["held_hours"]
    return grid.edge(math.ceil(until / grid.period_hours - _SHORT))


def schedule_findings(document: PlanDocument, scenario: Scenario) -> Iterator[Finding]:
    """What the schedule says of periods, dates, slack and runs follows from the rows."""
    grid, stated = grid_of(scenario), document["schedule"]
    if grid is None or stated is None:
        if (grid is None) != (stated is None):
            yield Finding("wrong-schedule", "the scenario and the plan do not agree that there is a calendar")
        return
    head = {"begin": scenario.begin, "period_hours": grid.period_hours, "periods": grid.periods}
    yield from cell_findings("wrong-schedule", "schedule", stated, head)
    pairs = [(workload, row) for workload in document["workloads"] for row in workload["allocations"]]
    if len(pairs) != len(stated["jobs"]):
        yield Finding("wrong-schedule", f"{len(stated['jobs'])} jobs in the schedule, {len(pairs)} rows in the plan")
        return
    asked = {workload.name: workload for workload in scenario.workloads}
    for (workload, row), job in zip(pairs, stated["jobs"]):
        if workload["name"] in asked:
            cells = _job_cells(asked[workload["name"]], row, scenario)
            yield from cell_findings("wrong-schedule", workload["name"], job, cells, scale=grid.horizon_hours)


def _job_cells(asked: TrainingJob | ServingFleet, row: Allocation, scenario: Scenario) -> Mapping[str, object]:
    start, end, jobs = row["start_hours"], row["end_hours"], jobs_of(row)
    cells: dict[str, object] = {
        "workload": asked.name,
        "place": " ".join(dict.fromkeys([row["device"], row["provider"], row["zone"] or row["region"]])),
        "start_hours": start,
        "finish_hours": end,
        "start_date": date_after(scenario, start),
        "finish_date": date_after(scenario, end),
        "jobs": jobs,
        "runs": row["runs"] or [{"start_hours": start, "end_hours": end, "jobs": jobs}],
    }
    if isinstance(asked, ServingFleet):
        return {**cells, "release_hours": 0.0, "deadline_hours": None, "slack_hours": None}
    row = cast("TrainingAllocation", row)
    latest = (asked.start_s + asked.deadline_s) / 3600.0
    late = 0.0 if row["runs"] else row["held_hours"] - row["hours"]
    return {
        **cells,
        "release_hours": asked.start_s / 3600.0,
        "deadline_hours": latest,
        "slack_hours": latest - end - late,
    }


def counted(held: Sequence[Held], periods: int, nodes_per_job: int) -> list[int]:
    """Nodes that a row holds in every period.

    Parameters
    ----------
    held
        Spans of periods, as `held_by` tells them; those that overlap add up.
    periods
        How many the calendar has.
    nodes_per_job
        Of each job that runs in a span; of a fleet all nodes of the row.

    Returns
    -------
    Nodes by period, (periods,).
    """
    found = [0] * periods
    for span in held:
        for period in range(span.first, span.stop):
            found[period] += span.jobs * nodes_per_job
    return found
