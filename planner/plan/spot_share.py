"""The share of a fleet's rate that may stand on spot, for a certificate: a limit whose bound is 0, and what follows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import Program, Task, decimal_share, fleet_rates


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


def least_off_spot(program: Program, task: Task) -> tuple[list[int], int]:
    """Of a fleet with one kind of requests what units that are not on spot carry at least, and what each carries.

    The share on spot is of the rate of all units, and that of all is no less than the demand.
    """
    part = slice(task.first, task.stop)
    simple = len(task.demands[-1]) == 1 and not task.boxed and not program.role[part].any()
    if task.max_spot_share is None or not simple:
        return [0] * (task.stop - task.first), 0
    share = decimal_share(task.max_spot_share)
    rates = np.where(program.spot[part] > 0, 0, program.capacity_micro_per_s[part, 0])
    return rates.tolist(), -(-task.demands[-1][0] * (share.denominator - share.numerator) // share.denominator)
