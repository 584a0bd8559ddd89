"""The shares of requests that percentiles are of, and how percentiles of independent parts add up."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.carriers import dataclass
from planner.equations.registry import as_float

Values = NDArray[np.float64]
SHARE = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
SCORE = {key: NormalDist().inv_cdf(share) for key, share in SHARE.items()}


@dataclass(frozen=True, slots=True)
class Level:
    """A share of requests, and the standard normal score that as many stay below; numbers or arrays."""

    share: Any
    score: Any


LEVELS = {key: Level(share=SHARE[key], score=SCORE[key]) for key in SHARE}


def late_s(percentile: Values, mean: Values) -> Values:
    """A percentile over its mean; nothing where both are infinite, since the mean says it all."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(mean), 0.0, percentile - mean)


def excess(*parts: Values) -> Values:
    """What independent parts add to their means at a percentile: the root of the sum of signed squares."""
    total = sum((part * np.abs(part) for part in parts), start=as_float(0.0))
    return np.sign(total) * np.sqrt(np.abs(total))
