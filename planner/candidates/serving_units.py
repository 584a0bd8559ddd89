"""How many units of each row a fleet needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.candidates.program import WHOLE
from planner.candidates.serving_question import ServingQuestion

Rows = NDArray[np.int64]

NEVER = 2**31  # units of a row that cannot carry a fleet alone


def units_with(
    question: ServingQuestion, planned: Rows, replicas: Rows, role: Rows, demands: Sequence[int], spares: int
) -> tuple[Rows, Rows]:
    """Units of each row that carry a demand alone, and the most that can help, with so many spares.

    Parameters
    ----------
    question
        The fleet.
    planned
        (n, buckets) of one replica.  [micro-requests/s]
    replicas, role
        (n,) replicas of one unit, and whether these serve whole requests.
    demands
        Of each bucket.  [micro-requests/s]
    spares
        Replicas that may be lost.
    """
    least = question.fleet.min_replicas
    if len(demands) == 1:
        one, whole = planned[:, 0], demands[0]
        largest = int(one.max()) if len(one) else 0
        needed = np.where(role == WHOLE, _units_for(whole + spares * one, one, replicas, least), NEVER)
        return needed, _units_for(whole + spares * largest + 0 * one, one, replicas, least)
    if question.blended:
        return _units_of_boxes(planned, replicas, np.array(demands), spares, least)
    with np.errstate(divide="ignore"):
        loads = np.asarray(demands) / planned
    each = np.maximum(replicas, 1)
    by_count = -(-least // each)

    def units(load: NDArray[np.float64]) -> Rows:
        by_load = np.ceil((load / each + spares / each) * (1 + 1e-12)).astype(np.int64)
        return np.asarray(np.maximum(np.maximum(by_load, by_count), 1))

    served = np.isfinite(loads)
    most = units(np.where(served, loads, 0.0).sum(axis=1))
    return np.where(served.all(axis=1) & (role == WHOLE), most, NEVER), most


def _units_of_boxes(planned: Rows, replicas: Rows, demands: Rows, spares: int, least: int) -> tuple[Rows, Rows]:
    """The same of rows that bring their rates of all buckets at once."""
    asked = demands > 0
    largest = planned.max(axis=0, initial=0)

    def units(load: Rows) -> Rows:
        each = [_units_for(load[..., b], planned[:, b], replicas, least) for b in np.flatnonzero(asked)]
        served = [planned[:, b] > 0 for b in np.flatnonzero(asked)]
        return np.asarray(np.stack([np.where(able, one, 0) for one, able in zip(each, served)]).max(axis=0))

    able = (planned[:, asked] > 0).all(axis=1)
    needed = np.where(able, units(demands + spares * planned), NEVER)
    return needed, np.maximum(units(demands + spares * largest + 0 * planned), 1)


def _units_for(load: Rows, planned: Rows, replicas: Rows, min_replicas: int) -> Rows:
    """Units of a row that carry a load alone, and hold the fewest replicas asked for."""
    unit = np.maximum(planned * replicas, 1)
    by_load, by_count = -(-load // unit), -(-min_replicas // np.maximum(replicas, 1))
    needed: Rows = np.maximum(np.maximum(by_load, by_count), 1)
    return needed
