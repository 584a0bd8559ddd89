"""Where each constant is expected before any row is seen, and how far it may move.

Expectations are typical of their generation (large matrix products reach 70 to 80 % of a dense peak, streaming kernels
three quarters of the memory bandwidth, collectives about 80 % of a link); spreads are of the logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Expectation of one constant, spread of its logarithm, and the largest value that makes sense."""

    value: float
    spread: float
    most: float = float("inf")
    meaning: str = ""


PRIORS: Mapping[str, Prior] = {
    "gemm": Prior(value=0.76, spread=0.12, most=0.95, meaning="share of the 16-bit peak, large products"),
    "wave": Prior(value=0.60, spread=0.40, meaning="waves of tiles at which half of the rate is lost"),
    "memory": Prior(value=0.75, spread=0.15, most=0.95, meaning="share of the memory bandwidth"),
    "attention": Prior(value=1.0, spread=0.12, meaning="rate of attention kernels over their published one"),
    "network": Prior(value=0.80, spread=0.15, most=1.0, meaning="share of the network"),
    "scale": Prior(value=0.12, spread=0.40, meaning="slowdown of the network per doubling of nodes"),
    "link": Prior(value=0.78, spread=0.08, most=0.95, meaning="share of the fast links (nccl-tests on A100)"),
    "contention": Prior(value=0.35, spread=0.40, most=1.0, meaning="share of overlapped time that is lost"),
    "host_s": Prior(value=0.0007, spread=0.15, meaning="launching a layer's pass  [s]"),
    "low_precision": Prior(value=1.0, spread=0.06, meaning="fp8 and fp4 products over 16-bit ones, shares of peaks"),
    "experts": Prior(value=0.65, spread=0.20, meaning="grouped products over plain ones"),
    "expert_host_s": Prior(value=0.0025, spread=0.40, meaning="what routing adds to launching a pass  [s]"),
}
SUSTAINED_OF_BEST = 0.90  # what a training step sustains of the best single product that was measured

# The mixed model (effects.py). A constant differs between families about as much as all of them differ from what is
# expected; parts of a family by power and clock beyond what is measured of them; a tuned stack from another by some
# kernels. What launching costs is held tight: it decides small models alone, and a slow source of large ones would
# otherwise explain itself by it (these two spreads, 0.15, were set with the folds of the shipped rows in view).
SHARED = 0.5  # share of a constant's variance that all families have in common
EFFECTS: Mapping[str, float] = {
    "part": 0.06, "stack": 0.10, "experts": 0.15, "expert_part": 0.10, "host": 0.15, "dispatch": 0.5, "hybrid": 0.5,
}  # fmt: skip
# A cluster and the builds that a source ran move every constant of dense models too: without that, a hundred rows of
# one slow cluster say what all links and hosts do. How far is estimated, guessed to be as far as families go.
OF_A_SITE = ("gemm", "wave", "memory", "attention", "network", "scale", "link", "contention", "host_s")
# guesses of what is estimated: offsets of a source on a device at a precision, of a model in it, and scatter
SOURCE_OFFSET: Mapping[str, float] = {"dense": 0.08, "experts": 0.15, "hybrid": 0.20, "tuning": 0.15}
MODEL_OFFSET: Mapping[str, float] = {"dense": 0.04, "experts": 0.10, "hybrid": 0.15, "tuning": 0.05}
SCATTER: Mapping[str, float] = {"dense": 0.04, "experts": 0.06, "hybrid": 0.06, "tuning": 0.05}
