"""`check_catalog` is quiet about the shipped catalog's errors and finds each planted one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from planner.catalog.check import check_catalog
from planner.catalog.model import Catalog, Device, Offer, Shape

STEADY, SPOT = "aws:use1-az3:p5.48xlarge:on_demand", "aws:use1-az3:p5.48xlarge:spot"


def with_device(catalog: Catalog, name: str, change: Callable[[Device], Device]) -> Catalog:
    return replace(catalog, devices={**catalog.devices, name: change(catalog.devices[name])})


def with_shape(catalog: Catalog, name: str, change: Callable[[Shape], Shape]) -> Catalog:
    return replace(catalog, shapes={**catalog.shapes, name: change(catalog.shapes[name])})


def with_offer(catalog: Catalog, name: str, change: Callable[[Offer], Offer]) -> Catalog:
    return replace(catalog, offers=tuple(change(o) if o.id == name else o for o in catalog.offers))


def priced(catalog: Catalog, name: str, microusd: int) -> Catalog:
    return with_offer(catalog, name, lambda o: replace(o, price_microusd_per_hour=microusd))


def rate(device: Device, factor: float) -> Device:
    assert device.scale_up is not None
    faster = replace(device.scale_up, one_way_bytes_per_s=device.scale_up.one_way_bytes_per_s * factor)
    return replace(device, scale_up=faster)


def unsourced(device: Device) -> Device:
    fact = replace(device.facts["memory_bytes"], source="")
    return replace(device, facts={**device.facts, "memory_bytes": fact})


H100 = "h100-sxm-80gb"
ERRORS: list[tuple[str, str, Callable[[Catalog], Catalog]]] = [
    ("unknown-device", "p5.48xlarge", lambda c: with_shape(c, "aws/p5.48xlarge", lambda s: replace(s, device="h900"))),
    ("unknown-shape", STEADY, lambda c: with_offer(c, STEADY, lambda o: replace(o, shape="aws/p9"))),
    ("bad-price", SPOT, lambda c: priced(c, SPOT, 0)),
    ("bad-price", SPOT, lambda c: priced(c, SPOT, -5)),
    ("sentinel", STEADY, lambda c: priced(c, STEADY, 700_000_000)),
    ("spot-above-on-demand", SPOT, lambda c: priced(c, SPOT, 55_040_001)),
    ("two-way-rate", H100, lambda c: with_device(c, H100, lambda d: rate(d, 2))),
    ("no-source", H100, lambda c: with_device(c, H100, unsourced)),
    ("bad-topology", "tpu-v4-8", lambda c: with_shape(c, "gcp/tpu-v4-8", lambda s: replace(s, torus=(3, 2, 1)))),
    ("bad-topology", "tpu-v4-8", lambda c: with_shape(c, "gcp/tpu-v4-8", lambda s: replace(s, kind="instance"))),
    (
        "out-of-range",
        H100,
        lambda c: with_device(c, H100, lambda d: replace(d, peak_flop_per_s={**d.peak_flop_per_s, "fp8": 1979.0})),
    ),
    ("above-peak", H100, lambda c: with_device(c, H100, lambda d: replace(d, peak_flop_per_s={"bf16": 5e14}))),
]
WARNINGS: list[tuple[str, str, Callable[[Catalog], Catalog]]] = [
    ("sparse-peak", H100, lambda c: with_device(c, H100, lambda d: replace(d, peak_flop_per_s={"bf16": 1979e12}))),
    ("memory-label", H100, lambda c: with_device(c, H100, lambda d: replace(d, memory_bytes=64 * 2**30))),
    ("unusual-price", STEADY, lambda c: priced(c, STEADY, 5_504_000)),
    ("two-levels", "aws/p5.48xlarge", lambda c: priced(c, STEADY, 30_000_000)),
    ("spot-equals-on-demand", SPOT, lambda c: priced(c, SPOT, 55_040_000)),
    ("spot-placeholder", SPOT, lambda c: priced(c, SPOT, 5_504_000)),
    ("duplicate-offer", STEADY, lambda c: replace(c, offers=(*c.offers, replace(c.offers[0], id=f"{STEADY}:2")))),
    ("flagged", STEADY, lambda c: with_offer(c, STEADY, lambda o: replace(o, quality="suspect"))),
    ("no-reason", "sn40l", lambda c: with_device(c, "sn40l", lambda d: replace(d, refusals={}))),
]


def found(catalog: Catalog, severity: str) -> set[tuple[str, str]]:
    return {(p.reference, p.message) for p in check_catalog(catalog) if p.severity == severity}


def test_the_shipped_catalog_has_no_errors(catalog: Catalog) -> None:
    assert found(catalog, "error") == set()


@pytest.mark.parametrize(("reference", "owner", "plant"), ERRORS)
def test_planted_errors(catalog: Catalog, reference: str, owner: str, plant: Callable[[Catalog], Catalog]) -> None:
    new = found(plant(catalog), "error")
    assert {name for name, _ in new} == {reference}
    assert all(owner in message for _, message in new)


@pytest.mark.parametrize(("reference", "owner", "plant"), WARNINGS)
def test_planted_warnings(catalog: Catalog, reference: str, owner: str, plant: Callable[[Catalog], Catalog]) -> None:
    new = found(plant(catalog), "warning") - found(catalog, "warning")
    assert any(name == reference and owner in message for name, message in new)


def test_known_oddities_are_warned_about(catalog: Catalog) -> None:
    warnings = found(catalog, "warning")
    flagged = [message for name, message in warnings if name == "flagged"]
    assert any("gcp:us-east4-b:a4-highgpu-8g:on_demand" in message for message in flagged)  # a calendar price, probably
    assert len(flagged) == len({(o.provider, o.quality) for o in catalog.offers if o.quality})
    assert sum("aws.csv" in message for name, message in warnings if name == "old-price") == 1  # spot of February
    assert {"recalled-facts", "inferred-facts"} <= {name for name, _ in warnings}
    assert "date-unknown" not in {name for name, _ in warnings}


def test_a_factor_of_two_between_catalogs(catalog: Catalog) -> None:
    theirs = with_device(catalog, H100, lambda d: replace(d, peak_flop_per_s={"bf16": 1978e12}))
    messages = [p.message for p in check_catalog(catalog, theirs) if p.reference == "factor-of-two"]
    assert len(messages) == 1
    assert H100 in messages[0]
    assert not [p for p in check_catalog(catalog, catalog) if p.reference == "factor-of-two"]


def test_every_problem_has_a_place(catalog: Catalog) -> None:
    assert all(problem.places for problem in check_catalog(catalog))


def test_every_warning_of_what_ships_is_one_to_act_on(catalog: Catalog) -> None:
    """A line a file and reason, not one a price: what to refresh, what is flagged, what stands alone; each says how."""
    warnings = [problem for problem in check_catalog(catalog) if problem.severity == "warning"]
    assert all(problem.hint for problem in warnings), [str(problem) for problem in warnings if not problem.hint]
    assert len(warnings) <= 2 * len({offer.provider for offer in catalog.offers})
    assert sum(problem.reference == "unusual-price" for problem in warnings) <= 3
    assert not [problem for problem in warnings if problem.reference in ("duplicate-offer", "two-levels")]


def test_a_price_is_held_against_sellers_of_its_kind(catalog: Catalog) -> None:
    """A marketplace at a third of what hyperscalers ask is no oddity; eight times the price of others is."""
    named = " ".join(message for name, message in found(catalog, "warning") if name == "unusual-price")
    assert "vast:" not in named
    eight = priced(catalog, STEADY, 8 * 55_040_000)
    assert any(name == "unusual-price" and STEADY in message for name, message in found(eight, "warning"))
