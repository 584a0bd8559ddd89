"""What a fleet must live through, and whether given units do: a routing or prices, each checked exactly.

A *situation* is a level of load with what is lost: nothing, k replicas of a type in use, or a
failure domain. Units carry a situation when every bucket can be split among them so that no
column is loaded beyond what is left of it. Otherwise, by the duality of linear programs, there
are prices of a request in each bucket, p_b for its prefill and q_b for its decode, at which the
units left earn less than the demand is worth:

    sum_k W_k u_k  <  sum_b (p_b + q_b) D_b,      W_k = max_b C_kb (p_b + q_b | p_b | q_b),

where W_k is the most that a unit of a whole | prefill | decode column can earn. For any prices
>= 0 the opposite is a line that every plan meets, whatever else it has in use, so prices found
for one plan rule out others too (`Cut`). Floating point only proposes: flows are accepted when
their loads, added in integers and rounded up, stay within `ROUTED` of the units; prices are rounded to
integers and the inequality is then tested in integers.

Of a boxed task there is nothing to route: what is left brings sum_k C_kb u_k of every bucket, and a
bucket that is short is its own line, at a price of one for its requests and none for others. These
lines are few (`box_lines`), so models have all of them from the start, and nothing is learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from planner.candidates.program import DECODE, PREFILL, WHOLE, IntArray, Program, Task, earnings
from planner.carriers import dataclass
from planner.optimize.balance import Balanced, balance
from planner.optimize.status import FloatArray

ROUTED = Fraction(1, 10**7)  # of the units left, in loads
STEPS = 2**40  # prices are whole parts of the dearest, shares of a bucket
PARTS = 2**60  # of a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A level of load and what is lost in it."""

    level: int
    demand: tuple[int, ...]
    lost_column: int = -1  # of this column...
    lost_units: Fraction = Fraction(0)  # ...so many units
    lost_domain: int = -1

    def left(self, program: Program, task: Task, units: IntArray) -> dict[int, Fraction]:
        """Units that run, by column; never negative, but of a boxed task.

        Parameters
        ----------
        program
            The whole program.
        task
            A serving task of it.
        units
            Of each column of the program, (n,).
        """
        left: dict[int, Fraction] = {}
        for column in range(task.first, task.stop):
            gone = program.level[column] > self.level
            gone |= self.lost_domain >= 0 and int(program.domain[column]) == self.lost_domain
            if units[column] and not gone:
                lost = self.lost_units if column == self.lost_column else 0
                here = int(units[column]) - Fraction(lost)
                left[column] = here if task.boxed else max(here, Fraction(0))
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """sum(earnings * units) - the dearest loss >= need, over the columns of a task; all integers.

    `spares` replicas of any one type in use may be lost; 0 = none are.
    """

    task: str
    columns: IntArray
    earnings: tuple[int, ...]
    need: int
    spares: int = 0
    lossless: bool = False  # of a situation in which nothing is lost, so a routing implies it

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for lines that say the same: prices and need may be those of a line without the loss."""
        return self.task, self.earnings, self.need, self.spares


def situations(program: Program, task: Task, units: IntArray) -> Iterator[Situation]:
    """Everything that these units must carry.

    Parameters
    ----------
    program
        The whole program.
    task
        A serving task of it.
    units
        Of each column of the program, (n,); only types and domains in use can be lost.
    """
    used = [column for column in range(task.first, task.stop) if units[column]]
    domains = sorted({int(program.domain[column]) for column in used}) if task.survive_domain else []
    for level, demand in enumerate(task.demands):
        yield Situation(level=level, demand=demand)
        for column in used if task.spare_replicas else ():
            if program.level[column] <= level:
                share = Fraction(task.spare_replicas, max(int(program.replicas[column]), 1))
                yield Situation(level=level, demand=demand, lost_column=column, lost_units=share)
        for domain in domains:
            yield Situation(level=level, demand=demand, lost_domain=domain)


def unmet(program: Program, task: Task, units: IntArray) -> Iterator[Cut | Situation]:
    """Lines that the units break, of a boxed task all of them, else one a situation at most.

    A situation when no proof stands either way.

    Parameters
    ----------
    program
        The whole program.
    task
        A serving task of it.
    units
        Of each column of the program, (n,).
    """
    if task.boxed:
        yield from _short(program, task, units)
        return
    ample: dict[int, dict[int, Fraction]] = {}  # loads of the routing without losses, by level
    for situation in situations(program, task, units):
        left = situation.left(program, task, units)
        loads = ample.get(situation.level, {})
        if situation.lost_column >= 0 and loads.get(situation.lost_column, Fraction(2**60)) <= left.get(
            situation.lost_column, Fraction(0)
        ):
            continue  # what is lost was not needed
        found = balanced(program, situation, left)
        loads = loads_of(program, situation, found.flows)
        if all(load <= left.get(column, 0) * (1 + ROUTED) for column, load in loads.items()) and found.routed:
            if situation.lost_column < 0 and situation.lost_domain < 0:
                ample[situation.level] = loads
            continue
        cut = cut_of(program, task, situation, found)
        yield cut if cut is not None and _broken(cut, task, left) else situation


def box_lines(program: Program, task: Task) -> Iterator[Cut]:
    """All lines of a boxed task: of every bucket at every level, after every loss."""
    for situation in _of_boxes(program, task):
        yield from (_of_bucket(program, task, situation, b) for b, rate in enumerate(situation.demand) if rate > 0)


def _of_boxes(program: Program, task: Task) -> Iterator[Situation]:
    """A loss of spares stands for no loss and for that of every type: see `Cut.spares`."""
    lost = task.first if task.spare_replicas else -1
    domains = np.unique(program.domain[task.first : task.stop]).tolist() if task.survive_domain else []
    for level, demand in enumerate(task.demands):
        yield Situation(level=level, demand=demand, lost_column=lost)
        yield from (Situation(level=level, demand=demand, lost_domain=domain) for domain in domains)


def _of_bucket(program: Program, task: Task, situation: Situation, bucket: int) -> Cut:
    alone = tuple(float(other == bucket) for other in range(len(situation.demand)))
    cut = cut_of(program, task, situation, Balanced(routed=False, prefill=alone, decode=(0.0,) * len(alone)))
    assert cut is not None
    return cut


def _short(program: Program, task: Task, units: IntArray) -> Iterator[Cut]:
    """Lines of buckets that units of a boxed task do not carry in some situation."""
    broken: dict[tuple[int, int, int], Situation] = {}
    for situation in situations(program, task, units):
        rates = _brought(program, situation, situation.left(program, task, units))
        for bucket, demand in enumerate(situation.demand):
            if rates[bucket] * (1 + ROUTED) < demand:
                broken.setdefault((situation.level, bucket, situation.lost_domain), situation)
    for (_, bucket, _), situation in broken.items():
        if task.spare_replicas and situation.lost_domain < 0:
            situation = replace(situation, lost_column=task.first)
        yield _of_bucket(program, task, situation, bucket)


def _brought(program: Program, situation: Situation, left: dict[int, Fraction]) -> list[Fraction]:
    """Rate of each bucket that units of a boxed task bring."""
    rates = [Fraction(0)] * len(situation.demand)
    for column, amount in left.items():
        for bucket, rate in enumerate(program.capacity_micro_per_s[column, : len(rates)].tolist()):
            rates[bucket] += rate * amount
    return rates


def balanced(program: Program, situation: Situation, left: dict[int, Fraction]) -> Balanced:
    """The routing that loads the columns evenly, and its prices.

    Parameters
    ----------
    program
        The whole program.
    situation
        Only its demand counts.
    left
        Units that run, by column, without what is lost (`Situation.left`).
    """
    columns = sorted(left)
    capacity = (
        program.capacity_micro_per_s[columns, : len(situation.demand)]
        .astype(np.float64)
        .reshape(len(columns), len(situation.demand))
    )
    room = capacity * np.array([float(left[column]) for column in columns])[:, None]
    return balance(room, np.array(situation.demand, dtype=np.float64), program.role[columns], columns)


def exact_shares(program: Program, flows: dict[tuple[int, int], float]) -> dict[tuple[int, int], tuple[int, int]]:
    """Shares of each bucket as (numerator, denominator) that sum to one exactly, in every role."""
    counts = {key: round(share * STEPS) for key, share in flows.items()}
    sums: dict[tuple[int, int], int] = {}  # by role and bucket
    for (column, bucket), count in counts.items():
        role = int(program.role[column])
        sums[role, bucket] = sums.get((role, bucket), 0) + count
    exact = {}
    for (column, bucket), count in counts.items():
        role, whole = int(program.role[column]), sums.get((WHOLE, bucket), 0)
        alone = whole >= STEPS or not all(sums.get((part, bucket)) for part in (PREFILL, DECODE))
        if role == WHOLE:
            exact[column, bucket] = (count, whole if alone else STEPS)
        elif not alone:
            exact[column, bucket] = (count * (STEPS - whole), sums[role, bucket] * STEPS)
    return {key: share for key, share in exact.items() if share[0]}


def loads_of(program: Program, situation: Situation, flows: dict[tuple[int, int], float]) -> dict[int, Fraction]:
    """Units that each column needs for its flows, in whole parts of 2^-60, each rounded up.

    Parameters
    ----------
    program
        The whole program.
    situation
        Only its demand counts.
    flows
        Share of a bucket by (column, bucket); each bucket is made to sum to one (`exact_shares`).
    """
    loads: dict[int, int] = {}
    for (column, bucket), (share, whole) in exact_shares(program, flows).items():
        rate = int(program.capacity_micro_per_s[column, bucket])
        load = -(-share * situation.demand[bucket] * PARTS // (whole * rate)) if rate else PARTS * PARTS
        loads[column] = loads.get(column, 0) + load
    return {column: Fraction(load, PARTS) for column, load in loads.items()}


def cut_of(program: Program, task: Task, situation: Situation, found: Balanced) -> Cut | None:
    """The line that these prices prove, lifted to every column of the task; None for prices that say nothing.

    Parameters
    ----------
    program
        The whole program.
    task
        A serving task of it.
    situation
        With a lost column, whichever, the spares of any type may be lost; its lost units do not count.
    found
        Prices of a request of each bucket; its flows do not count.
    """
    dearest = max((*found.prefill, *found.decode), default=0.0)
    if not dearest > 0 or not math.isfinite(dearest):
        return None
    prefill = [round(max(price, 0.0) / dearest * STEPS) for price in found.prefill]
    decode = [round(max(price, 0.0) / dearest * STEPS) for price in found.decode]
    both = [p + q for p, q in zip(prefill, decode)]
    part = slice(task.first, task.stop)
    runs = program.level[part] <= situation.level
    if situation.lost_domain >= 0:
        runs &= program.domain[part] != situation.lost_domain
    # whole numbers of any size: objects; a bucket without demand has no price
    rates = program.capacity_micro_per_s[part, : len(both)].astype(object)
    earned = np.zeros(task.stop - task.first, dtype=object)
    for role, prices in ((WHOLE, both), (PREFILL, prefill), (DECODE, decode)):
        here = runs & (program.role[part] == role)
        if here.any() and any(prices):
            earned[here] = earnings(task, rates[here], prices)
    return Cut(
        task=task.name,
        columns=np.arange(task.first, task.stop),
        earnings=tuple(earned.tolist()),
        need=sum(price * demand for price, demand in zip(both, situation.demand)),
        spares=task.spare_replicas if situation.lost_column >= 0 else 0,
        lossless=situation.lost_column < 0 and situation.lost_domain < 0,
    )


def _broken(cut: Cut, task: Task, left: dict[int, Fraction]) -> bool:
    return sum(cut.earnings[column - task.first] * amount for column, amount in left.items()) < cut.need


def flows_at(program: Program, task: Task, units: IntArray, level: int) -> FloatArray:
    """Requests/s in micro-units to each column of the program at a level, nothing lost: loads as even as can be.

    Of a boxed task, of each bucket in proportion to what is brought.

    Parameters
    ----------
    program
        The whole program.
    task
        A serving task of it; other columns have no flow.
    units
        Of each column of the program, (n,).
    level
        Number of the level in `Task.demands`, 0 = the least load.

    Returns
    -------
    (n, buckets).  [micro-requests/s]
    """
    flows = np.zeros(program.capacity_micro_per_s.shape)
    situation = Situation(level=level, demand=task.demands[level])
    if task.boxed:
        runs = np.where(program.level[task.first : task.stop] <= level, units[task.first : task.stop], 0)
        brought = program.capacity_micro_per_s[task.first : task.stop, : len(situation.demand)] * runs[:, None]
        shares = brought / np.maximum(brought.sum(axis=0), 1)
        flows[task.first : task.stop, : len(situation.demand)] = shares * situation.demand
        return flows
    found = balanced(program, situation, situation.left(program, task, units))
    for (column, bucket), (share, whole) in exact_shares(program, found.flows).items():
        flows[column, bucket] = share * situation.demand[bucket] / whole
    return flows
