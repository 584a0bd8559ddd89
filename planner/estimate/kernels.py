"""What serving engines do not run: devices of other vendors, formats of other engines, small floats on old devices.

Other formats run on old devices one way or another (integers by unpacking), 16 and 32 bits everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.catalog.model import Device
from planner.estimate.engines import ENGINES, EngineRules, engine_rules, runs_on
from planner.estimate.serving_tiers import fleet_engine
from planner.scenario.schema import ServingFleet

# NVIDIA's compute capability of generations before Ampere (developer documentation, CUDA GPUs)
OLD_CAPABILITY: Mapping[str, float] = MappingProxyType(
    {"kepler": 3.7, "maxwell": 5.2, "pascal": 6.0, "volta": 7.0, "turing": 7.5}
)
# from which the newest releases of engines run at all, read on 2026-11-26: vllm-project/vllm v0.21.0,
# docs/getting_started/installation/gpu.cuda.inc.md (7.0 until v0.14); sgl-project/sglang issues 6006 and 24224 (its
# kernels are built from sm_80 on); NVIDIA/TensorRT-LLM: Supported Hardware (Ampere and newer)
LEAST_CAPABILITY: Mapping[str, float] = MappingProxyType({"vllm": 7.5, "sglang": 8.0, "trt-llm": 8.0})
# generations of TPUs that vLLM's plugin lists, and those that it calls experimental: docs.vllm.ai/projects/tpu, read on
# 2026-11-28 (recommended: v5e, v6e, v7x)
LISTED_TPUS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"vllm": frozenset({"tpu-v3", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7x"})}
)
EXPERIMENTAL_TPUS: Mapping[str, frozenset[str]] = MappingProxyType({"vllm": frozenset({"tpu-v3", "tpu-v4", "tpu-v5p"})})
# by engines, vendors and kinds of devices, the packages by which they run there, each with releases and options of its
# own: docs.vllm.ai/projects/gaudi, docs.vllm.ai/projects/vllm-metal, read on 2026-11-29; of others recalled
PLUGINS: Mapping[tuple[str, str, str], str] = MappingProxyType(
    {
        ("vllm", "intel", "npu"): "vllm-gaudi",
        ("vllm", "apple", "gpu"): "vllm-metal",
        ("vllm", "aws", "npu"): "vllm-neuron",
        ("vllm", "huawei", "npu"): "vllm-ascend",
        ("sglang", "google", "tpu"): "sglang-jax",
    }
)
EXPORTED_KINDS = frozenset({"gpu", "tpu"})  # of devices, on which what `plan export` writes for runs
TPU_HOST_CHIPS = 8  # of the largest slices of one host (v5e, v6e)
ONE_HOST_ENGINES = frozenset({"vllm", "sglang"})  # whose TPU servers were read to be of one host
# from which engines serve 8-bit floats, as weights alone where there are no 8-bit units; read on 2026-11-21 in
# vllm-project/vllm 0.33.0: vllm/model_executor/layers/quantization/fp8.py, and in
# sgl-project/sglang 0.5.23: python/sglang/srt/layers/quantization/fp8.py
FP8_CAPABILITY: Mapping[str, float] = MappingProxyType({"vllm": 7.5, "sglang": 8.0})
# from which they serve the 4-bit floats of gpt-oss, read on 2026-12-01 in the same versions: quantization/mxfp4.py
MXFP4_CAPABILITY: Mapping[str, float] = MappingProxyType({"vllm": 8.0, "sglang": 8.0})
# which serve 8-bit floats on 8-bit units alone (NVIDIA/TensorRT-LLM:docs/source/features/quantization.md, 2026-11-25)
FP8_UNITS_ALONE = frozenset({"trt-llm"})

# on which engines keep a cache in nvfp4: vllm-project/vllm issues 49011 and 47684 (Blackwell of data centres alone, and
# refused elsewhere), NVIDIA/TensorRT-LLM issue 10241; read on 2026-11-29
_HBM_BLACKWELL = frozenset({"b200-sxm", "gb200-nvl72", "b300-sxm", "gb300-nvl72"})
NVFP4_CACHES: Mapping[str, frozenset[str]] = MappingProxyType(
    {"vllm": _HBM_BLACKWELL, "trt-llm": _HBM_BLACKWELL | {"rtx-pro-6000-server"}}
)


def not_run(fleet: ServingFleet, device: Device, shape_devices: int = 1) -> str:
    """Why a fleet's engine serves nothing on a device, or nothing in its format, and what does; "" where it does.

    Parameters
    ----------
    fleet, device
        What is served, and where.
    shape_devices
        Devices of one shape; of TPUs, chips of one slice.

    Notes
    -----
    What a user measured is served, whatever is known here, and of other vendors nothing is known.
    """
    rules = engine_rules(fleet.engine)
    if rules is None or _measured(fleet):
        return ""
    known = {vendor for one in ENGINES.values() for vendor in one.vendors}
    if device.vendor in known and not runs_on(rules, device.vendor, device.kind):
        able = [one.name for one in ENGINES.values() if runs_on(one, device.vendor, device.kind)]
        what = f"devices of {device.vendor}" if device.vendor not in rules.vendors else "it"
        return f"{device.id}: {rules.name} does not run on {what}; {', '.join(able)} may"
    if left_behind(rules.name, device.family):
        return (
            f"{device.id}: {rules.name} runs from compute capability {LEAST_CAPABILITY[rules.name]} on, and this has "
            f"{OLD_CAPABILITY[device.family]}; llama.cpp may, or an older release whose throughput you give"
        )
    listed = LISTED_TPUS.get(rules.name)
    if listed and device.family.startswith("tpu-") and device.family not in listed:
        return (
            f"{device.id}: {rules.name} lists {', '.join(sorted(listed))}, not this; a throughput that you measured is "
            "planned anywhere"
        )
    if device.kind == "tpu" and shape_devices > TPU_HOST_CHIPS and rules.name in ONE_HOST_ENGINES and not fleet.layout:
        return (
            f"{device.id}: over the hosts of a slice of {shape_devices} chips {rules.name} needs a Ray cluster of its "
            f"own; slices of up to {TPU_HOST_CHIPS} chips have one host, and a layout of your own is planned anywhere"
        )
    if not _serves(rules, fleet.weights):
        able = [one.name for one in ENGINES.values() if _serves(one, fleet.weights)]
        return f"{device.id}: {rules.name} does not serve weights in {fleet.weights}; {', '.join(able)} may"
    if lacks := no_cache(fleet):
        return f"{device.id}: {lacks[0]}"
    having = NVFP4_CACHES.get(rules.name) if fleet.kv_cache == "nvfp4" else None
    if having is not None and device.id not in having:
        return f"{device.id}: {rules.name} keeps a cache in nvfp4 on {', '.join(sorted(having))} alone"
    return ""


def no_cache(fleet: ServingFleet) -> tuple[str, str] | None:
    """That a fleet's engine keeps keys and values in no such format anywhere, and what to write; None where it does."""
    return None if _measured(fleet) else _lacks_cache(fleet)


def _lacks_cache(fleet: ServingFleet) -> tuple[str, str] | None:
    rules = engine_rules(fleet.engine)
    if rules is None or not rules.caches or fleet.kv_cache in rules.caches:
        return None
    able = [one.name for one in ENGINES.values() if fleet.kv_cache in one.caches]
    other = f", or engine: {' or '.join(able)}" if able else ""
    return f"{rules.name} keeps no cache in {fleet.kv_cache}", f"write kv_cache: {' or '.join(rules.caches)}{other}"


def _measured(fleet: ServingFleet) -> bool:
    """Whether its rates are a user's own, who ran it whatever is known here."""
    return fleet.tier == "measured" or fleet.throughput_tokens_per_s_per_device is not None


def left_behind(engine: str, family: str) -> bool:
    """Whether the newest release of an engine of ENGINES runs on no device of a family of NVIDIA's any more."""
    return is_older(family, LEAST_CAPABILITY.get(engine, 0.0))


def is_older(family: str, least: float) -> bool:
    """Whether devices of a family are ones of NVIDIA's of a compute capability below one."""
    return OLD_CAPABILITY.get(family, least) < least


def not_exported(
    fleet: ServingFleet, device: Device, *, apart: bool = False, shape_devices: int = 1, spans: bool = False
) -> str:
    """Why no command line is written for a fleet's engine on a device; "" where one is, or something else is why.

    Parameters
    ----------
    fleet, device
        What is served, and where.
    apart
        Whether replicas that share a machine are to be a server each, as those of mixtures are.
    shape_devices
        Most devices of one shape; of TPUs, chips of one slice.
    spans
        Whether a replica lies on several shapes.
    """
    engine = fleet_engine(fleet)
    if _measured(fleet) and (reason := _lacks_format(fleet)):
        return f"{reason}, whatever measured its throughput: plan export writes no command line for that"
    if engine == "llama.cpp":
        return ""
    plugin = PLUGINS.get((engine, device.vendor, device.kind), "")
    if plugin:
        return f"{engine} runs there by {plugin}, a package of its own that plan export writes no command line for"
    if engine == "trt-llm" and spans:
        return "MPI starts TensorRT-LLM's server over several machines, and plan export writes no command line for that"
    if device.kind == "tpu" and shape_devices > TPU_HOST_CHIPS:
        return (
            f"plan export writes for slices of one host alone, and one of {shape_devices} chips has several: {engine} "
            "needs a Ray cluster of its own there"
        )
    if device.kind == "tpu" and apart:
        return (
            "plan export gives no server its own chips of a slice, and replicas of a mixture share one; a replica that "
            f"fills it is launched: --set 'serving.{fleet.name}.layout=tp4', say, with slices of as many chips"
        )
    return "" if device.kind in EXPORTED_KINDS else "no program that plan export writes for runs there"


def _lacks_format(fleet: ServingFleet) -> str:
    """Which format of a fleet its engine does not have, with those that do; "" where it has both."""
    rules = engine_rules(fleet.engine)
    if rules is not None and not _serves(rules, fleet.weights):
        able = [one.name for one in ENGINES.values() if _serves(one, fleet.weights)]
        return f"{rules.name} does not serve weights in {fleet.weights} ({', '.join(able)} may)"
    lacks = _lacks_cache(fleet)
    return f"{lacks[0]} ({lacks[1]})" if lacks else ""


def is_experimental(fleet: ServingFleet, device: Device) -> bool:
    """Whether a fleet's engine calls its own support of a device experimental."""
    return device.family in EXPERIMENTAL_TPUS.get(fleet_engine(fleet), ())


def _serves(rules: EngineRules, weights: str) -> bool:
    """Files of llama.cpp are served by it, and by those that read them; other formats by all but a few engines."""
    if rules.formats:
        return weights in rules.formats
    return not weights.startswith(("q", "iq")) or rules.name in ("vllm", "sglang")


def lacks_kernels(fleet: ServingFleet, device: Device) -> bool:
    """Whether a fleet's engine cannot serve its weights on a device; what was measured there can be served."""
    eight = fleet.weights.startswith("fp8")
    if not (eight or fleet.weights == "mxfp4") or _measured(fleet):
        return False
    engine = fleet_engine(fleet)
    if not eight:
        return is_older(device.family, MXFP4_CAPABILITY.get(engine, 0.0))
    if engine in FP8_UNITS_ALONE or (engine in FP8_CAPABILITY and device.vendor == "amd"):
        return "fp8" not in device.peak_flop_per_s
    return is_older(device.family, FP8_CAPABILITY.get(engine, 0.0))
