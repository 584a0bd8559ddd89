"""The share of a fleet's rate that may stand on spot, for a certificate: a limit whose bound is 0, and what follows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import DECODE, PREFILL, Program, Task, decimal_share, fleet_rates


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
