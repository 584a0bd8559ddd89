"""What the constants of serving are expected to be before rows are seen, and how far each may go.

An expectation is an engineer's: the share of memory bandwidth that a streaming read reaches, five microseconds for a
kernel launch, ten for an all-reduce of a few kilobytes over NVLink. They were written down while the shipped rows were
looked at. Engines and device families deviate from the common value by a factor near one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a constant may go: standard deviations of its logarithm; 0 = it does not differ by that."""

    value: float
    common: float
    engine: float = 0.0
    family: float = 0.0
    most: float = float("inf")


SERVING_PRIORS: Mapping[str, Spread] = MappingProxyType(
    {
        "bandwidth": Spread(value=0.86, common=0.08, engine=0.08, family=0.10, most=1.0),
        "cache_bandwidth": Spread(value=0.78, common=0.12, engine=0.10, family=0.08, most=1.0),
        "expert_bandwidth": Spread(value=0.85, common=0.08, most=1.0),
        "compute": Spread(value=0.65, common=0.12, family=0.08, most=1.0),
        "low_precision": Spread(value=0.87, common=0.08, most=1.0),
        "expert_compute": Spread(value=0.30, common=0.20, most=1.0),
        "attention_compute": Spread(value=0.25, common=0.20, most=1.0),
        "link": Spread(value=0.65, common=0.15, most=1.0),
        "routing_skew": Spread(value=0.30, common=0.20, most=0.9),
        "kernel_unit_s": Spread(value=50e-6, common=0.15, engine=0.20, family=0.10),
        "collective_s": Spread(value=9e-6, common=0.30, engine=0.30, family=0.15),
        "step_s": Spread(value=200e-6, common=0.50),
        "sequence_unit_s": Spread(value=0.234e-6, common=0.40, engine=0.35),
        "prompt_step_s": Spread(value=2e-3, common=0.40),
        "prompt_unit_s": Spread(value=80e-6, common=0.30, engine=0.30),
        "request_s": Spread(value=30e-3, common=0.15, engine=0.25),
        "burst": Spread(value=0.30, common=0.10, engine=0.15),
    }
)  # fmt: skip
# Where an engine's constant is not expected to be the common one: software of 2022 and 2023 launches every kernel on
# its own and reduces through NCCL; the second generation of compiled engines fuses more; SGLang processes all waiting
# prompts before it decodes on; statically batched engines were measured without a server.
ENGINE_EXPECTATIONS: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        ("fastertransformer", "kernel_unit_s"): 2.0,
        ("fastertransformer", "collective_s"): 4.5,
        ("fastertransformer", "sequence_unit_s"): 0.3,
        ("fastertransformer", "request_s"): 0.05,
        ("trt-llm-0", "kernel_unit_s"): 2.0,
        ("trt-llm-0", "collective_s"): 2.2,
        ("trt-llm-0", "sequence_unit_s"): 0.3,
        ("trt-llm-0", "request_s"): 0.05,
        ("trt-llm", "kernel_unit_s"): 0.85,
        ("trt-llm", "request_s"): 2.5,
        ("trt-llm", "burst"): 0.6,
        ("vllm", "burst"): 0.5,
        ("sglang", "kernel_unit_s"): 1.15,
        ("sglang", "burst"): 3.3,
        ("llama.cpp", "kernel_unit_s"): 1.5,
        ("llama.cpp", "collective_s"): 3.5,
        ("neuron", "kernel_unit_s"): 2.0,
        ("neuron", "collective_s"): 2.5,
    }
)
PULL = 0.1  # weight of a deviation of one spread against a row that is off by one
FULL_ROWS = 400.0  # at which the pull is as written; it grows with the root of the rows
# What a figure counts: a first token has causes outside the model; a pile of unstated size, a data set of unstated
# lengths and an old table of best batches are known less well than a step.
METRIC_WEIGHTS = MappingProxyType({"tpot_s": 1.0, "ttft_s": 0.4, "output_tokens_per_s": 1.0, "batch_latency_s": 1.0})
LOAD_WEIGHTS = MappingProxyType({"burst": 0.25, "mlperf": 0.5, "first": 0.6, "peak": 0.7, "single": 1.0})
HIDDEN_LAYOUT = 0.5  # weight of a row that does not state its layout, so that the fastest one is predicted
USUAL_ERROR = MappingProxyType({"tpot_s": 0.1, "ttft_s": 0.25, "output_tokens_per_s": 0.1, "batch_latency_s": 0.1})
