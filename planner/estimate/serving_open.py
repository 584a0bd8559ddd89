"""Open loop: what a replica does at a rate of arrivals, and the largest rate that keeps its targets.

Arrays are flat, one element a pair of replica and request shape. Behind a router each replica is a
queue of its own with its share of the arrivals: no gain from pooling is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.equations.registry import FloatOrArray, as_float
from planner.estimate.serving_latency import Demand, Point
from planner.estimate.serving_requests import OpenLoad, RequestShape, Targets
from planner.estimate.serving_step import StepTimes

__all__ = ["OpenLoad", "RequestShape", "Targets", "load_at", "slo_capacity"]

Values = NDArray[np.float64]
ROUNDS = 26  # of the bisection: the rate within 1e-6
LEAST = 1e-3  # decoding sequences: a replica that misses its targets there misses them


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
    demand = Demand.of(replica, shape, batch_limit, arrival_variability, max_batched_tokens)
    return load_of(lambda decoding: Point.at(demand, decoding), demand, {}, requests_per_s)


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
    """
    demand = Demand.of(replica, shape, batch_limit, arrival_variability, max_batched_tokens)
    return load_of(lambda decoding: Point.at(demand, decoding), demand, targets.asked, None)


def load_of(
    at: Callable[[Values], Point],
    demand: Demand,
    asked: dict[str, Values],
    requests_per_s: FloatOrArray | None,
    *,
    extra: tuple[Values, ...] = (),
) -> OpenLoad:
    """The load at given rates, or at the largest that keeps the asked targets; `at` makes a point."""
    others = asked.values() if requests_per_s is None else (as_float(requests_per_s),)
    with np.errstate(all="ignore"):
        low, high = _bracket(demand, *others, *extra)
        if requests_per_s is not None:
            rate = low * 0.0 + as_float(requests_per_s)
            point = at(largest(lambda decoding: at(decoding).rate <= rate, low, high))
            return _load(point, rate, np.full(rate.shape, ""))
        point = at(largest(lambda decoding: _kept(at(decoding), asked), low, high))
        rate = np.where(_kept(at(low), asked), point.rate, 0.0)
        return _load(point, rate, _binding(point, asked, high))


def _kept(point: Point, asked: dict[str, Values]) -> NDArray[np.bool_]:
    """True where the point keeps every target and its sequences have slots."""
    kept = (point.sequences <= point.demand.limit) & (point.demand.limit >= 1)
    for name, limit in asked.items():
        metric, key = name.split("_")
        kept = kept & (getattr(point, metric)(key) <= limit)
    return kept


def _bracket(demand: Demand, *others: Values) -> tuple[Values, Values]:
    """Fewest and most decoding sequences of every row."""
    parts = (demand.context, demand.limit, demand.alone_s, demand.first_token_s, demand.budget, *others)
    ones = np.ones(np.broadcast_shapes(*(part.shape for part in parts)))
    return ones * LEAST * np.minimum(demand.later, 1.0), ones * np.maximum(demand.limit, LEAST)


def largest(below: Callable[[Values], NDArray[np.bool_]], low: Values, high: Values) -> Values:
    """Largest value between low and high that is still below, found on a logarithmic scale."""
    bottom, top = np.log(low), np.log(high)
    for _ in range(ROUNDS):
        middle = (bottom + top) / 2
        under = below(np.exp(middle))
        bottom, top = np.where(under, middle, bottom), np.where(under, top, middle)
    found = np.exp(bottom)
    return np.where(below(high), high, found)


def _binding(point: Point, asked: dict[str, Values], high: Values) -> NDArray[np.str_]:
    """The target with the least margin, or the batch where the sequences fill their slots first."""
    names = np.array(["batch", *asked])
    used = [point.sequences / point.demand.limit]
    for name, limit in asked.items():
        metric, key = name.split("_")
        used.append(getattr(point, metric)(key) / limit)
    chosen: NDArray[np.str_] = names[np.argmax(np.stack(np.broadcast_arrays(*used)), axis=0)]
    return chosen


def _load(point: Point, rate: Values, binding: Any) -> OpenLoad:
    shape = point.rate.shape

    def whole(values: Any) -> Values:
        return np.array(np.broadcast_to(values, shape))

    return OpenLoad(
        requests_per_s=whole(rate),
        sequences=whole(point.sequences),
        prefill_share=whole(point.share),
        slot_wait_s=whole(point.slot_probability * point.slot_mean_s),
        ttft_s={key: whole(value) for key, value in point.latencies("ttft").items()},
        tpot_s={key: whole(value) for key, value in point.latencies("tpot").items()},
        e2e_s={key: whole(value) for key, value in point.latencies("e2e").items()},
        itl_p99_s=whole(point.itl_p99_s),
        binding=np.asarray(binding),
    )
