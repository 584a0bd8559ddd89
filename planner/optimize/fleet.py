"""The lines of one fleet beyond plain capacity: routings, spares, share on spot. See `build`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from planner.candidates.program import (
    DECODE,
    PREFILL,
    WHOLE,
    IntArray,
    Task,
    decimal_share,
    fleet_rates,
)
from planner.optimize.balance import Balanced, balance
from planner.optimize.model import SMALLEST, Flow, Model, Route
from planner.optimize.rows import never, not_above_zero
from planner.optimize.scope import Scope
from planner.optimize.situations import Cut, Situation, cut_of
from planner.optimize.status import FloatArray

COPIES = 3000  # flows up to which the routings after every loss stand in the model from the start
LOSSES, BROKEN = 4, 1e-3  # losses looked at in a fractional point; how much too full that must make it
ROOM = 1e-8  # of a unit, in loads of several buckets: model files keep 12 digits, which a tight fleet would miss


def least(model: Model, scope: Scope, task: Task, place: IntArray) -> None:
    """The least number of replicas, of columns that always run.

    Parameters
    ----------
    model
        Takes the lines; has the units of the columns already.
    scope
        Says which columns of the task are open.
    task
        A serving task of the program.
    place
        (n,) variable of the units of each column of the program; -1 = it has none.
    """
    columns = scope.of_task(task)
    columns = columns[scope.program.level[columns] == 0]
    if task.min_replicas > 0 and len(columns):
        replicas = scope.program.replicas[columns].astype(np.float64)
        model.line("least", place[columns], replicas, low=task.min_replicas)
    elif task.min_replicas > 0:
        never(model, "least")


def spot_shares(model: Model, scope: Scope, task: Task, place: IntArray) -> None:
    """The share on spot, at every level and in every role, where there is anything on spot.

    Parameters
    ----------
    model
        Takes the lines; has the units of the columns already.
    scope
        Says which columns of the task are open.
    task
        A serving task of the program.
    place
        (n,) variable of the units of each column of the program; -1 = it has none.
    """
    if task.max_spot_share is None:
        return
    program, columns, share = scope.program, scope.of_task(task), decimal_share(task.max_spot_share)
    rates = fleet_rates(program, task)
    for level in range(len(task.demands)):
        for role in (WHOLE, PREFILL, DECODE):
            here = columns[(program.level[columns] <= level) & (program.role[columns] == role)]
            weights = [
                int(rates[k - task.first]) * (int(program.spot[k]) * share.denominator - share.numerator) for k in here
            ]
            if any(weight > 0 for weight in weights):
                not_above_zero(model, "spot", place[here], weights)


def routings(model: Model, scope: Scope, task: Task, place: IntArray, *, flows: bool) -> None:
    """With spares what says which types are in use; with `flows` a routing for every level of load.

    Of a boxed task nothing is routed.

    Parameters
    ----------
    model
        Takes the lines, and notes `used`, `routes` and `flows`; has the units of the columns already.
    scope
        Says which columns of the task are open.
    task
        A serving task of the program.
    place
        (n,) variable of the units of each column of the program; -1 = it has none.
    flows
        Whether there are routings; False = lines of prices stand for them.
    """
    program, columns = scope.program, scope.of_task(task)
    if task.spare_replicas:
        for column, flag in zip(columns.tolist(), model.add("w", np.ones(len(columns)), integer=True).tolist()):
            model.used[column] = flag
            model.line("used", [place[column], flag], [1.0, -float(scope.upper[column])], high=0.0)
            replicas = float(program.replicas[column])
            if replicas < task.spare_replicas and not task.boxed:
                model.line("enough", [place[column], flag], [replicas, -float(task.spare_replicas)], low=0.0)
    for level, demand in enumerate(task.demands) if flows and not task.boxed else ():
        running = columns[program.level[columns] <= level]
        _routing(model, scope, task, running, place, level, demand)
        if task.spare_replicas and _few(task):
            for column in running.tolist():
                _routing(model, scope, task, running, place, level, demand, lost=column)


def _routing(
    model: Model,
    scope: Scope,
    task: Task,
    columns: IntArray,
    place: IntArray,
    level: int,
    demand: tuple[int, ...],
    *,
    lost: int = -1,
) -> None:
    """A routing at a level, in slices if asked for; `lost` = any split, once that column lacks its spares."""
    capacity = scope.program.capacity_micro_per_s[columns, : len(demand)]
    role = scope.program.role[columns]
    whole = task.integer_slices > 0 and lost < 0
    slices = task.integer_slices if whole else 1
    loads: dict[int, list[tuple[int, float]]] = {int(column): [] for column in columns}
    for bucket, rate in enumerate(demand):
        able = np.flatnonzero(capacity[:, bucket] > 0)
        if rate <= 0:
            continue
        flows = model.add("f", np.full(len(able), float(slices)), integer=whole)
        parts = [role[able] != DECODE, role[able] != PREFILL] if role.any() else [np.ones(len(able), dtype=bool)]
        for decode, part in enumerate(parts):
            if lost < 0:
                model.routes[model.line_count] = Route(task=task.name, level=level, bucket=bucket, decode=decode > 0)
            if part.any():
                model.line("route", flows[part], np.ones(int(part.sum())), low=float(slices), high=float(slices))
            else:
                never(model, "route")
        for flow, at in zip(flows.tolist(), able.tolist()):
            column = int(columns[at])
            loads[column].append((flow, rate / float(capacity[at, bucket]) / slices))
            if lost < 0:
                model.flows[flow] = Flow(column=column, bucket=bucket, level=level)
    for column, terms in loads.items():
        if terms:
            names, values = [v for v, _ in terms], [c for _, c in terms]
            if column == lost:
                names.append(model.used[column])
                values.append(task.spare_replicas / max(int(scope.program.replicas[column]), 1))
            model.line("load", [*names, int(place[column])], [*values, -1.0], high=ROOM)


def _few(task: Task) -> bool:
    """Whether routings after every loss stand in the model from the start."""
    return (task.stop - task.first) ** 2 * len(task.demand_micro_per_s) * len(task.demands) <= COPIES


def cuts_of_prices(scope: Scope, model: Model, multipliers: FloatArray) -> Iterator[Cut]:
    """Lines that the prices of a relaxation prove: its multipliers of the lines that share out requests.

    Parameters
    ----------
    scope
        Of the model.
    model
        With routings: its `routes` say which lines share out requests.
    multipliers
        Of all lines of the model, (lines,); those below 0 count as 0.
    """
    program = scope.program
    prices = {
        task.name: np.zeros((2, len(task.demands), len(task.demand_micro_per_s)))
        for task in program.tasks
        if task.kind != "training"
    }
    for line, route in model.routes.items():
        prices[route.task][int(route.decode), route.level, route.bucket] = max(float(multipliers[line]), 0.0)
    for task in program.tasks:
        for level, demand in enumerate(task.demands if any(r.task == task.name for r in model.routes.values()) else ()):
            each = prices[task.name][:, level] / np.maximum(np.array(demand), 1)
            found = Balanced(routed=False, prefill=tuple(each[0]), decode=tuple(each[1]))
            # the loss of spares says more than no loss
            lost = task.first if task.spare_replicas else -1
            domains = np.unique(program.domain[task.first : task.stop]).tolist() if task.survive_domain else []
            for domain in (-1, *domains):
                situation = Situation(
                    level=level, demand=demand, lost_column=lost if domain < 0 else -1, lost_domain=domain
                )
                cut = cut_of(program, task, situation, found)
                if cut is not None:
                    yield cut


def cuts_of_point(scope: Scope, model: Model, point: FloatArray) -> Iterator[Cut]:
    """Lines that a fractional point breaks after the losses that weigh most in it.

    Parameters
    ----------
    scope
        Of the model.
    model
        Its `used` say which columns may lose replicas; boxed fleets and those routed after every loss have none.
    point
        Of all variables of the model, (variables,), whole or not.
    """
    program = scope.program
    for task in program.tasks:
        columns = np.array([k for k in scope.of_task(task) if k in model.used], dtype=np.int64)
        if not len(columns) or task.boxed or _few(task):
            continue
        units = point[np.searchsorted(model.columns, columns)]
        lost = (
            point[[model.used[int(k)] for k in columns]]
            * task.spare_replicas
            / np.maximum(program.replicas[columns], 1)
        )
        for level, demand in enumerate(task.demands):
            runs = (program.level[columns] <= level) & (units > 1e-6)
            here, rates = columns[runs], program.capacity_micro_per_s[columns[runs], : len(demand)].astype(np.float64)
            for place in np.argsort(-lost[runs], kind="stable")[:LOSSES]:
                left = units[runs].copy()
                left[place] = max(left[place] - lost[runs][place], 0.0)
                kept = left > 1e-9
                found = balance(
                    rates[kept] * left[kept, None],
                    np.array(demand, dtype=np.float64),
                    program.role[here[kept]],
                    here[kept].tolist(),
                )
                load = float(np.dot(np.add(found.prefill, found.decode), demand)) if found.prefill else 0.0
                if load > 1 + BROKEN or not found.routed:
                    situation = Situation(level=level, demand=demand, lost_column=int(here[place]))
                    cut = cut_of(program, task, situation, found)
                    if cut is not None:
                        yield cut


def learn(model: Model, scope: Scope, cuts: Iterable[Cut]) -> None:
    """Add the lines of cuts to a model.

    Parameters
    ----------
    model
        Takes the lines, and a variable for the dearest loss of each cut with spares.
    scope
        Of the model.
    cuts
        Of tasks of the program; one that no open column earns for is a line that nothing meets.
    """
    place = np.full(scope.program.column_count, -1, dtype=np.int64)
    place[model.columns] = np.arange(len(model.columns))
    for cut in cuts:
        here = [(int(k), earned) for k, earned in zip(cut.columns, cut.earnings) if place[k] >= 0 and earned > 0]
        if not here:
            never(model, "price")
            continue
        largest = max(earned for _, earned in here)
        names = [int(place[k]) for k, _ in here]
        # what is too small to see is made larger, which is on the safe side
        values = [max(earned / largest, SMALLEST) for _, earned in here]
        low = cut.need / largest * (1 - ROOM)
        lost = [
            (model.used[k], cut.spares * earned / (largest * max(int(scope.program.replicas[k]), 1)))
            for k, earned in here
            if cut.spares
        ]
        lost = [(flag, value) for flag, value in lost if value >= SMALLEST]
        if lost:
            (most,) = model.add("z", [max(value for _, value in lost)], integer=False).tolist()
            for flag, value in lost:
                model.line("loss", [most, flag], [1.0, -value], low=0.0)
            names, values = [*names, most], [*values, -1.0]
        model.line("price", names, values, low=low)
