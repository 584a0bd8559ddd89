"""What a serving engine sustains of a device's rates, and what it adds to every step and request."""

from __future__ import annotations

from dataclasses import fields

from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device
from planner.catalog.training_calibration import widened
from planner.equations.registry import FloatOrArray
from planner.errors import InputError


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
    prompt_step_s: FloatOrArray = 0.0  # of a step that holds prompts
    prompt_unit_s: FloatOrArray = 0.0  # per ten kernels of a step that holds prompts: launched one by one
    sequence_s: FloatOrArray = 0.0  # per running sequence and step
    sequence_unit_s: FloatOrArray = 0.0  # per running sequence and ten kernels
    low_precision: FloatOrArray = 1.0  # of a peak twice that of 16 bits, what more than half of it brings
    request_s: FloatOrArray = 0.0  # enters the time to first token
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

SHARES = (
    "bandwidth", "cache_bandwidth", "expert_bandwidth", "compute", "expert_compute", "attention_compute", "link",
    "low_precision",
)  # fmt: skip
# Bands of families without rows are wider by this power: 1.5 makes a p90 of 1.10 one of 1.15.
UNSEEN_FAMILY, UNSEEN_VENDOR = 1.5, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Constants of an engine on a device, and how far they were off where they could be held against measurements."""

    constants: ServingConstants
    tag: str  # calibrated | inherited | uncalibrated: rows of engine and family, of the engine alone, of neither
    family: str
    engine: str
    tpot: Band  # measured over predicted
    ttft: Band
    throughput: Band


def serving_constants(catalog: Catalog, device: Device, engine: str) -> Calibrated:
    """Common constants times the factors of an engine and of a device's family, 1 where there are none.

    Raises
    ------
    InputError
        The catalog has no constants of serving, or names one that the equations do not know.
    """
    found = catalog.serving
    if found is None:
        raise InputError.of(
            "no-constants", "the catalog has no calibration/serving.yaml", hint="plan calibrate serving"
        )
    known = {field.name for field in fields(ServingConstants)}
    if unknown := sorted(set(found.common) - known):
        message = f"calibration/serving.yaml names constants that no equation takes: {', '.join(unknown)}"
        raise InputError.of("unknown-constant", message, hint=f"the names are {', '.join(sorted(known))}")
    own, ours = found.engines.get(engine, {}), found.families.get(device.family, {})
    values = {name: value * own.get(name, 1.0) * ours.get(name, 1.0) for name, value in found.common.items()}
    values |= {name: min(values[name], 1.0) for name in SHARES if name in values}
    widen = 1.0 if ours else UNSEEN_FAMILY if device.vendor == "nvidia" else UNSEEN_VENDOR
    bands = {}
    for metric in ("tpot", "ttft", "throughput"):
        group = found.bands[metric]
        bands[metric] = widened(group.get(device.family, group["all"]), widen)
    return Calibrated(
        constants=ServingConstants(
            name=f"calibrated {found.constants_id}",
            error=tuple((metric, band.median_error) for metric, band in bands.items()),
            error_source=f"{found.provenance.source}, rows left out, {found.provenance.as_of}",
            **values,
        ),
        tag="calibrated" if own and ours else "inherited" if own or ours else "uncalibrated",
        family=device.family,
        engine=engine,
        **bands,
    )
