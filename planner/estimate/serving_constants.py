"""What a serving engine sustains of a device's rates, and what it adds to every step and request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.carriers import dataclass
from planner.catalog.model import Band, Catalog, Device, ServingCalibration
from planner.equations.registry import FloatOrArray
from planner.errors import InputError
from planner.estimate.serving_formats import FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingConstants:
    """Shares of the peaks that a step sustains, and its overheads; numbers or arrays, one element a replica.

    `error` maps a metric to the median relative error on measurements not used for fitting.
    """

    name: str
    bandwidth: FloatOrArray  # of device memory, reading weights
    compute: FloatOrArray  # of the peak, linear products
    link: FloatOrArray
    pcie: FloatOrArray | None = None  # of a link over PCIe; None = as any link
    cache_bandwidth: FloatOrArray | None = None  # of device memory, reading the cache; None = as weights
    expert_bandwidth: FloatOrArray | None = None
    attention_compute: FloatOrArray | None = None  # of the 16-bit peak; None = as linear products
    expert_compute: FloatOrArray | None = None
    prompt_compute: FloatOrArray = 1.0  # of `compute`, for prompts: where kernels are made for single tokens
    unpack: FloatOrArray = 1.0  # of what products sustain, where kernels unpack weights that no hardware takes
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
    front_request_s: FloatOrArray = 0.0  # of the server between clients and engine, one process
    front_token_s: FloatOrArray = 0.0
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

# Of these the peak is the most; near it they rise ever less.
MOST: Mapping[str, float] = MappingProxyType(
    {
        "bandwidth": 1.0, "cache_bandwidth": 1.0, "expert_bandwidth": 1.0, "compute": 1.0, "expert_compute": 1.0,
        "attention_compute": 1.0, "link": 1.0, "pcie": 1.0, "low_precision": 1.0, "unpack": 1.0,
        "routing_skew": 0.9, "burst": 1.0,
    }
)  # fmt: skip
_BEND = 8.0
# What a factor of an engine, a family, a part ... moves, as powers of constants.
MOVES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "work": {
            "bandwidth": -1, "cache_bandwidth": -1, "expert_bandwidth": -1, "compute": -1, "expert_compute": -1,
            "attention_compute": -1, "link": -1, "pcie": -1, "kernel_unit_s": 1, "collective_s": 1, "step_s": 1,
            "sequence_unit_s": 1, "prompt_step_s": 1, "prompt_unit_s": 1,
        },
        "host": {"kernel_unit_s": 1, "step_s": 1, "sequence_unit_s": 1},
        "prompt": {"prompt_compute": -1},
        "experts": {"expert_bandwidth": -1, "expert_compute": -1},
        "request": {"request_s": 1},
        "burst": {"burst": 1},
        "skew": {"routing_skew": 1},
    }
)  # fmt: skip
LEVELS = ("engine", "family", "part", "pair", "format", "layout", "mixture", "protocol", "card")
# Kinds of figures that have bands; those of a first token, and those that are rates.
FIRST, RATES = ("ttft", "first", "prompt"), ("throughput", "served", "timely", "pile", "single", "prompt")
PLAIN = ("bf16", "fp16", "fp32")
UNSTATED = "unstated"  # engine of rows that name none
ONE_CARD = ("llama.cpp", "mlc-llm")  # engines of one card, whose kernels are not those of servers


def sustained(values: Mapping[str, Any]) -> dict[str, Any]:
    """Constants within what is possible: a share of a peak nears it and does not pass it.

    Below half of the most they stay as they are (within 0.1 %); the root is smooth, so that a fit can follow it.
    """
    return {
        name: value if name not in MOST else value / (1 + (value / MOST[name]) ** _BEND) ** (1 / _BEND)
        for name, value in values.items()
    }


def card_of(engine: str, device: Device) -> str:
    """A card in an engine of `ONE_CARD`, whose kernels reach on each what they were written for; "" in servers."""
    return f"{engine} on {device.id}" if engine in ONE_CARD else ""


def format_kind(weights: str, device: Device) -> str:
    """How many bits weights have, and whether a device computes in them; "" for 16 and 32 bits."""
    if weights in PLAIN:
        return ""
    stored = FORMATS[weights]
    bits = "8 bits" if stored.bits >= 8 else "4 bits"
    own = stored.compute[0]
    return bits if own not in PLAIN and own in device.peak_flop_per_s else f"{bits} unpacked"


def layout_kind(devices: float, pp: float, fast_devices: float, pcie: float, *, apart: bool = False) -> str:
    """What of a layout makes its times less known; "" inside one fast domain.

    Parameters
    ----------
    devices, pp
        Of one replica.
    fast_devices
        That a link joins; 1 where there is none.
    pcie
        Whether that link is PCIe.
    apart
        Prompts and answers are worked on by different replicas.
    """
    if apart:
        return "disaggregated"
    if pp > 1:
        return "pipeline"
    if devices <= 1:
        return ""
    if pcie or fast_devices <= 1:
        return "host links"
    return "" if devices <= fast_devices else "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Constants of an engine on a device, and how far they may be off where nobody measured."""

    constants: ServingConstants
    tag: str  # calibrated | inherited | unfitted: rows of the pair, of both apart, of one or neither; see `band`
    family: str
    engine: str
    found: ServingCalibration
    names: Mapping[str, str]  # level -> name; "" where the level plays no part

    def deviation(self, kind: str, *, experts: bool, layout: str = "") -> float:
        """Standard deviation of the logarithm of what a new campaign measures.

        Parameters
        ----------
        kind
            Of figure, as the bands of the calibration name them: tpot, ttft, throughput ...
        experts
            Whether the model has any.
        layout
            Of `layout_kind`; "" inside one fast domain.
        """
        sense = "first" if kind in FIRST else "work"
        own = self.found.bands[kind]["experts" if experts else "dense"]
        total = own.spread**2
        for level, name in {**self.names, "layout": layout}.items():
            if name:
                trait = self.found.traits.get(level, {}).get(name)
                left_open = trait.spread[sense] if trait else 0.0
                new = self.found.unknown.get(level, {}).get(sense, 0.0)  # a file of before has fewer levels
                unseen = trait is None or (level == "pair" and not self.met(experts=experts))
                total += (max(left_open, new) if unseen else left_open) ** 2
        return float(np.sqrt(total))

    def band(self, kind: str, *, experts: bool, layout: str = "") -> Band:
        """Quantiles of measured over predicted of a kind of figure.

        Rows are those of this engine and family together, of models with experts or without as this one is; without
        one the band is inherited, however near.

        Parameters
        ----------
        kind
            Of figure, as the bands of the calibration name them: tpot, ttft, throughput ...
        experts
            Whether the model has any.
        layout
            Of `layout_kind`; "" inside one fast domain.
        """
        spread, own = self.deviation(kind, experts=experts, layout=layout), self.found.bands[kind]
        of_kind = own["experts" if experts else "dense"]
        rows, sources = self._rows(kind, experts=experts) if self._seen(layout) else (0, 0)
        low, middle, high = (math.exp(score * spread) for score in of_kind.scores)
        return Band(
            p10=low,
            p50=middle,
            p90=high,
            rows=rows,
            sources=sources,
            median_error=of_kind.median_error,
            mean_error=of_kind.mean_error,
            p90_error=of_kind.p90_error,
            tag="calibrated" if rows else "unfitted" if self.tag == "unfitted" else "inherited",
        )

    def _rows(self, kind: str, *, experts: bool) -> tuple[int, int]:
        """Configurations and campaigns of this engine and family together, of such models."""
        pair = self.found.traits.get("pair", {}).get(self.names["pair"])
        return pair.rows.get(f"{kind} experts" if experts else kind, (0, 0)) if pair else (0, 0)

    def met(self, *, experts: bool) -> bool:
        """Whether any figure of such models is known of this engine and family together."""
        pair = self.found.traits.get("pair", {}).get(self.names["pair"])
        return pair is not None and any(kind.endswith(" experts") == experts for kind in pair.rows)

    def _seen(self, layout: str) -> bool:
        """Whether rows speak of a kind of layout and of the format: what is known of the pair is not known of them."""
        kinds = (("layout", layout), ("format", self.names["format"]))
        return all(self.covers(level, name) for level, name in kinds if name)

    def covers(self, level: str, name: str) -> bool:
        """Whether rows of the fit are of an engine, a pair, a format or a kind of layout."""
        trait = self.found.traits.get(level, {}).get(name)
        return trait is not None and bool(trait.factors or trait.rows)


def serving_constants(
    catalog: Catalog, device: Device, engine: str, weights: str = "bf16", *, experts: bool
) -> Calibrated:
    """Common constants times the factors of an engine, a device's family and part, the pair of them and a format.

    Parameters
    ----------
    catalog
        With constants of serving.
    device
        What serves.
    engine
        Its name; "" where none is stated.
    weights
        Format, a key of `serving_formats.FORMATS`.
    experts
        Whether the model has any: an engine may be made for them more or less than for dense models.

    Raises
    ------
    InputError
        The catalog has no constants of serving, or names one that the equations do not know.
    """
    return calibrated(demanded(catalog), device, engine, weights, experts=experts)


# What no measurement covers, in words
WORDS = {
    "disaggregated": "prompts and answers in pools of their own",
    "pipeline": "replicas in a pipeline (pp > 1)",
    "nodes": "replicas on several machines",
    "host links": "replicas over links of the host",
}


def uncovered(catalog: Catalog, device: Device, engine: str, weights: str, layout: str, *, experts: bool) -> list[str]:
    """In words, which of an engine on a family, a format and a kind of layout no row of the constants is of.

    Parameters
    ----------
    catalog
        With constants of serving.
    device, engine, weights
        What serves.
    layout
        Of `layout_kind`.
    experts
        Whether the model has any.

    Raises
    ------
    InputError
        The catalog has no constants of serving.
    """
    own = serving_constants(catalog, device, engine, weights, experts=experts)
    named = {
        "pair": f"{own.engine} on {own.family}",
        "format": f"weights of {format_kind(weights, device)} in {own.engine}",
        "layout": WORDS.get(layout, ""),
    }
    names = {**own.names, "layout": layout}
    if own.covers("pair", names["pair"]) and not own.met(experts=experts):
        named["pair"], names["pair"] = f"models with{'' if experts else 'out'} experts in {named['pair']}", "of others"
    return [text for level, text in named.items() if names[level] and not own.covers(level, names[level])]


def demanded(catalog: Catalog) -> ServingCalibration:
    """The constants of a catalog; InputError where it has none."""
    if catalog.serving is None:
        raise InputError.of(
            "no-constants", "the catalog has no calibration/serving.yaml", hint="plan calibrate serving"
        )
    return catalog.serving


def calibrated(
    found: ServingCalibration, device: Device, engine: str, weights: str, *, experts: bool, protocol: str = ""
) -> Calibrated:
    """The same of a calibration that no catalog holds yet.

    Parameters
    ----------
    found
        The calibration.
    device
        What serves.
    engine
        Its name; "" where none is stated.
    weights
        Format, a key of `serving_formats.FORMATS`.
    experts
        Whether the model has any.
    protocol
        By whose rules it was measured; "" in a plan: nobody tunes it for a contest.

    Raises
    ------
    InputError
        It names a constant that the equations do not know.
    """
    known = {field.name for field in fields(ServingConstants)}
    if unknown := sorted(set(found.common) - known):
        message = f"calibration/serving.yaml names constants that no equation takes: {', '.join(unknown)}"
        raise InputError.of("unknown-constant", message, hint=f"the names are {', '.join(sorted(known))}")
    kind, engine = format_kind(weights, device), engine or UNSTATED
    names = {
        "engine": engine,
        "family": device.family,
        "part": device.id,
        "pair": f"{engine} on {device.family}",
        "format": f"{engine} {kind}" if kind else "",
        "mixture": f"{engine} on {device.family}" if experts else "",
        "protocol": protocol,
        "card": card_of(engine, device),
    }
    own = {level: found.traits.get(level, {}).get(name) for level, name in names.items()}
    values = dict(found.common)
    for trait in own.values():
        for move, factor in trait.factors.items() if trait else ():
            for name, power in MOVES[move].items():
                values[name] = values[name] * factor**power
    tag = "calibrated" if own["pair"] else "inherited" if own["engine"] and own["family"] else "unfitted"
    bands = found.bands
    return Calibrated(
        constants=ServingConstants(
            name=f"calibrated {found.constants_id}",
            error=tuple((kind, bands[kind]["dense"].median_error) for kind in ("tpot", "ttft", "throughput")),
            error_source=f"{found.provenance.source}, campaigns left out, {found.provenance.as_of}",
            **sustained(values),
        ),
        tag=tag,
        family=device.family,
        engine=engine,
        found=found,
        names=names,
    )
