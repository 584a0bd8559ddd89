"""One search with every limit out of the way, and the limits put back as numbers: what repairs are looked for in.

The columns of a scenario depend on its deadlines, quotas and device limits: ways past them are not enumerated.
Here they are enumerated once, with those limits lifted, and each becomes a number again that can be moved without
evaluating any layout anew: quotas, device limits and owned hardware are joint rows with the scenario's own bounds
(a way that alone breaks a quota breaks its row), deadlines are filters on what a column needs, in whole seconds from
the start of the job to its end at the confidence asked for, rounded up.

`covers` says whether a search under moved limits would find the same columns: it tries every number of shapes up to
`COMPLETE`, beyond it a grid, and beside the grid the fewest shapes that could meet the deadline and the most that the
limits allow, wherever these lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.analysis.why.settings import OWNED, stated_limits
from planner.candidates.calendar import RUN
from planner.candidates.counts import SMALLEST_WINDOW, count_grid, single_device
from planner.candidates.holding import hold_times
from planner.candidates.limits import Window, concurrent_sets
from planner.candidates.offers import LARGEST_JOB, shape_cap
from planner.candidates.program import IntArray, Program, Row, Task, restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.candidates.shared_nodes import DEVICES_OF
from planner.candidates.training_question import TrainingQuestion
from planner.carriers import dataclass
from planner.optimize.limited import Filter, Limited, More, limit_of
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario, TrainingJob
from planner.units import format_duration

COUNTED = ("devices", "shapes")  # units of the limits that are lifted
LIFTED = 1_000_000  # devices or shapes: more than any search tries
PATIENCE_S = 100 * 12 * 730 * 3600.0  # the longest deadline that a scenario may state
COMPLETE = 64  # shapes up to which every number is tried: `candidates.counts`
STRUCTURE = "~"  # rows of such names define the plan and are no limits: `candidates.timetable_rows`
SHORT = 1e-9  # share of a period by which a start may miss its window: `candidates.grid`
FloatArray = NDArray[np.float64]
Search = Callable[..., Candidates]  # search(scenario, patience_s=None) with the catalog and the models at hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The lifted search and the program with movable limits; `kept` are its columns among all that were found."""

    candidates: Candidates
    limited: Limited
    kept: IntArray

    def covers(self, scenario: Scenario) -> bool:
        """Whether a search of the scenario with limits moved tries no number of shapes that is missing here."""
        if scenario.objective[0] == "time" or scenario.mixes:
            return False
        grid = {*range(COMPLETE + 1), *count_grid(LARGEST_JOB)}
        jobs = {job.name: job for job in scenario.training}
        return all(tried in grid for name, job in jobs.items() for tried in self._beside_the_grid(scenario, name, job))

    def _beside_the_grid(self, scenario: Scenario, name: str, job: TrainingJob) -> Iterator[int]:
        question = self.candidates.questions[name]
        assert isinstance(question, TrainingQuestion)
        of_site: dict[tuple[object, ...], float] = {}
        for site in {site.offer.id: site for site in self.candidates.tables[name].sites}.values():
            if site.physics not in of_site:
                of_site[site.physics] = single_device(question, site)[0] / site.shape.devices
            margin = question.band(site).time_margin(min(question.confidences))
            yield max(1, math.ceil(of_site[site.physics] * margin / job.deadline_s - 1e-9))
            yield shape_cap(scenario, site)

    def small(self, units: IntArray) -> bool:
        """Whether a plan runs every job on no more devices than any search tries, however much time there is."""
        whole, rows = self.candidates.whole, self.candidates.whole_rows
        used = self.kept[np.flatnonzero(units)]
        for task in whole.tasks:
            if task.kind != "training":
                continue
            table = self.candidates.tables[task.name]
            for row in rows[used[(used >= task.first) & (used < task.stop)]].tolist():
                if int(table.nodes[row]) * table.sites[row].shape.devices > SMALLEST_WINDOW:
                    return False
        return True

    @property
    def empty(self) -> tuple[str, ...]:
        """Workloads that nothing can run, whatever the limits."""
        return tuple(t.name for t in self.limited.program.tasks if t.kind != "optional" and t.first == t.stop)


def lifted_ways(scenario: Scenario, search: Search) -> Candidates:
    """A search with deadlines, quotas, device limits and owned counts lifted."""
    return search(with_settings(scenario, list(_lifting(scenario))), patience_s=PATIENCE_S)


def relaxed(lifted: Candidates, scenario: Scenario) -> Relaxed:
    """The ways of such a search with the scenario's own limits, as numbers that can be moved.

    Parameters
    ----------
    lifted
        What `lifted_ways` found.
    scenario
        As it states its limits.
    """
    rows = tuple(_restored(lifted.whole.rows, scenario))
    whole = replace(lifted.whole, rows=rows, objective=("cost",))
    found = replace(lifted, scenario=scenario, whole=whole)
    needs = tuple(_deadlines(found))
    kept = prune(replace(whole, rows=(*_always(rows), *(_as_row(one) for one in needs))))
    program = restrict(whole, np.isin(np.arange(whole.column_count), kept))[0]
    at_once = found.whole_calendar is None
    limited = Limited(
        program=program,
        filters=tuple(replace(one, need=one.need[kept]) for one in needs),
        fixed=frozenset(limit_of(row) for row in rows if row.name.startswith(STRUCTURE)),
        steps=dict(_steps(scenario)) if at_once else {},
        rows_at=_rows_at(scenario, program) if at_once and len(scenario.training) > 1 else None,
    )
    return Relaxed(candidates=found, limited=limited, kept=kept)


def _lifting(scenario: Scenario) -> Iterator[str]:
    """Settings that put every limit out of the way that shapes the search, and ask for cost first."""
    for one in stated_limits(scenario):
        if one.unit in COUNTED:
            yield one.setting(LIFTED)
    # where carbon is weighed, offers of unknown grids are no ways, whatever is lifted
    yield "objective=" + ("[cost, carbon]" if "carbon" in scenario.objective else "cost")


def _restored(rows: Sequence[Row], scenario: Scenario) -> Iterator[Row]:
    """Rows of the lifted search with the scenario's own bounds.

    Owned hardware that is not there in a period stays away however much of it there is at other times.
    """
    values = {(one.name, one.unit): one.value for one in stated_limits(scenario) if one.unit in COUNTED}
    lifted = {name for name, _ in values}
    for row in rows:
        name = limit_of(row)
        if name in lifted and row.bound == LIFTED:
            value = values[name, _unit(row, values)]
            yield replace(row, bound=value, label=row.label.replace(str(LIFTED), str(value)))
        else:
            meant = OWNED.fullmatch(name) or name.startswith(DEVICES_OF)
            yield replace(row, name=STRUCTURE + row.name) if meant else row


def _unit(row: Row, values: Mapping[tuple[str, str], int]) -> str:
    """What a limit counts: a quota may have a row for devices and one for shapes."""
    shapes = (limit_of(row), "devices") not in values or (
        (limit_of(row), "shapes") in values and " shapes of " in row.label
    )
    return "shapes" if shapes else "devices"


def _always(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Rows that dominance has to respect whatever their bounds become."""
    return tuple(replace(row, bound=min(row.bound, 0)) for row in rows)


def _as_row(one: Filter) -> Row:
    columns = np.flatnonzero(one.need)
    return Row(name=one.name, label=one.label, bound=0, columns=columns, coefficients=one.need[columns])


def _deadlines(candidates: Candidates) -> Iterator[Filter]:
    """Deadlines as filters on the columns of all that was found."""
    tasks = {task.name: task for task in candidates.whole.tasks}
    for index, job in enumerate(candidates.scenario.training):
        takes = np.zeros(candidates.whole.column_count)
        task = tasks[job.name]
        takes[task.first : task.stop] = _takes_s(candidates, task, job)
        calendar = candidates.whole_calendar
        for column, bought in enumerate(calendar.purchases if calendar else ()):
            if calendar is not None and bought is not None and bought.kind == RUN and bought.workload == job.name:
                takes[column] = float(calendar.edges_s()[calendar.stop[column]]) - job.start_s
        yield _filter(f"training[{index}].deadline", job.deadline_s, takes)


def _filter(name: str, deadline_s: float, takes: FloatArray) -> Filter:
    """Whole seconds that each column takes; those on time, however the deadline falls, count as no more."""
    bound = math.floor(deadline_s)
    whole = np.ceil(np.where(np.isfinite(takes), takes, 2.0 * PATIENCE_S)).astype(np.int64)
    need = np.where(takes <= deadline_s, np.minimum(whole, bound), np.maximum(whole, bound + 1))
    return Filter(name=name, label=format_duration(deadline_s), bound=bound, need=np.maximum(need, 0))


def _takes_s(candidates: Candidates, task: Task, job: TrainingJob) -> FloatArray:
    """Time from the start of the job to the end of each of its columns at the confidence asked for.  [s]

    With a calendar from the start period of the column on, the wait in a queue included; a job that may pause is as
    late as the last period that it runs in, which is bought apart.
    """
    questions, tables = {task.name: candidates.questions[task.name]}, {task.name: candidates.tables[task.name]}
    hold: FloatArray = hold_times(candidates.scenario, questions, tables)["hold_s"]
    takes = hold[candidates.whole_rows[task.first : task.stop]]
    calendar = candidates.whole_calendar
    if calendar is None:
        return takes
    part = slice(task.first, task.stop)
    begun = calendar.edges_s()[calendar.start[part]] - job.start_s - SHORT * calendar.period_s
    return np.where(calendar.pausable[part], 0.0, begun + takes)


def _steps(scenario: Scenario) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Seconds more of a deadline from which on its job may run beside others that start later."""
    for index, job in enumerate(scenario.training):
        end_s = job.start_s + job.deadline_s
        later = sorted({other.start_s for other in scenario.training if other.start_s >= end_s})
        if later:
            bound = job.start_s + math.floor(job.deadline_s)
            yield f"training[{index}].deadline", tuple(math.floor(start - bound) + 1 for start in later)


def _rows_at(scenario: Scenario, program: Program) -> Callable[[More], tuple[Row, ...]]:
    """The rows with windows of other deadlines; a deadline left out keeps the window that it has."""
    merged = _merged(program)
    known: dict[tuple[float, ...], tuple[Row, ...]] = {}

    def rows_at(more: More) -> tuple[Row, ...]:
        windows = [
            Window(start_s=job.start_s, end_s=job.start_s + job.deadline_s + (more.get(f"training[{i}].deadline") or 0))
            for i, job in enumerate(scenario.training)
        ]
        lasting = len(program.tasks) - len(scenario.training)  # fleets, and nodes that they share
        windows += [Window(start_s=0.0, end_s=scenario.horizon_s)] * lasting
        key = tuple(window.end_s for window in windows)
        if key not in known:
            known[key] = tuple(_of_cliques(program, merged, concurrent_sets(windows)))
        return known[key]

    return rows_at


def _merged(program: Program) -> list[tuple[Row, bool]]:
    """Every limit once over the columns of all tasks, and whether it holds at each moment by itself."""
    limits: dict[tuple[str, str], tuple[Row, bool]] = {}
    for row in program.rows:
        key = (limit_of(row), row.label)
        first = limits.get(key)
        columns = row.columns if first is None else np.concatenate([first[0].columns, row.columns])
        values = row.coefficients if first is None else np.concatenate([first[0].coefficients, row.coefficients])
        columns, places = np.unique(columns, return_index=True)
        one = replace(row, name=limit_of(row), columns=columns, coefficients=values[places])
        limits[key] = (one, "@" in row.name or _at_each_moment(row))
    return list(limits.values())


def _at_each_moment(row: Row) -> bool:
    return limit_of(row) not in ("limits.budget", "limits.carbon") and not limit_of(row).endswith(".carbon")


def _of_cliques(program: Program, merged: list[tuple[Row, bool]], cliques: list[frozenset[int]]) -> Iterator[Row]:
    task_of = np.zeros(program.column_count, dtype=np.int64)
    for number, task in enumerate(program.tasks):
        task_of[task.first : task.stop] = number
    for row, each_moment in merged:
        if not each_moment or len(cliques) == 1:
            yield row
            continue
        for number, clique in enumerate(cliques):
            inside = np.isin(task_of[row.columns], sorted(clique))
            if inside.any():
                yield replace(
                    row,
                    name=f"{row.name}@{number}",
                    columns=row.columns[inside],
                    coefficients=row.coefficients[inside],
                )
