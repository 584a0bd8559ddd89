"""What units of columns weigh at the prices of a certificate, and the least that meets one workload alone.

Whole numbers throughout: thousandths of the criterion's unit. What is proven of all workloads together rests on it
(`planner.plan.certificate`, `planner.plan.branches`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task, earnings
from planner.plan.cover import MOST_STEPS, UNMET, Cover, least_cover, least_of_job, lightest_first
from planner.plan.spot_share import beyond_spot_share, least_off_spot

if TYPE_CHECKING:
    from planner.plan.model.others import FleetPrices, Prices, RequestPrices, Selection

STEPS = 1000  # prices of limits are whole thousandths of the criterion's unit
CRITERIA = ("cost", "carbon", "limits")  # limits: nothing is weighed, prices show that nothing meets them
Units = NDArray[np.int64]


class CertificateError(ValueError):
    """Prices that do not fit the program."""


def priced_weights(program: Program, certificate: Selection) -> NDArray[Any]:
    """Thousandths of the criterion's unit, of one unit of each column, with what it uses of the limits."""
    criterion = certificate["criterion"]
    if criterion not in CRITERIA:
        raise CertificateError(f"no bound is known for {criterion!r}")
    values = {"cost": program.cost_microusd, "carbon": program.carbon_mg, "limits": 0 * program.cost_microusd}
    weights = values[criterion].astype(object) * STEPS  # whole numbers of any size
    for number, price in row_prices(program, certificate):
        row = program.rows[number]
        np.add.at(weights, row.columns, row.coefficients.astype(object) * price)
    for entry in certificate.get("spots", []):
        task = next((one for one in program.tasks if one.name == entry["workload"]), None)
        if task is None or task.max_spot_share is None or not _whole(entry["price"]):
            raise CertificateError(f"the price of spot for {entry['workload']!r} is {entry['price']!r}")
        weights[task.first : task.stop] += entry["price"] * beyond_spot_share(program, task)
    return weights


def row_prices(program: Program, certificate: Prices) -> Iterator[tuple[int, int]]:
    """Number and price of each joint limit that has one."""
    for entry in certificate["rows"]:
        number, price = entry["number"], entry["price"]
        known = _whole(number) and number < len(program.rows)
        if not known or program.rows[number].name != entry["name"]:
            raise CertificateError(f"there is no limit {number} called {entry['name']!r}")
        if not _whole(price):
            raise CertificateError(f"the price of {entry['name']} is {price!r}")
        yield number, price


def _whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


class Part(NamedTuple):
    """Lines of a fleet that are met together, and for which part of the weights."""

    share: int
    lines: tuple[Sequence[RequestPrices], ...]


def parts_of(requests: Sequence[FleetPrices], task: Task) -> list[Part]:
    """The parts of one fleet."""
    parts = [Part(entry["share"], tuple(entry["lines"])) for entry in requests if entry["workload"] == task.name]
    if not all(_whole(part.share) for part in parts):
        raise CertificateError(f"the shares of {task.name} are no whole numbers")
    return parts


class Least(NamedTuple):
    """The least weight of a task, and units by column of a least cover of its lines; None where they are not known."""

    weight: int
    units: dict[int, int] | None
    steps: int = 0  # that the search for it took


def least_of_task(
    program: Program,
    task: Task,
    weights: NDArray[Any],
    upper: Units,
    parts: Sequence[Part],
    *,
    mixed: int | None = None,
    steps: int = MOST_STEPS,
    lower: Units | None = None,
) -> Least:
    """The least weight of any way to meet a task alone; a bound below it where that takes too long.

    Parameters
    ----------
    weights
        (columns,) of a unit of each column of the program.
    upper
        (columns,) units that there are.
    parts
        Of a fleet, lines that its units meet.
    mixed
        Of a job: no way that is not among the columns weighs less; None: the columns are all.
    steps
        That each search for the least of a fleet may take.
    lower
        (columns,) units that there are at least; None: none.

    Returns
    -------
    `UNMET` where nothing meets it.
    """
    part = slice(task.first, task.stop)
    here, most = weights[part].tolist(), upper[part].tolist()
    least = [0] * len(most) if lower is None else lower[part].tolist()
    if any(one > other for one, other in zip(least, most)):
        return Least(UNMET, None)
    if task.kind == "training":
        found = least_of_job(lightest_first(here), most, task.count, mixed, lower=least)
        return Least(found.bound, found.units and {task.first + k: count for k, count in found.units.items()})
    if task.kind == "optional":
        taken = {k: amount for k, (w, *some) in enumerate(zip(here, least, most)) if (amount := some[w < 0])}
        return Least(sum(here[k] * n for k, n in taken.items()), {task.first + k: n for k, n in taken.items()})
    gained: int = sum(weight * amount for weight, amount in zip(here, most) if weight < 0)
    paid = [max(weight, 0) for weight in here]
    fleet = _least_fleet(program, task, paid, (least, most), parts, steps)
    if task.min_replicas:
        level = program.level[part].tolist()
        replicas = [int(r) if m == 0 else 0 for r, m in zip(program.replicas[part], level)]
        none = [0] * len(paid)
        alone = _cover(paid, (least, most), [replicas], [task.min_replicas], [none], (none, 0), MOST_STEPS)
        fleet = fleet if fleet.weight >= alone.bound else fleet._replace(weight=alone.bound)
    return fleet._replace(weight=gained + fleet.weight if fleet.weight < UNMET else UNMET)


def _least_fleet(
    program: Program,
    task: Task,
    weights: Sequence[int],
    units: tuple[Sequence[int], Sequence[int]],
    parts: Sequence[Part],
    steps: int,
) -> Least:
    """Of units between two numbers of each column."""
    if not weights:
        return Least(UNMET, None)
    lines = [[line_of(program, task, entries) for entries in part.lines] for part in parts]
    every = (True,) * len(parts)  # for what earns nothing, but is a replica
    none = [0] * len(weights)
    by_part = [[any(each) for each in zip(none, *(earned for earned, _ in part))] for part in lines]
    earns = [mine if any(mine) else every for mine in zip(*by_part)] if parts else [()] * len(weights)
    shares = [sum(part.share for part, any_ in zip(parts, mine) if any_) for mine in earns]
    replicas = [max(int(each), 1) for each in program.replicas[task.first : task.stop]]
    counted = np.where(program.level[task.first : task.stop] == 0, program.replicas[task.first : task.stop], 0)
    off_spot = least_off_spot(program, task)
    total, taken, found_units = 0, 0, dict[int, int]()
    for number, (part, mine) in enumerate(zip(parts, lines)):
        own = [
            weight * part.share // shares[k] if earns[k][number] and shares[k] else 0
            for k, weight in enumerate(weights)
        ]
        earned = [*(one for one, _ in mine), counted.tolist(), *(line.earned for line in off_spot)]
        needs = [*(need for _, need in mine), task.min_replicas, *(line.needed for line in off_spot)]
        before_loss = [none, *(line.taken for line in off_spot)]
        found = _cover(own, units, earned, needs, before_loss, (replicas, task.spare_replicas), steps)
        if found.bound >= UNMET:
            return Least(UNMET, None)
        total, taken = total + found.bound, taken + found.steps
        for k, count in (found.units or {}).items():
            found_units[task.first + k] = max(found_units.get(task.first + k, 0), count)
    return Least(total, found_units, taken)


def _cover(
    weights: Sequence[int],
    units: tuple[Sequence[int], Sequence[int]],
    earned: Sequence[Sequence[int]],
    needs: Sequence[int],
    before_loss: Sequence[Sequence[int]],
    loss: tuple[Sequence[int], int],
    steps: int,
) -> Cover:
    """The least cover with at least and at most so many units of each column; `loss`: replicas of one, and spares.

    What is there anyway earns, and takes what its loss takes: the rest covers what is left of each line, of which a
    column that would take more by being in use takes only what is beyond that.
    """
    lower, upper = units
    replicas, spare = loss
    if not any(lower):
        return least_cover(
            weights, upper, earned, needs, replicas=replicas, spare=spare, taken=before_loss, steps=steps
        )
    scale, own = math.lcm(*set(replicas)) if spare else 1, len(needs) - len(before_loss)
    losses = [[spare * each * (scale // r) if spare else 0 for each, r in zip(line, replicas)] for line in earned[:own]]
    losses += [[scale * each for each in line] for line in before_loss]
    left, beyond = list[int](), list[list[int]]()
    for line, need, lost in zip(earned, needs, losses):
        taken = max((each for each, there in zip(lost, lower) if there), default=0)
        there = sum(each * count for each, count in zip(line, lower))
        left.append(max(scale * (need - there) + taken, 0) if need > 0 else 0)
        beyond.append([max(each - taken, 0) for each in lost])
    scaled = [[scale * each for each in line] for line in earned]
    found = least_cover(weights, [most - least for least, most in zip(*units)], scaled, left, taken=beyond, steps=steps)
    if found.bound >= UNMET:
        return found
    paid = sum(weight * count for weight, count in zip(weights, lower))
    counts = {k: count for k, count in enumerate(lower) if count}
    if found.units is not None:
        for k, count in found.units.items():
            counts[k] = counts.get(k, 0) + count
    return Cover(paid + found.bound, None if found.units is None else counts, found.steps)


def line_of(program: Program, task: Task, entries: Sequence[RequestPrices]) -> tuple[list[int], int]:
    """What one unit of each column earns at most on one line, and what the demand is worth.

    Parameters
    ----------
    program
        Whose columns earn.
    task
        A fleet of the program.
    entries
        Prices of its requests at several levels of load, added up to one line.

    Raises
    ------
    CertificateError
        A price is negative, or the prices fit no demand of the fleet: another level, or other buckets.
    """
    earned, need = np.zeros(task.stop - task.first, dtype=object), 0
    part = slice(task.first, task.stop)
    for entry in entries:
        level, prefill, decode = entry["level"], entry["prefill"], entry["decode"]
        demand = task.demands[level] if _whole(level) and level < len(task.demands) else ()
        if not len(demand) == len(prefill) == len(decode) or not all(map(_whole, (*prefill, *decode))):
            raise CertificateError(f"the prices of {task.name} at level {level} fit no demand of it")
        both = [p + q for p, q in zip(prefill, decode)]
        rates = program.capacity_micro_per_s[part, : len(demand)].astype(object)
        for role, prices in ((WHOLE, both), (PREFILL, prefill), (DECODE, decode)):
            runs = (program.level[part] <= level) & (program.role[part] == role)
            if runs.any():
                earned[runs] = earned[runs] + earnings(task, rates[runs], prices)
        need += sum(price * rate for price, rate in zip(both, demand))
    return [int(each) for each in earned], int(need)
