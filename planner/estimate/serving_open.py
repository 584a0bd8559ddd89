"""What a replica does at a load, and the largest that keeps its targets.

The load is a rate of arrivals (an open loop) or, where a time to think is given, a number of users each of whom sends a
request that long after the answer to the last one (a closed loop). Arrays are flat, one element a pair of replica and
request shape. Behind a router each replica is a queue of its own with its share of the arrivals, or of the users: no
gain from pooling is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.equations.registry import FloatOrArray, as_float
from planner.equations.serving_load import interactive_requests_per_s
from planner.estimate.serving_latency import Demand, Point
from planner.estimate.serving_levels import SHARE
from planner.estimate.serving_mix import MixedPoint, demand_of, kind_of, late_shares
from planner.estimate.serving_requests import EACH, OpenLoad, RequestShape, Targets
from planner.estimate.serving_root import Function, crossing, crossing_of_rows
from planner.estimate.serving_step import StepTimes

__all__ = ["OpenLoad", "RequestShape", "Targets", "idle_at", "keeps", "keeps_idle", "largest_load", "load_at",
           "of_classes", "slo_capacity", "users_at"]  # fmt: skip

Values = NDArray[np.float64]
Bounds = tuple[Values, Values, Values, Values]  # where a function is below zero, its value, above zero, its value
BLOCK = 16384  # rows worked on at a time: an array of them takes 128 kB
LEAST = 1e-3  # others in the batch: a replica that misses its targets there misses them
MANY = 64.0  # and most, in batches: a clump may hold more than there are slots
NEAR = 1.3  # first step away from where the moments of a mix cross
FEWEST = 1e-6  # share of requests that are late, as far as it is told
CLOSE = 1e-6  # relative, of what is above a target
FOLLOWED = 1e-3  # relative, of a rate: roots are that good, and rates that cannot be followed are farther away
GIVEN = {"load", "rate"}  # goals that are no targets
MOST = 1.0  # cap on how far a point is above a target, so that a steep queue does not hide the crossing


def load_at(
    replica: StepTimes,
    shape: RequestShape,
    load: FloatOrArray,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> OpenLoad:
    """Latencies of replicas at given loads; infinite waits where a replica cannot follow.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    load
        Requests, or users where they think for a finite time.  [1/s] or [count]
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    return solved(kind_of(demand), demand, {}, as_float(load))


def slo_capacity(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> OpenLoad:
    """The largest rate at which a replica keeps every target, and its latencies there; 0 where there is none.

    `binding` names what stops a higher rate: a target, or `batch` where the limit on sequences does.
    A replica that knows how to `take` rows is worked on in blocks that stay in the processor's cache.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    targets
        Latencies that percentiles of the requests must keep.
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    limits = (batch_limit, arrival_variability, max_batched_tokens, think_s)
    count = np.broadcast(shape.context_tokens, *map(np.asarray, limits)).size
    if count <= BLOCK or not hasattr(replica, "take"):
        demand = demand_of(replica, shape, *limits)
        return solved(kind_of(demand), demand, targets.goals, None)
    parts = []
    for start in range(0, count, BLOCK):
        rows = np.arange(start, min(start + BLOCK, count))
        demand = demand_of(
            replica.take(rows),
            shape.take(rows),
            *(np.asarray(part)[rows] if np.ndim(part) else part for part in limits),
        )
        parts.append(solved(kind_of(demand), demand, targets.take(rows).goals, None))
    return OpenLoad.joined(parts)


def solved(kind: type[Point], demand: Demand, asked: Mapping[str, Values], load: Values | None) -> OpenLoad:
    """What replicas do at given loads, or at the largest that keep the asked targets.

    Parameters
    ----------
    kind
        Of point, as `kind_of` says, or of a pool.
    demand
        What requests ask of the replicas.
    asked
        Targets by name, as `Targets.goals` gives them; not looked at where loads are given.  [s]
    load
        Requests, or users of a closed loop; None: the largest is sought.  [1/s] or [count]
    """
    with np.errstate(all="ignore"):
        if load is not None:
            point, low = _point(kind, demand, {"load": load})
            sent = interactive_requests_per_s(load, point.e2e("mean"), demand.think_s) if demand.closed else load
            return _load(point, np.ones(low.shape) * sent, np.full(low.shape, ""))
        point, low = _point(kind, demand, asked)
        return _load(point, np.where(low <= 0, point.sent, 0.0), _binding(point, asked))


def largest_load(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> Values:
    """The load at the rate of `slo_capacity`; without targets that at which all slots are taken.  [1/s] or users

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    targets
        Latencies that percentiles of the requests must keep.
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    with np.errstate(all="ignore"):
        point, low = _point(kind_of(demand), demand, targets.goals)
        return np.asarray(np.where(low <= 0, point.load, 0.0))


def users_at(
    replica: StepTimes,
    shape: RequestShape,
    batch_limit: FloatOrArray,
    requests_per_s: FloatOrArray,
    *,
    think_s: FloatOrArray,
    max_batched_tokens: FloatOrArray = 8192,
    arrival_variability: FloatOrArray = 1.0,
) -> Values:
    """Users of each replica who send so many requests; at least the one who sends them.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    batch_limit
        Sequences that may run at once.  [count]
    requests_per_s
        What all users of a replica send together.  [1/s]
    think_s
        Mean time from an answer to the next request of the same user, finite.  [s]
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    with np.errstate(all="ignore"):
        point, _ = _point(kind_of(demand), demand, {"rate": as_float(requests_per_s)})
        return np.asarray(point.users)


def keeps(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    load: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> NDArray[np.bool_]:
    """Whether each replica can follow a load, and keeps every target there, those of each class of a mix too.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    targets
        Latencies that percentiles of the requests must keep.
    batch_limit
        Sequences that may run at once.  [count]
    load
        Requests, or users where they think for a finite time.  [1/s] or [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    asked = as_float(load)
    with np.errstate(all="ignore"):
        point, _ = _point(kind_of(demand), demand, {"load": asked})
        return np.asarray((point.load >= asked * (1 - FOLLOWED)) & (_over(point, targets.goals) <= CLOSE))


def keeps_idle(
    replica: StepTimes,
    shape: RequestShape,
    targets: Targets,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> NDArray[np.bool_]:
    """Whether each replica keeps every target at any rate: at the least load, where the search for a rate begins.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    targets
        Latencies that percentiles of the requests must keep.
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    goals = targets.goals
    with np.errstate(all="ignore"):
        return np.asarray(_over(kind_of(demand).at(demand, _least(demand, goals)), goals) <= 0)


def idle_at(
    replica: StepTimes,
    shape: RequestShape,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> OpenLoad:
    """Latencies of replicas at the least load: no rate has lower ones.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    with np.errstate(all="ignore"):
        least = _least(demand, {})
        return _load(kind_of(demand).at(demand, least), 0 * least, np.full(least.shape, ""))


def of_classes(
    replica: StepTimes,
    shape: RequestShape,
    names: Iterable[str],
    load: FloatOrArray,
    batch_limit: FloatOrArray,
    *,
    arrival_variability: FloatOrArray = 1.0,
    max_batched_tokens: FloatOrArray = 8192,
    think_s: FloatOrArray = np.inf,
) -> dict[str, Values]:
    """Latencies of each class of a mix at given loads, by a target's name, such as `ttft_p95`: (classes, n).  [s]

    One row, (1, n), where there are no classes or all are alike.

    Parameters
    ----------
    replica
        Times of one replica, or of several side by side.
    shape
        Lengths of the requests of each; of a mix those of its classes, too.
    names
        Of targets: ttft, tpot or e2e, and mean or a percentile.
    load
        Requests, or users where they think for a finite time.  [1/s] or [count]
    batch_limit
        Sequences that may run at once.  [count]
    arrival_variability
        Squared coefficient of variation of the times between arrivals; 1 = Poisson.
    max_batched_tokens
        Most tokens of one step, those of running sequences among them.  [tokens]
    think_s
        Mean time from an answer to the next request of the same user; infinite: requests come by themselves.  [s]
    """
    demand = demand_of(replica, shape, batch_limit, arrival_variability, max_batched_tokens, think_s)
    with np.errstate(all="ignore"):
        point, _ = _point(kind_of(demand), demand, {"load": as_float(load)})
        each = point.each if isinstance(point, MixedPoint) else point
        parts = {name: name.split("_") for name in names}
        return {name: np.atleast_2d(getattr(each, metric)(key)) for name, (metric, key) in parts.items()}


def _least(demand: Demand, goals: Mapping[str, Values]) -> Values:
    ones = np.ones(np.broadcast_shapes(demand.shape, *(goal.shape for goal in goals.values())))
    return np.asarray(LEAST * np.minimum(demand.later, 1.0) * ones)


def _point(kind: type[Point], demand: Demand, goals: Mapping[str, Values]) -> tuple[Point, Values]:
    """Where the tightest goal is reached, and how far above it the least load is."""
    least = _least(demand, goals)
    ones = np.ones(least.shape)
    most = MANY * np.maximum(demand.limit, 1.0) * ones
    first = kind.at(demand, least)
    low = _over(first, goals)
    if (low > 0).all():
        return first, low
    high = _over(kind.at(demand, most), goals)
    decoding = np.where(high <= 0, most, least)
    (open_rows,) = np.nonzero(np.atleast_1d((low <= 0) & (high > 0)))
    if len(open_rows):
        bounds = (np.log(least), low, np.log(most), high)
        # not where slots alone are filled: those are found of many replicas at once, and must not depend on company
        if kind is MixedPoint and ones.size == 1 and goals and not GIVEN & goals.keys():
            bounds = _narrowed(demand, goals, bounds)
        decoding = _between(kind, demand, goals, bounds, open_rows, decoding)
    return kind.at(demand, decoding), low


def _narrowed(demand: Demand, goals: Mapping[str, Values], bounds: Bounds) -> Bounds:
    """Bounds about where the moments of a mix cross: a look at the mix itself costs a hundred times as much."""
    low, at_low, high, at_high = bounds
    plain, _ = _point(Point, _moments(demand), goals)
    where, step = np.clip(np.log(np.maximum(plain.decoding, 1e-300)), low, high), np.log(NEAR)
    over = _over(MixedPoint.at(demand, np.exp(where)), goals)
    while (over <= 0).all() and (where < high).all():
        low, at_low = where, over
        where, step = np.minimum(where + step, high), 2 * step
        over = _over(MixedPoint.at(demand, np.exp(where)), goals) if (where < high).all() else at_high
    if (over <= 0).all():
        return low, at_low, high, at_high
    high, at_high = where, over
    while (where > low).all():
        where, step = np.maximum(where - step, low), 2 * step
        over = _over(MixedPoint.at(demand, np.exp(where)), goals) if (where > low).all() else at_low
        if (over <= 0).all():
            return where, over, high, at_high
        high, at_high = where, over
    return low, at_low, high, at_high


def _moments(demand: Demand) -> Demand:
    """A mix as one class with its moments."""
    return Demand(**{field.name: getattr(demand, field.name) for field in fields(Demand)})


def _between(
    kind: type[Point],
    demand: Demand,
    goals: Mapping[str, Values],
    bounds: Bounds,
    rows: NDArray[np.intp],
    decoding: Values,
) -> Values:
    """Decoding sequences at the crossing of the goals, in the rows that have one."""
    if decoding.ndim != 1 or not hasattr(demand.replica, "take"):
        found = crossing(lambda where: _over(kind.at(demand, np.exp(where)), goals), *bounds)
        return np.where((bounds[1] <= 0) & (bounds[3] > 0), np.exp(found), decoding)

    def of_rows(index: NDArray[np.intp]) -> Function:
        few = demand.take(rows[index])
        wanted = {name: goal[rows[index]] if goal.size > 1 else goal for name, goal in goals.items()}
        return lambda where: _over(kind.at(few, np.exp(where)), wanted)

    whole = decoding.copy()
    whole[rows] = np.exp(crossing_of_rows(of_rows, *(bound[rows] for bound in bounds)))
    return whole


def _over(point: Point, goals: Mapping[str, Values]) -> Values:
    """How far a point is above its tightest goal, as a logarithm; not above 0 where it keeps all."""
    if "load" in goals:
        over = np.log(point.load / goals["load"])
    elif "rate" in goals:
        over = np.log(point.sent / goals["rate"])
    else:
        over = np.log(np.where(point.demand.limit >= 1, point.running / point.demand.limit, np.inf))
        for name, goal in goals.items():
            if (over >= MOST).all():
                break  # no other goal brings it lower
            metric, key, *each = name.split("_")
            if isinstance(point, MixedPoint):
                late, shares = late_shares(point, metric, goal), point.demand.shares
                late = np.where(shares > 0, late, 0.0).max(axis=0) if each else (shares * late).sum(axis=0)
                over = np.maximum(over, np.log(np.maximum(late, FEWEST) / (1 - SHARE[key])))
            elif not each:
                over = np.maximum(over, np.log(getattr(point, metric)(key) / goal))
    return np.where(np.isnan(over), MOST, np.minimum(np.maximum(over, -50.0), MOST))


def _binding(point: Point, goals: Mapping[str, Values]) -> NDArray[np.str_]:
    """The target with the least margin, or the batch where the sequences fill their slots first."""
    names = np.array(["batch", *(name.removesuffix(f"_{EACH}") for name in goals)])
    used = [point.running / point.demand.limit]
    for name, goal in goals.items():
        metric, key, *each = name.split("_")
        if each and isinstance(point, MixedPoint):
            of_classes = getattr(point.each, metric)(key) / goal
            used.append(np.where(point.demand.shares > 0, of_classes, 0.0).max(axis=0))
        else:
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
        sequences=whole(np.minimum(point.running, point.demand.limit)),
        prefill_share=whole(point.sent * point.demand.prefill_s if point.demand.closed else point.share),
        slot_wait_s=whole(point.slot_probability * point.slot_mean_s),
        ttft_s=tables["ttft"],
        tpot_s=tables["tpot"],
        e2e_s=tables["e2e"],
        itl_p99_s=whole(point.itl_p99_s),
        binding=np.broadcast_to(binding, shape),
    )
