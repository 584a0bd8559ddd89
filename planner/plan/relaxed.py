"""One search with every limit out of the way, and the limits put back as numbers: what repairs are looked for in.

The columns of a scenario depend on its deadlines, quotas and device limits: ways past them are not enumerated.
Here they are enumerated once, with those limits lifted, and each becomes a number again that can be moved without
evaluating any layout anew: quotas, device limits and owned hardware are joint rows with the scenario's own bounds
(a way that alone breaks a quota breaks its row), deadlines are filters on what a column needs, in whole seconds from
the start of the job to its end at the confidence asked for, rounded up.

`exact` says whether the columns under moved limits are those that a search under them would find: it tries every
number of shapes up to `COMPLETE`, beyond it a grid that depends on the limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.candidates.limits import Window, concurrent_sets
from planner.candidates.program import IntArray, Program, Row, Task, restrict
from planner.candidates.prune import prune
from planner.candidates.search import Candidates
from planner.candidates.training_question import TrainingQuestion
from planner.optimize.limited import Filter, Limited, More, limit_of
from planner.plan.settings import QUOTA, Stated, stated_limits
from planner.scenario.load import with_settings
from planner.scenario.schema import Scenario
from planner.units import format_duration

LIFTED = 1_000_000  # devices or shapes: more than any search tries
PATIENCE_S = 100 * 12 * 730 * 3600.0  # the longest deadline that a scenario may state
COMPLETE = 64  # shapes up to which every number is tried: `candidates.counts`
STRUCTURE = ("limits.", "hardware.", "training[")  # rows of other names are no limits of the scenario
Search = Callable[..., Candidates]  # search(scenario, patience_s=None) with the catalog and the models at hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """The lifted search and the program with movable limits; `kept` are its columns among all that were found."""

    candidates: Candidates
    limited: Limited
    kept: IntArray
    exact: bool

    @property
    def empty(self) -> tuple[str, ...]:
        """Workloads that nothing can run, whatever the limits."""
        return tuple(t.name for t in self.limited.program.tasks if t.kind != "optional" and t.first == t.stop)


def relaxed(candidates: Candidates, search: Search) -> Relaxed:
    """Search once more with deadlines, quotas, device limits and owned counts lifted."""
    scenario = candidates.scenario
    lifted = search(with_settings(scenario, list(_lifting(scenario))), patience_s=PATIENCE_S)
    rows = _restored(lifted.whole.rows, candidates.whole.rows, scenario)
    whole = replace(lifted.whole, rows=rows, objective=("cost",))
    needs = _needs(lifted, scenario)
    kept = prune(replace(whole, rows=(*_always(rows), *(_as_row(one) for one in needs))))
    program = restrict(whole, np.isin(np.arange(whole.column_count), kept))[0]
    filters = tuple(replace(one, need=one.need[kept]) for one in needs)
    timed = getattr(lifted, "calendar", None) is None
    limited = Limited(
        program=program,
        filters=filters,
        fixed=frozenset(limit_of(row) for row in program.rows if not limit_of(row).startswith(STRUCTURE)),
        steps=dict(_steps(scenario)) if timed else {},
        rows_at=_rows_at(scenario, program) if timed and len(scenario.training) > 1 else None,
    )
    return Relaxed(candidates=lifted, limited=limited, kept=kept, exact=_complete(lifted, scenario))


def _lifting(scenario: Scenario) -> Iterator[str]:
    """Settings that put every limit out of the way that shapes the search, and ask for cost alone."""
    for one in stated_limits(scenario):
        if one.unit in ("devices", "shapes"):
            yield one.setting(LIFTED)
    yield "objective=cost"


def _restored(rows: tuple[Row, ...], before: tuple[Row, ...], scenario: Scenario) -> tuple[Row, ...]:
    """Rows of the lifted search with the bounds and labels of the scenario."""
    known = {(row.name, _counts(row)): row for row in before}
    stated = {(one.name, one.unit): one for one in stated_limits(scenario)}
    return tuple(_with_bound(row, known.get((row.name, _counts(row))), stated) for row in rows)


def _counts(row: Row) -> str:
    """What a quota counts: one may have a row for devices and one for shapes."""
    return "shapes" if QUOTA.fullmatch(limit_of(row)) and " shapes of " in row.label else ""


def _with_bound(row: Row, before: Row | None, stated: dict[tuple[str, str], Stated]) -> Row:
    if before is not None:
        return replace(row, bound=before.bound, label=before.label)
    one = next((stated[key] for unit in ("devices", "shapes") if (key := (limit_of(row), unit)) in stated), None)
    if one is None or row.bound != LIFTED:
        return row
    return replace(row, bound=one.value, label=row.label.replace(str(LIFTED), str(one.value)))


def _always(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Rows that dominance has to respect whatever their bounds become."""
    return tuple(replace(row, bound=min(row.bound, 0)) for row in rows)


def _as_row(one: Filter) -> Row:
    columns = np.flatnonzero(one.need)
    return Row(name=one.name, label=one.label, bound=0, columns=columns, coefficients=one.need[columns])


def _needs(candidates: Candidates, scenario: Scenario) -> tuple[Filter, ...]:
    """Deadlines as filters on the columns of all that was found."""
    tasks = {task.name: task for task in candidates.whole.tasks}
    return tuple(
        _deadline(candidates, index, tasks[job.name], job.deadline_s) for index, job in enumerate(scenario.training)
    )


def _deadline(candidates: Candidates, index: int, task: Task, deadline_s: float) -> Filter:
    """Whole seconds that each column of a job takes; those on time, however the deadline falls, count as no more."""
    bound = math.floor(deadline_s)
    takes = _needed_s(candidates, task)
    whole = np.ceil(takes).astype(np.int64)
    need = np.zeros(candidates.whole.column_count, dtype=np.int64)
    need[task.first : task.stop] = np.where(takes <= deadline_s, np.minimum(whole, bound), np.maximum(whole, bound + 1))
    return Filter(
        name=f"training[{index}].deadline", label=format_duration(deadline_s), bound=bound, need=np.maximum(need, 0)
    )


def _needed_s(candidates: Candidates, task: Task) -> Any:
    """Time from the start of the job to the end of each column at the confidence asked for.  [s]"""
    question, table = candidates.questions[task.name], candidates.tables[task.name]
    assert isinstance(question, TrainingQuestion)
    rows = candidates.whole_rows[task.first : task.stop]
    margins: dict[str, float] = {}
    for site in table.sites:
        if site.device.id not in margins:
            margins[site.device.id] = question.band(site).time_margin(question.spec.confidence)
    margin = np.array([margins[table.sites[int(row)].device.id] for row in rows])
    return candidates.whole.finish_s[task.first : task.stop] * margin


def _complete(candidates: Candidates, scenario: Scenario) -> bool:
    """Whether every number of shapes that any search would try is there."""
    counts = [int(table.nodes.max(initial=0)) for table in candidates.tables.values()]
    return scenario.objective[0] != "time" and max(counts, default=0) <= COMPLETE


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
        windows += [Window(start_s=0.0, end_s=scenario.horizon_s)] * len(scenario.serving)
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
    return limit_of(row) not in ("limits.budget", "limits.carbon")


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
