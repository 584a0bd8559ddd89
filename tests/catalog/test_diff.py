"""Two catalogs held against each other: what is planted is found, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from planner.catalog.diff import cheapest_offers, difference
from planner.catalog.load import load_catalog
from planner.catalog.model import Catalog
from planner.report.catalog_changes import document, render_difference

CATALOG = load_catalog()


def with_offer(index: int, **cells: Any) -> Catalog:
    offers = list(CATALOG.offers)
    offers[index] = dataclasses.replace(offers[index], **cells)
    return dataclasses.replace(CATALOG, offers=tuple(offers))


def plain_offer() -> int:
    return next(i for i, offer in enumerate(CATALOG.offers) if not offer.quality and offer.price_model == "on_demand")


def test_a_catalog_does_not_differ_from_itself() -> None:
    found = difference(CATALOG, CATALOG)
    assert found.empty
    assert not found.moved
    assert "say the same" in render_difference(found, ("a", "b"), "table")


def test_one_price_among_all() -> None:
    index = plain_offer()
    offer = CATALOG.offers[index]
    found = difference(CATALOG, with_offer(index, price_microusd_per_hour=offer.price_microusd_per_hour * 2))
    ((one,), changes) = (found.prices, found.changes)
    assert (one.id, one.ratio, changes) == (offer.id, 2.0, ())
    assert not found.empty


def test_a_cheaper_offer_moves_what_its_device_costs() -> None:
    best = cheapest_offers(CATALOG)
    key, cheapest = next((key, each) for key, each in sorted(best.items()) if key[2] == "on_demand")
    index = next(i for i, offer in enumerate(CATALOG.offers) if offer.id == cheapest.offer)
    price = CATALOG.offers[index].price_microusd_per_hour // 2
    (moved,) = difference(CATALOG, with_offer(index, price_microusd_per_hour=price)).moved
    assert (moved.provider, moved.device, moved.price_model) == key
    assert moved.old is not None
    assert moved.new is not None
    assert moved.new.usd_per_gb == pytest.approx(moved.old.usd_per_gb / 2, rel=1e-6)


def test_a_changed_fact_names_both_sources() -> None:
    name = "h100-sxm-80gb"
    device = dataclasses.replace(CATALOG.devices[name], tdp_w=650.0)
    other = dataclasses.replace(CATALOG, devices={**CATALOG.devices, name: device})
    (change,) = difference(CATALOG, other).changes
    assert (change.kind, change.id, change.field, change.old, change.new) == ("device", name, "tdp_w", 700.0, 650.0)


def test_flags_come_and_go() -> None:
    index = plain_offer()
    flagged = with_offer(index, quality="suspect")
    assert [offer.id for offer in difference(CATALOG, flagged).flagged] == [CATALOG.offers[index].id]
    assert [offer.id for offer in difference(flagged, CATALOG).cleared] == [CATALOG.offers[index].id]


def test_what_is_added_and_removed() -> None:
    fewer = dataclasses.replace(CATALOG, offers=CATALOG.offers[1:])
    assert difference(CATALOG, fewer).removed["offer"] == (CATALOG.offers[0].id,)
    assert difference(fewer, CATALOG).added["offer"] == (CATALOG.offers[0].id,)


def test_a_source_that_is_better_now() -> None:
    index = next(i for i, offer in enumerate(CATALOG.offers) if offer.provenance.status == "seen")
    undated = dataclasses.replace(CATALOG.offers[index].provenance, status="date-unknown")
    found = difference(with_offer(index, provenance=undated), CATALOG)
    assert [(drift.id, drift.better) for drift in found.drifts] == [(CATALOG.offers[index].id, True)]
    assert found.empty  # the same facts from a better source


@pytest.mark.parametrize("form", ["table", "json", "md", "csv"])
def test_every_form_holds_the_change(form: str) -> None:
    index = plain_offer()
    found = difference(CATALOG, with_offer(index, price_microusd_per_hour=7))
    assert "price_usd_per_hour" in render_difference(found, ("a", "b"), form).replace("\\", "")
    assert document(found, ("a", "b"))["same"] is False
