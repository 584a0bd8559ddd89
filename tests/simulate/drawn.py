"""Requests drawn for a shape at a rate: their times and lengths, with a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.estimate.serving_requests import RequestShape
from planner.estimate.serving_step import StepTimes
from planner.simulate import SimulatedLoad, Workload, simulate_replica


def drawn(
    shape: RequestShape,
    requests_per_s: float,
    requests: int,
    *,
    seed: int,
    arrival_variability: float = 1.0,
    lengths: str = "lognormal",
) -> Workload:
    """Requests with the moments of a shape: gamma times between arrivals (Poisson at a variability of 1).

    Outputs are log-normal, or geometric whatever their second moment; prompts are log-normal.
    """
    rng = np.random.default_rng(seed)
    mean_input, mean_output = float(shape.input_tokens), float(shape.output_tokens)
    if arrival_variability > 0:
        kind = 1 / arrival_variability
        gaps = rng.gamma(kind, 1 / (kind * requests_per_s), requests)
    else:
        gaps = np.full(requests, 1 / requests_per_s)
    prompts = _lognormal(rng, mean_input, float(shape.input_spread), requests)
    if lengths == "geometric":
        outputs = rng.geometric(1 / mean_output, requests).astype(np.float64)
    else:
        outputs = _lognormal(rng, mean_output, float(shape.output_spread), requests)
    cached = prompts * (float(shape.cached_tokens) / mean_input)
    return Workload(arrival_s=np.cumsum(gaps), input_tokens=prompts, output_tokens=outputs, cached_tokens=cached)


def _lognormal(rng: np.random.Generator, mean: float, spread: float, count: int) -> NDArray[np.float64]:
    """Whole lengths of at least 1 with a mean and E[X^2] / E[X]^2."""
    sigma = np.sqrt(np.log(spread))
    values = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    return np.asarray(np.maximum(np.rint(values), 1.0))


def simulate_drawn(
    replica: StepTimes,
    shape: RequestShape,
    *,
    batch_limit: int,
    requests_per_s: float,
    requests: int = 20_000,
    max_batched_tokens: int = 8192,
    warmup_share: float = 0.1,
    seed: int = 0,
    **more: Any,
) -> SimulatedLoad:
    """A replica under requests that are drawn for it."""
    work = drawn(shape, requests_per_s, requests, seed=seed, **more)
    return simulate_replica(
        replica, work, batch_limit=batch_limit, max_batched_tokens=max_batched_tokens, warmup_share=warmup_share
    )
