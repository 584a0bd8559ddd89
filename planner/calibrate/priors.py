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
    "host_s": Prior(value=0.0007, spread=0.30, meaning="launching a layer's pass  [s]"),
    "low_precision": Prior(value=1.0, spread=0.06, meaning="fp8 and fp4 products over 16-bit ones, shares of peaks"),
    "experts": Prior(value=0.65, spread=0.20, meaning="grouped products over plain ones"),
    "expert_host_s": Prior(value=0.0025, spread=0.40, meaning="what routing adds to launching a pass  [s]"),
}
DENSE = ("gemm", "wave", "memory", "attention", "network", "scale", "link", "contention", "host_s")
LOW_PRECISION = ("low_precision",)
EXPERTS = ("experts", "expert_host_s")
PULL = 0.004  # weight of one squared spread against a mean absolute logarithm
SUSTAINED_OF_BEST = 0.90  # what a training step sustains of the best single product that was measured
USUAL_ERROR = 0.08  # mean |ln| of a source beyond which its weight falls
FEW_ROWS = 10.0  # rows at which the pull is twice as strong: a prior is worth as much as they are
OVERHEAD_PULL = 1.0  # rows' worth of a framework's overhead being 1
