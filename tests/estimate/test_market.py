"""The market of a scenario: made once, and another one for whatever it depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner import api
from planner.candidates.ledger import Ledger
from planner.candidates.offers import models_sold, sites_of
from planner.candidates.training_question import TrainingQuestion
from planner.estimate.market import market

DISCOUNT = {"device": "h100-*", "fraction": "10 %"}
CONTRACT = {"shape": "aws/p5.48xlarge", "region": "us-east-1", "price": "$40/h", "term": "1 month"}


@pytest.fixture(scope="module")
def llama() -> api.Session:
    return api.session("llama")


@pytest.mark.parametrize(
    "said",
    [
        {"hardware.discounts": [{**DISCOUNT, "fraction": "11 %"}]},
        {"hardware.discounts": [{**DISCOUNT, "device": "h200-*"}]},
        {"hardware.discounts": [DISCOUNT, {"fraction": "5 %"}]},
        {"hardware.discounts": []},
    ],
)
def test_other_words_of_prices_are_another_market(llama: api.Session, said: dict[str, Any]) -> None:
    asked, other = (llama.scenario.with_(one) for one in ({"hardware.discounts": [DISCOUNT]}, said))
    before, found = market(asked, llama.catalog), market(other, llama.catalog)
    assert market(asked.with_({"limits.budget": "$1"}), llama.catalog) is before
    assert [one.price_microusd_per_hour for one in found.offers] != [
        one.price_microusd_per_hour for one in before.offers
    ]


def test_another_catalog_has_another_market(llama: api.Session) -> None:
    asked = llama.scenario.with_({"hardware.discounts": [DISCOUNT]})
    fewer = replace(llama.catalog, offers=llama.catalog.offers[1:])
    assert len(market(asked, fewer).offers) == len(market(asked, llama.catalog).offers) - 1


def test_what_is_sold_follows_from_who_may_sell(llama: api.Session) -> None:
    every = models_sold(llama.scenario, llama.catalog)
    one = llama.scenario.with_({"hardware.providers": ["lambda"]})
    assert models_sold(one, llama.catalog) < every
    assert models_sold(llama.scenario, llama.catalog) == every


def test_a_machine_is_of_its_device_and_its_network(llama: api.Session) -> None:
    """The same name on another device, or another rate between shapes, is another machine."""
    question = llama.candidates.questions["pretrain-8b"]
    assert isinstance(question, TrainingQuestion)
    sites = sites_of(llama.scenario, llama.candidates.catalog, Ledger(workload=""))
    site = next(one for one in sites if one.inter_node_bytes_per_s is not None)
    before = question.machine(site)
    assert question.machine(site) is before
    slower = replace(site, inter_node_bytes_per_s=(site.inter_node_bytes_per_s or 0.0) / 2)
    assert question.machine(slower) != before
    assert question.machine(replace(site, shape=replace(site.shape, compute_share=0.5))) != before
    assert question.machine(site) == before
    peaks = {name: rate / 2 for name, rate in site.device.peak_flop_per_s.items()}
    assert question.machine(replace(site, device=replace(site.device, peak_flop_per_s=peaks))) != before


def test_what_follows_from_a_site_is_of_that_site(llama: api.Session) -> None:
    site = next(one for one in llama.candidates.tables["pretrain-8b"].sites if not one.spot and one.domain == 8)
    physics, usable = site.physics, site.usable_bytes
    spot = replace(site, offer=replace(site.offer, price_model="spot"))
    assert spot.spot
    assert spot.physics != physics
    larger = replace(site, device=replace(site.device, memory_bytes=2 * site.device.memory_bytes))
    assert larger.usable_bytes > usable
    assert replace(site, shape=replace(site.shape, devices=16)).domain == 16
