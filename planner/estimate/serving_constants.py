"""What a serving engine sustains of a device's rates, and what it adds to every step and request."""

from __future__ import annotations

from dataclasses import dataclass

from planner.equations.registry import FloatOrArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingConstants:
    """Shares of the peaks that a step sustains, and its overheads; numbers or arrays, one element a replica.

    `error` maps a metric to the median relative error on measurements not used for fitting.
    """

    name: str
    bandwidth: FloatOrArray  # of device memory, reading weights
    compute: FloatOrArray  # of the peak, linear products
    link: FloatOrArray
    cache_bandwidth: FloatOrArray | None = None  # of device memory, reading the cache; None = as weights
    expert_bandwidth: FloatOrArray | None = None
    attention_compute: FloatOrArray | None = None  # of the 16-bit peak; None = as linear products
    expert_compute: FloatOrArray | None = None
    routing_skew: FloatOrArray = 0.0  # share of the tokens of a batch that visit experts already visited
    kernel_unit_s: FloatOrArray = 0.0  # per ten kernels
    collective_s: FloatOrArray = 0.0
    step_s: FloatOrArray = 0.0  # of the engine's loop, once a step
    prompt_unit_s: FloatOrArray = 0.0  # per ten kernels of a step that holds prompts: launched one by one
    sequence_s: FloatOrArray = 0.0  # per running sequence and step
    request_s: FloatOrArray = 0.0  # enters the time to first token
    prompt_token_s: FloatOrArray = 0.0  # per prompt token, outside the device
    burst: FloatOrArray = 0.0  # share of a closed loop's clients that send at once
    error: tuple[tuple[str, float], ...] = ()
    error_source: str = ""


_CALIBRATION = "medians on 743 closed-loop and 218 offline published measurements (aiconfigurator, TensorRT-LLM)"

TEXTBOOK = ServingConstants(
    name="roofline (T1)",
    bandwidth=0.8,
    compute=0.5,
    link=0.7,
    error=(("tpot", 0.48), ("output_throughput", 0.85), ("offline_throughput", 0.41)),
    error_source=_CALIBRATION,
)
IDEAL = ServingConstants(
    name="ideal (all efficiencies 1)",
    bandwidth=1.0,
    compute=1.0,
    link=1.0,
    error=(("tpot", 0.59), ("output_throughput", 1.40), ("offline_throughput", 0.66)),
    error_source=_CALIBRATION,
)
