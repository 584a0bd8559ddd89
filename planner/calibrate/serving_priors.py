"""Where the constants of serving are expected before any row is seen, and how far each may move.

An expectation is an engineer's round figure: the share of memory bandwidth that a streaming read reaches, five
microseconds for a kernel launch, ten for an all-reduce of a few kilobytes over NVLink. Spreads of the logarithm are
wide, so that the rows decide; nothing is expected of one engine or device and not of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expectation of one constant and spread of its logarithm."""

    value: float
    spread: float
    meaning: str


SERVING_PRIORS: Mapping[str, Expected] = MappingProxyType(
    {
        "bandwidth": Expected(value=0.85, spread=0.10, meaning="share of the memory bandwidth, weights"),
        "cache_bandwidth": Expected(value=0.80, spread=0.14, meaning="the same, reading the cache"),
        "expert_bandwidth": Expected(value=0.80, spread=0.14, meaning="the same, reading experts"),
        "compute": Expected(value=0.65, spread=0.14, meaning="share of the peak, linear products"),
        "prompt_compute": Expected(value=1.00, spread=0.01, meaning="of that, for prompts"),
        "low_precision": Expected(value=0.85, spread=0.07, meaning="of what 8 bits promise beyond 16"),
        "unpack": Expected(value=0.80, spread=0.20, meaning="of products whose weights are unpacked first"),
        "expert_compute": Expected(value=0.30, spread=0.21, meaning="share of the peak, grouped products"),
        "attention_compute": Expected(value=0.25, spread=0.21, meaning="share of the peak, attention"),
        "link": Expected(value=0.65, spread=0.14, meaning="share of the links"),
        "pcie": Expected(value=0.50, spread=0.20, meaning="share of links over PCIe"),
        "routing_skew": Expected(value=0.30, spread=0.21, meaning="share of tokens that visit experts visited"),
        "kernel_unit_s": Expected(value=50e-6, spread=0.21, meaning="launching ten kernels  [s]"),
        "collective_s": Expected(value=10e-6, spread=0.28, meaning="a collective of a few bytes  [s]"),
        "step_s": Expected(value=200e-6, spread=0.35, meaning="the engine's loop, once a step  [s]"),
        "sequence_unit_s": Expected(value=0.25e-6, spread=0.35, meaning="a sequence and ten kernels  [s]"),
        "prompt_step_s": Expected(value=2e-3, spread=0.35, meaning="a step that holds prompts  [s]"),
        "prompt_unit_s": Expected(value=80e-6, spread=0.28, meaning="ten kernels of such a step  [s]"),
        "request_s": Expected(value=30e-3, spread=0.35, meaning="a request outside the engine  [s]"),
        "front_request_s": Expected(value=4e-3, spread=0.30, meaning="a request in the server before the engine  [s]"),
        "front_token_s": Expected(value=50e-6, spread=0.30, meaning="a token of its answer there  [s]"),
        "burst": Expected(value=0.30, spread=0.35, meaning="clients of a closed loop that send at once"),
    }
)
# Groups of coefficients: what each moves (`serving_constants.MOVES`), and how far it is expected to go.
GROUPS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "engine": ("work", 0.10),
        "engine host": ("host", 0.50),
        "engine prompt": ("prompt", 1.00),
        "engine burst": ("burst", 0.50),
        "engine request": ("request", 0.60),
        "engine experts": ("experts", 0.15),
        "release": ("work", 0.03),
        "family": ("work", 0.08),
        "part": ("work", 0.03),
        "pair": ("work", 0.08),
        "format": ("work", 0.10),
        "layout": ("work", 0.20),
        "mixture": ("work", 0.10),
        "protocol": ("work", 0.10),
        "card": ("work", 0.15),
        "card prompt": ("prompt", 0.50),
        "burst": ("burst", 0.40),
        "skew": ("skew", 0.25),
        "wait": ("request", 0.60),
    }
)
# What its rows do not state: clients that send at once, tokens that crowd on experts, what is in front of the engine.
WAYS_OF_A_CAMPAIGN = ("burst", "skew", "wait")
# Servers of today replay graphs of kernels and differ little in it; engines of static batches and of one card launch
# in ways of their own.
SERVERS = ("vllm", "sglang", "trt-llm", "tgi", "mindie")
# Whose deviation the rows decide; the guess weighs as four of them
ESTIMATED = ("engine", "family", "pair", "format", "mixture")
# By kind of figure: deviations of the offset of a campaign, of a setup in it, and of the scatter. What a figure weighs
# in the fit is by these; bands are by what is estimated of them. Those of steady loads are half of the scatter: what a
# campaign's rows have in common is explained by its engine and device first. Piles, open loops and rates under limits
# are not fitted to: their queues hide the engine.
OFFSETS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "tpot": (0.04, 0.04, 0.08),
        "ttft": (0.06, 0.12, 0.20),
        "throughput": (0.04, 0.04, 0.08),
        "served": (0.12, 0.10, 0.08),
        "static": (0.12, 0.08, 0.06),
        "first": (0.20, 0.15, 0.10),
        "single": (0.06, 0.06, 0.05),
        "prompt": (0.05, 0.30, 0.25),
        "timely": (0.20, 0.15, 0.15),
        "pile": (0.30, 0.15, 0.20),
        "open": (0.25, 0.15, 0.20),
    }
)
UNFITTED = ("timely", "pile", "open")
DISAGGREGATED = 0.30  # deviation of pools that send each other caches: no row is of one
