"""What serving engines do not run: devices of other vendors, formats of other engines, 8-bit floats on old devices.

Other formats run on old devices one way or another (integers by unpacking), 16 and 32 bits everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.catalog.model import Device
from planner.estimate.engines import ENGINES, EngineRules, engine_rules
from planner.estimate.serving_tiers import fleet_engine
from planner.scenario.schema import ServingFleet

# NVIDIA's compute capability of generations before Ampere (developer documentation, CUDA GPUs)
OLD_CAPABILITY: Mapping[str, float] = MappingProxyType(
    {"kepler": 3.7, "maxwell": 5.2, "pascal": 6.0, "volta": 7.0, "turing": 7.5}
)
# from which engines serve 8-bit floats, as weights alone where there are no 8-bit units; read on 2026-11-21 in
# vllm-project/vllm 0.33.0: vllm/model_executor/layers/quantization/fp8.py, and in
# sgl-project/sglang 0.5.23: python/sglang/srt/layers/quantization/fp8.py
FP8_CAPABILITY: Mapping[str, float] = MappingProxyType({"vllm": 7.5, "sglang": 8.0})
# which serve them on 8-bit units alone: NVIDIA/TensorRT-LLM:docs/source/features/quantization.md, read on 2026-11-25
FP8_UNITS_ALONE = frozenset({"trt-llm"})


def not_run(fleet: ServingFleet, device: Device) -> str:
    """Why a fleet's engine serves nothing on a device, or nothing in its format, and what does; "" where it does.

    What a user measured is served, whatever is known here, and of other vendors nothing is known.
    """
    rules = engine_rules(fleet.engine)
    if rules is None or fleet.tier == "measured" or fleet.throughput_tokens_per_s_per_device is not None:
        return ""
    known = {vendor for one in ENGINES.values() for vendor in one.vendors}
    if rules.vendors and device.vendor in known - {*rules.vendors}:
        able = [one.name for one in ENGINES.values() if not one.vendors or device.vendor in one.vendors]
        return f"{device.id}: {rules.name} does not run on devices of {device.vendor}; {', '.join(able)} may"
    if too_old(rules, device.family):
        return (
            f"{device.id}: {rules.name} runs from compute capability {rules.least_capability} on, and this has "
            f"{OLD_CAPABILITY[device.family]}; llama.cpp may, or an older release whose throughput you give"
        )
    if not _serves(rules, fleet.weights):
        able = [one.name for one in ENGINES.values() if _serves(one, fleet.weights)]
        return f"{device.id}: {rules.name} does not serve weights in {fleet.weights}; {', '.join(able)} may"
    return ""


def too_old(rules: EngineRules, family: str) -> bool:
    """Whether the newest release of an engine runs on no device of a family of NVIDIA's any more."""
    return OLD_CAPABILITY.get(family, rules.least_capability) < rules.least_capability


def _serves(rules: EngineRules, weights: str) -> bool:
    """Files of llama.cpp are served by it, and by those that read them; other formats by all but a few engines."""
    if rules.formats:
        return weights in rules.formats
    return not weights.startswith("q") or rules.name in ("vllm", "sglang")


def lacks_kernels(fleet: ServingFleet, device: Device) -> bool:
    """Whether a fleet's engine cannot serve its weights on a device; what was measured there can be served."""
    if (
        not fleet.weights.startswith("fp8")
        or fleet.tier == "measured"
        or fleet.throughput_tokens_per_s_per_device is not None
    ):
        return False
    engine = fleet_engine(fleet)
    if engine in FP8_UNITS_ALONE or (engine in FP8_CAPABILITY and device.vendor == "amd"):
        return "fp8" not in device.peak_flop_per_s
    least = FP8_CAPABILITY.get(engine, 0.0)
    return OLD_CAPABILITY.get(device.family, least) < least
