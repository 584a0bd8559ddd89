"""Why this plan: what binds each workload, and what the other devices would have cost."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from planner.candidates.blended import endless
from planner.candidates.calendar import RESERVED
from planner.candidates.counts import single_device
from planner.candidates.holding import hold_times
from planner.candidates.offers import Numbered, Site
from planner.candidates.program import Task
from planner.candidates.search import Candidates
from planner.candidates.serving import ServingQuestion, ServingTable
from planner.candidates.training import TrainingTable
from planner.candidates.training_question import TrainingQuestion
from planner.estimate.serving_fleet import ROLES
from planner.optimize.solve import Solution
from planner.plan.notes.workloads import run_reasons
from planner.plan.rows.bands import tie
from planner.plan.rows.calendar import owned_periods
from planner.plan.rows.limits import binds, limit_rows
from planner.plan.rows.parted import mixed_reasons, switched_reasons
from planner.plan.rows.pools import on_demand_price
from planner.plan.rows.row_cells import split_document, usd
from planner.scenario.periods import first_period
from planner.units import counted, format_duration, format_money, format_number, format_percent, format_percentile

if TYPE_CHECKING:
    from planner.plan.model.fleet import Point, ServingAllocation, ServingLayout
    from planner.plan.model.plan import Allocation, Alternative
    from planner.plan.model.rows import TrainingAllocation

MOST_ALTERNATIVES = 8
MOST_IN_HASTE = 40  # of all workloads together, once the time is up
IN_HASTE = "for lack of time only the cheapest of the ways on other devices are told"


def alternatives_of(candidates: Candidates, task: Task, allocations: Sequence[Allocation] = ()) -> list[Alternative]:
    """The cheapest way on each device for this workload alone, cheapest first; ties with what is chosen marked.

    Not of devices on which only a bound of that is known.

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    allocations
        Rows chosen for it, which ties are told against; empty: no ties are told.
    """
    best, table = cheapest_by_device(candidates, task), candidates.tables[task.name]
    ranked = sorted((cost, device, row) for device, (cost, row) in best.items() if not _unsure(table, row))
    return [_alternative(candidates, task, cost, row, allocations) for cost, _, row in ranked]


def on_sure_units(candidates: Candidates, over: Callable[[], bool] = endless) -> Candidates:
    """Candidates whose cheapest way is known, not only bounded, on as many devices as are told of, in time."""
    tables = dict(candidates.tables)
    for name, table in tables.items():
        question = candidates.questions[name]
        if isinstance(table, ServingTable) and isinstance(question, ServingQuestion) and table.blended:
            tables[name] = table.surveyed(question, MOST_ALTERNATIVES + 1, over)
    return replace(candidates, tables=tables)


def _unsure(table: TrainingTable | ServingTable, row: int) -> bool:
    return isinstance(table, ServingTable) and table.bounded(row)


def kinds_of(candidates: Candidates, task: Task) -> int:
    """Kinds of devices that a workload is known to run on alone."""
    table = candidates.tables[task.name]
    return sum(not _unsure(table, row) for _, row in cheapest_by_device(candidates, task).values())


def cheapest_by_device(candidates: Candidates, task: Task) -> dict[str, tuple[int, int]]:
    """Cost and row of the cheapest way on each device."""
    best = cheapest_by(candidates, task, lambda site: site.device.id)
    return {device: (way.cost_microusd, way.row) for device, way in best.items()}


class Cheapest(NamedTuple):
    """The cheapest way of a workload among some, alone."""

    cost_microusd: int
    row: int
    shapes: int
    unsure: bool  # its rates are only known not to be higher


def cheapest_by(
    candidates: Candidates, task: Task, kind: Callable[[Site], str], among: Container[int] | None = None
) -> dict[str, Cheapest]:
    """The cheapest way of each kind of site.

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    kind
        Name of the kind of a site; of those of one name the cheapest is told.
    among
        Rows of its table that are looked at; None: all.
    """
    table = candidates.tables[task.name]
    rows: Iterable[int] = range(len(table))
    if isinstance(table, ServingTable):
        passing = passing_groups(candidates)
        able = np.flatnonzero(table.needed_units <= table.max_units).tolist()
        rows = [row for row in able if table.sites[row].owned not in passing]
    else:  # neither on several offers nor on a part of a node, which is there for others
        several = {*table.mixes, *table.switches}
        rows = [row for row in rows if row not in several and table.sites[row].whole_devices is None]
    best: dict[str, tuple[int, bool, int]] = {}
    names = Numbered(table.sites).each(kind)
    if isinstance(table, ServingTable):
        costs = [table.alone_cost_microusd(row) for row in range(len(table))]
    else:
        costs = [cost * task.count for cost in table.cost_microusd]
    for row in rows:
        name, cost = names[row], costs[row]
        known = best.get(name)
        if known is not None and cost > known[0]:
            continue
        if among is not None and row not in among:
            continue
        if _too_many(candidates, task, table, row):
            continue
        if table.sites[row].offer.price_model == RESERVED:  # what it costs is the contract's
            continue
        unsure = _unsure(table, row)
        if known is None or (cost, unsure) < known[:2]:
            best[name] = (cost, unsure, row)
    return {
        name: Cheapest(cost, row, int(table.nodes[row]) * _units(task, table, row), unsure)
        for name, (cost, unsure, row) in best.items()
    }


def passing_groups(candidates: Candidates) -> set[int]:
    """Groups of owned machines that are not there for the whole plan: a fleet stands on none of them.

    Parameters
    ----------
    candidates
        With the scenario that says what is owned, and its calendar.
    """
    scenario, calendar = candidates.scenario, candidates.whole_calendar
    if calendar is None:
        return set()
    edges, groups = calendar.edges_s().tolist(), enumerate(scenario.hardware.owned)
    return {index for index, owned in groups if not all(owned_periods(scenario, owned, edges))}


def _too_many(candidates: Candidates, task: Task, table: TrainingTable | ServingTable, row: int) -> bool:
    """Whether jobs alike, all at once, need more shapes than there are; in a calendar one may follow the other."""
    there = table.sites[row].offer.max_shapes
    if there is None or task.count == 1 or isinstance(table, ServingTable) or candidates.whole_calendar is not None:
        return False
    return int(table.nodes[row]) * task.count > there


def rows_with_a_start(candidates: Candidates, task: Task) -> set[int] | None:
    """Rows of a workload that some start leaves on time, owned machines there meanwhile; None without a calendar.

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    """
    if candidates.whole_calendar is None:
        return None
    whole = candidates.whole
    able = np.ones(whole.column_count, dtype=bool)
    for row in whole.rows:
        if row.name.startswith("hardware.owned["):
            able[row.columns[row.coefficients > row.bound]] = False
    mine = next(one for one in whole.tasks if one.name == task.name)
    part = slice(mine.first, mine.stop)
    return set(candidates.whole_rows[part][able[part]].tolist())


def workload_cost(candidates: Candidates, task: Task, row: int) -> int:
    """Cost of running a workload whole on one row of its table.  [micro-USD]

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    row
        Of its table.
    """
    table = candidates.tables[task.name]
    return table.alone_cost_microusd(row) if isinstance(table, ServingTable) else table.cost_microusd[row] * task.count


def _units(task: Task, table: TrainingTable | ServingTable, row: int) -> int:
    return task.count if isinstance(table, TrainingTable) else int(table.needed_units[row])


def _alternative(
    candidates: Candidates, task: Task, cost: int, row: int, allocations: Sequence[Allocation]
) -> Alternative:
    table = candidates.tables[task.name]
    site, units = table.sites[row], _units(task, table, row)
    shapes = int(table.nodes[row]) * units
    if isinstance(table, TrainingTable):
        return {
            "device": site.device.id,
            "offer": site.offer.id,
            "count": shapes,
            "devices": shapes * site.shape.devices,
            "layout": split_document(table.layout, row),
            "cost_microusd": cost,
            "cost_usd": usd(cost),
            "hours": float(table.finish_s[row]) / 3600.0,
            "note": "whole run",
            "tie": _ties(candidates, task, cost, site, allocations),
        }
    return {
        "device": site.device.id,
        "offer": site.offer.id,
        "count": shapes,
        "devices": shapes * site.shape.devices,
        "layout": cast("ServingLayout", table.layout_row(row)),  # its names are those of the row
        "cost_microusd": cost,
        "cost_usd": usd(cost),
        "hours": table.horizon_hours,
        "note": "over the horizon",
        "replicas": int(table.replicas[row]) * units,
        "tie": _ties(candidates, task, cost, site, allocations),
    }


def _ties(candidates: Candidates, task: Task, cost: int, site: Site, allocations: Sequence[Allocation]) -> bool:
    """Whether the errors of both leave open which is cheaper, this way or the one chosen."""
    question = candidates.questions[task.name]
    if not allocations or not isinstance(question, TrainingQuestion):
        return False
    table = candidates.tables[task.name]
    device = max(allocations, key=lambda row: (row["cost_microusd"], row["offer"]))["device"]  # most of the cost
    dearest = next(one for one in table.sites if one.device.id == device)
    whole = usd(sum(row["cost_microusd"] for row in allocations))
    return tie(whole, question.band(dearest), usd(cost), question.band(site))


def because_of(
    candidates: Candidates,
    solution: Solution,
    task: Task,
    allocations: Sequence[Allocation],
    *,
    chosen: Candidates | None = None,
    cheapest: int | None = None,
) -> list[str]:
    """What binds: the deadline, the memory, the peak load, a joint limit; and what comes next.

    Parameters
    ----------
    chosen
        The ways that the plan is made of, where that is not the cheapest one.
    cheapest
        What the workload costs in that.  [micro-USD]
    """
    lines = [*_size_reasons(chosen or candidates, task, allocations), *_reserved_reasons(candidates, allocations)]
    if any(row["reserved_pool"] is not None for row in allocations):
        return lines  # what it costs is not its own to compare
    cost = sum(row["cost_microusd"] for row in allocations)
    lines += _joint_reasons(chosen or candidates, candidates, solution, task, cost if cheapest is None else cheapest)
    lines += _next_device(candidates, task, allocations, cost)
    return lines


def _reserved_reasons(candidates: Candidates, allocations: Sequence[Allocation]) -> list[str]:
    """What rows on contracted nodes would cost by the hour."""
    lines = []
    for row in allocations:
        if row["reserved_pool"] is None:
            continue
        price = on_demand_price(candidates.catalog, row)
        priced = "which nobody rents by the hour there"
        if price is not None:
            rented = format_money(round(row["count"] * price * row["hours"]))
            priced = f"which would cost {rented} on demand"
        nodes = f"{row['count']:,} node{'s' * (row['count'] != 1)}"
        lines.append(f"runs on {nodes} of {row['reserved_pool']}, paid for under contracts, {priced}")
    return list(dict.fromkeys(lines))


def _size_reasons(candidates: Candidates, task: Task, allocations: Sequence[Allocation]) -> list[str]:
    if task.kind == "serving":
        return [_load_reason(candidates, task, row) for row in allocations if "replicas" in row]
    question = candidates.questions[task.name]
    assert isinstance(question, TrainingQuestion)
    rows = [row for row in allocations if "jobs" in row]
    whole = [row for row in rows if "mix" not in row and "switch" not in row]
    counts = [_count_reason(candidates, question, task, row) for row in whole]
    counts += _mix_reasons(candidates, task, rows)
    counts += _switch_reasons(candidates, task, rows)
    return [*counts, *(line for row in rows for line in run_reasons(row))]


def _switch_reasons(candidates: Candidates, task: Task, allocations: Sequence[TrainingAllocation]) -> list[str]:
    """What each switch of a job does where, and the cheapest way on demand alone in that place for as many jobs."""
    switches: dict[str, list[TrainingAllocation]] = {}
    for row in allocations:
        if "switch" in row:
            switches.setdefault(row["switch"]["name"], []).append(row)
    table, lines = candidates.tables[task.name], list[str]()
    assert isinstance(table, TrainingTable)
    for rows in switches.values():
        offers, costs = {row["offer"] for row in rows}, enumerate(table.cost_microusd)
        mine = [cost for k, cost in costs if k not in table.switches and table.sites[k].offer.id in offers]
        lines += switched_reasons(rows, min(mine) * rows[0]["jobs"] if mine else None)
    return lines


def _mix_reasons(candidates: Candidates, task: Task, allocations: Sequence[TrainingAllocation]) -> list[str]:
    """What each mix of a job shares out, and the cheapest single offer for as many jobs."""
    mixes: dict[str, list[TrainingAllocation]] = {}
    for row in allocations:
        if "mix" in row:
            mixes.setdefault(row["mix"]["name"], []).append(row)
    table = candidates.tables[task.name]
    assert isinstance(table, TrainingTable)
    alone = min((cost for row, cost in enumerate(table.cost_microusd) if row not in table.mixes), default=None)
    return [
        line
        for rows in mixes.values()
        for line in mixed_reasons(rows, None if alone is None else alone * rows[0]["jobs"])
    ]


def _count_reason(candidates: Candidates, question: TrainingQuestion, task: Task, row: TrainingAllocation) -> str:
    """Why not fewer shapes of the chosen offer."""
    table = candidates.tables[task.name]
    shapes = row["count"] // row["jobs"]
    site = next(site for site in table.sites if site.offer.id == row["offer"])
    if "shared" in row:
        done = format_duration(row["hours"] * 3600)
        return f"{row['devices_per_shape']} devices of a node that fleets run on too are enough: done in {done}"
    if shapes == 1:
        return f"one {row['shape']} is enough: done in {format_duration(row['hours'] * 3600)}"
    ideal_s, least_devices = single_device(question, site)
    fewer, band = shapes - 1, row["error_band"]["time"]
    margin = 1.0 if band is None else band["margin"]
    known_s = table.fastest_s.get(site.physics, {}).get(fewer) if isinstance(table, TrainingTable) else None
    fewer_s = known_s or ideal_s / (fewer * site.shape.devices)
    if fewer_s * margin > question.job.deadline_s:
        took = format_duration(fewer_s) + ("" if known_s else " at best")
        percentile = format_percentile(question.spec.confidence)
        at = f", {format_duration(fewer_s * margin)} at {percentile}" if margin > 1 else ""
        deadline = format_duration(question.job.deadline_s)
        return f"{fewer} × {row['shape']} would take {took}{at}; the deadline is {deadline} → {shapes} is the fewest"
    if fewer * site.shape.devices < least_devices:
        return f"the model states need at least {least_devices:.1f} {row['device']}: {shapes} × {row['shape']}"
    alone = [r for r in range(len(table)) if not (isinstance(table, TrainingTable) and r in table.switches)]
    alone = [r for r in alone if table.sites[r].whole_devices is None]
    smaller = [r for r in alone if table.sites[r].offer.id == row["offer"] and table.nodes[r] < shapes]
    there = rows_with_a_start(candidates, task)
    if smaller and there is not None and there.isdisjoint(smaller):
        return f"fewer than {shapes} × {row['shape']} would be late from every period that they can start in"
    smaller = [r for r in smaller if there is None or r in there]
    if smaller:
        least = min(smaller, key=lambda r: workload_cost(candidates, task, r))
        extra = workload_cost(candidates, task, least) - row["cost_microusd"]
        if extra < 0:
            worse = worse_in(candidates, task, least, [row])
            why = f" but {worse}" if worse else "; limits that workloads share, or a plainer layout, leave it out"
            return f"fewer than {shapes} × {row['shape']} would cost {format_money(-extra)} less{why}"
        more = f"cost {format_money(extra)} more" if extra else "finish later at the same cost"
        return f"fewer than {shapes} × {row['shape']} would meet the deadline but {more}"
    return f"no layout on fewer than {shapes} × {row['shape']} both fits the memory and meets the deadline"


def users_told(users: float) -> str:
    """Users, who are whole ones but for shares of one: "728 users"."""
    return counted(round(users), "user") if users >= 1 else f"{format_number(users)} users"


def _load_reason(candidates: Candidates, task: Task, row: ServingAllocation) -> str:
    spare = f" + {row['replicas'] - row['replicas_needed']} spare" if row["replicas"] > row["replicas_needed"] else ""
    needed = row["replicas_needed"]
    one = needed == 1 and not spare
    users = f"{users_told(row['users'])}, " if "users" in row else ""
    carried = (
        f"{needed}{spare} {'replica' if one else 'replicas'} of {row['devices_per_replica']} × {row['device']} "
        f"{'carries' if one else 'carry'} {users}"
        f"{format_number(row['planned_requests_per_s'])} requests/s at peak, {row['load_at_peak']:.0%} of what "
        f"{'it' if one else 'they'} may"
    )
    if row["point"] is None:
        return f"{carried} (limited by {row['binds']})"
    kept = _share_planned(candidates, task, row)
    mixed = "" if kept == 1 else f", planned for {kept:.0%} of their rates since requests are mixed"
    return f"{carried} ({_sized_by(row['point'])}{mixed})"


def _share_planned(candidates: Candidates, task: Task, row: ServingAllocation) -> float:
    """The share of its rates that a row may be planned for: less than 1 where a mix would miss a target."""
    table = candidates.tables[task.name]
    assert isinstance(table, ServingTable)
    mine = (
        float(table.share_kept[place])
        for place, site in enumerate(table.sites)
        if site.offer.id == row["offer"]
        and ROLES[int(table.role[place])] == row["role"]
        and table.layout_row(place) == row["layout"]
    )
    return next(mine, 1.0)


def _sized_by(point: Point) -> str:
    """What stops a replica from carrying more: a target, or the sequences that it may run."""
    target = next((one for one in point["targets"] if one["name"] == point["sized_by"]), None)
    if target is None:
        return f"sized by {point['sized_by'].replace('_', ' ')}: {point['batch_limit']:g} sequences at once"
    held, limit = (format_number(target[name] or 0.0) for name in ("at_confidence_s", "target_s"))
    return f"sized by {target['name']}, {held} s of {limit} s at this load"


def _joint_reasons(chosen: Candidates, listed: Candidates, solution: Solution, task: Task, cost: int) -> list[str]:
    """When a shared limit keeps a workload from its own cheapest way."""
    if listed.scenario.objective[0] != "cost":  # alone it would not take the cheapest way either
        return []
    ways = cheapest_by(listed, task, lambda site: site.device.id, rows_with_a_start(listed, task))
    best = min((way for way in ways.values() if not way.unsure), default=None)
    if best is None or best.cost_microusd >= cost:
        return []
    labels = ", ".join(
        dict.fromkeys(row.name.split("@")[0] for row in limit_rows(chosen, solution) if binds(chosen, row, solution))
    )
    if not labels:
        return []
    site = listed.tables[task.name].sites[best.row]
    alone = f"{best.shapes} × {site.offer.id} at {format_money(best.cost_microusd)}"
    return [f"alone it would take {alone}; shared: {labels}"]


def _next_device(candidates: Candidates, task: Task, allocations: Sequence[Allocation], cost: int) -> list[str]:
    chosen = {row["device"] for row in allocations}
    ways = alternatives_of(candidates, task, allocations)
    others = [other for other in ways if len(chosen) > 1 or other["device"] not in chosen]  # of several one alone, too
    if not others or cost <= 0:
        return []
    other = others[0]
    more = other["cost_microusd"] / cost - 1
    head, tail = f"{other['device']} {'alone ' if other['device'] in chosen else ''}is next", ""
    if more < 0:
        way = cheapest_by_device(candidates, task)[other["device"]]
        head, tail = f"{other['device']} would cost less", f"; {left_out_by(candidates, task, way[1], allocations)}"
    return [
        f"{head}: {other['count']} × {other['offer']} at "
        f"{format_money(other['cost_microusd'])} ({more:+.0%} for this workload alone"
        f"{': a tie within the error bands' if other['tie'] else ''}){tail}"
    ]


def worse_in(candidates: Candidates, task: Task, row: int, chosen: Sequence[Allocation]) -> str:
    """In what a way is worse than the one chosen where something else than the cost comes first; "" where it is not.

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    row
        Of its table.
    chosen
        Rows of the plan for it.
    """
    first, table = candidates.scenario.objective[0], candidates.tables[task.name]
    if first == "time" and isinstance(table, TrainingTable):
        return "finish later" if table.finish_s[row] > 3600.0 * max(one["hours"] for one in chosen) else ""
    if first == "carbon":
        whole = next(one for one in candidates.whole.tasks if one.name == task.name)
        mine = candidates.whole_rows[whole.first : whole.stop] == row
        each_mg = candidates.whole.carbon_mg[whole.first : whole.stop][mine].tolist()
        emitted_mg = 1e6 * sum(one["carbon_kg"] or 0.0 for one in chosen)
        return "emit more" if each_mg and _units(task, table, row) * min(each_mg) > emitted_mg else ""
    return ""


def left_out_by(candidates: Candidates, task: Task, row: int, chosen: Sequence[Allocation]) -> str:
    """Why a plan does not have a way that costs a workload less: limits that it breaks alone, else what may be.

    Parameters
    ----------
    candidates
        The ways.
    task
        The workload in their program.
    row
        Of its table.
    chosen
        Rows of the plan for it.
    """
    worse = worse_in(candidates, task, row, chosen)
    if worse:
        return f"it would {worse}, and {candidates.scenario.objective[0]} comes first"
    whole = candidates.whole
    mine = next(one for one in whole.tasks if one.name == task.name)
    columns = mine.first + np.flatnonzero(candidates.whole_rows[mine.first : mine.stop] == row)
    units = _units(task, candidates.tables[task.name], row)
    broken = [
        {limit.name.split("@")[0] for limit in whole.rows
         if units * limit.coefficients[limit.columns == column].sum() > limit.bound}
        for column in columns.tolist()
    ]  # fmt: skip
    limits = sorted(set.intersection(*broken)) if broken else []
    if (mine.max_spot_share or 1.0) < 1.0 and candidates.tables[task.name].sites[row].spot:
        limits.append(f"max_spot_share ({format_percent(mine.max_spot_share or 0.0)})")
    if limits:
        return f"{' and '.join(limits)} leave{'' if len(limits) > 1 else 's'} it out"
    if _waits_too_long(candidates, task, row):
        return "it would be late from every period that it can start in: shorter ones (periods) begin nearer its start"
    if len(candidates.tables) > 1:
        return "limits that workloads share, or their mix, leave it out"
    return "a plainer layout, or a search that was cut, leaves it out"


def _waits_too_long(candidates: Candidates, task: Task, row: int) -> bool:
    """Whether a way keeps the deadline from the start of its job, and not from the first period after that."""
    question, table, calendar = candidates.questions[task.name], candidates.tables[task.name], candidates.whole_calendar
    if calendar is None or not (isinstance(table, TrainingTable) and isinstance(question, TrainingQuestion)):
        return False
    hold_s = float(hold_times(candidates.scenario, {task.name: question}, {task.name: table})["hold_s"][row])
    waits_s = first_period(question.job.start_s, calendar.period_s) * calendar.period_s - question.job.start_s
    return hold_s <= question.job.deadline_s < waits_s + hold_s
