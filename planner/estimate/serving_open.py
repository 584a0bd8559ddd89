"""Open loop: what a replica does at a rate of arrivals, and the largest rate that keeps its targets.

Arrays are flat, one element a pair of replica and request shape. Behind a router each replica is a
queue of its own with its share of the arrivals: no gain from pooling is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.equations.registry import FloatOrArray, as_float
from planner.estimate.serving_latency import Demand, Point
from planner.estimate.serving_mix import demand_of, kind_of
from planner.estimate.serving_requests import OpenLoad, RequestShape, Targets
from planner.estimate.serving_root import Function, crossing, crossing_of_rows
from planner.estimate.serving_step import StepTimes

__all__ = ["OpenLoad", "RequestShape", "Targets", "load_at", "point_at", "slo_capacity"]

Values = NDArray[np.float64]
BLOCK = 16384  # rows worked on at a time: an array of them takes 128 kB
LEAST = 1e-3  # others in the batch: a replica that misses its targets there misses them
MANY = 64.0  # and most, in batches: a clump may hold more than there are slots
MOST = 1.0  # cap on how far a point is above a target, so that a steep queue does not hide the crossing


def load_at(
    replica: StepTimes,
    shape: RequestShape,
    requests_per_s: FloatOrArray,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
) -> OpenLoad:
    """Latencies of replicas at given rates; infinite waits where a replica cannot follow.

    `batch_limit` is the number of sequences that may run at once, `arrival_variability` the squared
    coefficient of variation of the times between arrivals, `max_batched_tokens` the tokens of a step.
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens)
    return solved(kind_of(demand), demand, {}, as_float(requests_per_s))


def slo_capacity(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
) -> OpenLoad:
    """The largest rate at which a replica keeps every target, and its latencies there; 0 where there is none.

    `binding` names what stops a higher rate: a target, or `batch` where the limit on sequences does.
    A replica that knows how to `take` rows is worked on in blocks that stay in the processor's cache.
    """
    limits = (batch_limit, arrival_variability, max_batched_tokens)
    count = np.broadcast(shape.context_tokens, *map(np.asarray, limits)).size
    if count <= BLOCK or not hasattr(replica, "take"):
        demand = demand_of(replica, shape, *limits)
        return solved(kind_of(demand), demand, targets.asked, None)
    parts = []
    for start in range(0, count, BLOCK):
        rows = np.arange(start, min(start + BLOCK, count))
        demand = demand_of(
            replica.take(rows),
            shape.take(rows),
            *(np.asarray(part)[rows] if np.ndim(part) else part for part in limits),
        )
        parts.append(solved(kind_of(demand), demand, targets.take(rows).asked, None))
    return OpenLoad.joined(parts)


def solved(kind: type[Point], demand: Demand, asked: Mapping[str, Values], requests_per_s: Values | None) -> OpenLoad:
    """The load at given rates, or at the largest that keep the asked targets."""
    with np.errstate(all="ignore"):
        if requests_per_s is not None:
            point, low = _point(kind, demand, {"rate": requests_per_s})
            return _load(point, np.ones(low.shape) * requests_per_s, np.full(low.shape, ""))
        point, low = _point(kind, demand, asked)
        return _load(point, np.where(low <= 0, point.rate, 0.0), _binding(point, asked))


def point_at(
    replica: StepTimes,
    shape: RequestShape,
    batch_limit: FloatOrArray,
    *,
    requests_per_s: FloatOrArray | None = None,
    decoding: FloatOrArray = 0.0,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
) -> Point:
    """Replicas at given rates, or with so many sequences that decode beside one: everything that is known of them."""
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens)
    kind = kind_of(demand)
    if requests_per_s is None:
        return kind.at(demand, as_float(decoding) * np.ones(demand.shape))
    with np.errstate(all="ignore"):
        return _point(kind, demand, {"rate": as_float(requests_per_s)})[0]


def _point(kind: type[Point], demand: Demand, goals: Mapping[str, Values]) -> tuple[Point, Values]:
    """Where the tightest goal is reached, and how far above it the least load is."""
    ones = np.ones(np.broadcast_shapes(demand.shape, *(goal.shape for goal in goals.values())))
    least = LEAST * np.minimum(demand.later, 1.0) * ones
    most = MANY * np.maximum(demand.limit, 1.0) * ones
    low, high = _over(kind.at(demand, least), goals), _over(kind.at(demand, most), goals)
    decoding = np.where(high <= 0, most, least)
    (open_rows,) = np.nonzero(np.atleast_1d((low <= 0) & (high > 0)))
    if len(open_rows):
        bounds = (np.log(least), low, np.log(most), high)
        decoding = _between(kind, demand, goals, bounds, open_rows, decoding)
    return kind.at(demand, decoding), low


def _between(
    kind: type[Point],
    demand: Demand,
    goals: Mapping[str, Values],
    bounds: tuple[Values, Values, Values, Values],
    rows: NDArray[np.intp],
    decoding: Values,
) -> Values:
    """Decoding sequences at the crossing of the goals, in the rows that have one."""
    if decoding.ndim != 1 or not hasattr(demand.replica, "take"):
        found = crossing(lambda where: _over(kind.at(demand, np.exp(where)), goals), *bounds)
        return np.where((bounds[1] <= 0) & (bounds[3] > 0), np.exp(found), decoding)

    def of_rows(index: NDArray[np.intp]) -> Function:
        few = demand.take(rows[index])
        wanted = {name: goal[rows[index]] if goal.ndim else goal for name, goal in goals.items()}
        return lambda where: _over(kind.at(few, np.exp(where)), wanted)

    whole = decoding.copy()
    whole[rows] = np.exp(crossing_of_rows(of_rows, *(bound[rows] for bound in bounds)))
    return whole


def _over(point: Point, goals: Mapping[str, Values]) -> Values:
    """How far a point is above its tightest goal, as a logarithm; not above 0 where it keeps all."""
    if "rate" in goals:
        over = np.log(point.rate / goals["rate"])
    else:
        over = np.log(np.where(point.demand.limit >= 1, point.sequences / point.demand.limit, np.inf))
        for name, goal in goals.items():
            metric, key = name.split("_")
            over = np.maximum(over, np.log(getattr(point, metric)(key) / goal))
    return np.where(np.isnan(over), MOST, np.clip(over, -50.0, MOST))


def _binding(point: Point, goals: Mapping[str, Values]) -> NDArray[np.str_]:
    """The target with the least margin, or the batch where the sequences fill their slots first."""
    names = np.array(["batch", *goals])
    used = [point.sequences / point.demand.limit]
    for name, goal in goals.items():
        metric, key = name.split("_")
        used.append(getattr(point, metric)(key) / goal)
    best = np.zeros(np.shape(used[0]), dtype=np.int64)
    most = used[0]
    for index, share in enumerate(used[1:], start=1):
        best, most = np.where(share > most, index, best), np.fmax(most, share)
    chosen: NDArray[np.str_] = names[best]
    return chosen


def _load(point: Point, rate: Values, binding: Any) -> OpenLoad:
    shape = rate.shape

    def whole(values: Any) -> Values:
        return np.array(np.broadcast_to(values, shape))

    tables = {
        name: {key: whole(value) for key, value in point.latencies(name).items()} for name in ("ttft", "tpot", "e2e")
    }
    return OpenLoad(
        requests_per_s=whole(rate),
        sequences=whole(np.minimum(point.sequences, point.demand.limit)),
        prefill_share=whole(point.share),
        slot_wait_s=whole(point.slot_probability * point.slot_mean_s),
        ttft_s=tables["ttft"],
        tpot_s=tables["tpot"],
        e2e_s=tables["e2e"],
        itl_p99_s=whole(point.itl_p99_s),
        binding=np.broadcast_to(binding, shape),
    )
