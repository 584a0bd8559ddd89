"""The least of a fleet whose roles are told apart: pools for prefill and decode beside replicas of whole requests.

A fleet may prefill and decode in pools of their own, beside replicas that do both. At prices of the requests, the same
for prefill and decode, what replicas of whole requests earn, W, and each pool earns must come to N: W + P >= N and
W + D >= N, also after the loss of k replicas of any type in use. Prices alone weigh a replica of whole requests half
here and half there, and prove too little where pools are a few replicas. W is a whole number, though: without any such
replica the pools are apart, and each is the least cover of its own; with some, W lies between two numbers, and the
whole weighs what W takes at least and what the pools take at least at the larger of the two. The numbers are halved
where that is the least, until it reaches what is asked or `MOST_PARTS` are looked at. Both pools of a fleet lie in one
place, so that this is done for each place.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import (
    DECODE,
    PREFILL,
    WHOLE,
    Program,
    Task,
    earnings,
)
from planner.plan.cover import UNMET, least_cover

if TYPE_CHECKING:
    from planner.plan.model.others import RequestPrices


MOST_PRICES = 4  # of the requests of a fleet, at which its roles are told apart
MOST_PARTS = 64  # of what whole requests earn
STEPS = 40_000  # of one search for a least cover


class _Side(NamedTuple):
    """Columns of one role: weights of a unit, how many there are, what one earns, replicas of one."""

    weights: list[int]
    upper: list[int]
    earned: list[int]
    replicas: list[int]

    def least(self, need: int, spare: int = 0) -> int:
        """The least weight of units that earn so much, after the loss of so many replicas of a type."""
        if need <= 0:
            return 0
        lost = self.replicas if spare else None
        return least_cover(
            self.weights, self.upper, [self.earned], [need], replicas=lost, spare=spare, steps=STEPS
        ).bound

    def least_loss(self, spare: int) -> int:
        """What the loss of so many replicas takes at least, of a type that earns anything."""
        return min((spare * e // r for e, r, m in zip(self.earned, self.replicas, self.upper) if e and m), default=0)

    def cheapest(self) -> int:
        """The least weight of a unit that earns anything."""
        return min((w for w, e, m in zip(self.weights, self.earned, self.upper) if e and m), default=UNMET)


def more_by_role(
    program: Program,
    lines: Mapping[str, Sequence[Sequence[RequestPrices]]],
    weights: NDArray[Any],
    upper: NDArray[np.int64],
    alone: Mapping[str, int],
    short: int,
) -> int:
    """What fleets with pools weigh more than prices alone prove, as far as that is short.

    Parameters
    ----------
    lines
        Prices of the requests of each workload, by line and level.
    weights, upper
        Of a unit of each column; and how many there are.
    alone
        What prices alone prove of each workload.
    short
        Of no interest beyond.
    """
    found = 0
    for task in program.tasks:
        part = slice(task.first, task.stop)
        if task.kind != "serving" or not program.role[part].any() or (weights[part] < 0).any():
            continue
        peak = len(task.demands) - 1
        worth = {
            tuple(p + q for p, q in zip(one["prefill"], one["decode"]))
            for line in lines[task.name]
            for one in line
            if one["level"] == peak
        }
        known, upto = alone[task.name], alone[task.name] + short - found
        for prices in sorted(each for each in worth if any(each))[:MOST_PRICES]:
            known = max(known, min(least_by_role(program, task, weights, upper, prices, upto), upto))
        found += known - alone[task.name]
    return found


def least_by_role(
    program: Program, task: Task, weights: NDArray[Any], upper: NDArray[np.int64], prices: Sequence[int], upto: int
) -> int:
    """No way to meet a fleet at its peak weighs less, as far as some prices of its requests show it.

    Parameters
    ----------
    program, task
        A fleet of the program.
    weights, upper
        Of a unit of each column of the program, >= 0 where it counts; and how many there are.
    prices
        Of a request of each bucket, as much for its prefill as for its decode.
    upto
        Of no interest beyond.

    Returns
    -------
    `UNMET` where nothing meets it.
    """
    part, peak = slice(task.first, task.stop), len(task.demands) - 1
    demand = task.demands[peak]
    rates = program.capacity_micro_per_s[part, : len(demand)].astype(object)
    earned = np.where(program.level[part] <= peak, earnings(task, rates, prices), 0)
    need = sum(price * rate for price, rate in zip(prices, demand))
    spare = task.spare_replicas

    def side(where: NDArray[np.bool_]) -> _Side:
        return _Side(
            weights=[max(int(w), 0) for w in weights[part][where]],
            upper=upper[part][where].tolist(),
            earned=[int(e) for e in earned[where]],
            replicas=[max(int(r), 1) for r in program.replicas[part][where]],
        )

    role, place = program.role[part], program.place[part]
    whole, least = side(role == WHOLE), UNMET
    for one in np.unique(place[role != WHOLE]).tolist():
        pools = side((role == PREFILL) & (place == one)), side((role == DECODE) & (place == one))
        least = min(least, _least_beside(whole, pools, need, spare, min(upto, least)))
    return min(least, whole.least(need, spare))


def _least_beside(whole: _Side, pools: tuple[_Side, _Side], need: int, spare: int, upto: int) -> int:
    """The least weight with the pools of one place, or without."""
    apart = sum(pool.least(need, spare) for pool in pools)
    loss = whole.least_loss(spare)
    # that do not survive a loss by themselves, so that both pools stand by
    beyond = whole.least(need + loss) + sum(pool.cheapest() for pool in pools)

    def between(least: int, most: int) -> int:
        """With replicas of whole requests that earn at least so much, and less than that."""
        beside = (max(pool.least(need - most, spare), pool.least(need + loss - most + 1)) for pool in pools)
        return whole.least(max(least, 1)) + sum(beside)

    heap = [(between(0, need + loss), 0, need + loss)]
    for _ in range(MOST_PARTS):
        bound, least, most = heap[0]
        if bound >= min(upto, apart, beyond) or most - least < 2:
            break
        middle = (least + most) // 2
        heapq.heapreplace(heap, (between(least, middle), least, middle))
        heapq.heappush(heap, (between(middle, most), middle, most))
    return min(apart, beyond, heap[0][0])
