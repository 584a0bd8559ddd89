"""What units of columns weigh at the prices of a certificate, and the least that meets one workload alone.

Whole numbers throughout: thousandths of the criterion's unit. What is proven of all workloads together rests on it
(`planner.plan.certificate`, `planner.plan.branches`). A limit on the share of a fleet that may stand on spot has a
bound of 0, and what follows of it is here, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, WHOLE, Program, Task, decimal_share, earnings, fleet_rates
from planner.plan.cover import MOST_STEPS, UNMET, Cover, least_cover, least_of_job, lightest_first

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
        sums = [*_sums_of(program, task, parts[number].lines), *({} for _ in needs[len(mine) :])]
        found = _cover(own, units, earned, needs, before_loss, (replicas, task.spare_replicas), steps, sums)
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
    sums: Sequence[Mapping[int, int]] = (),
) -> Cover:
    """The least cover with at least and at most so many units of each column; `loss`: replicas of one, and spares.

    What is there anyway earns, and takes what its loss takes: the rest covers what is left of each line, of which a
    column that would take more by being in use takes only what is beyond that.
    """
    lower, upper = units
    replicas, spare = loss
    if not any(lower):
        return least_cover(
            weights, upper, earned, needs, replicas=replicas, spare=spare, taken=before_loss, sums=sums, steps=steps
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
    upper = [most - least for least, most in zip(*units)]
    found = least_cover(weights, upper, scaled, left, taken=beyond, sums=sums, steps=steps)
    if found.bound >= UNMET:
        return found
    paid = sum(weight * count for weight, count in zip(weights, lower))
    counts = {k: count for k, count in enumerate(lower) if count}
    if found.units is not None:
        for k, count in found.units.items():
            counts[k] = counts.get(k, 0) + count
    return Cover(paid + found.bound, None if found.units is None else counts, found.steps)


def _sums_of(program: Program, task: Task, lines: Sequence[Sequence[RequestPrices]]) -> list[dict[int, int]]:
    """Of each line of a boxed fleet without pools, how often those of one bucket alone are in it."""
    if not task.boxed or program.role[task.first : task.stop].any():
        return [{} for _ in lines]
    priced = [_priced_buckets(entries) for entries in lines]
    alone = {where: (k, price) for k, one in enumerate(priced) if len(one) == 1 for where, price in one.items()}
    return [
        {alone[where][0]: price // alone[where][1] for where, price in one.items()}
        if len(one) > 1 and one.keys() <= alone.keys()
        else {}
        for one in priced
    ]


def _priced_buckets(entries: Sequence[RequestPrices]) -> dict[tuple[int, int], int]:
    """By level and bucket what a request is worth."""
    found = dict[tuple[int, int], int]()
    for entry in entries:
        for bucket, (prefill, decode) in enumerate(zip(entry["prefill"], entry["decode"])):
            if prefill + decode:
                found[entry["level"], bucket] = found.get((entry["level"], bucket), 0) + prefill + decode
    return found


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
