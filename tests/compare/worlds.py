"""A small market and a small question, planned in a moment: eight offers, one job, one fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from planner import api
from planner.analysis.compare.side import Side
from planner.catalog.frozen import digest_of
from planner.catalog.model import Catalog, Provenance
from planner.scenario.load import parse_scenario
from planner.scenario.schema import Scenario

ROOT = Path(__file__).parents[2]
PRICES = {  # USD an hour of a shape; ours, so that a newer price list changes no test
    "hyperbolic:default:2x-H100-149-1443:on_demand": 2.58,
    "hyperstack:CANADA-1:n3-A100x1:on_demand": 1.35,
    "hyperstack:CANADA-1:n3-H100-SXM5x8:on_demand": 19.20,
    "verda:FIN-02:1H200.141S.44V:on_demand": 3.39,
    "verda:FIN-03:1H200.141S.44V:on_demand": 3.39,
    "nebius:eu-north1:gpu-h100-sxm_8gpu-128vcpu-1600gb:on_demand": 23.60,
    "runpod:US-CA-1:1x_A100-80GB_SECURE:on_demand": 1.64,
    "runpod:US-WA-1:8x_L40S_SECURE:on_demand": 6.88,
}
OFFERS = tuple(sorted(PRICES))
SOURCE = Provenance(source="a price list", as_of="2026-11-20", status="seen")
QUESTION = """
schema: plan/v1
name: small
training:
  - name: tune
    model: {parameters: 1B}
    estimator: rule
    tokens: 6B
    deadline: 10 days
    sequence_length: 2048
    global_batch: 512k tokens
    recompute: none
    sharding: zero-1
    failures: none
serving:
  - name: chat
    model: {parameters: 1B}
    throughput: 900 tokens/s
    qpm: 60
    peak_factor: 1
    input_tokens: 500
    output_tokens: 200
hardware: {pricing: [on_demand]}
overrides:
  busy: {serving.chat.qpm: 600}
  soon: {training.tune.deadline: 6 h}
scenarios: {busy: [busy], both: [busy, soon]}
"""


@cache
def market() -> Catalog:
    """The catalog of the eight offers."""
    shipped = api.load_catalog()
    offers = tuple(replace(offer, provenance=SOURCE) for offer in shipped.offers if offer.id in PRICES)
    assert [offer.id for offer in offers] == list(OFFERS)
    shapes = {offer.shape: shipped.shapes[offer.shape] for offer in offers}
    devices = {shape.device: shipped.devices[shape.device] for shape in shapes.values()}
    named = {alias: owner for alias, owner in shipped.aliases.items() if owner in devices}
    known = {"offers": offers, "shapes": shapes, "devices": devices, "providers": {}}  # nobody is a marketplace here
    small = replace(shipped, name="small", as_of="2026-11-20", **known)
    return at_prices(replace(small, aliases=named), PRICES)


def sealed(catalog: Catalog) -> Catalog:
    """A catalog under the digest of its content."""
    return replace(catalog, digest=digest_of(catalog))


def at_prices(catalog: Catalog, prices: Mapping[str, float]) -> Catalog:
    """A catalog with some prices, in USD an hour of a shape."""
    offers = tuple(
        replace(offer, price_microusd_per_hour=round(prices[offer.id] * 1e6)) if offer.id in prices else offer
        for offer in catalog.offers
    )
    return sealed(replace(catalog, offers=offers))


def without(catalog: Catalog, *names: str) -> Catalog:
    """A catalog less some offers."""
    return sealed(replace(catalog, offers=tuple(offer for offer in catalog.offers if offer.id not in names)))


def question(*settings: str, case: str | None = None, text: str = QUESTION) -> Scenario:
    """The question with some --set texts."""
    return parse_scenario(text, settings=settings, case=case)


@cache
def base() -> Side:
    """The small question on the small market."""
    return api.side_of("A", question(), market())


def side(name: str, catalog: Catalog | None = None, *settings: str, **options: Any) -> Side:
    """Another side."""
    return api.side_of(name, question(*settings), catalog or market(), **options)
