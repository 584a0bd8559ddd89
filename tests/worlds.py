"""Small worlds for tests: devices, shapes and offers whose figures can be checked in the head.

One plain device sustains 1e15 FLOP/s: peak 2e15 at a share of one half. The founding rule says that
N parameters on D tokens take 6 N D FLOP (13.3 A100-hours are 6e18 FLOP at 125.3 TFLOP/s), so that a
coarse model of 1e9 parameters takes 6e-6 s a token, 6000 s for 1e9 tokens, on one such device.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.catalog.model import Catalog, Device, Grid, Link, Offer, Provenance, RuleEfficiency, Shape
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario

SEEN = Provenance(source="made up for a test", as_of="2026-11-21", status="user")
PEAK_FLOP_PER_S = 2e15
SECONDS_PER_BILLION_SQUARED = 6e18 / 1e15  # of 1e9 parameters on 1e9 tokens on one plain device
GIB = 2**30


def device(name: str = "plain", **changes: Any) -> Device:
    facts: dict[str, Any] = {
        "id": name,
        "vendor": "acme",
        "kind": "gpu",
        "family": "half",
        "aliases": (),
        "memory_label": "64 GB",
        "memory_bytes": 64 * GIB,
        "reserved_memory_bytes": 4 * GIB,
        "memory_bandwidth_bytes_per_s": 1e12,
        "peak_flop_per_s": {"fp32": PEAK_FLOP_PER_S, "fp16": PEAK_FLOP_PER_S, "bf16": PEAK_FLOP_PER_S},
        "measured_matmul_flop_per_s": {},
        "scale_up": Link(
            name="fast", one_way_bytes_per_s=3e11, one_way_pair_bytes_per_s=3e11, pattern="switched", max_devices=8
        ),
        "host_link_bytes_per_s": 3e10,
        "tdp_w": 500.0,
        "frameworks": ("megatron", "pytorch"),
        "uses": ("training", "serving"),
    }
    return Device(**{**facts, **changes})


def shape(name: str = "north/one", device: str = "plain", devices: int = 1, **changes: Any) -> Shape:
    provider, short = name.split("/")
    facts: dict[str, Any] = {
        "id": name,
        "provider": provider,
        "name": short,
        "kind": "instance",
        "device": device,
        "devices": devices,
        "scale_up_devices": devices,
        "inter_node_bytes_per_s_per_device": 1e11,
    }
    return Shape(**{**facts, **changes})


def offer(shape: str = "north/one", dollars: float = 1.0, region: str = "r1", **changes: Any) -> Offer:
    model = changes.get("price_model", "on_demand")
    facts: dict[str, Any] = {
        "id": f"{shape}:{region}:{model}",
        "provider": shape.split("/")[0],
        "region": region,
        "zone": "",
        "country": "US",
        "shape": shape,
        "price_model": model,
        "price_microusd_per_hour": round(dollars * 1e6),
        "provenance": SEEN,
    }
    return Offer(**{**facts, **changes})


def catalog(
    devices: Iterable[Device] = (),
    shapes: Iterable[Shape] = (),
    offers: Sequence[Offer] | None = None,
    grids: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    digest: str = "d" * 64,
) -> Catalog:
    """A catalog of what is given; by default one plain device, its shape and its offer at $1 an hour."""
    all_devices = {one.id: one for one in devices or [device()]}
    all_shapes = {one.id: one for one in shapes or [shape()]}
    if offers is None:
        offers = [offer(name) for name in all_shapes]
    families = {one.family for one in all_devices.values()}
    return Catalog(
        name="test",
        path="",
        as_of="2026-11-21",
        digest=digest,
        devices=all_devices,
        shapes=all_shapes,
        offers=tuple(sorted(offers, key=lambda one: one.id)),
        efficiencies={
            family: RuleEfficiency(family=family, mfu=0.5, inherited_from="", provenance=SEEN) for family in families
        },
        grids={
            key: Grid(provider=key[0], region=key[1], gco2_per_kwh=grams, pue=pue, provenance=SEEN)
            for key, (grams, pue) in (grids or {}).items()
        },
        aliases={name: name for name in all_devices},
    )


def job(name: str = "job", **changes: Any) -> dict[str, Any]:
    """A coarse job of 6000 device-seconds; a coarse model has no activations and no layers to split."""
    facts: dict[str, Any] = {
        "name": name,
        "model": {"parameters": "1B"},
        "tokens": "1B",
        "deadline": "6000 s",
        "sequence_length": 1024,
        "global_batch": "64 sequences",
        "recompute": "none",
        "sharding": "none",
    }
    return {**facts, **changes}


def fleet(name: str = "fleet", **changes: Any) -> dict[str, Any]:
    """A coarse fleet at 1000 tokens/s per device: a device carries 10 requests of 100 tokens a second."""
    facts: dict[str, Any] = {
        "name": name,
        "model": {"parameters": "1B"},
        "qpm": 600,
        "peak_factor": 1,
        "target_load": 1,
        "input_tokens": 100,
        "output_tokens": 100,
        "throughput": "1000 tokens/s",
    }
    return {**facts, **changes}


def scenario(training: Sequence[dict[str, Any]] = (), serving: Sequence[dict[str, Any]] = (), **top: Any) -> Scenario:
    """A scenario from plain data, through the same door as a file."""
    data: dict[str, Any] = {"schema": "plan/v1", "name": "test", **top}
    if training:
        data["training"] = list(training)
    if serving:
        data["serving"] = list(serving)
    return parse_scenario(json.dumps(data), file="test.yaml")


def priced(scenario: Scenario, *models: str) -> Scenario:
    """The same scenario with other price models allowed; the file itself may ask for on_demand only."""
    return scenario.model_copy(update={"hardware": scenario.hardware.model_copy(update={"pricing": models})})
