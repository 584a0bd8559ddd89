"""The fitted constants of a device family: shares of vendor rates that training sustains."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """Numbers, or arrays with one element a job."""

    gemm: Any = 0.80  # of the dense 16-bit peak, large matrix products
    wave: Any = 0.6  # waves at which half of the rate is lost (w0)
    memory: Any = 0.70  # of the memory bandwidth, norms and activation functions
    attention: Any = 1.0  # of the kernel's published rate
    network: Any = 0.80  # of a device's share of the network
    scale: Any = 0.1  # slowdown of the network with every doubling of its nodes
    link: Any = 0.78  # of the fast domain
    contention: Any = 0.35  # of overlapped communication
    low_precision: Any = 0.70  # of the fp8 or fp4 peak, relative to `gemm`
    experts: Any = 0.80  # grouped products, relative to `gemm`
    expert_host_s: Any = 0.0025  # that routing adds to it
    host_s: Any = 0.0004  # of a layer's pass, launching it


NAMES = tuple(f.name for f in fields(StepConstants))
