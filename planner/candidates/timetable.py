"""From columns that run at once to columns with start periods: the calendar program of optimisation.md 4.4.

The program without a calendar (one column for each way to run a workload) is thinned first: a way that takes no less of
anything, no less time and no less money than another way of the same workload on the same device is not worth starts of
its own. What is left is repeated for every period in which it may start, and joined by what is bought for it
(`purchases`) and by the rows that hold period by period (`timetable_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.candidates.calendar import NO_POOL, Calendar
from planner.candidates.contracts import pool_index
from planner.candidates.grid import Grid, grid_of
from planner.candidates.limits import whole_plan_rows
from planner.candidates.placement import copies_of
from planner.candidates.program import IntArray, Program, Row, Task, restrict
from planner.candidates.prune import can_bind, prune
from planner.candidates.purchases import Bought, bought_of
from planner.candidates.shared_nodes import SharedNodes, node_rows
from planner.candidates.slots import Slots, Starts, Ways
from planner.candidates.timetable_rows import OF_PURCHASES, Limit, calendar_rows, limits_of, site_of
from planner.carriers import dataclass

COUNTS_PURCHASES = (*OF_PURCHASES, "limits.budget")  # rows that what is bought adds to


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """A program; with starts and purchases where a calendar is asked for."""

    program: Program
    rows: IntArray  # (columns,) row in the workload's table; -1 for purchases
    calendar: Calendar | None  # None: everything runs at once
    late: Mapping[str, int]  # ways of each workload that no start leaves in time
    thinned: Mapping[str, int]  # ways of each workload that another one makes pointless
    shared: SharedNodes | None = None  # which columns share nodes


def timetable(ways: Ways) -> Timetable:
    """The calendar program of a scenario."""
    grid = grid_of(ways.scenario)
    pool = np.array([pool_index(fact.site, ways.pools) for fact in ways.facts], dtype=np.int64)
    starts = _starts(ways, grid, pool)
    topping_up = [site_of(one.on_demand, ways.catalog) for one in ways.pools if one.on_demand is not None]
    limits = list(limits_of(ways.scenario, ways.facts, grid, topping_up))
    copies = copies_of(ways.scenario, ways.catalog, ways.facts, ways.program.tasks)
    able = np.flatnonzero((starts.last >= starts.first) | starts.pausing)
    standing = node_rows(ways.shared) if ways.shared is not None else ()
    copied = [
        Row(name="", label="", bound=-1, columns=copy.columns, coefficients=np.ones_like(copy.columns))
        for copy in copies
    ]
    shared = [*_way_rows(ways, grid, starts, limits), *copied]
    kept = able[_worth_a_start(ways, starts, able, pool, [*shared, *standing])]
    slots = _slots(ways, grid, starts, kept, pool, _held_back(ways, shared, pool))
    bought = bought_of(ways.scenario, ways.catalog, grid, ways.pools, slots, copies, ways.program, ways.facts)
    program = _program(ways, grid, slots, bought)
    rows = [*calendar_rows(ways, grid, limits, slots, bought, copies, _whole_rows(ways), program.cost_microusd)]
    nodes = ways.shared.beside(slots.way, len(bought.purchases)) if ways.shared is not None else None
    rows += node_rows(nodes) if nodes is not None else ()
    return Timetable(
        program=replace(program, rows=tuple(rows)),
        rows=np.concatenate([ways.rows[slots.way], np.full(len(bought.purchases), -1, dtype=np.int64)]),
        calendar=_calendar(ways, grid, slots, bought),
        late=_counted(ways.program.tasks, (starts.last < starts.first) & ~starts.pausing),
        thinned=_counted(ways.program.tasks, np.isin(np.arange(len(ways.facts)), np.setdiff1d(able, kept))),
        shared=nodes,
    )


def _starts(ways: Ways, grid: Grid, pool: IntArray) -> Starts:
    """Windows of every way: its start periods, and of an elastic job the periods that it may run in with pauses.

    What changes machines or stands on nodes of fleets runs through. Where a scenario states no periods, what is paid by
    the hour may end after the horizon; contracts end there.
    """
    n = ways.program.column_count
    first, last = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    span, stop, running = (np.full(n, grid.periods, dtype=np.int64) for _ in range(3))
    elastic = np.zeros(n, dtype=bool)
    through = ways.turn_s > 0
    if ways.shared is not None:
        through |= ways.shared.devices > 0
    jobs = {job.name: job for job in ways.scenario.training}
    for task in ways.program.tasks:
        part = slice(task.first, task.stop)
        job = jobs.get(task.name)
        if job is None:
            continue
        end_s, hold = job.start_s + ways.latest_s.get(job.name, job.deadline_s), ways.hold_s[part]
        first[part] = grid.first(job.start_s)
        if job.schedule == "elastic":
            elastic[part], stop[part] = ~through[part], grid.stop_running(hold, ways.restart_s[part], end_s)
            running[part] = grid.running_periods(hold, ways.restart_s[part])
        ends = ways.scenario.periods_s is not None or pool[part] != NO_POOL
        last[part] = grid.last(hold, np.where(ends, min(end_s, grid.horizon_s), end_s))
        span[part] = grid.touched(0, hold)
    return Starts(first=first, last=last, span=span, elastic=elastic, stop=stop, running=running)


def _way_rows(ways: Ways, grid: Grid, starts: Starts, limits: Sequence[Limit]) -> Iterator[Row]:
    """Every limit as if all ran at once: what dominance must compare; those that can never bind are left out.

    Where jobs change machines, what each takes in every period from its start on is compared.
    """
    rows = [
        Row(name=limit.name, label="", bound=int(limit.bounds.min()), columns=np.flatnonzero(values),
            coefficients=values[np.flatnonzero(values)])
        for limit in limits for values in _taken_in_turn(ways, grid, starts, limit)
    ]  # fmt: skip
    for row in (*rows, *_whole_rows(ways)):
        bought = bool(ways.pools) and row.name.startswith(COUNTS_PURCHASES)
        if len(row.columns) and (bought or ways.movable or can_bind(ways.program, row)):
            yield replace(row, bound=-1)


def _taken_in_turn(ways: Ways, grid: Grid, starts: Starts, limit: Limit) -> list[IntArray]:
    """What each way takes of a limit at most, and in each of the periods from its start on, where that differs."""
    if limit.parts is None:
        return [limit.values]
    longest = int(starts.span[ways.turn_s > 0].max(initial=0))
    first, stop = grid.covered(0, ways.turn_s), np.where(ways.turn_s > 0, grid.touched(0, ways.turn_s), 0)
    taken = [limit.values, *(limit.in_turn(period, first, stop) * (period < starts.span) for period in range(longest))]
    return list({one.tobytes(): one for one in taken}.values())


def _whole_rows(ways: Ways) -> list[Row]:
    return list(whole_plan_rows(ways.scenario, ways.facts))


def _worth_a_start(ways: Ways, starts: Starts, able: IntArray, pool: IntArray, shared: Sequence[Row]) -> IntArray:
    """Places in `able` of the ways that no other way of the same workload on the same device makes pointless.

    Those on what is owned stay beside cheaper rented ones: whoever names them asks what they would cost.
    """
    everyone = np.arange(ways.program.column_count)
    periods = grid_of(ways.scenario).periods
    sizes = [("span", starts.span), ("late", periods - starts.last)]
    if starts.elastic.any():  # with pauses some ways may still end in a period that the deadline cuts, others may not
        jobs = {job.name for job in ways.scenario.training if job.schedule == "elastic"}
        never = np.zeros(len(everyone), dtype=np.int64)
        for task in ways.program.tasks:
            never[task.first : task.stop] = (periods + 1) * (task.name in jobs)
        sizes += [("running", np.where(starts.pausing, starts.running, never))]
        sizes += [("late with pauses", np.where(starts.pausing, periods - starts.stop, never))]
    sizes += [(str(number), np.where(pool == number, ways.program.nodes, 0)) for number in range(len(ways.pools))]
    if ways.latest_s:  # deadlines will be moved: to the second
        sizes.append(("hold", np.ceil(np.where(np.isfinite(ways.hold_s), ways.hold_s, 0.0)).astype(np.int64)))
    rows = [Row(name=name, label="", bound=-1, columns=everyone, coefficients=size) for name, size in sizes]
    devices = np.unique([fact.site.device.id for fact in ways.facts], return_inverse=True)[1]
    mask = np.zeros(len(everyone), dtype=bool)
    mask[able] = True
    small, _ = restrict(replace(ways.program, rows=(*shared, *rows)), mask)
    kept = prune(small, within=devices[able].astype(np.int64))
    owned = np.array([-1 if fact.site.owned is None else fact.site.owned for fact in ways.facts], dtype=np.int64)[able]
    if (owned < 0).all():
        return kept
    groups = np.unique(np.stack([devices[able], owned]), axis=1, return_inverse=True)[1].reshape(-1)
    alone = prune(small, within=groups.astype(np.int64))
    return np.union1d(kept, alone[owned[alone] >= 0])


def _held_back(ways: Ways, shared: Sequence[Row], pool: IntArray) -> NDArray[np.bool_]:
    """Ways for which it matters when they start: something is shared with others, or an order is asked for.

    Devices of nodes that fleets share are held all the time.
    """
    moved: NDArray[np.bool_] = np.asarray((pool != NO_POOL) & (ways.program.nodes > 0))
    for row in shared:
        moved[row.columns] = True
    ordered = {name for job in ways.scenario.training if job.after for name in (job.name, *job.after)}
    for task in ways.program.tasks:
        if task.name in ordered:
            moved[task.first : task.stop] = True
    return moved


def _slots(ways: Ways, grid: Grid, starts: Starts, kept: IntArray, pool: IntArray, moved: NDArray[np.bool_]) -> Slots:
    """Every way that is kept, once for each start that may matter, and once with pauses where these may."""
    through = np.maximum(starts.last[kept] - starts.first[kept] + 1, 0)
    through = np.where(moved[kept], through, np.minimum(through, 1))
    paused = starts.pausing[kept] & (moved[kept] | (through == 0))  # alone a job runs through
    counts = through + paused
    way = np.repeat(kept, counts)
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    number = np.arange(len(way)) - np.repeat(begins[:-1], counts)
    elastic = np.repeat(paused, counts) & (number == np.repeat(through, counts))
    start = starts.first[way] + np.where(elastic, 0, number)
    span = np.where(elastic, starts.running[way], starts.span[way])
    stop = np.where(elastic, starts.stop[way], np.minimum(start + span, grid.periods))
    edges = np.searchsorted(way, [task.first for task in ways.program.tasks])
    ends = np.searchsorted(way, [task.stop for task in ways.program.tasks])
    return Slots(
        way=way,
        start=start,
        stop=stop,
        span=span,
        elastic=elastic,
        pool=pool[way],
        tasks=tuple(
            replace(task, first=int(first), stop=int(end)) for task, first, end in zip(ways.program.tasks, edges, ends)
        ),
    )


def _program(ways: Ways, grid: Grid, slots: Slots, bought: Bought) -> Program:
    """The columns of the calendar program, still without rows."""
    old, way, more = ways.program, slots.way, len(bought.purchases)
    offers = [" + ".join(part.site.offer.id for part in fact.parts) for fact in ways.facts]
    names = sorted({*offers, *bought.names})
    rank = {name: index for index, name in enumerate(names)}
    providers = sorted({fact.site.offer.provider for fact in ways.facts} | set(bought.providers))
    place = {name: index for index, name in enumerate(providers)}

    def padded(values: NDArray[np.int64]) -> IntArray:
        return np.concatenate([values[way], np.zeros((more, *values.shape[1:]), dtype=np.int64)])

    starts_s = {job.name: job.start_s for job in ways.scenario.training}
    begun = np.zeros(len(way))
    for task in slots.tasks:
        if task.kind == "training":
            part = slice(task.first, task.stop)
            begun[part] = grid.start_s(slots.start[part]) - starts_s[task.name] + ways.wait_s[way[part]]
    return Program(
        tasks=(*slots.tasks, *bought.tasks(len(way))),
        cost_microusd=np.concatenate([old.cost_microusd[way], bought.cost_microusd]),
        finish_s=np.concatenate([old.finish_s[way] + begun, bought.finish_s]),
        carbon_mg=padded(old.carbon_mg),
        nodes=padded(old.nodes),
        replicas=padded(old.replicas),
        capacity_micro_per_s=padded(old.capacity_micro_per_s),
        max_units=np.concatenate([old.max_units[way], bought.max_units]),
        provider=np.array([place[ways.facts[k].site.offer.provider] for k in way.tolist()]
                          + [place[name] for name in bought.providers], dtype=np.int64),
        offer=np.array([rank[offers[k]] for k in way.tolist()]
                       + [rank[name] for name in bought.names], dtype=np.int64),
        max_providers=old.max_providers,
        objective=old.objective,
        role=padded(old.role),
        place=padded(old.place),
        level=padded(old.level),
        spot=padded(old.spot),
        domain=padded(old.domain),
        devices=padded(old.devices),
        delay_ms=np.concatenate([np.zeros(len(way), dtype=np.int64), bought.delay_ms]),
        pipelined=padded(old.pipelined),
        plain=padded(old.plain),
        undated=padded(old.undated),
        bounded=padded(old.bounded),
        tie_share=old.tie_share,
        most_tie_microusd=old.most_tie_microusd,
    )  # fmt: skip


def _calendar(ways: Ways, grid: Grid, slots: Slots, bought: Bought) -> Calendar:
    nothing = (None,) * len(slots.way)
    return Calendar(
        period_s=grid.period_s,
        periods=grid.periods,
        horizon_s=grid.horizon_s,
        start=np.concatenate([slots.start, bought.start]),
        stop=np.concatenate([slots.stop, bought.stop]),
        pool=np.concatenate([slots.pool, bought.pool]),
        pausable=np.concatenate([slots.elastic, np.zeros(len(bought.purchases), dtype=bool)]),
        pools=ways.pools,
        purchases=(*nothing, *bought.purchases),
    )


def _counted(tasks: Sequence[Task], mask: NDArray[np.bool_]) -> dict[str, int]:
    return {task.name: int(mask[task.first : task.stop].sum()) for task in tasks}
