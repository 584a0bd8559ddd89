"""What prices of limits leave open when units are whole: ways of jobs that share limits, and the share on spot.

At the prices of a certificate every plan below a value uses, of each job, only columns whose weights exceed the least
of that job by at most what the bound is short of the value. These are few. All their choices are tried, each job's in
turn, with the joint limits as they are; a choice that breaks one is no plan. What is left is bounded by its weights,
and by its own cost beside the least of everything else. So the tree of branches stands in no file: who checks walks it.
The share of a fleet's rate that may stand on spot is a limit whose bound is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, Program, Task, decimal_share, fleet_rates

MOST_CHOICES = 50_000  # that are tried
MOST_JOBS = 12  # of all workloads together


class Open(NamedTuple):
    """What is open: jobs that are chosen for, in thousandths of the criterion's unit."""

    tasks: tuple[Task, ...]
    rest: int  # the least of everything else at the prices, less what limits are worth
    plain: int  # the least of everything else without prices


def open_jobs(program: Program) -> tuple[Task, ...]:
    """Workloads whose jobs can be tried one by one."""
    jobs = [task for task in program.tasks if task.kind == "training"]
    return tuple(jobs) if sum(task.count for task in jobs) <= MOST_JOBS else ()


def least_choice(
    program: Program, weights: NDArray[Any], costs: NDArray[Any], upper: Sequence[int], free: Open, upto: int
) -> int:
    """The least that any choice of the jobs comes to, or `upto`; a bound below it after `MOST_CHOICES`.

    Parameters
    ----------
    weights, costs
        Of a unit of each column, with and without what limits charge.
    upper
        Units that there are.
    upto
        Of no interest beyond.
    """
    uses = _uses(program)
    jobs = [task for task in free.tasks for _ in range(task.count)]
    options = {task.name: _options(weights, upper, task) for task in free.tasks}
    if not all(options.values()):
        return upto
    base = free.rest + sum(options[task.name][0][0] for task in jobs)
    jobs.sort(key=lambda task: sum(w - options[task.name][0][0] < upto - base for w, _ in options[task.name]))
    best, tried = upto, 0
    # bound, plain cost, jobs that are placed, place of the last option, units by column, use by row
    stack: list[tuple[int, int, int, int, dict[int, int], dict[int, int]]] = [(base, free.plain, 0, 0, {}, {})]
    while stack:
        bound, paid, placed, last, units, used = stack.pop()
        if bound >= best:
            continue
        if tried > MOST_CHOICES:
            return min([bound, best, *(node[0] for node in stack)])
        if placed == len(jobs):
            best = min(best, max(bound, paid))
            continue
        task = jobs[placed]
        same = placed > 0 and jobs[placed - 1] is task  # jobs of one workload are alike: in one order only
        mine, children = options[task.name], []
        for place in range(last if same else 0, len(mine)):
            weight, column = mine[place]
            above = bound + weight - mine[0][0]
            if above >= best:
                break
            tried += 1
            taken = units.get(column, 0) + 1
            now = _added(program, used, uses.get(column, ()))
            if taken <= upper[column] and now is not None:
                cost = paid + int(costs[column])
                children.append((above, cost, placed + 1, place, {**units, column: taken}, now))
        stack += reversed(children)
    return best


def _options(weights: NDArray[Any], upper: Sequence[int], task: Task) -> list[tuple[int, int]]:
    """Weight and column of each way of a job, the least first."""
    return sorted((int(weights[k]), k) for k in range(task.first, task.stop) if upper[k] > 0)


def _uses(program: Program) -> dict[int, list[tuple[int, int]]]:
    """Row and coefficient of each column, of the limits that nothing supplies."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, row in enumerate(program.rows):
        if len(row.coefficients) and int(np.min(row.coefficients)) >= 0:
            for column, coefficient in zip(row.columns.tolist(), row.coefficients.tolist()):
                found.setdefault(column, []).append((number, coefficient))
    return found


def _added(program: Program, used: Mapping[int, int], more: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """The use of limits with one more job; None when that breaks one."""
    now = dict(used)
    for number, coefficient in more:
        now[number] = now.get(number, 0) + coefficient
        if now[number] > program.rows[number].bound:
            return None
    return now


def beyond_spot_share(program: Program, task: Task) -> NDArray[Any]:
    """What a unit of each column of a fleet adds to its rate on spot beyond its share: at most 0 in any plan, in all.

    Of a rate that is only bounded nothing is added on spot, and all that it may be is taken off elsewhere: what exact
    rates would add is no less. Whole parts of a micro-request/s, so many as the share has below its line.
    """
    share = decimal_share(task.max_spot_share or 0.0)
    part = slice(task.first, task.stop)
    rates, spot = fleet_rates(program, task).astype(object), program.spot[part] > 0
    sure = np.where(program.bounded[part] > 0, 0, rates) if program.bounded.any() else rates
    return np.where(spot, sure * (share.denominator - share.numerator), -rates * share.numerator)


class OffSpot(NamedTuple):
    """What must stand off spot, as a line: what units earn, what any column in use takes, and what is needed."""

    earned: list[int]
    taken: list[int]
    needed: int


def least_off_spot(program: Program, task: Task) -> list[OffSpot]:
    """What units of a fleet that are not on spot carry at least, in parts of a micro-request/s as its share has them.

    The share on spot is of the rate of all units, and that of all is no less than the demand, and what spares may be
    lost of any column in use beside it. So it is where a column carries as much of each kind of requests, or brings of
    all of them at once; where it could be put to those that it is best at, its rate may be less than what it carries.
    Beside a unit on spot, however large, its share stands elsewhere too. Of a rate that is only bounded all counts as
    carried, and nothing as lost or on spot. Each pool has its share, so that a line is of what prefills, or decodes,
    whole requests among it.
    """
    part, demand = slice(task.first, task.stop), task.demands[-1]
    if task.max_spot_share is None or not (task.boxed or _carry_alike(program, task)):
        return []
    share, rates = decimal_share(task.max_spot_share), fleet_rates(program, task).astype(object)
    off, spot, role = share.denominator - share.numerator, program.spot[part] > 0, program.role[part]
    sure = np.where(program.bounded[part] > 0, 0, rates) if program.bounded.any() else rates
    elsewhere, needed = np.where(spot, 0, rates) * share.denominator, sum(demand) * off
    lost = sure * off * task.spare_replicas // np.maximum(program.replicas[part], 1)
    beside = sure * off * share.denominator // max(share.numerator, 1) - needed
    taken = np.where(spot, np.maximum(lost, beside), lost)
    others = (DECODE, PREFILL) if role.any() else (DECODE,)
    sides = [np.where(role == other, 0, (elsewhere, taken)) for other in others]
    return [OffSpot(earned.tolist(), taken.tolist(), needed) for earned, taken in sides]


def _carry_alike(program: Program, task: Task) -> bool:
    """Whether every column of a fleet carries as many requests of one kind as of any other that it can carry."""
    asked = np.array(task.demands[-1]) > 0
    rates = program.capacity_micro_per_s[task.first : task.stop, : len(asked)][:, asked]
    return bool(((rates == 0) | (rates == rates.max(axis=1, initial=0)[:, None])).all())
